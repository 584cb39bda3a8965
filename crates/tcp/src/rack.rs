//! RACK: losses by time; and the tail loss probe.
//!
//! Source: RFC 8985. Idea: a segment is lost if one sent well after it has been delivered. "Well"
//! starts as a quarter of the least round-trip time and grows with each round in which a
//! retransmission proved unnecessary. If acknowledgements stop, one probe after two round-trip
//! times brings the acknowledgement that lets RACK (or SACK) see the loss of a tail.
//! Invariants: the newest delivered departure never goes back; at most one probe is outstanding.

use crate::scoreboard::DUP_THRESH;
use sojourn_units::{MILLISECOND, Nanos, SECOND};

/// Recoveries for which a wider reordering window is kept.
const PERSIST: u32 = 16;
/// A delayed ACK may take this long (RFC 8985, section 7.2; Linux: the least RTO).
const MAX_ACK_DELAY: Nanos = 200 * MILLISECOND;

/// RACK's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// Departure and end of the delivered segment that was sent last.
    pub(crate) newest: (Nanos, u64),
    rtt: Nanos,
    /// Reordering has been seen.
    reordering: bool,
    steps: u32,
    persist: u32,
    /// A D-SACK was counted; no more until this is acknowledged.
    round_end: u64,
}

impl Rack {
    pub(crate) fn new() -> Self {
        Self { steps: 1, ..Self::default() }
    }

    /// Segments were delivered.
    #[inline]
    pub(crate) fn update(&mut self, now: Nanos, newest: (Nanos, u64), reordered: bool) {
        self.reordering |= reordered;
        if newest.0 > 0 {
            self.rtt = now - newest.0;
            self.newest = self.newest.max(newest);
        }
    }

    /// A D-SACK: the reordering window was too small.
    pub(crate) fn on_duplicate(&mut self, una: u64, nxt: u64) {
        self.reordering = true;
        if una >= self.round_end {
            self.round_end = nxt;
            self.steps = (self.steps + 1).min(255);
            self.persist = PERSIST;
        }
    }

    /// A loss recovery is over.
    pub(crate) fn on_recovery_exit(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// How long after its departure a segment is lost.
    #[inline]
    pub(crate) fn delay(&self, in_recovery: bool, sacked: u64, min: Nanos, srtt: Nanos) -> Nanos {
        let window = if !self.reordering && (in_recovery || sacked >= DUP_THRESH) {
            0
        } else {
            (u64::from(self.steps) * (min / 4)).min(srtt)
        };
        self.rtt + window
    }
}

/// When a tail loss probe is due, from the last transmission.
#[inline]
pub(crate) fn probe_timeout(srtt: Nanos, one_in_flight: bool, ack_delay: Option<Nanos>) -> Nanos {
    if srtt == 0 {
        return SECOND;
    }
    let delay = if one_in_flight { ack_delay.unwrap_or(MAX_ACK_DELAY) } else { 2 * MILLISECOND };
    2 * srtt + delay
}
