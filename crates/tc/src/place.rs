//! Words with their places, and messages about them.

use sojourn_units::words::{WordError, nearest};

/// Whether a word is one of those in a list, which blanks separate.
pub(crate) fn among(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == word)
}

/// A place in the texts that are read: a line, or a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Index of the text.
    pub file: u32,
    /// Number of the line, from 1.
    pub line: u32,
    /// First column, in characters from 0.
    pub begin: u32,
    /// Column behind the last one; equal to `begin` for a whole line.
    pub end: u32,
}

impl Place {
    /// Returns the place of the whole line.
    #[must_use]
    pub fn whole(self) -> Self {
        Self { begin: 0, end: 0, ..self }
    }
}

/// A word with its place. The text of a word in a script is that after all expansions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// The text.
    pub text: String,
    /// Its place.
    pub place: Place,
}

impl Word {
    pub(crate) fn new(text: impl Into<String>, place: Place) -> Self {
        Self { text: text.into(), place }
    }

    /// Returns a fault that this word causes.
    pub(crate) fn fault(&self, message: impl Into<String>) -> Fault {
        Fault {
            message: message.into(),
            at: Some(self.clone()),
            allowed: Vec::new(),
            nearest: None,
        }
    }

    /// Returns a fault about this word, which is none of the allowed words.
    pub(crate) fn unknown(&self, message: impl Into<String>, allowed: &[&str]) -> Fault {
        Fault {
            nearest: nearest(&self.text, allowed.iter().copied()).map(str::to_owned),
            allowed: allowed.iter().map(|&word| word.to_owned()).collect(),
            ..self.fault(message)
        }
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text
    }
}

/// Reason why a command or an entry cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    pub message: String,
    /// The word that causes it; `None` for the whole line.
    pub at: Option<Word>,
    pub allowed: Vec<String>,
    pub nearest: Option<String>,
}

impl Fault {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Converts an error of a description; `word` is the word at its position.
    pub fn of(error: WordError, word: Option<&Word>) -> Self {
        Self {
            message: error.message,
            at: word.cloned(),
            allowed: error.allowed,
            nearest: error.nearest,
        }
    }

    /// Returns the problem; `line` is the place of the whole command.
    pub fn problem(self, line: Place) -> Problem {
        let (place, found) = match self.at {
            Some(word) if word.place.line != 0 => (word.place, word.text),
            Some(word) => (line, word.text),
            None => (line, String::new()),
        };
        Problem {
            message: self.message,
            place,
            found,
            allowed: self.allowed,
            nearest: self.nearest,
        }
    }
}

/// A part of the texts that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Message in one sentence.
    pub message: String,
    /// The place.
    pub place: Place,
    /// The text that causes it; empty for a whole line.
    pub found: String,
    /// Words that are allowed at this place.
    pub allowed: Vec<String>,
    /// The most similar allowed word; `None` if no word is similar.
    pub nearest: Option<String>,
}

/// A message on how a part of the texts was read, for example with a default.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// The place; `None` if the message concerns all texts.
    pub place: Option<Place>,
    /// Message in one sentence.
    pub message: String,
}

/// Returns the word behind the word `key`.
pub(crate) fn value_of<'w>(words: &'w [Word], key: &str) -> Option<&'w Word> {
    words.iter().skip_while(|word| !word.is(key)).nth(1)
}

/// The words of a command or entry, taken one by one.
#[derive(Clone, Debug)]
pub(crate) struct Words<'a> {
    words: &'a [Word],
}

impl<'a> Words<'a> {
    pub fn new(words: &'a [Word]) -> Self {
        Self { words }
    }

    pub fn next(&mut self) -> Option<&'a Word> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    pub fn peek(&self) -> Option<&'a Word> {
        self.words.first()
    }

    pub fn next_if(&mut self, wanted: impl FnOnce(&str) -> bool) -> Option<&'a Word> {
        self.peek().filter(|word| wanted(&word.text)).and_then(|_| self.next())
    }

    /// Returns the next word as the value of the word `key`.
    pub fn value(&mut self, key: &Word) -> Result<&'a Word, Fault> {
        self.next().ok_or_else(|| key.fault(format!("`{}` needs a value", key.text)))
    }

    pub fn rest(&self) -> &'a [Word] {
        self.words
    }
}
