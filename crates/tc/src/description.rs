//! The description of a single queue, or of a link's impairments.

use crate::place::{Notice, Place, Problem, Word};
use crate::read::read;
use crate::rules::Hosts;
use crate::shell::looks_like_tc;
use crate::shown::is_entry;
use crate::tree::Built;
use crate::values;
use sojourn_link::Netem;
use sojourn_queue::{Device, Params};
use sojourn_units::words::WordError;
use std::collections::BTreeMap;
use std::ops::Range;

/// A queue or impairments, and how their text was read.
#[derive(Clone, Debug)]
pub struct Described<T> {
    /// The queue or the impairments.
    pub params: T,
    /// The description alone, without commands around it.
    pub text: String,
    /// Messages on how the text was read.
    pub notices: Vec<String>,
}

/// Returns the queue that a text describes: a description such as `codel limit 300p ecn`, commands
/// of `tc`, or what `tc` prints.
///
/// # Errors
/// What is wrong in the text, and its position.
pub fn queue(text: &str, device: &Device) -> Result<Described<Params>, WordError> {
    if !is_of_tc(text) {
        let params = Params::parse(text, device)?;
        let notices = Params::warnings(text, device);
        return Ok(Described { params, text: text.trim().to_owned(), notices });
    }
    let (built, mut notices) = built(text, device)?;
    let Some(params) = built.queue else {
        let message = match built.netem {
            Some(netem) => format!(
                "netem is no queue discipline here, but a key of a link: `netem = \"{netem}\"`"
            ),
            None => "the text sets no queue discipline".to_owned(),
        };
        return Err(error(text, message, None));
    };
    notices.extend(Params::warnings(&built.text, device));
    if let Some(netem) = built.netem {
        notices.push(format!("netem is a key of a link: `netem = \"{netem}\"`"));
    }
    Ok(Described { params, text: built.text, notices })
}

/// Returns the impairments that a text describes: a description such as `delay 15ms loss 1%`, a
/// command of `tc`, or what `tc` prints.
///
/// # Errors
/// What is wrong in the text, and its position.
pub fn netem(text: &str) -> Result<Described<Netem>, WordError> {
    if !is_of_tc(text) {
        let params = Netem::parse(text)?;
        let plain = text.trim();
        let plain = plain.strip_prefix("netem ").unwrap_or(plain);
        let notices = Netem::warnings(text);
        return Ok(Described { params, text: plain.to_owned(), notices });
    }
    let (built, notices) = built(text, &Device::default())?;
    match (built.netem, built.queue) {
        (Some(netem), None) => {
            Ok(Described { params: Netem::parse(&netem)?, text: netem, notices })
        }
        (_, Some(queue)) => {
            let message = format!("`{}` is no impairment: it is a link's `queue`", queue.name());
            Err(error(text, message, None))
        }
        (None, None) => Err(error(text, "the text sets no impairments".to_owned(), None)),
    }
}

fn error(text: &str, message: String, place: Option<Place>) -> WordError {
    let at = place.map_or(0..text.len(), |place| range(text, place));
    let found = text[at.clone()].to_owned();
    WordError { message, at, found, allowed: Vec::new(), nearest: None }
}

/// Word that may be missing before a printed discipline: `codel 8001: root limit 1000p`.
const PRINTED: &str = "qdisc ";

/// Returns what a text of `tc` sets up on its only device.
fn built(text: &str, on: &Device) -> Result<(Built, Vec<String>), WordError> {
    if !is_entry(text.lines().next().unwrap_or("")) && is_entry(&format!("{PRINTED}{text}")) {
        let within = |at: usize| at.saturating_sub(PRINTED.len());
        return built(&format!("{PRINTED}{text}"), on).map_err(|error| WordError {
            at: within(error.at.start)..within(error.at.end),
            ..error
        });
    }
    let reading = read(&[("text".to_owned(), text.as_bytes().to_vec())], &BTreeMap::new(), &[]);
    let refused = |problem: &Problem| WordError {
        message: problem.message.clone(),
        allowed: problem.allowed.clone(),
        nearest: problem.nearest.clone(),
        ..error(text, String::new(), Some(problem.place))
    };
    if let Some(problem) = reading.problems.first() {
        return Err(refused(problem));
    }
    let mut devices = reading.devices();
    devices.retain(|device| device.holds);
    if devices.iter().any(|device| device.is_configured) {
        devices.retain(|device| device.is_configured);
    }
    let chosen = match devices.as_slice() {
        [] => {
            let none = || "the text sets no queue discipline".to_owned();
            return Err(error(text, reading.unmodelled().unwrap_or_else(none), None));
        }
        [one] => one,
        several => {
            let names: Vec<_> = several.iter().map(|device| device.name.as_str()).collect();
            let message = format!(
                "the text sets queues of {} devices, {}: keep one",
                names.len(),
                names.join(", ")
            );
            return Err(error(text, message, None));
        }
    };
    let built = reading.build(&chosen.name, &Hosts::new(), true, on).unwrap_or_default();
    if let Some(problem) = built.problems.first() {
        return Err(refused(problem));
    }
    let notices = reading.notices.iter().chain(&built.notices);
    let texts = notices.map(|notice: &Notice| notice.message.clone()).collect();
    Ok((built, texts))
}

/// Whether a text is of `tc`: commands, or what it prints.
fn is_of_tc(text: &str) -> bool {
    let begins = |word: &str| {
        matches!(word.rsplit('/').next().unwrap_or(word), "tc" | "sudo")
            || word.to_lowercase().starts_with("$tc")
    };
    let is_line = |line: &str| is_entry(line) || line.split_whitespace().next().is_some_and(begins);
    let is_printed = is_entry(&format!("{PRINTED}{text}"));
    let is_data = text.trim_start().starts_with("[{");
    is_printed || is_data || looks_like_tc(text) || text.lines().any(is_line)
}

/// Returns the byte range of a place in a text.
fn range(text: &str, place: Place) -> Range<usize> {
    let mut start = 0;
    for (n, line) in text.split_inclusive('\n').enumerate() {
        if n as u32 + 1 == place.line {
            let line = line.trim_end_matches('\n');
            if place.begin == place.end {
                return start..start + line.len();
            }
            let at = |column: u32| {
                line.char_indices().nth(column as usize).map_or(line.len(), |(at, _)| at)
            };
            return start + at(place.begin)..start + at(place.end);
        }
        start += line.len();
    }
    text.len()..text.len()
}

/// Returns a discipline's words in iproute2's syntax as words that [`Params::parse`] reads.
pub fn iproute2(name: &str, words: &[&str]) -> String {
    let words: Vec<Word> = words.iter().map(|word| Word::new(*word, Place::default())).collect();
    let read = values::read(name, &words, &mut Vec::new());
    let texts = std::iter::once(name).chain(read.iter().map(|word| word.text.as_str()));
    texts.collect::<Vec<_>>().join(" ")
}
