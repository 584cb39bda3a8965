//! Pacing: segments spread over the round-trip time.
//!
//! Source: Linux's internal pacing (`tcp_update_pacing_rate`, `tcp_update_skb_after_send`).
//! Idea: after the first ten, each segment moves the earliest departure of the next one by its
//! transmission time at the pacing rate. A late departure gives no credit; with `pacing_credit`, as
//! in Linux, it shortens the next gap, by half at most. If the host's queue holds packets until
//! their departure times (`fq`), no pacing timer runs, and segments enter that queue at once.
//! Invariants: `next` never moves back; the gap after a segment is at most [`MAX_GAP`].

use crate::receiver::NEVER;
use sojourn_congestion::{Congestion, Window};
use sojourn_units::{Nanos, SECOND};

/// Segments that leave unpaced at the beginning of a connection, as in Linux.
const FREE_SEGMENTS: u8 = 10;
/// The longest gap after one segment.
const MAX_GAP: Nanos = 10 * SECOND;

/// The pacer of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    enabled: bool,
    /// Whether the host's queue, and no timer, holds segments until their departures.
    delegates: bool,
    /// Whether a late departure shortens the gap after it.
    credit: bool,
    /// Lateness of the present super-packet, less the time by which it has shortened gaps.
    late: Nanos,
    /// Segments that may still leave unpaced.
    free: u8,
    /// The earliest departure of the next segment.
    next: Nanos,
    /// Whether the last [`Pacer::must_wait`] held a segment back.
    waiting: bool,
}

impl Pacer {
    pub(crate) fn new(enabled: bool) -> Self {
        Self {
            enabled,
            delegates: false,
            credit: false,
            late: 0,
            free: FREE_SEGMENTS,
            next: 0,
            waiting: false,
        }
    }

    /// Gives credit for late departures, if `credit`.
    #[must_use]
    pub(crate) fn with_credit(self, credit: bool) -> Self {
        Self { credit, ..self }
    }

    /// Lets the host's queue hold segments, if `delegates`.
    #[must_use]
    pub(crate) fn delegating(self, delegates: bool) -> Self {
        Self { delegates: delegates && self.enabled, ..self }
    }

    /// Returns the earliest departure of the next segment.
    pub(crate) fn earliest(&self) -> Nanos {
        self.next
    }

    /// Returns the earliest departure of the next segment, if segments are paced.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.enabled.then_some(self.next)
    }

    /// Returns whether segments are paced.
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns when a segment that was held back may leave; [`NEVER`] if none was.
    pub(crate) fn deadline(&self) -> Nanos {
        if self.waiting { self.next } else { NEVER }
    }

    /// Forgets that a segment was held back.
    pub(crate) fn reset(&mut self) {
        self.waiting = false;
    }

    /// Returns whether a segment must be held back at `now`.
    #[inline]
    pub(crate) fn must_wait(&mut self, now: Nanos) -> bool {
        self.late = 0;
        self.waiting = self.enabled && now < self.next && !self.delegates;
        self.waiting
    }

    /// Notes that `bytes` bytes left at `now`; `rate` returns the pacing rate in bytes per second.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Nanos, bytes: u64, rate: impl FnOnce() -> u64) {
        if !self.enabled {
            return;
        }
        if self.free > 0 {
            self.free -= 1;
            if self.credit {
                self.next = self.next.max(now);
            }
            return;
        }
        let mut gap = (bytes * SECOND / rate().max(1)).min(MAX_GAP);
        if self.credit {
            self.late = self.late.max(now.saturating_sub(self.next));
            let less = self.late.min(gap / 2);
            self.late -= less;
            gap -= less;
        }
        self.next = self.next.max(now) + gap;
    }
}

