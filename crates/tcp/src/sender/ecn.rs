//! The sender's answer to ECN echoes.
//!
//! Source: RFC 3168, section 6.1.2. Controls that answer marks themselves (RFC 8257, Prague) are
//! told of each; for the others an echo begins one reduction a round.

use crate::segment::{Flags, Segment};

/// ECN at the sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct EcnSender {
    /// Both ends agreed.
    enabled: bool,
    /// The next new segment carries CWR.
    cwr_due: bool,
}

impl EcnSender {
    pub(crate) fn new(enabled: bool) -> Self {
        Self { enabled, cwr_due: false }
    }

    /// Whether the acknowledgement echoes congestion experienced.
    #[inline]
    pub(crate) fn is_echo(&self, segment: &Segment) -> bool {
        self.enabled && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::SYN)
    }

    /// The window was reduced for an echo.
    pub(crate) fn on_reduction(&mut self) {
        self.cwr_due = true;
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
        assert!(EcnSender::new(true).is_echo(&echo));
        assert!(!EcnSender::new(true).is_echo(&syn));
        assert!(!EcnSender::new(true).is_echo(&Segment::new(0, 1, Flags::ACK)));
        assert!(!EcnSender::new(false).is_echo(&echo));
    }

    #[test]
    fn one_segment_with_payload_carries_cwr_for_a_reduction() {
        let mut ecn = EcnSender::new(true);
        assert!(!ecn.take_cwr(1000));
        ecn.on_reduction();
        assert!(!ecn.take_cwr(0), "a FIN alone");
        assert!(ecn.take_cwr(1000));
        assert!(!ecn.take_cwr(1000));
    }
}
