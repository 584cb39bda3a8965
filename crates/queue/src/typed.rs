//! Conversion of typed or pasted text into descriptions that [`words`] can parse: lines of `tc`,
//! its output, numbers without a unit.

use crate::classes::statements::{END, OBJECTS};
use sojourn_units::lines::{Line, Source};
use sojourn_units::quantity::{format_rate, format_time, parse_rate, parse_time};
use sojourn_units::words::{Kind, Table, WordError};
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

/// A typed text, converted to a description with units.
#[derive(Clone, Debug)]
pub struct Typed {
    line: Line,
    /// Description with units.
    pub text: String,
    /// Warnings about the interpretation of the text.
    pub notices: Vec<String>,
}

impl Typed {
    /// Reads `text`; `tables` are the allowed disciplines.
    ///
    /// # Errors
    /// A line of `tc` without a discipline, or with several; a discipline that is not modelled.
    pub fn read(text: &str, tables: &[&'static Table]) -> Result<Self, WordError> {
        let mut line = Line::read(text)?;
        if let Some((name, at)) = line.words.first()
            && let Some(message) = not_modelled(name)
        {
            let known = tables.iter().map(|table| table.name.to_owned());
            let (found, at) = (name.clone(), at.clone());
            return Err(WordError { message, at, found, allowed: known.collect(), nearest: None });
        }
        let mut notices = std::mem::take(&mut line.notices);
        if line.source == Source::Shown {
            notices.extend(as_typed(&mut line.words));
        }
        let name = line.words.first().map_or("", |(name, _)| name.trim_end_matches(END));
        let table = tables.iter().find(|table| table.name == name);
        let holds_another = |table: &&&Table| table.words.iter().any(|w| w.kind == Kind::Rest);
        if line.source == Source::Plain && table.as_ref().is_some_and(holds_another) {
            line.words = statements(line.words, text);
        }
        let mut typed = Self { text: line.text(), line, notices };
        if let Some(table) = table {
            typed.add_units(table);
        }
        Ok(typed)
    }

    /// Returns the description as typed, without the surrounding words of a line of `tc`.
    pub fn description(text: &str, tables: &[&'static Table]) -> Result<String, WordError> {
        let line = Line::read(text)?;
        match line.source {
            Source::Plain => Ok(text.trim().to_owned()),
            Source::Command => Ok(line.text()),
            Source::Shown => Ok(Self::read(text, tables)?.line.text()),
        }
    }

    /// Adds the unit that `tc` assumes to times and rates without a unit.
    fn add_units(&mut self, table: &Table) {
        let mut words = self.line.words.clone();
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
        self.text = words.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ");
        self.line.words = words;
    }

    /// Converts the position of an error in [`Typed::text`] to the position in the typed text.
    #[must_use]
    pub fn placed(&self, error: WordError) -> WordError {
        self.line.placed(error)
    }
}

/// Separates each semicolon from its word, and adds one before each new line that begins a
/// statement.
fn statements(words: Vec<(String, Range<usize>)>, text: &str) -> Vec<(String, Range<usize>)> {
    let mut all: Vec<(String, Range<usize>)> = Vec::new();
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

/// Converts words that `tc` prints into words that it accepts; returns a warning about values that
/// it does not print.
fn as_typed(words: &mut Vec<(String, Range<usize>)>) -> Option<String> {
    let name = words.first()?.0.clone();
    // Remove the raw numbers of `tc -r`, such as `[00013880]`.
    words.retain(|(word, _)| !word.starts_with('['));
    for (word, _) in words.iter_mut().filter(|(word, _)| word.contains("e-")) {
        if let Ok(small) = word.parse::<f64>() {
            *word = small.to_string();
        }
    }
    let mut at = 1;
    while at < words.len() {
        let value = words.get(at + 1).map_or(String::new(), |(value, _)| value.clone());
        match (name.as_str(), words[at].0.as_str()) {
            ("cake", "bandwidth") if value == "unlimited" => {
                words.remove(at);
                at += 1;
                continue;
            }
            ("red" | "choke", "ewma" | "Plog" | "Scell_log") => {
                words.drain(at..(at + 2).min(words.len()));
                continue;
            }
            ("sfb", "rehash" | "db") => {
                if let Ok(span) = parse_time(&value) {
                    words[at + 1].0 = (span / 1_000_000).to_string();
                }
            }
            ("sfb", "penalty_rate") => {
                replace(words, at + 1, |value| value.strip_suffix("pps"));
            }
            ("sfb", "penalty_burst") => {
                replace(words, at + 1, |value| value.strip_suffix('p'));
            }
            ("dualpi2", "alpha" | "beta") => {
                // `tc` prints six decimal places of a multiple of 1/256: round to the nearest
                // multiple.
                if let Ok(gain) = value.parse::<f64>() {
                    words[at + 1].0 = (libm::round(gain * 256.0) / 256.0).to_string();
                }
            }
            // `tc` accepts no options for `pfifo_fast`.
            ("pfifo_fast", "bands") => words.truncate(at),
            ("tbf", "lat") => "latency".clone_into(&mut words[at].0),
            ("tbf", "burst" | "minburst" | "mtu") => {
                replace(words, at + 1, |value| value.split_once('/').map(|(size, _)| size));
            }
            ("tbf", "mpu") => {
                replace(words, at + 1, |value| value.strip_suffix('b'));
            }
            _ => {}
        }
        at += 1;
    }
    matches!(name.as_str(), "red" | "choke").then(|| {
        "`tc` does not print burst, avpkt and bandwidth: their defaults are used; add your values"
            .to_owned()
    })
}

/// Replaces a word by the part of it that `part` returns, if any.
fn replace(words: &mut [(String, Range<usize>)], at: usize, part: impl Fn(&str) -> Option<&str>) {
    if let Some((word, _)) = words.get_mut(at)
        && let Some(part) = part(word).map(str::to_owned)
    {
        *word = part;
    }
}
