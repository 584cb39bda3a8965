//! The output of `tc -j`: lists of disciplines, classes and filters, one after another.

use crate::place::{Fault, Place, Word, among};
use crate::reading::Reading;
use crate::shown::{self, Entry, Printed};
use crate::values::table;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use sojourn_units::words::Kind;
use std::fmt;

/// A JSON value; objects keep the order of their keys, and `u32` repeats the key `match`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Pairs),
}

/// The keys of an object with their values.
#[derive(Clone, Debug)]
pub(crate) struct Pairs(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Pairs, A::Error> {
                std::iter::from_fn(|| from.next_entry().transpose())
                    .collect::<Result<_, _>>()
                    .map(Pairs)
            }
        }
        from.deserialize_map(Reader)
    }
}

impl Json {
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.pairs().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(crate) fn pairs(&self) -> &[(String, Self)] {
        if let Self::Object(Pairs(pairs)) = self { pairs } else { &[] }
    }

    pub(crate) fn list(&self) -> &[Self] {
        if let Self::List(list) = self { list } else { &[] }
    }

    fn number(&self) -> Option<f64> {
        if let Self::Number(value) = self { Some(*value) } else { None }
    }

    /// Returns a text or number as text; empty for other values.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(value) => plain(*value),
            Self::List(list) => list.iter().map(Self::text).collect::<Vec<_>>().join(","),
            _ => String::new(),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Null | Self::Bool(false) => true,
            Self::Number(value) => *value == 0.0,
            Self::Text(text) => text.is_empty(),
            Self::Object(Pairs(pairs)) => pairs.is_empty(),
            _ => false,
        }
    }
}

/// Returns the number of bytes per second as a rate.
fn rate(bytes: f64) -> String {
    format!("{}bit", plain(bytes * 8.0))
}

/// Returns a number without an exponent.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.12}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// Whether a text begins like the output of `tc -j`.
pub(crate) fn is_json(text: &str) -> bool {
    let start: String = text.chars().filter(|c| !c.is_whitespace()).take(3).collect();
    start.starts_with("[{") || start.starts_with("[]") || start.starts_with("{\"")
}

/// Reads the JSON output in one text, each entry as the text that `tc` prints without `-j`; adds
/// problems for entries that cannot be read.
pub(crate) fn read(
    reading: &mut Reading,
    printed: &mut Printed,
    name: &str,
    text: &str,
    at: Place,
) {
    let mut device: Option<String> = None;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Json>();
    loop {
        let begin = values.byte_offset();
        let begin = begin + text[begin..].len() - text[begin..].trim_start().len();
        let line = text[..begin].matches('\n').count() as u32 + 1;
        let place = Place { line, ..at };
        let entries = match values.next() {
            None => return,
            Some(Ok(Json::List(list))) => list,
            Some(Ok(entry)) => vec![entry],
            Some(Err(why)) => {
                let line = (why.line() as u32).max(1);
                let message = if why.to_string().contains("recursion") {
                    "the JSON text is nested too deeply".to_owned()
                } else {
                    format!(
                        "this is not JSON: {why}; iproute2 up to 6.1 prints classes and some \
                         filters as text although JSON is requested: give the text form of this \
                         command (`tc class show`, `tc filter show`)"
                    )
                };
                return reading.problem(Place { line, ..at }, Fault::new(message));
            }
        };
        for entry in &entries {
            if let Some(dev) = entry.get("dev") {
                device = Some(dev.text());
            }
            match (Source { entry, place }).lines(reading) {
                Ok(lines) => {
                    let words = |texts: Vec<String>| {
                        texts.into_iter().map(|text| Word::new(text, place)).collect()
                    };
                    let mut lines = lines.into_iter().map(words);
                    let first = lines.next().unwrap_or_default();
                    let entry = Entry { line: place, words: first, more: lines.collect() };
                    shown::entry(reading, printed, name, &mut device, &entry);
                }
                Err(fault) => reading.problem(place, fault),
            }
        }
    }
}

/// An entry, and its place.
struct Source<'a> {
    entry: &'a Json,
    place: Place,
}

