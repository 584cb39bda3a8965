//! Which engine this is.

use pyo3::prelude::*;

/// Returns the hash of the sources and lock files that decide results, as `build.rs` computed it.
#[pyfunction]
pub(crate) fn fingerprint() -> &'static str {
    env!("SOJOURN_FINGERPRINT")
}

/// Returns the version of this package.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
