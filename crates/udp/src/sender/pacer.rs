//! Pacing in bursts of up to a millisecond.
//!
//! Idea: a token bucket fills at the pacing rate. If it is empty, the sender rests until a whole
//! burst may be sent, so that it wakes seldom.
//! Invariants: the bucket holds at most the greater of ten segments and the data of a
//! millisecond.

use sojourn_units::{Nanos, SECOND};

/// Maximum burst in bytes.
const BURST: f64 = 65_536.0;

/// Pacing rate, and payload of a full datagram, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Bytes per second.
    pub(super) rate: f64,
    pub(super) mss: f64,
}

impl Pace {
    /// Returns the length of a burst in bytes: the data of one millisecond, but at least two
    /// segments and at most [`BURST`], as in Linux's TCP.
    fn burst(self) -> f64 {
        (self.rate / 1000.0).min(BURST).max(2.0 * self.mss)
    }
}

/// The pacer.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    /// Bytes that may be sent; the value is valid for the time `refilled`.
    tokens: f64,
    refilled: Nanos,
    /// Whether the sender waits until a whole burst may be sent.
    pub(super) is_resting: bool,
}

impl Pacer {
    /// Begins at `now` with an empty bucket.
    pub(super) fn start(&mut self, now: Nanos) {
        self.refilled = now;
    }

    /// Fills the bucket at the rate `pace`.
    pub(super) fn refill(&mut self, now: Nanos, pace: Pace) {
        if now > self.refilled {
            let most = (10.0 * pace.mss).max(pace.rate / 1000.0);
            let since = (now - self.refilled) as f64 / SECOND as f64;
            self.tokens = (self.tokens + pace.rate * since).min(most);
            self.refilled = now;
            self.is_resting &= self.tokens < pace.burst();
        }
    }

    /// Returns the time at which a whole burst may be sent.
    pub(super) fn resumes_at(&self, pace: Pace) -> Nanos {
        let wait = (pace.burst() - self.tokens) / pace.rate * SECOND as f64;
        self.refilled + wait.max(0.0) as Nanos + 1
    }

    /// A datagram of `bytes` bytes leaves.
    pub(super) fn on_sent(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
        self.is_resting = self.tokens < 0.0;
    }
}
