//! Policies that users write in Python: bound to the plans that name them, and watched.

pub(crate) mod bench;
mod faults;
pub(crate) mod loaded;
mod package;
pub(crate) mod queue;
pub(crate) mod views;
mod words;

pub(crate) use faults::Faults;
use loaded::Loaded;
use pyo3::prelude::*;
use sojourn_plan::Plan;
use sojourn_units::external::Code;
use std::sync::Arc;
pub(crate) use words::{parse_own, policy_values};

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
