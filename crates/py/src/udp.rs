//! The UDP transport: a server that receives files or processes messages at a given speed, a client
//! that sends files, and clients that send messages.

use crate::own::{self, Faults};
use crate::parse::{from_json, json};
use pyo3::exceptions::{PyConnectionError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json as object;
use sojourn_udp::files::{Files, Received, check_name, continuation, header, kept, question};
use sojourn_udp::fleet;
use sojourn_udp::packet::DATA_HEADER;
use sojourn_udp::send::{Progress, SendError, send};
use sojourn_udp::sender::{Mode, Settings as Sending};
use sojourn_udp::serve::{Running, Settings};
use sojourn_udp::server::Limits;
use sojourn_udp::work::{self, Work};
use sojourn_units::SECOND;
use sojourn_units::declare::Choices;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| {
        let what = "an address must have the form 127.0.0.1:9440 or [::1]:9440";
        PyValueError::new_err(format!("{what}; found `{text}`"))
    })
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Settings of a server: the attributes of `sojourn.udp.Serving`, which has checked their ranges.
#[derive(FromPyObject)]
pub(crate) struct Serving {
    folder: PathBuf,
    bind: String,
    buffer: String,
    quota: u64,
    connections: usize,
}

/// A running server that receives files into a folder, or processes messages at a given speed.
#[pyclass(frozen, module = "sojourn._core")]
pub(crate) struct UdpServer {
    running: Mutex<Running>,
    received: Arc<Mutex<Vec<Received>>>,
    faults: Arc<Faults>,
}

impl UdpServer {
    fn running(&self) -> std::sync::MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Releases the interpreter, for which the server's threads may wait, while the server stops.
impl Drop for UdpServer {
    fn drop(&mut self) {
        Python::attach(|py| self.stop(py));
    }
}

#[pymethods]
impl UdpServer {
    #[new]
    #[pyo3(signature = (settings, /))]
    fn new(py: Python<'_>, settings: Serving) -> PyResult<Self> {
        let Serving { folder, bind, buffer, quota, connections } = settings;
        let faults = Arc::new(Faults::default());
        let policy = own::buffer::read(py, &buffer, &faults)?;
        let limits = Limits { connections, ..Limits::default() };
        let files = Files::new(&folder, quota)
            .map_err(|e| PyOSError::new_err((e.raw_os_error(), e.to_string(), folder)))?;
        let received = files.received();
        let bind = address(&bind)?;
        let settings = Settings { limits, ..Settings::new(bind, policy) };
        let running = Running::start(&settings, files)
            .map_err(|e| PyOSError::new_err((e.raw_os_error(), format!("{bind}: {e}"))))?;
        Ok(Self { running: Mutex::new(running), received, faults })
    }

    /// Returns a server whose handler processes messages at a given speed and discards them.
    /// `handler` is the JSON of `sojourn_udp::work::Params`.
    #[staticmethod]
    #[pyo3(signature = (bind, buffer, handler, seed))]
    fn working(
        py: Python<'_>,
        bind: &str,
        buffer: &str,
        handler: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let params: work::Params = from_json(handler)?;
        params.check().map_err(PyValueError::new_err)?;
        let bind = address(bind)?;
        let faults = Arc::new(Faults::default());
        let settings = Settings::new(bind, own::buffer::read(py, buffer, &faults)?);
        let running = Running::start(&settings, Work::new(&params, seed))
            .map_err(|e| PyOSError::new_err((e.raw_os_error(), format!("{bind}: {e}"))))?;
        Ok(Self { running: Mutex::new(running), received: Arc::default(), faults })
    }

    /// Returns the address on which the server listens.
    #[getter]
    fn address(&self, py: Python<'_>) -> String {
        py.detach(|| self.running().address().to_string())
    }

