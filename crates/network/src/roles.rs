//! Which links cost no event of their own.
//!
//! A FIFO of constant rate and delay has a closed form: a packet departs at the later of its arrival and the end of the
//! transmission before it. Its departure is known when it comes, and nothing need happen in between: such a link is
//! *deferred*, and its departures are booked, each at its own time, when its next event or a measurement asks for them.
//!
//! A deferred link to which packets come over one other link only is *fed* by it: that link hands over each packet, with
//! its time of arrival, as soon as the transmission's end is known, and the arrival is no event either. A link all of
//! whose packets go on over links that it feeds *forwards*, and has no deliveries of its own to wait for.
//!
//! Deferring changes no result. For that, a fed link never drops a packet, because no queue longer than
//! [`Frames::burst`] can form in it, and delays packets, so that its deliveries come after its arrivals.

use crate::routes::Routes;
use sojourn_plan::{Link, Plan, Transport};
use sojourn_queue::{Params as Queue, Unit};

/// How a link's events are processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Departures are booked later than they happen.
    pub deferred: bool,
    /// Packets are handed over by the only link over which they come.
    pub fed: bool,
    /// All packets go on over links that this one feeds.
    pub forwards: bool,
}

/// From where packets come to a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Nowhere,
    Link(u32),
    /// Hosts, or several links.
    Others,
}

/// Lengths of the frames in a plan.
struct Frames {
    longest: u64,
    shortest: u64,
}

/// Headers of a TCP segment as an Ethernet frame, and its options at most.
const TCP_HEADERS: (u64, u64) = (54, 40);
/// Headers of a datagram, and the longest payload.
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

    /// Packets, and bytes, that wait at most at a link that is as fast as the one from which they come: what comes
    /// during the transmission of a frame is no longer than that frame, but for the last that began before.
    fn burst(&self) -> (u64, u64) {
        (self.longest.div_ceil(self.shortest) + 2, 2 * self.longest)
    }
}

/// The roles of all links of a plan whose paths are known. Links that are `exact` have events at their own times.
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
        .map(|(link, exact)| Role { deferred: !exact && is_deferrable(link), ..Role::default() })
        .collect();
    for (id, source) in sources.iter().enumerate() {
        if let Source::Link(from) = *source {
            let (from, link) = (&plan.links[from as usize], &plan.links[id]);
            roles[id].fed = roles[id].deferred && takes_all(from, link, &frames);
        }
    }
    settle(&mut roles, routes, &sources, |id| is_constant(&plan.links[id]));
    roles
}

/// Finds the links that forward: a link with a packet that goes elsewhere feeds none.
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

/// Whether a link's wire is the same throughout, and lets no packet through at once.
fn is_constant(link: &Link) -> bool {
    let params = &link.params;
    let has_own_transmitter = link.medium.is_none()
        && link.ring == 0
        && link.host.as_ref().is_none_or(sojourn_link::host::Params::is_punctual);
    has_own_transmitter
        && link.changes.is_empty()
        && params.trace.is_none()
        && params.impairments.is_none()
        && (params.delay > 0 || params.rate.is_some() && params.overhead >= 0)
}

/// Whether a link has the closed form.
fn is_deferrable(link: &Link) -> bool {
    is_constant(link) && !link.host_queue && matches!(link.params.queue, Queue::Fifo(_))
}

/// Whether what comes over the link `from` can never fill the queue of `to`.
fn takes_all(from: &Link, to: &Link, frames: &Frames) -> bool {
    let (packets, bytes) = frames.burst();
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
