//! Reno's additive increase, multiplicative decrease.
//!
//! Source: RFC 5681 (slow start, congestion avoidance), RFC 3465 (appropriate byte counting); the
//! recovery of RFC 6582 is part of the transport.
//! Idea: one segment more per round trip; on congestion half the flight, or half of cwnd with
//! `count segments`. With `abc on` the control counts acknowledged data, so delayed
//! acknowledgements make no difference. Stacks before RFC 3465, and ns-3's `TcpNewReno`, count
//! acknowledgements: with one per two segments, the window grows by half a segment per round trip.
//! Invariants: the counter of congestion avoidance stays below cwnd; after a reduction at least two
//! segments remain.

use crate::control::{Control, ControlParams, Host};
use crate::hystart::{self, Count, HyStart};
use crate::whole;
use crate::window::{Ack, Cause, Window};
use sojourn_units::{Nanos, params};

params! {
    "reno": "TCP with Reno's congestion control: adds one segment per round trip, and halves the window on loss",
    from "RFC 5681, RFC 6582, RFC 3465";

    /// Reno has no parameters except those of slow start.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params {}
}

impl ControlParams for Params {
    type Control = Reno;

    fn build(&self, host: Host, _window: &Window) -> Reno {
        Reno::new(host.slow_start)
    }
}

/// State of Reno.
#[derive(Clone, Debug)]
pub struct Reno {
    hystart: HyStart,
    /// Bytes acknowledged in congestion avoidance that have not yet made cwnd grow.
    counted: u64,
    /// Number of segments acknowledged in congestion avoidance since the last growth of cwnd
    /// (`count segments`).
    count: whole::Count,
}

impl Reno {
    /// Returns the control of a new connection.
    pub fn new(mut slow_start: hystart::Params) -> Self {
        if !slow_start.byte_counting {
            slow_start.limit = 1;
        }
        Self { hystart: HyStart::new(slow_start), counted: 0, count: whole::Count::default() }
    }
}

/// Adds one segment to the window for each acknowledged window (additive increase).
#[inline]
pub(super) fn increase(window: &mut Window, counted: &mut u64, acked: u64) {
    *counted += acked.min(window.cwnd);
    if *counted >= window.cwnd {
        *counted -= window.cwnd;
        window.grow(window.mss);
    }
}

/// Returns half of the flight, or of cwnd if it is smaller, in bytes, at least two segments. It is
/// rounded down to whole segments, as in stacks that count bytes: the rest could not carry a
/// segment.
#[inline]
pub(super) fn half(window: &Window, flight: u64) -> u64 {
    let half = flight.min(window.cwnd) / 2;
    (half - half % window.mss).max(window.floor())
}

impl Control for Reno {
    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("counted", i128::from(self.counted));
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if !ack.may_grow || ack.acked == 0 {
            return;
        }
        let mut left = self.hystart.on_ack(window, ack);
        if left > 0 && !self.hystart.params().byte_counting {
            left = window.mss;
        }
        if left > 0 && self.hystart.params().count == Count::Segments {
            self.count.avoid(window, window.segments(), left / window.mss);
        } else if left > 0 {
            increase(window, &mut self.counted, left);
        }
    }

    fn reduce(&mut self, window: &Window, flight: u64, _cause: Cause, _now: Nanos) -> u64 {
        self.counted = 0;
        self.count.reset();
        self.hystart.on_congestion();
        if self.hystart.params().count == Count::Segments {
            return whole::half(window);
        }
        half(window, flight)
    }
}

#[cfg(test)]
mod tests {
    use super::super::hystart::{Count, Kind, Params};
    use super::*;

    /// Segments gained over one round trip in congestion avoidance, one ACK for two segments.
    fn gained(byte_counting: bool) -> u64 {
        let params = Params { kind: Kind::None, limit: 2, byte_counting, count: Count::Bytes };
        let mut reno = Reno::new(params);
        let mut window = Window { cwnd: 40_000, ssthresh: 40_000, mss: 1000 };
        for _ in 0..5 * 20 {
            let ack = Ack { acked: 2000, may_grow: true, cwnd_limited: true, ..Ack::default() };
            reno.on_ack(&mut window, &ack);
        }
        (window.cwnd - 40_000) / 1000
    }

    #[test]
    fn in_whole_segments_half_of_cwnd_is_rounded_down_and_at_least_two() {
        let mut reno = Reno::new(Params { count: Count::Segments, ..Params::default() });
        for (cwnd, ssthresh) in [(1, 2), (2, 2), (3, 2), (5, 2), (7, 3)] {
            let window = Window { cwnd: cwnd * 1000, ssthresh: 1 << 20, mss: 1000 };
            assert_eq!(reno.reduce(&window, 100_000, Cause::Loss, 0), ssthresh * 1000);
        }
    }

    #[test]
    fn in_whole_segments_small_windows_grow_by_one_each_round() {
        let mut reno = Reno::new(Params { count: Count::Segments, ..Params::default() });
        let mut window = Window { cwnd: 2000, ssthresh: 2000, mss: 1000 };
        let mut seen = Vec::new();
        for _ in 0..7 {
            // A small segment at the end counts as one.
            let (may_grow, cwnd_limited) = (true, true);
            let ack =
                Ack { acked: 1100, delivered: 1100, may_grow, cwnd_limited, ..Ack::default() };
            reno.on_ack(&mut window, &ack);
            seen.push(window.cwnd / 1000);
        }
        assert_eq!(seen, [3, 3, 4, 4, 5, 5, 6]);
    }

    #[test]
    fn counts_bytes_or_acknowledgements() {
        // 100 ACKs of two segments: 200 segments in windows of 40, 41, ... or 100.
        assert_eq!(gained(true), 4);
        assert_eq!(gained(false), 2);
    }

    #[test]
    fn slow_start_without_byte_counting_adds_one_segment_an_ack() {
        for (byte_counting, expected) in [(true, 12_000), (false, 11_000)] {
            let params = Params { kind: Kind::None, limit: 2, byte_counting, count: Count::Bytes };
            let mut reno = Reno::new(params);
            let mut window = Window::new(1000, 10);
            let ack = Ack { acked: 2000, may_grow: true, cwnd_limited: true, ..Ack::default() };
            reno.on_ack(&mut window, &ack);
            assert_eq!(window.cwnd, expected);
        }
    }
}
