//! Who sees the packets of a wire: the arena of their bytes, journals and captures of links.

use crate::arena::Arena;
use crate::capture::{self, Captures, Side};
use crate::headers::Headers;
use crate::packet_meta::PacketMeta;
use crate::record::Agreement;
use sojourn_link::{Event, Observer};
use sojourn_network::Seen;
use sojourn_network::journal::{self, Journal};
use sojourn_plan::Plan;
use sojourn_queue::{Packet as _, TcpView};
use sojourn_units::Nanos;
use std::collections::BTreeMap;

/// The observer of a wire's network.
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

    /// Ends the journals, and replays each.
    pub fn replay_journals(&mut self, plan: &Plan, seed: u64) -> Vec<Agreement> {
        let replay = |(link, journal): (u32, Journal)| {
            let found = journal::replay(plan, seed, link as usize, &journal);
            Agreement {
                link: plan.links[link as usize].name.clone(),
                agrees: found.is_ok(),
                cut: journal.is_cut(),
                counts: found.ok().map(|a| [a.arrivals, a.drops, a.marks, a.entries]),
                difference: found.err().map(|difference| difference.to_string()),
            }
        };
        std::mem::take(&mut self.journals).into_iter().map(replay).collect()
    }
}

impl Observer<Seen<'_, PacketMeta>> for Watch {
    fn on_event(&mut self, at: Nanos, seen: &Seen<'_, PacketMeta>, event: Event) {
        let &Seen { link, packet, body } = seen;
        if let Some(journal) = self.journals.get_mut(&link) {
            journal.record(at, packet, event, || tcp_view(&self.arena, seen));
        }
        let (side, reason) = match event {
            Event::Offered => (Side::Before, None),
            Event::Departed => (Side::After, None),
            Event::Dropped { reason, queued } => {
                (Side::Dropped, Some(capture::dropped(reason, queued)))
            }
            Event::Lost => (Side::Dropped, Some(capture::LOST)),
            _ => return,
        };
        let seen = (packet, body, self.arena.get(packet.slot));
        self.captures.see(at, link, side, seen, reason);
    }

    fn tcp(&self, seen: &Seen<'_, PacketMeta>) -> Option<TcpView> {
        tcp_view(&self.arena, seen)
    }
}

fn tcp_view(arena: &Arena, seen: &Seen<'_, PacketMeta>) -> Option<TcpView> {
    let (packet, load) = (seen.packet, &seen.body.load);
    let bytes = &arena.get(packet.slot)[..load.bytes as usize];
    Headers::parse(load.framing, bytes).tcp_view(bytes, packet.hosts())
}
