//! The port of a link: its own transmitter, or a station.

use crate::probe::Work;
use crate::slab::Packet;
use sojourn_link::{Backlog, Link, Medium, Observer, Params, Station};
use sojourn_plan::Plan;
use sojourn_queue::OtherDiscipline;
use sojourn_random::Key;
use sojourn_units::{EPOCH, Nanos};

/// A link by the kind of its transmitter.
#[expect(clippy::large_enum_variant, reason = "nearly all ports are links, without indirection")]
#[derive(Clone, Debug)]
pub enum Port {
    /// A link with its own transmitter and nothing else.
    Link(Link<Packet>),
    /// A link with a transmit ring, with a late host, or on the shared medium with this number.
    Station(Box<Station<Packet>>, Option<u32>),
}

/// Returns the shared medium of a station; `None` without one.
fn of(media: &mut [Medium], id: Option<u32>) -> Option<&mut Medium> {
    id.map(|id| &mut media[id as usize])
}

impl Port {
    /// Returns the port of a plan's link.
    pub fn new(link: &sojourn_plan::Link, seed: u64) -> Self {
        let key = Key::new(seed, &link.name);
        if link.has_own_transmitter() {
            return Self::Link(Link::new(&link.params, key, EPOCH));
        }
        let mut station = Station::new(&link.params, link.ring, key, EPOCH);
        if let Some(host) = link.host.as_ref().filter(|host| !host.is_punctual()) {
            station = station.with_host(host);
        }
        Self::Station(Box::new(station), link.medium.map(|medium| medium as u32))
    }

    /// Offers a packet to the link (see [`Link::offer`]). `media` are all media of the network.
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

    /// Processes the link's events until `now` (see [`Link::advance`]).
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

    /// Returns the link of a port that is no station.
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

    /// Changes the link's parameters except those of its queue (see [`Link::set_wire`]).
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

    /// Changes the link's parameters, including those of its queue (see [`Link::change`]).
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

    /// Returns the time of the link's next event; `None` without one.
    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        match self {
            Self::Link(link) => link.next_event(),
            Self::Station(station, _) => station.next_event(),
        }
    }

    /// Returns the queue's backlog.
    pub fn backlog(&self) -> Backlog {
        self.link().backlog()
    }

    /// Returns the link, with its queue and ledger.
    #[inline]
    pub fn link(&self) -> &Link<Packet> {
        match self {
            Self::Link(link) => link,
            Self::Station(station, _) => station.link(),
        }
    }

    /// Begins the measurements of the queue's classes anew.
    pub fn restart(&mut self) {
        match self {
            Self::Link(link) => link.restart(),
            Self::Station(station, _) => station.restart(),
        }
    }

    /// Returns the work of the transmitter until `now`, including the capacity used if its rate
    /// `varies`.
    pub fn work(&self, now: Nanos, varies: bool) -> Work {
        let (busy, begun, transmitted) = match self {
            Self::Link(link) => (link.busy(now), link.ledger().departed, link.transmitted(now)),
            Self::Station(station, _) => {
                (station.busy(now), station.begun(), station.transmitted(now))
            }
        };
        // Frames occupy a medium for whole nanoseconds.
        let rounding = match self {
            Self::Station(_, Some(_)) => 0.0,
            port => port.link().rounding(now),
        };
        let busy = busy as f64 - rounding;
        let capacity = varies.then(|| self.link().capacity(now));
        Work { busy, begun, transmitted, capacity }
    }

    /// Checks that the link's ledger accounts for every packet.
    ///
    /// # Panics
    /// If the ledger differs from the packets and bytes in the queue and on the line.
    pub fn assert_conserved(&self) {
        match self {
            Self::Link(link) => link.assert_conserved(),
            Self::Station(station, _) => station.assert_conserved(),
        }
    }
}

/// Returns the number of transmitters of `links`; links on the same medium share one.
pub fn transmitters(plan: &Plan, links: &[usize]) -> u64 {
    let mut media: Vec<_> = links.iter().filter_map(|&link| plan.links[link].medium).collect();
    let own = links.len() - media.len();
    media.sort_unstable();
    media.dedup();
    (own + media.len()) as u64
}
