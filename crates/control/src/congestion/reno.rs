//! Reno's additive increase, multiplicative decrease.
//!
//! Source: RFC 5681 (slow start, congestion avoidance), RFC 3465 (appropriate byte counting);
//! RFC 6582's recovery is the transport's.
//! Idea: one segment more each round trip, half the flight on congestion. Bytes acknowledged are
//! counted, not acknowledgements, so delayed and split acknowledgements make no difference.
//! Invariants: the counter of congestion avoidance stays below cwnd; a reduction leaves at least
//! two segments.

use super::hystart::HyStart;
use super::{Ack, Cause, Control, Window};
use sojourn_units::Nanos;

/// What it remembers.
#[derive(Clone, Debug)]
pub struct Reno {
    hystart: HyStart,
    /// Bytes acknowledged in congestion avoidance since cwnd last grew.
    counted: u64,
}

impl Reno {
    /// A new control.
    pub fn new(hystart: HyStart) -> Self {
        Self { hystart, counted: 0 }
    }
}

/// Additive increase: one segment for each window acknowledged.
#[inline]
pub(super) fn increase(window: &mut Window, counted: &mut u64, acked: u64) {
    *counted += acked.min(window.cwnd);
    if *counted >= window.cwnd {
        *counted -= window.cwnd;
        window.grow(window.mss);
    }
}

/// Half of what was outstanding, at least two segments.
#[inline]
pub(super) fn half(window: &Window, flight: u64) -> u64 {
    (flight.min(window.cwnd) / 2).max(window.floor())
}

impl Control for Reno {
    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("counted", i128::from(self.counted));
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if !ack.may_grow || ack.acked == 0 {
            return;
        }
        let left = self.hystart.on_ack(window, ack);
        if left > 0 {
            increase(window, &mut self.counted, left);
        }
    }

    fn reduce(&mut self, window: &Window, flight: u64, _cause: Cause, _now: Nanos) -> u64 {
        self.counted = 0;
        self.hystart.on_congestion();
        half(window, flight)
    }
}
