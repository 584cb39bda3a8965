//! CUBIC: a window that is a cubic function of the time since the last congestion event.
//!
//! Source: RFC 9438; deviations of Linux's `tcp_cubic` are in [`Variant::Linux`].
//! Idea: after a reduction the window grows quickly towards the size at which the loss occurred
//! (`W_max`), stays near it, then probes beyond it at an increasing speed. Growth depends on time
//! and not on the round-trip time. Where Reno's window would be larger, CUBIC uses Reno's (the
//! Reno-friendly region).
//! Invariants: a reduction leaves at least two segments; in the concave region cwnd grows by at
//! most half in one round trip.
//!
//! Windows are real numbers of segments, or (with `count segments` and `variant linux`) whole
//! numbers, in `bictcp.rs`. With real numbers, the only function beyond plain arithmetic is the
//! cube root, from `libm`, so all platforms agree.

use crate::bictcp::Bictcp;
use crate::control::{Control, ControlParams, Host};
use crate::hystart::{self, Count, HyStart};
use crate::window::{Ack, Cause, MAX_WINDOW, Window};
use sojourn_units::declare::{choice, on_off, real};
use sojourn_units::time::seconds;
use sojourn_units::{Nanos, SECOND, choices, params};

choices! {
    /// Definition of CUBIC that is followed.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Variant {
        /// RFC 9438.
        #[default]
        Rfc9438 = "rfc9438",
        /// Linux. Until the first loss, and after a timeout, the window grows by at least a
        /// twentieth per round trip. The target is one least round-trip time ahead, not one
        /// smoothed round-trip time. The estimate of Reno's window keeps its slope. A reduction
        /// starts from cwnd, not from the outstanding data.
        Linux = "linux",
    }
}

params! {
    "cubic": "TCP with CUBIC: the window is a cubic function of the time since the last loss",
    from "RFC 9438";

    /// Parameters of CUBIC.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Params {
        /// Definition of CUBIC: RFC 9438, or Linux, which grows by at least a twentieth per round
        /// trip until the first loss, plans ahead by the least round-trip time, and reduces from
        /// cwnd.
        #[serde(default)]
        variant: Variant = choice("linux").initially(|()| Variant::Rfc9438),
        /// Factor by which a reduction multiplies the window (RFC 9438, section 4.6).
        beta: f64 = real(0.1, 0.95, "0.7"),
        /// Growth in segments per second cubed (RFC 9438, section 5).
        c: f64 = real(0.001, 100.0, "0.4"),
        /// Whether a flow releases bandwidth to new flows (fast convergence; RFC 9438, section
        /// 4.7).
        fast_convergence: bool = on_off("on"),
        /// Whether the window grows at least as fast as Reno's (RFC 9438, section 4.3).
        reno_friendly: bool = on_off("on"),
    }
}

impl ControlParams for Params {
    type Control = Cubic;

    fn has_hystart(&self) -> bool {
        true
    }

    fn build(&self, host: Host, _window: &Window) -> Cubic {
        Cubic::new(*self, HyStart::new(host.slow_start), host.hz)
    }
}

/// State before the last reduction, which an undo restores.
#[derive(Clone, Copy, Debug)]
struct Saved {
    w_max: f64,
    k: f64,
    origin: f64,
    epoch: Nanos,
    w_est: f64,
    cwnd_prior: f64,
}

/// State of CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    hystart: HyStart,
    window: Form,
}

/// The computation of the window.
#[derive(Clone, Debug)]
enum Form {
    /// Computation in real numbers of segments.
    Real(Box<Real>),
    /// Linux's computation in whole segments.
    Whole(Bictcp),
}

/// The window in real numbers of segments.
#[derive(Clone, Debug)]
struct Real {
    params: Params,
    /// Start of the present congestion avoidance; 0 outside congestion avoidance.
    epoch: Nanos,
    /// Window before the last reduction, in segments (lowered by fast convergence).
    w_max: f64,
    /// Window at the plateau of the present epoch, in segments.
    origin: f64,
    /// Time from the epoch's start to the plateau, in seconds.
    k: f64,
    /// Estimate of Reno's window, in segments.
    w_est: f64,
    /// cwnd at the last reduction, in segments.
    cwnd_prior: f64,
    /// Growth that is not yet applied, below one byte.
    fraction: f64,
    saved: Option<Saved>,
}

/// Linux: minimum growth per round trip before the first loss, relative to the window (`cnt` of
/// 20).
const SEARCH: f64 = 1.0 / 20.0;

impl Cubic {
    /// Returns the control of a new connection, on a host with `hz` ticks per second.
    pub fn new(params: Params, hystart: HyStart, hz: u32) -> Self {
        let slow_start = hystart.params();
        let is_linux = params.variant == Variant::Linux;
        let is_whole = slow_start.count == Count::Segments && is_linux;
        let window = if is_whole {
            let Params { beta, c, fast_convergence, reno_friendly, .. } = params;
            let classic = slow_start.kind == hystart::Kind::Classic;
            Form::Whole(Bictcp::new(beta, c, fast_convergence, reno_friendly, classic, hz))
        } else {
            Form::Real(Box::new(Real::new(params)))
        };
        Self { window, hystart: hystart.without_classic(is_whole).cushioned(is_linux) }
    }
}

impl Real {
    fn new(params: Params) -> Self {
        Self {
            params,
            epoch: 0,
            w_max: 0.0,
            origin: 0.0,
            k: 0.0,
            w_est: 0.0,
            cwnd_prior: 0.0,
            fraction: 0.0,
            saved: None,
        }
    }

