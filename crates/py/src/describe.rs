//! What the engine knows: every word, profile, preset and metric, for `explain`, `list` and docs.

use crate::parse::json;
use pyo3::prelude::*;
use serde_json::{Value, json as object};
use sojourn_tcp::Profile;
use sojourn_traffic::{App, voip, web};

fn profiles() -> Vec<Value> {
    let row = |p: &&Profile| object!({"name": p.name, "summary": p.summary, "params": p.params()});
    Profile::ALL.iter().map(row).collect()
}

/// Named settings of applications; `words` is what a name stands for.
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
            c.ie,
            c.bpl
        );
        row("voip", c.name, &format!("voip codec {}", c.name), &words, "G.113 Appendix I")
    });
    web.chain(voice).collect()
}

/// JSON of every word table, profile, preset and metric.
#[pyfunction]
pub(crate) fn describe() -> PyResult<String> {
    json(&object!({
        "queue": sojourn_queue::tables(),
        "tcp": sojourn_tcp::params::tables(),
        "app": sojourn_traffic::tables(),
        "netem": [sojourn_link::netem::TABLE],
        "profiles": profiles(),
        "presets": presets(),
        "metrics": sojourn_measure::metrics::METRICS,
    }))
}
