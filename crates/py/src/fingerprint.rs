//! Identification of the engine: fingerprint and version.

use pyo3::prelude::*;

/// Returns the engine's fingerprint: the hash of the sources and build files that affect results,
/// which `build.rs` computes.
#[pyfunction]
pub(crate) fn fingerprint() -> &'static str {
    env!("SOJOURN_FINGERPRINT")
}

/// Returns the version of this package.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
