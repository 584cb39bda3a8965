//! Expansion of words: parameters, substitutions, arithmetic, splitting into fields.

use super::arithmetic;
use super::evaluate::{Host, Shell, Stop};
use super::pattern::{Sign, fits, signs};
use super::syntax::{Parameter, Parts, Piece, PieceKind};
use super::value::{Origins, UNKNOWN, Value};
use crate::place::Place;

/// Largest number of characters of a value from which a pattern can be removed.
const CUT: usize = 1024;

type Result<T> = std::result::Result<T, Stop>;

impl<H: Host> Shell<'_, H> {
    /// Returns the fields of a command's words, each with its place, and the origins of all words.
    pub(super) fn fields(&mut self, words: &[Parts]) -> Result<(Vec<(Value, Place)>, Origins)> {
        let (mut found, mut origins) = (Vec::new(), Origins::default());
        for word in words {
            let (fields, own) = self.of_word(word)?;
            origins.add(&own);
            found.extend(fields.into_iter().map(|value| (value, word.place)));
        }
        Ok((found, origins))
    }

    /// Returns the text of a word that is not split into fields, as in an assignment.
    pub(super) fn text(&mut self, word: &Parts) -> Result<Value> {
        let mut whole = Value::default();
        for piece in &word.pieces {
            let value = self.piece(piece)?;
            whole.text += &value.text;
            whole.origins.add(&value.origins);
        }
        if whole.text.len() > super::value::LENGTH {
            return Err(self.too_much("a value is too long"));
        }
        Ok(whole)
    }

    /// Returns a word as a pattern; its quoted parts are literal.
    pub(super) fn pattern(&mut self, word: &Parts) -> Result<Vec<Sign>> {
        let mut found = Vec::new();
        for piece in &word.pieces {
            let text = self.piece(piece)?.text;
            found.extend(signs(&text, piece.quoted));
        }
        Ok(found)
    }

    /// Returns the value of an arithmetic expression; 0 if it contains an unknown output.
    pub(super) fn number(&mut self, word: &Parts, origins: &mut Origins) -> Result<i64> {
        let text = self.text(word)?;
        origins.add(&text.origins);
        if !text.origins.unknown.is_empty() {
            return Ok(0);
        }
        let found = arithmetic::evaluate(&text.text, &mut self.variables, origins);
        found.map_err(|why| self.doubt(why))
    }

    fn of_word(&mut self, word: &Parts) -> Result<(Vec<Value>, Origins)> {
        let mut found: Vec<Value> = Vec::new();
        let mut current: Option<Value> = None;
        let mut origins = Origins::default();
        let append = |current: &mut Option<Value>, text: &str| {
            current.get_or_insert_with(Value::default).text += text;
        };
        for piece in &word.pieces {
            if let Some(values) = self.elements_of(piece) {
                for (n, value) in values.into_iter().enumerate() {
                    if n > 0 {
                        found.extend(current.take());
                    }
                    origins.add(&value.origins);
                    append(&mut current, &value.text);
                }
                continue;
            }
            let value = self.piece(piece)?;
            origins.add(&value.origins);
            let text = value.text;
            if piece.quoted || matches!(piece.kind, PieceKind::Text(_)) {
                append(&mut current, &text);
                continue;
            }
            let separators = self.separators();
            if text.starts_with(|c: char| is_blank(c, &separators)) {
                found.extend(current.take());
            }
            let mut rest = text.as_str();
            for n in 0.. {
                let Some((part, others)) = next_field(rest, &separators) else { break };
                if n > 0 {
                    found.extend(current.take());
                }
                append(&mut current, part);
                rest = others;
            }
            if text.ends_with(|c| separators.contains(c)) {
                found.extend(current.take());
            }
        }
        found.extend(current);
        let braced = found.into_iter().flat_map(|value| match word.plain() {
            Some(plain) if plain == value.text => braces(&value.text),
            _ => vec![value.text],
        });
        Ok((braced.map(|text| Value::new(text, origins.clone())).collect(), origins.clone()))
    }

    /// Returns the characters that separate fields.
    pub(super) fn separators(&self) -> String {
        self.variables.get("IFS").map_or_else(|| " \t\n".to_owned(), |value| value.text)
    }

    /// Returns the values of `$@` and `${a[@]}`, which become fields of their own.
    fn elements_of(&self, piece: &Piece) -> Option<Vec<Value>> {
        let PieceKind::Parameter(parameter) = &piece.kind else { return None };
        let values = match (&parameter.index, parameter.op.as_str()) {
            (None, "") if parameter.name == "@" => self.variables.positional.clone(),
            (Some(index), op @ ("" | "keys")) if matches!(index.plain_text(), "@" | "*") => {
                let elements = self.variables.elements(&parameter.name);
                let part = |(key, value): (String, Value)| {
                    if op == "keys" { Value::of(key) } else { value }
                };
                elements.into_iter().map(part).collect()
            }
            _ => return None,
        };
        if piece.quoted {
            return Some(values);
        }
        let separators = self.separators();
        let split = |value: Value| {
            let mut rest = value.text.as_str();
            let mut parts = Vec::new();
            while let Some((part, others)) = next_field(rest, &separators) {
                parts.push(Value::new(part, value.origins.clone()));
                rest = others;
            }
            parts
        };
        Some(values.into_iter().flat_map(split).collect())
    }

    fn piece(&mut self, piece: &Piece) -> Result<Value> {
        match &piece.kind {
            PieceKind::Text(text) => Ok(Value::of(text.clone())),
            PieceKind::Parameter(parameter) => self.parameter(parameter),
            PieceKind::Substitution(script, text) => {
                let key = text.split_whitespace().collect::<Vec<_>>().join(" ");
                if let Some(given) = self.variables.given.get(&key) {
                    return Ok(Value::of(given.clone()));
                }
                let mut output = self.substituted(script)?;
                if !output.origins.unknown.is_empty() {
                    output.origins.unknown = vec![format!("$({key})")];
                    UNKNOWN.clone_into(&mut output.text);
                }
                output.text.truncate(output.text.trim_end_matches('\n').len());
                Ok(output)
            }
            PieceKind::Arithmetic(word) => {
                let mut origins = Origins::default();
                let number = self.number(word, &mut origins)?;
                let is_known = origins.unknown.is_empty();
                let text = if is_known { number.to_string() } else { UNKNOWN.to_owned() };
                Ok(Value::new(text, origins))
            }
        }
    }

    fn parameter(&mut self, parameter: &Parameter) -> Result<Value> {
        let name = parameter.name.as_str();
        let mut value = self.variables.get(name);
        if let Some(index) = &parameter.index {
            let elements = self.variables.elements(name);
            if matches!(index.plain_text(), "@" | "*") {
                if parameter.op == "length" {
                    return Ok(Value::of(elements.len().to_string()));
                }
                let texts: Vec<_> = elements.iter().map(|(_, value)| value.text.as_str()).collect();
                value = Some(Value::of(texts.join(" ")));
            } else {
                let key = self.index(name, index)?;
                value = self.variables.element(name, &key);
            }
        }
        let op = parameter.op.as_str();
        if let "-" | "=" | "?" | "+" = op.trim_start_matches(':') {
            let is_there =
                value.as_ref().is_some_and(|v| !op.starts_with(':') || !v.text.is_empty());
            return match (op.trim_start_matches(':'), value.filter(|_| is_there)) {
                ("+", None) => Ok(Value::default()),
                ("+", Some(_)) => self.text(&parameter.word),
                (_, Some(value)) => Ok(value),
                ("?", None) => Ok(self.variables.need(name)),
                (op, None) => {
                    let default = self.text(&parameter.word)?;
                    if op == "=" {
                        self.variables.put(name, default.clone());
                    }
                    Ok(default)
                }
            };
        }
        let value = match value {
            Some(value) => value,
            None => self.variables.need(name),
        };
        let text = &value.text;
        let changed = match op {
            "" => return Ok(value),
            "length" => text.chars().count().to_string(),
            ":" => self.slice(text, &parameter.word)?,
            "^^" => text.to_uppercase(),
            ",," => text.to_lowercase(),
            "^" | "," => {
                let first: String = text.chars().take(1).collect();
                let rest: String = text.chars().skip(1).collect();
                let first = if op == "^" { first.to_uppercase() } else { first.to_lowercase() };
                first + &rest
            }
            "keys" => {
                // `${!NAME}` is the value of the variable that NAME names.
                return Ok(self.variables.need(&text.clone()));
            }
            _ if text.len() > CUT => {
                let why = format!("a pattern is removed from a value above {CUT} characters");
                return Err(self.doubt(why));
            }
            "/" | "//" => {
                let word = self.text(&parameter.word)?.text;
                let (old, new) = word.split_once('/').unwrap_or((&word, ""));
                match op {
                    _ if old.is_empty() => text.clone(),
                    "//" => text.replace(old, new),
                    _ => text.replacen(old, new, 1),
                }
            }
            _ => {
                let pattern = self.pattern(&parameter.word)?;
                removed(text, &pattern, op)
            }
        };
        Ok(Value::new(changed, value.origins))
    }

    /// Returns the index of an element: a number if it is an expression, else a text.
    pub(super) fn index(&mut self, name: &str, index: &Parts) -> Result<String> {
        let text = self.text(index)?.text;
        if self.is_map(name) {
            return Ok(text);
        }
        let number = arithmetic::evaluate(&text, &mut self.variables, &mut Origins::default());
        Ok(number.map_or(text, |number| number.to_string()))
    }

    fn slice(&mut self, text: &str, word: &Parts) -> Result<String> {
        let bounds = self.text(word)?.text;
        let (first, count) = bounds.split_once(':').unwrap_or((&bounds, ""));
        let number =
            |text: &str| if text.trim().is_empty() { Ok(0) } else { arithmetic::integer(text) };
        let length = text.chars().count() as i64;
        let first = number(first).map_err(|why| self.doubt(why))?;
        let begin = if first < 0 { (length + first).max(0) } else { first };
        let most = if count.trim().is_empty() {
            length
        } else {
            let count = number(count).map_err(|why| self.doubt(why))?;
            if count < 0 { length + count - begin } else { count }
        };
        Ok(text.chars().skip(begin as usize).take(most.max(0) as usize).collect())
    }
}

