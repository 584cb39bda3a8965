//! Execution of many runs in one call, so that the interpreter is entered only once for all of
//! them.

use crate::simulate::{Record, columns, make, table_of};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyList;
use sojourn_measure::{Column, Table, Values};
use std::mem::discriminant;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Minimum time between two calls of `progress`.
const LISTEN: Duration = Duration::from_millis(100);

/// Runs plans with seeds one after another, without holding the interpreter.
///
/// `progress(fraction, events)` is called about every 100 ms. If it returns `False`, the current
/// run is discarded, and the remaining runs are skipped. After a run that fails, the remaining runs
/// are skipped too, and its error is the attribute `fault`. The result has the records of all runs
/// before.
#[pyfunction(signature = (runs, progress=None, /))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
pub(crate) fn simulate_many(
    py: Python<'_>,
    runs: Vec<(PyBackedStr, u64)>,
    progress: Option<Py<PyAny>>,
) -> Records {
    let mut watch = Watch {
        progress: progress.as_ref(),
        last_call: Instant::now(),
        runs: runs.len(),
        done: 0,
        events: 0,
    };
    py.detach(|| {
        let mut found = Records::default();
        for (plan_json, seed) in &runs {
            let begin = Instant::now();
            match make(plan_json, *seed, &mut |now| watch.ask(now)) {
                Ok(record) if record.complete => {
                    watch.done += 1;
                    watch.events += record.events;
                    found.made.push(Arc::new(record));
                    found.seconds.push(begin.elapsed().as_secs_f64());
                }
                Ok(_) => break,
                Err(error) => {
                    found.fault = Some(error);
                    break;
                }
            }
        }
        found
    })
}

/// Reports the progress of the runs.
struct Watch<'a> {
    progress: Option<&'a Py<PyAny>>,
    last_call: Instant,
    runs: usize,
    done: usize,
    events: u64,
}

impl Watch<'_> {
    /// Calls `progress` at most once per [`LISTEN`]. Returns whether the runs continue.
    fn ask(&mut self, now: &sojourn_sim::Progress) -> PyResult<bool> {
        if self.last_call.elapsed() < LISTEN {
            return Ok(true);
        }
        self.last_call = Instant::now();
        Python::attach(|py| {
            py.check_signals()?;
            let Some(call) = self.progress else { return Ok(true) };
            let fraction = (self.done as f64 + now.fraction()) / self.runs as f64;
            let answer = call.bind(py).call1((fraction, self.events + now.events))?;
            Ok(answer.is_none() || answer.is_truthy()?)
        })
    }
}

/// The records of several runs, as a Python sequence.
#[pyclass(frozen, module = "sojourn._core")]
#[derive(Default)]
pub(crate) struct Records {
    made: Vec<Arc<sojourn_sim::Record>>,
    seconds: Vec<f64>,
    fault: Option<PyErr>,
}

#[pymethods]
impl Records {
    fn __len__(&self) -> usize {
        self.made.len()
    }

    fn __getitem__(&self, number: usize) -> PyResult<Record> {
        let record = self
            .made
            .get(number)
            .ok_or_else(|| PyIndexError::new_err("there is no record with this number"))?;
        Ok(Record::shared(Arc::clone(record)))
    }

    /// Returns the duration of each run in seconds of real time.
    #[getter]
    fn seconds(&self) -> Vec<f64> {
        self.seconds.clone()
    }

    /// Returns the error of the run that followed the last record; `None` if no run failed.
    #[getter]
    fn fault(&self, py: Python<'_>) -> Option<PyErr> {
        self.fault.as_ref().map(|fault| fault.clone_ref(py))
    }

    /// Returns the table `name` of all runs as a list of `(runs, rows, columns)`, with one element
    /// for all runs whose tables have the same columns. `runs` are the numbers of these runs,
    /// `rows` their numbers of rows, and `columns` contains the rows of these runs in this order.
    #[pyo3(signature = (name, /))]
    fn tables<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let mut alike: Vec<(Vec<usize>, Vec<&Table>)> = Vec::new();
        for (number, record) in self.made.iter().enumerate() {
            let table = table_of(record, name)?;
            match alike.iter_mut().find(|(_, tables)| same_columns(tables[0], table)) {
                Some((runs, tables)) => {
                    runs.push(number);
                    tables.push(table);
                }
                None => alike.push((vec![number], vec![table])),
            }
        }
        let stacks = alike.into_iter().map(|(runs, tables)| {
            let rows: Vec<usize> = tables.iter().map(|table| table.rows()).collect();
            Ok((runs, rows, columns(py, &stacked(&tables))?))
        });
        PyList::new(py, stacks.collect::<PyResult<Vec<_>>>()?)
    }
}

fn same_columns(one: &Table, other: &Table) -> bool {
    let same = |(a, b): (&Column, &Column)| {
        a.name == b.name && a.unit == b.unit && discriminant(&a.values) == discriminant(&b.values)
    };
    one.columns.len() == other.columns.len() && one.columns.iter().zip(&other.columns).all(same)
}

/// Returns one table with the rows of all `tables`, which must have equal columns.
fn stacked(tables: &[&Table]) -> Table {
    let mut all = tables[0].clone();
    for table in &tables[1..] {
        for (column, more) in all.columns.iter_mut().zip(&table.columns) {
            match (&mut column.values, &more.values) {
                (Values::Real(v), Values::Real(more)) => v.extend(more),
                (Values::Integer(v), Values::Integer(more)) => v.extend(more),
                (Values::Bool(v), Values::Bool(more)) => v.extend(more),
                (Values::Text(v), Values::Text(more)) => v.extend_from_slice(more),
                _ => unreachable!("equal columns have values of one type"),
            }
        }
    }
    all
}
