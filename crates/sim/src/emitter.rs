//! A packet source and its receiving end, over any transport.

use sojourn_plan::{Flow, Group};
use sojourn_traffic::{App, Emission, PacketSource, Receiver};
use sojourn_units::Nanos;

/// Packets by a schedule of their own, and what came of them.
#[derive(Clone, Debug)]
pub struct Emitter {
    source: PacketSource,
    /// The next packet.
    pub next: Emission,
    /// Its number.
    pub seq: u64,
    /// The receiving end.
    pub receiver: Receiver,
    /// Payload received at the end of the warm-up.
    bytes_before: u64,
}

impl Emitter {
    /// Returns the source of a flow, if its application sends packets.
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

    /// Goes on to the next packet; the present one keeps no number.
    pub fn skip(&mut self) {
        self.next = self.source.next_packet();
    }

    /// Takes the present packet with its number, and goes on to the next.
    pub fn take(&mut self) -> (Emission, u64) {
        let taken = (self.next, self.seq);
        self.seq += 1;
        self.skip();
        taken
    }

    /// The warm-up is over.
    pub fn restart(&mut self) {
        self.bytes_before = self.receiver.received.bytes;
        self.receiver.restart();
    }

    /// Returns the payload received since the end of the warm-up.
    pub fn bytes(&self) -> u64 {
        self.receiver.received.bytes - self.bytes_before
    }

    /// Returns a call's mean opinion score, with so many packets still under way.
    pub fn mos(&self, app: &App, pending: u64) -> f64 {
        self.receiver.mos(app, self.seq.saturating_sub(pending))
    }
}
