//! Receive buffers of running servers, and of the calling program's own sockets.

use crate::own::{self, Faults};
use crate::parse::json;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use serde_json::json as object;
use sojourn_autotune::journal::default_folder;
use sojourn_autotune::own::Adaptive;
use sojourn_autotune::restore::restore;
use sojourn_autotune::settings::Settings;
use sojourn_autotune::socket::duplicate;
use sojourn_autotune::target::{Target, Who};
use sojourn_autotune::tuner::Tuner;
use sojourn_buffer::Params;
use sojourn_units::{MILLISECOND, Nanos, SECOND};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Converts an error to a `ValueError` if the user can correct its cause, and otherwise to an
/// `OSError`.
fn raise(error: &io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            PyValueError::new_err(error.to_string())
        }
        _ => PyOSError::new_err((error.raw_os_error(), error.to_string())),
    }
}

fn folder(given: Option<PathBuf>) -> PyResult<PathBuf> {
    given.map_or_else(|| default_folder().map_err(|error| raise(&error)), Ok)
}

/// Settings of a tuner: the attributes of `sojourn.rcvbuf.Settings`, which has checked their ranges.
/// Times are in seconds, sizes in bytes.
#[derive(FromPyObject)]
pub(crate) struct Given {
    policy: String,
    pid: Option<u32>,
    unit: Option<String>,
    port: Option<u16>,
    everybody: bool,
    interval: Option<f64>,
    rescan: Option<f64>,
    dry_run: bool,
    budget: Option<u64>,
    share: f64,
    sockets: Option<usize>,
    state: Option<PathBuf>,
}

impl Given {
    /// Returns the settings of the tuner with a policy, which the text `policy` describes.
    fn settings(self, policy: Params) -> PyResult<Settings> {
        let who = match (self.pid, self.unit, self.everybody) {
            (Some(pid), None, false) => Who::Pid(pid),
            (None, Some(unit), false) => Who::Unit(unit),
            (None, None, false) => Who::Anybody,
            (None, None, true) => Who::Everybody,
            _ => {
                let why = "`pid`, `unit` and `everybody` exclude each other";
                return Err(PyValueError::new_err(why));
            }
        };
        let usual = Settings::new(Target { who, port: self.port }, policy, folder(self.state)?);
        Ok(Settings {
            interval: self.interval.map_or(usual.interval, nanos),
            rescan: self.rescan.map_or(usual.rescan, nanos),
            dry_run: self.dry_run,
            budget: self.budget,
            share: self.share,
            sockets: self.sockets.unwrap_or(usual.sockets),
            ..usual
        })
    }
}

/// Returns a time in seconds as nanoseconds.
fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND as f64) as Nanos
}

/// Observes UDP sockets of running programs, and adapts their receive buffers.
#[pyclass(frozen, module = "sojourn._core")]
pub(crate) struct RcvbufTuner {
    tuner: Mutex<Tuner>,
    faults: Arc<Faults>,
}

impl RcvbufTuner {
    fn tuner(&self) -> MutexGuard<'_, Tuner> {
        self.tuner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Releases the interpreter, for which the tuner's thread may wait, while the tuner stops.
impl Drop for RcvbufTuner {
    fn drop(&mut self) {
        Python::attach(|py| py.detach(|| self.tuner().stop().len()));
    }
}

#[pymethods]
impl RcvbufTuner {
    #[new]
    #[pyo3(signature = (settings, /))]
    fn new(py: Python<'_>, settings: Given) -> PyResult<Self> {
        let faults = Arc::new(Faults::default());
        let policy = own::buffer::read(py, &settings.policy, &faults)?;
        let settings = settings.settings(policy)?;
        let tuner = py.detach(|| Tuner::start(settings)).map_err(|error| raise(&error))?;
        Ok(Self { tuner: Mutex::new(tuner), faults })
    }

