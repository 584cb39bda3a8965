//! A packet source and its receiver, independent of the transport.

use sojourn_plan::{Flow, Group};
use sojourn_traffic::{App, Emission, PacketSource, Receiver};
use sojourn_units::Nanos;

/// A packet source, and the receiver that measures its packets.
#[derive(Clone, Debug)]
pub struct Emitter {
    source: PacketSource,
    /// Time and payload of the next packet.
    pub next: Emission,
    /// Number of the next packet, from 0; skipped packets have no numbers.
    pub seq: u64,
    /// The receiver.
    pub receiver: Receiver,
    /// Bytes of payload received before the end of the warm-up.
    bytes_before: u64,
}

impl Emitter {
    /// Returns the packet source of a flow; `None` if its application is no packet source.
    pub fn new(group: &Group, planned: &Flow, duration: Nanos) -> Option<Self> {
        let mut source = group.app.packet_source(planned.key, planned.begins(duration))?;
        Some(Self {
            next: source.next_packet(),
            source,
            seq: 0,
            receiver: Receiver::new(&group.app),
            bytes_before: 0,
        })
    }

    /// Skips the next packet; the one after it gets the same number.
    pub fn skip(&mut self) {
        self.next = self.source.next_packet();
    }

    /// Returns the next packet with its number, and draws the one after it.
    pub fn take(&mut self) -> (Emission, u64) {
        let taken = (self.next, self.seq);
        self.seq += 1;
        self.skip();
        taken
    }

    /// Begins the measurements anew at the end of the warm-up.
    pub fn restart(&mut self) {
        self.bytes_before = self.receiver.received.bytes;
        self.receiver.restart();
    }

    /// Returns the bytes of payload received since the end of the warm-up.
    pub fn bytes(&self) -> u64 {
        self.receiver.received.bytes - self.bytes_before
    }

    /// Returns a call's mean opinion score; `pending` is the number of packets that are still in
    /// transit and count neither as received nor as lost.
    pub fn mos(&self, app: &App, pending: u64) -> f64 {
        self.receiver.mos(app, self.seq.saturating_sub(pending))
    }
}
