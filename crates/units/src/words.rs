//! One-line descriptions in the style of `tc`: a name, followed by words, most of which have a
//! value.
//!
//! A description such as `codel limit 1000p target 5ms ecn` is parsed according to the [`Table`]
//! that the component declares. An error states the position, the text found, the allowed words,
//! and the nearest of them.

use crate::quantity::{self, QuantityError, Rate};
use crate::time::Nanos;
use serde::Serialize;
use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

/// A name that can be the value of a word, and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Meaning {
    /// The name.
    pub name: &'static str,
    /// Meaning of the name, in one sentence.
    pub doc: &'static str,
}

/// Kind of the value that follows a word.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Kind {
    /// The word has no value: it is a flag, which the word sets.
    Flag,
    /// The word has no value: it sets a switch, which a second word clears.
    Switch {
        /// Word that clears the switch.
        off: &'static str,
    },
    /// One of these words is written alone; the name of the [`Word`] does not occur in
    /// descriptions.
    OneOf {
        /// Words to choose from.
        of: &'static [&'static str],
    },
    /// A number of packets, such as `300` or `300p`.
    Packets,
    /// A size in bytes, such as `1500` or `30kb`.
    Size,
    /// A duration with its unit, such as `5ms`.
    Time,
    /// A rate with its unit, such as `10mbit`.
    Rate,
    /// An integer within bounds.
    Integer {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// A signed integer within bounds.
    Signed {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
    },
    /// A real number within bounds.
    Real {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// A probability as a fraction or percentage, such as `0.02` or `2%`.
    Probability,
    /// One of several names.
    Choice {
        /// Allowed names.
        of: &'static [&'static str],
    },
    /// One of several names, each with an explanation.
    Named {
        /// Allowed names.
        of: &'static [Meaning],
    },
    /// One or more of several names, joined by `+`; or `all`, or `none`.
    List {
        /// Allowed names.
        of: &'static [Meaning],
    },
    /// One or more integers, such as `0 1 2`.
    Numbers {
        /// Maximum number of integers.
        most: usize,
        /// Greatest value of each integer.
        max: u64,
    },
    /// Any single word, which the component checks.
    Name,
    /// All remaining words of the text, which describe another component.
    Rest,
}

/// One word of a table.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Word {
    /// Name of the word.
    pub name: &'static str,
    /// Kind of the word's value.
    #[serde(flatten)]
    pub kind: Kind,
    /// Default as a user would write it; empty if there is no default.
    pub default: &'static str,
    /// Meaning of the word, in one sentence.
    pub doc: &'static str,
}

/// Declares words. Each has a name, the kind of its value, its default, and its meaning.
#[macro_export]
macro_rules! words {
    ($($name:expr, $kind:expr, $default:expr, $doc:expr;)*) => {
        &[$($crate::words::Word { name: $name, kind: $kind, default: $default, doc: $doc }),*]
    };
}

impl Word {
    /// Returns all spellings of the word in descriptions.
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        let (name, others): (_, &'static [&'static str]) = match self.kind {
            Kind::OneOf { of } => (None, of),
            _ => (Some(self.name), &[]),
        };
        let off = match self.kind {
            Kind::Switch { off } => Some(off),
            _ => None,
        };
        name.into_iter().chain(off).chain(others.iter().copied())
    }

    /// Returns whether a value follows the word.
    pub fn takes_value(&self) -> bool {
        !matches!(self.kind, Kind::Flag | Kind::Switch { .. } | Kind::OneOf { .. })
    }
}

/// The name and words of a component.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Table {
    /// Name of the component, which is the first word of a description.
    pub name: &'static str,
    /// Summary of the component in one line; empty only for an external component
    /// ([`Table::external`]).
    pub summary: &'static str,
    /// Source of the component: RFC, paper or kernel file.
    pub source: &'static str,
    /// Words of the component.
    pub words: &'static [Word],
}

impl Table {
    /// Returns the table of an external component. Its words are declared in its own code, so the
    /// engine's descriptions cannot name it.
    pub const fn external(name: &'static str) -> Self {
        Self { name, summary: "", source: "", words: &[] }
    }

    /// Returns whether descriptions can name the component.
    pub const fn is_named(&self) -> bool {
        !self.summary.is_empty()
    }
}

