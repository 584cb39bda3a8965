//! Policies that users write in Python: bound to the plans that name them, and watched.

pub(crate) mod bench;
mod faults;
pub(crate) mod queue;
pub(crate) mod views;
mod words;

use crate::errors::PlanError;
pub(crate) use faults::Faults;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_plan::Plan;
use sojourn_units::external::{Code, Spec, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
pub(crate) use words::{parse_own, policy_values};

/// Sources of policies by their digests, as a plan has them.
type Sources = BTreeMap<String, BTreeMap<String, String>>;

/// The Python package's side: loading of sources, and making of instances.
fn package(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("sojourn.own.loading")
}

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

/// A queue's parameters from their JSON, which must be those of an external one.
pub(crate) fn queue_params(json: &str) -> PyResult<sojourn_queue::external::Params> {
    let fail = |why: String| pyo3::exceptions::PyValueError::new_err(why);
    match serde_json::from_str(json).map_err(|e| fail(e.to_string()))? {
        sojourn_queue::Params::External(params) => Ok(params),
        other => Err(fail(format!("`{}` is no policy of a user's", other.name()))),
    }
}

/// Binds what a plan names to its code, and gives what watches it; none if it names no policy of a
/// user's.
pub(crate) fn bind(py: Python<'_>, plan: &mut Plan) -> PyResult<Option<Arc<Faults>>> {
    if plan.sources.is_empty() {
        return Ok(None);
    }
    let faults = Arc::new(Faults::default());
    for link in &mut plan.links {
        if let sojourn_queue::Params::External(params) = &mut link.params.queue {
            let loaded = Loaded::new(py, &params.spec, &plan.sources, &faults)?;
            params.code = Code::new(Arc::new(queue::Factory::new(loaded)));
        }
    }
    Ok(Some(faults))
}