    /// Returns the server's counters and measurements as JSON. Sizes are in bytes, times in
    /// seconds.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        let stats = py.detach(|| self.running().stats());
        let count = |c: sojourn_measure::Count| object!({"messages": c.packets, "bytes": c.bytes});
        let known = |value: f64| value.is_finite().then_some(value);
        json(&object!({
            "arrived": count(stats.buffer.arrived),
            "accepted": count(stats.buffer.accepted),
            "discarded": count(stats.buffer.discarded),
            "processed": count(stats.buffer.processed),
            "abandoned": count(stats.buffer.abandoned),
            "size": stats.size,
            "reason": stats.reason.name(),
            "occupied": stats.occupied,
            "peak_size": stats.peaks.0,
            "peak_occupied": stats.peaks.1,
            "connections": stats.connections,
            "opened": stats.transport.opened,
            "refused": stats.transport.refused,
            "timed_out": stats.transport.timed_out,
            "stalled": stats.transport.stalled,
            "datagrams": stats.transport.datagrams,
            "strange": stats.transport.strange,
            "repeated": stats.transport.repeated,
            "sojourn_p50": known(stats.sojourn.0),
            "sojourn_p99": known(stats.sojourn.1),
            "cpu_receive": stats.cpu.0,
            "cpu_handle": stats.cpu.1,
            "kernel_buffer": stats.kernel_buffer,
        }))
    }

    /// Files received since the last call: name, length in bytes and SHA-256 of each.
    fn received(&self) -> Vec<(String, u64, String)> {
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.drain(..).map(|file| (file.name, file.length, hex(&file.digest))).collect()
    }

    /// Replaces the policy of the buffer.
    #[pyo3(signature = (buffer, /))]
    fn set_policy(&self, py: Python<'_>, buffer: &str) -> PyResult<()> {
        let policy = own::buffer::read(py, buffer, &self.faults)?;
        py.detach(|| self.running().set_policy(policy));
        Ok(())
    }

    /// Returns the reason if the server has ended because of an error; otherwise `None`. Raises the
    /// error of a user's policy, if there is one.
    #[getter]
    fn failure(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.faults.check(())?;
        Ok(py.detach(|| self.running().failure()))
    }

    /// Stops the server, and removes incomplete files.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.running().stop());
    }
}

/// Runs clients that send messages to a server for a given time. `params` is the JSON of
/// `sojourn_udp::fleet::Params`. Returns the clients' counters as JSON.
#[pyfunction(signature = (params, /))]
pub(crate) fn udp_clients(py: Python<'_>, params: &str) -> PyResult<String> {
    let params: fleet::Params = from_json(params)?;
    params.check().map_err(PyValueError::new_err)?;
    let outcome = py.detach(|| fleet::run(&params));
    json(&outcome.map_err(|e| PyOSError::new_err((e.raw_os_error(), e.to_string())))?)
}

/// Returns how much of a file with this name and length a server has kept from an earlier
/// connection: the number of bytes from the beginning, and the first 24 bytes of their SHA-256 in
/// hexadecimal digits.
///
/// Raises `ConnectionError` if the server does not answer or refuses the request.
#[pyfunction(signature = (to, name, length, /))]
pub(crate) fn udp_kept(
    py: Python<'_>,
    to: &str,
    name: &str,
    length: u64,
) -> PyResult<(u64, String)> {
    let to = address(to)?;
    if let Err(why) = check_name(name) {
        return Err(PyValueError::new_err(format!("a file cannot be sent as {name:?}: {why}")));
    }
    let mut asked = Some(question(name, length));
    let next = |message: &mut Vec<u8>| Ok(asked.take().map(|one| *message = one).is_some());
    let mut raised = None;
    let go_on = |_: &Progress| {
        raised = Python::attach(|py| py.check_signals().err());
        raised.is_none()
    };
    let answer = py.detach(|| send(to, Sending::default(), 512, next, go_on));
    if let Some(error) = raised {
        return Err(error);
    }
    let (digest, _) = answer.map_err(|error| lost(to, &error))?;
    let (offset, sum) = kept(digest);
    Ok((offset, hex(&sum)))
}

/// Settings of a transfer: the attributes of `sojourn.udp.Sending`, which has checked their ranges.
#[derive(FromPyObject)]
pub(crate) struct Chosen {
    mode: String,
    congestion: String,
    piece: u32,
    datagram: u16,
    patience: f64,
}

impl Chosen {
    fn settings(&self, py: Python<'_>, faults: &Arc<Faults>) -> PyResult<Sending> {
        let mode = match &*self.mode {
            "windowed" => Mode::Windowed,
            "stop-and-wait" => Mode::StopAndWait { processed: false },
            "stop-and-wait-processed" => Mode::StopAndWait { processed: true },
            other => {
                let known = "use windowed, stop-and-wait or stop-and-wait-processed";
                return Err(PyValueError::new_err(format!("unknown mode `{other}`: {known}")));
            }
        };
        Ok(Sending {
            chunk: self.datagram - DATA_HEADER as u16,
            mode,
            congestion: own::congestion::read(py, &self.congestion, faults)?,
            patience: (self.patience * SECOND as f64) as u64,
            ..Sending::default()
        })
    }
}

