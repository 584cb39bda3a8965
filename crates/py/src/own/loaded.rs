//! A policy's class, loaded from the sources in a plan.

use super::faults::Faults;
use super::package::package;
use crate::errors::PlanError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sojourn_units::EPOCH;
use sojourn_units::external::{Spec, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sources of policies by their digests, as a plan has them.
pub(crate) type Sources = BTreeMap<String, BTreeMap<String, String>>;

/// A policy's class, loaded, and what goes wrong in its code.
pub(crate) struct Loaded {
    /// Its name as the user writes it.
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
            PlanError::new_err(format!("the plan has no source of `{}`", spec.policy))
        })?;
        let class =
            package(py)?.call_method1("load", (&spec.policy, &spec.source, files.clone()))?;
        Ok(Self { name: spec.policy.clone(), class: class.unbind(), faults: faults.clone() })
    }

    /// Returns a policy outside a plan, its sources as JSON.
    pub(crate) fn alone(
        py: Python<'_>,
        spec: &Spec,
        sources_json: &str,
        faults: &Arc<Faults>,
    ) -> PyResult<Self> {
        let sources = serde_json::from_str(sources_json)
            .map_err(|e| PlanError::new_err(format!("not sources: {e}")))?;
        Self::new(py, spec, &sources, faults)
    }

    /// Returns a copy of an instance. One that cannot be made is a fault; it is the instance itself
    /// then.
    pub(crate) fn copy<'py>(&self, object: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
        let py = object.py();
        let copied = py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (object,)));
        copied.unwrap_or_else(|error| {
            let message = self.faults.explain(py, error);
            self.faults.report(&self.name, "copy.deepcopy", EPOCH, &message);
            object.clone()
        })
    }

    /// Returns an instance of the class; without `draws` in a family that is given none.
    pub(crate) fn instance<'py>(
        &self,
        py: Python<'py>,
        values: &BTreeMap<String, Value>,
        others: &Bound<'py, PyDict>,
        draws: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let params = params(py, values, others)?;
        match draws {
            Some(draws) => self.class.bind(py).call1((params, draws)),
            None => self.class.bind(py).call1((params,)),
        }
    }
}

/// Returns a policy outside a plan as the package passes it: its parameters and its sources; none
/// if `text` is that of a policy of the engine's.
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
        Err(error) => Err(PlanError::new_err(format!("not a policy of a user's: {error}"))),
    }
}

/// Returns the object that a policy gets its parameters as.
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

/// Visits the numbers that the method `state` of an instance gives, if it has one.
pub(super) fn visit_state(object: &Bound<'_, PyAny>, visit: &mut dyn FnMut(&str, i128)) {
    let Ok(state) = object.call_method0("state") else { return };
    let Ok(state) = state.cast::<PyDict>() else { return };
    for (name, value) in state {
        if let (Ok(name), Ok(value)) = (name.extract::<String>(), value.extract::<i64>()) {
            visit(&name, value.into());
        }
    }
}
