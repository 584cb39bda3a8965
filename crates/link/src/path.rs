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
use sojourn_measure::Count;
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

/// The packets of a direction by their fate. Every packet is in one place:
/// `sent + duplicated = dropped + lost + delivered + inside`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets sent into the path.
    pub sent: Count,
    /// Packets dropped by queues.
    pub dropped: Count,
    /// Packets marked: once for each mark, so two queues may mark a packet twice.
    pub marked: Count,
    /// Packets lost on a wire.
    pub lost: Count,
    /// Copies made on a wire.
    pub duplicated: Count,
    /// Packets that arrived at the path's end.
    pub delivered: Count,
    /// Packets in queues and on wires.
    pub inside: Count,
}

/// Links in both directions between two ends; see the [crate]'s first page. `O` receives every
/// event on every link, with its time on the simulator's clock, which begins at [`EPOCH`]. Events
/// of one link come in the order of time; if the caller is late, events of several links do not.
///
/// In the steady state, calls allocate no memory.
#[derive(Clone, Debug)]
pub struct Path<P, O = ()> {
    ways: [Way<P>; 2],
    observer: O,
    /// The time of the last call.
    clock: Nanos,
}

/// The links of one direction.
#[derive(Clone, Debug)]
struct Way<P> {
    links: Vec<Link<P>>,
    /// Packets between two links, with the times at which they left the first.
    moving: Vec<(Nanos, P)>,
    landed: Vec<(Nanos, P)>,
    arrived: VecDeque<(Nanos, P)>,
}

/// Collects the packets that leave a link.
struct Landing<'a, P, O> {
    landed: &'a mut Vec<(Nanos, P)>,
    observer: &'a mut O,
}

impl<P, O: Observer<P>> Observer<P> for Landing<'_, P, O> {
    #[inline]
    fn on_event(&mut self, at: Nanos, packet: &P, event: Event) {
        self.observer.on_event(at, packet, event);
    }

    #[inline]
    fn landed(&mut self, at: Nanos, packet: P) {
        self.landed.push((at, packet));
    }

    fn tcp(&self, packet: &P) -> Option<TcpView> {
        self.observer.tcp(packet)
    }

    fn headers(&self, packet: &P) -> Headers {
        self.observer.headers(packet)
    }

    fn sender(&self, packet: &P) -> Sender {
        self.observer.sender(packet)
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

impl<P: Packet + Clone + Corrupt> Way<P> {
    /// `name` and the position of a link are its name, from which its random draws follow.
    fn new(params: &[Params], seed: u64, name: &str) -> Self {
        let link = |(position, params)| {
            Link::new(params, Key::new(seed, &format!("{name}{position}")), EPOCH)
        };
        Self {
            links: params.iter().enumerate().map(link).collect(),
            moving: Vec::new(),
            landed: Vec::new(),
            arrived: VecDeque::new(),
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        self.links.iter().filter_map(Link::next_event).min()
    }

    /// Runs all events due until `now`. Links are run one after the other: a link hears of the
    /// others only by the packets that reach it, which come in the order of time.
    #[inline]
    fn advance(&mut self, now: Nanos, observer: &mut impl Observer<P>) {
        if self.next_event().is_none_or(|at| at > now) {
            return;
        }
        let Self { links, moving, landed, arrived } = self;
        for link in links {
            let mut landing = Landing { landed, observer };
            for (at, packet) in moving.drain(..) {
                link.offer(at, packet, &mut landing);
            }
            link.advance(now, &mut landing);
            std::mem::swap(moving, landed);
        }
        arrived.extend(moving.drain(..));
    }

    fn send(&mut self, now: Nanos, packet: P, observer: &mut impl Observer<P>) {
        self.advance(now, observer);
        let Self { links, landed, arrived, .. } = self;
        match links.first_mut() {
            Some(link) => {
                link.offer(now, packet, &mut Landing { landed, observer });
            }
            None => arrived.push_back((now, packet)),
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

impl<P: Packet + Clone + Corrupt, O: Observer<P>> Path<P, O> {
    /// As [`Path::new`], with an observer of all events.
    pub fn observed(forward: &[Params], reverse: &[Params], seed: u64, observer: O) -> Self {
        let ways = [Way::new(forward, seed, "forward"), Way::new(reverse, seed, "reverse")];
        Self { ways, observer, clock: 0 }
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
        self.ways[direction as usize].send(at, packet, &mut self.observer);
    }

    /// Returns the next packet that has arrived by `now`, in the order of arrival; of two packets
    /// at the same time the forward one is first. Call until it returns `None`.
    ///
    /// # Panics
    /// If `now` is before an earlier call's, or above 584 years.
    #[inline]
    pub fn poll(&mut self, now: Nanos) -> Option<Arrival<P>> {
        let at = self.at(now);
        self.ways.iter_mut().for_each(|way| way.advance(at, &mut self.observer));
        let first = |way: &Way<P>| way.arrived.front().map_or(Nanos::MAX, |first| first.0);
        let [forward, reverse] = [first(&self.ways[0]), first(&self.ways[1])];
        let direction = if forward <= reverse { Direction::Forward } else { Direction::Reverse };
        let (at, packet) = self.ways[direction as usize].arrived.pop_front()?;
        Some(Arrival { at: at - EPOCH, direction, packet })
    }

    /// Returns when [`Path::poll`] must be called next; `None` if nothing moves. The time is past
    /// if an arrival waits. Every other call may change it.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Nanos> {
        let next = |way: &Way<P>| {
            let arrived = way.arrived.front().map(|first| first.0);
            arrived.into_iter().chain(way.next_event()).min()
        };
        self.ways.iter().filter_map(next).min().map(|at| at - EPOCH)
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
        let Self { ways, observer, .. } = self;
        let way = &mut ways[direction as usize];
        way.advance(at, observer);
        let Way { links, landed, .. } = way;
        links[position].change(at, params, &mut Landing { landed, observer })
    }

    /// Returns the counts of a direction's packets, all its links together; a direction without
    /// links counts none.
    pub fn stats(&self, direction: Direction) -> Stats {
        let links = self.links(direction);
        let all: Ledger = links.iter().map(|link| *link.ledger()).sum();
        let Some((first, last)) = links.first().zip(links.last()) else { return Stats::default() };
        Stats {
            sent: first.ledger().offered,
            dropped: all.drops(),
            marked: all.marked,
            lost: all.lost,
            duplicated: all.duplicated,
            delivered: last.ledger().delivered,
            inside: all.queued() + all.on_line(),
        }
    }

    /// Returns the links of a direction, to read their queues, backlogs and ledgers, in their state
    /// at the last event.
    pub fn links(&self, direction: Direction) -> &[Link<P>] {
        &self.ways[direction as usize].links
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
