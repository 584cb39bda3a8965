//! Functions that read values of a row. Each error states the line.

use crate::report::Outcome;
pub use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A JSON object.
pub type Object = serde_json::Map<String, Json>;
type Result<T> = std::result::Result<T, Outcome>;

/// Parses one line as a JSON object.
pub fn object(line: usize, text: &str) -> Result<Object> {
    // If a key occurred twice, one of its values would be lost.
    match serde_json::from_str::<Unique>(text) {
        Ok(Unique(object)) => Ok(object),
        Err(_) if text.trim().is_empty() => Err(Outcome::malformed(line, "the line is empty")),
        Err(error) => {
            // The parser receives one line, so its messages say line 1.
            let why = error.to_string().replace(" at line 1 column ", ", at column ");
            Err(Outcome::malformed(line, why))
        }
    }
}

/// A JSON object without repeated keys at any depth.
struct Unique(Object);

impl<'de> serde::Deserialize<'de> for Unique {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        match UniqueValue::deserialize(deserializer)?.0 {
            Json::Object(object) => Ok(Self(object)),
            _ => Err(serde::de::Error::custom("a row must be a JSON object")),
        }
    }
}

struct UniqueValue(Json);

impl<'de> serde::Deserialize<'de> for UniqueValue {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Json;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_bool<E>(self, v: bool) -> std::result::Result<Json, E> {
                Ok(Json::Bool(v))
            }
            fn visit_i64<E>(self, v: i64) -> std::result::Result<Json, E> {
                Ok(v.into())
            }
            fn visit_u64<E>(self, v: u64) -> std::result::Result<Json, E> {
                Ok(v.into())
            }
            fn visit_f64<E>(self, v: f64) -> std::result::Result<Json, E> {
                Ok(v.into())
            }
            fn visit_str<E>(self, v: &str) -> std::result::Result<Json, E> {
                Ok(v.into())
            }
            fn visit_unit<E>(self) -> std::result::Result<Json, E> {
                Ok(Json::Null)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> std::result::Result<Json, A::Error> {
                let mut items = Vec::new();
                while let Some(UniqueValue(item)) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Json::Array(items))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Json, A::Error> {
                let mut object = Object::new();
                while let Some(key) = map.next_key::<String>()? {
                    let UniqueValue(value) = map.next_value()?;
                    if object.contains_key(&key) {
                        return Err(serde::de::Error::custom(format!(
                            "the key `{key}` must not occur twice"
                        )));
                    }
                    object.insert(key, value);
                }
                Ok(Json::Object(object))
            }
        }
        deserializer.deserialize_any(Visitor).map(UniqueValue)
    }
}

/// Returns the value of `key`; an error if the key is missing.
pub fn field<'a>(line: usize, object: &'a Object, key: &str) -> Result<&'a Json> {
    object.get(key).ok_or_else(|| Outcome::malformed(line, format!("`{key}` is missing")))
}

fn wrong<T>(line: usize, what: &str, needed: &str, found: &Json) -> Result<T> {
    let mut text = format!("`{what}` must be {needed}, found ");
    let _ = write!(text, "{found}");
    Err(Outcome::malformed(line, text))
}

/// Returns `value` as an integer. A string of decimal digits is allowed, for numbers that JSON
/// cannot represent.
pub fn integer(line: usize, what: &str, value: &Json) -> Result<i128> {
    let number = match value {
        Json::Number(n) => n.as_u64().map(i128::from).or_else(|| n.as_i64().map(i128::from)),
        Json::String(s) if s.bytes().all(|b| b.is_ascii_digit()) => s.parse().ok(),
        _ => None,
    };
    number.map_or_else(|| wrong(line, what, "a whole number", value), Ok)
}

/// Returns `value` as an unsigned integer of at most `max`.
pub fn unsigned(line: usize, what: &str, value: &Json, max: u64) -> Result<u64> {
    match value.as_u64() {
        Some(number) if number <= max => Ok(number),
        _ => wrong(line, what, &format!("a whole number up to {max}"), value),
    }
}

