//! A test bench with which `sojourn check` calls a user's congestion control step by step.

use super::congestion::{code, control_params};
use super::faults::Faults;
use super::loaded::Loaded;
use pyo3::prelude::*;
use sojourn_congestion::external::{External, Params};
use sojourn_congestion::{Ack, Cause, Control, RateSample, Start, Window};
use sojourn_units::{Bytes, EPOCH, Nanos};
use std::sync::Arc;

/// Initial window of a connection in segments.
const INITIAL_SEGMENTS: u64 = 10;

/// Result of a step: window and slow start threshold in bytes, and pacing rate in bytes per second.
type Step = (Bytes, Bytes, Option<u64>);

/// A user's congestion control with the window of one connection, for tests.
#[pyclass(module = "sojourn._core")]
pub(crate) struct ControlBench {
    control: External,
    window: Window,
    una: u64,
    /// Window before the last reduction; `None` before the first reduction, and after an undo.
    before: Option<Window>,
    faults: Arc<Faults>,
}

impl ControlBench {
    fn step(&self) -> PyResult<Step> {
        self.faults.check((self.window.cwnd, self.window.ssthresh, self.control.pacing_rate()))
    }
}

#[pymethods]
impl ControlBench {
    #[new]
    #[pyo3(signature = (control_json, sources_json, mss, draw=1, /))]
    fn new(
        py: Python<'_>,
        control_json: &str,
        sources_json: &str,
        mss: u64,
        draw: u32,
    ) -> PyResult<Self> {
        let params = control_params(control_json)?;
        let faults = Arc::new(Faults::default());
        let loaded = Loaded::alone(py, &params.spec, sources_json, &faults)?;
        let params = Params { code: code(loaded, &params.spec.params), ..params };
        let (control, window) = (External::new(&params), Window::new(mss, INITIAL_SEGMENTS));
        let mut bench = Self { control, window, una: 1, before: None, faults };
        bench.control.on_start(&mut bench.window, &Start { now: EPOCH, srtt: 0, draw });
        bench.step()?;
        Ok(bench)
    }

    /// Processes an acknowledgement of `acked` bytes, of which `marked` are covered by an echo of
    /// congestion. `rtt` is the round-trip time, or 0 without a sample.
    #[pyo3(signature = (now, acked, marked, rtt, cwnd_limited, in_recovery, /))]
    fn on_ack(
        &mut self,
        now: Nanos,
        acked: Bytes,
        marked: Bytes,
        rtt: Nanos,
        cwnd_limited: bool,
        in_recovery: bool,
    ) -> PyResult<Step> {
        self.una += acked;
        let in_flight = self.window.cwnd.saturating_sub(acked);
        let ack = Ack {
            now,
            acked,
            delivered: acked,
            marked,
            una: self.una,
            nxt: self.una + in_flight,
            prior_in_flight: in_flight + acked,
            in_flight,
            rtt,
            srtt: rtt,
            min_rtt: rtt,
            may_grow: !in_recovery,
            cwnd_limited,
            in_recovery,
            app_limited: !cwnd_limited,
            rate: RateSample {
                delivered: in_flight + acked,
                interval: rtt,
                prior_delivered: self.una.saturating_sub(in_flight + acked),
                total: self.una,
                app_limited: !cwnd_limited,
                in_flight: in_flight + acked,
                lost: 0,
            },
            ..Ack::default()
        };
        self.control.on_ack(&mut self.window, &ack);
        self.step()
    }

    /// Reduces the window as a transport does: to the new slow start threshold, unless the control
    /// owns the window, or to one segment after a timeout.
    #[pyo3(signature = (now, cause, /))]
    fn reduce(&mut self, now: Nanos, cause: &str) -> PyResult<Step> {
        let cause = match cause {
            "ecn" => Cause::Ecn,
            "timeout" => Cause::Timeout,
            _ => Cause::Loss,
        };
        self.before = Some(self.window);
        let ssthresh = self.control.reduce(&self.window, self.window.cwnd, cause, now);
        self.window.ssthresh = ssthresh;
        if cause == Cause::Timeout {
            self.window.set_cwnd(self.window.mss);
        } else if !self.control.owns_window() {
            self.window.set_cwnd(self.window.cwnd.min(ssthresh));
        }
        self.step()
    }

    /// Undoes the last reduction, as after a spurious one.
    fn undo(&mut self) -> PyResult<Step> {
        if let Some(before) = self.before.take() {
            self.window.cwnd = self.window.cwnd.max(before.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(before.ssthresh);
            self.control.on_undo();
        }
        self.step()
    }

    /// Reports the end of loss recovery.
    fn recovery_exit(&mut self) -> PyResult<Step> {
        self.control.on_recovery_exit(&mut self.window);
        self.step()
    }

    /// Reports that sending restarts after an idle time of `idle` nanoseconds.
    #[pyo3(signature = (now, idle, /))]
    fn restart(&mut self, now: Nanos, idle: Nanos) -> PyResult<Step> {
        self.control.on_restart(&mut self.window, now, idle);
        self.step()
    }

    /// Returns whether the congestion control itself responds to ECN marks.
    #[getter]
    fn answers_marks(&self) -> bool {
        self.control.answers_marks()
    }

    /// Returns an independent copy of the bench in its current state.
    fn copy(&self) -> PyResult<Self> {
        let copy = Self { control: self.control.clone(), faults: self.faults.clone(), ..*self };
        copy.step()?;
        Ok(copy)
    }
}
