//! FQ-CoDel: a queue for each bucket of flows, served in turn, each under CoDel.
//!
//! Source: RFC 8290; Linux `sch_fq_codel.c`.
//!
//! A packet goes to the bucket its flow hashes to. Buckets that just became active are served before
//! the others, each up to `quantum` bytes a turn (deficit round robin), and CoDel judges what is
//! taken from a bucket by that bucket's own state. When there is no room, the bucket with the
//! largest backlog loses up to half of it, at most `drop_batch` packets, from its head.
//!
//! Invariants: the backlog never exceeds `limit` packets; backlogged buckets get equal shares of bytes
//! within a quantum and a packet; CoDel's one-MTU rule looks at the backlog of all buckets together.

use crate::codel::{self, CE_THRESHOLD, Counters, Law, State};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals, View};
use crate::packet::Packet;
use crate::store::{Queued, Source, Store};
use crate::tc::{ECN, Text, above_zero, micros, packets, set, size, time_text};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use sojourn_units::words::{Given, Kind, Table, Word, WordError};

/// The words of `fq_codel`.
pub const TABLE: Table = Table {
    name: "fq_codel",
    summary: "FQ-CoDel: flows in separate queues, served in turn, each under CoDel",
    source: "RFC 8290; Linux sch_fq_codel.c",
    words: &[
        Word {
            name: "limit",
            kind: Kind::Packets,
            default: "10240p",
            doc: "Packets that fit in all buckets together.",
        },
        Word {
            name: "flows",
            kind: Kind::Integer { min: 1, max: 65_536 },
            default: "1024",
            doc: "Number of buckets; it cannot be changed later.",
        },
        Word {
            name: "quantum",
            kind: Kind::Size,
            default: "1514b",
            doc: "Bytes a bucket may send in its turn, at least 256; the default is the device's largest frame.",
        },
        Word {
            name: "target",
            kind: Kind::Time,
            default: "5ms",
            doc: "CoDel: delay that is acceptable for good, in whole microseconds.",
        },
        Word {
            name: "interval",
            kind: Kind::Time,
            default: "100ms",
            doc: "CoDel: how long the delay may stay above target.",
        },
        CE_THRESHOLD,
        Word {
            name: "ce_threshold_selector",
            kind: Kind::Name,
            default: "0x0/0x0",
            doc: "VALUE/MASK: ce_threshold applies where the DS byte under MASK is VALUE; mask 0 is all.",
        },
        Word {
            name: "memory_limit",
            kind: Kind::Size,
            default: "32mb",
            doc: "Memory that queued packets may occupy, by their true size.",
        },
        Word {
            name: "drop_batch",
            kind: Kind::Integer { min: 1, max: 4_294_967_295 },
            default: "64",
            doc: "Packets dropped at most when there is no room.",
        },
        Word { default: "ecn", ..ECN },
    ],
};

/// What the user sets, in the kernel's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// Packets that fit.
    pub limit: u32,
    /// Number of buckets.
    pub flows: u32,
    /// Bytes of a turn.
    pub quantum: u32,
    /// Acceptable delay in microseconds.
    pub target_us: u32,
    /// Time scale of the control in microseconds.
    pub interval_us: u32,
    /// Delay above which ECN-capable packets are marked, in microseconds.
    pub ce_threshold_us: Option<u32>,
    /// The DS byte to which `ce_threshold` applies.
    pub ce_threshold_selector: u8,
    /// The bits of the DS byte that are compared.
    pub ce_threshold_mask: u8,
    /// Memory that fits.
    pub memory_limit: u32,
    /// Packets dropped at most when there is no room.
    pub drop_batch: u32,
    /// Whether to mark instead of drop.
    pub ecn: bool,
    /// The largest frame of the device.
    pub mtu: u32,
}

impl Params {
    /// The defaults on `device`.
    pub fn new(device: &Device) -> Self {
        let mtu = device.psched_mtu.min(1 << 20);
        Self {
            limit: 10_240,
            flows: 1024,
            quantum: mtu.max(256),
            target_us: 5_000,
            interval_us: 100_000,
            ce_threshold_us: None,
            ce_threshold_selector: 0,
            ce_threshold_mask: 0,
            memory_limit: 32 << 20,
            drop_batch: 64,
            ecn: true,
            mtu,
        }
    }

    pub(crate) fn set(&mut self, given: &Given) -> Result<(), WordError> {
        set(&mut self.limit, above_zero(given, "limit", packets)?);
        set(&mut self.flows, given.integer("flows").map(|flows| flows as u32));
        if let Some(quantum) = above_zero(given, "quantum", size)? {
            if quantum > 1 << 20 {
                return Err(given.error("quantum", "`quantum` is at most 1mb"));
            }
            self.quantum = quantum.max(256);
        }
        set(&mut self.target_us, above_zero(given, "target", micros)?);
        set(&mut self.interval_us, above_zero(given, "interval", micros)?);
        set(&mut self.ce_threshold_us, micros(given, "ce_threshold")?.map(Some));
        if let Some(text) = given.text("ce_threshold_selector") {
            let parts = text.split_once('/').and_then(|(v, m)| Some((byte(v)?, byte(m)?)));
            let Some((selector, mask)) = parts else {
                return Err(given.error(
                    "ce_threshold_selector",
                    format!(
                        "`ce_threshold_selector` needs VALUE/MASK, such as 0x1/0x3; found `{text}`"
                    ),
                ));
            };
            self.ce_threshold_selector = selector;
            self.ce_threshold_mask = mask;
        }
        set(&mut self.memory_limit, size(given, "memory_limit")?.map(|m| m.min(1 << 31)));
        set(&mut self.drop_batch, given.integer("drop_batch").map(|batch| batch as u32));
        set(&mut self.ecn, given.flag("ecn"));
        Ok(())
    }

