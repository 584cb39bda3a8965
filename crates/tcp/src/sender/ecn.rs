//! The sender's answer to ECN echoes.
//!
//! Source: RFC 3168, section 6.1.2. Controls that respond to marks themselves (RFC 8257, Prague)
//! are notified of each; for the others an echo begins one reduction a round. With AccECN (RFC
//! 9768) an echo is a step of the peer's counters, and no CWR answers it.

use crate::accecn::{self, MarkReader, Marks};
use crate::params::Ecn;
use crate::segment::{Flags, Segment};

/// ECN at the sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct EcnSender {
    /// Both ends agreed.
    enabled: bool,
    /// The peer's counters, with AccECN.
    counters: Option<Box<MarkReader>>,
    /// The next new segment carries CWR.
    cwr_due: bool,
    /// Echoes of what was sent before this are answered.
    answered: u64,
}

impl EcnSender {
    pub(crate) fn new(ecn: Ecn) -> Self {
        let counters = (ecn == Ecn::Accecn).then(Box::default);
        Self { enabled: ecn != Ecn::Off, counters, cwr_due: false, answered: 0 }
    }

    /// The handshake's last acknowledgement has `field`, which is no counter.
    pub(crate) fn on_handshake(&mut self, field: u64) {
        if let Some(counters) = &mut self.counters {
            counters.on_handshake(field);
        }
    }

    /// Whether the peer counts marks (AccECN).
    #[inline]
    pub(crate) fn counts(&self) -> bool {
        self.counters.is_some()
    }

    /// Whether both ends agreed on ECN.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Whether the acknowledgement echoes congestion experienced by ECE.
    #[inline]
    pub(crate) fn is_echo(&self, segment: &Segment) -> bool {
        self.enabled
            && self.counters.is_none()
            && segment.flags.has(Flags::ECE)
            && !segment.flags.has(Flags::SYN)
    }

    /// Returns the marks newly reported by an acknowledgement that delivered `delivered` bytes. One
    /// that delivered nothing may be an old one, unless nothing is outstanding: it must not come
    /// here.
    #[inline]
    pub(crate) fn count(&mut self, segment: &Segment, delivered: u64, mss: u64) -> Option<Marks> {
        let counters = self.counters.as_mut()?;
        let field = accecn::field(segment.flags);
        Some(counters.on_ack(field, segment.marked_bytes(), delivered, mss))
    }

    /// Whether an echo is the first of its round, which ends at `nxt`; for controls whose answer is
    /// not a smaller window.
    pub(crate) fn begins_round(&mut self, una: u64, nxt: u64) -> bool {
        let begins = una > self.answered;
        if begins {
            self.answered = nxt;
        }
        begins
    }

    /// The window was reduced for an echo.
    pub(crate) fn on_reduction(&mut self) {
        self.cwr_due = self.counters.is_none();
    }

    /// Whether a new segment of `len` bytes carries CWR. A segment without payload never does.
    #[inline]
    pub(crate) fn take_cwr(&mut self, len: u64) -> bool {
        let cwr = self.cwr_due && len > 0;
        self.cwr_due &= !cwr;
        cwr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_counts_only_where_both_ends_agreed_and_not_on_a_syn() {
        let echo = Segment::new(0, 1, Flags::ACK | Flags::ECE);
        let syn = Segment::new(0, 1, Flags::ACK | Flags::SYN | Flags::ECE);
        assert!(EcnSender::new(Ecn::Classic).is_echo(&echo));
        assert!(!EcnSender::new(Ecn::Classic).is_echo(&syn));
        assert!(!EcnSender::new(Ecn::Classic).is_echo(&Segment::new(0, 1, Flags::ACK)));
        assert!(!EcnSender::new(Ecn::Off).is_echo(&echo));
    }

    #[test]
    fn an_echo_begins_one_round_at_a_time() {
        let mut ecn = EcnSender::new(Ecn::Classic);
        assert!(ecn.begins_round(1, 10_001));
        assert!(!ecn.begins_round(5001, 15_001));
        assert!(!ecn.begins_round(10_001, 20_001));
        assert!(ecn.begins_round(11_001, 21_001));
    }

    #[test]
    fn one_segment_with_payload_carries_cwr_for_a_reduction() {
        let mut ecn = EcnSender::new(Ecn::Classic);
        assert!(!ecn.take_cwr(1000));
        ecn.on_reduction();
        assert!(!ecn.take_cwr(0), "a FIN alone");
        assert!(ecn.take_cwr(1000));
        assert!(!ecn.take_cwr(1000));
    }
}
