//! The queues of a tin: selection of a packet's queue, number of bytes of a queue's turn, and
//! scheduling state of each queue.

use super::lists::Lists;
use super::tins::{Numbers, QUEUES};
use crate::cobalt::State;
use crate::discipline::Draws;
use crate::packet::Packet;
use crate::packet_fifo::PacketFifo;
use sojourn_units::{Nanos, choices};

choices! {
    /// Isolation of flows: determines which packets share a queue, and between which hosts turns
    /// are shared fairly.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "kebab-case")]
    pub enum Isolation {
        /// One queue for all packets.
        Flowblind = "flowblind",
        /// One queue for each source host.
        Srchost = "srchost",
        /// One queue for each destination host.
        Dsthost = "dsthost",
        /// One queue for each pair of hosts.
        Hosts = "hosts",
        /// One queue for each flow.
        Flows = "flows",
        /// One queue for each flow, with fairness between source hosts.
        DualSrchost = "dual-srchost",
        /// One queue for each flow, with fairness between destination hosts.
        DualDsthost = "dual-dsthost",
        /// One queue for each flow, with fairness between source hosts and between destination
        /// hosts.
        #[default]
        TripleIsolate = "triple-isolate",
    }
}

impl Isolation {
    /// Returns whether turns are shared fairly between source hosts, and between destination hosts.
    #[inline]
    fn sides(self) -> [bool; 2] {
        match self {
            Self::DualSrchost => [true, false],
            Self::DualDsthost => [false, true],
            Self::TripleIsolate => [true, true],
            _ => [false, false],
        }
    }

    /// Returns the hash that selects a packet's queue; `None` if there is only one queue.
    #[inline]
    fn hash<P: Packet>(self, packet: &P) -> Option<u32> {
        let (source, destination) = packet.hosts();
        match self {
            Self::Flowblind => None,
            Self::Srchost => Some(source),
            Self::Dsthost => Some(destination),
            // The multiplications mix the bits, so that the hash depends on both hosts.
            Self::Hosts => {
                let mixed =
                    source.wrapping_mul(0x9e37_79b1) ^ destination.wrapping_mul(0x85eb_ca6b);
                Some(mixed ^ (mixed >> 15))
            }
            _ => Some(packet.flow_hash()),
        }
    }
}

/// Scheduling state of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Set {
    /// Empty, and on no list.
    #[default]
    None = 0,
    /// Has packets, and is in its first turn.
    Sparse = 1,
    /// Empty, after the bytes of its first turn were used up.
    SparseWait = 2,
    /// Has more packets than its first turn could send.
    Bulk = 3,
    /// Empty, but its COBALT has state that must decay.
    Decaying = 4,
}

/// A queue of a tin.
#[derive(Clone, Debug)]
pub struct Flow<P> {
    /// Queued packets, each with its length on the line in bytes.
    pub fifo: PacketFifo<P, u32>,
    /// Bytes that the queue may still send in this turn.
    pub deficit: i32,
    /// Scheduling state.
    pub set: Set,
    /// State of the queue's COBALT.
    pub cobalt: State,
    /// Slots of the source and destination host in `Tin::hosts`.
    hosts: [u16; 2],
}

/// Hosts on one side of the flows (source or destination), each in a slot. A host may use any of
/// the eight slots of a set, as a flow may use any queue of a set.
#[derive(Clone, Debug)]
struct Hosts {
    tags: Vec<u32>,
    /// Number of bulk queues of the host in each slot.
    bulk: Vec<u16>,
}

impl Hosts {
    fn new() -> Self {
        Self { tags: vec![0; QUEUES], bulk: vec![0; QUEUES] }
    }

    /// Returns the slot of a host. A new host takes the first slot of its set that has no bulk
    /// queues or, if all slots have bulk queues, slot `host % QUEUES`.
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

/// Number of queues in a set; a flow may use any queue of its set.
const WAYS: usize = 8;

/// Returns the queues of the set that contains `start`, beginning with `start`.
#[inline]
fn ways(start: usize) -> impl Iterator<Item = usize> {
    let base = start - start % WAYS;
    (0..WAYS).map(move |way| base + (start + way) % WAYS)
}

/// Counters of the results of searches for a packet's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// The first candidate queue had this flow.
    pub directs: u64,
    /// Another queue of the set had this flow.
    pub hits: u64,
    /// No queue had this flow, and an unused one was taken.
    pub misses: u64,
    /// No queue had this flow and all were in use: the flow shares a queue.
    pub collisions: u64,
}

/// A tin: queues for one service class.
#[derive(Clone, Debug)]
pub struct Tin<P> {
    /// Rate, quanta and COBALT constants.
    pub numbers: Numbers,
    /// Queues of the tin.
    pub flows: Vec<Flow<P>>,
    /// Scheduling lists of the queues.
    pub lists: Lists,
    /// Backlog of the tin, in bytes.
    pub backlog: u64,
    /// Bytes that the tin may still send in this turn; used only without a shaper.
    pub deficit: i32,
    /// Number of queues in the state `Sparse` or `SparseWait`.
    pub sparse: u16,
    /// Number of queues in the state `Bulk`.
    pub bulk: u16,
    /// Number of queues in the state `Decaying`.
    pub decaying: u16,
    /// Number of queues whose BLUE probability is above 0.
    pub unresponsive: u16,
    /// Time from which on the tin's next packet is within the tin's rate.
    pub time_next: Nanos,
    /// Hash of the flow that last used each queue.
    tags: Vec<u32>,
    hosts: [Hosts; 2],
    isolation: Isolation,
}

impl<P: Packet> Tin<P> {
    /// Returns a tin with empty queues.
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

    /// Replaces the constants and the isolation.
    pub fn change(&mut self, numbers: Numbers, isolation: Isolation) {
        self.numbers = numbers;
        self.isolation = isolation;
    }

    /// Returns whether any queue is sparse or bulk. If not, the tin has no packets.
    pub fn is_active(&self) -> bool {
        self.sparse > 0 || self.bulk > 0
    }

    /// Returns the index of the packet's queue, and counts the result of the search for it.
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
            // A shared queue counts for the hosts of the flow whose packet arrived last.
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

    /// Adds a bulk queue to the counts of its hosts, or removes it; no effect on other queues.
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

    /// Changes the scheduling state of a queue, and updates the counts of states and of hosts.
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

    /// Returns the bytes of a queue's turn, rounded by a random draw: the flow quantum. Fairness
    /// between hosts divides it by the number of the host's bulk queues (of two hosts, the larger).
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

    /// Charges a packet of `bytes` on the line to the tin's rate. If the tin's clock is behind
    /// `now`, it advances by the packet's transmission time. Otherwise it becomes `now` plus this
    /// time, unless it is later already.
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
