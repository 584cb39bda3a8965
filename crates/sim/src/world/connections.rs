//! TCP connections: both ends of each, in slots that are reused.
//!
//! The opener's end is in an even slot, the other end in the next slot. A connection is removed
//! when both ends have closed. Packets of the connection that are still in transit are discarded on
//! arrival, since their slot then has another connection's number or none. An end in TIME-WAIT does
//! not occupy its slot, because the simulator knows that the peer has received the last segment.

use super::timers::NEVER;
use crate::qlog::Qlog;
use sojourn_network::{Node, Place, Tally};
use sojourn_plan::{Group, Plan, Transport};
use sojourn_tcp::{Connection, Params, Role};
use sojourn_units::{Nanos, SECOND};
use std::sync::Arc;

/// Identifies a connection to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The slot of the end that an event is about.
    pub slot: u32,
    /// The number that the owner gave the connection.
    pub tag: u32,
    /// Whether the opener's data go from the flow's sender to its receiver.
    pub forward: bool,
}

/// The owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A flow's application. The connection is measured for the flow.
    Flow(u32),
    /// One of the plan's own applications.
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
    /// An end has received a segment. Data that the owner writes now are sent with the answer.
    /// Reported only for connections that their owner follows.
    Progress {
        /// Bytes of payload delivered in order at this end since the connection was opened.
        delivered: u64,
        /// Whether the segment acknowledged more data, which frees space in the send buffer.
        room: bool,
    },
    /// All expected payload has been delivered.
    Complete,
    /// The connection has ended, by closing or a reset, and no expected payload is missing.
    Closed,
    /// The connection has ended, by closing or a reset, and expected payload is missing.
    Lost,
    /// The answer to a segment has been sent. Reported only for connections of the plan's own
    /// applications.
    Settled,
}

/// The parameters of a new connection. In arrays of two, the opener's value is first.
pub struct Opening<'a> {
    /// TCP's parameters.
    pub params: &'a Arc<Params>,
    /// The connection's owner.
    pub owner: Owner,
    /// The owner's number for the connection.
    pub tag: u32,
    /// Whether the opener's data go from the flow's sender to its receiver.
    pub forward: bool,
    /// Whether the owner is notified of [`Change::Progress`].
    pub followed: bool,
    /// The opener's node, the other node, the path from the opener, and the path to the opener.
    pub ends: (Node, Node, Place, Place),
    /// Indices of the accounts of the packets that each end sends.
    pub accounts: [u32; 2],
    /// Hashes of the headers of the packets that each end sends.
    pub hashes: [u32; 2],
    /// A random number for the congestion controls of both ends.
    pub draw: u32,
    /// The DSCP in the upper six bits; the ECN bits are 0.
    pub tos: u8,
    /// Whether both hosts discard the connection's packets, in a partition.
    pub cut: bool,
}

/// One end of a connection.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the properties are independent of each other")]
pub(super) struct End {
    pub(super) tcp: Connection,
    pub(super) owner: Owner,
    pub(super) tag: u32,
    pub(super) forward: bool,
    pub(super) followed: bool,
    pub(super) cut: bool,
    /// Whether the end hands super-packets to its host's own queue.
    pub(super) offload: bool,
    pub(super) tos: u8,
    /// Number of the connection in the run; 0 if the slot is free.
    pub(super) number: u32,
    /// Index of the account of the packets that this end sends.
    pub(super) account: u32,
    pub(super) nodes: (Node, Node),
    pub(super) place: Place,
    pub(super) hash: u32,
    /// Time at which the timer expires, or [`NEVER`]. It may be earlier than TCP's deadline.
    pub(super) armed: Nanos,
    /// Bytes of payload that this end expects (see [`Change::Complete`]); `u64::MAX` without an
    /// expectation and after completion.
    pub(super) expected: u64,
    /// Bytes of this end's payload that were acknowledged.
    pub(super) acked: u64,
    /// Bytes of payload that have arrived at this end, in order or not.
    pub(super) arrived: u64,
    /// Congestion window in bytes since the last change that was added to the [`Course`].
    cwnd: u64,
    /// The trace of this end, if the plan requests one.
    pub(super) qlog: Option<Box<Qlog>>,
}