    pub(crate) fn to_tc(self) -> String {
        let (selector, mask) = (self.ce_threshold_selector, self.ce_threshold_mask);
        let selected = (selector != 0 || mask != 0).then(|| format!("{selector:#x}/{mask:#x}"));
        Text::new("fq_codel")
            .value("limit", self.limit)
            .value("flows", self.flows)
            .value("quantum", self.quantum)
            .value("target", time_text(self.target_us))
            .value("interval", time_text(self.interval_us))
            .value("memory_limit", self.memory_limit)
            .value("drop_batch", self.drop_batch)
            .optional("ce_threshold", self.ce_threshold_us.map(time_text))
            .optional("ce_threshold_selector", selected)
            .switch(self.ecn, "ecn", "noecn")
            .done()
    }

    /// CoDel's part in ticks of its clock.
    pub fn law(&self) -> Law {
        let Self { limit, target_us, interval_us, ce_threshold_us, ecn, mtu, .. } = *self;
        let codel = codel::Params { limit, target_us, interval_us, ce_threshold_us, ecn, mtu };
        Law {
            ce_selector: self.ce_threshold_selector,
            ce_mask: self.ce_threshold_mask,
            ..codel.law()
        }
    }
}

/// A byte in decimal or, after `0x`, hexadecimal.
fn byte(text: &str) -> Option<u8> {
    match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

const NEW: usize = 0;
const OLD: usize = 1;
const NONE: u32 = u32::MAX;

/// One bucket.
#[derive(Clone, Debug)]
struct Flow<P> {
    store: Store<P>,
    deficit: i32,
    codel: State,
    /// The bucket behind this one on its list.
    next: u32,
    listed: bool,
}

/// A list of buckets.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

/// An FQ-CoDel queue.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    params: Params,
    law: Law,
    flows: Vec<Flow<P>>,
    /// Bytes of each bucket, apart from the buckets because the search for the largest reads all.
    backlogs: Vec<u32>,
    lists: [List; 2],
    packets: usize,
    bytes: u64,
    memory: u64,
    new_flow_count: u32,
    counters: Counters,
    drop_overlimit: u64,
    drop_overmemory: u64,
    totals: Totals,
}

/// One bucket's queue, with the sums that follow it.
struct Bucket<'a, P> {
    store: &'a mut Store<P>,
    backlog: &'a mut u32,
    packets: &'a mut usize,
    bytes: &'a mut u64,
    memory: &'a mut u64,
}

impl<P: Packet> Source<P> for Bucket<'_, P> {
    #[inline]
    fn take(&mut self) -> Option<Queued<P>> {
        let queued = self.store.pop()?;
        *self.backlog -= queued.packet.len();
        *self.packets -= 1;
        *self.bytes -= u64::from(queued.packet.len());
        *self.memory -= u64::from(queued.packet.truesize());
        Some(queued)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    #[inline]
    fn backlog(&self) -> u64 {
        *self.bytes
    }
}

