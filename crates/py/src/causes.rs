//! Limits of a run other than the studied queue, from its figures.

use crate::simulate::read;
use pyo3::prelude::*;
use std::collections::HashMap;

/// Returns what limited runs of a plan apart from the studied queue: for each cause its kind, the
/// name of the link, group of flows or balancer, and sentences. `metrics` are those of a run's
/// summary, or their means over several runs. The input of another engine, which is no plan, has no
/// causes.
#[pyfunction(signature = (plan_json, metrics, /))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
pub(crate) fn causes(
    plan_json: &str,
    metrics: HashMap<String, f64>,
) -> Vec<(&'static str, String, String)> {
    let Ok(plan) = read(plan_json) else { return Vec::new() };
    let value = |name: &str| metrics.get(name).copied().filter(|value| value.is_finite());
    let found = sojourn_sim::causes::causes(&plan, &value);
    found.into_iter().map(|cause| (cause.kind.name(), cause.subject, cause.text)).collect()
}