/// The congestion window, over time, of the end that sends the flow's data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    opened: Nanos,
    /// Integral of the window in byte-nanoseconds until `since`.
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
        let (counters, limited) = (self.tcp.counters(), self.tcp.limited(now));
        let receives = !sends && self.forward;
        let open = sends && self.forward;
        Tally {
            bytes: if receives { self.tcp.bytes_delivered() } else { 0 },
            arrived: if receives { self.tcp.bytes_arrived() } else { 0 },
            retransmissions: counters.retransmits,
            timeouts: counters.rtos,
            recoveries: counters.recoveries,
            window: if open { course.at(now, self.cwnd) } else { 0 },
            time: if open { now - course.opened } else { 0 },
            window_limited: if open { limited.window } else { 0 },
            buffer_limited: if open { limited.buffer } else { 0 },
            ..Tally::default()
        }
    }

    /// Adds a change of the congestion window to its course if this end is an opener that sends the
    /// flow's data.
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
    /// One course for each pair of slots.
    pub(super) courses: Vec<Course>,
    free: Vec<u32>,
    opened: u32,
    /// TCP parameters of each group; `None` for groups of UDP.
    params: Vec<Option<Arc<Params>>>,
    /// Counters of the closed connections of each application; `None` before the first.
    closed: Vec<Option<Box<Tally>>>,
    /// Traces of closed connections.
    qlogs: Vec<Qlog>,
}

impl Connections {
    /// Returns an empty table of connections for `apps` applications.
    pub fn new(plan: &Plan, apps: usize) -> Self {
        let is_tcp = |group: &Group| matches!(group.transport, Transport::Tcp(_));
        let params = plan.groups.iter().map(|group| match &group.transport {
            Transport::Tcp(params) => Some(Arc::new(params.clone())),
            Transport::Udp => None,
        });
        // If flows have one connection at a time, the maximum number of connections is known. The
        // tables get this capacity at once.
        let single = plan.groups.iter().filter(|g| is_tcp(g) && !g.app.opens_sessions());
        let pairs: usize = single.map(|g| g.count as usize).sum();
        Self {
            ends: Vec::with_capacity(2 * pairs),
            courses: Vec::with_capacity(pairs),
            free: Vec::new(),
            opened: 0,
            params: params.collect(),
            closed: vec![None; apps],
            qlogs: Vec::new(),
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

    /// Makes both hosts of a connection discard its packets, or accept them again.
    pub fn cut(&mut self, slot: u32, cut: bool) {
        let pair = slot & !1;
        for slot in [pair, pair + 1] {
            self.ends[slot as usize].cut = cut;
        }
    }

    /// Returns the congestion window in bytes and the smoothed round-trip time in seconds (NaN
    /// without a sample) of the end in a slot.
    pub fn window(&self, slot: u32) -> (f64, f64) {
        let tcp = &self.ends[slot as usize].tcp;
        let srtt = tcp.srtt().map_or(f64::NAN, |rtt| rtt as f64 / SECOND as f64);
        (tcp.cwnd() as f64, srtt)
    }

    /// Stores both ends of a new connection, and returns the slot of the opener's end.
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
                offload: false,
                tos: opening.tos,
                number,
                account: opening.accounts[i],
                nodes,
                place,
                hash: opening.hashes[i],
                armed: NEVER,
                expected: u64::MAX,
                acked: 0,
                arrived: 0,
                qlog: None,
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
            self.qlogs.extend(end.qlog.take().map(|log| *log));
            self.closed(app).add(&tally);
        }
        self.free.push(pair);
    }

    /// Returns the counters of an application's closed connections.
    fn closed(&mut self, app: u32) -> &mut Tally {
        self.closed[app as usize].get_or_insert_default()
    }

    /// Returns TCP's counters of each application since the run's start, including open
    /// connections.
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

    /// Returns the traces of all connections as names and contents of files, and removes them.
    pub fn qlogs(&mut self) -> Vec<(String, Vec<u8>)> {
        let open = self.ends.iter_mut().filter_map(|end| end.qlog.take().map(|log| *log));
        self.qlogs.drain(..).chain(open).map(Qlog::into_file).collect()
    }

    /// Returns the number of slots, in use or free.
    pub(super) fn slots(&self) -> u32 {
        self.ends.len() as u32
    }
}
