//! A tin's queues: the queue of each packet, the size of a turn, and the place of each queue in the
//! schedule.

use super::lists::Lists;
use super::tins::{Numbers, QUEUES};
use crate::cobalt::State;
use crate::discipline::Draws;
use crate::packet::Packet;
use crate::packet_fifo::PacketFifo;
use serde::{Deserialize, Serialize};
use sojourn_units::{Nanos, choices};

choices! {
    /// The unit that has a queue of its own, and the units that share turns.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Isolation {
        /// All have one queue.
        Flowblind = "flowblind",
        /// A queue for each source host.
        Srchost = "srchost",
        /// A queue for each destination host.
        Dsthost = "dsthost",
        /// A queue for each pair of hosts.
        Hosts = "hosts",
        /// A queue for each flow.
        Flows = "flows",
        /// A queue for each flow; turns are shared between source hosts.
        DualSrchost = "dual-srchost",
        /// A queue for each flow; turns are shared between destination hosts.
        DualDsthost = "dual-dsthost",
        /// A queue for each flow; turns are shared between hosts of either side.
        #[default]
        TripleIsolate = "triple-isolate",
    }
}

impl Isolation {
    /// Returns whether turns are shared between source and between destination hosts.
    #[inline]
    fn sides(self) -> [bool; 2] {
        match self {
            Self::DualSrchost => [true, false],
            Self::DualDsthost => [false, true],
            Self::TripleIsolate => [true, true],
            _ => [false, false],
        }
    }

    /// Returns the key of a packet's queue; `None` with one queue only.
    #[inline]
    fn hash<P: Packet>(self, packet: &P) -> Option<u32> {
        let (source, destination) = packet.hosts();
        match self {
            Self::Flowblind => None,
            Self::Srchost => Some(source),
            Self::Dsthost => Some(destination),
            // Mixed, so that neither side alone decides in which set of queues a pair falls.
            Self::Hosts => {
                let mixed =
                    source.wrapping_mul(0x9e37_79b1) ^ destination.wrapping_mul(0x85eb_ca6b);
                Some(mixed ^ (mixed >> 15))
            }
            _ => Some(packet.flow_hash()),
        }
    }
}

/// The place of a queue in the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Set {
    /// On no list.
    #[default]
    None = 0,
    /// In its first turn.
    Sparse = 1,
    /// Emptied within its first turn, which it has overdrawn.
    SparseWait = 2,
    /// Backlogged beyond a turn.
    Bulk = 3,
    /// Empty; its COBALT has something to forget.
    Decaying = 4,
}

/// A queue.
#[derive(Clone, Debug)]
pub struct Flow<P> {
    /// The packets, each with its length on the line.
    pub fifo: PacketFifo<P, u32>,
    /// Bytes that it may still send in this turn.
    pub deficit: i32,
    /// Its place in the schedule.
    pub set: Set,
    /// Its COBALT.
    pub cobalt: State,
    /// The slots of its hosts: source and destination.
    hosts: [u16; 2],
}

/// Hosts of one side. Their slots are found as queues are.
#[derive(Clone, Debug)]
struct Hosts {
    tags: Vec<u32>,
    /// Bulk flows of each.
    bulk: Vec<u16>,
}

impl Hosts {
    fn new() -> Self {
        Self { tags: vec![0; QUEUES], bulk: vec![0; QUEUES] }
    }

    /// Returns the slot of a host: its own; else one without bulk flows, which becomes its own.
    fn slot(&mut self, host: u32) -> usize {
        let start = host as usize % QUEUES;
        if let Some(slot) = ways(start).find(|&slot| self.tags[slot] == host) {
            return slot;
        }
        let slot = ways(start).find(|&slot| self.bulk[slot] == 0).unwrap_or(start);
        self.tags[slot] = host;
        slot
    }
}

/// Queues of a set. A flow's may be any of its set.
const WAYS: usize = 8;

/// Returns the set that `start` is in, from there on.
#[inline]
fn ways(start: usize) -> impl Iterator<Item = usize> {
    let base = start - start % WAYS;
    (0..WAYS).map(move |way| base + (start + way) % WAYS)
}

/// How queues were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// At once.
    pub directs: u64,
    /// Elsewhere in the set.
    pub hits: u64,
    /// Not: an unused one was taken.
    pub misses: u64,
    /// Not: one in use is shared.
    pub collisions: u64,
}

/// A tin.
#[derive(Clone, Debug)]
pub struct Tin<P> {
    /// Its parameters for decisions.
    pub numbers: Numbers,
    /// Its queues.
    pub flows: Vec<Flow<P>>,
    /// Their schedule.
    pub lists: Lists,
    /// Bytes queued.
    pub backlog: u64,
    /// Bytes that it may still send in this turn.
    pub deficit: i32,
    /// Queues in their first turn.
    pub sparse: u16,
    /// Queues backlogged beyond one.
    pub bulk: u16,
    /// Empty queues that are not forgotten yet.
    pub decaying: u16,
    /// Queues in which BLUE is at work.
    pub unresponsive: u16,
    /// When its next packet is within its rate.
    pub time_next: Nanos,
    /// The flow that each queue was last given to.
    tags: Vec<u32>,
    hosts: [Hosts; 2],
    isolation: Isolation,
}

