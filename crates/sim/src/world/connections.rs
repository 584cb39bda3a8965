//! TCP connections: both ends of each, in slots that are used again.
//!
//! The opener's end is at an even slot, the other next to it. A connection is gone when both ends
//! have closed; packets of it that are still in transit then find another number in their slot, or
//! none, and are discarded. An end in TIME-WAIT does not hold its slot: the simulator knows that
//! its peer has received the last segment.

use super::timers::NEVER;
use sojourn_network::{Node, Place, Tally};
use sojourn_plan::{Group, Plan, Transport};
use sojourn_tcp::{Connection, Params, Role};
use sojourn_traffic::App;
use sojourn_units::{Nanos, SECOND};
use std::sync::Arc;

/// A connection as its owner knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The slot of the end that an event is about.
    pub slot: u32,
    /// The number that its owner gave it.
    pub tag: u32,
    /// Whether its opener's data go from the flow's sender to its receiver.
    pub forward: bool,
}

/// The owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A flow's application. The connection is measured for the flow.
    Flow(u32),
    /// An application of the plan's own.
    App(u32),
}

impl Owner {
    /// Returns the number of the application.
    #[inline]
    pub fn app(self) -> u32 {
        let (Self::Flow(app) | Self::App(app)) = self;
        app
    }
}

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A segment was taken. Data that the owner writes now leave with the answer. Reported for
    /// connections that their owner follows.
    Progress {
        /// Payload that has come to this end, in order, since the connection was opened.
        delivered: u64,
        /// Whether more data were acknowledged: there is room again in the send buffer.
        room: bool,
    },
    /// All the payload that was expected has come.
    Complete,
    /// Both ends have closed, and nothing was outstanding.
    Closed,
    /// The connection is gone, by a reset too, and not all that was expected had come.
    Lost,
    /// The answer to a segment is sent. Reported for connections without a flow only.
    Settled,
}

/// The parameters of a new connection; of pairs, the opener's comes first.
pub struct Opening<'a> {
    /// TCP's parameters.
    pub params: &'a Arc<Params>,
    /// Its owner.
    pub owner: Owner,
    /// The owner's number for it.
    pub tag: u32,
    /// Whether the opener's data go from the flow's sender to its receiver.
    pub forward: bool,
    /// Whether the owner is notified of [`Change::Progress`].
    pub followed: bool,
    /// The opener's node, the other's, the path and the way back.
    pub ends: (Node, Node, Place, Place),
    /// Ledgers of the packets of both ends.
    pub accounts: [u32; 2],
    /// Hashes of their headers.
    pub hashes: [u32; 2],
    /// A random number for their congestion controls.
    pub draw: u32,
    /// The byte of code point and ECN.
    pub tos: u8,
    /// Whether the hosts throw away what comes.
    pub cut: bool,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) tcp: Connection,
    pub(super) owner: Owner,
    pub(super) tag: u32,
    pub(super) forward: bool,
    pub(super) followed: bool,
    pub(super) cut: bool,
    pub(super) tos: u8,
    /// Number of the connection in the run; 0 if the slot is free.
    pub(super) number: u32,
    /// The ledger of the packets that leave here.
    pub(super) account: u32,
    pub(super) nodes: (Node, Node),
    pub(super) place: Place,
    pub(super) hash: u32,
    /// When the timer is set; it may be set earlier than needed.
    pub(super) armed: Nanos,
    /// Payload after which what is received is complete.
    pub(super) expected: u64,
    /// Payload acknowledged so far, and delivered here.
    pub(super) acked: u64,
    pub(super) delivered: u64,
    /// The congestion window since it was last added to its course.
    cwnd: u64,
}

/// A connection's congestion window over time, at the end whose data are the flow's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    opened: Nanos,
    /// Window times time, up to when.
    sum: u128,
    since: Nanos,
}

impl Course {
    fn begin(now: Nanos) -> Self {
        Self { opened: now, sum: 0, since: now }
    }

    fn at(&self, now: Nanos, cwnd: u64) -> u128 {
        self.sum + u128::from(cwnd) * u128::from(now - self.since)
    }
}

impl End {
    pub(super) fn handle(&self, slot: u32) -> Handle {
        Handle { slot, tag: self.tag, forward: self.forward }
    }

    fn tally(&self, now: Nanos, sends: bool, course: &Course) -> Tally {
        let counters = self.tcp.counters();
        let receives = !sends && self.forward;
        let open = sends && self.forward;
        Tally {
            bytes: if receives { self.tcp.bytes_delivered() } else { 0 },
            retransmissions: counters.retransmits,
            timeouts: counters.rtos,
            recoveries: counters.recoveries,
            window: if open { course.at(now, self.cwnd) } else { 0 },
            time: if open { now - course.opened } else { 0 },
            ..Tally::default()
        }
    }

    /// Adds to the course of the window of an opener whose data are the flow's, if it has changed.
    #[inline]
    pub(super) fn follow_window(&mut self, now: Nanos, slot: u32, courses: &mut [Course]) {
        let cwnd = self.tcp.cwnd();
        if self.forward && slot.is_multiple_of(2) && cwnd != self.cwnd {
            let course = &mut courses[slot as usize / 2];
            course.sum = course.at(now, self.cwnd);
            course.since = now;
            self.cwnd = cwnd;
        }
    }
}

