//! Parser of scripts.

use super::syntax::{
    Assigned, Assignment, Command, Join, List, Node, Parameter, Parts, Piece, PieceKind, Pipeline,
    Redirection, Simple,
};
use crate::place::Place;
use std::cell::OnceCell;
use std::rc::Rc;

/// Largest depth of nested compound commands and expansions.
const DEPTH: u32 = 40;

const OPERATORS: [&str; 23] = [
    "&&", "||", ";;&", ";;", ";&", "&>>", "&>", ">>", ">&", ">|", "<<<", "<<-", "<<", "<&", "<>",
    "|&", ";", "&", "|", "(", ")", "<", ">",
];
const REDIRECTIONS: [&str; 12] =
    ["&>>", "&>", ">>", ">&", ">|", "<<<", "<<-", "<<", "<&", "<>", "<", ">"];

/// Operations in `${NAME...}`, longer ones first.
const EXPANSIONS: [&str; 19] = [
    ":-", ":=", ":?", ":+", "-", "=", "?", "+", "##", "#", "%%", "%", "//", "/", ":", "^^", "^",
    ",,", ",",
];

/// An error in a script, and its line.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub message: String,
    pub line: u32,
}

type Result<T> = std::result::Result<T, SyntaxError>;

/// A script: its commands, and the lines and texts of all simple commands, also of those in functions.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub list: List,
    pub simple: Vec<(u32, String)>,
}

/// Returns the commands of a script; `start` is the place of its first line.
pub(crate) fn parse(text: &str, start: Place) -> Result<Script> {
    parse_within(text, start, 0)
}

fn parse_within(text: &str, start: Place, depth: u32) -> Result<Script> {
    let mut parser = Parser {
        text,
        at: 0,
        line: start.line.max(1),
        line_at: 0,
        start,
        depth,
        sign: None,
        pending: Vec::new(),
        simple: Vec::new(),
    };
    if depth > DEPTH {
        return Err(parser.error("commands or expansions are nested too deeply"));
    }
    parser.advance();
    let list = parser.list(&[])?;
    if let Some(sign) = parser.sign {
        return Err(parser.error(&format!("`{}` is not allowed here", sign.trim_matches('\n'))));
    }
    Ok(Script { list, simple: parser.simple })
}

/// A text after `<<`: where it goes, the line at its end, whether tabs are removed, and whether
/// nothing in it is expanded.
struct HereDocument {
    text: Rc<OnceCell<Parts>>,
    delimiter: String,
    strips: bool,
    is_literal: bool,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    /// Offset of the current line.
    line_at: usize,
    start: Place,
    depth: u32,
    /// The token: an operator, a newline, `word` where a word begins, `None` at the end.
    sign: Option<&'static str>,
    /// Texts after `<<` that begin on the next line.
    pending: Vec<HereDocument>,
    /// Lines and texts of the simple commands.
    simple: Vec<(u32, String)>,
}

impl<'a> Parser<'a> {
    fn error(&self, message: &str) -> SyntaxError {
        SyntaxError { message: message.to_owned(), line: self.line }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the place from an offset on the current line to the present position.
    fn place(&self, begin: usize) -> Place {
        let first = if self.line == self.start.line { self.start.begin } else { 0 };
        let column = |at: usize| {
            let line = &self.text[self.line_at.min(at)..at];
            line.chars().count() as u32 + if self.line_at == 0 { first } else { 0 }
        };
        Place {
            line: self.line,
            begin: column(begin.max(self.line_at)),
            end: column(self.at),
            ..self.start
        }
    }

    /// Moves to the next token, skipping blanks and comments.
    fn advance(&mut self) {
        loop {
            let rest = self.rest();
            if let Some(joined) = rest.strip_prefix("\\\n").or_else(|| rest.strip_prefix("\\\r\n"))
            {
                self.at = self.text.len() - joined.len();
                self.new_line();
            } else if let Some(c) = rest.chars().next().filter(|c| c.is_whitespace() && *c != '\n')
            {
                self.at += c.len_utf8();
            } else if rest.starts_with('#') {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                break;
            }
        }
        let rest = self.rest();
        self.sign = if rest.is_empty() {
            None
        } else if rest.starts_with('\n') {
            Some("\n")
        } else {
            Some(OPERATORS.into_iter().find(|op| rest.starts_with(op)).unwrap_or("word"))
        };
    }

    fn new_line(&mut self) {
        self.line += 1;
        self.line_at = self.at;
    }

    /// Takes the token, an operator or newline.
    fn skip(&mut self) -> Result<&'static str> {
        let sign = self.sign.unwrap_or("");
        self.at += sign.len();
        if sign == "\n" {
            self.new_line();
            self.here_documents()?;
        }
        self.advance();
        Ok(sign)
    }

