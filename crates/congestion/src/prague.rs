//! Prague: DCTCP for the Internet, the scalable control for L4S.
//!
//! Source: the reference implementation for Linux (`tcp_prague.c`, L4STeam), which
//! draft-briscoe-iccrg-prague-congestion-control describes; RFC 9331, section 4.
//! Idea: as in DCTCP, alpha is a moving average of the marked fraction, and a reduction is alpha/2
//! of the window, at most once per round. But L4S marks arrive continuously, so the window also
//! grows in rounds with a reduction (by the bytes acknowledged without a mark). In equilibrium
//! there are two to three marks per round. Rounds and growth are those of a flow with a round-trip
//! time of at least `rtt_target`, so that a short path does not give many times the rate of a long
//! one. For a new flow this applies only after `rtt_transition` rounds, and never in slow start.
//! Segments are paced over the round-trip time. A loss halves the window.
//! Invariants: alpha is between 0 and 1; at most one reduction per round; outside slow start the
//! window grows by at most a segment per round.
//!
//! With `classic_fallback` (off by default, as the reference's `prague_ecn_fallback`), a queue that
//! marks according to RFC 3168 is detected (`classic.rs`). The reaction to its marks then uses an
//! alpha of at least 5/8. If no exact echo of marks was negotiated, [`EcnUse::L4s`] replaces Prague
//! by Reno.

use crate::classic::Detector;
use crate::control::{Control, ControlParams, EcnUse, Host};
use crate::hystart::HyStart;
use crate::reno;
use crate::window::{Ack, Cause, MAX_WINDOW, SuperPacket, Window};
use sojourn_units::declare::{flag, integer, time};
use sojourn_units::{Nanos, SECOND, params};

/// The number 1 in the fixed-point format of alpha and of the growth's scale.
const ONE: u64 = 1 << 20;
/// Negative binary logarithm of the average's gain.
const GAIN: u32 = 4;

params! {
    "prague": "TCP Prague, for L4S: paced sending, and a small reduction for each round with marks; ECN is on (l4s) unless set",
    from "draft-briscoe-iccrg-prague-congestion-control, and its reference implementation for Linux";

    /// Parameters of Prague.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Params {
        /// Minimum round-trip time for growth and reductions: a flow with a shorter one behaves as
        /// if it had this value. 0 disables it.
        rtt_target: Nanos = time("25ms"),
        /// Number of rounds after the end of slow start, after which `rtt_target` applies.
        rtt_transition: u32 = integer(0, u32::MAX as u64, "500"),
        /// Whether queues that mark according to RFC 3168 are detected; their marks then reduce the
        /// window about as with CUBIC.
        classic_fallback: bool = flag(),
    }
}

impl ControlParams for Params {
    type Control = Prague;

    fn ecn(&self) -> EcnUse {
        EcnUse::L4s
    }

    fn build(&self, host: Host, window: &Window) -> Prague {
        Prague::new(*self, HyStart::new(host.slow_start), window)
    }
}

/// State of Prague.
#[derive(Clone, Debug)]
pub struct Prague {
    params: Params,
    hystart: HyStart,
    /// Smoothed fraction of marked bytes, in units of 1/(`ONE` * `2^GAIN`).
    upscaled: u64,
    /// Whether a mark has been received; before the first mark alpha is not updated.
    is_marked: bool,
    acked: u64,
    marked: u64,
    /// Sequence number at which the present round ends, and time of the last update of alpha in
    /// nanoseconds.
    round_end: u64,
    updated_at: Nanos,
    /// Number of rounds since the end of slow start.
    rounds: u32,
    /// Time of the last reduction in nanoseconds, and sequence number after the last byte sent
    /// before it.
    reduced_at: Nanos,
    reduced_end: u64,
    /// Growth that is not yet applied, below one byte, in 1/`ONE` bytes.
    fraction: u64,
    pacing: u64,
    detector: Detector,
}

impl Prague {
    /// Returns the control of a new connection.
    pub fn new(params: Params, hystart: HyStart, window: &Window) -> Self {
        Self {
            params,
            hystart,
            upscaled: ONE << GAIN,
            is_marked: false,
            acked: 0,
            marked: 0,
            round_end: 0,
            updated_at: 0,
            rounds: 0,
            reduced_at: 0,
            reduced_end: 0,
            fraction: 0,
            // Before the first round-trip time, the initial window is spread over a millisecond.
            pacing: window.cwnd.saturating_mul(1000),
            detector: Detector::default(),
        }
    }

    /// Returns the smoothed fraction of marked bytes, 0 to 1.
    pub fn alpha(&self) -> f64 {
        self.upscaled as f64 / (ONE << GAIN) as f64
    }

