//! A link by the kind of its transmitter, as networks and paths drive it.

use crate::csma::Medium;
use crate::ledger::{Backlog, Ledger};
use crate::link::Link;
use crate::link::station::Station;
use crate::observer::{Corrupt, Observer};
use crate::params::Params;
use sojourn_queue::{OtherDiscipline, Packet, Return};
use sojourn_units::Nanos;

/// A link with any transmitter. [`Port::send`], [`Port::poll`], [`Port::next_wakeup`],
/// [`Port::change`] and [`Port::stats`] are all that its user needs: the simulator and the
/// real-time emulator call them for each link of a network, and a [`Path`](crate::Path) for its
/// links. `media` are all shared media among which a station finds its own.
#[expect(clippy::large_enum_variant, reason = "nearly all ports are links, without indirection")]
#[derive(Clone, Debug)]
pub enum Port<P> {
    /// A link with its own transmitter and nothing else.
    Link(Link<P>),
    /// A link with a transmit ring, with a late host, or on the shared medium with this number.
    Station(Box<Station<P>>, Option<u32>),
}

/// Returns the shared medium of a station; `None` without one.
fn of(media: &mut [Medium], id: Option<u32>) -> Option<&mut Medium> {
    id.map(|id| &mut media[id as usize])
}

impl<P: Packet + Clone + Corrupt> Port<P> {
    /// Brings a packet to the link's queue (see [`Link::send`]).
    #[inline]
    pub fn send(
        &mut self,
        now: Nanos,
        packet: P,
        media: &mut [Medium],
        observer: &mut impl Observer<P>,
    ) -> Return {
        match self {
            Self::Link(link) => link.send(now, packet, observer),
            Self::Station(station, id) => station.send(now, packet, of(media, *id), observer),
        }
    }

    /// Runs the link's events until `now` (see [`Link::poll`]).
    #[inline]
    pub fn poll(&mut self, now: Nanos, media: &mut [Medium], observer: &mut impl Observer<P>) {
        match self {
            Self::Link(link) => link.poll(now, observer),
            Self::Station(station, id) => station.poll(now, of(media, *id), observer),
        }
    }

    /// Returns when [`Port::poll`] must be called next; `None` if nothing moves.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Nanos> {
        match self {
            Self::Link(link) => link.next_wakeup(),
            Self::Station(station, _) => station.next_wakeup(),
        }
    }

    /// Changes the link's parameters, including those of its queue (see [`Link::change`]).
    ///
    /// # Errors
    /// If `params` has another discipline. Then only the events due until `now` have
    /// happened.
    pub fn change(
        &mut self,
        now: Nanos,
        params: &Params,
        media: &mut [Medium],
        observer: &mut impl Observer<P>,
    ) -> Result<(), OtherDiscipline> {
        match self {
            Self::Link(link) => link.change(now, params, observer),
            Self::Station(station, id) => station.change(now, params, of(media, *id), observer),
        }
    }

    /// Changes the link's parameters except those of its queue (see [`Link::set_wire`]).
    pub fn set_wire(
        &mut self,
        now: Nanos,
        params: &Params,
        media: &mut [Medium],
        observer: &mut impl Observer<P>,
    ) {
        match self {
            Self::Link(link) => link.set_wire(now, params, observer),
            Self::Station(station, id) => station.set_wire(now, params, of(media, *id), observer),
        }
    }

    /// Returns the counts of events since the link's creation.
    pub fn stats(&self) -> &Ledger {
        self.link().stats()
    }

    /// Returns the queue's backlog.
    pub fn backlog(&self) -> Backlog {
        self.link().backlog()
    }

    /// Returns the link, with its queue and ledger.
    #[inline]
    pub fn link(&self) -> &Link<P> {
        match self {
            Self::Link(link) => link,
            Self::Station(station, _) => station.link(),
        }
    }

    /// Returns the link of a port that is no station.
    ///
    /// # Panics
    /// If it is a station.
    #[inline]
    pub fn plain(&mut self) -> &mut Link<P> {
        match self {
            Self::Link(link) => link,
            Self::Station(..) => unreachable!("a station has no closed form"),
        }
    }

    /// Begins the measurements of the queue's classes anew.
    pub fn restart(&mut self) {
        match self {
            Self::Link(link) => link.restart(),
            Self::Station(station, _) => station.restart(),
        }
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
