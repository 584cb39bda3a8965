//! Real packets of a plan's flows.

use crate::errors::PlanError;
use crate::simulate::read;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// A host's part in a run: its ends of packet sources and transfers, on real sockets.
///
/// Its receiving ends listen from when it is made.
#[pyclass(module = "sojourn._core")]
pub(crate) struct Endpoint {
    #[cfg(target_os = "linux")]
    inner: sojourn_endpoint::Endpoint,
}

#[cfg(target_os = "linux")]
#[pymethods]
impl Endpoint {
    /// The part of node `node`; raises `OSError` if a socket cannot be had.
    #[new]
    #[pyo3(signature = (plan_json, seed, node, /))]
    fn new(plan_json: &str, seed: u64, node: usize) -> PyResult<Self> {
        let plan = read(plan_json)?;
        plan.validate().map_err(|e| PlanError::new_err(e.to_string()))?;
        Ok(Self { inner: sojourn_endpoint::Endpoint::new(&plan, seed, node)? })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Plays its part until the run's end, without holding the interpreter.
    ///
    /// `start` is the run's start in nanoseconds of the monotonic clock, `log` the descriptor of the
    /// file for its log; it ends early when there is something to be read from the descriptor
    /// `stop`.
    #[pyo3(signature = (start, log, stop, /))]
    fn run(&mut self, py: Python<'_>, start: u64, log: i32, stop: i32) -> PyResult<()> {
        let log = sojourn_endpoint::duplicate(log)?.into();
        let stop = sojourn_endpoint::duplicate(stop)?;
        py.detach(|| self.inner.run(start, log, stop))?;
        Ok(())
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
    let plan = read(plan_json)?;
    plan.validate().map_err(|e| PlanError::new_err(e.to_string()))?;
    py.detach(|| {
        let logs: Vec<&[u8]> = logs.iter().map(|log| &**log).collect();
        let report = sojourn_endpoint::report::report(&plan, seed, &logs, end)?;
        Ok(serde_json::to_string(&report).expect("reports have no keys that are no texts"))
    })
    .map_err(|why: String| PyValueError::new_err(why))
}