/// A parsed value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Value of a flag or switch.
    Bool(bool),
    /// Number of packets, bytes, nanoseconds or bits per second, or an integer.
    Integer(u64),
    /// Signed integer.
    Signed(i64),
    /// Real number or probability.
    Real(f64),
    /// A name or a text.
    Text(String),
    /// Names, given as ascending indices into the word's list.
    List(Vec<usize>),
    /// Integers.
    Numbers(Vec<u64>),
}

impl Value {
    /// Returns the value of a flag or switch; false for other kinds of values.
    pub fn bool(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    /// Returns a number of packets, bytes, nanoseconds or bits per second, or an integer; 0 for
    /// other kinds of values.
    pub fn integer(&self) -> u64 {
        if let Self::Integer(value) = self { *value } else { 0 }
    }

    /// Returns a real number or a probability; 0 for other kinds of values.
    pub fn real(&self) -> f64 {
        if let Self::Real(value) = self { *value } else { 0.0 }
    }

    /// Returns a name or a text; empty for other kinds of values.
    pub fn text(&self) -> &str {
        if let Self::Text(value) = self { value } else { "" }
    }

    /// Returns integers; an empty slice for other kinds of values.
    pub fn numbers(&self) -> &[u64] {
        if let Self::Numbers(values) = self { values } else { &[] }
    }
}

/// Writes the text form. Exceptions are switches and lists, whose text forms depend on their word.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            Self::Real(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
            Self::Bool(value) => value.fmt(f),
            Self::List(values) => write!(f, "{values:?}"),
            Self::Numbers(values) => {
                let texts: Vec<_> = values.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(" "))
            }
        }
    }
}

/// A description under construction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// Returns a description that consists of a name.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Appends a word without a value.
    #[must_use]
    pub fn flag(mut self, word: &str) -> Self {
        self.0.push(' ');
        self.0.push_str(word);
        self
    }

    /// Appends a word and its value.
    #[must_use]
    pub fn value(self, word: &str, value: impl fmt::Display) -> Self {
        self.flag(word).flag(&value.to_string())
    }

    /// Appends a word and its value, unless the value is `None`.
    #[must_use]
    pub fn optional(self, word: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.value(word, value),
            None => self,
        }
    }

    /// Appends `on` or `off`, depending on `is_on`.
    #[must_use]
    pub fn switch(self, is_on: bool, on: &str, off: &str) -> Self {
        self.flag(if is_on { on } else { off })
    }

    /// Returns the text.
    pub fn done(self) -> String {
        self.0
    }
}

/// An error in a description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WordError {
    /// Message in one sentence.
    pub message: String,
    /// Byte range of the error in the description.
    pub at: Range<usize>,
    /// The wrong text.
    pub found: String,
    /// Words or values that are allowed at this position.
    pub allowed: Vec<String>,
    /// The most similar allowed word; `None` if no allowed word is similar.
    pub nearest: Option<String>,
}

impl fmt::Display for WordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(nearest) = &self.nearest {
            write!(f, ": did you mean `{nearest}`?")?;
        }
        Ok(())
    }
}

impl std::error::Error for WordError {}

/// A word of a text with its position.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    /// The word.
    pub text: &'a str,
    /// Byte offset of the word in the text.
    pub at: usize,
}

impl Token<'_> {
    /// Returns the byte range of the word in the text.
    pub fn range(&self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    /// Returns an error about this word. `allowed` are the words allowed at its position.
    pub fn error(&self, message: String, allowed: Vec<String>) -> WordError {
        let nearest = nearest(self.text, allowed.iter().map(String::as_str)).map(str::to_owned);
        WordError { message, at: self.range(), found: self.text.to_owned(), allowed, nearest }
    }
}

/// Splits a description at white space. A word in double quotes may contain white space.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        at += rest.len() - rest.trim_start().len();
        let rest = &text[at..];
        if rest.is_empty() {
            return tokens;
        }
        let quoted = rest
            .strip_prefix('"')
            .and_then(|inside| inside.split_once('"'))
            .filter(|(_, after)| after.chars().next().is_none_or(char::is_whitespace));
        if let Some((word, _)) = quoted {
            tokens.push(Token { text: word, at: at + 1 });
            at += word.len() + 2;
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            tokens.push(Token { text: &rest[..end], at });
            at += end;
        }
    }
}