/// Returns texts as owned words.
fn owned<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

impl Source<'_> {
    /// Returns the lines that `tc` prints for the entry without `-j`.
    fn lines(&self, reading: &mut Reading) -> Result<Vec<Vec<String>>, Fault> {
        let has = |key: &str| self.entry.get(key).is_some();
        if has("class") {
            Ok(vec![self.class(reading)?])
        } else if has("protocol") || has("pref") {
            self.filter()
        } else if has("handle") && has("kind") {
            Ok(vec![self.qdisc(reading)?])
        } else {
            Err(Fault::new("this is not a discipline, class or filter as `tc -j` prints it"))
        }
    }

    fn need(&self, key: &str) -> Result<String, Fault> {
        let value = self.entry.get(key);
        let value = value.ok_or_else(|| Fault::new(format!("this entry lacks `{key}`")))?;
        Some(value.text()).filter(|text| !text.is_empty()).ok_or_else(|| wrong_type(key))
    }

    /// Returns the first words of an entry: its kind, its name and its parent.
    fn lead(&self, object: &str, kind: &str) -> Result<Vec<String>, Fault> {
        let mut words = vec![object.to_owned(), self.need(kind)?, self.need("handle")?];
        let is_root = matches!(self.entry.get("root"), Some(Json::Bool(true)));
        if let Some(parent) = self.entry.get("parent").filter(|_| !is_root) {
            words.extend(["parent".to_owned(), parent.text()]);
        }
        Ok(words)
    }

    fn qdisc(&self, reading: &mut Reading) -> Result<Vec<String>, Fault> {
        let mut words = self.lead("qdisc", "kind")?;
        let options = self.entry.get("options").unwrap_or(&Json::Null);
        if words[1] == "tbf" && options.get("minburst").is_some() {
            let message = "`tc -j` does not print `peakrate`, so it is ignored; the text output of \
                           `tc` has it";
            reading.note(self.place, message);
        }
        let own = words_of(&words[1], options)?;
        words.extend(own);
        Ok(words)
    }

    fn class(&self, reading: &mut Reading) -> Result<Vec<String>, Fault> {
        let mut words = self.lead("class", "class")?;
        let numbers = ["rate", "ceil", "burst", "cburst", "quantum", "prio"];
        let is_wrong = |key: &&&str| self.entry.get(key).is_some_and(|v| v.number().is_none());
        if let Some(key) = numbers.iter().find(is_wrong) {
            return Err(wrong_type(key));
        }
        let keys: &[&str] = match words[1].as_str() {
            "htb" => &[
                "rate",
                "ceil",
                "burst",
                "cburst",
                "prio",
                "quantum",
                "overhead",
                "linklayer",
                "mpu_rate",
            ],
            "hfsc" => &["sc", "rt", "ls", "ul"],
            kind => {
                if kind == "drr" && self.entry.get("quantum").is_none() {
                    let message =
                        "`tc -j` does not print the quantum of drr; the text output of `tc` has it";
                    reading.note(self.place, message);
                }
                &["quantum"]
            }
        };
        for &key in keys {
            let Some(value) = self.entry.get(key) else { continue };
            let part = |name: &str| value.get(name).and_then(Json::number).unwrap_or(0.0);
            words.push(key.trim_end_matches("_rate").to_owned());
            match (key, value.number()) {
                ("sc" | "rt" | "ls" | "ul", _) => {
                    words.extend(["m1".to_owned(), rate(part("m1")), "d".to_owned()]);
                    words.extend([format!("{}us", plain(part("d"))), "m2".to_owned()]);
                    words.push(rate(part("m2")));
                }
                ("rate" | "ceil", Some(bytes)) => words.push(rate(bytes)),
                _ => words.push(value.text()),
            }
        }
        Ok(words)
    }

    fn filter(&self) -> Result<Vec<Vec<String>>, Fault> {
        let text = |key: &str| self.entry.get(key).map(Json::text);
        let kind = text("kind").unwrap_or_default();
        let mut first = owned(["filter"]);
        for key in ["parent", "protocol", "pref", "chain"] {
            first.extend(text(key).into_iter().flat_map(|value| [key.to_owned(), value]));
        }
        first.push(kind.clone());
        let mut more = Vec::new();
        let options = self.entry.get("options").unwrap_or(&Json::Null);
        if options.get("ht_divisor").is_some() {
            return Ok(vec![first]);
        }
        let keys = options.get("keys").map_or(&[][..], Json::pairs);
        for (key, value) in options.pairs().iter().chain(keys) {
            let part = |name: &str| value.get(name).map(Json::text).unwrap_or_default();
            let hex = |name: &str| part(name).trim_start_matches("0x").to_owned();
            let is_object = !value.pairs().is_empty();
            match (kind.as_str(), key.as_str()) {
                (_, "match") if is_object => {
                    let behind =
                        if matches!(&*part("offmask"), "" | "0") { "" } else { "nexthdr+" };
                    let test = format!("{}/{}", hex("value"), hex("mask"));
                    let offset = value.get("off").and_then(Json::number).unwrap_or(0.0);
                    more.push(owned(["match", &test, "at", &format!("{behind}{offset}")]));
                }
                (_, "mark") if is_object => {
                    let numbers = ["value", "mask"].map(|name| format!("0x{}", hex(name)));
                    more.push(owned(["mark", &numbers[0], &numbers[1]]));
                }
                (_, "fwmark_value") => {
                    let bits =
                        options.get("fwmark_mask").map_or("0xffffffff".to_owned(), Json::text);
                    more.push(owned(["mark", &value.text(), &bits]));
                }
                ("fw", "fw") if is_object => {
                    let mark = format!("{}/{}", part("mark"), part("mask"));
                    first.extend(owned(["handle", &mark]));
                }
                ("fw", "fw") => first.extend(owned(["handle", &value.text()])),
                (_, "actions") => {
                    let Json::List(actions) = value else { continue };
                    more.extend(actions.iter().map(action));
                }
                ("flow", "mode") => first.push(value.text()),
                ("u32", "link") => {
                    let why = "hash tables of `u32` are read in the text output of `tc`: give that";
                    return Err(Fault::new(why));
                }
                ("u32" | "fw", "input_dev" | "indev") => {
                    return Err(Fault::new(shown::NOT_BY_DEVICE));
                }
                ("flow", "keys" | "divisor" | "baseclass")
                | (_, "flowid" | "classid" | "fh" | "handle") => {
                    first.extend([key.clone(), value.text()]);
                }
                (
                    _,
                    "keys" | "not_in_hw" | "in_hw" | "skip_hw" | "skip_sw" | "chain"
                    | "ip_tos_mask",
                ) => {}
                ("flower", _) => {
                    let mut text = match (value.get("start"), value.get("end")) {
                        (Some(start), Some(end)) => format!("{}-{}", start.text(), end.text()),
                        _ => value.text(),
                    };
                    let bits = keys.iter().find(|(other, _)| *other == format!("{key}_mask"));
                    if let Some((_, bits)) = bits {
                        text = format!("{text}/0x{}", bits.text().trim_start_matches("0x"));
                    }
                    more.push(vec![key.clone(), text]);
                }
                ("u32", "order" | "key_ht" | "bkt" | "terminal" | "fwmark_mask")
                | (_, "rule_hit" | "success" | "mark_success" | "fwmark_success") => {}
                (kind, _) if among(kind, shown::KINDS) => {
                    let why =
                        format!("`{key}` in the JSON of a filter of {kind} is not known here");
                    return Err(Fault::new(why));
                }
                _ => {} // a filter of another kind is refused as a whole
            }
        }
        Ok([vec![first], more].concat())
    }
}

