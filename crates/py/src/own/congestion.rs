//! Congestion controls written in Python.

use super::faults::Faults;
use super::loaded::{Loaded, alone, visit_state};
use super::views::{Draws, shown};
use super::watch::Asked;
use crate::errors::PolicyError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_congestion::external::{self, Fault, Policy};
use sojourn_congestion::{Ack as Report, Cause, MAX_WINDOW, Window as Bytes};
use sojourn_units::external::{Code, Value};
use sojourn_units::{Nanos, SECOND};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An acknowledgement, as a user's congestion control reads it. Sizes are in bytes, times in
/// nanoseconds.
#[pyclass(frozen, get_all, module = "sojourn._core")]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent of each other")]
pub(crate) struct Ack {
    /// Number of acknowledgements before this one.
    number: u64,
    /// Bytes newly acknowledged cumulatively.
    acked: u64,
    /// Bytes newly reported as received, cumulatively or selectively.
    delivered: u64,
    /// Bytes newly declared lost.
    lost: u64,
    /// Acknowledged bytes that are covered by an echo of congestion (ECN).
    marked: u64,
    /// Sequence number of the first unacknowledged byte.
    una: u64,
    /// Sequence number of the first byte that has not been sent.
    nxt: u64,
    /// Bytes in flight before the acknowledgement.
    prior_in_flight: u64,
    /// Bytes in flight after the acknowledgement.
    in_flight: u64,
    /// Round-trip time of this acknowledgement; 0 if it gives no sample.
    rtt: u64,
    /// Smoothed round-trip time; 0 before the first sample.
    srtt: u64,
    /// Least round-trip time of the last five minutes; 0 before the first sample.
    min_rtt: u64,
    /// Whether the window may grow: new data is acknowledged, and no reduction is in progress.
    may_grow: bool,
    /// Whether the window, not the application or the receiver, limited the sender (RFC 7661).
    cwnd_limited: bool,
    /// Whether the sender is repairing losses.
    in_recovery: bool,
    /// Whether the sender has no more data that it could send.
    app_limited: bool,
    /// Delivery rate in bytes per second; `None` if this acknowledgement gives no sample.
    rate: Option<u64>,
    /// Whether the sender ran out of data during the rate sample.
    rate_app_limited: bool,
    /// Total bytes delivered since the start of the connection.
    total_delivered: u64,
    /// Value of `total_delivered` when the newest acknowledged segment was sent.
    prior_delivered: u64,
}

impl Ack {
    fn new(number: u64, ack: &Report) -> Self {
        let rate = &ack.rate;
        let per_second = u128::from(rate.delivered) * u128::from(SECOND);
        Self {
            number,
            acked: ack.acked,
            delivered: ack.delivered,
            lost: ack.lost,
            marked: ack.marked,
            una: ack.una,
            nxt: ack.nxt,
            prior_in_flight: ack.prior_in_flight,
            in_flight: ack.in_flight,
            rtt: ack.rtt,
            srtt: ack.srtt,
            min_rtt: ack.min_rtt,
            may_grow: ack.may_grow,
            cwnd_limited: ack.cwnd_limited,
            in_recovery: ack.in_recovery,
            app_limited: ack.app_limited,
            rate: per_second.checked_div(u128::from(rate.interval)).map(|rate| rate as u64),
            rate_app_limited: rate.app_limited,
            total_delivered: rate.total,
            prior_delivered: rate.prior_delivered,
        }
    }
}

#[pymethods]
impl Ack {
    fn __repr__(&self) -> String {
        format!("ACK {} ({} bytes)", self.number, self.acked)
    }
}

/// The congestion window of a connection, as a user's congestion control reads and sets it. Sizes
/// are in bytes.
#[pyclass(module = "sojourn._core")]
pub(crate) struct Window {
    bytes: Bytes,
    pacing_rate: Option<u64>,
}

/// Checks a number of bytes that a policy sets, and returns it without its fraction.
fn bytes(name: &str, value: &Bound<'_, PyAny>, least: u64, most: u64) -> PyResult<u64> {
    let given: Option<f64> = value.extract().ok();
    match given {
        Some(number) if number >= least as f64 && number <= most as f64 => Ok(number as u64),
        _ => Err(PolicyError::new_err(format!(
            "{name} must be a number from {least} to {most}, found {}",
            shown(value)
        ))),
    }
}

#[pymethods]
impl Window {
    /// Maximum number of bytes in flight, from one segment to 1 GiB.
    #[getter]
    fn cwnd(&self) -> u64 {
        self.bytes.cwnd
    }