impl<P: Packet> Tin<P> {
    /// Returns an empty tin.
    pub fn new(numbers: Numbers, isolation: Isolation) -> Self {
        let flow = || Flow {
            fifo: PacketFifo::default(),
            deficit: 0,
            set: Set::None,
            cobalt: State::default(),
            hosts: [0; 2],
        };
        Self {
            numbers,
            flows: (0..QUEUES).map(|_| flow()).collect(),
            lists: Lists::new(QUEUES),
            backlog: 0,
            deficit: 0,
            sparse: 0,
            bulk: 0,
            decaying: 0,
            unresponsive: 0,
            time_next: 0,
            tags: vec![0; QUEUES],
            hosts: [Hosts::new(), Hosts::new()],
            isolation,
        }
    }

    /// Changes what it goes by.
    pub fn change(&mut self, numbers: Numbers, isolation: Isolation) {
        self.numbers = numbers;
        self.isolation = isolation;
    }

    /// Returns whether any of its queues may have a packet.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.sparse > 0 || self.bulk > 0
    }

    /// Returns the queue of a packet.
    #[inline]
    pub fn choose(&mut self, packet: &P, count: &mut Ways) -> usize {
        let Some(hash) = self.isolation.hash(packet) else { return 0 };
        let start = hash as usize % QUEUES;
        if self.tags[start] == hash && self.flows[start].set != Set::None {
            count.directs += 1;
            return start;
        }
        self.search(hash, start, packet.hosts(), count)
    }

    fn search(&mut self, hash: u32, start: usize, hosts: (u32, u32), count: &mut Ways) -> usize {
        if let Some(queue) = ways(start).find(|&queue| self.tags[queue] == hash) {
            count.hits += u64::from(queue != start);
            if self.flows[queue].set == Set::None {
                self.find_hosts(queue, hosts);
            }
            return queue;
        }
        let unused = ways(start).find(|&queue| self.flows[queue].set == Set::None);
        let queue = unused.unwrap_or(start);
        self.tags[queue] = hash;
        if unused.is_some() {
            count.misses += 1;
            self.find_hosts(queue, hosts);
        } else {
            count.collisions += 1;
            // A shared queue counts for the hosts of the flow that came last.
            self.count_hosts(queue, false);
            self.find_hosts(queue, hosts);
            self.count_hosts(queue, true);
        }
        queue
    }

    fn find_hosts(&mut self, queue: usize, (source, destination): (u32, u32)) {
        let sides = self.isolation.sides();
        for (side, host) in [source, destination].into_iter().enumerate() {
            if sides[side] {
                self.flows[queue].hosts[side] = self.hosts[side].slot(host) as u16;
            }
        }
    }

    /// Counts a queue with its hosts' bulk flows, or no longer, if it is one.
    fn count_hosts(&mut self, queue: usize, more: bool) {
        let flow = &self.flows[queue];
        if flow.set != Set::Bulk {
            return;
        }
        let sides = self.isolation.sides();
        for (side, &slot) in flow.hosts.iter().enumerate() {
            if sides[side] {
                let bulk = &mut self.hosts[side].bulk[usize::from(slot)];
                *bulk = if more { *bulk + 1 } else { bulk.saturating_sub(1) };
            }
        }
    }

    /// Moves a queue to another set; its place on the lists is another matter.
    #[inline]
    pub fn enter(&mut self, queue: usize, set: Set) {
        let before = self.flows[queue].set;
        if before == set {
            return;
        }
        self.count_hosts(queue, false);
        self.flows[queue].set = set;
        if let Some(count) = self.count(before) {
            *count -= 1;
        }
        if let Some(count) = self.count(set) {
            *count += 1;
        }
        self.count_hosts(queue, true);
    }

    #[inline]
    fn count(&mut self, set: Set) -> Option<&mut u16> {
        match set {
            Set::None => None,
            Set::Sparse | Set::SparseWait => Some(&mut self.sparse),
            Set::Bulk => Some(&mut self.bulk),
            Set::Decaying => Some(&mut self.decaying),
        }
    }

    /// Bytes of a queue's turn: its share of its busier host's, whose fraction a draw rounds.
    #[inline]
    pub fn quantum(&self, queue: usize, draws: &mut impl Draws) -> i32 {
        let sides = self.isolation.sides();
        let mut load = 1;
        for (side, &slot) in self.flows[queue].hosts.iter().enumerate() {
            if sides[side] {
                load = load.max(self.hosts[side].bulk[usize::from(slot)]);
            }
        }
        let share = self.numbers.flow_quantum * (65_535 / u32::from(load));
        ((share + u32::from(draws.draw_u16())) >> 16) as i32
    }

    /// Charges a packet against the tin's rate. One that lags behind catches up packet by packet; one
    /// that is ahead is ahead of now by a packet at least.
    #[inline]
    pub fn charge(&mut self, now: Nanos, bytes: u32) {
        if self.numbers.pace.is_unlimited() {
            return;
        }
        let time = self.numbers.pace.time(bytes);
        if self.time_next < now {
            self.time_next += time;
        } else {
            self.time_next = self.time_next.max(now + time);
        }
    }
}
