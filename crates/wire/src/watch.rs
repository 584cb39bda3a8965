//! Who sees the packets of a wire: the arena of their bytes, journals and captures of links.

use crate::arena::Arena;
use crate::capture::{self, Captures, Side};
use crate::headers::Headers;
use crate::wire::Load;
use sojourn_network::journal::{Happening, Journal};
use sojourn_network::{Body, Packet, Witness};
use sojourn_queue::{DropReason, Packet as _, TcpView};
use sojourn_units::Nanos;
use std::collections::BTreeMap;

/// The witness of a wire's network.
#[derive(Debug)]
pub struct Watch {
    /// The packets' bytes.
    pub arena: Arena,
    /// The captures.
    pub captures: Captures,
    journals: BTreeMap<u32, Journal>,
}

impl Watch {
    /// Sees to the bytes of packets, keeps journals of these links, and makes captures.
    pub fn new(arena: Arena, journals: &[usize], captures: Captures) -> Self {
        let journals = journals.iter().map(|&link| (link as u32, Journal::default())).collect();
        Self { arena, captures, journals }
    }

    /// Takes the journals, by link; nothing is written down any more.
    pub fn take_journals(&mut self) -> BTreeMap<u32, Journal> {
        std::mem::take(&mut self.journals)
    }

    fn capture(
        &mut self,
        at: Nanos,
        link: u32,
        side: Side,
        (packet, body): (&Packet, &Body<Load>),
        reason: Option<capture::Reason>,
    ) {
        let seen = (packet, body, self.arena.get(packet.slot));
        self.captures.see(at, link, side, seen, reason);
    }

    fn happened(&mut self, at: Nanos, link: u32, packet: &Packet, what: Happening) {
        if let Some(journal) = self.journals.get_mut(&link) {
            journal.happened(at, packet, what);
        }
    }
}

impl Witness<Load> for Watch {
    fn offered(&mut self, at: Nanos, link: u32, packet: &Packet, body: &Body<Load>) {
        if let Some(journal) = self.journals.get_mut(&link) {
            journal.offered(at, packet);
        }
        self.capture(at, link, Side::Before, (packet, body), None);
    }

    fn departed(&mut self, at: Nanos, link: u32, packet: &Packet, body: &Body<Load>) {
        self.happened(at, link, packet, Happening::Departed);
        self.capture(at, link, Side::After, (packet, body), None);
    }

    fn marked(&mut self, at: Nanos, link: u32, packet: &Packet, _body: &Body<Load>) {
        self.happened(at, link, packet, Happening::Marked);
    }

    fn dropped(
        &mut self,
        at: Nanos,
        link: u32,
        packet: &Packet,
        body: &Body<Load>,
        reason: DropReason,
        queued: bool,
    ) {
        self.happened(at, link, packet, Happening::Dropped(reason));
        let why = capture::dropped(reason, queued);
        self.capture(at, link, Side::Dropped, (packet, body), Some(why));
    }

    fn lost(&mut self, at: Nanos, link: u32, packet: &Packet, body: &Body<Load>) {
        self.happened(at, link, packet, Happening::Lost);
        self.capture(at, link, Side::Dropped, (packet, body), Some(capture::LOST));
    }

    fn tcp(&self, packet: &Packet, body: &Body<Load>) -> Option<TcpView> {
        let bytes = &self.arena.get(packet.slot)[..body.load.bytes as usize];
        Headers::parse(body.load.framing, bytes).tcp_view(bytes, packet.hosts())
    }
}