/// Returns the pacing rate in bytes per second: the control's own, or 1.2 times the larger of cwnd
/// and `flight` per round-trip time, 2 times in early slow start (`tcp_update_pacing_rate`).
pub(crate) fn pacing_rate(control: &Congestion, window: &Window, flight: u64, srtt: Nanos) -> u64 {
    if let Some(rate) = control.pacing_rate() {
        return rate.max(1);
    }
    let srtt = srtt.clamp(1, 100 * SECOND);
    let percent = if window.cwnd < window.ssthresh / 2 { 200 } else { 120 };
    let bytes = u128::from(window.cwnd.max(flight));
    let rate = bytes * percent * u128::from(SECOND) / (100 * u128::from(srtt));
    u64::try_from(rate).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;
    use proptest::prelude::*;
    use sojourn_units::{EPOCH, MILLISECOND};

    fn after_free_segments() -> Pacer {
        let mut pacer = Pacer::new(true);
        for _ in 0..FREE_SEGMENTS {
            pacer.on_sent(EPOCH, 1000, || 1);
            assert!(!pacer.must_wait(EPOCH));
        }
        pacer
    }

    #[test]
    fn the_gap_is_the_transmission_time_at_the_rate() {
        let mut pacer = after_free_segments();
        pacer.on_sent(EPOCH, 1000, || 1_000_000);
        assert_eq!(pacer.next(), Some(EPOCH + MILLISECOND));
        assert_eq!(pacer.deadline(), NEVER);
        assert!(pacer.must_wait(EPOCH + MILLISECOND - 1));
        assert_eq!(pacer.deadline(), EPOCH + MILLISECOND);
        assert!(!pacer.must_wait(EPOCH + MILLISECOND));
        assert_eq!(pacer.deadline(), NEVER);
    }

    #[test]
    fn silence_gives_no_credit() {
        let mut pacer = after_free_segments();
        pacer.on_sent(EPOCH, 1000, || 1_000_000);
        pacer.on_sent(EPOCH + SECOND, 1000, || 1_000_000);
        assert_eq!(pacer.next(), Some(EPOCH + SECOND + MILLISECOND));
    }

    #[test]
    fn with_credit_a_late_departure_shortens_the_gap_by_half_at_most() {
        let mut pacer = Pacer::new(true).with_credit(true);
        for _ in 0..FREE_SEGMENTS {
            pacer.on_sent(EPOCH, 1000, || 1);
        }
        pacer.on_sent(EPOCH, 1000, || 1_000_000);
        assert_eq!(pacer.next(), Some(EPOCH + MILLISECOND), "on time");
        let due = EPOCH + MILLISECOND;
        pacer.must_wait(due + MILLISECOND / 4);
        pacer.on_sent(due + MILLISECOND / 4, 1000, || 1_000_000);
        assert_eq!(pacer.next(), Some(due + MILLISECOND), "on time again");
        // Two segments that leave together, late by much.
        let late = EPOCH + SECOND;
        pacer.must_wait(late);
        pacer.on_sent(late, 1000, || 1_000_000);
        pacer.on_sent(late, 1000, || 1_000_000);
        assert_eq!(pacer.next(), Some(late + MILLISECOND));
    }

    #[test]
    fn without_pacing_nothing_waits_and_no_rate_is_computed() {
        let mut pacer = Pacer::new(false);
        for _ in 0..100 {
            pacer.on_sent(EPOCH, 1000, || unreachable!());
            assert!(!pacer.must_wait(EPOCH));
        }
        assert_eq!(pacer.next(), None);
    }

    #[test]
    fn the_rate_is_twice_the_window_per_round_trip_in_early_slow_start() {
        let mut window = Window::new(1000, 10);
        let control = Congestion::new(
            &sojourn_congestion::Params::Reno(sojourn_congestion::reno::Params {}),
            crate::sender::host(&Params::default()),
            &window,
        );
        assert_eq!(pacing_rate(&control, &window, 0, SECOND), 20_000);
        window.ssthresh = 15_000;
        assert_eq!(pacing_rate(&control, &window, 0, SECOND), 12_000);
        assert_eq!(pacing_rate(&control, &window, 20_000, SECOND), 24_000);
        assert_eq!(pacing_rate(&control, &window, 0, 0), 12_000 * SECOND);
    }

    proptest! {
        /// A sender that waits whenever it must never exceeds the rate by more than one segment.
        #[test]
        fn the_rate_is_an_upper_bound(
            rate in 1_000u64..1_000_000_000,
            steps in prop::collection::vec((1u64..10_000, 0u64..50 * MILLISECOND), 1..200),
        ) {
            let mut pacer = after_free_segments();
            let mut now = EPOCH;
            let mut sent = 0;
            for (bytes, pause) in steps {
                now += pause;
                if pacer.must_wait(now) {
                    now = pacer.deadline();
                    prop_assert!(!pacer.must_wait(now));
                }
                let allowed = u128::from(rate) * u128::from(now - EPOCH) / u128::from(SECOND);
                // Each gap is rounded down to a nanosecond: at most rate/SECOND + 1 bytes.
                let rounding = 200 * (u128::from(rate / SECOND) + 1);
                prop_assert!(u128::from(sent) <= allowed + rounding);
                pacer.on_sent(now, bytes, || rate);
                if bytes * SECOND / rate < MAX_GAP {
                    sent += bytes;
                }
            }
        }
    }
}
