//! CUBIC: a window that is a cubic function of the time since the last congestion event.
//!
//! Source: RFC 9438; where Linux's `tcp_cubic` does otherwise, [`Variant::Linux`]. Idea: after a reduction the window climbs quickly back to where the loss was
//! (`W_max`), rests there, then probes beyond it ever faster; growth depends on time and not on the
//! round-trip time. Where Reno would have more, it takes what Reno would (the Reno-friendly region).
//! Invariants: a reduction multiplies by beta (0.7) and leaves two segments at least; in the
//! concave region cwnd does not pass half as much again in one round trip.
//!
//! Windows are counted in segments as real numbers, or (`count segments` and `variant linux`) in whole
//! ones, in `bictcp.rs`; of the former, the only function that is not plain arithmetic
//! is the cube root, from `libm`, so all platforms agree.

use crate::bictcp::Bictcp;
use crate::control::{Control, ControlParams};
use crate::hystart::{self, Count, HyStart};
use crate::window::{Ack, Cause, MAX_WINDOW, Window};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, choice, on_off, real};
use sojourn_units::time::seconds;
use sojourn_units::words::Table;
use sojourn_units::{Nanos, SECOND, choices, params};

choices! {
    /// Whose CUBIC.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Variant {
        /// The RFC's.
        #[default]
        Rfc9438 = "rfc9438",
        /// Linux's: until the first loss, and after a timeout, the window grows by a twentieth each
        /// round trip at least; it looks ahead by the least round-trip time, not the smoothed one;
        /// its estimate of Reno keeps its slope; a reduction starts from cwnd, not from what was
        /// outstanding.
        Linux = "linux",
    }
}

params! {
    /// What the user sets.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Params {
        /// Whose CUBIC: the RFC's, or Linux's, which grows by a twentieth each round trip until the
        /// first loss, looks ahead by the least round-trip time, and reduces from cwnd.
        #[serde(default)]
        variant: Variant = choice("linux").initially(|()| Variant::Rfc9438),
        /// Factor that a reduction multiplies the window by.
        beta: f64 = real(0.1, 0.95, "0.7"), // RFC 9438, section 4.6
        /// Growth in segments per second cubed.
        c: f64 = real(0.001, 100.0, "0.4"), // section 5
        /// Release bandwidth to new flows.
        fast_convergence: bool = on_off("on"), // section 4.7
        /// Be no slower than Reno.
        reno_friendly: bool = on_off("on"), // section 4.3
    }
}

impl ControlParams for Params {
    const TABLE: Table = Table {
        name: "cubic",
        summary: "TCP with CUBIC: the window is a cubic function of the time since the last loss",
        source: "RFC 9438",
        words: Self::WORDS,
    };

    type Control = Cubic;

    fn has_hystart(&self) -> bool {
        true
    }

    fn build(&self, slow_start: hystart::Params, _window: &Window) -> Cubic {
        Cubic::new(*self, HyStart::new(slow_start))
    }
}

/// What a reduction changed, for undo.
#[derive(Clone, Copy, Debug)]
struct Saved {
    w_max: f64,
    k: f64,
    origin: f64,
    epoch: Nanos,
    w_est: f64,
    cwnd_prior: f64,
}

/// What it remembers.
#[derive(Clone, Debug)]
pub struct Cubic {
    params: Params,
    hystart: HyStart,
    /// Start of the present congestion avoidance, 0 for none.
    epoch: Nanos,
    /// Window before the last reduction, in segments (lowered by fast convergence).
    w_max: f64,
    /// The plateau of the present epoch.
    origin: f64,
    /// Seconds from the epoch's start to the plateau.
    k: f64,
    /// What Reno would have.
    w_est: f64,
    /// cwnd when the window was last reduced.
    cwnd_prior: f64,
    /// Growth that is not a whole byte yet.
    fraction: f64,
    saved: Option<Saved>,
    /// Linux's arithmetic in whole segments, which then holds all of the state.
    whole: Option<Bictcp>,
}

