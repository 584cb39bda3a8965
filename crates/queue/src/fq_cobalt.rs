//! FQ-COBALT: flows in separate queues, served in turn, each controlled by COBALT.
//!
//! Source: the flow queues are those of Linux's `sch_fq_codel.c`, COBALT that of `sch_cake.c`.
//! ns-3's `fq-cobalt-queue-disc.cc` combines them, and the defaults are from ns-3. Linux has no
//! such discipline; CAKE is the most similar one.
//!
//! Buckets, limits and batches of drops on overflow are those of FQ-CoDel. Each bucket has its own
//! COBALT, which decides about packets that leave the bucket. COBALT is notified when the bucket is
//! found empty, and when the bucket loses a batch of packets on overflow; ns-3 omits the latter
//! notification.
//!
//! Invariants: the backlog never exceeds `limit` packets; the last packet of a bucket is dropped
//! only on overflow.

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
use sojourn_units::declare::{Parameters, part};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};

/// Name, summary, source and words of the discipline `fq_cobalt`.
pub const TABLE: Table = Table {
    name: "fq_cobalt",
    summary: "FQ-COBALT: flows in separate queues, served in turn, each controlled by COBALT",
    source: "ns-3 fq-cobalt-queue-disc; Linux sch_fq_codel.c, sch_cake.c",
    words: Params::WORDS,
};

params! {
    /// Parameters of FQ-COBALT.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in all buckets together.
        limit: u32 = packets("10240p").above_zero(),
        /// Number of buckets; a change of the parameters cannot change it.
        flows: u32 = buckets(),
        /// Bytes that a bucket may send in its turn, at least 256; the default is the device's
        /// largest frame.
        quantum: u32 = quantum()
            .adjust(|quantum| quantum.max(256))
            .initially(|device: &Device| device.psched_mtu.clamp(256, 1 << 20)),
        /// Parameters of each bucket's COBALT.
        #[serde(flatten)]
        control: Control = part::<Control>(),
        /// Maximum memory of queued packets in bytes, by their truesize.
        memory_limit: u32 = memory_limit().above_zero(),
        /// Maximum number of packets dropped in one batch on overflow.
        drop_batch: u32 = drop_batch(),
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];
    const NOT_IN_KERNEL: Option<&'static str> =
        Some("in Linux only `cake` has flow queues controlled by COBALT");

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }
}

impl Params {
    /// Returns the limits of all buckets together.
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

    /// Replaces the parameters, except the number of buckets. If a new limit is exceeded, packets
    /// are dropped in batches, as on arrival.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        self.params = Params { flows: self.params.flows, ..params };
        self.constants = params.control.constants();
        self.queues.quantum = params.quantum;
        while self.make_room(now, sink).is_some() {}
    }
}

impl<P: Packet> FqCobalt<P> {
    /// Drops one batch from a bucket if a limit is exceeded, and notifies the bucket's COBALT.
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