    #[setter]
    fn set_cwnd(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.bytes.cwnd = bytes("cwnd", value, self.bytes.mss, MAX_WINDOW)?;
        Ok(())
    }

    /// Returns the window below which slow start applies, at least two segments.
    #[getter]
    fn ssthresh(&self) -> u64 {
        self.bytes.ssthresh
    }

    #[setter]
    fn set_ssthresh(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.bytes.ssthresh = bytes("ssthresh", value, self.bytes.floor(), MAX_WINDOW)?;
        Ok(())
    }

    /// Returns the payload of a full segment in bytes.
    #[getter]
    fn mss(&self) -> u64 {
        self.bytes.mss
    }

    /// Returns whether the window is below `ssthresh`.
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.bytes.in_slow_start()
    }

    /// Pacing rate in bytes per second; `None` to use the transport's own rate.
    #[getter]
    fn pacing_rate(&self) -> Option<u64> {
        self.pacing_rate
    }

    #[setter]
    fn set_pacing_rate(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let set = |value| bytes("pacing_rate", value, 1, 1 << 50);
        self.pacing_rate = if value.is_none() { None } else { Some(set(value)?) };
        Ok(())
    }
}

/// Returns the parameters of a congestion control for the UDP transport. `text` is either a name,
/// or the JSON of a user's congestion control and its sources.
pub(crate) fn read(
    py: Python<'_>,
    text: &str,
    faults: &Arc<Faults>,
) -> PyResult<sojourn_congestion::Params> {
    let Some((mut params, sources)) = alone::<external::Params>(text)? else {
        let known = ["cubic", "reno", "bbr"].contains(&text);
        return sojourn_congestion::Params::named(text).filter(|_| known).ok_or_else(|| {
            PyValueError::new_err(format!(
                "unknown congestion control `{text}`: use cubic, reno, bbr, or a class of your \
                 own (FILE:CLASS)"
            ))
        });
    };
    let loaded = Loaded::new(py, &params.spec, &sources, faults)?;
    params.code = code(loaded, &params.spec.params);
    Ok(params.into())
}

/// Creates instances of a user's class for congestion controls.
struct Factory {
    loaded: Arc<Loaded>,
    values: BTreeMap<String, Value>,
}

/// Returns the code of a user's class for congestion controls.
pub(crate) fn code(
    loaded: Loaded,
    values: &BTreeMap<String, Value>,
) -> Code<dyn external::Factory> {
    Code::new(Arc::new(Factory { loaded: Arc::new(loaded), values: values.clone() }))
}

impl external::Factory for Factory {
    fn create(&self, window: &mut Bytes, now: Nanos, draw: u32) -> Result<Box<dyn Policy>, Fault> {
        let mut policy = self.loaded.make(|py| {
            let draws = Bound::new(py, Draws::keyed(draw.into()))?.into_any();
            let others = PyDict::new(py);
            others.set_item("mss", window.mss)?;
            let object = self.loaded.instance(py, &self.values, &others, Some(draws))?;
            PyPolicy::new(py, &object, self.loaded.clone())
        })?;
        policy.ask("on_start", now, window, |_, object, window| {
            let known = object.hasattr("on_start")?;
            if known { object.call_method1("on_start", (window,)).map(|_| ()) } else { Ok(()) }
        })?;
        Ok(Box::new(policy))
    }

    fn on_fault(&self, now: Nanos, fault: &Fault) {
        self.loaded.faults.report(&self.loaded.name, "__init__ or on_start", now, &fault.0);
    }
}

/// An instance of a user's class for congestion controls.
struct PyPolicy {
    loaded: Arc<Loaded>,
    object: Py<PyAny>,
    on_ack: Py<PyAny>,
    window: Py<Window>,
    pacing_rate: Option<u64>,
    acks: u64,
    /// Name of the called method, for error messages.
    asked: &'static str,
    now: Nanos,
}

impl PyPolicy {
    fn new(py: Python<'_>, object: &Bound<'_, PyAny>, loaded: Arc<Loaded>) -> PyResult<Self> {
        Ok(Self {
            loaded,
            on_ack: object.getattr("on_ack")?.unbind(),
            object: object.clone().unbind(),
            window: Py::new(py, Window { bytes: Bytes::new(1, 1), pacing_rate: None })?,
            pacing_rate: None,
            acks: 0,
            asked: "__init__",
            now: 0,
        })
    }

