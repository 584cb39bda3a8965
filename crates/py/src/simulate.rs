//! Simulation of a plan, and access to the results.

use crate::errors::{PlanError, plan_error};
use crate::own::{self, Faults};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use sojourn_measure::{Column, Table, Values};
use sojourn_plan::{Plan, features};
use sojourn_sim::{Control, EARLY, RunError};
use sojourn_units::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parses a plan without validating it.
pub(crate) fn read(plan_json: &str) -> PyResult<Plan> {
    serde_json::from_str(plan_json)
        .map_err(|e| PlanError::new_err(format!("the JSON is not a plan: {e}")))
}

/// Raises `PlanError` if the plan is invalid. The attribute `problems` of the exception has all
/// errors with their paths.
#[pyfunction(signature = (plan_json, /))]
pub(crate) fn validate_plan(py: Python<'_>, plan_json: &str) -> PyResult<()> {
    read(plan_json)?.validate().map_err(|errors| plan_error(py, &errors))
}

/// Raises `PlanError` if the simulator cannot run the plan; the seed has no effect. The attribute
/// `problems` of the exception has all errors with their paths.
#[pyfunction(signature = (plan_json, seed, /))]
pub(crate) fn check(py: Python<'_>, plan_json: &str, seed: u64) -> PyResult<()> {
    let _ = seed;
    let plan = read(plan_json)?;
    plan.validate().and_then(|()| plan.check_simulated()).map_err(|errors| plan_error(py, &errors))
}

/// Returns the greatest allowed values of numbers in scenarios, by name.
#[pyfunction]
pub(crate) fn limits() -> BTreeMap<&'static str, u64> {
    let links = sojourn_plan::Link::MOST.iter().map(|(key, _, most)| (*key, *most));
    sojourn_plan::limits::TABLE.iter().copied().chain(links).collect()
}

/// The name of a feature of links, and its noun in sentences.
type Feature = (&'static str, &'static str);

/// Returns the features of each link that an engine may lack: those of device, line and medium, and
/// the effects of the wire other than its delay.
#[pyfunction(signature = (plan_json, /))]
pub(crate) fn link_features(plan_json: &str) -> PyResult<Vec<(Vec<Feature>, Vec<Feature>)>> {
    let pairs = |all: Vec<&features::Feature>| all.iter().map(|f| (f.name, f.phrase)).collect();
    let of = |link: &sojourn_plan::Link| link.features().map(pairs).into();
    Ok(read(plan_json)?.links.iter().map(of).collect())
}

