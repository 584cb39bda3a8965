//! The engine's descriptions of its words, profiles, presets and metrics, for `explain`, `list` and
//! the documentation.

use crate::parse::json;
use pyo3::prelude::*;
use serde_json::{Value, json as object};
use sojourn_tcp::Profile;
use sojourn_traffic::{App, client, voip, web};
use sojourn_units::declare::Parameters;
use sojourn_units::quantity::{format_size, format_time};

/// Fields of a profile that are times in nanoseconds (`TIMES`) or sizes in bytes (`SIZES`).
const TIMES: &[&str] = &["min_rto", "initial_rto", "max_rto", "delayed_ack_timeout", "time_wait"];
const SIZES: &[&str] = &["receive_window", "send_buffer", "mss"];

/// Returns a value as text, with its unit.
fn shown(name: &str, value: &Value) -> String {
    match value {
        Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_u64() {
            Some(n) if TIMES.contains(&name) => format_time(n),
            Some(n) if SIZES.contains(&name) => format_size(n),
            _ => number.to_string(),
        },
        Value::Object(inner) => {
            // The name or kind comes first, then the other fields in parentheses.
            let named = |key: &str| key == "name" || key == "kind";
            let what: Vec<String> =
                inner.iter().filter(|(k, _)| named(k)).map(|(k, v)| shown(k, v)).collect();
            let how: Vec<String> = inner
                .iter()
                .filter(|(k, _)| !named(k))
                .map(|(k, v)| format!("{k} {}", shown(k, v)))
                .collect();
            if how.is_empty() {
                what.join(" ")
            } else {
                format!("{} ({})", what.join(" "), how.join(", "))
            }
        }
        other => other.to_string(),
    }
}

fn profiles() -> PyResult<Vec<Value>> {
    let row = |p: &&Profile| {
        let params: Value = serde_json::from_str(&json(&p.params())?)
            .map_err(|e| pyo3::exceptions::PyRuntimeError::new_err(e.to_string()))?;
        let shown: Vec<(String, String)> = params
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), shown(name, value)))
            .collect();
        Ok(object!({"name": p.name, "summary": p.summary, "params": params, "shown": shown}))
    };
    Profile::ALL.iter().map(row).collect()
}

/// Returns the presets of all applications. The field `words` has the words that a preset
/// abbreviates.
fn presets() -> Vec<Value> {
    let row = |app: &str, name: &str, line: &str, words: &str, source: &str| {
        let params = App::parse(line).ok();
        object!({
            "name": name, "app": app, "summary": format!("`{line}`"), "words": words,
            "source": source, "params": params,
        })
    };
    let web = web::PRESETS
        .iter()
        .map(|p| row("web", p.name, &format!("web preset {}", p.name), p.words, p.source));
    let voice = voip::CODECS.iter().map(|c| {
        let words = format!(
            "{} B of voice every {} ms, Ie {}, Bpl {}",
            c.voice,
            c.interval / sojourn_units::MILLISECOND,
            c.impairment.ie,
            c.impairment.bpl
        );
        row("voip", c.name, &format!("voip codec {}", c.name), &words, "G.113 Appendix I")
    });
    let kinds = client::PRESETS
        .iter()
        .map(|p| row("client", p.name, &format!("client preset {}", p.name), p.words, p.source));
    let models = client::MODELS
        .iter()
        .map(|m| row("client", m.name, &format!("client model {}", m.name), m.words, m.source));
    web.chain(voice).chain(kinds).chain(models).collect()
}

/// Returns all word tables, profiles, presets, metrics and views as JSON.
#[pyfunction]
pub(crate) fn describe() -> PyResult<String> {
    json(&object!({
        "queue": sojourn_queue::tables(),
        "class": sojourn_queue::class_tables(),
        "tcp": sojourn_tcp::tables(),
        "app": sojourn_traffic::tables(),
        "netem": [sojourn_link::netem::TABLE],
        "medium": [sojourn_link::csma::Params::TABLE],
        "host": [sojourn_link::host::Params::TABLE],
        "buffer": sojourn_buffer::tables(),
        "balancer": sojourn_balance::tables(),
        "profiles": profiles()?,
        "presets": presets(),
        "metrics": sojourn_measure::metrics::METRICS,
        "views": sojourn_measure::views::VIEWS,
    }))
}
