//! Access to the Python package's functions for users' policies.

use pyo3::prelude::*;

/// Returns the module that loads sources and creates instances.
pub(super) fn package(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("sojourn.own.loading")
}
