//! The smallest round-trip time of BBR version 3.
//!
//! Source: draft-ietf-ccwg-bbr ("Updating `min_rtt`").
//! Idea: a minimum of the last seconds decides when to probe the round-trip time; it updates the
//! minimum of a longer time, from which the bandwidth-delay product is computed.
//! Invariants: each value is a sample, or `Nanos::MAX` before the first one.

use crate::window::Ack;
use sojourn_units::Nanos;

/// Minimum of the round-trip times of some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    /// Round-trip time in nanoseconds.
    pub(super) rtt: Nanos,
    /// Time of the sample.
    pub(super) at: Nanos,
}

/// The smallest round-trip times.
#[derive(Clone, Debug)]
pub(super) struct MinRtt {
    /// Minimum of the last `min_rtt_window` (`min_rtt`).
    pub(super) long: Least,
    /// Minimum of the last `probe_rtt_interval` (`probe_rtt_min_delay`).
    pub(super) short: Least,
    /// Whether the round-trip time is to be probed (`probe_rtt_expired`).
    pub(super) is_probe_due: bool,
}

impl MinRtt {
    /// Returns the state before the first sample; the times are valid from `now` on.
    pub(super) fn new(now: Nanos) -> Self {
        let none = Least { rtt: Nanos::MAX, at: now };
        Self { long: none, short: none, is_probe_due: false }
    }

    /// Takes the round-trip time of an acknowledgement. The minimums are valid for `short` and
    /// `long` nanoseconds (`UpdateMinRTT`).
    pub(super) fn update(&mut self, ack: &Ack, short: Nanos, long: Nanos) {
        let due = self.short.at.saturating_add(short);
        self.is_probe_due = self.short.rtt != Nanos::MAX && ack.now > due;
        if ack.rtt > 0 && (ack.rtt < self.short.rtt || self.is_probe_due) {
            self.short = Least { rtt: ack.rtt, at: ack.now };
        }
        let expired = ack.now > self.long.at.saturating_add(long);
        if self.short.rtt < self.long.rtt || expired {
            self.long = self.short;
        }
    }
}