impl<P: Packet> FqCodel<P> {
    /// An empty queue.
    pub fn new(params: Params) -> Self {
        let flow = || Flow {
            store: Store::default(),
            deficit: 0,
            codel: State::default(),
            next: NONE,
            listed: false,
        };
        Self {
            params,
            law: params.law(),
            flows: (0..params.flows).map(|_| flow()).collect(),
            backlogs: vec![0; params.flows as usize],
            lists: [List { head: NONE, tail: NONE }; 2],
            packets: 0,
            bytes: 0,
            memory: 0,
            new_flow_count: 0,
            counters: Counters::default(),
            drop_overlimit: 0,
            drop_overmemory: 0,
            totals: Totals::default(),
        }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters; the number of buckets stays. What no longer fits is dequeued, CoDel
    /// and turns included, and thrown away.
    pub fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        self.params = Params { flows: self.params.flows, ..params };
        self.law = self.params.law();
        while self.packets > params.limit as usize || self.memory > u64::from(params.memory_limit) {
            let Some(packet) = self.serve(now, sink) else { break };
            sink.dropped(packet, DropReason::Overflow, true);
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

    fn bucket(&mut self, index: usize) -> (Bucket<'_, P>, &mut State) {
        let Flow { store, codel, .. } = &mut self.flows[index];
        let bucket = Bucket {
            store,
            backlog: &mut self.backlogs[index],
            packets: &mut self.packets,
            bytes: &mut self.bytes,
            memory: &mut self.memory,
        };
        (bucket, codel)
    }

    /// Drops a batch from the head of the bucket with the largest backlog; gives its index and the
    /// number dropped.
    fn drop_batch(&mut self, sink: &mut impl Sink<P>) -> (usize, u32) {
        let mut fattest = 0;
        let mut most = 0;
        for (index, &backlog) in self.backlogs.iter().enumerate() {
            if backlog > most {
                most = backlog;
                fattest = index;
            }
        }
        let enough = most >> 1;
        let batch = self.params.drop_batch;
        let (mut bucket, codel) = self.bucket(fattest);
        let mut dropped = 0;
        let mut bytes = 0;
        while let Some(queued) = bucket.take() {
            dropped += 1;
            bytes += queued.packet.len();
            sink.dropped(queued.packet, DropReason::Overflow, true);
            if dropped >= batch || bytes >= enough {
                break;
            }
        }
        codel.count = codel.count.wrapping_add(dropped);
        self.totals.drops += u64::from(dropped);
        (fattest, dropped)
    }

    /// The next packet by turns and CoDel.
    fn serve(&mut self, now: Nanos, sink: &mut impl Sink<P>) -> Option<P> {
        loop {
            let list = if self.lists[NEW].head == NONE { OLD } else { NEW };
            let index = self.lists[list].head;
            if index == NONE {
                return None;
            }
            if self.flows[index as usize].deficit <= 0 {
                let flow = &mut self.flows[index as usize];
                flow.deficit = flow.deficit.wrapping_add(self.params.quantum as i32);
                self.pop_head(list);
                self.push_tail(OLD, index);
                continue;
            }
            let Flow { store, codel, deficit, .. } = &mut self.flows[index as usize];
            let mut bucket = Bucket {
                store,
                backlog: &mut self.backlogs[index as usize],
                packets: &mut self.packets,
                bytes: &mut self.bytes,
                memory: &mut self.memory,
            };
            let packet = codel.dequeue(&self.law, &mut self.counters, now, &mut bucket, sink);
            if let Some(packet) = packet {
                *deficit = deficit.wrapping_sub(packet.len() as i32);
                self.totals.sent(packet.len());
                return Some(packet);
            }
            self.pop_head(list);
            // An empty new bucket waits a round, or it would be new, and first, again at once.
            if list == NEW && self.lists[OLD].head != NONE {
                self.push_tail(OLD, index);
            }
        }
    }
}

impl<P: Packet> View for FqCodel<P> {
    fn packets(&self) -> usize {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// For `n > 0` this gathers the times of all packets.
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        if n >= self.packets {
            return None;
        }
        let active = self.flows.iter().filter(|flow| !flow.store.is_empty());
        if n == 0 {
            return active.filter_map(|flow| flow.store.enqueued_at(0)).min();
        }
        let mut times: Vec<Nanos> = active.flat_map(|flow| flow.store.times()).collect();
        Some(*times.select_nth_unstable(n).1)
    }
}

impl<P: Packet> Discipline<P> for FqCodel<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        _draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        let hash = u64::from(packet.flow_hash());
        let index = ((hash * u64::from(self.params.flows)) >> 32) as usize;
        self.packets += 1;
        self.bytes += u64::from(packet.len());
        self.memory += u64::from(packet.truesize());
        self.backlogs[index] += packet.len();
        let flow = &mut self.flows[index];
        flow.store.push(now, packet);
        if !flow.listed {
            flow.deficit = self.params.quantum as i32;
            self.new_flow_count = self.new_flow_count.wrapping_add(1);
            self.push_tail(NEW, index as u32);
        }
        let over_memory = self.memory > u64::from(self.params.memory_limit);
        if self.packets <= self.params.limit as usize && !over_memory {
            return Return::Success;
        }
        let (fattest, dropped) = self.drop_batch(sink);
        self.drop_overlimit += u64::from(dropped);
        if over_memory {
            self.drop_overmemory += u64::from(dropped);
        }
        if fattest == index { Return::Congestion } else { Return::Success }
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Nanos,
        _draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        match self.serve(now, sink) {
            Some(packet) => Dequeue::Packet(packet),
            None => Dequeue::Empty,
        }
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("new_flow_count", self.new_flow_count.into());
        visit("maxpacket", self.counters.maxpacket.into());
        visit("memory_usage", self.memory.into());
    }

    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if let Some(state) = self.flows.get(flow) {
            visit("backlog", self.backlogs[flow].into());
            visit("deficit", state.deficit.into());
            state.codel.visit(visit);
        }
    }

    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        for list in [NEW, OLD] {
            let mut index = self.lists[list].head;
            while index != NONE {
                visit(list, index as usize);
                index = self.flows[index as usize].next;
            }
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let totals = Totals { drops: self.totals.drops + self.counters.drops, ..self.totals };
        totals.visit(self, visit);
        visit("drop_overlimit", self.drop_overlimit);
        visit("drop_overmemory", self.drop_overmemory);
        visit("ecn_mark", self.counters.ecn_mark);
        visit("ce_mark", self.counters.ce_mark);
    }
}