/// Returns the candidate most similar to `word`; `None` if the edit distance of each exceeds a
/// third of the word's length (at least 1). Among equally distant candidates, the one with the
/// longest common prefix is chosen.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let budget = (word.chars().count() / 3).max(1);
    candidates
        .map(|c| (strsim::osa_distance(&word.to_lowercase(), &c.to_lowercase()), c))
        .filter(|(distance, _)| *distance <= budget)
        .min_by_key(|(distance, c)| (*distance, Reverse(alike(word, c))))
        .map(|(_, c)| c)
}

/// Returns the length of the common prefix of two words in characters, ignoring case.
fn alike(a: &str, b: &str) -> usize {
    let lower = |word: &str| word.to_lowercase().chars().collect::<Vec<_>>();
    lower(a).iter().zip(&lower(b)).take_while(|(x, y)| x == y).count()
}

/// The values that one description gives, by word.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    values: Vec<(&'static str, Value, Range<usize>)>,
    end: usize,
}

impl Given {
    /// Returns whether the description contains `word`.
    pub fn has(&self, word: &str) -> bool {
        self.find(word).is_some()
    }

    /// Returns the value of `word`; `None` if the word was not given.
    pub fn find(&self, word: &str) -> Option<&Value> {
        self.values.iter().find(|(name, ..)| *name == word).map(|(_, value, _)| value)
    }

