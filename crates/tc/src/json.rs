//! The output of `tc -j`: lists of disciplines, classes and filters, one after another.

use crate::device::{Class, Discipline};
use crate::filter::{Filter, Match, marked};
use crate::name::{Name, handle};
use crate::place::{Fault, Place, Word, Words};
use crate::reading::Reading;
use crate::shown::{Printed, add_qdisc};
use crate::values::table;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use sojourn_units::words::Kind;
use std::fmt;

/// A JSON value; objects keep the order of their keys, and `u32` repeats the key `match`.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Json;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_unit<E>(self) -> Result<Json, E> {
                Ok(Json::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
                Ok(Json::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
                Ok(Json::Number(value as f64))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
                Ok(Json::Number(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
                Ok(Json::Number(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Json, E> {
                Ok(Json::Text(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
                let mut list = Vec::new();
                while let Some(value) = from.next_element()? {
                    list.push(value);
                }
                Ok(Json::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
                let mut object = Vec::new();
                while let Some(pair) = from.next_entry()? {
                    object.push(pair);
                }
                Ok(Json::Object(object))
            }
        }
        from.deserialize_any(Reader)
    }
}

impl Json {
    fn get(&self, key: &str) -> Option<&Self> {
        self.pairs().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn pairs(&self) -> &[(String, Self)] {
        if let Self::Object(pairs) = self { pairs } else { &[] }
    }

    fn number(&self) -> Option<f64> {
        if let Self::Number(value) = self { Some(*value) } else { None }
    }

    /// Returns a text or number as text; empty for other values.
    fn text(&self) -> String {
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
            Self::Object(pairs) => pairs.is_empty(),
            _ => false,
        }
    }
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

/// Reads the JSON output in one text; adds problems for entries that cannot be read.
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
        match values.next() {
            None => return,
            Some(Ok(Json::List(list))) => {
                for entry in list {
                    add(reading, printed, name, &mut device, &entry, place);
                }
            }
            Some(Ok(entry)) => add(reading, printed, name, &mut device, &entry, place),
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
                reading.problem(Place { line, ..at }, Fault::new(message));
                return;
            }
        }
    }
}

fn add(
    reading: &mut Reading,
    printed: &mut Printed,
    name: &str,
    device: &mut Option<String>,
    entry: &Json,
    place: Place,
) {
    let reader = Entry { entry, place };
    let has = |key: &str| entry.get(key).is_some();
    let result = if has("class") {
        reader.class(reading, printed, device.clone())
    } else if has("protocol") || has("pref") {
        reader.filter(printed, device.clone())
    } else if has("handle") && has("kind") {
        reader.qdisc(reading, name, device)
    } else {
        Err(Fault::new("this is not a discipline, class or filter as `tc -j` prints it"))
    };
    if let Err(fault) = result {
        reading.problem(place, fault);
    }
}

struct Entry<'a> {
    entry: &'a Json,
    place: Place,
}

impl Entry<'_> {
    fn word(&self, text: impl Into<String>) -> Word {
        Word::new(text, self.place)
    }

    fn words(&self, texts: Vec<String>) -> Vec<Word> {
        texts.into_iter().map(|text| self.word(text)).collect()
    }

    fn need(&self, key: &str) -> Result<Word, Fault> {
        let value = self.entry.get(key);
        let value = value.ok_or_else(|| Fault::new(format!("this entry lacks `{key}`")))?;
        let text = value.text();
        if text.is_empty() {
            return Err(Fault::new(format!("`{key}` of this entry has the wrong type")));
        }
        Ok(self.word(text))
    }

    fn qdisc(
        &self,
        reading: &mut Reading,
        name: &str,
        device: &mut Option<String>,
    ) -> Result<(), Fault> {
        let kind = self.need("kind")?;
        let own = handle(&self.need("handle")?)?;
        if let Some(dev) = self.entry.get("dev") {
            *device = Some(dev.text());
        }
        let device =
            device.get_or_insert_with(|| name.rsplit('/').next().unwrap_or_default().to_owned());
        let is_root = matches!(self.entry.get("root"), Some(Json::Bool(true)));
        let parent = self.entry.get("parent").filter(|_| !is_root);
        let parent = parent.map(|parent| Name::of(&self.word(parent.text()))).transpose()?;
        let options = self.entry.get("options").cloned().unwrap_or(Json::Null);
        if kind.is("tbf") && options.get("minburst").is_some() {
            let message = "`tc -j` does not print `peakrate`, so it is ignored; the text output of \
                           `tc` has it";
            reading.note(self.place, message);
        }
        let one = Discipline {
            words: self.words(words_of(&kind.text, &options)?),
            kind,
            parent: parent.unwrap_or(Name::ROOT),
            handle: Some(own).filter(|own| *own != 0),
            stab: Vec::new(),
            line: self.place,
            shown: true,
        };
        let device = device.clone();
        add_qdisc(reading, &device, one)
    }

    fn class(
        &self,
        reading: &mut Reading,
        printed: &mut Printed,
        device: Option<String>,
    ) -> Result<(), Fault> {
        let kind = self.need("class")?;
        let name = Name::of(&self.need("handle")?)?;
        let parent = self.entry.get("parent").map(|parent| Name::of(&self.word(parent.text())));
        let number = |key: &str| self.entry.get(key).and_then(Json::number);
        let numbers = ["rate", "ceil", "burst", "cburst", "quantum", "prio"];
        let is_wrong = |key: &&&str| self.entry.get(key).is_some_and(|v| v.number().is_none());
        if let Some(key) = numbers.iter().find(is_wrong) {
            return Err(Fault::new(format!("`{key}` of this entry has the wrong type")));
        }
        let mut words = Vec::new();
        let mut push = |key: &str, value: String| words.extend([key.to_owned(), value]);
        match kind.text.as_str() {
            "htb" => {
                for key in ["rate", "ceil"] {
                    if let Some(bytes) = number(key) {
                        push(key, format!("{}bit", plain(bytes * 8.0)));
                    }
                }
                for key in ["burst", "cburst", "prio", "quantum", "overhead", "linklayer"] {
                    if let Some(value) = self.entry.get(key) {
                        push(key, value.text());
                    }
                }
                if let Some(mpu) = number("mpu_rate").filter(|mpu| *mpu != 0.0) {
                    push("mpu", plain(mpu));
                }
            }
            "hfsc" => {
                for key in ["sc", "rt", "ls", "ul"] {
                    let Some(curve) = self.entry.get(key) else { continue };
                    let part = |name: &str| curve.get(name).and_then(Json::number).unwrap_or(0.0);
                    let rate = |name| format!("{}bit", plain(part(name) * 8.0));
                    push(key, format!("m1 {}", rate("m1")));
                    push("d", format!("{}us", plain(part("d"))));
                    push("m2", rate("m2"));
                }
            }
            _ => {
                if let Some(quantum) = number("quantum") {
                    push("quantum", plain(quantum));
                } else if kind.is("drr") {
                    let message =
                        "`tc -j` does not print the quantum of drr; the text output of `tc` has it";
                    reading.note(self.place, message);
                }
            }
        }
        let words: Vec<String> =
            words.iter().flat_map(|word| word.split(' ')).map(str::to_owned).collect();
        let parent = parent.transpose()?.unwrap_or(Name::new(name.major, 0));
        let class = Class { kind, name, parent, words: self.words(words), line: self.place };
        printed.add_class(class, device);
        Ok(())
    }

    fn filter(&self, printed: &mut Printed, device: Option<String>) -> Result<(), Fault> {
        let Some(options) = self.entry.get("options") else { return Ok(()) };
        if options.pairs().is_empty() || options.get("ht_divisor").is_some() {
            return Ok(());
        }
        let text = |key: &str| self.entry.get(key).map(Json::text);
        let parent = text("parent").and_then(|text| Name::read(&text)).unwrap_or(Name::ROOT);
        let kind = self.word(text("kind").unwrap_or_default());
        let mut found = Filter::new(kind, parent, self.place);
        let pref = self.entry.get("pref").and_then(Json::number);
        found.prio = pref.map(|pref| pref as u32).filter(|pref| *pref != 0);
        if let Some(protocol) = text("protocol") {
            found.protocol = protocol;
        }
        let keys = options.get("keys").map_or(&[][..], Json::pairs);
        for (key, value) in options.pairs().iter().chain(keys) {
            self.option(&mut found, key, value)?;
        }
        printed.add_filter(found, device);
        Ok(())
    }

    fn option(&self, found: &mut Filter, key: &str, value: &Json) -> Result<(), Fault> {
        let is_flower = found.kind.is("flower");
        let hex = |name: &str| {
            let text = value.get(name).map(Json::text).unwrap_or_default();
            u32::from_str_radix(text.trim_start_matches("0x"), 16)
                .map_err(|_| Fault::new(format!("`{text}` is not a number")))
        };
        match key {
            "flowid" | "classid" => found.target = Some(self.word(value.text())),
            "match" if !value.pairs().is_empty() => {
                let offmask = value.get("offmask").map(Json::text).unwrap_or_default();
                let is_next = !matches!(offmask.as_str(), "" | "0");
                let offset = value.get("off").and_then(Json::number).unwrap_or(0.0) as u32;
                found.add_header_word(is_next, hex("value")?, hex("mask")?, offset);
            }
            "mark" if !value.pairs().is_empty() => {
                found.add_mark(hex("value")?, hex("mask")?);
            }
            "fwmark_value" => found.tests.push(marked(&self.word(value.text()))?),
            "fwmark_mask" => {
                if let Some(Match::Mark { mask, .. }) = found.tests.last_mut() {
                    *mask = crate::name::number(&self.word(value.text()))?;
                }
            }
            "fw" if !value.pairs().is_empty() => {
                let part = |name: &str| value.get(name).map(Json::text).unwrap_or_default();
                let text = format!("{}/{}", part("mark"), part("mask"));
                found.tests.push(marked(&self.word(text))?);
            }
            "fw" | "handle" if found.kind.is("fw") => {
                found.tests.push(marked(&self.word(value.text()))?);
            }
            "actions" => {
                if let Json::List(actions) = value {
                    for action in actions {
                        self.action(found, action)?;
                    }
                }
            }
            "mode" if found.kind.is("flow") => found.flow.map = value.text() == "map",
            "keys" if found.kind.is("flow") => found.flow.keys = value.text(),
            "divisor" if found.kind.is("flow") => {
                found.flow.divisor = Some(self.word(value.text()));
            }
            "baseclass" if found.kind.is("flow") => {
                found.flow.base = Some(self.word(value.text()));
            }
            "ip_tos_mask" => {
                let bits = crate::name::mask(&self.word(value.text()))?;
                for test in &mut found.tests {
                    if let Match::Ip { mask, offset: 0, .. } = test {
                        *mask = bits << 16;
                    }
                }
                if let Some(at) = found.given.iter().position(|word| word == "ip_tos") {
                    let tos = &found.given[at + 1];
                    found.given[at + 1] = format!("{tos}/{bits:#x}");
                }
            }
            "link" if found.kind.is("u32") => {
                let why = "hash tables of `u32` are read in the text output of `tc`: give that";
                return Err(Fault::new(why));
            }
            "handle" | "keys" | "not_in_hw" | "in_hw" | "skip_hw" | "skip_sw" | "chain" => {}
            _ if is_flower => {
                let text = match (value.get("start"), value.get("end")) {
                    (Some(start), Some(end)) => format!("{}-{}", start.text(), end.text()),
                    _ => value.text(),
                };
                found.flower(&self.word(key), &self.word(text))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn action(&self, found: &mut Filter, action: &Json) -> Result<(), Fault> {
        let kind = action.get("kind").map(Json::text).unwrap_or_default();
        match kind.as_str() {
            "mirred" => {
                let act = action.get("mirred_action").map(Json::text).unwrap_or_default();
                if act != "redirect" {
                    return Err(Fault::new("a copy of a packet (mirror) is not modelled"));
                }
                found.redirect = action.get("to_dev").map(Json::text);
                Ok(())
            }
            "police" => {
                let rate = action.get("rate").map(Json::text).unwrap_or_default();
                found.police(&self.word(format!("police rate {rate}")), &mut Words::new(&[]))
            }
            _ => {
                let verdict = action.get("control_action").and_then(|one| one.get("type"));
                let options = ["priority", "mark", "queue_mapping", "ptype", "zone"];
                let options = options.map(|key| (key, action.get(key)));
                let parts = std::iter::once(("action", verdict)).chain(options);
                let mut words = vec![kind.clone()];
                for (key, value) in parts {
                    let is_meant = (key == "action") == (kind == "gact");
                    if let Some(value) = value.filter(|_| is_meant) {
                        words.extend([key.to_owned(), value.text()]);
                    }
                }
                let words = self.words(words);
                found.action(&self.word("action"), &mut Words::new(&words))
            }
        }
    }
}

/// Words for keys of the JSON output that have another name there, by discipline; a key with an
/// empty word is ignored.
const RENAMED: [(&str, &str, &str); 21] = [
    ("tbf", "lat", "latency"),
    ("tbf", "minburst", ""),
    ("dualpi2", "memory-limit", "memlimit"),
    ("dualpi2", "step-thresh-us", "step_thresh"),
    ("dualpi2", "coupling", "coupling_factor"),
    ("dualpi2", "min-qlen-step", "min_qlen_step"),
    ("dualpi2", "c-protection", "classic_protection"),
    ("htb", "direct_packets_stat", ""),
    ("htb", "ver", ""),
    ("prio", "multiqueue", ""),
    ("sfq", "ewma", ""),
    ("sfq", "adaptive", ""),
    ("sfq", "nodrop", ""),
    ("red", "ewma", ""),
    ("red", "Scell_log", ""),
    ("red", "Plog", ""),
    ("choke", "adaptive", ""),
    ("choke", "nodrop", ""),
    ("choke", "ewma", ""),
    ("choke", "Scell_log", ""),
    ("choke", "Plog", ""),
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
        if kind == "fq" && raw == "bands" {
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
        Some(Kind::Rate) => format!("{}bit", plain(number * 8.0)),
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
                Some(bytes) => add(&["bandwidth", &format!("{}bit", plain(bytes * 8.0))]),
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
                words.extend([key.clone(), format!("{}bit", plain(share(value, "rate") * 8.0))]);
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
