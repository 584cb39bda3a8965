//! DCTCP: reduces the window by half the fraction of marked bytes.
//!
//! Source: RFC 8257, with the kernel's fixed-point format (alpha in 1/1024). With `count segments`
//! it follows all of Linux's `tcp_dctcp.c`: segments are counted, a reduction is in whole segments
//! (none while alpha times cwnd is below two), and marks of a window already count in the reduction
//! at the end of this window.
//! Idea: the receiver echoes every mark exactly. Once per window, the sender updates a moving
//! average alpha (gain 1/16) of the marked fraction, and it reduces cwnd by alpha/2 instead of
//! Reno's half. The reaction to a loss is Reno's.
//! Invariants: alpha is between 0 and 1024; at most one reduction per window of data.

use crate::control::{Control, ControlParams, EcnUse, Host};
use crate::hystart::{Count, HyStart};
use crate::reno;
use crate::whole;
use crate::window::{Ack, Cause, Window};
use sojourn_units::declare::integer;
use sojourn_units::{Nanos, params};

/// The number 1 in the fixed-point format of alpha.
const ONE: u64 = 1024;

params! {
    "dctcp": "Data Center TCP: reduces the window by half the fraction of marked bytes; ECN is on (accurate) unless set",
    from "RFC 8257";

    /// Parameters of DCTCP.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Params {
        /// Negative binary logarithm of the gain with which the marked fraction is averaged: the
        /// gain is 2^-shift (RFC 8257, section 3.3).
        shift: u32 = integer(0, 10, "4"),
        /// Initial value of the marked fraction, in 1/1024; with 1024 the first reaction to marks
        /// is the same as that of Reno (RFC 8257).
        initial_alpha: u64 = integer(0, ONE, "1024"),
    }
}

impl ControlParams for Params {
    type Control = Dctcp;

    fn ecn(&self) -> EcnUse {
        EcnUse::Exact
    }

    fn build(&self, host: Host, _window: &Window) -> Dctcp {
        Dctcp::new(*self, HyStart::new(host.slow_start))
    }
}

/// State of DCTCP.
#[derive(Clone, Debug)]
pub struct Dctcp {
    params: Params,
    hystart: HyStart,
    counted: u64,
    /// Smoothed fraction of marked bytes, in 1/1024.
    alpha: u64,
    acked: u64,
    marked: u64,
    window_end: u64,
    /// Counter of congestion avoidance in whole segments.
    count: whole::Count,
}

impl Dctcp {
    /// Returns the control of a new connection.
    pub fn new(params: Params, hystart: HyStart) -> Self {
        let alpha = params.initial_alpha.min(ONE);
        Self {
            params,
            hystart,
            counted: 0,
            alpha,
            acked: 0,
            marked: 0,
            window_end: 0,
            count: whole::Count::default(),
        }
    }

    fn is_whole(&self) -> bool {
        self.hystart.params().count == Count::Segments
    }

    /// Updates alpha at the end of a window: `share` is the marked fraction times the gain
    /// (`dctcp_update_alpha`).
    fn update(&mut self, share: u64, ack: &Ack) {
        let shift = self.params.shift.min(10);
        let part = self.alpha >> shift;
        // If alpha times the gain rounds to 0, all of alpha is subtracted, as in Linux.
        let decay = if part == 0 { self.alpha } else { part };
        self.alpha = (self.alpha - decay + share).min(ONE);
        self.acked = 0;
        self.marked = 0;
        self.window_end = ack.nxt;
    }

    /// Returns the smoothed fraction of marked bytes, in 1/1024.
    pub fn alpha(&self) -> u64 {
        self.alpha
    }
}

