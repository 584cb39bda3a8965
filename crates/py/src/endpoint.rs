//! Hosts of a run with real packets, which send and receive the packets of a plan's flows.

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

/// Returns a valid plan whose external policies are bound to the user's code, and the record of
/// their errors.
fn bound(py: Python<'_>, plan_json: &str) -> PyResult<(Plan, Option<Arc<Faults>>)> {
    let mut plan = read(plan_json)?;
    plan.validate().map_err(|e| PlanError::new_err(e.to_string()))?;
    let faults = own::bind(py, &mut plan)?;
    Ok((plan, faults))
}

/// Raises the error of a user's policy, if there is one.
fn raise(faults: Option<&Arc<Faults>>) -> PyResult<()> {
    faults.map_or(Ok(()), |faults| faults.check(()))
}

/// A host in a run with real packets: ends of its packet sources and transfers, on real sockets.
///
/// The receiving sockets listen from the creation of the object.
#[cfg(target_os = "linux")]
#[pyclass(module = "sojourn._core")]
pub(crate) struct Endpoint {
    inner: sojourn_endpoint::Endpoint,
    faults: Option<Arc<Faults>>,
}

#[cfg(target_os = "linux")]
#[pymethods]
impl Endpoint {
    /// Returns the host of the node `node`, without endless transfers. Raises `OSError` if a socket
    /// is not available.
    #[new]
    #[pyo3(signature = (plan_json, seed, node, /))]
    fn new(py: Python<'_>, plan_json: &str, seed: u64, node: usize) -> PyResult<Self> {
        let (plan, faults) = bound(py, plan_json)?;
        Ok(Self { inner: sojourn_endpoint::Endpoint::new(&plan, seed, node, false)?, faults })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Sends and receives until the run's end, without holding the interpreter.
    ///
    /// `start` is the run's start in nanoseconds of the monotonic clock, and `log` the descriptor
    /// of the log file. The run ends early if the descriptor `stop`, the reading end of a pipe,
    /// becomes readable. An error in a user's traffic source writes to the descriptor `stopped`,
    /// the writing end of this pipe, and is raised as `PolicyError`.
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
                // If the pipe is full, it is readable, so the run stops too.
                let _ = (&stopped).write(&[0]);
            });
        }
        py.detach(|| self.inner.run(start, log, stop))?;
        raise(self.faults.as_ref())
    }
}

/// Computes results from the logs of all hosts, and returns them as JSON; see
/// `sojourn_endpoint::report`.
///
/// `end` is the end of the run in nanoseconds since its start. Raises `ValueError` if a log does
/// not belong to this plan.
#[pyfunction(signature = (plan_json, seed, logs, end, /))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
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
        Ok(serde_json::to_string(&report).expect("all keys of a report are strings"))
    })
    .map_err(|why: String| PyValueError::new_err(why))
}