/// Returns the unsigned integer of `key`.
pub fn number(line: usize, object: &Object, key: &str, max: u64) -> Result<u64> {
    unsigned(line, key, field(line, object, key)?, max)
}

/// Returns the text value of `key`.
pub fn text<'a>(line: usize, object: &'a Object, key: &str) -> Result<&'a str> {
    match field(line, object, key)? {
        Json::String(text) => Ok(text),
        other => wrong(line, key, "a text", other),
    }
}

/// Returns `value` as an array.
pub fn array<'a>(line: usize, what: &str, value: &'a Json) -> Result<&'a [Json]> {
    match value {
        Json::Array(items) => Ok(items),
        other => wrong(line, what, "an array", other),
    }
}

/// Returns `value` as an object.
pub fn map<'a>(line: usize, what: &str, value: &'a Json) -> Result<&'a Object> {
    match value {
        Json::Object(object) => Ok(object),
        other => wrong(line, what, "an object", other),
    }
}

/// Returns the array of `key`; empty if the key is missing. A present array must not be empty,
/// since recordings omit empty results.
pub fn results<'a>(line: usize, row: &'a Object, key: &str) -> Result<&'a [Json]> {
    match row.get(key) {
        None => Ok(&[]),
        Some(value) => {
            let items = array(line, key, value)?;
            if items.is_empty() {
                return wrong(line, key, "omitted if it is empty", value);
            }
            Ok(items)
        }
    }
}

/// Returns the array of `key`, whose elements must be distinct texts.
pub fn names(line: usize, object: &Object, key: &str) -> Result<Vec<String>> {
    let items = array(line, key, field(line, object, key)?)?;
    let mut names: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Json::String(name) if !names.contains(name) => names.push(name.clone()),
            other => return wrong(line, key, "different names", other),
        }
    }
    Ok(names)
}

/// Rejects keys that are not in `known`.
pub fn only(line: usize, what: &str, object: &Object, known: &[&str]) -> Result<()> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(Outcome::malformed(line, format!("unknown key `{key}` in {what}"))),
        None => Ok(()),
    }
}

