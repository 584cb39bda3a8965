//! Measurements from which the receive window grows.
//!
//! Source: Linux's `tcp_rcv_space_adjust` and `tcp_rcv_rtt_measure`.
//! Idea: the bytes that the application reads in a round-trip time are half of the window needed.
//! Invariants: the greatest number of bytes never falls, except when the window does.

use sojourn_units::{MILLISECOND, Nanos};

/// Bytes that the application reads in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    /// Maximum number of bytes that the application has read in a round.
    pub(super) read: u64,
    /// Time and sequence number at the start of the present round; 0 before the first one.
    pub(super) at: Nanos,
    pub(super) from: u64,
}

/// The receiver's estimate of the round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// Nanoseconds; 0 without a sample.
    pub(super) time: Nanos,
    /// Sequence number whose arrival ends the present sample, and time of the sample's start.
    edge: u64,
    at: Nanos,
}

impl RoundTrip {
    /// Takes a sample; a shorter one replaces the average if `takes_least`.
    #[inline]
    pub(super) fn add(&mut self, rtt: Nanos, takes_least: bool) {
        let is_new = self.time == 0 || (takes_least && rtt < self.time);
        self.time = if is_new { rtt } else { self.time - self.time / 8 + rtt / 8 };
    }

    /// Takes the arrival of the data before `nxt`; `edge` is the right edge of the window. The
    /// shortest time in which one window arrives counts as a round-trip time.
    #[inline]
    pub(super) fn on_data(&mut self, now: Nanos, nxt: u64, edge: u64) {
        if self.at == 0 || nxt >= self.edge {
            if self.at != 0 {
                let round = (now - self.at).max(MILLISECOND);
                if self.time == 0 || round < self.time {
                    self.time = round;
                }
            }
            self.at = now;
            self.edge = edge;
        }
    }
}