impl Parts {
    /// Returns the text of a word that is a single text; empty for others.
    fn plain_text(&self) -> &str {
        match self.pieces.as_slice() {
            [Piece { kind: PieceKind::Text(text), .. }] => text,
            _ => "",
        }
    }
}

fn is_blank(c: char, separators: &str) -> bool {
    c.is_whitespace() && separators.contains(c)
}

/// Returns the first field of a text and the text behind it; `None` at the end.
pub(super) fn next_field<'t>(text: &'t str, separators: &str) -> Option<(&'t str, &'t str)> {
    let blank = |c: char| is_blank(c, separators);
    let text = text.trim_start_matches(blank);
    let end = text.find(|c| separators.contains(c)).unwrap_or(text.len());
    let rest = text[end..].trim_start_matches(blank);
    let rest = rest.strip_prefix(|c| separators.contains(c)).unwrap_or(rest);
    (!text.is_empty()).then(|| (&text[..end], rest))
}

/// Removes the part that fits a pattern from the beginning (`#`) or the end (`%`) of a text.
fn removed(text: &str, pattern: &[Sign], op: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let lengths: Vec<usize> = (0..=chars.len()).collect();
    let is_longest = op.len() == 2;
    let ordered: Vec<usize> =
        if is_longest { lengths.into_iter().rev().collect() } else { lengths };
    if op.starts_with('#') {
        let cut = ordered.into_iter().find(|n| fits(pattern, &chars[..*n])).unwrap_or(0);
        chars[cut..].iter().collect()
    } else {
        let fit = |n: &usize| fits(pattern, &chars[chars.len() - n..]);
        let cut = ordered.into_iter().find(fit).unwrap_or(0);
        chars[..chars.len() - cut].iter().collect()
    }
}

