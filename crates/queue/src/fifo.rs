//! `pfifo` and `bfifo`: tail drop.
//!
//! Source: Linux `sch_fifo.c`.
//!
//! Packets leave in the order of arrival. A packet that does not fit is dropped on arrival. `pfifo`
//! counts packets, `bfifo` bytes.
//!
//! Invariants: without changes, the backlog never exceeds the limit; a lower limit given by a change drops
//! nothing that is queued, as in the kernel.

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals};
use crate::kinds::packets;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::store::{Store, viewed};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, derived};
use sojourn_units::words::{Kind, Table};
use sojourn_units::{Nanos, params, words};

/// The words of `pfifo`.
pub const PFIFO: Table = Table {
    name: "pfifo",
    summary: "tail drop, counted in packets",
    source: "Linux sch_fifo.c",
    words: Params::WORDS,
};

/// The words of `bfifo`.
pub const BFIFO: Table = Table {
    name: "bfifo",
    summary: "tail drop, counted in bytes",
    source: "Linux sch_fifo.c",
    words: words! {
        "limit", Kind::Size, "1514000b",
            "Bytes that fit; the kernel's default is txqueuelen full frames.";
    },
};

params! {
    /// Parameters of `pfifo` and, with bytes for packets, of `bfifo`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// What `limit` counts.
        unit: Unit = derived(|_| Unit::Packets),
        /// Packets that fit; the kernel's default is the device's txqueuelen.
        limit: u32 = packets("1000p"),
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&PFIFO, &BFIFO];

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((self.unit, self.limit))
    }

    fn table(&self) -> &'static Table {
        match self.unit {
            Unit::Packets => &PFIFO,
            Unit::Bytes => &BFIFO,
        }
    }

    fn named(table: &Table, device: &Device) -> Self {
        let packets = Self::new(device);
        if table.name == PFIFO.name {
            return packets;
        }
        Self { unit: Unit::Bytes, limit: packets.limit.saturating_mul(device.psched_mtu) }
    }
}

/// A tail drop queue.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    params: Params,
    store: Store<P>,
    totals: Totals,
}

impl<P: Packet> Configured<P, Params> for Fifo<P> {
    fn new(params: Params, _now: Nanos) -> Self {
        Self { params, store: Store::default(), totals: Totals::default() }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters.
    fn change(&mut self, params: Params, _now: Nanos, _sink: &mut impl Sink<P>) {
        self.params = params;
    }
}

viewed!(Fifo in store);

impl<P: Packet> Discipline<P> for Fifo<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        _draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        if self.params.unit.fits(self.params.limit, &self.store, &packet) {
            self.store.push(now, packet);
            return Return::Success;
        }
        self.totals.refuse(packet, DropReason::Overflow, sink);
        Return::Drop
    }

    #[inline]
    fn dequeue(
        &mut self,
        _now: Nanos,
        _draws: &mut impl Draws,
        _sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        self.totals.leave(self.store.pop().map(|queued| queued.packet))
    }

    fn head(&self) -> Option<Dequeue<&P>> {
        Some(self.store.head())
    }

    fn state(&self, _visit: &mut dyn FnMut(&'static str, i128)) {}

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
    }
}
