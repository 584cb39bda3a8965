//! Evaluation of scripts: finds the commands that a script would run.

use super::syntax::{
    Assigned, Assignment, Command, Join, List, Node, Parts, PieceKind, Pipeline, Redirection,
    Simple,
};
use super::value::{LENGTH, Origins, UNKNOWN, Value, Variables};
use super::{Script, parse};
use crate::place::{Place, Word};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Largest number of commands and loop iterations in all files together.
const STEPS: u32 = 400_000;
/// Largest depth of nested functions and substitutions.
const CALLS: u32 = 30;
/// Largest number of files that a script writes.
const FILES: usize = 1000;
/// Text between a variable's name and the command whose output is its value.
pub(crate) const WHICH_IS: &str = ", the output of ";

/// A command of another program that a script would run.
#[derive(Debug)]
pub(crate) struct Run {
    pub words: Vec<Word>,
    /// Place of the line.
    pub line: Place,
    /// Network namespace, container or host in which the command is run; empty for this one.
    pub location: String,
    pub origins: Origins,
    /// Standard input; `None` if it is unknown.
    pub stdin: Option<String>,
}

/// Function that returns the text of a file, and its place if the user gave it.
pub(crate) type Files<'f> = &'f dyn Fn(&str) -> Option<(String, Option<Place>)>;

/// Receiver of what a script does.
pub(crate) trait Host {
    /// Applies a command of another program; returns whether its output is known to be empty.
    fn program(&mut self, run: Run, files: Files<'_>) -> bool;

    /// Receives a message about a construct that cannot be read.
    fn doubt(&mut self, line: Place, message: String);

    /// Receives a text that the script prints.
    fn printed(&mut self, line: Place, text: &str);
}

/// Reason why the evaluation of commands stops.
#[derive(Debug)]
pub(crate) enum Stop {
    Exit,
    Return,
    /// `break` or `continue`, with a number of loops.
    Leave {
        loops: i64,
        goes_on: bool,
    },
    /// A construct cannot be read; the next command is evaluated.
    Doubt(String),
    /// The script exceeds a limit, or is no script.
    Fault(String),
}

type Result<T> = std::result::Result<T, Stop>;

#[derive(Debug, Default)]
struct Capture {
    text: String,
    origins: Origins,
}

/// Evaluates scripts.
pub(crate) struct Shell<'h, H> {
    pub host: &'h mut H,
    pub(super) variables: Variables,
    pub(super) functions: BTreeMap<String, Rc<Node>>,
    /// Variables that are arrays with texts as indices.
    pub(super) maps: BTreeSet<String>,
    /// Texts of files that the script has written, by name.
    pub files: BTreeMap<String, String>,
    /// Texts of other given files, by the last part of their name.
    pub sources: BTreeMap<String, (String, Place)>,
    /// Files that the script reads but that were not given, each with the place of the command.
    pub absent: Vec<(String, Place)>,
    /// Given files that were read as a part of another one.
    pub read: BTreeSet<String>,
    captures: Vec<Capture>,
    input: Option<Vec<String>>,
    steps: u32,
    calls: u32,
    /// Place of the file that is read.
    start: Place,
    pub line: u32,
    callers: Vec<u32>,
    location: String,
    /// Lines of the commands that were run.
    pub ran: BTreeSet<(u32, u32)>,
}

impl<'h, H: Host> Shell<'h, H> {
    pub fn new(host: &'h mut H, given: &BTreeMap<String, String>) -> Self {
        Self {
            host,
            variables: Variables::new(given),
            functions: BTreeMap::new(),
            maps: BTreeSet::new(),
            files: BTreeMap::new(),
            sources: BTreeMap::new(),
            absent: Vec::new(),
            read: BTreeSet::new(),
            captures: Vec::new(),
            input: None,
            steps: 0,
            calls: 0,
            start: Place::default(),
            line: 1,
            callers: Vec::new(),
            location: String::new(),
            ran: BTreeSet::new(),
        }
    }

    /// Names of used variables without a value, in the order of their first use.
    pub fn asked(&self) -> &[String] {
        &self.variables.asked
    }