/// Of a window whose bounds are not known yet, this part is added each round trip (Linux's `cnt` of 20).
const SEARCH: f64 = 1.0 / 20.0;

impl Cubic {
    fn is_linux(&self) -> bool {
        self.params.variant == Variant::Linux
    }

    /// A new control.
    pub fn new(params: Params, hystart: HyStart) -> Self {
        let slow_start = hystart.params();
        let is_whole = slow_start.count == Count::Segments && params.variant == Variant::Linux;
        let classic = slow_start.kind == hystart::Kind::Classic;
        let whole = is_whole.then(|| {
            let Params { beta, c, fast_convergence, reno_friendly, .. } = params;
            Bictcp::new(beta, c, fast_convergence, reno_friendly, classic)
        });
        Self {
            params,
            whole,
            hystart: hystart.without_classic(is_whole).cushioned(params.variant == Variant::Linux),
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

    /// The cubic function `span` after the epoch's start.
    fn w_cubic(&self, span: Nanos) -> f64 {
        let t = seconds(span) - self.k;
        self.origin + self.params.c * t * t * t
    }
}

impl Control for Cubic {
    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        if let Some(whole) = &self.whole {
            return whole.state(visit);
        }
        visit("epoch", i128::from(self.epoch));
        visit("w_max_milli", (self.w_max * 1000.0) as i128);
        visit("k_ns", (self.k * SECOND as f64) as i128);
        visit("w_est_milli", (self.w_est * 1000.0) as i128);
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if let Some(whole) = &mut self.whole {
            whole.on_sample(window, ack);
        }
        if !ack.may_grow || ack.acked == 0 {
            return;
        }
        let left = self.hystart.on_ack(window, ack);
        if left == 0 {
            return;
        }
        if let Some(whole) = &mut self.whole {
            return whole.on_ack(window, ack.now, left / window.mss);
        }
        let mss = window.mss as f64;
        let cwnd = window.cwnd as f64 / mss;
        if self.epoch == 0 {
            self.begin_epoch(ack.now, cwnd);
        }
        let elapsed = ack.now.saturating_sub(self.epoch);
        let segments = left.min(MAX_WINDOW) as f64 / mss;
        // The window to be reached one round trip from now, section 4.2.
        let ahead = if self.is_linux() { ack.min_rtt } else { ack.srtt };
        let target = self.w_cubic(elapsed.saturating_add(ahead)).clamp(cwnd, 1.5 * cwnd);
        let mut grown = (target - cwnd) / cwnd * segments;
        if self.is_linux() && self.w_max == 0.0 {
            grown = grown.max(SEARCH * segments);
        }
        if self.params.reno_friendly {
            let beta = self.params.beta;
            // Section 4.3: after passing the window of the last reduction, Reno's own slope.
            let passed = self.w_est >= self.cwnd_prior && !self.is_linux();
            let alpha = if passed { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
            self.w_est += alpha * segments / cwnd;
            if self.is_linux() {
                // Over a round trip, as all growth there.
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

    fn reduce(&mut self, window: &Window, flight: u64, cause: Cause, _now: Nanos) -> u64 {
        if let Some(whole) = &mut self.whole {
            self.hystart.on_congestion();
            return whole.reduce(window, cause);
        }
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
        self.hystart.on_congestion();
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

    fn on_undo(&mut self) {
        if let Some(saved) = self.saved.take() {
            self.w_max = saved.w_max;
            self.k = saved.k;
            self.origin = saved.origin;
            self.epoch = saved.epoch;
            self.w_est = saved.w_est;
            self.cwnd_prior = saved.cwnd_prior;
        }
    }

    fn on_restart(&mut self, _window: &mut Window, now: Nanos, idle: Nanos) {
        if let Some(whole) = &mut self.whole {
            whole.on_restart(now, idle);
        }
        // Time in which nothing could be sent does not count (section 5.8).
        if self.epoch > 0 {
            self.epoch = self.epoch.saturating_add(idle).min(now);
        }
    }
}
