//! The values that one description gives.

use super::token::WordError;
use super::value::Value;
use crate::quantity::Rate;
use crate::time::Nanos;
use std::ops::Range;

/// The values that one description gives, by word.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    pub(super) values: Vec<(&'static str, Value, Range<usize>)>,
    pub(super) end: usize,
}

impl Given {
    /// Adds a value that stands outside the text. Its position is the end of the text.
    pub fn add(&mut self, word: &'static str, value: Value) {
        self.values.push((word, value, self.end..self.end));
    }

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

    /// Rejects two words that exclude each other.
    ///
    /// # Errors
    /// If both words were given; the place is that of `other`.
    pub fn exclude(&self, one: &str, other: &str) -> Result<(), WordError> {
        if self.has(one) && self.has(other) {
            let [first, second] = [one, other].map(|word| self.text(word).unwrap_or(word));
            let message = format!("`{first}` and `{second}` exclude each other");
            return Err(self.error(other, message));
        }
        Ok(())
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
