//! Flow queues: buckets of packets, selected by the flow's hash and served in turn.
//!
//! Source: RFC 8290; Linux `sch_fq_codel.c` and `sch_fq_pie.c`, which have the same scheduler.
//!
//! New buckets, which have just become active, are served before old ones. Each bucket may send a
//! quantum of bytes per turn (deficit round robin). A bucket contains the state of an AQM such as
//! CoDel, which takes packets from the bucket through [`Source`] and decides about them. On
//! overflow FQ-CoDel and FQ-COBALT drop up to half of the largest backlog from its head, in one
//! batch.
//!
//! Invariants: a bucket with packets is on the list of new or of old buckets. Buckets that always
//! have packets send equal numbers of bytes, with an error of at most one quantum and one packet. A
//! bucket that sends less than a quantum per round waits for at most one turn of each other bucket.

use crate::discipline::{DropReason, Sink, View, counted};
use crate::kinds::bytes;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, Queued, Source};
use sojourn_units::Nanos;
use sojourn_units::declare::{Param, integer};

/// Returns the parameter `flows`: the number of buckets.
pub(crate) const fn buckets<On>() -> Param<u32, On> {
    integer(1, 65_536, "1024")
}

/// Returns the parameter `quantum`: the bytes that a bucket may send in its turn. The kernel
/// accepts 1 to 2^20. The default shown in the help is the largest Ethernet frame.
pub(crate) const fn quantum<On>() -> Param<u32, On> {
    bytes("1514b").check(|quantum| match quantum {
        0 => Err("must be above 0"),
        1..=0x10_0000 => Ok(()),
        _ => Err("must be at most 1mb"),
    })
}

/// Returns the parameter `memory_limit`: the maximum memory of queued packets, by their truesize.
pub(crate) const fn memory_limit<On>() -> Param<u32, On> {
    bytes("32mb")
}

/// Returns the parameter `drop_batch`: the maximum number of packets dropped in one batch on
/// overflow.
pub(crate) const fn drop_batch<On>() -> Param<u32, On> {
    integer(1, 4_294_967_295, "64")
}

/// Settings of the flow queues and limits of all buckets together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of buckets.
    pub flows: u32,
    /// Bytes that a bucket may send in its turn.
    pub quantum: u32,
    /// Maximum number of packets.
    pub limit: u32,
    /// Maximum memory in bytes. A discipline that drops the arriving packet instead of a batch only
    /// counts arrivals above it.
    pub memory_limit: u32,
    /// Maximum number of packets dropped in a batch.
    pub drop_batch: u32,
}

/// Counters of exceeded limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overflow {
    /// Number of packets dropped on overflow.
    pub dropped: u64,
    /// Number of packets dropped, or only counted, while the limit of memory was exceeded.
    pub for_memory: u64,
}

impl Overflow {
    /// Visits the counters, under the kernel's names.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("drop_overlimit", self.dropped);
        visit("drop_overmemory", self.for_memory);
    }
}

/// The result of a batch of drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Bucket that lost the packets.
    pub bucket: usize,
    /// Number of dropped packets.
    pub packets: u32,
}

const NEW: usize = 0;
const OLD: usize = 1;
const NONE: u32 = u32::MAX;

/// A bucket, and the state `A` of its AQM.
#[derive(Clone, Debug)]
struct Flow<P, A> {
    fifo: PacketFifo<P>,
    deficit: i32,
    aqm: A,
    /// Next bucket on the same list; `NONE` at the tail.
    next: u32,
    listed: bool,
}

/// A linked list of buckets; `head` is `NONE` if the list is empty.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

/// All buckets and their scheduler.
#[derive(Clone, Debug)]
pub(crate) struct FlowQueues<P, A> {
    /// Bytes that a bucket may send in its turn.
    pub quantum: u32,
    flows: Vec<Flow<P, A>>,
    /// Backlog of each bucket in bytes. It is separate from the buckets because the search for the
    /// largest backlog reads all values.
    backlogs: Vec<u32>,
    lists: [List; 2],
    packets: usize,
    bytes: u64,
    memory: u64,
    /// Time at which the last served packet was enqueued; `None` before the first.
    left_at: Option<Nanos>,
    new_flow_count: u32,
}

