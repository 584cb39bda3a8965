//! A policy's class, loaded from the sources in a plan.

use super::faults::Faults;
use super::package::package;
use super::watch::{Asked, visible};
use crate::errors::PlanError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sojourn_units::EPOCH;
use sojourn_units::external::{Fault, Spec, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Source files of policies in a plan: for each digest of the files, their names and contents.
pub(crate) type Sources = BTreeMap<String, BTreeMap<String, String>>;

/// A loaded class of a user's policy, and the record of errors in its code.
pub(crate) struct Loaded {
    /// Name of the policy, as the user writes it.
    pub(crate) name: String,
    class: Py<PyAny>,
    pub(crate) faults: Arc<Faults>,
}

impl Loaded {
    pub(crate) fn new(
        py: Python<'_>,
        spec: &Spec,
        sources: &Sources,
        faults: &Arc<Faults>,
    ) -> PyResult<Self> {
        let files = sources.get(&spec.source).ok_or_else(|| {
            PlanError::new_err(format!("the plan does not contain the source of `{}`", spec.policy))
        })?;
        let class =
            package(py)?.call_method1("load", (&spec.policy, &spec.source, files.clone()))?;
        Ok(Self { name: spec.policy.clone(), class: class.unbind(), faults: faults.clone() })
    }

    /// Loads the class of a policy outside a plan. `sources_json` contains its sources.
    pub(crate) fn alone(
        py: Python<'_>,
        spec: &Spec,
        sources_json: &str,
        faults: &Arc<Faults>,
    ) -> PyResult<Self> {
        let sources = serde_json::from_str(sources_json).map_err(|e| {
            PlanError::new_err(format!("the JSON does not contain sources of policies: {e}"))
        })?;
        Self::new(py, spec, &sources, faults)
    }

    /// Creates an instance of the class for a run; an exception becomes a fault.
    pub(crate) fn make<T>(&self, make: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, Fault> {
        Python::attach(|py| make(py).map_err(|error| Fault(self.faults.explain(py, error))))
    }

    /// Executes a call of the user's code, which is visible to the watching thread, and turns its
    /// exception into a fault.
    pub(crate) fn call<T>(
        &self,
        py: Python<'_>,
        asked: Asked,
        call: impl FnOnce() -> PyResult<T>,
    ) -> Result<T, Fault> {
        visible(py, &self.name, asked, call).map_err(|error| Fault(self.faults.explain(py, error)))
    }

    /// Returns what the method `state` of an instance returns; `None` without this method. An
    /// exception is recorded.
    pub(crate) fn state<'py>(&self, object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
        let call = || object.getattr_opt("state")?.map(|state| state.call0()).transpose();
        match self.call(object.py(), Asked::of("state"), call) {
            Ok(state) => state?.cast_into().ok(),
            Err(fault) => {
                self.faults.report(&self.name, "state", EPOCH, &fault.0);
                None
            }
        }
    }

    /// Returns a copy of an instance. If copying fails, the error is recorded and the instance
    /// itself is returned.
    pub(crate) fn copy<'py>(&self, object: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
        let py = object.py();
        let copy = || py.import("copy")?.call_method1("deepcopy", (object,));
        self.call(py, Asked::of("copy.deepcopy"), copy).unwrap_or_else(|fault| {
            self.faults.report(&self.name, "copy.deepcopy", EPOCH, &fault.0);
            object.clone()
        })
    }

    /// Returns a new instance of the class. `draws` is `None` for families without random draws.
    pub(crate) fn instance<'py>(
        &self,
        py: Python<'py>,
        values: &BTreeMap<String, Value>,
        others: &Bound<'py, PyDict>,
        draws: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let params = params(py, values, others)?;
        visible(py, &self.name, Asked::of("__init__"), || match draws {
            Some(draws) => self.class.bind(py).call1((params, draws)),
            None => self.class.bind(py).call1((params,)),
        })
    }
}

/// Parses a user's policy outside a plan: returns its parameters and its sources. Returns `None` if
/// `text` is not JSON, and so describes a built-in policy.
pub(crate) fn alone<P: DeserializeOwned>(text: &str) -> PyResult<Option<(P, Sources)>> {
    #[derive(Deserialize)]
    struct Alone<P> {
        policy: P,
        sources: Sources,
    }
    if !text.starts_with('{') {
        return Ok(None);
    }
    match serde_json::from_str(text) {
        Ok(Alone { policy, sources }) => Ok(Some((policy, sources))),
        Err(error) => {
            Err(PlanError::new_err(format!("the JSON does not describe a user's policy: {error}")))
        }
    }
}

/// Returns the object with the parameters that the constructor of a policy receives.
pub(crate) fn params<'py>(
    py: Python<'py>,
    values: &BTreeMap<String, Value>,
    others: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let all = others.copy()?;
    for (name, value) in values {
        match value {
            Value::Flag(value) => all.set_item(name, value)?,
            Value::Integer(value) => all.set_item(name, value)?,
            Value::Real(value) => all.set_item(name, value)?,
            Value::Text(value) => all.set_item(name, value)?,
        }
    }
    package(py)?.call_method1("params", (all,))
}

/// Calls `visit` for each integer that the method `state` of an instance returns.
pub(super) fn visit_state(
    loaded: &Loaded,
    object: &Bound<'_, PyAny>,
    visit: &mut dyn FnMut(&str, i128),
) {
    for (name, value) in loaded.state(object).into_iter().flatten() {
        if let (Ok(name), Ok(value)) = (name.extract::<String>(), value.extract::<i64>()) {
            visit(&name, value.into());
        }
    }
}
