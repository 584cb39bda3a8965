//! FQ-COBALT: a queue for each bucket of flows, served in turn, each under COBALT.
//!
//! Source: the parts are Linux's, `sch_fq_codel.c` and `sch_cake.c`; together they are ns-3's
//! `fq-cobalt-queue-disc.cc`, from which the defaults are. Linux has no such discipline: CAKE is the
//! nearest.
//!
//! The buckets are flow queues as FQ-CoDel's, with its limits and its batch on overflow. Each has
//! its own COBALT, which judges the packets taken from the bucket. It is notified when the bucket
//! is found empty, and of an overflow when the bucket loses a batch; ns-3 omits the latter.
//!
//! Invariants: the backlog never exceeds `limit` packets; the last packet of a bucket is dropped for
//! lack of room only.

use crate::cobalt::{Constants, Control, Counters, State};
use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, Return, Sink, Totals};
use crate::flow_queues::{
    Batch, FlowQueues, Overflow, Room, buckets, drop_batch, memory_limit, quantum,
};
use crate::kinds::packets;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::viewed;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, part};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};

/// The words of `fq_cobalt`.
pub const TABLE: Table = Table {
    name: "fq_cobalt",
    summary: "FQ-COBALT: flows in separate queues, served in turn, each under COBALT",
    source: "ns-3 fq-cobalt-queue-disc; Linux sch_fq_codel.c, sch_cake.c",
    words: Params::WORDS,
};

params! {
    /// Parameters of FQ-COBALT.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Packets that fit in all buckets together.
        limit: u32 = packets("10240p").above_zero(),
        /// Number of buckets; it cannot be changed later.
        flows: u32 = buckets(),
        /// Bytes a bucket may send in its turn, at least 256; the default is the device's largest frame.
        quantum: u32 = quantum()
            .adjust(|quantum| quantum.max(256))
            .initially(|device: &Device| device.psched_mtu.clamp(256, 1 << 20)),
        /// Each bucket's COBALT.
        #[serde(flatten)]
        control: Control = part::<Control>(),
        /// Memory that queued packets may occupy, by their true size.
        memory_limit: u32 = memory_limit().above_zero(),
        /// Most packets dropped at once on overflow.
        drop_batch: u32 = drop_batch(),
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];
    const NOT_IN_KERNEL: Option<&'static str> =
        Some("Linux has flow queues under COBALT only as `cake`");

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }
}

impl Params {
    /// Returns the limits.
    fn room(&self) -> Room {
        Room { packets: self.limit, memory: self.memory_limit, batch: self.drop_batch }
    }
}

/// An FQ-COBALT queue.
#[derive(Clone, Debug)]
pub struct FqCobalt<P> {
    params: Params,
    constants: Constants,
    queues: FlowQueues<P, State>,
    counters: Counters,
    overflow: Overflow,
    totals: Totals,
}

impl<P: Packet> Configured<P, Params> for FqCobalt<P> {
    fn new(params: Params, _now: Nanos) -> Self {
        Self {
            params,
            constants: params.control.constants(),
            queues: FlowQueues::new(params.flows, params.quantum),
            counters: Counters::default(),
            overflow: Overflow::default(),
            totals: Totals::default(),
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters; the number of buckets stays. Packets that no longer fit are dropped
    /// in batches, as at an arrival.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        self.params = Params { flows: self.params.flows, ..params };
        self.constants = params.control.constants();
        self.queues.quantum = params.quantum;
        while self.make_room(now, sink).is_some() {}
    }
}

impl<P: Packet> FqCobalt<P> {
    /// Drops a batch if the limit is exceeded, and notifies its bucket.
    #[inline]
    fn make_room(&mut self, now: Nanos, sink: &mut impl Sink<P>) -> Option<Batch> {
        let batch = self.queues.make_room(&self.params.room(), &mut self.overflow, sink)?;
        let (cobalt, _) = self.queues.policy(batch.bucket);
        cobalt.overflowed(&self.constants, &mut self.counters, now);
        Some(batch)
    }
}

viewed!(FqCobalt in queues);

impl<P: Packet> Discipline<P> for FqCobalt<P> {
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
        match self.make_room(now, sink) {
            Some(batch) if batch.bucket == index => Return::Congestion,
            _ => Return::Success,
        }
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Nanos,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        let Self { constants, queues, counters, .. } = self;
        let packet = queues
            .serve(|cobalt, bucket| cobalt.dequeue(constants, counters, now, bucket, draws, sink));
        self.totals.leave(packet)
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.queues.visit(visit);
        visit("unresponsive", self.counters.unresponsive.into());
    }

    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if let Some(cobalt) = self.queues.visit_flow(flow, visit) {
            cobalt.visit(visit);
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
    }
}