/// The FIFO of one bucket, and the counters of bucket and discipline that change with it.
pub(crate) struct Bucket<'a, P> {
    fifo: &'a mut PacketFifo<P>,
    backlog: &'a mut u32,
    packets: &'a mut usize,
    bytes: &'a mut u64,
    memory: &'a mut u64,
}

impl<P: Packet> Source<P> for Bucket<'_, P> {
    #[inline]
    fn take(&mut self) -> Option<Queued<P>> {
        let queued = self.fifo.pop()?;
        *self.backlog -= queued.packet.len();
        *self.packets -= 1;
        *self.bytes -= u64::from(queued.packet.len());
        *self.memory -= u64::from(queued.packet.truesize());
        Some(queued)
    }

    fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    fn bytes(&self) -> u64 {
        u64::from(*self.backlog)
    }

    fn backlog(&self) -> u64 {
        *self.bytes
    }
}

impl<P: Packet, A: Default> FlowQueues<P, A> {
    /// Returns `flows` empty buckets.
    pub(crate) fn new(flows: u32, quantum: u32) -> Self {
        let flow = || Flow {
            fifo: PacketFifo::default(),
            deficit: 0,
            aqm: A::default(),
            next: NONE,
            listed: false,
        };
        Self {
            quantum,
            flows: (0..flows).map(|_| flow()).collect(),
            backlogs: vec![0; flows as usize],
            lists: [List { head: NONE, tail: NONE }; 2],
            packets: 0,
            bytes: 0,
            memory: 0,
            left_at: None,
            new_flow_count: 0,
        }
    }

    /// Returns the number of buckets.
    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns the memory of the queued packets, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns the bucket of `packet`.
    pub(crate) fn index(&self, packet: &P) -> usize {
        ((u64::from(packet.flow_hash()) * self.flows.len() as u64) >> 32) as usize
    }

    /// Returns the AQM and the FIFO of a bucket.
    #[inline]
    pub(crate) fn aqm(&mut self, index: usize) -> (&mut A, &PacketFifo<P>) {
        let Flow { aqm, fifo, .. } = &mut self.flows[index];
        (aqm, fifo)
    }

    /// Appends `packet` to a bucket. A bucket on no list is added to the new buckets.
    #[inline]
    pub(crate) fn push(&mut self, index: usize, now: Nanos, packet: P) {
        self.packets += 1;
        self.bytes += u64::from(packet.len());
        self.memory += u64::from(packet.truesize());
        self.backlogs[index] += packet.len();
        let flow = &mut self.flows[index];
        flow.fifo.push(now, packet);
        if !flow.listed {
            flow.deficit = self.quantum as i32;
            self.new_flow_count = self.new_flow_count.wrapping_add(1);
            self.push_tail(NEW, index as u32);
        }
    }

    #[inline]
    fn push_tail(&mut self, list: usize, index: u32) {
        self.flows[index as usize].next = NONE;
        self.flows[index as usize].listed = true;
        let List { head, tail } = &mut self.lists[list];
        if *head == NONE {
            *head = index;
        } else {
            self.flows[*tail as usize].next = index;
        }
        *tail = index;
    }

    #[inline]
    fn pop_head(&mut self, list: usize) {
        let head = self.lists[list].head;
        let flow = &mut self.flows[head as usize];
        flow.listed = false;
        self.lists[list].head = flow.next;
    }

    /// Returns the next packet to leave. `take` takes a packet from the bucket whose turn it is; it
    /// returns `None` if the bucket is empty.
    #[inline]
    pub(crate) fn serve(
        &mut self,
        mut take: impl FnMut(&mut A, &mut Bucket<'_, P>) -> Option<P>,
    ) -> Option<P> {
        loop {
            let list = if self.lists[NEW].head == NONE { OLD } else { NEW };
            let index = self.lists[list].head;
            if index == NONE {
                return None;
            }
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit = flow.deficit.wrapping_add(self.quantum as i32);
                self.pop_head(list);
                self.push_tail(OLD, index);
                continue;
            }
            let mut bucket = Bucket {
                fifo: &mut flow.fifo,
                backlog: &mut self.backlogs[index as usize],
                packets: &mut self.packets,
                bytes: &mut self.bytes,
                memory: &mut self.memory,
            };
            if let Some(packet) = take(&mut flow.aqm, &mut bucket) {
                flow.deficit = flow.deficit.wrapping_sub(packet.len() as i32);
                self.left_at = flow.fifo.left_at();
                return Some(packet);
            }
            self.pop_head(list);
            // An empty new bucket joins the old buckets, if there are any, for a round. Without
            // this, its next packet would make it new again, and old buckets would starve.
            if list == NEW && self.lists[OLD].head != NONE {
                self.push_tail(OLD, index);
            }
        }
    }

