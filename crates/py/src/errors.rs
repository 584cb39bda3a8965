//! Exceptions, and the conversion of the crates' errors into exceptions.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{IntoPyObjectExt, PyErr, create_exception};
use sojourn_plan::Segment;

create_exception!(
    sojourn._core,
    WordError,
    PyValueError,
    "An invalid description. Attributes: `message`, `start`, `end`, `found`, `allowed`, `nearest`."
);
create_exception!(
    sojourn._core,
    NoKernelEquivalent,
    PyValueError,
    "A queue that `tc` cannot express. The message names the setting and the reason."
);
create_exception!(
    sojourn._core,
    PlanError,
    PyValueError,
    "An invalid plan. The attribute `problems` has the path and message of each error."
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
    "A user's policy that violated its contract or raised an exception. The message names the place."
);

/// Returns an error about `text` as a Python exception. Offsets count characters, as in Python.
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