impl Control for Dctcp {
    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("alpha", i128::from(self.alpha));
    }

    fn before_reduction(&mut self, window: &Window, ack: &Ack) {
        if !self.is_whole() {
            return;
        }
        let delivered = whole::delivered(ack, window.mss);
        self.acked = self.acked.saturating_add(delivered);
        if ack.marked > 0 {
            self.marked = self.marked.saturating_add(delivered);
        }
        if ack.una >= self.window_end {
            let share = u128::from(self.marked) << (10 - self.params.shift.min(10));
            self.update((share / u128::from(self.acked.max(1))) as u64, ack);
        }
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if !self.is_whole() {
            self.acked = self.acked.saturating_add(ack.acked);
            self.marked = self.marked.saturating_add(ack.marked.min(ack.acked));
            if ack.una > self.window_end {
                let fraction = u128::from(self.marked) * u128::from(ONE);
                let fraction = (fraction / u128::from(self.acked.max(1))) as u64;
                self.update(fraction >> self.params.shift.min(10), ack);
            }
        }
        if !ack.may_grow || ack.acked == 0 {
            return;
        }
        let left = self.hystart.on_ack(window, ack);
        if left > 0 && self.is_whole() {
            self.count.avoid(window, window.segments(), left / window.mss);
        } else if left > 0 {
            reno::increase(window, &mut self.counted, left);
        }
    }

    fn reduce(&mut self, window: &Window, flight: u64, cause: Cause, _now: Nanos) -> u64 {
        self.counted = 0;
        self.count.reset();
        self.hystart.on_congestion();
        match cause {
            Cause::Ecn if self.is_whole() => {
                let cwnd = window.segments();
                (cwnd - cwnd * self.alpha / (2 * ONE)).max(2) * window.mss
            }
            Cause::Loss | Cause::Timeout if self.is_whole() => whole::half(window),
            Cause::Ecn => {
                let cut =
                    (u128::from(window.cwnd) * u128::from(self.alpha) / u128::from(2 * ONE)) as u64;
                (window.cwnd - cut).max(window.floor())
            }
            Cause::Loss | Cause::Timeout => reno::half(window, flight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dctcp() -> Dctcp {
        let slow_start = crate::hystart::Params { count: Count::Segments, ..Default::default() };
        Dctcp::new(Params::default(), HyStart::new(slow_start))
    }

    fn delivered(segments: u64, una: u64, marked: bool) -> Ack {
        let bytes = segments * 1000;
        let marked = if marked { bytes } else { 0 };
        Ack { acked: bytes, delivered: bytes, marked, una, nxt: una + 10_000, ..Ack::default() }
    }

    #[test]
    fn in_whole_segments_a_small_alpha_takes_nothing_away() {
        let mut dctcp = dctcp();
        let window = Window { cwnd: 20_000, ssthresh: 20_000, mss: 1000 };
        for (alpha, ssthresh) in [(1024, 10), (512, 15), (103, 19), (102, 20), (0, 20)] {
            dctcp.alpha = alpha;
            assert_eq!(dctcp.reduce(&window, 20_000, Cause::Ecn, 0), ssthresh * 1000, "{alpha}");
        }
    }

    /// alpha - alpha/16 + 64 marked/delivered, when all of the window is acknowledged.
    #[test]
    fn alpha_follows_before_the_window_is_reduced() {
        let mut dctcp = dctcp();
        let window = Window { cwnd: 20_000, ssthresh: 20_000, mss: 1000 };
        dctcp.window_end = 3000;
        dctcp.before_reduction(&window, &delivered(1, 2000, false));
        assert_eq!(dctcp.alpha(), 1024);
        dctcp.before_reduction(&window, &delivered(3, 3000, true));
        assert_eq!(dctcp.alpha(), 1024 - 64 + 48);
    }

    #[test]
    fn an_alpha_below_the_inverse_gain_falls_to_zero_in_one_window() {
        let mut dctcp = dctcp();
        let window = Window { cwnd: 20_000, ssthresh: 20_000, mss: 1000 };
        for (alpha, next) in [(32, 30), (16, 15), (15, 0), (1, 0), (0, 0)] {
            (dctcp.alpha, dctcp.window_end) = (alpha, 2000);
            dctcp.before_reduction(&window, &delivered(1, 2000, false));
            assert_eq!(dctcp.alpha(), next, "{alpha}");
        }
    }
}
