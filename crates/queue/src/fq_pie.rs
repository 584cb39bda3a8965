//! FQ-PIE: flows in separate queues, served in turn, each controlled by PIE.
//!
//! Source: Linux `sch_fq_pie.c`; RFC 8033, RFC 8290.
//!
//! The buckets are those of FQ-CoDel. Each bucket has its own PIE, which drops (or marks) packets
//! that arrive at the bucket. Every `tupdate` the probabilities of all buckets are updated. If the
//! queue has `limit` packets, the arriving packet is dropped, regardless of its flow.
//!
//! Invariants: only a change of parameters drops queued packets; the backlog never exceeds `limit`.
//! Arrivals above `memory_limit` are counted but not dropped for it, as in the kernel.

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals, View};
use crate::flow_queues::{FlowQueues, buckets, memory_limit, quantum};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::{Source, viewed};
use crate::pie::{self, Constants, Counters, MAX_PROB, State};
use sojourn_units::declare::{Parameters, integer, part};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, jiffies, params};

/// Name, summary, source and words of the discipline `fq_pie`.
pub const TABLE: Table = Table {
    name: "fq_pie",
    summary: "FQ-PIE: flows in separate queues, served in turn, each controlled by PIE",
    source: "Linux sch_fq_pie.c; RFC 8033, RFC 8290",
    words: Params::WORDS,
};

params! {
    /// Parameters of FQ-PIE, in the units that `tc` passes to the kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Parameters of each bucket's PIE; `limit` applies to all buckets together.
        #[serde(flatten)]
        pie: pie::Params = part::<pie::Params>().defaults(&[("limit", "10240p")]).docs(&[
            ("limit", "Maximum number of packets in all buckets together."),
            ("ecn", "Marks ECN-capable packets instead of dropping them, up to a probability of `ecn_prob`."),
        ]),
        /// Number of buckets; a change of the parameters cannot change it.
        flows: u32 = buckets(),
        /// Bytes that a bucket may send in its turn; the default is the device's largest frame.
        quantum: u32 = quantum().initially(|device: &Device| device.psched_mtu),
        /// Memory of queued packets in bytes above which arrivals are counted as overmemory; they
        /// are not dropped.
        memory_limit: u32 = memory_limit().above_zero(),
        /// Probability in percent up to which ECN-capable packets are marked; above it they are
        /// dropped.
        ecn_prob: u32 = integer(1, 99, "10"),
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];

    fn limit(&self) -> Option<(Unit, u32)> {
        self.pie.limit()
    }

    fn derived(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.pie.derived(visit);
    }
}

impl Params {
    /// Returns the constants of each bucket's PIE.
    pub fn constants(&self) -> Constants {
        Constants {
            ecn_max_prob: (MAX_PROB / 100).wrapping_mul(u64::from(self.ecn_prob)),
            ..self.pie.constants()
        }
    }
}

/// Maximum number of buckets updated in one call of the timer; the next call continues with the
/// rest.
const UPDATES: usize = 2048;

/// An FQ-PIE queue.
#[derive(Clone, Debug)]
pub struct FqPie<P> {
    params: Params,
    constants: Constants,
    queues: FlowQueues<P, State>,
    counters: Counters,
    overlimit: u64,
    overmemory: u64,
    totals: Totals,
    timer: Nanos,
    /// Bucket with which the next call of the timer begins.
    cursor: usize,
}

impl<P: Packet> Configured<P, Params> for FqPie<P> {
    fn new(params: Params, now: Nanos) -> Self {
        Self {
            params,
            constants: params.constants(),
            queues: FlowQueues::new(params.flows, params.quantum),
            counters: Counters::default(),
            overlimit: 0,
            overmemory: 0,
            totals: Totals::default(),
            timer: params.pie.first_update(now),
            cursor: 0,
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters, except the number of buckets. A new `tupdate` applies from the next
    /// update on. If the new limit is exceeded, packets are dequeued in turn and dropped.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        self.params = Params { flows: self.params.flows, ..params };
        self.constants = self.params.constants();
        self.queues.quantum = params.quantum;
        while self.queues.packets() > params.pie.limit as usize {
            let Dequeue::Packet(packet) = self.serve(now) else { break };
            sink.dropped(packet, DropReason::Overflow, true);
        }
    }
}

impl<P: Packet> FqPie<P> {
    /// Returns the next packet to leave.
    #[inline]
    fn serve(&mut self, now: Nanos) -> Dequeue<P> {
        let Self { constants, queues, totals, .. } = self;
        totals.leave(queues.serve(|pie, bucket| {
            let queued = bucket.take()?;
            pie.departed(constants, now, queued.at, queued.packet.len(), bucket.bytes());
            Some(queued.packet)
        }))
    }
}

viewed!(FqPie in queues);

impl<P: Packet> Discipline<P> for FqPie<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        mut packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        let Self { params, constants, queues, counters, .. } = self;
        let is_full = queues.packets() >= params.pie.limit as usize;
        // The kernel computes the sum in 32 bits.
        let memory_limit = params.memory_limit.wrapping_add(packet.truesize());
        if is_full {
            self.overlimit += 1;
        } else if queues.memory() > u64::from(memory_limit) {
            self.overmemory += 1;
        }
        let index = queues.index(&packet);
        let (pie, backlog) = queues.policy(index);
        if !is_full && pie.admit(constants, counters, backlog, &mut packet, draws, sink) {
            queues.push(index, now, packet);
            return Return::Success;
        }
        pie.dropped(counters);
        self.totals.drops += 1;
        let reason = if is_full { DropReason::Overflow } else { DropReason::Early };
        sink.dropped(packet, reason, false);
        Return::Congestion
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Nanos,
        _draws: &mut impl Draws,
        _sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        self.serve(now)
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        Some(self.timer)
    }

    fn on_timer(&mut self, now: Nanos) {
        let end = self.queues.len().min(self.cursor + UPDATES);
        for index in self.cursor..end {
            let (pie, backlog) = self.queues.policy(index);
            pie.update(&self.constants, backlog);
        }
        if end < self.queues.len() {
            self.cursor = end;
            self.timer = jiffies::after(now, 0, self.params.pie.hz);
        } else {
            self.cursor = 0;
            self.timer = self.params.pie.next_update(now);
        }
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.queues.visit(visit);
    }

    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if let Some(pie) = self.queues.visit_flow(flow, visit) {
            pie.visit(visit);
        }
    }

    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.queues.visit_lists(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit("packets_in", self.counters.packets_in);
        visit("dropped", self.counters.dropped);
        visit("overlimit", self.overlimit);
        visit("ecn_mark", self.counters.ecn_mark);
        visit("overmemory", self.overmemory);
    }
}
