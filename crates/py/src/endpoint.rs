//! Real packets of a plan's flows.

use crate::errors::PlanError;
use crate::own::{self, Faults};
use crate::simulate::read;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use sojourn_plan::Plan;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

/// Returns a plan that can be run, bound to the code of the user's policies.
fn bound(py: Python<'_>, plan_json: &str) -> PyResult<(Plan, Option<Arc<Faults>>)> {
    let mut plan = read(plan_json)?;
    plan.validate().map_err(|e| PlanError::new_err(e.to_string()))?;
    let faults = own::bind(py, &mut plan)?;
    Ok((plan, faults))
}

/// Raises the fault of a user's policy, if there is one.
fn raise(faults: Option<&Arc<Faults>>) -> PyResult<()> {
    faults.and_then(|faults| faults.take()).map_or(Ok(()), Err)
}

/// A host's part in a run: its ends of packet sources and transfers, on real sockets.
///
/// Its receiving ends listen from when it is made.
#[pyclass(module = "sojourn._core")]
pub(crate) struct Endpoint {
    #[cfg(target_os = "linux")]
    inner: sojourn_endpoint::Endpoint,
    faults: Option<Arc<Faults>>,
}

#[cfg(target_os = "linux")]
#[pymethods]
impl Endpoint {
    /// Returns the part of node `node`, without endless transfers; raises `OSError` if a socket is
    /// not available.
    #[new]
    #[pyo3(signature = (plan_json, seed, node, /))]
    fn new(py: Python<'_>, plan_json: &str, seed: u64, node: usize) -> PyResult<Self> {
        let (plan, faults) = bound(py, plan_json)?;
        Ok(Self { inner: sojourn_endpoint::Endpoint::new(&plan, seed, node, false)?, faults })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Plays its part until the run's end, without holding the interpreter.
    ///
    /// `start` is the run's start in nanoseconds of the monotonic clock, `log` the descriptor of the
    /// file for its log; it ends early when there is something to be read from the descriptor
    /// `stop`, the end of a pipe into which a fault of a user's source writes at `stopped`. That
    /// fault is raised as `PolicyError`.
    #[pyo3(signature = (start, log, stop, stopped, /))]
    fn run(
        &mut self,
        py: Python<'_>,
        start: u64,
        log: i32,
        stop: i32,
        stopped: i32,
    ) -> PyResult<()> {
        raise(self.faults.as_ref())?;
        let log = sojourn_endpoint::duplicate(log)?.into();
        let stop = sojourn_endpoint::duplicate(stop)?;
        if let Some(faults) = &self.faults {
            let stopped = File::from(sojourn_endpoint::duplicate(stopped)?);
            faults.on_fault(move || {
                // A full pipe stops the run as well.
                let _ = (&stopped).write(&[0]);
            });
        }
        py.detach(|| self.inner.run(start, log, stop))?;
        raise(self.faults.as_ref())
    }
}

#[cfg(not(target_os = "linux"))]
#[pymethods]
impl Endpoint {
    #[new]
    #[pyo3(signature = (_plan_json, _seed, _node, /))]
    fn new(_plan_json: &str, _seed: u64, _node: usize) -> PyResult<Self> {
        Err(pyo3::exceptions::PyOSError::new_err("real packets need Linux"))
    }
}

/// Makes results of the logs of all hosts' endpoints, as JSON; see `sojourn_endpoint::report`.
///
/// `end` is when the run ended, in nanoseconds since its start. Raises `ValueError` if a log is none
/// of this plan's.
#[pyfunction]
#[pyo3(signature = (plan_json, seed, logs, end, /))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over references of its own")]
pub(crate) fn endpoint_report(
    py: Python<'_>,
    plan_json: &str,
    seed: u64,
    logs: Vec<PyBackedBytes>,
    end: u64,
) -> PyResult<String> {
    let (plan, _) = bound(py, plan_json)?;
    py.detach(|| {
        let logs: Vec<&[u8]> = logs.iter().map(|log| &**log).collect();
        let report = sojourn_endpoint::report::report(&plan, seed, &logs, end)?;
        Ok(serde_json::to_string(&report).expect("reports have no keys that are no texts"))
    })
    .map_err(|why: String| PyValueError::new_err(why))
}
