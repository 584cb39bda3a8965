//! A monitor's counts of flows in addition to the ledger.

use sojourn_queue::DropReason;
use sojourn_units::Nanos;

/// The counts of one direction of a flow that the ledger does not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    /// When the first packet was sent.
    pub first_sent: Option<Nanos>,
    /// When the last one was received.
    pub last_received: Option<Nanos>,
    /// Sum of one-way delays of packets received.
    pub delays: Nanos,
    /// Packets dropped by measuring.
    pub measured: u64,
}

impl Watched {
    /// A host sent a packet.
    #[inline]
    pub fn sent(&mut self, now: Nanos) {
        self.first_sent.get_or_insert(now);
    }

    /// The other host received a packet.
    #[inline]
    pub fn received(&mut self, now: Nanos, sent_at: Nanos) {
        self.last_received = Some(now);
        self.delays += now.saturating_sub(sent_at);
    }

    /// A queue dropped a packet.
    #[inline]
    pub fn dropped(&mut self, reason: DropReason) {
        self.measured += u64::from(reason == DropReason::Measurement);
    }
}