    fn is_linux(&self) -> bool {
        self.params.variant == Variant::Linux
    }

    fn begin_epoch(&mut self, now: Nanos, cwnd: f64) {
        self.epoch = now.max(1);
        self.w_est = cwnd;
        self.fraction = 0.0;
        if cwnd < self.w_max {
            self.k = libm::cbrt((self.w_max - cwnd) / self.params.c);
            self.origin = self.w_max;
        } else {
            self.k = 0.0;
            self.origin = cwnd;
        }
    }

    /// Returns the cubic function in segments at `span` nanoseconds after the epoch's start.
    fn w_cubic(&self, span: Nanos) -> f64 {
        let t = seconds(span) - self.k;
        self.origin + self.params.c * t * t * t
    }

    /// Grows the window after `acked` bytes in congestion avoidance.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack, acked: u64) {
        let mss = window.mss as f64;
        let cwnd = window.cwnd as f64 / mss;
        if self.epoch == 0 {
            self.begin_epoch(ack.now, cwnd);
        }
        let elapsed = ack.now.saturating_sub(self.epoch);
        let segments = acked.min(MAX_WINDOW) as f64 / mss;
        // Section 4.2: the target is the window of the cubic function one round trip from now.
        let ahead = if self.is_linux() { ack.min_rtt } else { ack.srtt };
        let target = self.w_cubic(elapsed.saturating_add(ahead)).clamp(cwnd, 1.5 * cwnd);
        let mut grown = (target - cwnd) / cwnd * segments;
        if self.is_linux() && self.w_max == 0.0 {
            grown = grown.max(SEARCH * segments);
        }
        if self.params.reno_friendly {
            let beta = self.params.beta;
            // Section 4.3: when the estimate has reached the window before the last reduction, it
            // grows as fast as Reno. Linux omits this.
            let passed = self.w_est >= self.cwnd_prior && !self.is_linux();
            let alpha = if passed { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
            self.w_est += alpha * segments / cwnd;
            if self.is_linux() {
                // Linux spreads the growth over a round trip, and limits it to half a segment for
                // each acknowledged segment.
                grown = grown.max((self.w_est - cwnd) / cwnd * segments).min(segments / 2.0);
            } else if self.w_cubic(elapsed) < self.w_est {
                grown = (self.w_est - cwnd).clamp(0.0, segments);
            }
        }
        let bytes = grown * mss + self.fraction;
        let whole = bytes as u64;
        self.fraction = bytes - whole as f64;
        window.grow(whole);
    }

    /// Returns the new ssthresh in bytes.
    fn reduce(&mut self, window: &Window, flight: u64, cause: Cause) -> u64 {
        self.saved = Some(Saved {
            w_max: self.w_max,
            k: self.k,
            origin: self.origin,
            epoch: self.epoch,
            w_est: self.w_est,
            cwnd_prior: self.cwnd_prior,
        });
        let mss = window.mss as f64;
        let cwnd = window.cwnd as f64 / mss;
        self.epoch = 0;
        self.cwnd_prior = cwnd;
        self.w_max = if self.params.fast_convergence && cwnd < self.w_max {
            cwnd * (1.0 + self.params.beta) / 2.0
        } else {
            cwnd
        };
        if self.is_linux() && cause == Cause::Timeout {
            self.w_max = 0.0;
        }
        let base = if self.is_linux() { window.cwnd } else { flight.min(window.cwnd) } as f64;
        ((base * self.params.beta) as u64).max(window.floor())
    }

    fn undo(&mut self) {
        if let Some(saved) = self.saved.take() {
            self.w_max = saved.w_max;
            self.k = saved.k;
            self.origin = saved.origin;
            self.epoch = saved.epoch;
            self.w_est = saved.w_est;
            self.cwnd_prior = saved.cwnd_prior;
        }
    }

    /// Excludes an idle period of `idle` nanoseconds from the epoch (section 5.8).
    fn on_restart(&mut self, now: Nanos, idle: Nanos) {
        if self.epoch > 0 {
            self.epoch = self.epoch.saturating_add(idle).min(now);
        }
    }
}

impl Control for Cubic {
    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        match &self.window {
            Form::Whole(whole) => whole.state(visit),
            Form::Real(real) => {
                visit("epoch", i128::from(real.epoch));
                visit("w_max_milli", (real.w_max * 1000.0) as i128);
                visit("k_ns", (real.k * SECOND as f64) as i128);
                visit("w_est_milli", (real.w_est * 1000.0) as i128);
            }
        }
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if let Form::Whole(whole) = &mut self.window {
            whole.on_sample(window, ack);
        }
        if !ack.may_grow || ack.acked == 0 {
            return;
        }
        let left = self.hystart.on_ack(window, ack);
        if left == 0 {
            return;
        }
        match &mut self.window {
            Form::Whole(whole) => whole.on_ack(window, ack.now, left / window.mss),
            Form::Real(real) => real.on_ack(window, ack, left),
        }
    }

    fn reduce(&mut self, window: &Window, flight: u64, cause: Cause, _now: Nanos) -> u64 {
        self.hystart.on_congestion();
        match &mut self.window {
            Form::Whole(whole) => whole.reduce(window, cause),
            Form::Real(real) => real.reduce(window, flight, cause),
        }
    }

    fn on_undo(&mut self) {
        if let Form::Real(real) = &mut self.window {
            real.undo();
        }
    }

    fn on_restart(&mut self, _window: &mut Window, now: Nanos, idle: Nanos) {
        match &mut self.window {
            Form::Whole(whole) => whole.on_restart(now, idle),
            Form::Real(real) => real.on_restart(now, idle),
        }
    }
}
