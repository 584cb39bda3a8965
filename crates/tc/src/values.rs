//! Words of disciplines and classes in iproute2's syntax, as words that [`sojourn_queue::Params`]
//! reads.
//!
//! The syntax of iproute2 is wider: a time without a unit is in microseconds, a rate in bits per
//! second; counts may be hexadecimal or octal; of repeated words the last one counts, and 0 leaves
//! most options unchanged. `tc` prints some values in forms that it does not accept.

use crate::place::{Word, among};
use sojourn_queue::assumed_unit;
use sojourn_units::quantity::{format_time, parse_size};
use sojourn_units::words::{Kind, Table, Word as Known};

/// Disciplines whose own words are not repeated options.
const CLASSFUL: &str = "prio drr ets htb hfsc mq";

/// Words for which 0 is a value. For other words of disciplines without classes, 0 leaves the
/// option unchanged.
const ZERO: &str = "\
    ce_threshold memory_limit probability bandwidth rehash db increment decrement penalty_rate \
    penalty_burst memlimit perturb redflowlimit rate peakrate buffer maxburst mtu minburst \
    latency overhead mpu flow_limit initial_quantum maxrate refill_delay low_rate_threshold \
    orphan_mask timer_slack horizon offload_horizon linklayer burst_tbf fwmark";

/// Words whose value is a size in iproute2, of all disciplines.
const SIZED: &str =
    "memory_limit memlimit redflowlimit buffer maxburst mtu minburst initial_quantum avpkt";

/// Whether the value of a word is a size in iproute2; here its kind may be another.
fn is_size(discipline: &str, word: &str) -> bool {
    match word {
        "limit" => among(discipline, "pfifo bfifo red tbf"),
        "burst" => discipline == "tbf",
        "quantum" => among(discipline, "fq_pie sfq fq"),
        "min" | "max" => !among(discipline, "choke sfb"),
        word => among(word, SIZED),
    }
}

/// Message about a word whose value is not used, and the word.
pub(crate) type Remark = (Word, String);

/// Returns the table of a discipline.
pub(crate) fn table(name: &str) -> Option<&'static Table> {
    sojourn_queue::tables().iter().copied().find(|table| table.name == name)
}

fn known(table: Option<&'static Table>, word: &str) -> Option<&'static Known> {
    table?.words.iter().find(|known| known.spellings().any(|spelling| spelling == word))
}

/// Returns the words after the discipline's name as words with units.
pub(crate) fn read(name: &str, words: &[Word], remarks: &mut Vec<Remark>) -> Vec<Word> {
    let table = table(name);
    let is_classful = among(name, CLASSFUL);
    // Options in their order: the option's name, its word, its values.
    let mut options: Vec<(&str, Word, Vec<Word>)> = Vec::new();
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        let word = match word.text.as_str() {
            "adaptative" => Word { text: "adaptive".to_owned(), ..*word },
            _ => word.clone(),
        };
        let Some(known) = known(table, &word.text) else {
            options.push(("", word, Vec::new()));
            continue;
        };
        let mut values = Vec::new();
        if matches!(known.kind, Kind::Numbers { .. }) {
            while let Some(number) = rest.peek().and_then(|next| count(&next.text)) {
                values.extend(rest.next().map(|next| Word::new(number.to_string(), next.place)));
            }
        } else if known.kind == Kind::Rest {
            values.extend(rest.by_ref().cloned());
        } else if known.takes_value()
            && let Some(value) = rest.next()
        {
            let is_bucket = name == "tbf" && known.kind == Kind::Size;
            let sized = is_bucket.then(|| without_cell(&word, value, remarks));
            let value = sized.as_ref().unwrap_or(value);
            let assumed = assumed_unit(known.kind, known.name, &value.text);
            remarks.extend(assumed.map(|message| (value.clone(), message)));
            values.push(Word { text: value_of(name, known, &value.text), ..*value });
            let is_zero = matches!(values[0].text.as_str(), "0" | "0us" | "0p" | "0b");
            let keeps = among(known.name, ZERO) && name != "fq_pie" || name.ends_with("fifo");
            if is_zero && !keeps && !is_classful && may_be_left(known) {
                let message =
                    format!("`{} {}` leaves the default, as in `tc`", word.text, value.text);
                remarks.push((value.clone(), message));
                continue;
            }
        }
        let option = match known.name {
            "rtt by name" => "rtt",
            "unlimited" => "bandwidth",
            option => option,
        };
        if !is_classful
            && let Some(at) = options.iter().position(|(earlier, ..)| *earlier == option)
        {
            let (_, earlier, values) = options.remove(at);
            let text: Vec<_> =
                std::iter::once(&earlier).chain(&values).map(|w| w.text.as_str()).collect();
            let message = format!("`{}` is overridden by a later word", text.join(" "));
            remarks.push((values.first().unwrap_or(&earlier).clone(), message));
        }
        options.push((option, word, values));
    }
    options.into_iter().flat_map(|(_, word, values)| std::iter::once(word).chain(values)).collect()
}

