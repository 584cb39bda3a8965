//! Words of users' policies, which the engine's own parser reads.

use super::congestion::control_params;
use crate::errors::word_error;
use crate::parse::{from_json, json};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use sojourn_units::external::Value as Setting;
use sojourn_units::words::{self, Given, Kind, Table, Word};
use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Declaration of a word in the Python package.
#[derive(Deserialize)]
struct Declared {
    name: String,
    kind: String,
    default: String,
}

/// Tables of words of a policy: a table of its own words, and a table that adds TCP's words.
struct Tables {
    own: &'static Table,
    tcp: LazyLock<Table, Box<dyn FnOnce() -> Table + Send>>,
}

/// Tables of all policies so far. Like the tables of built-in policies, they are never freed.
static TABLES: Mutex<Option<HashMap<String, &'static Tables>>> = Mutex::new(None);

fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn word(declared: &Declared) -> PyResult<Word> {
    let name = leak(&declared.name);
    let kind = match declared.kind.as_str() {
        "switch" => Kind::Switch { off: leak(&format!("no{name}")) },
        "packets" => Kind::Packets,
        "size" => Kind::Size,
        "time" => Kind::Time,
        "rate" => Kind::Rate,
        "probability" => Kind::Probability,
        "integer" => Kind::Signed { min: i64::MIN, max: i64::MAX },
        "real" => Kind::Real { min: f64::MIN, max: f64::MAX },
        "name" => Kind::Name,
        other => return Err(PyValueError::new_err(format!("unknown kind of word: {other}"))),
    };
    Ok(Word { name, kind, default: leak(&declared.default), doc: "" })
}

fn tables(name: &str, declared: &str) -> PyResult<&'static Tables> {
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let tables = tables.get_or_insert_default();
    let key = format!("{name}\0{declared}");
    if let Some(known) = tables.get(&key) {
        return Ok(known);
    }
    let words: Vec<Declared> = from_json(declared)?;
    let words: Vec<Word> = words.iter().map(word).collect::<PyResult<_>>()?;
    let table = Table { name: leak(name), summary: "", source: "", words: words.leak() };
    let own: &'static Table = Box::leak(Box::new(table));
    let tcp = LazyLock::new(Box::new(|| sojourn_tcp::table(own)) as Box<_>);
    let made: &'static Tables = Box::leak(Box::new(Tables { own, tcp }));
    tables.insert(key, made);
    Ok(made)
}

/// Returns the given values of a policy's own words, in base units.
fn values(table: &Table, given: &Given) -> BTreeMap<&'static str, Setting> {
    let value = |word: &Word| match word.kind {
        Kind::Switch { .. } => given.flag(word.name).map(Setting::Flag),
        Kind::Signed { .. } => given.signed(word.name).map(Setting::Integer),
        Kind::Real { .. } | Kind::Probability => given.real(word.name).map(Setting::Real),
        Kind::Name => given.text(word.name).map(|text| Setting::Text(text.to_owned())),
        _ => given.integer(word.name).map(|value| Setting::Integer(value as i64)),
    };
    table.words.iter().filter_map(|word| Some((word.name, value(word)?))).collect()
}

/// Parses `text`, whose first word is `name`, according to words that are declared as JSON. Returns
/// the given values as JSON. With `tcp`, TCP's words are allowed too.
#[pyfunction(signature = (name, declared, text, /, *, tcp=false))]
pub(crate) fn parse_own(
    py: Python<'_>,
    name: &str,
    declared: &str,
    text: &str,
    tcp: bool,
) -> PyResult<String> {
    let tables = tables(name, declared)?;
    let whole = if tcp { &*tables.tcp } else { tables.own };
    let (_, given) =
        words::describe("policy", &[whole], text).map_err(|e| word_error(py, text, &e))?;
    json(&values(tables.own, &given))
}

/// Parses `text` as TCP with a user's congestion control, whose words are declared as JSON. Returns
/// TCP's parameters as JSON. `control_json` contains the parameters of the congestion control.
#[pyfunction(signature = (name, declared, text, control_json, /))]
pub(crate) fn own_tcp(
    py: Python<'_>,
    name: &str,
    declared: &str,
    text: &str,
    control_json: &str,
) -> PyResult<String> {
    let tables = tables(name, declared)?;
    let control = control_params(control_json)?;
    let read = words::describe("transport", &[&*tables.tcp], text)
        .and_then(|(_, given)| sojourn_tcp::Params::external(&given, control));
    json(&read.map_err(|e| word_error(py, text, &e))?)
}

/// Returns the default values of the words in the JSON `declared`: as JSON, in base units.
#[pyfunction(signature = (name, declared, /))]
pub(crate) fn policy_values(py: Python<'_>, name: &str, declared: &str) -> PyResult<String> {
    let table = tables(name, declared)?.own;
    let mut text = name.to_owned();
    for word in table.words {
        match word.kind {
            Kind::Switch { .. } => text.extend([" ", word.default]),
            _ => text.extend([" ", word.name, " ", word.default]),
        }
    }
    parse_own(py, name, declared, &text, false)
}