fn wrong_type(key: &str) -> Fault {
    Fault::new(format!("`{key}` of this entry has the wrong type"))
}

/// Returns the line that `tc` prints for an action without `-j`.
fn action(action: &Json) -> Vec<String> {
    let part = |name: &str| action.get(name).map(Json::text);
    let kind = part("kind").unwrap_or_default();
    match kind.as_str() {
        "mirred" => {
            let is_redirect = part("mirred_action").is_some_and(|act| act == "redirect");
            let act = if is_redirect { "Redirect" } else { "Mirror" };
            let is_inward = part("direction").is_some_and(|way| way == "ingress");
            let way = if is_inward { "(Ingress" } else { "(Egress" };
            let device = part("to_dev").unwrap_or_default();
            owned(["mirred", way, act, "to", "device", &device])
        }
        "police" => owned(["police", "rate", &part("rate").unwrap_or_default()]),
        _ => {
            let mut words = owned(["action", "order", "1:", &kind]);
            let verdict = action.get("control_action").and_then(|one| one.get("type"));
            if let Some(verdict) = verdict.filter(|_| kind == "gact") {
                words.extend(owned(["action", &verdict.text()]));
            } else {
                for key in ["priority", "mark", "queue_mapping", "ptype", "zone"] {
                    words.extend(part(key).into_iter().flat_map(|value| [key.to_owned(), value]));
                }
            }
            words
        }
    }
}

