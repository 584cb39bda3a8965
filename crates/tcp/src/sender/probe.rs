//! Tail loss probes.
//!
//! Source: RFC 8985, section 7. Idea: if no acknowledgement arrives for two round-trip times and
//! a margin, one segment is sent as a probe. Its acknowledgement lets RACK or SACK detect the loss
//! of the last segments.
//! Invariant: at most one probe is outstanding.

use crate::receiver::NEVER;
use sojourn_units::{MILLISECOND, Nanos, SECOND};

/// Assumed longest delay of an ACK (section 7.2; Linux: the minimum RTO).
const MAX_ACK_DELAY: Nanos = 200 * MILLISECOND;
/// Linux's addition to two round-trip times if more than one segment is in flight.
const MARGIN: Nanos = 2 * MILLISECOND;

/// The probe timer, and the probe that is outstanding.
#[derive(Clone, Debug)]
pub(crate) struct TailProbe {
    enabled: bool,
    at: Nanos,
    /// Whether the timer has expired and the probe has not left.
    due: bool,
    /// `TLP.end_seq`: SND.NXT after the probe was sent; 0 if no probe is outstanding.
    end: u64,
    /// `TLP.is_retrans`: whether the probe was a retransmission.
    is_retransmission: bool,
}

impl TailProbe {
    pub(crate) fn new(enabled: bool) -> Self {
        Self { enabled, at: NEVER, due: false, end: 0, is_retransmission: false }
    }

    /// Returns when the timer expires.
    pub(crate) fn deadline(&self) -> Nanos {
        self.at
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns whether a probe is outstanding.
    pub(crate) fn is_outstanding(&self) -> bool {
        self.end != 0
    }

    /// Starts the timer, after a transmission or an acknowledgement (section 7.2).
    #[inline]
    pub(crate) fn start(&mut self, at: Nanos) {
        self.at = at;
    }

    /// Stops the timer.
    pub(crate) fn stop(&mut self) {
        self.at = NEVER;
    }

    /// Stops the timer, and drops a probe that is due.
    #[inline]
    pub(crate) fn cancel(&mut self) {
        self.at = NEVER;
        self.due = false;
    }

    /// Stops the timer and forgets the outstanding probe, since the retransmission timer expired.
    pub(crate) fn reset(&mut self) {
        self.cancel();
        self.end = 0;
    }

    /// Returns whether the timer has expired at `now`, which makes a probe due (section 7.3).
    pub(crate) fn expire(&mut self, now: Nanos) -> bool {
        if now < self.at {
            return false;
        }
        self.at = NEVER;
        self.due = true;
        true
    }

    /// Returns whether a probe is due, once for each expiry.
    pub(crate) fn take_due(&mut self) -> bool {
        self.due && std::mem::take(&mut self.due)
    }

    /// Notes that the probe left; `nxt` is SND.NXT after it.
    pub(crate) fn on_sent(&mut self, nxt: u64, is_retransmission: bool) {
        self.end = nxt;
        self.is_retransmission = is_retransmission;
        self.at = NEVER;
    }

    /// Section 7.4.2: takes the acknowledgement `ack`, which newly acknowledges `acked` bytes and
    /// may be a duplicate without SACK blocks (`is_dup`) or carry a D-SACK. Returns whether the
    /// probe repaired a loss that nothing else would have shown.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: u64, acked: u64, is_dup: bool, dsack: bool) -> bool {
        if self.end == 0 || ack < self.end {
            return false;
        }
        if !self.is_retransmission || dsack || (ack == self.end && acked == 0 && is_dup) {
            // No loss was repaired: the probe was new data, or the original arrived too.
            self.end = 0;
            return false;
        }
        let repaired = ack > self.end;
        if repaired {
            self.end = 0;
        }
        repaired
    }
}

/// Returns the probe timeout (section 7.2), from the last transmission.
#[inline]
pub(super) fn probe_timeout(srtt: Nanos, one_in_flight: bool) -> Nanos {
    if srtt == 0 {
        return SECOND;
    }
    2 * srtt + if one_in_flight { MAX_ACK_DELAY } else { MARGIN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::EPOCH;

    const RTT: Nanos = 50 * MILLISECOND;

    fn scheduled() -> TailProbe {
        let mut probe = TailProbe::new(true);
        probe.start(EPOCH + 102 * MILLISECOND);
        probe
    }

    #[test]
    fn the_timeout_is_two_round_trips_and_leaves_room_for_a_delayed_ack() {
        assert_eq!(probe_timeout(0, false), SECOND);
        assert_eq!(probe_timeout(RTT, false), 102 * MILLISECOND);
        assert_eq!(probe_timeout(RTT, true), 300 * MILLISECOND);
    }

    #[test]
    fn one_probe_for_a_tail() {
        let mut probe = scheduled();
        assert!(!probe.expire(EPOCH) && !probe.take_due());
        assert!(probe.expire(EPOCH + 102 * MILLISECOND));
        assert!(probe.take_due() && !probe.take_due());
        probe.on_sent(100, true);
        assert!(probe.is_outstanding());
    }

    #[test]
    fn an_acknowledgement_beyond_a_retransmitted_probe_means_a_repaired_loss() {
        let mut probe = scheduled();
        probe.on_sent(100, true);
        assert!(!probe.on_ack(99, 10, false, false));
        assert!(!probe.on_ack(100, 1, false, false));
        assert!(probe.is_outstanding());
        assert!(probe.on_ack(101, 1, false, false));
        assert!(!probe.is_outstanding());
    }

    #[test]
    fn new_data_a_duplicate_and_a_dsack_mean_no_loss() {
        for (is_retransmission, is_dup, dsack) in
            [(false, false, false), (true, true, false), (true, false, true)]
        {
            let mut probe = scheduled();
            probe.on_sent(100, is_retransmission);
            assert!(!probe.on_ack(100, 0, is_dup, dsack));
            assert!(!probe.is_outstanding());
        }
    }

    #[test]
    fn a_timeout_ends_the_episode() {
        let mut probe = scheduled();
        probe.expire(NEVER - 1);
        probe.on_sent(100, true);
        probe.reset();
        assert!(!probe.is_outstanding() && !probe.take_due());
    }
}
