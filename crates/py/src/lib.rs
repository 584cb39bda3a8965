//! Python bindings: `sojourn._core`.
//!
//! Nothing is decided here. Texts and plans go in, JSON and tables come out; every error becomes a
//! Python exception that says where and what.

mod describe;
mod errors;
mod fingerprint;
mod parse;
mod simulate;
mod verify;

use pyo3::prelude::*;

/// The engine, its parsers and its descriptions of itself.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::describe::describe;
    #[pymodule_export]
    use crate::errors::{NoKernelEquivalent, PlanError, WordError};
    #[pymodule_export]
    use crate::fingerprint::{fingerprint, version};
    #[pymodule_export]
    use crate::parse::{
        app_carriers, format_quantity, load_capture, nearest, parse_app, parse_medium, parse_netem,
        parse_quantity, parse_queue, parse_tcp, queue_to_tc, queue_warnings,
    };
    #[pymodule_export]
    use crate::simulate::{Record, simulate, validate_plan};
    #[pymodule_export]
    use crate::verify::verify;
}
