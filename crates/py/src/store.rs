//! Parts of a plan with which a real store is configured: tokens, keys, and the clients' requests.

use crate::errors::PlanError;
use crate::simulate::read;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sojourn_plan::Plan;
use sojourn_sim::store::script;

/// A request: its kind, the number of its first record, the number of records, and the time since
/// the previous request in nanoseconds.
type Line = (&'static str, u64, u32, u64);

/// The parts of a plan's store that a real store needs, for the run with this seed.
#[pyclass(frozen, module = "sojourn._core")]
pub(crate) struct StoreParts {
    plan: Plan,
    seed: u64,
}

impl StoreParts {
    fn store(&self) -> &sojourn_plan::Store {
        self.plan.stores().next().expect("the constructor checks that the plan has a store")
    }
}

#[pymethods]
impl StoreParts {
    #[new]
    #[pyo3(signature = (plan_json, seed, /))]
    fn new(plan_json: &str, seed: u64) -> PyResult<Self> {
        let plan = read(plan_json)?;
        plan.validate().map_err(|e| PlanError::new_err(e.to_string()))?;
        if plan.stores().next().is_none() {
            return Err(PyValueError::new_err("the plan has no store"));
        }
        Ok(Self { plan, seed })
    }

    /// Tokens of each node of the store.
    #[getter]
    fn tokens(&self) -> Vec<Vec<i64>> {
        self.store().node_tokens(self.seed)
    }

    /// Returns the value that is added to a record's number, modulo 2^64, to obtain its key.
    #[getter]
    fn first_key(&self) -> i64 {
        self.store().first_key(self.seed) as i64
    }

    /// Number of replicas that must store a write before it is acknowledged.
    #[getter]
    fn write_need(&self) -> u32 {
        self.store().write_need()
    }

    /// Returns the first `most` requests of a client. Each has its kind, the number of its first
    /// record, the number of records, and the time since the previous request in ns.
    #[pyo3(signature = (client, most, /))]
    fn script(&self, client: u32, most: usize) -> Vec<Line> {
        let made = script(&self.plan, self.seed, client, most).into_iter();
        made.map(|(asked, gap)| (asked.kind.name(), asked.key, asked.records, gap)).collect()
    }
}