    /// Returns a flag or switch; `None` if the word was not given.
    pub fn flag(&self, word: &str) -> Option<bool> {
        match self.find(word)? {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a number of packets, bytes, nanoseconds or bits per second, or an integer; `None` if
    /// the word was not given.
    pub fn integer(&self, word: &str) -> Option<u64> {
        match self.find(word)? {
            Value::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a signed integer; `None` if the word was not given.
    pub fn signed(&self, word: &str) -> Option<i64> {
        match self.find(word)? {
            Value::Signed(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a duration in nanoseconds; `None` if the word was not given.
    pub fn time(&self, word: &str) -> Option<Nanos> {
        self.integer(word)
    }

    /// Returns a rate; `None` if the word was not given.
    pub fn rate(&self, word: &str) -> Option<Rate> {
        self.integer(word).and_then(Rate::new)
    }

    /// Returns a real number or probability; `None` if the word was not given.
    pub fn real(&self, word: &str) -> Option<f64> {
        match self.find(word)? {
            Value::Real(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a name or text; `None` if the word was not given.
    pub fn text(&self, word: &str) -> Option<&str> {
        match self.find(word)? {
            Value::Text(value) => Some(value),
            _ => None,
        }
    }

    /// Returns a list of names as indices into the word's list; `None` if the word was not given.
    pub fn list(&self, word: &str) -> Option<&[usize]> {
        match self.find(word)? {
            Value::List(value) => Some(value),
            _ => None,
        }
    }

    /// Converts the position of an error in the value of `word`, which describes another component,
    /// to the position in this description.
    pub fn within(&self, word: &str, error: WordError) -> WordError {
        let begin = self.error(word, "").at.start;
        WordError { at: begin + error.at.start..begin + error.at.end, ..error }
    }

    /// Converts an error in the value of `word`, which has its own syntax, to an error about the
    /// whole value.
    pub fn nested(&self, word: &str, error: WordError) -> WordError {
        let at = self.error(word, "").at;
        WordError { message: format!("`{word}`: {}", error.message), at, ..error }
    }

    /// Returns an error about the value of `word`, for checks that a table cannot express. If the
    /// word was not given, the position is the end of the text.
    pub fn error(&self, word: &str, message: impl Into<String>) -> WordError {
        let at = self
            .values
            .iter()
            .find(|(name, ..)| *name == word)
            .map_or(self.end..self.end, |(.., at)| at.clone());
        WordError {
            message: message.into(),
            at,
            found: word.to_owned(),
            allowed: Vec::new(),
            nearest: None,
        }
    }
}

fn not_whole<N: fmt::Display>(word: &Word, token: Token<'_>, min: N, max: N) -> WordError {
    let range = format!("from {min} to {max}");
    token.error(
        format!("`{}` needs a whole number {range}; found `{}`", word.name, token.text),
        vec![format!("{min}..{max}")],
    )
}

pub(crate) fn read_value(word: &Word, token: Token<'_>) -> Result<Value, WordError> {
    let text = token.text;
    let quantity_error = |error: QuantityError, what: &str, example: &str| {
        let message = match error {
            QuantityError::NoUnit => {
                format!(
                    "`{}` needs {what} with its unit, such as {example}; found `{text}`",
                    word.name
                )
            }
            QuantityError::TooLarge => {
                format!("`{text}` is too large for `{}`", word.name)
            }
            _ => format!("`{}` needs {what}, such as {example}; found `{text}`", word.name),
        };
        WordError {
            message,
            at: token.range(),
            found: text.to_owned(),
            allowed: vec![example.to_owned()],
            nearest: None,
        }
    };
    match word.kind {
        Kind::Flag => Ok(Value::Bool(true)),
        Kind::Switch { off } => Ok(Value::Bool(text != off)),
        Kind::OneOf { .. } | Kind::Name | Kind::Rest => Ok(Value::Text(text.to_owned())),
        Kind::Packets => {
            let digits = text.strip_suffix('p').unwrap_or(text);
            digits.parse().map(Value::Integer).map_err(|_| {
                quantity_error(QuantityError::NotANumber, "a number of packets", "300p")
            })
        }
        Kind::Size => quantity::parse_size(text)
            .map(Value::Integer)
            .map_err(|e| quantity_error(e, "a size", "30kb")),
        Kind::Time => quantity::parse_time(text)
            .map(Value::Integer)
            .map_err(|e| quantity_error(e, "a time", "5ms")),
        Kind::Rate => quantity::parse_rate(text)
            .map(|rate| Value::Integer(rate.bits()))
            .map_err(|e| quantity_error(e, "a rate", "10mbit")),
        Kind::Probability => quantity::parse_probability(text)
            .map(Value::Real)
            .map_err(|e| quantity_error(e, "a probability", "0.02 or 2%")),
        Kind::Integer { min, max } => match text.parse::<u64>() {
            Ok(value) if (min..=max).contains(&value) => Ok(Value::Integer(value)),
            _ => Err(not_whole(word, token, min, max)),
        },
        Kind::Signed { min, max } => match text.parse::<i64>() {
            Ok(value) if (min..=max).contains(&value) => Ok(Value::Signed(value)),
            _ => Err(not_whole(word, token, min, max)),
        },
        Kind::Real { min, max } => match quantity::split_number(text) {
            Ok((number, "")) if (min..=max).contains(&number.to_f64()) => {
                Ok(Value::Real(number.to_f64()))
            }
            _ => Err(token.error(
                format!("`{}` needs a number from {min} to {max}; found `{text}`", word.name),
                vec![format!("{min}..{max}")],
            )),
        },
        Kind::Choice { of } => {
            if of.contains(&text) {
                Ok(Value::Text(text.to_owned()))
            } else {
                Err(token.error(
                    format!("`{}` must be one of {}; found `{text}`", word.name, of.join(", ")),
                    of.iter().map(|&s| s.to_owned()).collect(),
                ))
            }
        }
        Kind::Named { of } => match of.iter().find(|meaning| meaning.name == text) {
            Some(_) => Ok(Value::Text(text.to_owned())),
            None => Err(no_such_name(word, token, of)),
        },
        Kind::List { of } => read_list(word, token, of).map(Value::List),
        Kind::Numbers { most, max } => read_numbers(word, token, most, max).map(Value::Numbers),
    }
}

fn read_numbers(
    word: &Word,
    token: Token<'_>,
    most: usize,
    max: u64,
) -> Result<Vec<u64>, WordError> {
    let read = |text: &str| text.parse().ok().filter(|number| *number <= max);
    let numbers: Option<Vec<u64>> = token.text.split_whitespace().map(read).collect();
    match numbers {
        Some(numbers) if (1..=most).contains(&numbers.len()) => Ok(numbers),
        _ => Err(token.error(
            format!(
                "`{}` needs up to {most} whole numbers from 0 to {max}; found `{}`",
                word.name, token.text
            ),
            vec![format!("0..{max}")],
        )),
    }
}

fn read_list(word: &Word, token: Token<'_>, of: &[Meaning]) -> Result<Vec<usize>, WordError> {
    match token.text {
        "all" => return Ok((0..of.len()).collect()),
        "none" => return Ok(Vec::new()),
        _ => {}
    }
    let mut found = Vec::new();
    let mut at = token.at;
    for text in token.text.split('+') {
        let part = Token { text, at };
        at += text.len() + 1;
        let place = of.iter().position(|meaning| meaning.name == text);
        let place = place.ok_or_else(|| no_such_name(word, part, of))?;
        if found.contains(&place) {
            return Err(part.error(format!("`{text}` is given twice"), Vec::new()));
        }
        found.push(place);
    }
    found.sort_unstable();
    Ok(found)
}

fn no_such_name(word: &Word, token: Token<'_>, of: &[Meaning]) -> WordError {
    let names: Vec<String> = of.iter().map(|meaning| meaning.name.to_owned()).collect();
    let known = names.join(", ");
    let mut error = token.error(format!("`{}` has no value `{}`", word.name, token.text), names);
    if error.nearest.is_none() {
        error.message = format!("{}; known: {known}", error.message);
    }
    error
}

/// Parses `tokens`, the words after the component's name, according to `table`. `end` is the length
/// of the whole text.
///
/// # Errors
/// If a word is unknown or repeated, or a value is missing or of the wrong kind.
pub fn read(table: &Table, tokens: &[Token<'_>], end: usize) -> Result<Given, WordError> {
    let mut given = Given { values: Vec::new(), end };
    let mut rest = tokens.iter();
    while let Some(&token) = rest.next() {
        let word = table.words.iter().find(|w| w.spellings().any(|s| s == token.text));
        let Some(word) = word else {
            return Err(unknown_word(table, token));
        };
        if let Some(earlier) = given.find(word.name) {
            let message = match earlier {
                Value::Text(earlier) if !word.takes_value() && earlier != token.text => {
                    format!("`{earlier}` and `{}` exclude each other", token.text)
                }
                Value::Text(_) if !word.takes_value() => {
                    format!("`{}` is given twice", token.text)
                }
                _ => format!("`{}` is given twice", word.name),
            };
            return Err(token.error(message, Vec::new()));
        }
        let value_token = if word.takes_value() {
            *rest.next().ok_or_else(|| WordError {
                message: format!("`{}` needs a value", word.name),
                at: token.range(),
                found: token.text.to_owned(),
                allowed: Vec::new(),
                nearest: None,
            })?
        } else {
            token
        };
        if word.kind == Kind::Rest {
            let (text, at) = untouched(value_token, rest.as_slice());
            given.values.push((word.name, Value::Text(text), at));
            break;
        }
        if matches!(word.kind, Kind::Numbers { .. }) {
            let is_number = |token: &&Token<'_>| token.text.bytes().all(|b| b.is_ascii_digit());
            let more = rest.as_slice().iter().take_while(is_number).count();
            let (numbers, others) = rest.as_slice().split_at(more);
            let (text, at) = untouched(value_token, numbers);
            let value = read_value(word, Token { text: &text, at: at.start })?;
            given.values.push((word.name, value, at));
            rest = others.iter();
            continue;
        }
        let value = read_value(word, value_token)?;
        given.values.push((word.name, value, value_token.range()));
    }
    Ok(given)
}

/// Returns the text from `first` to the end of `rest`, with a space for each byte of white space
/// between the words, and its byte range.
pub fn untouched(first: Token<'_>, rest: &[Token<'_>]) -> (String, Range<usize>) {
    let (mut text, mut end) = (first.text.to_owned(), first.range().end);
    for token in rest {
        let is_quoted = token.text.is_empty() || token.text.contains(char::is_whitespace);
        let begin = token.at - first.at - usize::from(is_quoted);
        text.extend(std::iter::repeat_n(' ', begin.saturating_sub(text.len())));
        if is_quoted {
            text.extend(["\"", token.text, "\""]);
        } else {
            text.push_str(token.text);
        }
        end = token.range().end;
    }
    (text, first.at..end)
}

fn unknown_word(table: &Table, token: Token<'_>) -> WordError {
    let allowed: Vec<String> =
        table.words.iter().flat_map(Word::spellings).map(str::to_owned).collect();
    let list = if allowed.is_empty() { "no words".to_owned() } else { allowed.join(", ") };
    let mut error =
        token.error(format!("unknown word `{}` for `{}`", token.text, table.name), allowed);
    if error.nearest.is_none() {
        error.message = format!("{}; allowed: {list}", error.message);
    }
    error
}

/// Parses a description: its first word selects one of `tables`, and the rest is parsed according
/// to this table.
///
/// `what` is the kind of component in error messages, such as "queue".
///
/// # Errors
/// If the text is empty or the name is unknown, or as for [`read`].
pub fn describe<'t>(
    what: &str,
    tables: &[&'t Table],
    text: &str,
) -> Result<(&'t Table, Given), WordError> {
    let tokens = tokens(text);
    let names = || tables.iter().map(|t| t.name.to_owned()).collect::<Vec<_>>();
    let Some((first, rest)) = tokens.split_first() else {
        return Err(WordError {
            message: format!("empty {what}: expected one of {}", names().join(", ")),
            at: 0..text.len(),
            found: String::new(),
            allowed: names(),
            nearest: None,
        });
    };
    let Some(table) = tables.iter().find(|t| t.name == first.text) else {
        let mut error = first.error(format!("unknown {what} `{}`", first.text), names());
        if error.nearest.is_none() {
            error.message = format!("{}; known: {}", error.message, names().join(", "));
        }
        return Err(error);
    };
    Ok((table, read(table, rest, text.len())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CODEL: Table = Table {
        name: "codel",
        summary: "",
        source: "",
        words: &[
            Word { name: "limit", kind: Kind::Packets, default: "1000p", doc: "" },
            Word { name: "target", kind: Kind::Time, default: "5ms", doc: "" },
            Word { name: "ecn", kind: Kind::Switch { off: "noecn" }, default: "noecn", doc: "" },
        ],
    };

    #[test]
    fn reads_a_description() {
        let (table, given) =
            describe("queue", &[&CODEL], "codel limit 300p target 2.5ms noecn").unwrap();
        assert_eq!(table.name, "codel");
        assert_eq!(given.integer("limit"), Some(300));
        assert_eq!(given.time("target"), Some(2_500_000));
        assert_eq!(given.flag("ecn"), Some(false));
    }

    #[test]
    fn quotes_hold_a_word_together() {
        let words = |text| tokens(text).iter().map(|t| (t.text, t.at)).collect::<Vec<_>>();
        assert_eq!(words(" a  bc "), [("a", 1), ("bc", 4)]);
        assert_eq!(words("file \"a b.pcap\" x"), [("file", 0), ("a b.pcap", 6), ("x", 16)]);
        assert_eq!(words("\"\" \"ü\""), [("", 1), ("ü", 4)]);
        // A quotation mark without a counterpart, or within a word, is an ordinary character.
        assert_eq!(words("\"a b"), [("\"a", 0), ("b", 3)]);
        assert_eq!(words("\"a\"b c"), [("\"a\"b", 0), ("c", 5)]);
    }

    #[test]
    fn errors_name_place_and_nearest_word() {
        let error = describe("queue", &[&CODEL], "codle limit 3").unwrap_err();
        assert_eq!(error.to_string(), "unknown queue `codle`: did you mean `codel`?");
        let error = describe("queue", &[&CODEL], "codel traget 5ms").unwrap_err();
        assert_eq!(error.at, 6..12);
        assert_eq!(error.nearest.as_deref(), Some("target"));
        let error = describe("queue", &[&CODEL], "codel target 5").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`target` needs a time with its unit, such as 5ms; found `5`"
        );
        assert!(describe("queue", &[&CODEL], "codel target").is_err());
        assert!(describe("queue", &[&CODEL], "codel ecn noecn").is_err());
        assert!(describe("queue", &[&CODEL], " ").is_err());
    }

    #[test]
    fn some_words_stand_by_themselves() {
        const TABLE: Table = Table {
            name: "cake",
            summary: "",
            source: "",
            words: &[
                Word {
                    name: "tins",
                    kind: Kind::OneOf { of: &["besteffort", "diffserv3"] },
                    default: "diffserv3",
                    doc: "",
                },
                Word {
                    name: "overhead",
                    kind: Kind::Signed { min: -64, max: 256 },
                    default: "",
                    doc: "",
                },
            ],
        };
        let read = |text| describe("queue", &[&TABLE], text).map(|(_, given)| given);
        let given = read("cake besteffort overhead -20").unwrap();
        assert_eq!(given.text("tins"), Some("besteffort"));
        assert_eq!(given.signed("overhead"), Some(-20));
        let error = |text| read(text).unwrap_err().to_string();
        assert_eq!(
            error("cake besteffort diffserv3"),
            "`besteffort` and `diffserv3` exclude each other"
        );
        assert_eq!(error("cake besteffort besteffort"), "`besteffort` is given twice");
        assert_eq!(
            error("cake tins"),
            "unknown word `tins` for `cake`; allowed: besteffort, diffserv3, overhead"
        );
        assert_eq!(
            error("cake diffserv"),
            "unknown word `diffserv` for `cake`: did you mean `diffserv3`?"
        );
        assert_eq!(
            error("cake overhead -65"),
            "`overhead` needs a whole number from -64 to 256; found `-65`"
        );
    }

    #[test]
    fn of_words_as_near_the_one_that_begins_alike_is_meant() {
        let words = ["loss", "mos", "mos_min"];
        assert_eq!(nearest("moss", words.into_iter()), Some("mos"));
        assert_eq!(nearest("lods", words.into_iter()), Some("loss"));
        assert_eq!(nearest("jitter", words.into_iter()), None);
    }

    const NAMES: &[Meaning] = &[
        Meaning { name: "first", doc: "" },
        Meaning { name: "second", doc: "" },
        Meaning { name: "third", doc: "" },
    ];
    const LISTS: Table = Table {
        name: "lists",
        summary: "",
        source: "",
        words: &[
            Word { name: "one", kind: Kind::Named { of: NAMES }, default: "first", doc: "" },
            Word { name: "some", kind: Kind::List { of: NAMES }, default: "all", doc: "" },
            Word { name: "map", kind: Kind::Numbers { most: 3, max: 9 }, default: "", doc: "" },
        ],
    };

    #[test]
    fn names_are_of_their_list() {
        let read = |text: &str| describe("thing", &[&LISTS], text).map(|(_, given)| given);
        assert_eq!(read("lists one second").unwrap().text("one"), Some("second"));
        let some = |text: &str| {
            read(&format!("lists some {text}")).unwrap().list("some").map(<[_]>::to_vec)
        };
        assert_eq!(some("third+first"), Some(vec![0, 2]));
        assert_eq!(some("second"), Some(vec![1]));
        assert_eq!(some("all"), Some(vec![0, 1, 2]));
        assert_eq!(some("none"), Some(vec![]));
        assert_eq!(read("lists").unwrap().list("some"), None);
        let error = read("lists some first+secnd").unwrap_err();
        assert_eq!(error.to_string(), "`some` has no value `secnd`: did you mean `second`?");
        assert_eq!(error.at, 17..22);
        assert_eq!(error.allowed, ["first", "second", "third"]);
        let error = read("lists one fourth").unwrap_err();
        assert_eq!(error.to_string(), "`one` has no value `fourth`; known: first, second, third");
        let error = read("lists some first+first").unwrap_err();
        assert_eq!((error.to_string().as_str(), error.at), ("`first` is given twice", 17..22));
        assert!(read("lists some first+").is_err());
        let map = |text: &str| read(text).map(|given| given.find("map").cloned());
        assert_eq!(map("lists map 1  2 one first"), Ok(Some(Value::Numbers(vec![1, 2]))));
        for wrong in ["map", "map x", "map 1 2 3 4", "map 10"] {
            assert!(map(&format!("lists {wrong}")).is_err(), "{wrong}");
        }
        assert!(read("lists some all+first").is_err());
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,60}") {
            let _ = describe("thing", &[&LISTS], &format!("lists some {text}"));
            let _ = describe("queue", &[&CODEL], &text);
            let _ = describe("queue", &[&CODEL], &format!("codel {text}"));
        }
    }
}
