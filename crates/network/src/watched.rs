//! The flow monitor's counts in addition to the ledger.

use sojourn_queue::DropReason;
use sojourn_units::Nanos;

/// Counts of one direction of a flow that are not in the ledger.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    /// When the first packet was sent; `None` before.
    pub first_sent: Option<Nanos>,
    /// When the last packet was received; `None` before the first.
    pub last_received: Option<Nanos>,
    /// Sum of the one-way delays of all packets received.
    pub delays: Nanos,
    /// Packets dropped for [`DropReason::Measurement`].
    pub measured: u64,
}

impl Watched {
    /// Records that a host sent a packet at `now`.
    pub fn sent(&mut self, now: Nanos) {
        self.first_sent.get_or_insert(now);
    }

    /// Records that a host received a packet at `now` that was sent at `sent_at`.
    #[inline]
    pub fn received(&mut self, now: Nanos, sent_at: Nanos) {
        self.last_received = Some(now);
        self.delays += now.saturating_sub(sent_at);
    }

    /// Records that a queue dropped a packet.
    pub fn dropped(&mut self, reason: DropReason) {
        self.measured += u64::from(reason == DropReason::Measurement);
    }
}
