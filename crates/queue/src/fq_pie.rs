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

use crate::aqm::AqmParams;
use crate::declaration::DisciplineParams;
use crate::device::Device;
use crate::discipline::visit_fields;
use crate::flow_queues::{Overflow, Settings, buckets, memory_limit, quantum};
use crate::fq_aqm::{FqAqm, FqParams, Full};
use crate::limit::Unit;
use crate::pie::{self, Constants, Counters, MAX_PROB, State};
use sojourn_units::declare::{integer, part};
use sojourn_units::{Nanos, params};

params! {
    "fq_pie": "FQ-PIE: flows in separate queues, served in turn, each controlled by PIE",
    from "Linux sch_fq_pie.c; RFC 8033, RFC 8290";

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
    fn limit(&self) -> Option<(Unit, u32)> {
        self.pie.limit()
    }

    fn derived(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.pie.derived(visit);
    }
}

impl AqmParams for Params {
    type Aqm = State;

    fn constants(&self) -> Constants {
        Constants {
            ecn_max_prob: (MAX_PROB / 100).wrapping_mul(u64::from(self.ecn_prob)),
            ..self.pie.constants()
        }
    }

    fn next_update(&self, now: Nanos, is_partial: bool) -> Option<Nanos> {
        self.pie.next_update(now, is_partial)
    }

    fn visit(counters: &Counters, overflow: &Overflow, visit: &mut dyn FnMut(&'static str, u64)) {
        visit_fields!(visit, counters, [packets_in, dropped]);
        visit("overlimit", overflow.dropped);
        visit("ecn_mark", counters.ecn_mark);
        visit("overmemory", overflow.for_memory);
    }
}

impl FqParams for Params {
    const FULL: Full = Full::Refuse;

    fn settings(&self) -> Settings {
        let Self { pie, flows, quantum, memory_limit, .. } = *self;
        Settings { flows, quantum, limit: pie.limit, memory_limit, drop_batch: 0 }
    }

    fn with_flows(self, flows: u32) -> Self {
        Self { flows, ..self }
    }
}

/// An FQ-PIE queue.
pub type FqPie<P> = FqAqm<P, Params>;