    /// Calls the instance with a view of `window`, and copies the changed values back.
    fn ask<T>(
        &mut self,
        method: &'static str,
        now: Nanos,
        window: &mut Bytes,
        call: impl for<'py> FnOnce(&Self, &Bound<'py, PyAny>, &Bound<'py, Window>) -> PyResult<T>,
    ) -> Result<T, Fault> {
        (self.asked, self.now) = (method, now);
        Python::attach(|py| {
            let view = self.window.bind(py);
            view.borrow_mut().bytes = *window;
            let number = self.acks.checked_sub(1);
            let asked = Asked { method, number, now };
            let call = || call(self, self.object.bind(py), view);
            let result = self.loaded.call(py, asked, call);
            let after = view.borrow();
            *window = after.bytes;
            let pacing_rate = after.pacing_rate;
            drop(after);
            self.pacing_rate = pacing_rate;
            result
        })
    }

    /// Calls a method if the class has it.
    fn call_optional(
        &mut self,
        method: &'static str,
        now: Nanos,
        window: &mut Bytes,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>, &Bound<'py, Window>) -> PyResult<()>,
    ) -> Result<(), Fault> {
        self.ask(method, now, window, |_, object, window| {
            if object.hasattr(method)? { call(object, window) } else { Ok(()) }
        })
    }
}

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Loss => "loss",
        Cause::Ecn => "ecn",
        Cause::Timeout => "timeout",
    }
}

impl Policy for PyPolicy {
    fn on_ack(&mut self, window: &mut Bytes, ack: &Report) -> Result<(), Fault> {
        let view = Ack::new(self.acks, ack);
        self.acks += 1;
        self.ask("on_ack", ack.now, window, |policy, object, window| {
            policy.on_ack.bind(object.py()).call1((ack.now, view, window)).map(|_| ())
        })
    }

    fn reduce(
        &mut self,
        window: &Bytes,
        flight: u64,
        cause: Cause,
        now: Nanos,
    ) -> Result<u64, Fault> {
        let name = cause_name(cause);
        self.ask("reduce", now, &mut window.clone(), |_, object, window| {
            let answer = object.call_method1("reduce", (now, name, flight, window))?;
            bytes("the new ssthresh that `reduce` returns", &answer, 0, MAX_WINDOW)
        })
    }

    fn on_undo(&mut self) -> Result<(), Fault> {
        let any = &mut Bytes::new(1, 1);
        self.call_optional("on_undo", self.now, any, |object, _| {
            object.call_method0("on_undo").map(|_| ())
        })
    }

    fn on_recovery_exit(&mut self, window: &mut Bytes) -> Result<(), Fault> {
        self.call_optional("on_recovery_exit", self.now, window, |object, window| {
            object.call_method1("on_recovery_exit", (window,)).map(|_| ())
        })
    }

    fn on_restart(&mut self, window: &Bytes, now: Nanos, idle: Nanos) -> Result<(), Fault> {
        self.call_optional("on_restart", now, &mut window.clone(), |object, window| {
            object.call_method1("on_restart", (now, idle, window)).map(|_| ())
        })
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.pacing_rate
    }

    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        Python::attach(|py| visit_state(&self.loaded, self.object.bind(py), visit));
    }

    fn copy(&self) -> Box<dyn Policy> {
        Python::attach(|py| {
            let object = self.loaded.copy(self.object.bind(py));
            let window = Window { bytes: Bytes::new(1, 1), pacing_rate: self.pacing_rate };
            Box::new(Self {
                loaded: self.loaded.clone(),
                on_ack: object.getattr("on_ack").map_or_else(|_| py.None(), Bound::unbind),
                object: object.unbind(),
                window: Py::new(py, window).expect("memory for a window"),
                ..*self
            })
        })
    }

    fn on_fault(&mut self, now: Nanos, fault: &Fault) {
        let place = match (self.asked, self.acks.checked_sub(1)) {
            ("on_ack", Some(number)) => format!("on_ack of ACK {number}"),
            (method, Some(number)) => format!("{method} after ACK {number}"),
            (method, None) => format!("{method} before the first ACK"),
        };
        self.loaded.faults.report(&self.loaded.name, &place, now, &fault.0);
    }
}

/// Returns the parameters of a user's congestion control from their JSON.
pub(crate) fn control_params(json: &str) -> PyResult<external::Params> {
    let fail = |why: String| PyValueError::new_err(why);
    match serde_json::from_str(json).map_err(|e| fail(e.to_string()))? {
        sojourn_congestion::Params::External(params) => Ok(params),
        other => {
            Err(fail(format!("`{}` is a built-in congestion control, not a user's", other.name())))
        }
    }
}