    /// Returns the tuner's state as JSON. Sizes are in bytes as the kernel counts them, times in
    /// seconds. Raises the error of a user's policy, if there is one.
    fn snapshot(&self, py: Python<'_>) -> PyResult<String> {
        self.faults.check(())?;
        json(&py.detach(|| self.tuner().snapshot()))
    }

    /// Returns whether the tuner has ended because all processes that it follows have ended.
    #[getter]
    fn over(&self) -> bool {
        self.tuner().is_over()
    }

    /// Returns the outcome for each socket that an earlier tuner left changed when killed, as JSON.
    #[getter]
    fn recovered(&self) -> PyResult<String> {
        json(&self.tuner().recovered)
    }

    /// Stops the tuner and restores all sizes. Returns the outcome for each socket as JSON.
    fn stop(&self, py: Python<'_>) -> PyResult<String> {
        json(&py.detach(|| self.tuner().stop().to_vec()))
    }
}

/// Restores the sizes of buffers that tuners changed before they were killed. Returns the outcome
/// for each socket as JSON.
#[pyfunction(signature = (state=None))]
pub(crate) fn rcvbuf_restore(py: Python<'_>, state: Option<PathBuf>) -> PyResult<String> {
    let folder = folder(state)?;
    json(&py.detach(|| restore(&folder)).map_err(|error| raise(&error))?)
}

/// Returns the folder in which tuners store the original sizes of sockets.
#[pyfunction]
pub(crate) fn rcvbuf_state_folder() -> PyResult<PathBuf> {
    folder(None)
}

/// Adapts the receive buffer of the calling program's UDP socket, by a thread:
/// `AdaptiveBuffer(sock)`.
///
/// It is a context manager, which restores the socket's original size at its end. The thread has a
/// copy of the descriptor, so the port stays bound until both descriptors are closed.
#[pyclass(frozen, module = "sojourn._core")]
pub(crate) struct AdaptiveBuffer {
    adaptive: Mutex<Adaptive>,
    faults: Arc<Faults>,
}

impl AdaptiveBuffer {
    fn adaptive(&self) -> MutexGuard<'_, Adaptive> {
        self.adaptive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Releases the interpreter, for which the thread may wait, while the thread stops.
impl Drop for AdaptiveBuffer {
    fn drop(&mut self) {
        Python::attach(|py| py.detach(|| self.adaptive().stop().is_ok()));
    }
}

#[pymethods]
impl AdaptiveBuffer {
    #[new]
    #[pyo3(signature = (socket, policy="elastic", *, interval=0.01))]
    fn new(
        py: Python<'_>,
        socket: &Bound<'_, PyAny>,
        policy: &str,
        interval: f64,
    ) -> PyResult<Self> {
        let faults = Arc::new(Faults::default());
        let policy = own::buffer::read(py, policy, &faults)?;
        if !(0.001..=1.0).contains(&interval) {
            return Err(PyValueError::new_err("`interval` must be 1 ms to 1 s"));
        }
        let number: i32 = socket.call_method0("fileno")?.extract()?;
        let descriptor = duplicate(number).map_err(|error| raise(&error))?;
        let interval = nanos(interval).max(MILLISECOND);
        let adaptive =
            Adaptive::start(descriptor, &policy, interval).map_err(|error| raise(&error))?;
        Ok(Self { adaptive: Mutex::new(adaptive), faults })
    }

    /// Returns the state of the socket as JSON: sizes in bytes as the kernel counts them, and the
    /// number of dropped packets. Raises the error of a user's policy, if there is one.
    fn stats(&self) -> PyResult<String> {
        self.faults.check(())?;
        let stats = self.adaptive().stats();
        json(&object!({
            "occupied": stats.occupied,
            "peak_occupied": stats.peak_occupied,
            "size": stats.size,
            "peak_size": stats.peak_size,
            "before": stats.before,
            "drops": stats.drops,
        }))
    }

    /// Stops the thread. Returns whether the socket has exactly its original size.
    fn stop(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.adaptive().stop()).map_err(|error| raise(&error))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.stop(py).map(|_| ())
    }
}
