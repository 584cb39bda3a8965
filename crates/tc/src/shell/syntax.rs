//! Parsed scripts.

use crate::place::Place;
use std::cell::OnceCell;
use std::rc::Rc;

/// A word before its expansion.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub pieces: Vec<Piece>,
    pub place: Place,
}

/// A part of a word.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub kind: PieceKind,
    pub quoted: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum PieceKind {
    Text(String),
    /// `$NAME` or `${NAME...}`.
    Parameter(Box<Parameter>),
    /// `$(...)` or backquotes: the commands and their text.
    Substitution(Rc<List>, String),
    /// `$((...))`.
    Arithmetic(Parts),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Parameter {
    pub name: String,
    /// Index of an element of an array.
    pub index: Option<Parts>,
    /// Operation, such as `:-`, `##` or `length`; empty without one.
    pub op: String,
    pub word: Parts,
}

impl Parts {
    /// Returns the text of a word without quotes and expansions.
    pub fn plain(&self) -> Option<String> {
        let text = |piece: &Piece| match &piece.kind {
            PieceKind::Text(text) if !piece.quoted => Some(text.clone()),
            _ => None,
        };
        self.pieces.iter().map(text).collect()
    }

    /// Returns the text of a word, with the names of parameters instead of their values.
    pub fn sketch(&self) -> String {
        let text = |piece: &Piece| match &piece.kind {
            PieceKind::Text(text) => text.clone(),
            PieceKind::Parameter(parameter) => parameter.name.clone(),
            PieceKind::Substitution(..) | PieceKind::Arithmetic(_) => "?".to_owned(),
        };
        self.pieces.iter().map(text).collect()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Redirection {
    pub op: &'static str,
    pub target: Parts,
    /// Number of the redirected descriptor; empty for the default.
    pub number: String,
    /// The text after `<<`, which is set when its lines are parsed.
    pub body: Rc<OnceCell<Parts>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Assigned {
    Text(Parts),
    /// Elements of an array, each with its index.
    List(Vec<(Option<Parts>, Parts)>),
}

#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub name: String,
    pub index: Option<Parts>,
    /// Whether the value is appended (`+=`).
    pub adds: bool,
    pub value: Assigned,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Simple {
    pub assignments: Vec<Assignment>,
    pub words: Vec<Parts>,
}

#[derive(Clone, Debug)]
pub(crate) enum Command {
    Simple(Simple),
    /// Pairs of condition and commands, and the commands after `else`.
    If(Vec<(List, List)>, Option<List>),
    /// `for NAME in WORDS`; without words over the positional parameters.
    For(String, Option<Vec<Parts>>, List),
    /// `for ((FIRST; TEST; STEP))`.
    Counted([Parts; 3], List),
    /// A condition, commands, and whether the loop is `until`.
    While(List, List, bool),
    /// A word, and branches: patterns, commands, and the operator at the end.
    Case(Parts, Vec<(Vec<Parts>, List, &'static str)>),
    Function(String, Rc<Node>),
    /// Commands in a group, and whether it is a subshell.
    Group(List, bool),
    /// `[[ ... ]]`.
    Test(Vec<Parts>),
    /// `((...))`.
    Evaluation(Parts),
}

/// A command with its redirections and the line where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub command: Command,
    pub redirections: Vec<Redirection>,
    pub line: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub commands: Vec<Node>,
    pub negated: bool,
}

/// The operator before a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    Always,
    And,
    Or,
}

/// Pipelines, each with the operator before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub items: Vec<(Join, Pipeline)>,
}