    /// Evaluates a script to its end; `start` is the place of its first line.
    pub fn run(&mut self, script: &Script, start: Place) -> std::result::Result<(), String> {
        self.start = start;
        match self.list(&script.list) {
            Err(Stop::Fault(message) | Stop::Doubt(message)) => Err(message),
            _ => Ok(()),
        }
    }

    pub(super) fn is_map(&self, name: &str) -> bool {
        self.maps.contains(name)
    }

    #[expect(clippy::unused_self, reason = "called where the shell is at hand")]
    pub(super) fn doubt(&self, message: impl Into<String>) -> Stop {
        Stop::Doubt(message.into())
    }

    #[expect(clippy::unused_self, reason = "called where the shell is at hand")]
    pub(super) fn too_much(&self, message: &str) -> Stop {
        Stop::Fault(message.to_owned())
    }

    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps > STEPS {
            let why = format!("the script runs more than {STEPS} commands and loop iterations");
            return Err(Stop::Fault(why));
        }
        Ok(())
    }

    fn place(&self) -> Place {
        Place { line: self.line, begin: 0, end: 0, ..self.start }
    }

    // Output and input

    /// Appends a text to standard output.
    pub(super) fn write(&mut self, text: &str, origins: &Origins) -> Result<()> {
        let place = self.place();
        let Some(capture) = self.captures.last_mut() else {
            self.host.printed(place, text);
            return Ok(());
        };
        capture.text.push_str(text);
        capture.origins.add(origins);
        if capture.text.len() > LENGTH {
            return Err(self.too_much("an output is too long"));
        }
        Ok(())
    }

    /// Records that standard output contains an unknown output of a command.
    pub(super) fn write_unknown(&mut self, what: &str) {
        if let Some(capture) = self.captures.last_mut() {
            capture.origins.unknown.push(what.to_owned());
        }
    }

    pub(super) fn next_line(&mut self) -> Option<String> {
        let input = self.input.as_mut()?;
        (!input.is_empty()).then(|| input.remove(0))
    }

    pub(super) fn stdin(&self) -> Option<String> {
        self.input.as_ref().map(|lines| match lines.as_slice() {
            [] => String::new(),
            lines => lines.join("\n") + "\n",
        })
    }

    fn captured(&mut self, action: impl FnOnce(&mut Self) -> Result<()>) -> Result<Value> {
        self.enter()?;
        self.captures.push(Capture::default());
        let result = action(self);
        self.calls -= 1;
        let Capture { text, origins } = self.captures.pop().unwrap_or_default();
        result.map(|()| Value::new(text, origins))
    }

    fn enter(&mut self) -> Result<()> {
        self.calls += 1;
        if self.calls > CALLS {
            return Err(self.too_much("functions and substitutions are nested too deeply"));
        }
        Ok(())
    }

    /// Returns the output of commands in a subshell.
    pub(super) fn substituted(&mut self, script: &List) -> Result<Value> {
        let line = self.line;
        let found = self.captured(|shell| shell.subshell(|shell| shell.list(script)));
        self.line = line;
        found
    }

    fn subshell(&mut self, action: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let saved = self.variables.save();
        let result = action(self);
        self.variables.restore(saved);
        match result {
            Err(Stop::Exit | Stop::Return | Stop::Leave { .. }) => Ok(()),
            result => result,
        }
    }

    // Lists

    fn list(&mut self, list: &List) -> Result<()> {
        for (join, pipeline) in &list.items {
            let is_success = self.variables.status == 0;
            let is_skipped = match join {
                Join::Always => false,
                Join::And => !is_success,
                Join::Or => is_success,
            };
            if !is_skipped {
                self.pipeline(pipeline)?;
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<()> {
        if let Some((last, before)) = pipeline.commands.split_last() {
            let outer = self.input.clone();
            let mut origins = Origins::default();
            for node in before {
                let found = self.captured(|shell| shell.node(node))?;
                let is_known = found.origins.unknown.is_empty();
                origins = found.origins;
                self.input = is_known.then(|| found.text.lines().map(str::to_owned).collect());
            }
            if self.input.is_none() {
                for what in &origins.unknown {
                    self.write_unknown(what);
                }
            }
            let result = self.node(last);
            // Without a pipe, the command reads from the input of the list.
            if !before.is_empty() {
                self.input = outer;
            }
            result?;
        }
        if pipeline.negated {
            self.variables.status = i64::from(self.variables.status == 0);
        }
        Ok(())
    }

    fn is_true(&mut self, list: &List) -> Result<bool> {
        self.list(list)?;
        Ok(self.variables.status == 0)
    }

    // Commands

    fn node(&mut self, node: &Node) -> Result<()> {
        self.step()?;
        match &node.command {
            Command::Simple(simple) => {
                // A function that passes on its arguments is a wrapper: the line is the caller's.
                let caller = self.callers.last().filter(|_| passes_on(&simple.words));
                self.line = caller.copied().unwrap_or(node.line);
                self.ran.insert((self.start.file, node.line));
            }
            Command::Test(_) | Command::Evaluation(_) => self.line = node.line,
            _ => {}
        }
        let result = match &node.command {
            Command::Simple(simple) => self.simple(simple, &node.redirections),
            command => self.redirected(&node.redirections, |shell| shell.compound(command)),
        };
        match result {
            Err(Stop::Doubt(message)) => {
                let place = self.place();
                self.host.doubt(place, message);
                self.variables.status = 2;
                Ok(())
            }
            result => result,
        }
    }

    fn compound(&mut self, command: &Command) -> Result<()> {
        match command {
            Command::If(branches, otherwise) => {
                for (test, body) in branches {
                    if self.is_true(test)? {
                        return self.list(body);
                    }
                }
                self.variables.status = 0;
                otherwise.as_ref().map_or(Ok(()), |body| self.list(body))
            }
            Command::For(name, words, body) => {
                self.variables.status = 0;
                let values = match words {
                    Some(words) => {
                        self.fields(words)?.0.into_iter().map(|(value, _)| value).collect()
                    }
                    None => self.variables.positional.clone(),
                };
                for value in values {
                    self.variables.put(name, value);
                    if !self.round(body)? {
                        break;
                    }
                }
                Ok(())
            }
            Command::Counted([first, test, step], body) => {
                let mut origins = Origins::default();
                self.number(first, &mut origins)?;
                while test.pieces.is_empty() || self.number(test, &mut origins)? != 0 {
                    if !self.round(body)? {
                        break;
                    }
                    self.number(step, &mut origins)?;
                }
                Ok(())
            }
            Command::While(test, body, until) => {
                while self.is_true(test)? != *until {
                    if !self.round(body)? {
                        break;
                    }
                }
                self.variables.status = 0;
                Ok(())
            }
            Command::Case(word, branches) => self.case(word, branches),
            Command::Function(name, body) => {
                self.functions.insert(name.clone(), Rc::clone(body));
                self.variables.status = 0;
                Ok(())
            }
            Command::Group(body, true) => self.subshell(|shell| shell.list(body)),
            Command::Group(body, false) => self.list(body),
            Command::Test(words) => {
                let (mut texts, mut patterns) = (Vec::new(), Vec::new());
                for word in words {
                    texts.push(self.text(word)?.text);
                    patterns.push(self.pattern(word)?);
                }
                let holds = super::test::holds(&texts, Some(&patterns));
                self.variables.status = i64::from(!holds.map_err(|why| self.doubt(why))?);
                Ok(())
            }
            Command::Evaluation(word) => {
                let number = self.number(word, &mut Origins::default())?;
                self.variables.status = i64::from(number == 0);
                Ok(())
            }
            Command::Simple(_) => Ok(()),
        }
    }

    /// Runs one iteration of a loop; returns whether another iteration may follow.
    fn round(&mut self, body: &List) -> Result<bool> {
        self.step()?;
        match self.list(body) {
            Ok(()) => Ok(true),
            Err(Stop::Leave { loops, goes_on }) if loops <= 1 => Ok(goes_on),
            Err(Stop::Leave { loops, goes_on }) => Err(Stop::Leave { loops: loops - 1, goes_on }),
            Err(stop) => Err(stop),
        }
    }

    fn case(&mut self, word: &Parts, branches: &[(Vec<Parts>, List, &'static str)]) -> Result<()> {
        let text: Vec<char> = self.text(word)?.text.chars().collect();
        self.variables.status = 0;
        let mut falls = false;
        for (patterns, body, end) in branches {
            let mut is_met = falls;
            for pattern in patterns {
                is_met |= super::pattern::fits(&self.pattern(pattern)?, &text);
            }
            if !is_met {
                continue;
            }
            self.list(body)?;
            falls = *end == ";&";
            if *end == ";;" {
                return Ok(());
            }
        }
        Ok(())
    }

    fn simple(&mut self, simple: &Simple, redirections: &[Redirection]) -> Result<()> {
        let (fields, origins) = self.fields(&simple.words)?;
        if fields.is_empty() {
            self.variables.status = 0;
            for assignment in &simple.assignments {
                self.assign(assignment)?;
            }
            return self.redirected(redirections, |_| Ok(()));
        }
        // Arrays of `declare -A name=(...)`.
        let texts: Vec<&str> = fields.iter().map(|(value, _)| value.text.as_str()).collect();
        let declares = matches!(texts[0], "declare" | "typeset" | "local" | "readonly" | "export");
        if declares {
            let is_map = texts.iter().any(|word| word.starts_with('-') && word.contains('A'));
            for assignment in &simple.assignments {
                if is_map {
                    self.maps.insert(assignment.name.clone());
                }
                self.assign(assignment)?;
            }
        }
        // Field separators of this command, as in `IFS=: read a b`.
        let own = simple.assignments.iter().find(|one| one.name == "IFS").filter(|_| !declares);
        let Some(own) = own else {
            return self.redirected(redirections, |shell| shell.call(fields, origins));
        };
        let before = self.separators();
        self.assign(own)?;
        let result = self.redirected(redirections, |shell| shell.call(fields, origins));
        self.variables.put("IFS", Value::of(before));
        result
    }

    fn assign(&mut self, assignment: &Assignment) -> Result<()> {
        let name = assignment.name.as_str();
        match &assignment.value {
            Assigned::Text(word) => {
                let mut value = self.text(word)?;
                // The user may set a command's unknown output by the name of this variable.
                let named = |what: &String| {
                    if what.contains(WHICH_IS) {
                        what.clone()
                    } else {
                        format!("{name}{WHICH_IS}{what}")
                    }
                };
                value.origins.unknown = value.origins.unknown.iter().map(named).collect();
                let index = match &assignment.index {
                    Some(index) => Some(self.index(name, index)?),
                    None => None,
                };
                if assignment.adds {
                    let old = match &index {
                        Some(index) => self.variables.element(name, index),
                        None => self.variables.get(name),
                    };
                    if let Some(old) = old {
                        value.text = old.text + &value.text;
                        value.origins.add(&old.origins);
                    }
                }
                match index {
                    Some(index) => self.variables.put_element(name, &index, value),
                    None => self.variables.put(name, value),
                }
            }
            Assigned::List(elements) => {
                let mut found =
                    if assignment.adds { self.variables.elements(name) } else { Vec::new() };
                for (index, word) in elements {
                    if let Some(index) = index {
                        let index = self.index(name, index)?;
                        let value = self.text(word)?;
                        found.retain(|(key, _)| *key != index);
                        found.push((index, value));
                        continue;
                    }
                    for (value, _) in self.fields(std::slice::from_ref(word))?.0 {
                        let next =
                            found.iter().filter_map(|(key, _)| key.parse::<u64>().ok()).max();
                        found.push((next.map_or(0, |last| last + 1).to_string(), value));
                    }
                }
                self.variables.put_array(name, found);
            }
        }
        Ok(())
    }

    /// Runs a command: a function, a builtin or another program.
    fn call(&mut self, fields: Vec<(Value, Place)>, origins: Origins) -> Result<()> {
        let words: Vec<String> = fields.iter().map(|(value, _)| value.text.clone()).collect();
        if let Some(body) = self.functions.get(&words[0]).cloned() {
            return self
                .function(&body, fields.into_iter().skip(1).map(|(value, _)| value).collect());
        }
        if self.builtin(&words, &origins)? {
            return Ok(());
        }
        let begin = usize::from(matches!(words[0].as_str(), "command" | "builtin" | "exec"));
        let location = self.location.clone();
        self.program(&fields[begin..], origins, &location)
    }

    /// Runs a command of another program, which other programs may precede that run it elsewhere or
    /// as another user.
    fn program(
        &mut self,
        fields: &[(Value, Place)],
        origins: Origins,
        location: &str,
    ) -> Result<()> {
        use crate::wrapper::{Inner, unwrapped};
        self.variables.status = 0;
        let words: Vec<Word> =
            fields.iter().map(|(value, place)| Word::new(value.text.clone(), *place)).collect();
        let (inner, location) = unwrapped(&words, location);
        let of = |part: &[(Value, Place)]| {
            let mut found = Origins::default();
            for (value, _) in part {
                found.add(&value.origins);
            }
            found.unknown
        };
        // Where a command runs may be unknown, if its own words are known.
        let behind = |from: usize| {
            let place = of(&fields[..from])
                .into_iter()
                .fold(location.clone(), |place, what| place.replacen(UNKNOWN, &what, 1));
            (Origins { unknown: of(&fields[from..]), ..origins.clone() }, place)
        };
        match inner {
            Inner::Text(text) => {
                if !origins.unknown.is_empty() && !looks_like_tc(&text) {
                    return Ok(());
                }
                return self.elsewhere(location, |shell| shell.subshell(|s| s.evaluate(&text)));
            }
            Inner::Input => {
                if let Some(text) = self.stdin() {
                    let evaluate = |shell: &mut Self| shell.subshell(|s| s.evaluate(&text));
                    return self.elsewhere(location, evaluate);
                }
            }
            Inner::File(name) => {
                let file = name.text.clone();
                if self.files.contains_key(&file) || self.known_source(&file) {
                    let load = |shell: &mut Self| shell.subshell(|s| s.source(&file));
                    return self.elsewhere(location, load);
                }
            }
            Inner::Words(from) => {
                let (origins, location) = behind(from);
                self.apply(words[from..].to_vec(), origins, location);
                return Ok(());
            }
            Inner::Tc(from) => {
                let program = Word::new("tc".to_owned(), words[from - 1].place);
                let words = std::iter::once(program).chain(words[from..].iter().cloned());
                let (origins, location) = behind(from);
                self.apply(words.collect(), origins, location);
                return Ok(());
            }
        }
        self.apply(words, origins, location);
        Ok(())
    }

    fn apply(&mut self, words: Vec<Word>, origins: Origins, location: String) {
        let name = words.first().map(|word| word.text.clone()).unwrap_or_default();
        let run = Run { words, line: self.place(), location, origins, stdin: self.stdin() };
        let Self { host, files, sources, .. } = self;
        let find = |name: &str| {
            let given = || {
                let (text, place) = sources.get(name.rsplit('/').next()?)?;
                Some((text.clone(), Some(*place)))
            };
            files.get(name).map(|text| (text.clone(), None)).or_else(given)
        };
        if !host.program(run, &find) {
            self.write_unknown(&name);
        }
    }

    fn elsewhere(
        &mut self,
        location: String,
        action: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let outer = std::mem::replace(&mut self.location, location);
        let result = action(self);
        self.location = outer;
        result
    }

    fn function(&mut self, body: &Rc<Node>, arguments: Vec<Value>) -> Result<()> {
        self.enter()?;
        let line = self.line;
        self.callers.push(line);
        let outer = self.variables.begin_call(arguments);
        self.variables.status = 0;
        let result = self.node(body);
        self.variables.end_call(outer);
        self.callers.pop();
        self.calls -= 1;
        self.line = line;
        match result {
            Err(Stop::Return) => Ok(()),
            result => result,
        }
    }

    /// Evaluates a text as commands, as `eval` does.
    pub(super) fn evaluate(&mut self, text: &str) -> Result<()> {
        self.enter()?;
        let line = self.line;
        let script = parse(text, self.place());
        let result = match script {
            Ok(script) => {
                // The lines of the text are those of the command that contains it.
                self.callers.push(line);
                let result = self.list(&script.list);
                self.callers.pop();
                result
            }
            Err(why) => Err(self.doubt(why.message)),
        };
        self.calls -= 1;
        self.line = line;
        result
    }

    fn known_source(&self, file: &str) -> bool {
        self.sources.contains_key(file.rsplit('/').next().unwrap_or(file))
    }

    /// Evaluates another file, as `.` does.
    pub(super) fn source(&mut self, file: &str) -> Result<()> {
        let name = file.rsplit('/').next().unwrap_or(file).to_owned();
        let known = self.files.get(file).map(|text| (text.clone(), self.place()));
        let Some((text, start)) = known.or_else(|| self.sources.get(&name).cloned()) else {
            let place = self.place();
            if !self.absent.iter().any(|(known, _)| known == file) {
                self.absent.push((file.to_owned(), place));
            }
            return Ok(());
        };
        self.read.insert(name);
        self.enter()?;
        let (outer, line) = (self.start, self.line);
        let script = parse(&text, start);
        self.start = start;
        let result = match script {
            Ok(script) => self.list(&script.list),
            Err(why) => Err(self.doubt(format!("{file}: {}", why.message))),
        };
        (self.start, self.line) = (outer, line);
        self.calls -= 1;
        match result {
            Err(Stop::Return) => Ok(()),
            result => result,
        }
    }

    // Redirections

    fn redirected(
        &mut self,
        redirections: &[Redirection],
        action: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let reads = redirections.iter().any(|one| one.op.starts_with('<'));
        let outer = reads.then(|| self.input.clone());
        let mut target: Option<(String, bool)> = None;
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        for one in redirections {
            let name = self.text(&one.target)?.text;
            let is_output = matches!(one.number.as_str(), "" | "1");
            match one.op {
                "<<" | "<<-" => {
                    if let Some(body) = one.body.get() {
                        self.input = Some(lines(&self.text(body)?.text));
                    }
                }
                "<<<" => self.input = Some(lines(&name)),
                "<" => {
                    let source = || {
                        let (text, _) = self.sources.get(name.rsplit('/').next()?)?;
                        Some(text)
                    };
                    self.input = self.files.get(&name).or_else(source).map(|text| lines(text));
                }
                ">" | ">>" | ">|" | "&>" | "&>>" if is_output => {
                    target = Some((name, one.op.ends_with(">>")));
                }
                // Descriptor 1 is captured; the output to others is discarded.
                ">&" if is_output && name != "1" => {
                    let is_number = name.bytes().all(|b| b.is_ascii_digit()) || name == "-";
                    target = Some((if is_number { "/dev/null".to_owned() } else { name }, false));
                }
                _ => {}
            }
        }
        let result = match target {
            None => action(self),
            Some((name, adds)) => self.captured(action).and_then(|found| {
                if found.origins.unknown.is_empty() && !name.starts_with("/dev/") {
                    let old = if adds { self.files.get(&name).cloned() } else { None };
                    let text = old.unwrap_or_default() + &found.text;
                    if text.len() > LENGTH || self.files.len() > FILES {
                        return Err(self.too_much("the script writes too much to files"));
                    }
                    self.files.insert(name, text);
                }
                Ok(())
            }),
        };
        if let Some(outer) = outer {
            self.input = outer;
        }
        result
    }
}

/// Whether a command passes on the arguments of its function, as a wrapper does.
fn passes_on(words: &[Parts]) -> bool {
    let is_all = |parts: &Parts| {
        parts.pieces.iter().any(|piece| match &piece.kind {
            PieceKind::Parameter(parameter) => matches!(parameter.name.as_str(), "@" | "*"),
            _ => false,
        })
    };
    words.iter().any(is_all)
}

/// Whether a text has a command of `tc` that changes a queue.
pub(crate) fn looks_like_tc(text: &str) -> bool {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '`' | '(' | ')' | ','))
        .filter(|word| !word.is_empty())
        .collect();
    let changes =
        |word: &&str| matches!(*word, "add" | "replace" | "change" | "change-root" | "link");
    words.windows(2).enumerate().any(|(n, pair)| {
        matches!(pair[0], "qdisc" | "class" | "filter")
            && changes(&pair[1])
            && (n == 0
                || words[..n].iter().rev().take(6).any(|word| {
                    let name = word.trim_start_matches(['$', '{', '@']).trim_end_matches('}');
                    name.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case("tc"))
                }))
    })
}
