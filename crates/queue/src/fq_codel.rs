//! FQ-CoDel: a queue for each bucket of flows, served in turn, each under CoDel.
//!
//! Source: RFC 8290; Linux `sch_fq_codel.c`.
//!
//! The buckets are flow queues (`flow_queues.rs`), and CoDel judges what is taken from a bucket by
//! that bucket's own state. A bucket that loses packets for lack of room counts them as CoDel's.
//!
//! Invariants: the backlog never exceeds `limit` packets; CoDel's one-MTU rule looks at the backlog of
//! all buckets together.

use crate::codel::{self, CE_THRESHOLD, Counters, Law, State};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals};
use crate::flow_queues::{
    DROP_BATCH, FLOWS, FlowQueues, LIMIT, MEMORY_LIMIT, Overflow, QUANTUM, Room, quantum,
};
use crate::packet::Packet;
use crate::store::Stored;
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
        LIMIT,
        FLOWS,
        QUANTUM,
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
        MEMORY_LIMIT,
        DROP_BATCH,
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
        set(&mut self.quantum, quantum(given)?.map(|quantum| quantum.max(256)));
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

    /// What fits.
    fn room(&self) -> Room {
        Room { packets: self.limit, memory: self.memory_limit, batch: self.drop_batch }
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

/// An FQ-CoDel queue.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    params: Params,
    law: Law,
    queues: FlowQueues<P, State>,
    counters: Counters,
    overflow: Overflow,
    totals: Totals,
}

impl<P: Packet> FqCodel<P> {
    /// An empty queue.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            law: params.law(),
            queues: FlowQueues::new(params.flows, params.quantum),
            counters: Counters::default(),
            overflow: Overflow::default(),
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
        self.queues.quantum = params.quantum;
        while !self.queues.fits(&self.params.room()) {
            let Some(packet) = self.serve(now, sink) else { break };
            sink.dropped(packet, DropReason::Overflow, true);
        }
    }

    /// The next packet by turns and CoDel.
    #[inline]
    fn serve(&mut self, now: Nanos, sink: &mut impl Sink<P>) -> Option<P> {
        let Self { law, queues, counters, totals, .. } = self;
        let packet =
            queues.serve(|codel, bucket| codel.dequeue(law, counters, now, bucket, sink))?;
        totals.sent(packet.len());
        Some(packet)
    }
}

impl<P: Packet> Stored for FqCodel<P> {
    type Store = FlowQueues<P, State>;

    #[inline]
    fn store(&self) -> &FlowQueues<P, State> {
        &self.queues
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
        let index = self.queues.index(&packet);
        self.queues.push(index, now, packet);
        let room = self.params.room();
        let Some(batch) = self.queues.make_room(&room, &mut self.overflow, sink) else {
            return Return::Success;
        };
        let (codel, _) = self.queues.policy(batch.bucket);
        codel.count = codel.count.wrapping_add(batch.packets);
        if batch.bucket == index { Return::Congestion } else { Return::Success }
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
        self.queues.visit(visit);
        visit("maxpacket", self.counters.maxpacket.into());
    }

    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if let Some(codel) = self.queues.visit_flow(flow, visit) {
            codel.visit(visit);
        }
    }

    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.queues.visit_lists(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let drops = self.overflow.dropped + self.counters.drops;
        Totals { drops, ..self.totals }.visit(self, visit);
        self.overflow.visit(visit);
        visit("ecn_mark", self.counters.ecn_mark);
        visit("ce_mark", self.counters.ce_mark);
    }
}
