//! The words of a text with their positions, and errors about them.

use serde::Serialize;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

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

impl WordError {
    /// Returns the error with all allowed words in its message, after `label`, unless one of them
    /// is similar to the wrong word.
    #[must_use]
    pub fn listing(mut self, label: &str) -> Self {
        if self.nearest.is_none() {
            let none = || "no words".to_owned();
            let words = if self.allowed.is_empty() { none() } else { self.allowed.join(", ") };
            self.message = format!("{}; {label}: {words}", self.message);
        }
        self
    }
}

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

    /// Returns the word, in quotation marks if it is empty or contains white space.
    pub fn quoted(&self) -> Cow<'_, str> {
        if self.text.is_empty() || self.text.contains(char::is_whitespace) {
            return format!("\"{}\"", self.text).into();
        }
        self.text.into()
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
/// third of the word's length (at least 1) or is the whole word. Among equally distant
/// candidates, the one with the longest common prefix is chosen.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let budget = (length / 3).max(1).min(length.saturating_sub(1));
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
