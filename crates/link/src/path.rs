//! A path: links one behind the other, in both directions, for programs that bring their own packets.
//!
//! A path does no I/O and reads no clock. Its user passes the time, in nanoseconds since the path's
//! beginning, sends packets into either end, and takes those that have arrived at the other end. A
//! packet that leaves a link enters the next one at its theoretical time, so a late caller changes
//! no decision: only the moment at which he sees it.

use crate::ledger::Ledger;
use crate::link::Link;
use crate::observer::{Corrupt, Event, Observer};
use crate::params::Params;
use crate::port::Port;
use sojourn_queue::{Headers, OtherDiscipline, Packet, Sender, TcpView};
use sojourn_random::Key;
use sojourn_units::{EPOCH, Nanos};
use std::collections::VecDeque;

/// A direction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the first end to the second; in presets towards the user.
    Forward,
    /// From the second end to the first.
    Reverse,
}

/// A packet that has crossed a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<P> {
    /// The time of the arrival.
    pub at: Nanos,
    /// The direction in which the packet travelled.
    pub direction: Direction,
    /// The packet, with the marks of all queues.
    pub packet: P,
}

/// A packet on one of a path's links, as the path's observer sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a, P> {
    /// The direction of the link.
    pub direction: Direction,
    /// The link's position among those of its direction, from 0.
    pub position: usize,
    /// The packet.
    pub packet: &'a P,
}

/// Links in both directions between two ends; see the [crate]'s first page. `O` receives every
/// event on every link: an [`Observer`] of [`Seen`]. Events of one link come in the order of time; if
/// the caller is late, events of several links do not.
///
/// In the steady state, calls allocate no memory.
#[derive(Clone, Debug)]
pub struct Path<P, O = ()> {
    rows: [Row<P>; 2],
    observer: O,
    /// The time of the last call.
    clock: Nanos,
}

/// The links of one direction.
#[derive(Clone, Debug)]
struct Row<P> {
    direction: Direction,
    ports: Vec<Port<P>>,
    /// Packets between two links, with the times at which they left the first.
    moving: Vec<(Nanos, P)>,
    landed: Vec<(Nanos, P)>,
    arrived: VecDeque<(Nanos, P)>,
}

/// Collects the packets that leave a link, and names the link to the observer.
struct Tap<'a, P, O> {
    direction: Direction,
    position: usize,
    landed: &'a mut Vec<(Nanos, P)>,
    observer: &'a mut O,
}

impl<P, O> Tap<'_, P, O> {
    #[inline]
    fn seen<'a>(&self, packet: &'a P) -> Seen<'a, P> {
        Seen { direction: self.direction, position: self.position, packet }
    }
}

impl<P, O: for<'a> Observer<Seen<'a, P>>> Observer<P> for Tap<'_, P, O> {
    #[inline]
    fn on_event(&mut self, at: Nanos, packet: &P, event: Event) {
        let seen = self.seen(packet);
        self.observer.on_event(at - EPOCH, &seen, event);
    }

    #[inline]
    fn landed(&mut self, at: Nanos, packet: P) {
        self.landed.push((at, packet));
    }

    fn tcp(&self, packet: &P) -> Option<TcpView> {
        self.observer.tcp(&self.seen(packet))
    }

    fn headers(&self, packet: &P) -> Headers {
        self.observer.headers(&self.seen(packet))
    }

    fn sender(&self, packet: &P) -> Sender {
        self.observer.sender(&self.seen(packet))
    }
}

/// No observer: nothing is seen, and packets have no headers beyond those of [`Packet`].
impl<P> Observer<P> for () {
    #[inline]
    fn on_event(&mut self, _: Nanos, _: &P, _: Event) {}

    fn tcp(&self, _: &P) -> Option<TcpView> {
        None
    }

    fn headers(&self, _: &P) -> Headers {
        Headers::default()
    }

    fn sender(&self, _: &P) -> Sender {
        Sender::default()
    }
}