/// Returns a size without the size of the cells of `tc`'s rate table, as in `burst 15k/8`.
pub(crate) fn without_cell(key: &Word, value: &Word, remarks: &mut Vec<Remark>) -> Word {
    let Some((size, cell)) = value.text.split_once('/') else { return value.clone() };
    let message = format!("`{} .../{cell}` only sizes a rate table of `tc`", key.text);
    remarks.push((value.clone(), message));
    Word { text: size.to_owned(), ..*value }
}

/// Remarks on the rates and times of a class that have no unit.
pub(crate) fn without_unit(words: &[Word]) -> impl Iterator<Item = Remark> {
    words.windows(2).filter_map(|pair| {
        let kind = match pair[0].text.as_str() {
            "rate" | "ceil" | "m1" | "m2" => Kind::Rate,
            "d" | "dmax" => Kind::Time,
            _ => return None,
        };
        let message = assumed_unit(kind, &pair[0].text, &pair[1].text)?;
        Some((pair[1].clone(), message))
    })
}

/// Whether iproute2 leaves an option unchanged that is 0: counts, times and sizes.
fn may_be_left(known: &Known) -> bool {
    matches!(
        known.kind,
        Kind::Packets | Kind::Size | Kind::Time | Kind::Integer { .. } | Kind::Real { .. }
    )
}

/// Returns a value in this project's syntax. Values that iproute2 does not accept are unchanged, so
/// that they are reported as errors.
pub(crate) fn value_of(discipline: &str, known: &Known, text: &str) -> String {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && text.bytes().any(|b| b.is_ascii_digit());
    let read = match known.kind {
        Kind::Time => scaled(text, time).map(|micros| match micros {
            0 => "0us".to_owned(),
            micros => format_time(u64::from(micros) * 1000),
        }),
        Kind::Rate if is_plain => Some(format!("{}bit", text.split('.').next().unwrap_or("0"))),
        Kind::Size | Kind::Packets | Kind::Integer { .. } if is_size(discipline, known.name) => {
            // A text with the same value in this project's syntax stays as it is.
            scaled(text, size)
                .filter(|bytes| known.kind != Kind::Size || parse_size(text) != Ok((*bytes).into()))
                .map(|bytes| bytes.to_string())
        }
        Kind::Packets | Kind::Integer { .. } => count(text).map(|count| count.to_string()),
        Kind::Real { .. } | Kind::Probability => text
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map(|number| number.to_string()),
        _ => None,
    };
    read.unwrap_or_else(|| text.to_owned())
}

/// Returns the microseconds of a unit of time.
fn time(unit: &str) -> Option<f64> {
    match unit {
        "" | "us" | "usec" | "usecs" => Some(1.0),
        "ms" | "msec" | "msecs" => Some(1e3),
        "s" | "sec" | "secs" => Some(1e6),
        _ => None,
    }
}

/// Returns the bytes of a unit of size.
fn size(unit: &str) -> Option<f64> {
    let (scale, rest) = match unit.chars().next() {
        Some('k') => (1024.0, &unit[1..]),
        Some('m') => (1_048_576.0, &unit[1..]),
        Some('g') => (1_073_741_824.0, &unit[1..]),
        _ => (1.0, unit),
    };
    match rest {
        "" | "b" => Some(scale),
        "bit" if scale > 1.0 => Some(scale / 8.0),
        _ => None,
    }
}

/// Parses an integer: hexadecimal after `0x`, octal after `0`, otherwise decimal.
fn count(text: &str) -> Option<u32> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u32::from_str_radix(digits, 16).ok();
    }
    match text.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u32::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// Parses a real number and its unit. Returns the product, truncated to a 32-bit integer.
fn scaled(text: &str, factor: fn(&str) -> Option<f64>) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    // Takes the longest prefix that is a number, since an `e` may belong to it.
    let (number, unit) =
        (1..=lower.len()).rev().filter(|&end| lower.is_char_boundary(end)).find_map(|end| {
            let (number, unit) = lower.split_at(end);
            let plain = number.bytes().all(|b| b.is_ascii_digit() || b"+-.e".contains(&b));
            let number = number.parse::<f64>().ok().filter(|_| plain)?;
            Some((number, unit))
        })?;
    let value = (number * factor(unit)?).trunc();
    (0.0..=f64::from(u32::MAX)).contains(&value).then_some(value as u32)
}

// Printed words

/// Words that `tc` prints but does not accept, each with a value, by discipline.
const DROPPED: [(&str, &str); 8] = [
    ("htb", "direct_packets_stat ver"),
    ("sfq", "ewma"),
    ("red", "ewma Plog Scell_log"),
    ("choke", "ewma Plog Scell_log"),
    ("fq pfifo_fast", "bands"),
    ("netem", "seed"),
    ("tbf", "linklayer_"),
    ("prio", "multiqueue:"),
];

