//! Where a link begins: a transmitter of its own, or a station on a shared medium.

use crate::probe::Work;
use crate::slab::Packet;
use sojourn_link::{Link, Station};
use sojourn_measure::Count;
use sojourn_plan::Plan;
use sojourn_random::Key;
use sojourn_units::{EPOCH, Nanos};

/// A link by the kind of its transmitter.
#[expect(clippy::large_enum_variant, reason = "nearly all are links, and stand in a row")]
#[derive(Clone, Debug)]
pub enum Port {
    /// The usual one.
    Link(Link<Packet>),
    /// One with a transmit ring, or on the medium with this number.
    Station(Box<Station<Packet>>, Option<u32>),
}

fn count(count: sojourn_link::Count) -> Count {
    Count { packets: count.packets, bytes: count.bytes }
}

impl Port {
    /// The port of a plan's link.
    pub fn new(link: &sojourn_plan::Link, seed: u64) -> Self {
        let key = Key::new(seed, &link.name);
        if link.medium.is_none() && link.ring == 0 {
            return Self::Link(Link::new(&link.params, key, EPOCH));
        }
        let station = Station::new(&link.params, link.ring, key, EPOCH);
        Self::Station(Box::new(station), link.medium.map(|medium| medium as u32))
    }

    /// The link: its queue, backlog and counters.
    pub fn link(&self) -> &Link<Packet> {
        match self {
            Self::Link(link) => link,
            Self::Station(station, _) => station.link(),
        }
    }

    /// What its transmitter has done until `now`; of its capacity, if it `varies`.
    pub fn work(&self, now: Nanos, varies: bool) -> Work {
        let (busy, begun, transmitted) = match self {
            Self::Link(link) => (link.busy(now), link.counters().departed, link.transmitted(now)),
            Self::Station(station, _) => {
                (station.busy(now), station.begun(), station.transmitted(now))
            }
        };
        let capacity = varies.then(|| self.link().capacity(now));
        Work { busy, begun: count(begun), transmitted, capacity }
    }

    /// Packets that have left the queue and not arrived.
    pub fn in_flight(&self) -> usize {
        match self {
            Self::Link(link) => link.in_flight(),
            Self::Station(station, _) => station.in_flight(),
        }
    }

    /// # Panics
    /// If a packet or a byte was lost or made on the way.
    pub fn assert_conserved(&self) {
        match self {
            Self::Link(link) => link.assert_conserved(),
            Self::Station(station, _) => station.assert_conserved(),
        }
    }
}

/// How many transmitters `links` have between them: those that share a medium are one.
pub fn transmitters(plan: &Plan, links: &[usize]) -> u64 {
    let mut media: Vec<_> = links.iter().filter_map(|&link| plan.links[link].medium).collect();
    let own = links.len() - media.len();
    media.sort_unstable();
    media.dedup();
    (own + media.len()) as u64
}
