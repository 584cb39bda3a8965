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

use crate::aqm::AqmParams;
use crate::cobalt::{Constants, Control, Counters, State};
use crate::declaration::DisciplineParams;
use crate::device::Device;
use crate::flow_queues::{Overflow, Settings, buckets, drop_batch, memory_limit, quantum};
use crate::fq_aqm::{FqAqm, FqParams, Full};
use crate::kinds::packets;
use crate::limit::Unit;
use sojourn_units::declare::part;
use sojourn_units::params;

params! {
    "fq_cobalt": "FQ-COBALT: flows in separate queues, served in turn, each controlled by COBALT",
    from "ns-3 fq-cobalt-queue-disc; Linux sch_fq_codel.c, sch_cake.c";

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
    const NOT_IN_KERNEL: Option<&'static str> =
        Some("in Linux only `cake` has flow queues controlled by COBALT");

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }
}

impl AqmParams for Params {
    type Aqm = State;

    fn constants(&self) -> Constants {
        self.control.constants()
    }

    fn visit(counters: &Counters, overflow: &Overflow, visit: &mut dyn FnMut(&'static str, u64)) {
        overflow.visit(visit);
        visit("ecn_mark", counters.ecn_mark);
    }
}

impl FqParams for Params {
    const FULL: Full = Full::OnlyBatches;

    fn settings(&self) -> Settings {
        let Self { flows, quantum, limit, memory_limit, drop_batch, .. } = *self;
        Settings { flows, quantum, limit, memory_limit, drop_batch }
    }

    fn with_flows(self, flows: u32) -> Self {
        Self { flows, ..self }
    }
}

/// An FQ-COBALT queue.
pub type FqCobalt<P> = FqAqm<P, Params>;
