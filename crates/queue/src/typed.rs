//! Conversion of typed text into descriptions that [`words`] can parse: numbers without a unit,
//! statements on lines of their own.

use crate::classes::statements::{END, OBJECTS};
use sojourn_units::quantity::{format_rate, format_time, parse_rate, parse_time};
use sojourn_units::words::{Kind, Table, Token, WordError, tokens};
use std::borrow::Cow;
use std::ops::Range;

/// Linux's disciplines that are not modelled, each with an explanation or alternative; empty
/// without one.
const NOT_MODELLED: &[(&str, &str)] = &[
    ("bpf", ""),
    ("cbq", ""),
    ("cbs", ""),
    ("clsact", "it holds no packets"),
    ("dsmark", ""),
    ("esfq", "`fq_codel` and `cake` keep flows in separate queues"),
    ("etf", ""),
    ("gred", "`red` is"),
    ("ingress", "it holds no packets"),
    ("mqprio", "it holds no packets; its children do"),
    ("multiq", ""),
    ("netem", "it is a key of a link: `netem = \"delay 15ms\"`"),
    ("noqueue", "it holds no packets; `pfifo limit 1p` is similar"),
    ("plug", ""),
    ("qfq", ""),
    ("taprio", ""),
    ("teql", ""),
    ("wrr", ""),
];

/// Returns a message if `name` is a discipline of Linux that is not modelled; `None` for any other
/// name.
pub fn not_modelled(name: &str) -> Option<String> {
    let (name, instead) = NOT_MODELLED.iter().find(|(known, _)| *known == name)?;
    let instead = if instead.is_empty() { String::new() } else { format!(": {instead}") };
    Some(format!("`{name}` is not modelled{instead}"))
}

/// Returns an error about a name that is none of the allowed disciplines, if Linux has it.
pub(crate) fn unmodelled(name: Token<'_>, tables: &[&'static Table]) -> Option<WordError> {
    let allowed = tables.iter().map(|table| table.name.to_owned()).collect();
    let message = not_modelled(name.text)?;
    Some(WordError { nearest: None, ..name.error(message, allowed) })
}

/// Words with their byte ranges in the text.
type Words = Vec<(String, Range<usize>)>;

/// A typed text, converted to a description with units.
#[derive(Clone, Debug)]
pub struct Typed {
    words: Words,
    /// Description with units.
    pub text: String,
    /// Warnings about the interpretation of the text.
    pub notices: Vec<String>,
}

impl Typed {
    /// Reads `text`; `tables` are the allowed disciplines.
    ///
    /// # Errors
    /// A discipline that is not modelled.
    pub fn read(text: &str, tables: &[&'static Table]) -> Result<Self, WordError> {
        let tokens = tokens(text);
        if let Some(error) = tokens.first().and_then(|first| unmodelled(*first, tables)) {
            return Err(error);
        }
        let mut words: Words =
            tokens.iter().map(|token| (token.quoted().into_owned(), token.range())).collect();
        let name = words.first().map_or("", |(name, _)| name.trim_end_matches(END));
        let table = tables.iter().find(|table| table.name == name);
        let holds_another = |table: &&&Table| table.words.iter().any(|w| w.kind == Kind::Rest);
        if table.as_ref().is_some_and(holds_another) {
            words = statements(words, text);
        }
        let mut typed = Self { text: String::new(), words, notices: Vec::new() };
        if let Some(table) = table {
            typed.add_units(table);
        }
        let texts: Vec<_> = typed.words.iter().map(|(word, _)| word.as_str()).collect();
        typed.text = texts.join(" ");
        Ok(typed)
    }

    /// Adds the unit that `tc` assumes to times and rates without a unit.
    fn add_units(&mut self, table: &Table) {
        let words = &mut self.words;
        let mut at = 1;
        while at < words.len() {
            let word = table.words.iter().find(|w| w.spellings().any(|s| s == words[at].0));
            let Some(word) = word else { break };
            if word.kind == Kind::Rest {
                break;
            }
            if matches!(word.kind, Kind::Numbers { .. }) {
                at += 1;
                let is_number =
                    |(word, _): &&(String, Range<usize>)| word.bytes().all(|b| b.is_ascii_digit());
                at += words[at.min(words.len())..].iter().take_while(is_number).count();
                continue;
            }
            if word.takes_value() {
                at += 1;
                if let Some((value, _)) = words.get_mut(at)
                    && let Some(unit) = missing_unit(word.kind, value)
                {
                    self.notices.push(notice(word.name, value, unit));
                    value.push_str(unit);
                }
            }
            at += 1;
        }
    }

    /// Converts the position of an error in [`Typed::text`] to the position in the typed text.
    #[must_use]
    pub fn placed(&self, error: WordError) -> WordError {
        let mut begin = 0;
        let mut at: Option<Range<usize>> = None;
        for (word, place) in &self.words {
            let end = begin + word.len();
            if begin < error.at.end.max(error.at.start + 1) && error.at.start < end {
                at = Some(at.map_or(place.clone(), |at| at.start..place.end));
            }
            begin = end + 1;
        }
        let end = self.words.last().map_or(0, |(_, place)| place.end);
        WordError { at: at.unwrap_or(end..end), ..error }
    }
}

/// Separates each semicolon from its word, and adds one before each new line that begins a
/// statement.
fn statements(words: Words, text: &str) -> Words {
    let mut all = Words::new();
    let mut end = 0;
    for (word, at) in words {
        let is_new_line = text.get(end..at.start).is_some_and(|between| between.contains('\n'));
        let begins = OBJECTS.contains(&word.as_str());
        if is_new_line && begins && all.last().is_some_and(|(last, _)| last != END) {
            all.push((END.to_owned(), end..end));
        }
        end = at.end;
        match word.strip_suffix(END).filter(|rest| !rest.is_empty() && !word.contains('"')) {
            Some(rest) => {
                let middle = at.end - END.len();
                all.push((rest.to_owned(), at.start..middle));
                all.push((END.to_owned(), middle..at.end));
            }
            None => all.push((word, at)),
        }
    }
    all
}

/// Returns the unit that `tc` assumes for a value without a unit; `None` if the value has one or
/// needs none.
fn missing_unit(kind: Kind, value: &str) -> Option<&'static str> {
    let is_number = value.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && value.bytes().any(|b| b.is_ascii_digit());
    match kind {
        Kind::Time if is_number && value != "0" => Some("us"),
        Kind::Rate if is_number => Some("bit"),
        _ => None,
    }
}

/// Returns the value; a value without a unit gets the unit that `tc` assumes.
pub(crate) fn with_unit(kind: Kind, value: &str) -> Cow<'_, str> {
    match missing_unit(kind, value) {
        Some(unit) => format!("{value}{unit}").into(),
        None => value.into(),
    }
}

/// Returns a warning if a value of `word` has no unit, so that `tc` assumes one.
pub fn assumed_unit(kind: Kind, word: &str, value: &str) -> Option<String> {
    missing_unit(kind, value).map(|unit| notice(word, value, unit))
}

/// Returns a warning that a unit was assumed for a value.
fn notice(word: &str, value: &str, unit: &str) -> String {
    let text = format!("{value}{unit}");
    let (read, takes) = match unit {
        "us" => (parse_time(&text).map(format_time), "a time in microseconds"),
        _ => (parse_rate(&text).map(format_rate), "a rate in bits per second"),
    };
    let read = read.unwrap_or(text);
    format!("`{word} {value}` is read as {read}: without a unit `tc` takes {takes}")
}
