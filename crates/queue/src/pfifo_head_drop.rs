//! `pfifo_head_drop`: a FIFO that drops its oldest packet when it is full.
//!
//! Source: Linux `sch_fifo.c`.
//!
//! Packets leave in the order of arrival. An arrival that finds the queue full is queued all the same, and the
//! packet at the head is dropped for it, so that news of a loss reaches the receiver without the queue's delay.
//!
//! Invariants: the backlog never exceeds the limit; every arrival is queued.

use crate::declaration::DisciplineParams;
use crate::device::Device;
use crate::fifo::{Fifo, FifoParams};
use crate::kinds::packets;
use crate::limit::Unit;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::Parameters;
use sojourn_units::params;
use sojourn_units::words::Table;

/// The words of `pfifo_head_drop`.
pub const TABLE: Table = Table {
    name: "pfifo_head_drop",
    summary: "a FIFO that drops its oldest packet when it is full",
    source: "Linux sch_fifo.c",
    words: Params::WORDS,
};

params! {
    /// Parameters of `pfifo_head_drop`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Packets that fit; the kernel's default is the device's txqueuelen.
        limit: u32 = packets("1000p").above_zero(),
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }
}

impl FifoParams for Params {
    const DROPS_HEAD: bool = true;
}

/// A FIFO with head drop.
pub type PfifoHeadDrop<P> = Fifo<P, Params>;
