//! The Python package's side of policies of a user's own.

use pyo3::prelude::*;

/// Returns the module that loads sources and creates instances.
pub(super) fn package(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("sojourn.own.loading")
}