/// Words for keys of the JSON output that have another name there, by discipline; a key with an
/// empty word is ignored.
const RENAMED: [(&str, &str, &str); 12] = [
    ("tbf", "lat", "latency"),
    ("tbf", "minburst", ""),
    ("dualpi2", "memory-limit", "memlimit"),
    ("dualpi2", "step-thresh-us", "step_thresh"),
    ("dualpi2", "coupling", "coupling_factor"),
    ("dualpi2", "min-qlen-step", "min_qlen_step"),
    ("dualpi2", "c-protection", "classic_protection"),
    ("prio", "multiqueue", ""),
    ("sfq", "adaptive", ""),
    ("sfq", "nodrop", ""),
    ("choke", "adaptive", ""),
    ("choke", "nodrop", ""),
];
/// Words for values of the JSON output, by discipline, key and value.
const SPOKEN: [(&str, &str, &str, &str); 7] = [
    ("dualpi2", "drop-overload", "drop", "drop_on_overload"),
    ("dualpi2", "drop-overload", "overflow", "overflow"),
    ("dualpi2", "drop-early", "drop-dequeue", "drop_dequeue"),
    ("dualpi2", "drop-early", "drop-enqueue", "drop_enqueue"),
    ("dualpi2", "ecn-mask", "l4s-ect", "l4s_ect"),
    ("dualpi2", "ecn-mask", "any-ect", "any_ect"),
    ("dualpi2", "split-gso", "", "split_gso"),
];

/// Returns the options of a discipline in JSON as words of `tc`.
fn words_of(kind: &str, options: &Json) -> Result<Vec<String>, Fault> {
    match kind {
        "cake" => return Ok(cake(options)),
        "netem" => return netem(options),
        _ => {}
    }
    let mut words: Vec<String> = Vec::new();
    for (raw, value) in options.pairs() {
        let spoken = |(of, key, _, _): &&(&str, &str, &str, &str)| *of == kind && key == raw;
        if SPOKEN.iter().any(|row| spoken(&row)) {
            let rows = SPOKEN.iter().filter(spoken);
            let fits = rows.filter(|(_, _, text, _)| *text == value.text());
            words.extend(fits.map(|(.., word)| (*word).to_owned()));
            continue;
        }
        let raw = raw.trim();
        let renamed = RENAMED.iter().find(|(of, key, _)| *of == kind && *key == raw);
        let key = renamed.map_or(raw, |(.., word)| *word);
        match value {
            _ if key.is_empty() => {}
            Json::Bool(false) => {}
            Json::Bool(true) | Json::Null => words.push(key.to_owned()),
            Json::List(list) => {
                words.push(key.to_owned());
                words.extend(list.iter().map(Json::text));
            }
            value => words.extend([key.to_owned(), written(kind, key, value)]),
        }
    }
    Ok(words)
}