    /// Returns the minimum duration of a round for growth and reductions, in nanoseconds.
    fn patience(&self, window: &Window) -> Nanos {
        let is_patient = self.rounds >= self.params.rtt_transition && !window.in_slow_start();
        if is_patient { self.params.rtt_target } else { 0 }
    }

    /// Ends a round trip: counts it, and updates alpha.
    fn end_round(&mut self, window: &Window, ack: &Ack) {
        if ack.una <= self.round_end {
            return;
        }
        self.round_end = ack.nxt;
        if !window.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
        if ack.now.saturating_sub(self.updated_at) < self.patience(window) {
            return;
        }
        self.updated_at = ack.now;
        if self.is_marked {
            if self.params.classic_fallback {
                self.detector.end_round(ack.min_rtt);
            }
            let fraction =
                u128::from(self.marked) * u128::from(ONE) / u128::from(self.acked.max(1));
            self.upscaled = self.upscaled - (self.upscaled >> GAIN) + fraction as u64;
        }
        self.acked = 0;
        self.marked = 0;
    }

    /// Reduces the window by alpha/2, at most once per round.
    fn on_mark(&mut self, window: &mut Window, ack: &Ack) {
        self.is_marked = true;
        if ack.una <= self.reduced_end
            || ack.now.saturating_sub(self.reduced_at) < self.patience(window)
        {
            return;
        }
        self.reduced_at = ack.now;
        self.reduced_end = ack.nxt;
        self.hystart.on_congestion();
        let alpha = self.upscaled.max(self.detector.least_alpha() << GAIN);
        let cut = u128::from(window.cwnd) * u128::from(alpha) / u128::from((2 * ONE) << GAIN);
        window.ssthresh = (window.cwnd - cut as u64).max(window.floor());
        window.set_cwnd(window.cwnd.min(window.ssthresh));
    }

    /// Grows the window by one segment per window of bytes acknowledged without a mark, or by
    /// (srtt/target)^2 of a segment if srtt is below the target.
    fn increase(&mut self, window: &mut Window, acked: u64, srtt: Nanos) {
        let target = self.patience(window);
        let scale = if srtt == 0 || srtt >= target {
            ONE
        } else {
            // A round lasts `target`, which is target/srtt round trips. The window grows by
            // (srtt/target)^2 of a segment per round trip, and so by srtt/target per round.
            (u128::from(srtt) * u128::from(srtt) * u128::from(ONE)
                / (u128::from(target) * u128::from(target))) as u64
        };
        let acked = u128::from(acked.min(window.cwnd));
        let grown = acked * u128::from(window.mss) * u128::from(scale) / u128::from(window.cwnd);
        self.fraction += grown as u64;
        window.grow(self.fraction / ONE);
        self.fraction %= ONE;
    }

    fn pace(&mut self, window: &Window, srtt: Nanos) {
        if srtt == 0 {
            return;
        }
        // In slow start below half of ssthresh, the rate is doubled.
        let gain = if window.cwnd < window.ssthresh / 2 { 2 } else { 1 };
        let rate =
            u128::from(window.cwnd.min(MAX_WINDOW)) * u128::from(gain * SECOND) / u128::from(srtt);
        self.pacing = u64::try_from(rate).unwrap_or(u64::MAX).max(1);
    }
}

impl Control for Prague {
    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("alpha", i128::from(self.upscaled >> GAIN));
        visit("rounds", i128::from(self.rounds));
        visit("fraction", i128::from(self.fraction));
        visit("classic", i128::from(self.detector.score()));
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if self.params.classic_fallback {
            self.detector.on_rtt(ack.rtt, window);
        }
        let marked = ack.marked.min(ack.acked);
        self.acked = self.acked.saturating_add(ack.acked);
        self.marked = self.marked.saturating_add(marked);
        self.end_round(window, ack);
        if marked > 0 && !ack.in_recovery {
            self.on_mark(window, ack);
        }
        let unmarked = Ack { acked: ack.acked - marked, ..*ack };
        if ack.may_grow && unmarked.acked > 0 {
            let left = self.hystart.on_ack(window, &unmarked);
            if left > 0 {
                self.increase(window, left, ack.srtt);
            }
        }
        self.pace(window, ack.srtt);
    }

    fn reduce(&mut self, window: &Window, flight: u64, _cause: Cause, _now: Nanos) -> u64 {
        self.fraction = 0;
        self.hystart.on_congestion();
        reno::half(window, flight)
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing)
    }

    fn super_packet(&self) -> SuperPacket {
        // Data of about a quarter of a millisecond (`prague_burst_shift`), at least one segment.
        SuperPacket { shift: 12, least: 1, larger_nearby: false }
    }

    fn answers_marks(&self) -> bool {
        true
    }
}
