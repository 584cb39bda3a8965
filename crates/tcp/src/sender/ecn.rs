//! The sender's response to ECN echoes.
//!
//! Source: RFC 3168, section 6.1.2. The first echo of a round reduces cwnd, unless the control
//! responds to marks itself (as Prague does) or sets cwnd itself (as BBR does). With AccECN (RFC
//! 9768) an echo is an increase of the peer's counters, and the sender does not answer by CWR.

use crate::accecn::{self, MarkReader, Marks};
use crate::params::Ecn;
use crate::segment::{Flags, Segment};

/// ECN at the sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct EcnSender {
    /// Whether both ends agreed on ECN.
    enabled: bool,
    /// The peer's counters, with AccECN.
    counters: Option<Box<MarkReader>>,
    /// Whether the next new segment with payload carries CWR.
    cwr_due: bool,
    /// Sequence number below which echoes belong to the present round.
    answered: u64,
}

impl EcnSender {
    pub(crate) fn new(ecn: Ecn) -> Self {
        let counters = (ecn == Ecn::Accecn).then(Box::default);
        Self { enabled: ecn != Ecn::Off, counters, cwr_due: false, answered: 0 }
    }

    /// Takes the ACE field of the handshake's last acknowledgement, which is not a counter.
    pub(crate) fn on_handshake(&mut self, field: u64) {
        if let Some(counters) = &mut self.counters {
            counters.on_handshake(field);
        }
    }

    /// Returns whether the peer counts marks (AccECN).
    pub(crate) fn counts(&self) -> bool {
        self.counters.is_some()
    }

    /// Returns whether both ends agreed on ECN.
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns whether the acknowledgement echoes Congestion Experienced by ECE.
    #[inline]
    pub(crate) fn is_echo(&self, segment: &Segment) -> bool {
        self.enabled
            && self.counters.is_none()
            && segment.flags.has(Flags::ECE)
            && !segment.flags.has(Flags::SYN)
    }

    /// Returns the marks newly reported by an acknowledgement that delivered `delivered` bytes. An
    /// acknowledgement that delivered nothing while data is outstanding may be old, and must not be
    /// passed.
    #[inline]
    pub(crate) fn count(&mut self, segment: &Segment, delivered: u64, mss: u64) -> Option<Marks> {
        let counters = self.counters.as_mut()?;
        let field = accecn::field(segment.flags);
        Some(counters.on_ack(field, segment.marked_bytes(), delivered, mss))
    }

    /// Returns whether an echo is the first of its round, which lasts until `nxt` is acknowledged.
    /// Used for controls whose response is not a smaller window.
    pub(crate) fn begins_round(&mut self, una: u64, nxt: u64) -> bool {
        let begins = una > self.answered;
        if begins {
            self.answered = nxt;
        }
        begins
    }

    /// Notes a response to an echo, which CWR reports to the peer, except with AccECN.
    pub(crate) fn on_reduction(&mut self) {
        self.cwr_due = self.counters.is_none();
    }

    /// Returns whether a new segment of `len` bytes carries CWR. A segment without payload never
    /// does.
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
