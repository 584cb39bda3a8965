//! Probes of a closed window.
//!
//! Source: RFC 9293, section 3.8.6.1 (RFC 1122, 4.2.2.17).
//! Idea: data waits for a closed window, and nothing is outstanding. The acknowledgement that opens
//! the window may be lost. So probes leave after one retransmission timeout, then at doubled
//! intervals. Their answers report the window.
//! Invariant: probing ends when the window opens; it never closes the connection.

use crate::receiver::NEVER;
use crate::rtt::Rtt;
use sojourn_units::Nanos;

/// The persist timer.
#[derive(Clone, Debug)]
pub(crate) struct Persist {
    at: Nanos,
    backoff: u32,
    /// Whether the timer has expired and the probe has not left.
    due: bool,
}

impl Persist {
    pub(crate) fn new() -> Self {
        Self { at: NEVER, backoff: 0, due: false }
    }

    /// Returns when the timer expires.
    pub(crate) fn deadline(&self) -> Nanos {
        self.at
    }

    /// Data waits for the window; starts the timer if it is not running.
    pub(crate) fn start(&mut self, now: Nanos, rtt: &Rtt) {
        if self.at == NEVER {
            self.at = rtt.later(now, rtt.backed_off(self.backoff));
        }
    }

    /// Stops the timer, since data was sent whose acknowledgement reports the window.
    pub(crate) fn stop(&mut self) {
        self.at = NEVER;
    }

    /// Stops the timer and its backoff, since the window is open.
    #[inline]
    pub(crate) fn on_open(&mut self) {
        self.at = NEVER;
        self.backoff = 0;
    }

    /// Makes a probe due if the timer has expired at `now`.
    pub(crate) fn expire(&mut self, now: Nanos) {
        if now >= self.at {
            self.at = NEVER;
            self.due = true;
        }
    }

    /// Returns whether a probe is due, once for each expiry.
    pub(crate) fn take_due(&mut self) -> bool {
        self.due && std::mem::take(&mut self.due)
    }

    /// A probe left: the interval doubles.
    pub(crate) fn on_probe(&mut self, now: Nanos, rtt: &Rtt) {
        self.backoff = (self.backoff + 1).min(32);
        self.at = rtt.later(now, rtt.backed_off(self.backoff));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;
    use sojourn_units::{EPOCH, SECOND};

    #[test]
    fn probes_at_doubled_intervals_until_the_window_opens() {
        let rtt = Rtt::new(&Params::parse("reno profile rfc").unwrap());
        let mut persist = Persist::new();
        persist.start(EPOCH, &rtt);
        persist.start(EPOCH + 1, &rtt);
        let mut at = EPOCH + SECOND;
        for interval in [2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(persist.deadline(), at);
            persist.expire(at - 1);
            assert!(!persist.take_due());
            persist.expire(at);
            assert!(persist.take_due() && !persist.take_due());
            persist.on_probe(at, &rtt);
            at += interval * SECOND;
        }
        persist.on_open();
        assert_eq!(persist.deadline(), NEVER);
        persist.start(EPOCH, &rtt);
        assert_eq!(persist.deadline(), EPOCH + SECOND);
    }
}