impl<P: Packet + Clone + Corrupt> Row<P> {
    fn new(direction: Direction, ports: Vec<Port<P>>) -> Self {
        let (moving, landed, arrived) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { direction, ports, moving, landed, arrived }
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Nanos> {
        self.ports.iter().filter_map(Port::next_wakeup).min()
    }

    /// Calls `call` with the port at `position` and its observer.
    #[inline]
    fn tapped<O: for<'a> Observer<Seen<'a, P>>, R>(
        &mut self,
        position: usize,
        observer: &mut O,
        call: impl FnOnce(&mut Port<P>, &mut Tap<'_, P, O>) -> R,
    ) -> R {
        let Self { direction, ports, landed, .. } = self;
        call(&mut ports[position], &mut Tap { direction: *direction, position, landed, observer })
    }

    /// Runs all events due until `now`. Links are run one after the other: a link hears of the
    /// others only by the packets that reach it, which come in the order of time.
    #[inline]
    fn poll(&mut self, now: Nanos, observer: &mut impl for<'a> Observer<Seen<'a, P>>) {
        if self.next_wakeup().is_none_or(|at| at > now) {
            return;
        }
        for position in 0..self.ports.len() {
            let mut moving = std::mem::take(&mut self.moving);
            self.tapped(position, observer, |port, tap| {
                for (at, packet) in moving.drain(..) {
                    port.send(at, packet, &mut [], tap);
                }
                port.poll(now, &mut [], tap);
            });
            self.moving = std::mem::replace(&mut self.landed, moving);
        }
        self.arrived.extend(self.moving.drain(..));
    }

    fn send(&mut self, now: Nanos, packet: P, observer: &mut impl for<'a> Observer<Seen<'a, P>>) {
        self.poll(now, observer);
        if self.ports.is_empty() {
            self.arrived.push_back((now, packet));
        } else {
            self.tapped(0, observer, |port, tap| port.send(now, packet, &mut [], tap));
        }
    }
}

impl<P: Packet + Clone + Corrupt> Path<P> {
    /// Returns an empty path at time 0, with the links of both directions in the order in which
    /// packets cross them; a direction without links delivers at once. All random draws follow from
    /// `seed`.
    pub fn new(forward: &[Params], reverse: &[Params], seed: u64) -> Self {
        Self::observed(forward, reverse, seed, ())
    }
}

impl<P: Packet + Clone + Corrupt, O: for<'a> Observer<Seen<'a, P>>> Path<P, O> {
    /// As [`Path::new`], with an observer of all events.
    pub fn observed(forward: &[Params], reverse: &[Params], seed: u64, observer: O) -> Self {
        // From its name, a link's random draws follow.
        let ports = |links: &[Params], name| {
            let key = |position| Key::new(seed, &format!("{name}{position}"));
            let link = |(position, params)| Port::Link(Link::new(params, key(position), EPOCH));
            links.iter().enumerate().map(link).collect()
        };
        Self::of(ports(forward, "forward"), ports(reverse, "reverse"), observer)
    }

    /// Returns a path of links that the caller has made at [`EPOCH`], for links with a transmit ring
    /// or a late host ([`Port::Station`]).
    ///
    /// # Panics
    /// If a link is on a shared medium: links on a medium must be called in the order of time.
    pub fn of(forward: Vec<Port<P>>, reverse: Vec<Port<P>>, observer: O) -> Self {
        let shares = |port: &Port<P>| matches!(port, Port::Station(_, Some(_)));
        assert!(!forward.iter().chain(&reverse).any(shares), "a path's link shares a medium");
        let rows = [Row::new(Direction::Forward, forward), Row::new(Direction::Reverse, reverse)];
        Self { rows, observer, clock: 0 }
    }

    fn at(&mut self, now: Nanos) -> Nanos {
        assert!(now >= self.clock, "time went back from {} to {now}", self.clock);
        self.clock = now;
        EPOCH.checked_add(now).expect("a path's time is below 584 years")
    }

    /// Sends `packet` into the path at `now`.
    ///
    /// # Panics
    /// If `now` is before an earlier call's, or above 584 years.
    #[inline]
    pub fn send(&mut self, now: Nanos, direction: Direction, packet: P) {
        let at = self.at(now);
        self.rows[direction as usize].send(at, packet, &mut self.observer);
    }

    /// Returns the next packet that has arrived by `now`, in the order of arrival; of two packets
    /// at the same time the forward one is first. Call until it returns `None`.
    ///
    /// # Panics
    /// If `now` is before an earlier call's, or above 584 years.
    #[inline]
    pub fn poll(&mut self, now: Nanos) -> Option<Arrival<P>> {
        let at = self.at(now);
        self.rows.iter_mut().for_each(|row| row.poll(at, &mut self.observer));
        let first = |row: &Row<P>| row.arrived.front().map_or(Nanos::MAX, |first| first.0);
        let [forward, reverse] = [first(&self.rows[0]), first(&self.rows[1])];
        let direction = if forward <= reverse { Direction::Forward } else { Direction::Reverse };
        let (at, packet) = self.rows[direction as usize].arrived.pop_front()?;
        Some(Arrival { at: at - EPOCH, direction, packet })
    }

    /// Returns when [`Path::poll`] must be called next; `None` if nothing moves. The time is past
    /// if an arrival waits. Every other call may change it.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Nanos> {
        let next = |row: &Row<P>| {
            let arrived = row.arrived.front().map(|first| first.0);
            arrived.into_iter().chain(row.next_wakeup()).min()
        };
        self.rows.iter().filter_map(next).min().map(|at| at - EPOCH)
    }

    /// Gives the link at `position` of a direction new parameters at `now`, after all events due
    /// until then. A packet in transmission ends at the old rate, and packets on the wire keep
    /// their arrival times, except with slots. A shorter queue may drop packets.
    ///
    /// # Errors
    /// If `params` has another discipline: a queue keeps its discipline. The link is unchanged.
    ///
    /// # Panics
    /// If `now` is before an earlier call's, or above 584 years, or the direction has no link at
    /// `position`.
    pub fn change(
        &mut self,
        now: Nanos,
        direction: Direction,
        position: usize,
        params: &Params,
    ) -> Result<(), OtherDiscipline> {
        let at = self.at(now);
        let Self { rows, observer, .. } = self;
        let row = &mut rows[direction as usize];
        row.poll(at, observer);
        row.tapped(position, observer, |port, tap| port.change(at, params, &mut [], tap))
    }

    /// Returns the counts of a direction's packets as of one link: `offered` counts those sent into
    /// the path, `delivered` those that arrived at its end, and every other field the events on all
    /// links. A packet marked by two queues counts twice. A direction without links counts none.
    pub fn stats(&self, direction: Direction) -> Ledger {
        let ports = self.links(direction);
        let all: Ledger = ports.iter().map(|port| *port.stats()).sum();
        let Some((first, last)) = ports.first().zip(ports.last()) else { return all };
        let (offered, delivered) = (first.stats().offered, last.stats().delivered);
        // Departed is what is neither dropped nor queued, so the identities of a ledger hold.
        Ledger { offered, departed: offered - all.drops() - all.queued(), delivered, ..all }
    }

    /// Returns the links of a direction, to read their queues, backlogs and counts, in their state
    /// at the last event.
    pub fn links(&self, direction: Direction) -> &[Port<P>] {
        &self.rows[direction as usize].ports
    }

    /// Returns the observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Returns the observer, to change it.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }
}