/// Returns the operation of a row and its value. The row must have exactly one of the keys in
/// `known`.
pub fn operation<'a, 'k>(
    line: usize,
    row: &'a Object,
    known: &[&'k str],
) -> Result<(&'k str, &'a Json)> {
    let mut found = known.iter().filter_map(|&key| row.get(key).map(|value| (key, value)));
    match (found.next(), found.next()) {
        (Some(operation), None) => Ok(operation),
        (None, _) => Err(Outcome::malformed(
            line,
            format!("a row must have one of the keys {}", known.join(", ")),
        )),
        (Some((a, _)), Some((b, _))) => {
            Err(Outcome::malformed(line, format!("a row must not have both `{a}` and `{b}`")))
        }
    }
}

/// The first requested draw or hash that differs from the recorded one.
#[derive(Debug)]
struct Fault {
    what: &'static str,
    recorded: String,
    asked: String,
}

/// Recorded draws and hashes, returned in order.
#[derive(Debug, Default)]
pub struct Recorded {
    draws: Vec<(char, u64)>,
    next: usize,
    hashes: Vec<u32>,
    next_hash: usize,
    /// Numbers of the flows that the discipline must forget.
    stale: Vec<u64>,
    next_stale: usize,
    /// Number of keys drawn so far. Recordings do not contain keys, so keys are numbered from 1.
    keys: u64,
    /// Recorded hash of each flow with each key.
    hashed: BTreeMap<(u64, u32), u32>,
    /// First request that differs from the recording; `None` if all agree.
    fault: Option<Fault>,
}

impl Recorded {
    /// Reads the recorded draws (`r`), hashes (`h`) and forgotten flows (`gc`) of a row.
    pub fn read(&mut self, line: usize, row: &Object) -> Result<()> {
        self.draws.clear();
        self.next = 0;
        self.fault = None;
        self.next_hash = 0;
        self.next_stale = 0;
        self.stale = results(line, row, "gc")?
            .iter()
            .map(|item| unsigned(line, "gc", item, u64::MAX))
            .collect::<Result<_>>()?;
        self.hashes = results(line, row, "h")?
            .iter()
            .map(|item| unsigned(line, "h", item, u64::from(u32::MAX)).map(|hash| hash as u32))
            .collect::<Result<_>>()?;
        for item in results(line, row, "r")? {
            let parsed = item.as_str().and_then(|text| {
                let width = text.chars().next()?;
                let max = match width {
                    'h' => u64::from(u16::MAX),
                    'w' => u64::from(u32::MAX),
                    'q' => u64::MAX,
                    _ => return None,
                };
                let digits = text.get(1..)?;
                if !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                let value = digits.parse::<u64>().ok().filter(|v| *v <= max)?;
                Some((width, value))
            });
            match parsed {
                Some(draw) => self.draws.push(draw),
                None => return wrong(line, "r", "draws such as \"w123\"", item),
            }
        }
        Ok(())
    }

    fn take(&mut self, width: char) -> u64 {
        match self.draws.get(self.next) {
            Some(&(recorded, value)) if recorded == width => {
                self.next += 1;
                value
            }
            other => {
                let recorded = other.map_or("no draw".to_owned(), |(w, _)| format!("a draw `{w}`"));
                self.fail("draw", recorded, format!("a draw `{width}`"));
                // A draw with all bits set ends the loop in `draw_below`, so that a recording with
                // too few draws cannot cause an endless loop.
                u64::MAX
            }
        }
    }

    fn fail(&mut self, what: &'static str, recorded: String, asked: String) {
        self.fault.get_or_insert(Fault { what, recorded, asked });
    }

    /// Checks that the operation used exactly the recorded draws, hashes and forgotten flows.
    pub fn finish(&self, line: usize) -> Result<()> {
        if let Some(Fault { what, recorded, asked }) = &self.fault {
            return Err(Outcome::differs(line, *what, recorded, asked));
        }
        if self.next < self.draws.len() {
            return Err(Outcome::differs(line, "number of draws", self.draws.len(), self.next));
        }
        if self.next_hash < self.hashes.len() {
            let (recorded, asked) = (self.hashes.len(), self.next_hash);
            return Err(Outcome::differs(line, "number of hashes", recorded, asked));
        }
        if self.next_stale < self.stale.len() {
            let (recorded, asked) = (self.stale.len(), self.next_stale);
            return Err(Outcome::differs(line, "flows forgotten", recorded, asked));
        }
        Ok(())
    }
}

impl sojourn_queue::Draws for Recorded {
    fn draw_u16(&mut self) -> u16 {
        self.take('h') as u16
    }

    fn draw_u32(&mut self) -> u32 {
        self.take('w') as u32
    }

    fn draw_u64(&mut self) -> u64 {
        self.take('q')
    }

    fn draw_key(&mut self) -> u64 {
        self.keys += 1;
        self.keys
    }

    /// Returns the next recorded hash. If the flow was hashed with this key before, the hash must
    /// be the same.
    fn keyed_hash(&mut self, key: u64, flow_hash: u32) -> u32 {
        let Some(&hash) = self.hashes.get(self.next_hash) else {
            self.fail("hash", "none".to_owned(), "one".to_owned());
            return 0;
        };
        self.next_hash += 1;
        let before = *self.hashed.entry((key, flow_hash)).or_insert(hash);
        if before != hash {
            self.fail("hash", hash.to_string(), format!("{before}, as before"));
        }
        hash
    }

    fn stale_flow(&mut self) -> Option<u64> {
        let flow = self.stale.get(self.next_stale).copied();
        self.next_stale += usize::from(flow.is_some());
        flow
    }
}
