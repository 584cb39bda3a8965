//! Roles of links, which reduce the number of events: some links need no events of their own.
//!
//! A FIFO of constant rate and delay has a closed form: the transmission of a packet begins at the
//! packet's arrival, or at the end of the previous transmission if that is later. The departure is
//! therefore known at the arrival and needs no event. Such a link is *deferred*: its departures are
//! booked, with their own times, at the link's next event or before a measurement.
//!
//! A deferred link whose packets all come from one other link may be *fed* by that link. The other
//! link hands over each packet with its time of arrival as soon as the end of its transmission is
//! known, so the arrival needs no event either. A link *forwards* if all its packets continue over
//! links that it feeds; its deliveries need no events.
//!
//! Roles change no result. Two conditions ensure this: a fed link never drops a packet, because no
//! queue longer than [`Frames::burst`] can form in it; and every link with a role delays each
//! packet, so its deliveries are later than its arrivals.

use crate::routes::Routes;
use sojourn_plan::{Link, Plan, Transport};
use sojourn_queue::{Params as Queue, Unit};
use sojourn_units::{Rate, SECOND};

/// How a link's events are processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Whether departures are booked at a later event.
    pub deferred: bool,
    /// Whether the only link from which packets come hands them over in advance.
    pub fed: bool,
    /// Whether all packets continue over links that this link feeds.
    pub forwards: bool,
}

/// The origin of the packets that arrive at a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Nowhere,
    Link(u32),
    /// Hosts, or several links.
    Others,
}

/// Bounds on the lengths of a plan's frames, in bytes.
struct Frames {
    longest: u64,
    shortest: u64,
}

/// Bytes of the Ethernet, IP and TCP headers of a segment, and the maximum of its TCP options.
const TCP_HEADERS: (u64, u64) = (54, 40);
/// Bytes of the Ethernet, IP and UDP headers of a datagram, and the maximum of its payload.
const UDP: (u64, u64) = (42, 65_535);

impl Frames {
    fn of(plan: &Plan) -> Self {
        let longest = |transport: &Transport| match transport {
            Transport::Tcp(params) => TCP_HEADERS.0 + TCP_HEADERS.1 + u64::from(params.mss),
            Transport::Udp => UDP.0 + UDP.1,
        };
        let longest = plan.groups.iter().map(|group| longest(&group.transport)).max();
        Self { longest: longest.unwrap_or(0), shortest: UDP.0 }
    }

    /// Returns the maximum backlog, in packets and in bytes, of a link that is at least as fast as
    /// the only link from which its packets come, with the rate `from`: the frames that arrive
    /// during one transmission are together no longer than the transmitted frame, except one whose
    /// arrival began before, and those that two nanoseconds hold, since times are rounded up.
    fn burst(&self, from: Option<Rate>) -> (u64, u64) {
        let rounded = from.map_or(0, |rate| rate.bits() / (4 * SECOND));
        ((self.longest + rounded).div_ceil(self.shortest) + 2, 2 * self.longest + rounded)
    }

    /// Returns whether no frame is transmitted within a nanosecond at `rate`.
    fn all_take_time(&self, rate: Rate) -> bool {
        rate.span(self.shortest as u32).whole > 0
    }
}

/// Returns the roles of all links of a plan. All paths must be known. Links in `exact` are not
/// deferred: they have events at their own times.
pub fn roles(plan: &Plan, routes: &Routes, exact: &[bool]) -> Vec<Role> {
    let mut sources = vec![Source::Nowhere; plan.links.len()];
    for path in routes.paths() {
        let mut source = Source::Others;
        for &link in path {
            let known = &mut sources[link as usize];
            *known =
                if *known == Source::Nowhere || *known == source { source } else { Source::Others };
            source = Source::Link(link);
        }
    }
    let frames = Frames::of(plan);
    let mut roles: Vec<_> = plan
        .links
        .iter()
        .zip(exact)
        .map(|(link, exact)| Role {
            deferred: !exact && is_deferrable(link, &frames),
            ..Role::default()
        })
        .collect();
    for (id, source) in sources.iter().enumerate() {
        if let Source::Link(from) = *source {
            let (from, link) = (&plan.links[from as usize], &plan.links[id]);
            roles[id].fed = roles[id].deferred && takes_all(from, link, &frames);
        }
    }
    settle(&mut roles, routes, &sources, |id| is_constant(&plan.links[id], &frames));
    roles
}

/// Sets the role `forwards`, and clears `fed` for links whose source does not forward: a link feeds
/// no link if at least one path over it does not continue over a fed link.
fn settle(
    roles: &mut [Role],
    routes: &Routes,
    sources: &[Source],
    is_constant: impl Fn(usize) -> bool,
) {
    for (id, role) in roles.iter_mut().enumerate() {
        role.forwards = is_constant(id) && sources[id] != Source::Nowhere;
    }
    for path in routes.paths() {
        for (i, &link) in path.iter().enumerate() {
            let next = path.get(i + 1);
            roles[link as usize].forwards &= next.is_some_and(|&next| roles[next as usize].fed);
        }
    }
    for (id, source) in sources.iter().enumerate() {
        roles[id].fed &= matches!(*source, Source::Link(from) if roles[from as usize].forwards);
    }
}

/// Returns whether a link keeps its rate and delay throughout the run, has its own transmitter and
/// no impairments, and delays every packet.
fn is_constant(link: &Link, frames: &Frames) -> bool {
    let params = &link.params;
    link.has_own_transmitter()
        && link.offload.is_none()
        && link.changes.is_empty()
        && params.trace.is_none()
        && params.impairments.is_none()
        && (params.delay > 0
            || params.rate.is_some_and(|rate| frames.all_take_time(rate)) && params.overhead >= 0)
}

/// Returns whether a link has the closed form that the module's comment describes.
fn is_deferrable(link: &Link, frames: &Frames) -> bool {
    is_constant(link, frames) && !link.host_queue && matches!(link.params.queue, Queue::Fifo(_))
}

/// Returns whether packets from the link `from` can never fill the queue of the link `to`.
fn takes_all(from: &Link, to: &Link, frames: &Frames) -> bool {
    let (packets, bytes) = frames.burst(from.params.rate);
    let fits = to.params.queue.limit().is_none_or(|(unit, limit)| {
        u64::from(limit) >= if unit == Unit::Packets { packets } else { bytes }
    });
    let (from, to) = (&from.params, &to.params);
    let alike = from.overhead == to.overhead && from.overhead >= 0 && from.cells == to.cells;
    let keeps_up = match (from.rate, to.rate) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(from), Some(to)) => alike && to.bits() >= from.bits(),
    };
    fits && keeps_up
}