    /// Returns whether the queued packets are within the limits.
    pub(crate) fn fits(&self, limit: u32, memory: u64) -> bool {
        self.packets <= limit as usize && self.memory <= memory
    }

    /// Drops a batch from the head of the bucket with the largest backlog if a limit is exceeded,
    /// and counts it. Among buckets with equal backlogs the first is chosen.
    #[inline]
    pub(crate) fn make_room(
        &mut self,
        settings: &Settings,
        overflow: &mut Overflow,
        sink: &mut impl Sink<P>,
    ) -> Option<Batch> {
        let memory = settings.memory_limit.into();
        if self.fits(settings.limit, memory) {
            return None;
        }
        let over_memory = self.memory > memory;
        let batch = self.drop_batch(settings.drop_batch, sink);
        overflow.dropped += u64::from(batch.packets);
        if over_memory {
            overflow.for_memory += u64::from(batch.packets);
        }
        Some(batch)
    }

    fn drop_batch(&mut self, most: u32, sink: &mut impl Sink<P>) -> Batch {
        let mut fattest = 0;
        let mut largest = 0;
        for (index, &backlog) in self.backlogs.iter().enumerate() {
            if backlog > largest {
                largest = backlog;
                fattest = index;
            }
        }
        let enough = largest >> 1;
        let mut bucket = Bucket {
            fifo: &mut self.flows[fattest].fifo,
            backlog: &mut self.backlogs[fattest],
            packets: &mut self.packets,
            bytes: &mut self.bytes,
            memory: &mut self.memory,
        };
        let mut packets = 0;
        let mut bytes = 0;
        while let Some(queued) = bucket.take() {
            packets += 1;
            bytes += queued.packet.len();
            sink.dropped(queued.packet, DropReason::Overflow, true);
            if packets >= most || bytes >= enough {
                break;
            }
        }
        Batch { bucket: fattest, packets }
    }

    /// Visits the state of the scheduler, under the kernel's names.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("new_flow_count", self.new_flow_count.into());
        visit("memory_usage", self.memory.into());
    }

    /// Visits the state of a bucket, and returns its AQM; `None` if there is no such bucket.
    pub(crate) fn visit_flow(
        &self,
        index: usize,
        visit: &mut dyn FnMut(&'static str, i128),
    ) -> Option<&A> {
        let flow = self.flows.get(index)?;
        visit("qlen", flow.fifo.len() as i128);
        visit("backlog", self.backlogs[index].into());
        visit("deficit", flow.deficit.into());
        Some(&flow.aqm)
    }

    /// Visits the buckets on the lists of new (0) and old (1) buckets, from the head on.
    pub(crate) fn visit_lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        for list in [NEW, OLD] {
            let mut index = self.lists[list].head;
            while index != NONE {
                visit(list, index as usize);
                index = self.flows[index as usize].next;
            }
        }
    }
}

impl<P: Packet, A> View for FlowQueues<P, A> {
    counted!();

    /// Returns the time of the `n`-th packet in the order of arrival. For `n > 0` this collects the
    /// times of all packets.
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        if n >= self.packets {
            return None;
        }
        let active = self.flows.iter().filter(|flow| !flow.fifo.is_empty());
        if n == 0 {
            return active.filter_map(|flow| flow.fifo.enqueued_at(0)).min();
        }
        let mut times: Vec<Nanos> = active.flat_map(|flow| flow.fifo.times()).collect();
        Some(*times.select_nth_unstable(n).1)
    }
}