/// All connections.
#[derive(Clone, Debug)]
pub struct Connections {
    pub(super) ends: Vec<End>,
    /// By pairs of slots.
    pub(super) courses: Vec<Course>,
    free: Vec<u32>,
    opened: u32,
    /// Parameters by group.
    params: Vec<Option<Arc<Params>>>,
    /// What the closed connections of each application did, if it had any.
    closed: Vec<Option<Box<Tally>>>,
}

impl Connections {
    /// None yet, of so many applications.
    pub fn new(plan: &Plan, apps: usize) -> Self {
        let is_tcp = |group: &Group| matches!(group.transport, Transport::Tcp(_));
        let params = plan.groups.iter().map(|group| match &group.transport {
            Transport::Tcp(params) => Some(Arc::new(params.clone())),
            Transport::Udp => None,
        });
        // Flows with one connection at a time: their number is known, and room for it is not to be
        // found by doubling.
        let several = |app: &App| matches!(app, App::Web(_) | App::Responsiveness(_));
        let single = plan.groups.iter().filter(|g| is_tcp(g) && !several(&g.app));
        let pairs: usize = single.map(|g| g.count as usize).sum();
        Self {
            ends: Vec::with_capacity(2 * pairs),
            courses: Vec::with_capacity(pairs),
            free: Vec::new(),
            opened: 0,
            params: params.collect(),
            closed: vec![None; apps],
        }
    }

    /// Returns the parameters of a group's connections.
    pub fn params(&self, group: u32) -> &Arc<Params> {
        self.params[group as usize].as_ref().expect("the group is of TCP flows")
    }

    /// Returns the end of a connection in a slot.
    pub fn end(&mut self, slot: u32) -> &mut Connection {
        &mut self.ends[slot as usize].tcp
    }

    /// Lets both hosts of a connection throw away what comes, or take it again.
    pub fn cut(&mut self, slot: u32, cut: bool) {
        let pair = slot & !1;
        for slot in [pair, pair + 1] {
            self.ends[slot as usize].cut = cut;
        }
    }

    /// Congestion window in bytes and smoothed round-trip time in seconds of the connection in a
    /// slot.
    pub fn window(&self, slot: u32) -> (f64, f64) {
        let tcp = &self.ends[slot as usize].tcp;
        let srtt = tcp.srtt().map_or(f64::NAN, |rtt| rtt as f64 / SECOND as f64);
        (tcp.cwnd() as f64, srtt)
    }

    /// Puts both ends of a new connection into slots, and returns the opener's.
    pub(super) fn insert(&mut self, now: Nanos, opening: &Opening) -> u32 {
        self.opened += 1;
        let number = self.opened;
        let (near, far, there, back) = opening.ends;
        let end = |role, i: usize, nodes, place| {
            let mut tcp = Connection::new(opening.params, role, now);
            tcp.set_draw(opening.draw);
            End {
                cwnd: tcp.cwnd(),
                tcp,
                owner: opening.owner,
                tag: opening.tag,
                forward: opening.forward,
                followed: opening.followed,
                cut: opening.cut,
                tos: opening.tos,
                number,
                account: opening.accounts[i],
                nodes,
                place,
                hash: opening.hashes[i],
                armed: NEVER,
                expected: u64::MAX,
                acked: 0,
                delivered: 0,
            }
        };
        let pair =
            [end(Role::Active, 0, (near, far), there), end(Role::Passive, 1, (far, near), back)];
        let course = Course::begin(now);
        if let Some(slot) = self.free.pop() {
            self.courses[slot as usize / 2] = course;
            for (i, end) in pair.into_iter().enumerate() {
                self.ends[slot as usize + i] = end;
            }
            slot
        } else {
            let slot = self.ends.len() as u32;
            self.ends.extend(pair);
            self.courses.push(course);
            slot
        }
    }

    /// Frees the slots of a connection.
    pub(super) fn remove(&mut self, now: Nanos, pair: u32) {
        for (slot, sends) in [(pair, true), (pair + 1, false)] {
            let end = &mut self.ends[slot as usize];
            let tally = end.tally(now, sends, &self.courses[pair as usize / 2]);
            let app = end.owner.app();
            end.number = 0;
            end.armed = NEVER;
            self.closed(app).add(&tally);
        }
        self.free.push(pair);
    }

    /// Returns what was counted of an application's closed connections, to be added to.
    fn closed(&mut self, app: u32) -> &mut Tally {
        self.closed[app as usize].get_or_insert_default()
    }

    /// Returns what TCP did for each application since the start, open connections included.
    pub fn tallies(&self, now: Nanos) -> Vec<Tally> {
        let closed = self.closed.iter().map(|tally| tally.as_deref().copied().unwrap_or_default());
        let mut tallies: Vec<Tally> = closed.collect();
        let ends = self.ends.iter().enumerate();
        for (i, end) in ends.filter(|(_, end)| end.number != 0) {
            let tally = end.tally(now, i.is_multiple_of(2), &self.courses[i / 2]);
            tallies[end.owner.app() as usize].add(&tally);
        }
        tallies
    }

    /// Returns the number of slots, in use or free.
    pub(super) fn slots(&self) -> u32 {
        self.ends.len() as u32
    }
}
