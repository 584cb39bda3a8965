//! Where a link begins: a transmitter of its own, or a station on a shared medium.

use crate::probe::Work;
use crate::slab::Packet;
use sojourn_link::{Backlog, Link, Medium, Observer, Params, Station};
use sojourn_plan::Plan;
use sojourn_queue::OtherDiscipline;
use sojourn_random::Key;
use sojourn_units::{EPOCH, Nanos};

/// A link by the kind of its transmitter.
#[expect(clippy::large_enum_variant, reason = "nearly all are links, and stand in a row")]
#[derive(Clone, Debug)]
pub enum Port {
    /// The usual one.
    Link(Link<Packet>),
    /// One with a transmit ring, a late host, or on the medium with this number.
    Station(Box<Station<Packet>>, Option<u32>),
}

/// The medium of a station, if it shares one.
fn of(media: &mut [Medium], id: Option<u32>) -> Option<&mut Medium> {
    id.map(|id| &mut media[id as usize])
}

impl Port {
    /// The port of a plan's link.
    pub fn new(link: &sojourn_plan::Link, seed: u64) -> Self {
        let key = Key::new(seed, &link.name);
        let host = link.host.as_ref().filter(|host| !host.is_punctual());
        if link.medium.is_none() && link.ring == 0 && host.is_none() {
            return Self::Link(Link::new(&link.params, key, EPOCH));
        }
        let mut station = Station::new(&link.params, link.ring, key, EPOCH);
        if let Some(host) = host {
            station = station.with_host(host);
        }
        Self::Station(Box::new(station), link.medium.map(|medium| medium as u32))
    }

    /// As [`Link::offer`]; `media` are all media of the network.
    #[inline]
    pub fn offer(
        &mut self,
        now: Nanos,
        packet: Packet,
        media: &mut [Medium],
        observer: &mut impl Observer<Packet>,
    ) {
        match self {
            Self::Link(link) => link.offer(now, packet, observer),
            Self::Station(station, id) => station.offer(now, packet, of(media, *id), observer),
        };
    }

    /// As [`Link::advance`].
    #[inline]
    pub fn advance(
        &mut self,
        now: Nanos,
        media: &mut [Medium],
        observer: &mut impl Observer<Packet>,
    ) {
        match self {
            Self::Link(link) => link.advance(now, observer),
            Self::Station(station, id) => station.advance(now, of(media, *id), observer),
        }
    }

    /// The link of a port that has its own transmitter and nothing else.
    ///
    /// # Panics
    /// If it is a station.
    #[inline]
    pub fn plain(&mut self) -> &mut Link<Packet> {
        match self {
            Self::Link(link) => link,
            Self::Station(..) => unreachable!("a station has no role"),
        }
    }

    /// As [`Link::set_wire`].
    pub fn set_wire(
        &mut self,
        now: Nanos,
        params: &Params,
        media: &mut [Medium],
        observer: &mut impl Observer<Packet>,
    ) {
        match self {
            Self::Link(link) => link.set_wire(now, params, observer),
            Self::Station(station, id) => station.set_wire(now, params, of(media, *id), observer),
        }
    }

    /// As [`Link::change`].
    pub fn change(
        &mut self,
        now: Nanos,
        params: &Params,
        media: &mut [Medium],
        observer: &mut impl Observer<Packet>,
    ) -> Result<(), OtherDiscipline> {
        match self {
            Self::Link(link) => link.change(now, params, observer),
            Self::Station(station, id) => station.change(now, params, of(media, *id), observer),
        }
    }

    /// As [`Link::next_event`].
    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        match self {
            Self::Link(link) => link.next_event(),
            Self::Station(station, _) => station.next_event(),
        }
    }

    /// The queue's length.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.link().backlog()
    }

    /// The link: its queue, backlog and ledger.
    #[inline]
    pub fn link(&self) -> &Link<Packet> {
        match self {
            Self::Link(link) => link,
            Self::Station(station, _) => station.link(),
        }
    }

    /// Returns the work of its transmitter until `now`; with its capacity, if it `varies`.
    pub fn work(&self, now: Nanos, varies: bool) -> Work {
        let (busy, begun, transmitted) = match self {
            Self::Link(link) => (link.busy(now), link.ledger().departed, link.transmitted(now)),
            Self::Station(station, _) => {
                (station.busy(now), station.begun(), station.transmitted(now))
            }
        };
        let capacity = varies.then(|| self.link().capacity(now));
        Work { busy, begun, transmitted, capacity }
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