    fn newlines(&mut self) -> Result<()> {
        while self.sign == Some("\n") {
            self.skip()?;
        }
        Ok(())
    }

    /// Returns the next word without taking it; empty if it has quotes or expansions.
    fn peek(&self) -> &'a str {
        if self.sign != Some("word") {
            return "";
        }
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || ";&|()<>\"'`$\\#".contains(c));
        let end = end.unwrap_or(rest.len());
        let ends =
            rest[end..].chars().next().is_none_or(|c| c.is_whitespace() || ";&|()<>".contains(c));
        if ends { &rest[..end] } else { "" }
    }

    fn keyword(&mut self, names: &[&str]) -> Result<&'a str> {
        let found = self.peek();
        if !names.contains(&found) {
            let what =
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
            let before =
                if found.is_empty() { String::new() } else { format!(" before `{found}`") };
            return Err(self.error(&format!("{what} is missing{before}")));
        }
        self.at += found.len();
        self.advance();
        Ok(found)
    }

    fn operator(&mut self, sign: &str) -> Result<()> {
        if self.sign != Some(sign) {
            return Err(self.error(&format!("`{sign}` is missing")));
        }
        self.skip().map(|_| ())
    }

    // Lists

    /// Returns the commands up to a word in `ends`, up to `)`, or up to the end of a branch.
    fn list(&mut self, ends: &[&str]) -> Result<List> {
        const CLOSING: [Option<&str>; 5] = [None, Some(")"), Some(";;"), Some(";&"), Some(";;&")];
        let mut found = List::default();
        let mut join = Join::Always;
        self.newlines()?;
        while !CLOSING.contains(&self.sign) && !ends.contains(&self.peek()) {
            found.items.push((join, self.pipeline()?));
            join = match self.sign {
                Some("&&") => Join::And,
                Some("||") => Join::Or,
                _ => Join::Always,
            };
            match self.sign {
                Some("&&" | "||" | ";" | "&" | "\n") => {
                    self.skip()?;
                    self.newlines()?;
                }
                sign if CLOSING.contains(&sign) => {}
                sign => {
                    let sign = sign.unwrap_or("");
                    return Err(self.error(&format!("`{sign}` is not allowed here")));
                }
            }
        }
        Ok(found)
    }

    fn pipeline(&mut self) -> Result<Pipeline> {
        let mut found = Pipeline { commands: Vec::new(), negated: false };
        while self.peek() == "!" {
            self.keyword(&["!"])?;
            found.negated = !found.negated;
        }
        if self.peek() == "time" {
            self.keyword(&["time"])?;
        }
        found.commands.push(self.command()?);
        while matches!(self.sign, Some("|" | "|&")) {
            self.skip()?;
            self.newlines()?;
            found.commands.push(self.command()?);
        }
        Ok(found)
    }

    fn command(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.error("commands are nested too deeply"));
        }
        let line = self.line;
        let mut redirections = Vec::new();
        let command = self.bare(&mut redirections)?;
        if let Command::Simple(simple) = &command {
            let texts: Vec<String> = simple.words.iter().map(Parts::sketch).collect();
            self.simple.push((line, texts.join(" ")));
        } else {
            while self.redirection(&mut redirections)? {}
        }
        self.depth -= 1;
        Ok(Node { command, redirections, line })
    }

    fn bare(&mut self, redirections: &mut Vec<Redirection>) -> Result<Command> {
        if self.sign == Some("(") {
            if self.rest().starts_with("((")
                && let Some(inside) = self.double_parenthesis()?
            {
                return Ok(Command::Evaluation(inside));
            }
            self.skip()?;
            let body = self.list(&[])?;
            self.operator(")")?;
            return Ok(Command::Group(body, true));
        }
        match self.peek() {
            "if" => self.condition(),
            "for" | "select" => self.each(),
            word @ ("while" | "until") => {
                self.keyword(&[word])?;
                let test = self.list(&["do"])?;
                Ok(Command::While(test, self.body()?, word == "until"))
            }
            "case" => self.case(),
            "{" => {
                self.keyword(&["{"])?;
                let body = self.list(&["}"])?;
                self.keyword(&["}"])?;
                Ok(Command::Group(body, false))
            }
            "[[" => {
                self.keyword(&["[["])?;
                self.double_bracket()
            }
            "function" => {
                self.keyword(&["function"])?;
                let name = self.peek().to_owned();
                self.at += name.len();
                self.advance();
                if self.sign == Some("(") {
                    self.skip()?;
                    self.operator(")")?;
                }
                self.function(name)
            }
            _ => self.simple(redirections),
        }
    }

    fn function(&mut self, name: String) -> Result<Command> {
        self.newlines()?;
        let body = self.command()?;
        Ok(Command::Function(name, Rc::new(body)))
    }

    fn body(&mut self) -> Result<List> {
        self.keyword(&["do"])?;
        let body = self.list(&["done"])?;
        self.keyword(&["done"])?;
        Ok(body)
    }

    fn condition(&mut self) -> Result<Command> {
        self.keyword(&["if"])?;
        let mut branches = Vec::new();
        loop {
            let test = self.list(&["then"])?;
            self.keyword(&["then"])?;
            branches.push((test, self.list(&["elif", "else", "fi"])?));
            match self.keyword(&["elif", "else", "fi"])? {
                "elif" => {}
                "else" => {
                    let otherwise = self.list(&["fi"])?;
                    self.keyword(&["fi"])?;
                    return Ok(Command::If(branches, Some(otherwise)));
                }
                _ => return Ok(Command::If(branches, None)),
            }
        }
    }

    fn each(&mut self) -> Result<Command> {
        let word = self.peek();
        self.keyword(&[word])?;
        if self.rest().starts_with("((") {
            let begin = self.at + 2;
            if self.double_parenthesis()?.is_none() {
                return Err(self.error("`))` is missing"));
            }
            let text = &self.text[begin..];
            let text = &text[..closing(&format!("({text}")).map_or(text.len(), |end| end - 1)];
            if self.sign == Some(";") {
                self.skip()?;
            }
            self.newlines()?;
            let mut parts = text.splitn(3, ';').map(|part| self.inner(part));
            let mut next = || parts.next().unwrap_or_else(|| Ok(Parts::default()));
            let parts = [next()?, next()?, next()?];
            return Ok(Command::Counted(parts, self.body()?));
        }
        let name = self.peek().to_owned();
        if name.is_empty() {
            return Err(self.error("a loop needs the name of a variable"));
        }
        self.at += name.len();
        self.advance();
        self.newlines()?;
        let mut words = None;
        if self.peek() == "in" {
            self.keyword(&["in"])?;
            let list = words.insert(Vec::new());
            while self.sign == Some("word") {
                list.push(self.word()?);
            }
        }
        if self.sign == Some(";") {
            self.skip()?;
        }
        self.newlines()?;
        Ok(Command::For(name, words, self.body()?))
    }

    fn case(&mut self) -> Result<Command> {
        self.keyword(&["case"])?;
        let word = self.word()?;
        self.newlines()?;
        self.keyword(&["in"])?;
        self.newlines()?;
        let mut branches = Vec::new();
        while self.peek() != "esac" {
            if self.sign == Some("(") {
                self.skip()?;
            }
            let mut patterns = vec![self.word()?];
            while self.sign == Some("|") {
                self.skip()?;
                patterns.push(self.word()?);
            }
            self.operator(")")?;
            let body = self.list(&["esac"])?;
            let end = match self.sign {
                Some(end @ (";;" | ";&" | ";;&")) => {
                    self.skip()?;
                    end
                }
                _ => ";;",
            };
            self.newlines()?;
            branches.push((patterns, body, end));
        }
        self.keyword(&["esac"])?;
        Ok(Command::Case(word, branches))
    }

    fn double_bracket(&mut self) -> Result<Command> {
        let mut words = Vec::new();
        loop {
            match self.sign {
                None => return Err(self.error("`]]` is missing")),
                Some("\n") => {
                    self.skip()?;
                }
                Some("word") if self.peek() == "]]" => {
                    self.keyword(&["]]"])?;
                    return Ok(Command::Test(words));
                }
                Some("word") => words.push(self.word()?),
                Some(sign) => {
                    words.push(text_of(sign, self.place(self.at)));
                    self.skip()?;
                }
            }
        }
    }

    /// Reads `((...))`; `None` if the brackets are not closed as a pair.
    fn double_parenthesis(&mut self) -> Result<Option<Parts>> {
        let rest = self.rest();
        let Some(end) = closing(&rest[1..]) else { return Ok(None) };
        if !rest[1 + end..].starts_with("))") {
            return Ok(None);
        }
        let inside = self.inner(&rest[2..=end])?;
        self.at += end + 3;
        self.advance();
        Ok(Some(inside))
    }

    fn simple(&mut self, redirections: &mut Vec<Redirection>) -> Result<Command> {
        let mut found = Simple::default();
        loop {
            if self.redirection(redirections)? {
                continue;
            }
            if self.sign != Some("word") {
                break;
            }
            if let Some(assignment) = self.assignment(found.words.is_empty())? {
                found.assignments.push(assignment);
                continue;
            }
            let is_first = found.words.is_empty();
            let word = self.word()?;
            // `declare -A a=(...)`: the words of a declaration may be assignments of arrays.
            if self.sign == Some("(") && is_first {
                let name = word.plain().filter(|_| found.assignments.is_empty());
                let Some(name) = name else {
                    return Err(self.error("`(` is not allowed here"));
                };
                self.skip()?;
                self.operator(")")?;
                return self.function(name);
            }
            found.words.push(word);
        }
        if found.words.is_empty() && found.assignments.is_empty() && redirections.is_empty() {
            let sign = self.sign.unwrap_or("the end");
            return Err(self.error(&format!("`{sign}` is not allowed here")));
        }
        Ok(Command::Simple(found))
    }

    /// Reads an assignment; `None` if the next word is none. Before the first word of a command any
    /// assignment is read, later only those of arrays, as after `declare`.
    fn assignment(&mut self, is_first: bool) -> Result<Option<Assignment>> {
        let rest = self.rest();
        let length =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let name = &rest[..length];
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        let mut at = length;
        let mut index = None;
        if rest[at..].starts_with('[') {
            let Some(end) = rest[at..].find(']') else { return Ok(None) };
            let inside = &rest[at + 1..at + end];
            if !rest[at + end + 1..].starts_with(['=', '+']) || inside.contains('\n') {
                return Ok(None);
            }
            index = Some(inside);
            at += end + 1;
        }
        let adds = rest[at..].starts_with("+=");
        at += usize::from(adds);
        if !rest[at..].starts_with('=') {
            return Ok(None);
        }
        at += 1;
        let is_list = rest[at..].starts_with('(');
        if !is_first && !is_list {
            return Ok(None);
        }
        let index = index.map(|text| self.inner(text)).transpose()?;
        let name = name.to_owned();
        self.at += at;
        let value = if is_list {
            self.at += 1;
            self.advance();
            Assigned::List(self.elements()?)
        } else {
            let begin = self.at;
            let ends = self.rest().chars().next();
            let is_empty = ends.is_none_or(|c| c.is_whitespace() || ";&|()<>".contains(c));
            let word = if is_empty { Parts::default() } else { self.word_bare()? };
            if is_empty {
                self.at = begin;
            }
            self.advance();
            Assigned::Text(word)
        };
        Ok(Some(Assignment { name, index, adds, value }))
    }

    fn elements(&mut self) -> Result<Vec<(Option<Parts>, Parts)>> {
        let mut found = Vec::new();
        loop {
            self.newlines()?;
            match self.sign {
                Some(")") => {
                    self.skip()?;
                    return Ok(found);
                }
                Some("word") => {
                    let rest = self.rest();
                    let end = rest.starts_with('[').then(|| rest.find("]=")).flatten();
                    let mut index = None;
                    if let Some(end) = end {
                        index = Some(self.inner(rest[1..end].trim_matches('"'))?);
                        self.at += end + 2;
                    }
                    found.push((index, self.word()?));
                }
                _ => return Err(self.error("`)` is missing")),
            }
        }
    }

    // Redirections

    fn redirection(&mut self, found: &mut Vec<Redirection>) -> Result<bool> {
        let mut number = String::new();
        if self.sign == Some("word") {
            let rest = self.rest();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 || !rest[digits..].starts_with(['<', '>']) {
                return Ok(false);
            }
            rest[..digits].clone_into(&mut number);
            self.at += digits;
            self.advance();
        }
        let Some(op) = self.sign.filter(|sign| REDIRECTIONS.contains(sign)) else {
            return Ok(false);
        };
        self.skip()?;
        if self.sign != Some("word") {
            return Err(self.error(&format!("`{op}` needs a file")));
        }
        let target = self.word()?;
        let body = Rc::new(OnceCell::new());
        if matches!(op, "<<" | "<<-") {
            let is_literal = target.pieces.iter().any(|piece| piece.quoted);
            let texts = target.pieces.iter().map(|piece| match &piece.kind {
                PieceKind::Text(text) => text.as_str(),
                _ => "",
            });
            let delimiter = texts.collect();
            let strips = op == "<<-";
            let text = Rc::clone(&body);
            self.pending.push(HereDocument { text, delimiter, strips, is_literal });
        }
        found.push(Redirection { op, target, number, body });
        Ok(true)
    }

    /// Reads the texts after `<<`, which begin on the line after the command.
    fn here_documents(&mut self) -> Result<()> {
        for document in std::mem::take(&mut self.pending) {
            let HereDocument { text, delimiter, strips, is_literal } = document;
            let start = Place { line: self.line, begin: 0, end: 0, ..self.start };
            let mut body = String::new();
            loop {
                let rest = self.rest();
                if rest.is_empty() {
                    break;
                }
                let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
                self.at += end;
                self.new_line();
                let line = if strips { rest[..end].trim_start_matches('\t') } else { &rest[..end] };
                if line.trim_end_matches(['\n', '\r']) == delimiter {
                    break;
                }
                body.push_str(line);
            }
            let parts = if is_literal {
                let kind = PieceKind::Text(body);
                Parts { pieces: vec![Piece { kind, quoted: true }], place: start }
            } else {
                self.quoted_text(&body, start)?
            };
            _ = text.set(parts);
        }
        Ok(())
    }

    /// Returns a text with expansions but without quotes, as between double quotes.
    fn quoted_text(&self, text: &str, start: Place) -> Result<Parts> {
        let mut inner = self.sub(text, start);
        let mut pieces = Vec::new();
        inner.double_quoted(&mut pieces, None)?;
        Ok(Parts { pieces, place: start })
    }

    fn sub<'b>(&self, text: &'b str, start: Place) -> Parser<'b> {
        Parser {
            text,
            at: 0,
            line: start.line,
            line_at: 0,
            start,
            depth: self.depth + 1,
            sign: None,
            pending: Vec::new(),
            simple: Vec::new(),
        }
    }

    /// Returns a part of the text, such as an index or an arithmetic expression, as a word.
    fn inner(&self, text: &str) -> Result<Parts> {
        self.quoted_text(text, self.place(self.at))
    }

    // Words

    fn word(&mut self) -> Result<Parts> {
        if self.sign != Some("word") {
            return Err(
                self.error(&format!("`{}` is not allowed here", self.sign.unwrap_or("the end")))
            );
        }
        let word = self.word_bare()?;
        self.advance();
        Ok(word)
    }

    fn word_bare(&mut self) -> Result<Parts> {
        let (begin, line) = (self.at, self.line);
        let mut pieces: Vec<Piece> = Vec::new();
        let add = |pieces: &mut Vec<Piece>, text: &str, quoted: bool| {
            if let Some(Piece { kind: PieceKind::Text(last), quoted: same }) = pieces.last_mut()
                && *same == quoted
            {
                last.push_str(text);
            } else {
                pieces.push(Piece { kind: PieceKind::Text(text.to_owned()), quoted });
            }
        };
        while let Some(c) = self.rest().chars().next() {
            let rest = self.rest();
            match c {
                _ if c.is_whitespace() || ";&|()<>".contains(c) => break,
                '\'' => {
                    let end =
                        rest[1..].find('\'').ok_or_else(|| self.error("a closing ' is missing"))?;
                    let text = &rest[1..=end];
                    add(&mut pieces, text, true);
                    self.at += end + 2;
                    self.lines_in(text);
                }
                '"' => {
                    self.at += 1;
                    let before = pieces.len();
                    self.double_quoted(&mut pieces, Some('"'))?;
                    if pieces.len() == before {
                        add(&mut pieces, "", true);
                    }
                }
                '$' if rest.starts_with("$'") => {
                    let end =
                        rest[2..].find('\'').ok_or_else(|| self.error("a closing ' is missing"))?;
                    add(&mut pieces, &super::builtins::escaped(&rest[2..end + 2]), true);
                    self.at += end + 3;
                }
                '$' | '`' => {
                    if !self.expansion(&mut pieces, false)? {
                        add(&mut pieces, "$", false);
                        self.at += 1;
                    }
                }
                '\\' => {
                    let joined = rest.strip_prefix("\\\n").or_else(|| rest.strip_prefix("\\\r\n"));
                    if let Some(joined) = joined {
                        self.at = self.text.len() - joined.len();
                        self.new_line();
                        continue;
                    }
                    let next = rest[1..].chars().next();
                    let text = next.map_or("\\".to_owned(), String::from);
                    add(&mut pieces, &text, true);
                    self.at += 1 + next.map_or(0, char::len_utf8);
                }
                c => {
                    add(&mut pieces, c.encode_utf8(&mut [0; 4]), false);
                    self.at += c.len_utf8();
                }
            }
        }
        let mut place = self.place(begin);
        if self.line != line {
            place = Place { line, begin: 0, end: 0, ..place };
        }
        Ok(Parts { pieces, place })
    }

    /// Counts the lines in a text that was just taken.
    fn lines_in(&mut self, text: &str) {
        if let Some(last) = text.rfind('\n') {
            self.line += text.matches('\n').count() as u32;
            self.line_at = self.at - (text.len() - last);
        }
    }

    /// Reads a text in double quotes up to `end`, or to the end of the text.
    fn double_quoted(&mut self, pieces: &mut Vec<Piece>, end: Option<char>) -> Result<()> {
        let mut text = String::new();
        let flush = |text: &mut String, pieces: &mut Vec<Piece>| {
            if !text.is_empty() {
                pieces.push(Piece { kind: PieceKind::Text(std::mem::take(text)), quoted: true });
            }
        };
        loop {
            let rest = self.rest();
            let Some(c) = rest.chars().next() else {
                if end.is_some() {
                    return Err(self.error("a closing \" is missing"));
                }
                break;
            };
            self.at += c.len_utf8();
            match c {
                _ if Some(c) == end => break,
                '$' | '`' => {
                    self.at -= 1;
                    flush(&mut text, pieces);
                    if !self.expansion(pieces, true)? {
                        text.push('$');
                        self.at += 1;
                    }
                }
                '\\' => {
                    let next = self.rest().chars().next();
                    match next {
                        Some('\n') => {
                            self.at += 1;
                            self.new_line();
                        }
                        Some(next @ ('$' | '`' | '\\')) => {
                            text.push(next);
                            self.at += 1;
                        }
                        Some('"') if end.is_some() => {
                            text.push('"');
                            self.at += 1;
                        }
                        _ => text.push('\\'),
                    }
                }
                c => {
                    text.push(c);
                    if c == '\n' {
                        self.new_line();
                    }
                }
            }
        }
        flush(&mut text, pieces);
        Ok(())
    }

    /// Reads an expansion; returns false if `$` is an ordinary character here.
    fn expansion(&mut self, pieces: &mut Vec<Piece>, quoted: bool) -> Result<bool> {
        let rest = self.rest();
        let kind = if let Some(behind) = rest.strip_prefix('`') {
            let end = behind.find('`').ok_or_else(|| self.error("a backquote is not closed"))?;
            let inside = rest[1..=end].replace("\\`", "`").replace("\\$", "$");
            let script = parse_within(&inside, self.place(self.at), self.depth + 1)?;
            self.at += end + 2;
            self.lines_in(&rest[..end + 2]);
            PieceKind::Substitution(Rc::new(script.list), inside)
        } else if rest.starts_with("$((")
            && let Some(end) = closing(&rest[2..])
            && rest[2 + end..].starts_with("))")
        {
            let inside = self.inner(&rest[3..end + 2])?;
            self.at += end + 4;
            PieceKind::Arithmetic(inside)
        } else if rest.starts_with("$[")
            && let Some(end) = rest.find(']')
        {
            let inside = self.inner(&rest[2..end])?;
            self.at += end + 1;
            PieceKind::Arithmetic(inside)
        } else if rest.starts_with("$(") {
            let end = closing(&rest[1..]).ok_or_else(|| self.error("`)` is missing"))?;
            let inside = &rest[2..=end];
            let script = parse_within(inside, self.place(self.at), self.depth + 1)?;
            self.at += end + 2;
            self.lines_in(&rest[..end + 2]);
            PieceKind::Substitution(Rc::new(script.list), inside.to_owned())
        } else if rest.starts_with("${") {
            let end = closing(&rest[1..]).ok_or_else(|| self.error("`}` is missing"))?;
            let parameter = self.parameter(&rest[2..=end])?;
            self.at += end + 2;
            PieceKind::Parameter(Box::new(parameter))
        } else {
            let name = &rest[1..];
            let length = match name.chars().next() {
                Some(c) if c.is_ascii_alphabetic() || c == '_' => name
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or(name.len()),
                Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => 1,
                _ => return Ok(false),
            };
            let name = name[..length].to_owned();
            self.at += 1 + length;
            PieceKind::Parameter(Box::new(Parameter { name, ..Parameter::default() }))
        };
        pieces.push(Piece { kind, quoted });
        Ok(true)
    }

    /// Reads the inside of `${...}`.
    fn parameter(&self, text: &str) -> Result<Parameter> {
        let (mut text, mut lead) = (text, "");
        if text.len() > 1 && text.starts_with('#') {
            (text, lead) = (&text[1..], "length");
        } else if text.len() > 1 && text.starts_with('!') {
            (text, lead) = (&text[1..], "keys");
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match text.chars().next() {
            Some(c) if is_name(c) => text.find(|c| !is_name(c)).unwrap_or(text.len()),
            Some(c) if "@*#?$!-".contains(c) => 1,
            _ => return Err(self.error(&format!("`${{{text}}}` is not supported"))),
        };
        let (name, mut rest) = text.split_at(length);
        let mut index = None;
        if let Some(inside) = rest.strip_prefix('[') {
            let end = inside.find(']').ok_or_else(|| self.error("`]` is missing"))?;
            index = Some(self.inner(inside[..end].trim_matches('"'))?);
            rest = &inside[end + 1..];
        }
        let op = EXPANSIONS.into_iter().find(|op| rest.starts_with(op)).unwrap_or("");
        if op.is_empty() && !rest.is_empty() {
            return Err(self.error(&format!("`${{{text}}}` is not supported")));
        }
        let word = self.unquoted(&rest[op.len()..])?;
        let op = if lead.is_empty() { op } else { lead };
        Ok(Parameter { name: name.to_owned(), index, op: op.to_owned(), word })
    }

    /// Returns a text that may have quotes and blanks as one word.
    fn unquoted(&self, text: &str) -> Result<Parts> {
        let mut inner = self.sub(text, self.place(self.at));
        let mut parts = Parts::default();
        while !inner.rest().is_empty() {
            let word = inner.word_bare()?;
            parts.pieces.extend(word.pieces);
            let rest = inner.rest();
            if let Some(c) = rest.chars().next() {
                let kind = PieceKind::Text(c.to_string());
                parts.pieces.push(Piece { kind, quoted: false });
                inner.at += c.len_utf8();
            }
        }
        Ok(parts)
    }
}

fn text_of(text: &str, place: Place) -> Parts {
    let kind = PieceKind::Text(text.to_owned());
    Parts { pieces: vec![Piece { kind, quoted: false }], place }
}

/// Returns the offset of the bracket that closes the one with which `text` begins.
fn closing(text: &str) -> Option<usize> {
    let (open, close) = if text.starts_with('(') { ('(', ')') } else { ('{', '}') };
    let (mut depth, mut quote) = (0, None);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(mark), c) if mark == c => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                chars.next();
            }
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if c == open => depth += 1,
            (None, c) if c == close => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}
