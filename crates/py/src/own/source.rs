//! Traffic sources written in Python.

use super::faults::Faults;
use super::loaded::{Loaded, visit_state};
use super::views::{Draws, shown};
use super::watch::Asked;
use crate::parse::from_json;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_random::Key;
use sojourn_traffic::external::{self, External, Fault, Params, Policy};
use sojourn_traffic::{App, Emission, Source};
use sojourn_units::Nanos;
use sojourn_units::external::Code;
use std::sync::Arc;

/// Creates instances of a user's class for traffic sources.
struct Factory {
    loaded: Arc<Loaded>,
}

/// Returns the code of a user's class for traffic sources.
pub(super) fn code(loaded: Loaded) -> Code<dyn external::Factory> {
    Code::new(Arc::new(Factory { loaded: Arc::new(loaded) }))
}

impl external::Factory for Factory {
    fn create(
        &self,
        params: &Params,
        _start: Nanos,
        mut draws: sojourn_random::Stream,
    ) -> Result<Box<dyn Policy>, Fault> {
        let policy = self.loaded.make(|py| {
            let draws = Bound::new(py, Draws::keyed(draws.next_u64()))?.into_any();
            let others = PyDict::new(py);
            others.set_item("longest", params.longest)?;
            let object = self.loaded.instance(py, &params.spec.params, &others, Some(draws))?;
            PyPolicy::new(&object, self.loaded.clone())
        })?;
        Ok(Box::new(policy))
    }

    fn on_fault(&self, now: Nanos, fault: &Fault) {
        self.loaded.faults.report(&self.loaded.name, "__init__", now, &fault.0);
    }
}

/// An instance of a user's class for traffic sources.
struct PyPolicy {
    loaded: Arc<Loaded>,
    object: Py<PyAny>,
    next: Py<PyAny>,
    /// Number of packets so far.
    packets: u64,
}

impl PyPolicy {
    fn new(object: &Bound<'_, PyAny>, loaded: Arc<Loaded>) -> PyResult<Self> {
        let next = object.getattr("next")?.unbind();
        Ok(Self { loaded, object: object.clone().unbind(), next, packets: 0 })
    }
}

/// Converts the return value of `next` to a packet; `None` if no more packets follow.
fn packet(answer: &Bound<'_, PyAny>) -> Result<Option<Emission>, Fault> {
    if answer.is_none() {
        return Ok(None);
    }
    match answer.extract() {
        Ok((at, payload)) => Ok(Some(Emission { at, payload })),
        Err(_) => Err(Fault(format!(
            "returned {}: return the time of the next packet (int, nanoseconds) and its length (int, \
             bytes), or None if no more packets follow",
            shown(answer)
        ))),
    }
}

impl Policy for PyPolicy {
    fn next(&mut self, now: Nanos) -> Result<Option<Emission>, Fault> {
        let asked = Asked { method: "next", number: Some(self.packets), now };
        self.packets += 1;
        Python::attach(|py| {
            packet(&self.loaded.call(py, asked, || self.next.bind(py).call1((now,)))?)
        })
    }

    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        Python::attach(|py| visit_state(&self.loaded, self.object.bind(py), visit));
    }

    fn copy(&self) -> Box<dyn Policy> {
        Python::attach(|py| {
            let object = self.loaded.copy(self.object.bind(py));
            let copy = Self::new(&object, self.loaded.clone());
            Box::new(copy.expect("an instance of a checked class")) as Box<dyn Policy>
        })
    }

    fn on_fault(&mut self, now: Nanos, packet: u64, fault: &Fault) {
        let place = format!("next for packet {packet}");
        self.loaded.faults.report(&self.loaded.name, &place, now, &fault.0);
    }
}

/// A test bench for a user's traffic source, which `sojourn check` controls step by step.
#[pyclass(module = "sojourn._core")]
pub(crate) struct SourceBench {
    source: External,
    faults: Arc<Faults>,
}

#[pymethods]
impl SourceBench {
    #[new]
    #[pyo3(signature = (app_json, sources_json, start, seed=1, /))]
    fn new(
        py: Python<'_>,
        app_json: &str,
        sources_json: &str,
        start: Nanos,
        seed: u64,
    ) -> PyResult<Self> {
        let app = from_json(app_json)?;
        let App::External(mut params) = app else {
            return Err(PyValueError::new_err(format!(
                "`{}` is a built-in application, not a user's source",
                app.name()
            )));
        };
        let faults = Arc::new(Faults::default());
        params.code = code(Loaded::alone(py, &params.spec, sources_json, &faults)?);
        let source = External::new(&params, Key::new(seed, "check"), start);
        faults.check(Self { source, faults: faults.clone() })
    }

    /// Returns the time in nanoseconds and the length in bytes of the next packet; `None` if no
    /// more packets follow.
    fn next(&mut self) -> PyResult<Option<(Nanos, u32)>> {
        let next = Some(self.source.next_packet()).filter(|next| *next != Emission::NONE);
        self.faults.check(next.map(|next| (next.at, next.payload)))
    }

    /// Returns an independent copy of the source in its current state.
    fn copy(&self) -> Self {
        Self { source: self.source.clone(), faults: self.faults.clone() }
    }
}
