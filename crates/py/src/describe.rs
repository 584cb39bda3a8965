//! What the engine knows: every word, profile, preset and metric, for `explain`, `list` and docs.

use crate::parse::json;
use pyo3::prelude::*;
use serde_json::{Value, json as object};
use sojourn_tcp::Profile;

fn profiles() -> Vec<Value> {
    let row = |p: &&Profile| object!({"name": p.name, "summary": p.summary, "params": p.params()});
    Profile::ALL.iter().map(row).collect()
}

/// JSON of every word table, profile, preset and metric.
#[pyfunction]
pub(crate) fn describe() -> PyResult<String> {
    json(&object!({
        "queue": sojourn_queue::tables(),
        "tcp": sojourn_tcp::params::tables(),
        "netem": [sojourn_link::netem::TABLE],
        "profiles": profiles(),
        "metrics": sojourn_measure::metrics::METRICS,
    }))
}
