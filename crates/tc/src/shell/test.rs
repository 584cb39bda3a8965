//! The conditions of `test`, `[` and `[[`.

use super::arithmetic::integer;
use super::pattern::{Sign, fits};

/// Largest depth of nested conditions.
const DEPTH: u32 = 50;

/// Returns whether a condition is true. `patterns` has each word as a pattern, for `[[`.
pub(super) fn holds(words: &[String], patterns: Option<&[Vec<Sign>]>) -> Result<bool, String> {
    let mut test = Test { words, patterns, at: 0, depth: 0 };
    let found = !words.is_empty() && test.either()?;
    match words.get(test.at) {
        Some(word) => Err(format!("`{word}` is not allowed here in a test")),
        None => Ok(found),
    }
}

struct Test<'a> {
    words: &'a [String],
    patterns: Option<&'a [Vec<Sign>]>,
    at: usize,
    depth: u32,
}

impl Test<'_> {
    fn peek(&self, ahead: usize) -> Option<&str> {
        self.words.get(self.at + ahead).map(String::as_str)
    }

    fn either(&mut self) -> Result<bool, String> {
        let mut found = self.both()?;
        while matches!(self.peek(0), Some("-o" | "||")) {
            self.at += 1;
            found |= self.both()?;
        }
        Ok(found)
    }

    fn both(&mut self) -> Result<bool, String> {
        let mut found = self.one()?;
        while matches!(self.peek(0), Some("-a" | "&&")) {
            self.at += 1;
            found &= self.one()?;
        }
        Ok(found)
    }

    fn one(&mut self) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("a test is nested too deeply".to_owned());
        }
        let (word, operator, right) = (self.peek(0), self.peek(1), self.peek(2));
        let word = word.ok_or("a test ends too early")?.to_owned();
        if let (Some(operator), Some(right)) = (operator, right)
            && let Some(found) = self.compared(&word, operator, right)?
        {
            self.at += 3;
            return Ok(found);
        }
        if word == "!" && operator.is_some() {
            self.at += 1;
            return Ok(!self.one()?);
        }
        if word == "(" && operator.is_some() {
            self.at += 1;
            let found = self.either()?;
            if self.peek(0) != Some(")") {
                return Err("`)` is missing in a test".to_owned());
            }
            self.at += 1;
            return Ok(found);
        }
        if let Some(operand) = operator.map(str::to_owned)
            && word.len() == 2
            && word.starts_with('-')
            && !matches!(operand.as_str(), "-a" | "-o" | "&&" | "||" | ")")
        {
            self.at += 2;
            return match word.as_str() {
                "-z" => Ok(operand.is_empty()),
                "-n" => Ok(!operand.is_empty()),
                // Files are assumed to exist.
                _ if "abcdefghkprstuvwxGLNOS".contains(&word[1..]) => Ok(true),
                _ => Err(format!("`{word}` is not an operator of a test")),
            };
        }
        self.at += 1;
        Ok(!word.is_empty())
    }

    /// Returns the result of a comparison; `None` if the operator is none.
    fn compared(&self, left: &str, operator: &str, right: &str) -> Result<Option<bool>, String> {
        let numbers = || Some((integer(left).ok()?, integer(right).ok()?));
        let number = |test: fn(i64, i64) -> bool| numbers().is_some_and(|(a, b)| test(a, b));
        let is_same = || match self.patterns {
            Some(patterns) => fits(&patterns[self.at + 2], &left.chars().collect::<Vec<_>>()),
            None => left == right,
        };
        Ok(Some(match operator {
            "=" | "==" => is_same(),
            "!=" => !is_same(),
            "<" => left < right,
            ">" => left > right,
            "-eq" => number(|a, b| a == b),
            "-ne" => number(|a, b| a != b),
            "-lt" => number(|a, b| a < b),
            "-le" => number(|a, b| a <= b),
            "-gt" => number(|a, b| a > b),
            "-ge" => number(|a, b| a >= b),
            "=~" => return Err("`=~` is not supported".to_owned()),
            _ => return Ok(None),
        }))
    }
}
