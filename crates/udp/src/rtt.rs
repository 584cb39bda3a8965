//! Measurement of the round-trip time (RFC 6298; RFC 9002, section 5).

use sojourn_units::{MILLISECOND, Nanos, SECOND};

/// Latest, least and smoothed round-trip time, and its variation, in nanoseconds; 0 before the
/// first sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    pub(crate) latest: Nanos,
    pub(crate) least: Nanos,
    pub(crate) smoothed: Nanos,
    variation: Nanos,
}

impl Rtt {
    pub(crate) fn sample(&mut self, rtt: Nanos) {
        let rtt = rtt.clamp(1, 60 * SECOND);
        self.latest = rtt;
        if self.smoothed == 0 {
            (self.least, self.smoothed, self.variation) = (rtt, rtt, rtt / 2);
            return;
        }
        self.least = self.least.min(rtt);
        self.variation = (3 * self.variation + self.smoothed.abs_diff(rtt)) / 4;
        self.smoothed = (7 * self.smoothed + rtt) / 8;
    }

    /// Returns the time in nanoseconds after which an acknowledgement is overdue, at least `least`.
    pub(crate) fn timeout(&self, least: Nanos) -> Nanos {
        if self.smoothed == 0 {
            return SECOND.max(least);
        }
        (self.smoothed + (4 * self.variation).max(MILLISECOND)).max(least)
    }

    /// Returns the time in nanoseconds after which a datagram counts as lost if a later one was
    /// acknowledged: 9/8 of the round-trip time, and at least 1 ms.
    pub(crate) fn reordering(&self) -> Nanos {
        (self.smoothed.max(self.latest) * 9 / 8).max(MILLISECOND)
    }
}
