//! Probes of a closed window.
//!
//! Source: RFC 9293, section 3.8.6.1 (RFC 1122, 4.2.2.17).
//! Idea: data waits for a window that is closed, and nothing is outstanding that would bring news of
//! it. A probe after one retransmission timeout, then at doubled intervals, asks for it.
//! Invariant: the probing ends only when the window opens; it never gives the connection up.

use crate::receiver::NEVER;
use crate::rtt::Rtt;
use sojourn_units::Nanos;

/// The persist timer.
#[derive(Clone, Debug)]
pub(crate) struct Persist {
    at: Nanos,
    backoff: u32,
    /// The timer expired; the probe has not left.
    due: bool,
}

impl Persist {
    pub(crate) fn new() -> Self {
        Self { at: NEVER, backoff: 0, due: false }
    }

    /// When the timer expires.
    #[inline]
    pub(crate) fn deadline(&self) -> Nanos {
        self.at
    }

    /// Data waits for the window; starts the timer if it is not running.
    pub(crate) fn start(&mut self, now: Nanos, rtt: &Rtt) {
        if self.at == NEVER {
            self.at = rtt.later(now, rtt.backed_off(self.backoff));
        }
    }

    /// Data was sent: its acknowledgement brings the news.
    #[inline]
    pub(crate) fn stop(&mut self) {
        self.at = NEVER;
    }

    /// The window is open.
    #[inline]
    pub(crate) fn on_open(&mut self) {
        self.at = NEVER;
        self.backoff = 0;
    }

    /// Time has passed.
    pub(crate) fn expire(&mut self, now: Nanos) {
        if now >= self.at {
            self.at = NEVER;
            self.due = true;
        }
    }

    /// Whether a probe is to leave now; asked once.
    #[inline]
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
