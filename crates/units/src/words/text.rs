//! Descriptions under construction.

use std::fmt;

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
