//! The observer of a wire's packets: stores their bytes, and keeps journals and captures of links.

use crate::arena::Arena;
use crate::capture::{self, Captures, Side};
use crate::headers::Headers as Parsed;
use crate::packet_meta::PacketMeta;
use crate::record::Agreement;
use sojourn_link::{Event, Observer};
use sojourn_network::Seen;
use sojourn_network::journal::{self, Journal};
use sojourn_plan::{Labels, Plan};
use sojourn_queue::{Headers, Packet as _, Sender, TcpView};
use sojourn_units::Nanos;
use std::collections::BTreeMap;

/// The observer of a wire's network.
#[derive(Debug)]
pub struct Watch {
    /// Bytes of the packets in the network.
    pub arena: Arena,
    /// Captures of links.
    pub captures: Captures,
    journals: BTreeMap<u32, Journal>,
    /// Ports and marks that the plan gives to the packets of its flows, for filters.
    labels: Labels,
}

impl Watch {
    /// Returns an observer that stores packets in `arena`, keeps journals of the links with the
    /// indices `journals`, and makes captures.
    pub fn new(arena: Arena, plan: &Plan, journals: &[usize], captures: Captures) -> Self {
        let journals = journals.iter().map(|&link| (link as u32, Journal::default())).collect();
        Self { arena, captures, journals, labels: Labels::new(&plan.groups) }
    }

    /// Ends all journals, and returns the result of each one's replay.
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
            journal.record(at, packet, event, || {
                (headers(&self.labels, &self.arena, seen), tcp_view(&self.arena, seen))
            });
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

    fn headers(&self, seen: &Seen<'_, PacketMeta>) -> Headers {
        headers(&self.labels, &self.arena, seen)
    }

    /// The sender's state is unknown: real hosts have their own queues.
    fn sender(&self, _seen: &Seen<'_, PacketMeta>) -> Sender {
        Sender::default()
    }
}

/// Returns the headers and the bytes of a packet.
fn parsed<'a>(arena: &'a Arena, seen: &Seen<'_, PacketMeta>) -> (Parsed, &'a [u8]) {
    let load = &seen.body.load;
    let bytes = &arena.get(seen.packet.slot)[..load.bytes as usize];
    (Parsed::parse(load.framing, bytes), bytes)
}

/// Returns protocol, ports and mark of a packet for filters: those that the plan gives to its flow,
/// or otherwise those in the packet.
fn headers(labels: &Labels, arena: &Arena, seen: &Seen<'_, PacketMeta>) -> Headers {
    let found = parsed(arena, seen).0;
    let own = Headers {
        protocol: found.ip.map_or(0, |ip| ip.protocol),
        ports: found.ports().unwrap_or_default(),
        mark: 0,
    };
    labels.headers(seen.body.load.whose / 2, seen.packet.hosts().0, own)
}

fn tcp_view(arena: &Arena, seen: &Seen<'_, PacketMeta>) -> Option<TcpView> {
    let (found, bytes) = parsed(arena, seen);
    found.tcp_view(bytes, seen.packet.hosts())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::Facts;
    use crate::headers::Framing;
    use sojourn_network::{Body, Class, Copies, Packet, node};
    use sojourn_plan::{Group, Transport};
    use sojourn_traffic::App;
    use sojourn_units::EPOCH;

    /// Returns the labels of two flows: a call with a given source port and mark, and a user's
    /// program.
    fn labels() -> Labels {
        let group = |app: &str, source_port, mark| Group {
            source_port,
            mark,
            ..Group::new(app, vec![(0, 1)], Transport::Udp, App::parse(app).unwrap())
        };
        Labels::new(&[group("voip", Some(443), 7), group("command", None, 0)])
    }

    /// Returns the headers that filters use for a packet with this protocol and these ports.
    fn found(whose: u32, protocol: u8, ports: [u16; 2]) -> Headers {
        let mut bytes =
            vec![0x45, 0, 0, 32, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        bytes.extend([0, 12, 0, 0, 1, 2, 3, 4]);
        let mut arena = Arena::new(64, 1);
        arena.make(0).unwrap()[..bytes.len()].copy_from_slice(&bytes);
        let load = PacketMeta {
            bytes: bytes.len() as u32,
            facts: Facts::default(),
            partial: None,
            framing: Framing::Ip,
            tos: 0,
            whose,
        };
        let body = Body {
            number: 0,
            sent_at: EPOCH,
            endpoint: 1,
            connection: 0,
            flow: whose,
            copies: Copies::ONE,
            load,
        };
        let packet = Packet::new(Class::Udp, (node(0), node(1)), 0, 7, 46, 0);
        headers(&labels(), &arena, &Seen { link: 0, packet: &packet, body: &body })
    }

    #[test]
    fn filters_read_the_keys_of_the_flow_or_the_packet() {
        let udp = |ports, mark| Headers { protocol: 17, ports, mark };
        assert_eq!(found(0, 17, [40_000, 20_000]), udp((443, 20_000), 7));
        assert_eq!(found(2, 17, [40_000, 53]), udp((40_000, 53), 0));
        // Packets that belong to no flow: with ports, and without.
        assert_eq!(found(4, 17, [5, 6]), udp((5, 6), 0));
        assert_eq!(found(4, 1, [5, 6]), Headers { protocol: 1, ports: (0, 0), mark: 0 });
    }
}
