//! `pfifo_head_drop`: a FIFO that drops its oldest packet when it is full.
//!
//! Source: Linux `sch_fifo.c`.
//!
//! Packets leave in the order of arrival. A packet that arrives at a full queue is accepted, and
//! the oldest packet is dropped instead. The receiver therefore learns of the loss without the
//! delay of the queue.
//!
//! Invariants: the backlog never exceeds the limit; every arrival is accepted.

use crate::declaration::DisciplineParams;
use crate::device::Device;
use crate::fifo::{Fifo, FifoParams};
use crate::kinds::packets;
use crate::limit::Unit;
use sojourn_units::params;

params! {
    "pfifo_head_drop": "a FIFO that drops its oldest packet when it is full",
    from "Linux sch_fifo.c";

    /// Parameters of `pfifo_head_drop`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in the queue; the kernel's default is the device's txqueuelen.
        limit: u32 = packets("1000p").above_zero(),
    }
}

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }
}

impl FifoParams for Params {
    const DROPS_HEAD: bool = true;
}

/// A FIFO that drops its oldest packet when it is full.
pub type PfifoHeadDrop<P> = Fifo<P, Params>;