/// The messages of a file: its head, then pieces that a Python function reads.
struct Content {
    head: Option<Vec<u8>>,
    read: Py<PyAny>,
    /// Largest number of bytes in a message.
    piece: u32,
    /// Place of the next piece in the file, in bytes.
    at: u64,
    raised: Option<PyErr>,
}

impl Content {
    /// Writes the next message; returns whether there is one.
    fn next(&mut self, message: &mut Vec<u8>) -> std::io::Result<bool> {
        if let Some(head) = self.head.take() {
            *message = head;
            return Ok(true);
        }
        message.clear();
        message.push(1);
        message.extend(self.at.to_be_bytes());
        let length = Python::attach(|py| -> PyResult<usize> {
            let bytes = self.read.bind(py).call1((self.piece,))?;
            let bytes = bytes.cast::<PyBytes>()?.as_bytes();
            message.extend(bytes);
            Ok(bytes.len())
        });
        let length = length.map_err(|error| {
            self.raised = Some(error);
            std::io::Error::other("reading failed")
        })?;
        self.at += length as u64;
        Ok(length > 0)
    }
}

/// Reports the progress of a transfer to a Python function; returns whether the transfer goes on.
fn goes_on(now: &Progress, call: Option<&Py<PyAny>>, faults: &Faults) -> PyResult<bool> {
    Python::attach(|py| {
        py.check_signals()?;
        faults.check(())?;
        let Some(call) = call else { return Ok(true) };
        let rtt = now.rtt as f64 / SECOND as f64;
        let answer = call.bind(py).call1((now.counters.acknowledged, rtt, now.cwnd))?;
        Ok(answer.is_none() || answer.is_truthy()?)
    })
}

/// Sends a file. `read(n)` returns its next bytes, at most `n`, and none at the end. If `offset`,
/// which `udp_kept` returns, is above 0, the first call of `read` returns bytes from there.
/// `progress(bytes, rtt, cwnd)` is called regularly; the transfer stops if it returns `False`.
/// Returns the outcome as JSON.
///
/// Raises `ConnectionError` if the server does not answer or refuses the file.
#[pyfunction(signature = (to, name, read, settings, *, length=None, offset=0, progress=None))]
#[expect(clippy::too_many_arguments, reason = "arguments of the Python function")]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
pub(crate) fn udp_send(
    py: Python<'_>,
    to: &str,
    name: &str,
    read: Py<PyAny>,
    settings: Chosen,
    length: Option<u64>,
    offset: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let to = address(to)?;
    let fail = |why: String| Err(PyValueError::new_err(why));
    if let Err(why) = check_name(name) {
        return fail(format!("a file cannot be sent as {name:?}: {why}"));
    }
    let head = match (offset, length) {
        (0, _) => header(name, length),
        (_, Some(length)) if offset <= length => continuation(name, length, offset),
        _ => return fail(format!("`length` must be given and at least the offset, {offset}")),
    };
    let faults = Arc::new(Faults::default());
    let sending = settings.settings(py, &faults)?;
    let piece = settings.piece;
    let mut content = Content { head: Some(head), read, piece, at: offset, raised: None };
    let mut raised: Option<PyErr> = None;
    let outcome = py.detach(|| {
        let report = |now: &Progress| {
            goes_on(now, progress.as_ref(), &faults).unwrap_or_else(|error| {
                raised = Some(error);
                false
            })
        };
        // A message has a piece of the file and a header, or the name of the file.
        send(to, sending, piece as usize + 256, |message| content.next(message), report)
    });
    if let Some(error) = content.raised.or(raised).or_else(|| faults.take()) {
        return Err(error);
    }
    let (digest, last) = outcome.map_err(|error| lost(to, &error))?;
    json(&object!({
        "bytes": content.at,
        "sha256": hex(&digest),
        "datagrams": last.counters.sent,
        "repeated": last.counters.repeated,
        "lost": last.counters.lost,
        "timeouts": last.counters.timeouts,
        "rtt": last.rtt as f64 / SECOND as f64,
    }))
}

/// Converts the error of a transfer to a Python exception.
fn lost(to: SocketAddr, error: &SendError) -> PyErr {
    match error {
        SendError::Io(error) => PyOSError::new_err((error.raw_os_error(), error.to_string())),
        _ => PyConnectionError::new_err(format!("{to}: {error}")),
    }
}
