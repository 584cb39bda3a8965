//! Policies that users write in Python: binding to plans, and handling of their errors.

pub(crate) mod balancer;
pub(crate) mod bench;
pub(crate) mod buffer;
pub(crate) mod congestion;
pub(crate) mod congestion_bench;
mod faults;
pub(crate) mod loaded;
mod package;
pub(crate) mod queue;
pub(crate) mod source;
pub(crate) mod views;
mod watch;
mod words;

pub(crate) use faults::Faults;
use loaded::Loaded;
use pyo3::prelude::*;
use sojourn_plan::{External, Plan};
use std::sync::Arc;
pub(crate) use watch::watch_policies;
pub(crate) use words::{own_tcp, parse_own, policy_values};

/// Binds all external policies of a plan to the users' code. Returns the record of errors in this
/// code; `None` if the plan has no such policy.
pub(crate) fn bind(py: Python<'_>, plan: &mut Plan) -> PyResult<Option<Arc<Faults>>> {
    if plan.sources.is_empty() {
        return Ok(None);
    }
    let faults = Arc::new(Faults::default());
    let sources = std::mem::take(&mut plan.sources);
    for external in plan.externals() {
        let loaded = Loaded::new(py, external.spec(), &sources, &faults)?;
        match external {
            External::Queue(params) => params.code = queue::code(loaded),
            External::Balancer(params) => params.code = balancer::code(loaded),
            External::Source(params) => params.code = source::code(loaded),
            External::Congestion(params) => {
                params.code = congestion::code(loaded, &params.spec.params);
            }
        }
    }
    plan.sources = sources;
    Ok(Some(faults))
}
