//! A plan's flows as a list, for programs that generate the same traffic as the simulator.

use crate::errors::{PlanError, word_error};
use crate::parse::json;
use crate::simulate::read;
use pyo3::prelude::*;
use sojourn_network::Selected;
use sojourn_queue::classes::filter;

/// Returns the flows of a plan's run with this seed as JSON, ordered by group: a list of
/// `PlannedFlow`.
#[pyfunction(signature = (plan_json, seed, /))]
pub(crate) fn plan_flows(plan_json: &str, seed: u64) -> PyResult<String> {
    let plan = read(plan_json)?;
    plan.validate().map_err(|e| PlanError::new_err(e.to_string()))?;
    json(&plan.planned_flows(seed))
}

/// Returns the groups whose packets each filter of a link's queue selects. `filters` are the filter
/// statements of one discipline, in their order. The result has for each filter a list of pairs:
/// the name of a group, and whether the selected packets go from the receiver of the group's data
/// to the sender.
#[pyfunction(signature = (plan_json, link, filters, /))]
pub(crate) fn selected_flows(
    py: Python<'_>,
    plan_json: &str,
    link: &str,
    filters: &str,
) -> PyResult<Vec<Vec<(String, bool)>>> {
    let plan = read(plan_json)?;
    plan.validate().map_err(|e| PlanError::new_err(e.to_string()))?;
    let filters = filter::read(filters).map_err(|e| word_error(py, filters, &e))?;
    let Some(link) = plan.links.iter().position(|one| one.name == link) else {
        return Err(PlanError::new_err(format!("there is no link `{link}`")));
    };
    let name = |one: &Selected| (plan.groups[one.group].name.clone(), one.answers);
    let found = sojourn_network::selected(&plan, link, &filters);
    Ok(found.iter().map(|groups| groups.iter().map(name).collect()).collect())
}
