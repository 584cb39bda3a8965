//! FQ-CoDel: flows in separate queues, served in turn, each controlled by CoDel.
//!
//! Source: RFC 8290; Linux `sch_fq_codel.c`.
//!
//! The buckets are flow queues (`flow_queues.rs`). Each bucket has its own CoDel, which decides
//! about packets that leave the bucket. Packets that a bucket loses on overflow are added to
//! `count` of its CoDel.
//!
//! Invariants: the backlog never exceeds `limit` packets. CoDel's exemption of a backlog of one MTU
//! refers to the backlog of all buckets together.

use crate::aqm::AqmParams;
use crate::codel::{self, Constants, Counters, State};
use crate::declaration::DisciplineParams;
use crate::device::Device;
use crate::discipline::visit_fields;
use crate::flow_queues::{Overflow, Settings, buckets, drop_batch, memory_limit, quantum};
use crate::fq_aqm::{FqAqm, FqParams, Full};
use crate::kinds::{linux, micros, optional_micros, packets};
use crate::limit::Unit;
use crate::linux::Linux;
use sojourn_units::declare::{Choices, Param, derived, switch};
use sojourn_units::words::{Given, Kind, Value};
use sojourn_units::{data, params};

params! {
    "fq_codel": "FQ-CoDel: flows in separate queues, served in turn, each controlled by CoDel",
    from "RFC 8290; Linux sch_fq_codel.c";

    /// Parameters of FQ-CoDel, in the units that `tc` passes to the kernel.
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
        /// CoDel: acceptable delay of a standing queue, in whole microseconds.
        target_us as "target": u32 = micros("5ms").above_zero(),
        /// CoDel: time for which the sojourn time may stay above target.
        interval_us as "interval": u32 = micros("100ms").above_zero(),
        /// Sojourn time above which ECN-capable packets are marked; off by default.
        ce_threshold_us as "ce_threshold": Option<u32> = optional_micros(),
        /// VALUE/MASK: ce_threshold applies to packets whose DS byte, masked with MASK, equals
        /// VALUE; mask 0 selects all packets.
        #[serde(flatten)]
        selector as "ce_threshold_selector": Selector =
            Param::word(Kind::Name, "0x0/0x0", Selector::read, |selector| selector.text()),
        /// Maximum memory of queued packets in bytes, by their truesize.
        memory_limit: u32 = memory_limit().adjust(|memory| memory.min(1 << 31)),
        /// Maximum number of packets dropped in one batch on overflow.
        drop_batch: u32 = drop_batch(),
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = switch("noecn", "ecn"),
        /// Version of Linux whose decisions CoDel makes. Before 7.3 one departure may drop any
        /// number of packets, and the next drop may be due at the same time. Since 7.3 it drops at
        /// most 256 packets, and the next drop is due at least one tick (1.024 us) later. The
        /// difference shows with intervals of microseconds, or after a stall with a deep queue.
        /// `2025` is a kernel without the fix of March 2026, whose empty flow does not forget that
        /// packets waited: of a sparse flow that waits above the target it drops a part.
        linux: Linux = linux(Linux::NAMES),
        /// Largest frame of the device, in bytes.
        mtu: u32 = derived(|device: &Device| device.psched_mtu.min(1 << 20)),
    }
}

/// Condition on the DS byte of packets to which `ce_threshold` applies.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Value that the masked DS byte must have.
    #[serde(rename = "ce_threshold_selector")]
    pub value: u8,
    /// Mask of the DS byte; 0 selects all packets.
    #[serde(rename = "ce_threshold_mask")]
    pub mask: u8,
}

impl Selector {
    fn read(value: &Value) -> Result<Self, String> {
        let text = value.text();
        text.split_once('/')
            .and_then(|(value, mask)| Some(Self { value: byte(value)?, mask: byte(mask)? }))
            .ok_or_else(|| format!("needs VALUE/MASK, such as 0x1/0x3; found `{text}`"))
    }

    fn text(self) -> Option<Value> {
        let Self { value, mask } = self;
        (value != 0 || mask != 0).then(|| Value::Text(format!("{value:#x}/{mask:#x}")))
    }
}

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }

    fn derived(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.constants().visit(visit);
    }

    fn warnings(&self, given: &Given) -> Vec<String> {
        let is_idle = given.has("ce_threshold_selector") && !given.has("ce_threshold");
        let text = "`ce_threshold_selector` has no effect: it acts only with `ce_threshold`";
        is_idle.then(|| text.to_owned()).into_iter().collect()
    }
}

impl Params {
    /// Returns the constants of each bucket's CoDel.
    pub fn constants(&self) -> Constants {
        let Self { limit, target_us, interval_us, ce_threshold_us, ecn, linux, mtu, .. } = *self;
        let codel =
            codel::Params { limit, target_us, interval_us, ce_threshold_us, ecn, linux, mtu };
        Constants {
            ce_selector: self.selector.value,
            ce_mask: self.selector.mask,
            ..codel.constants()
        }
    }
}

/// Reads a byte in decimal or, after `0x`, in hexadecimal.
fn byte(text: &str) -> Option<u8> {
    match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

impl AqmParams for Params {
    type Aqm = State;

    fn constants(&self) -> Constants {
        self.constants()
    }

    fn visit(counters: &Counters, overflow: &Overflow, visit: &mut dyn FnMut(&'static str, u64)) {
        overflow.visit(visit);
        visit_fields!(visit, counters, [ecn_mark, ce_mark]);
    }
}

impl FqParams for Params {
    const FULL: Full = Full::Batch;

    fn settings(&self) -> Settings {
        let Self { flows, quantum, limit, memory_limit, drop_batch, .. } = *self;
        Settings { flows, quantum, limit, memory_limit, drop_batch }
    }

    fn with_flows(self, flows: u32) -> Self {
        Self { flows, ..self }
    }
}

/// An FQ-CoDel queue.
pub type FqCodel<P> = FqAqm<P, Params>;