/// Converts the words that `tc` prints of a discipline into words that it accepts; returns a remark
/// about values that it does not print.
pub(crate) fn printed(name: &str, words: &[Word]) -> (Vec<Word>, Option<&'static str>) {
    let mut found: Vec<Word> = Vec::new();
    let mut rest = words.iter().filter(|word| !word.text.starts_with('[')).peekable();
    while let Some(word) = rest.next() {
        if DROPPED.iter().any(|(of, keys)| among(name, of) && among(&word.text, keys)) {
            rest.next();
            continue;
        }
        if name == "pfifo_fast" && word.is("priomap") {
            break;
        }
        let mut text = word.text.clone();
        if text.contains("e-")
            && let Ok(small) = text.parse::<f64>()
        {
            text = small.to_string();
        }
        let before = found.last().map_or("", |word| word.text.as_str());
        match (name, before) {
            ("cake", "bandwidth") if text == "unlimited" => {
                found.pop();
            }
            ("sfb", "rehash" | "db") => {
                if let Ok(span) = sojourn_units::quantity::parse_time(&text) {
                    text = (span / 1_000_000).to_string();
                }
            }
            ("sfb", "penalty_rate") => cut(&mut text, "pps"),
            ("sfb", "penalty_burst") => cut(&mut text, "p"),
            ("tbf", "mpu") => cut(&mut text, "b"),
            // The size of cells, and the number of buckets, follow behind a slash.
            ("tbf", "burst" | "minburst" | "mtu") | ("sfq", "flows") => {
                let end = text.find('/').unwrap_or(text.len());
                text.truncate(end);
            }
            ("sfq", "perturb") => cut(&mut text, "sec"),
            ("dualpi2", "alpha" | "beta") => {
                // `tc` prints six decimal places of a multiple of 1/256.
                if let Ok(gain) = text.parse::<f64>() {
                    text = ((gain * 256.0).round() / 256.0).to_string();
                }
            }
            // CoDel's clock ticks every 1024 ns; `tc` prints whole microseconds, rounded down.
            ("codel" | "fq_codel", "target" | "interval" | "ce_threshold") => {
                if let Some(micros) = text.strip_suffix("us").and_then(|n| n.parse::<u64>().ok()) {
                    text = format!("{}us", micros + 1);
                }
            }
            _ => {}
        }
        if name == "tbf" && text == "lat" {
            "latency".clone_into(&mut text);
        }
        found.push(Word { text, ..*word });
    }
    let has = |key: &str| found.iter().any(|word: &Word| word.is(key));
    let needs_noecn = name == "fq_codel" && !has("ecn");
    let remark = match name {
        "sfq" if has("min") => {
            Some("`tc` does not print `redflowlimit`, so sfq is read without RED")
        }
        "red" | "choke" => Some(
            "`tc` does not print burst, avpkt and bandwidth: their defaults are used; add your \
             values",
        ),
        _ => None,
    };
    if name == "tbf" && found.iter().filter(|word| word.is("mpu")).count() > 1 {
        // `tc` prints `mpu` twice: after the parameters of each bucket.
        if let Some(at) = found.iter().position(|word| word.is("mpu")) {
            found.drain(at..(at + 2).min(found.len()));
        }
    }
    if needs_noecn {
        let place = found.last().map_or_else(Default::default, |word| word.place);
        found.push(Word::new("noecn", place));
    }
    (found, remark)
}

fn cut(text: &mut String, unit: &str) {
    if let Some(number) = text.strip_suffix(unit) {
        *text = number.to_owned();
    }
}

/// Returns the words that `tc` prints of a class as words that it accepts.
pub(crate) fn printed_class(kind: &str, words: &[Word]) -> Vec<Word> {
    if kind != "htb" {
        return words.to_vec();
    }
    // `burst 15Kb/1 mpu 0b overhead 0b cburst 1599b/1 mpu 0b overhead 0b level 0`: cell sizes and
    // levels have no effect, and the framing follows each bucket.
    let mut found: Vec<Word> = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            "level" => {
                rest.next();
            }
            "mpu" | "overhead" => {
                let Some(value) = rest.next() else { break };
                let text = value.text.trim_end_matches('b');
                let is_new = !found.iter().any(|earlier| earlier.is(&word.text));
                if text != "0" && is_new {
                    found.extend([word.clone(), Word { text: text.to_owned(), ..*value }]);
                }
            }
            text => {
                let before = found.last().map_or("", |word| word.text.as_str());
                let is_bucket = matches!(before, "burst" | "cburst");
                let size = text.split('/').next().unwrap_or_default();
                let kept = if is_bucket { size } else { text };
                found.push(Word { text: kept.to_owned(), ..*word });
                // The mpu may follow the cell size without a space: `15Kb/1mpu 64b`.
                if is_bucket
                    && text.ends_with("mpu")
                    && let Some(value) = rest.next()
                    && !value.is("0b")
                    && !found.iter().any(|earlier| earlier.is("mpu"))
                {
                    let text = value.text.trim_end_matches('b').to_owned();
                    found.extend([Word::new("mpu", value.place), Word { text, ..*value }]);
                }
            }
        }
    }
    found
}