/// Largest number of texts of a brace expansion.
const TEXTS: usize = 10_000;

/// Returns the texts of a brace expansion, such as `{1..4}` or `a{b,c}`. A word with more than
/// [`TEXTS`] of them stays as it is.
fn braces(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let inside = behind.split_once('}');
        let parts = inside.and_then(|(inside, _)| alternatives(inside));
        let (parts, after) = match (parts, inside) {
            (Some(parts), Some((_, after))) => (parts, after),
            _ => (vec!["{".to_owned()], behind),
        };
        if found.len() * parts.len() > TEXTS {
            return vec![text.to_owned()];
        }
        let joined = |lead: &String| {
            let lead = format!("{lead}{before}");
            parts.iter().map(move |part| format!("{lead}{part}")).collect::<Vec<_>>()
        };
        found = found.iter().flat_map(joined).collect();
        rest = after;
    }
    found.into_iter().map(|lead| lead + rest).collect()
}

/// Returns the alternatives in braces; `None` if the braces are ordinary characters.
fn alternatives(inside: &str) -> Option<Vec<String>> {
    let Some((first, last)) = inside.split_once("..") else {
        return inside.contains(',').then(|| inside.split(',').map(str::to_owned).collect());
    };
    let (begin, end) = (first.parse::<i64>().ok()?, last.parse::<i64>().ok()?);
    if begin.abs_diff(end) >= TEXTS as u64 {
        return None;
    }
    let width = if begin.to_string().len() < first.len() { first.len() } else { 0 };
    let text = |number: i64| format!("{number:0width$}");
    Some(if begin <= end {
        (begin..=end).map(text).collect()
    } else {
        (end..=begin).rev().map(text).collect()
    })
}