/// Returns a value as `tc` accepts it. JSON has times in microseconds, rates in bytes per second.
fn written(discipline: &str, key: &str, value: &Json) -> String {
    let Some(number) = value.number() else { return value.text() };
    let words = table(discipline).map_or(&[][..], |table| table.words);
    let kind = words.iter().find(|word| word.name == key).map(|word| word.kind);
    match kind {
        _ if matches!(key, "rehash" | "db") => plain((number / 1000.0).floor()),
        _ if key == "classic_protection" => format!("{}%", plain(number)),
        _ if matches!(key, "latency" | "step_thresh") => format!("{}us", plain(number)),
        Some(Kind::Time) => format!("{}us", plain(number)),
        Some(Kind::Rate) => rate(number),
        Some(Kind::Size) => format!("{}b", plain(number)),
        _ => plain(number),
    }
}

fn cake(options: &Json) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |texts: &[&str]| words.extend(texts.iter().map(|text| (*text).to_owned()));
    let is_raw = options.get("raw").is_some_and(|raw| !raw.is_empty());
    for (key, value) in options.pairs() {
        let (is_on, text) = (!value.is_empty(), value.text());
        match key.as_str() {
            "bandwidth" => match value.number() {
                Some(bytes) => add(&["bandwidth", &rate(bytes)]),
                None => add(&["bandwidth", &text]),
            },
            "diffserv" | "flowmode" | "atm" => add(&[&text]),
            "nat" | "wash" => add(&[&format!("{}{key}", if is_on { "" } else { "no" })]),
            "split_gso" => add(&[if is_on { "split-gso" } else { "no-split-gso" }]),
            "ingress" if is_on => add(&["ingress"]),
            "autorate" if is_on => add(&["autorate-ingress"]),
            "ack-filter" => add(&[match text.as_str() {
                "enabled" => "ack-filter",
                "aggressive" => "ack-filter-aggressive",
                _ => "no-ack-filter",
            }]),
            "rtt" => add(&["rtt", &format!("{text}us")]),
            "memlimit" => add(&["memlimit", &format!("{text}b")]),
            "overhead" | "mpu" if !is_raw => add(&[key, &text]),
            "fwmark" if text != "0" => add(&["fwmark", &text]),
            _ => {}
        }
    }
    words
}

fn netem(options: &Json) -> Result<Vec<String>, Fault> {
    let mut words: Vec<String> = Vec::new();
    let share = |value: &Json, key: &str| value.get(key).and_then(Json::number).unwrap_or(0.0);
    let percent = |share: f64| format!("{}%", plain(share * 100.0));
    let micros = |seconds: f64| format!("{}us", plain((seconds * 1e6).round()));
    for (key, value) in options.pairs() {
        let correlation = share(value, "correlation");
        let correlation = (correlation != 0.0).then(|| percent(correlation));
        match key.as_str() {
            "limit" | "gap" if !value.is_empty() => words.extend([key.clone(), value.text()]),
            "delay" if !value.pairs().is_empty() => {
                words.extend([key.clone(), micros(share(value, "delay"))]);
                let jitter = share(value, "jitter");
                if jitter != 0.0 {
                    words.push(micros(jitter));
                    words.extend(correlation);
                }
            }
            "loss-random" | "duplicate" | "corrupt" | "reorder" if !value.pairs().is_empty() => {
                let name = key.split('-').next().unwrap_or(key);
                let inner = if value.get("loss").is_some() { "loss" } else { name };
                words.extend([name.to_owned(), percent(share(value, inner))]);
                words.extend(correlation);
            }
            "rate" if !value.pairs().is_empty() => {
                words.extend([key.clone(), rate(share(value, "rate"))]);
                let more =
                    ["packetoverhead", "cellsize", "celloverhead"].map(|key| share(value, key));
                let used = more.iter().rposition(|number| *number != 0.0).map_or(0, |n| n + 1);
                words.extend(more[..used].iter().map(|number| plain(*number)));
            }
            "ecn" if !value.is_empty() => words.push(key.clone()),
            "seed" | "ecn" | "limit" | "gap" => {}
            _ if value.is_empty() => {}
            other => {
                return Err(Fault::new(format!(
                    "netem's `{other}` cannot be read from JSON: give the text output of `tc`"
                )));
            }
        }
    }
    Ok(words)
}
