//! A policy's class, loaded from the sources in a plan.

use super::faults::Faults;
use super::package::package;
use crate::errors::PlanError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_units::external::{Spec, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sources of policies by their digests, as a plan has them.
type Sources = BTreeMap<String, BTreeMap<String, String>>;

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

    /// A policy outside a plan, its sources as JSON.
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

    /// An instance of the class.
    pub(crate) fn instance<'py>(
        &self,
        py: Python<'py>,
        values: &BTreeMap<String, Value>,
        others: &Bound<'py, PyDict>,
        draws: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let params = params(py, values, others)?;
        self.class.bind(py).call1((params, draws))
    }
}

/// The object that a policy gets its parameters as.
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
