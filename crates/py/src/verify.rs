//! Replay of recorded decisions.

use crate::parse::json;
use pyo3::prelude::*;

/// JSON of one vector file's replay; `name` is what the report calls it if the text does not say.
#[pyfunction]
#[pyo3(signature = (name, text, /))]
pub(crate) fn verify(py: Python<'_>, name: &str, text: &str) -> PyResult<String> {
    json(&py.detach(|| sojourn_vectors::replay(name, text)))
}