/// Simulates a plan with a seed, without holding the interpreter.
///
/// `progress(fraction, events)` is called regularly. If it returns `False`, the run stops, and its
/// record has the measurements until then. An exception in `progress`, or of a signal handler, ends
/// the run.
#[pyfunction(signature = (plan_json, seed, progress=None, /))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
pub(crate) fn simulate(
    py: Python<'_>,
    plan_json: &str,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Record> {
    let record = py.detach(|| {
        make(plan_json, seed, &mut |now| {
            Python::attach(|py| {
                py.check_signals()?;
                let Some(call) = &progress else { return Ok(true) };
                let answer = call.bind(py).call1((now.fraction(), now.events))?;
                Ok(answer.is_none() || answer.is_truthy()?)
            })
        })
    })?;
    Ok(Record::new(record))
}

/// Simulates a plan with a seed. The caller has released the interpreter. `ask` returns whether the
/// run continues.
pub(crate) fn make(
    plan_json: &str,
    seed: u64,
    ask: &mut dyn FnMut(&sojourn_sim::Progress) -> PyResult<bool>,
) -> PyResult<sojourn_sim::Record> {
    let mut plan = read(plan_json)?;
    let faults =
        if plan.sources.is_empty() { None } else { Python::attach(|py| own::bind(py, &mut plan))? };
    let mut raised: Option<PyErr> = None;
    let outcome = sojourn_sim::run(&plan, seed, &mut |now| {
        if faults.as_ref().is_some_and(|faults| faults.any()) {
            return Control::Stop;
        }
        match ask(&now) {
            Ok(true) => Control::Continue,
            Ok(false) => Control::Stop,
            Err(error) => {
                raised = Some(error);
                Control::Stop
            }
        }
    });
    if faults.is_some() {
        Python::attach(|_| drop(plan)); // the plan refers to Python objects
    }
    if let Some(error) = raised.or_else(|| faults.and_then(|faults| faults.take())) {
        return Err(error);
    }
    outcome.map_err(|error| Python::attach(|py| run_error(py, error)))
}

/// Repeats a run with a user's policy, and returns its trace hash; unless `whole`, that of its first
/// five simulated seconds. The policy has served a shorter run before, so state outside its
/// instances changes the hash. Raises the error of a policy that fails.
#[pyfunction(signature = (plan_json, seed, whole, /))]
pub(crate) fn repeat(py: Python<'_>, plan_json: &str, seed: u64, whole: bool) -> PyResult<String> {
    let mut plan = read(plan_json)?;
    let faults = own::bind(py, &mut plan)?;
    let mut hash = 0;
    let first = plan.duration.min(EARLY) / 5;
    for most in [first, if whole { Nanos::MAX } else { EARLY }] {
        let record = sojourn_sim::run(&plan, seed, &mut |now| {
            let failed = faults.as_ref().is_some_and(|faults| faults.any());
            if failed || now.now > most { Control::Stop } else { Control::Continue }
        });
        faults.as_ref().map_or(Ok(()), |faults| faults.check(()))?;
        let record = record.map_err(|error| run_error(py, error))?;
        hash = if whole { record.trace_hash } else { record.early_hash };
    }
    Ok(format!("{hash:032x}"))
}

fn run_error(py: Python<'_>, error: RunError) -> PyErr {
    match error {
        RunError::Plan(errors) => plan_error(py, &errors),
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Returns the record of a run before its start: its tables have all columns, without measurements.
#[pyfunction(signature = (plan_json, seed, /))]
pub(crate) fn blank_record(py: Python<'_>, plan_json: &str, seed: u64) -> PyResult<Record> {
    let mut plan = read(plan_json)?;
    let _faults = own::bind(py, &mut plan)?;
    let record = sojourn_sim::blank(&plan, seed).map_err(|error| run_error(py, error))?;
    Ok(Record::new(record))
}

/// Simulates a UDP server with receive buffers. Parameters and results are JSON.
#[pyfunction(signature = (params_json, seed, /))]
pub(crate) fn simulate_server(py: Python<'_>, params_json: &str, seed: u64) -> PyResult<String> {
    let fail = |why: String| PlanError::new_err(why);
    let params: sojourn_sim::server::Params = serde_json::from_str(params_json)
        .map_err(|e| fail(format!("the JSON does not describe a server: {e}")))?;
    let faults = Arc::new(Faults::default());
    let policy = own::buffer::read(py, &params.policy, &faults)
        .map_err(|error| fail(error.value(py).to_string()))?;
    let outcome = py.detach(|| sojourn_sim::server::run_with(&params, &policy, seed));
    let outcome = outcome.map_err(fail)?;
    faults.check(())?;
    crate::parse::json(&outcome)
}

/// The results of one run.
#[pyclass(frozen, module = "sojourn._core")]
pub(crate) struct Record {
    record: Arc<sojourn_sim::Record>,
}

impl Record {
    pub(crate) fn new(record: sojourn_sim::Record) -> Self {
        Self::shared(Arc::new(record))
    }

    pub(crate) fn shared(record: Arc<sojourn_sim::Record>) -> Self {
        Self { record }
    }
}

#[pymethods]
impl Record {
    /// Returns the hash of all packet events, as 32 hexadecimal digits.
    #[getter]
    fn trace_hash(&self) -> String {
        format!("{:032x}", self.record.trace_hash)
    }

    /// Returns the hash of the packet events in the first five simulated seconds of a run with a
    /// user's policy.
    #[getter]
    fn early_hash(&self) -> String {
        format!("{:032x}", self.record.early_hash)
    }

    /// Number of executed events.
    #[getter]
    fn events(&self) -> u64 {
        self.record.events
    }

    /// Returns whether the run reached the plan's end.
    #[getter]
    fn complete(&self) -> bool {
        self.record.complete
    }

    /// Returns the simulated time that the run reached, in nanoseconds.
    #[getter]
    fn reached(&self) -> u64 {
        self.record.reached
    }

    /// Returns the contents of pcap files, one for each link that the plan captures.
    #[getter]
    fn captures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.record.captures.iter().map(|bytes| PyBytes::new(py, bytes)))
    }

    /// Returns the contents of qlog traces by the names of their files.
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> BTreeMap<&str, Bound<'py, PyBytes>> {
        let files = self.record.qlogs.iter();
        files.map(|(name, bytes)| (name.as_str(), PyBytes::new(py, bytes))).collect()
    }

    /// Returns the table `name` as a list of columns `(column, unit, dtype, data)`.
    #[pyo3(signature = (name, /))]
    fn table<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        columns(py, table_of(&self.record, name)?)
    }
}

/// Returns the table `name` of a record.
pub(crate) fn table_of<'a>(record: &'a sojourn_sim::Record, name: &str) -> PyResult<&'a Table> {
    Ok(match name {
        "summary" => &record.summary,
        "flows" => &record.flows,
        "queues" => &record.queues,
        "series" => &record.series,
        "distributions" => &record.distributions,
        "flow_series" => &record.flow_series,
        _ => return Err(PyKeyError::new_err(format!("there is no table `{name}`"))),
    })
}

pub(crate) fn columns<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyList>> {
    let rows: PyResult<Vec<_>> = table.columns.iter().map(|column| row(py, column)).collect();
    PyList::new(py, rows?)
}

fn row<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyTuple>> {
    let (dtype, data) = match &column.values {
        Values::Real(v) => ("f8", bytes(py, v.len() * 8, v.iter().map(|x| x.to_le_bytes()))?),
        Values::Integer(v) => ("i8", bytes(py, v.len() * 8, v.iter().map(|x| x.to_le_bytes()))?),
        Values::Bool(v) => ("?", bytes(py, v.len(), v.iter().map(|&x| [u8::from(x)]))?),
        Values::Text(v) => ("text", PyList::new(py, v)?.into_any()),
    };
    (&column.name, column.unit, dtype, data).into_pyobject(py)
}

/// Returns numbers as one Python `bytes` object, which is written in place.
fn bytes<const N: usize>(
    py: Python<'_>,
    length: usize,
    values: impl Iterator<Item = [u8; N]>,
) -> PyResult<Bound<'_, PyAny>> {
    let object = PyBytes::new_with(py, length, |target| {
        for (place, value) in target.chunks_exact_mut(N).zip(values) {
            place.copy_from_slice(&value);
        }
        Ok(())
    })?;
    Ok(object.into_any())
}
