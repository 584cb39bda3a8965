//! Exceptions, and how the crates' errors become them.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{IntoPyObjectExt, PyErr, create_exception};
use sojourn_plan::Segment;

create_exception!(
    sojourn._core,
    WordError,
    PyValueError,
    "A description that cannot be read: `message`, `start`, `end`, `found`, `allowed`, `nearest`."
);
create_exception!(
    sojourn._core,
    NoKernelEquivalent,
    PyValueError,
    "Linux has no words for this queue; the message says which setting and why."
);
create_exception!(
    sojourn._core,
    PlanError,
    PyValueError,
    "A plan whose parts do not fit together; `problems` has each error's path and message."
);

/// Returns all errors of a plan as a Python exception.
pub(crate) fn plan_error(py: Python<'_>, errors: &sojourn_plan::PlanErrors) -> PyErr {
    let problems = || -> PyResult<Vec<(Bound<'_, PyTuple>, &String)>> {
        let step = |step: &Segment| match step {
            Segment::Key(key) => key.into_bound_py_any(py),
            Segment::Index(index) => index.into_bound_py_any(py),
        };
        let problem = |error: &'_ sojourn_plan::PlanError| {
            let path = error.at.0.iter().map(step).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, path)
        };
        errors.0.iter().map(|error| Ok((problem(error)?, &error.message))).collect()
    };
    let exception = PlanError::new_err(errors.to_string());
    match problems().and_then(|found| exception.value(py).setattr("problems", found)) {
        Ok(()) => exception,
        Err(other) => other,
    }
}

create_exception!(
    sojourn._core,
    PolicyError,
    PyRuntimeError,
    "A user's policy broke its contract or raised an exception; the message says where."
);

/// Returns `error` about `text` as a Python exception; offsets count characters, as Python does.
pub(crate) fn word_error(
    py: Python<'_>,
    text: &str,
    error: &sojourn_units::words::WordError,
) -> PyErr {
    let characters = |byte: usize| text.get(..byte).unwrap_or(text).chars().count();
    let exception = WordError::new_err(error.to_string());
    let value = exception.value(py);
    let attributes = || -> PyResult<()> {
        value.setattr("message", &error.message)?;
        value.setattr("start", characters(error.at.start))?;
        value.setattr("end", characters(error.at.end))?;
        value.setattr("found", &error.found)?;
        value.setattr("allowed", &error.allowed)?;
        value.setattr("nearest", &error.nearest)
    };
    match attributes() {
        Ok(()) => exception,
        Err(other) => other,
    }
}
