//! Receive buffer policies written in Python.

use super::faults::Faults;
use super::loaded::{Loaded, alone};
use super::views::shown;
use super::watch::Asked;
use crate::errors::word_error;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_buffer::external::{self, Policy};
use sojourn_buffer::{Observation, Params};
use sojourn_units::external::{Code, Fault};
use sojourn_units::{Bytes, EPOCH, Nanos};
use std::sync::Arc;

/// Returns the parameters of a policy. `text` is either the one line of a built-in policy, or the
/// JSON of a user's policy and its sources.
pub(crate) fn read(py: Python<'_>, text: &str, faults: &Arc<Faults>) -> PyResult<Params> {
    let Some((mut params, sources)) = alone::<external::Params>(text)? else {
        return Params::parse(text).map_err(|e| word_error(py, text, &e));
    };
    let loaded = Loaded::new(py, &params.spec, &sources, faults)?;
    params.code = Code::new(Arc::new(Factory(Arc::new(loaded))));
    Ok(Params::External(params))
}

struct Factory(Arc<Loaded>);

impl external::Factory for Factory {
    fn create(&self, params: &external::Params) -> Result<Box<dyn Policy>, Fault> {
        let policy = self.0.make(|py| {
            let object = self.0.instance(py, &params.spec.params, &PyDict::new(py), None)?;
            PyPolicy::new(&object, self.0.clone())
        })?;
        Ok(Box::new(policy))
    }

    fn on_fault(&self, fault: &Fault) {
        self.0.faults.report(&self.0.name, "__init__", EPOCH, &fault.0);
    }
}

/// State of a receive buffer, as a user's policy reads it.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub(crate) struct BufferView {
    /// Current size of the buffer in bytes.
    size: Bytes,
    /// Occupied part of the buffer in bytes.
    occupied: Bytes,
    /// Size in bytes of the packet that is about to be added; 0 without a packet.
    needed: Bytes,
    /// Bytes discarded so far because the buffer was full.
    discarded: Bytes,
    /// Bytes that the handler has processed so far; `None` if unknown.
    processed: Option<Bytes>,
    /// Total and available memory in bytes; `None` if unknown.
    memory: Option<(Bytes, Bytes)>,
}

#[pymethods]
impl BufferView {
    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    fn __repr__(&self) -> String {
        format!("<buffer: {} of {} bytes, {} more to come>", self.occupied, self.size, self.needed)
    }
}

/// An instance of a user's class for receive buffer policies.
struct PyPolicy {
    loaded: Arc<Loaded>,
    object: Py<PyAny>,
    observe: Py<PyAny>,
    /// Number of observations so far.
    asked: u64,
}

impl PyPolicy {
    fn new(object: &Bound<'_, PyAny>, loaded: Arc<Loaded>) -> PyResult<Self> {
        let observe = object.getattr("observe")?.unbind();
        Ok(Self { loaded, object: object.clone().unbind(), observe, asked: 0 })
    }
}

impl Policy for PyPolicy {
    fn observe(&mut self, seen: &Observation) -> Result<Bytes, Fault> {
        self.asked += 1;
        Python::attach(|py| {
            let view = BufferView {
                size: seen.size,
                occupied: seen.occupied,
                needed: seen.needed,
                discarded: seen.discarded,
                processed: seen.processed,
                memory: seen.memory.map(|memory| (memory.total, memory.available)),
            };
            let number = Some(self.asked);
            let asked = Asked { method: "observe", number, now: seen.now };
            let call = || self.observe.bind(py).call1((seen.now, view));
            let answer = self.loaded.call(py, asked, call)?;
            answer.extract().map_err(|_| {
                let found = shown(&answer);
                Fault(format!("returned {found}: return the size in bytes, a whole number (int)"))
            })
        })
    }

    fn state(&self, visit: &mut dyn FnMut(&str, f64)) {
        Python::attach(|py| {
            for (name, value) in self.loaded.state(self.object.bind(py)).into_iter().flatten() {
                if let (Ok(name), Ok(value)) = (name.extract::<String>(), value.extract()) {
                    visit(&name, value);
                }
            }
        });
    }

    fn copy(&self) -> Box<dyn Policy> {
        Python::attach(|py| {
            let object = self.loaded.copy(self.object.bind(py));
            let copy =
                Self::new(&object, self.loaded.clone()).expect("the copy has the same class");
            Box::new(Self { asked: self.asked, ..copy }) as _
        })
    }

    fn on_fault(&mut self, now: Nanos, fault: &Fault) {
        let place = format!("observation {}", self.asked);
        self.loaded.faults.report(&self.loaded.name, &place, now, &fault.0);
    }
}
