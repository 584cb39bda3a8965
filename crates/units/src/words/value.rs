//! Values, and how they are parsed according to their kind.

use super::table::{Kind, Meaning, Word};
use super::token::{Token, WordError};
use crate::quantity::{self, QuantityError};
use std::fmt;

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
