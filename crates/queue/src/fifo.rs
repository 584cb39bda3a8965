//! `pfifo` and `bfifo`: tail drop.
//!
//! Source: Linux `sch_fifo.c`.
//!
//! Packets leave in the order of arrival. A packet that does not fit is dropped on arrival. `pfifo`
//! counts packets, `bfifo` bytes.
//!
//! Invariants: without changes, the backlog never exceeds the limit; a lower limit given by a change drops
//! nothing that is queued, as in the kernel.

use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::store::{Store, Stored};
use crate::tc::{Text, packets, set, size};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use sojourn_units::words::{Given, Kind, Table, Word, WordError};

/// The words of `pfifo`.
pub const PFIFO: Table = Table {
    name: "pfifo",
    summary: "tail drop, counted in packets",
    source: "Linux sch_fifo.c",
    words: &[Word {
        name: "limit",
        kind: Kind::Packets,
        default: "1000p",
        doc: "Packets that fit; the kernel's default is the device's txqueuelen.",
    }],
};

/// The words of `bfifo`.
pub const BFIFO: Table = Table {
    name: "bfifo",
    summary: "tail drop, counted in bytes",
    source: "Linux sch_fifo.c",
    words: &[Word {
        name: "limit",
        kind: Kind::Size,
        default: "1514000b",
        doc: "Bytes that fit; the kernel's default is txqueuelen full frames.",
    }],
};

/// What the user sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// What `limit` counts.
    pub unit: Unit,
    /// Packets or bytes that fit.
    pub limit: u32,
}

impl Params {
    /// The defaults on `device`.
    pub fn new(unit: Unit, device: &Device) -> Self {
        let limit = match unit {
            Unit::Packets => 1000,
            Unit::Bytes => 1000u32.saturating_mul(device.psched_mtu),
        };
        Self { unit, limit }
    }

    pub(crate) fn set(&mut self, given: &Given) -> Result<(), WordError> {
        let limit = match self.unit {
            Unit::Packets => packets(given, "limit")?,
            Unit::Bytes => size(given, "limit")?,
        };
        set(&mut self.limit, limit);
        Ok(())
    }

    pub(crate) fn table(self) -> &'static Table {
        match self.unit {
            Unit::Packets => &PFIFO,
            Unit::Bytes => &BFIFO,
        }
    }

    pub(crate) fn to_tc(self) -> String {
        Text::new(self.table().name).value("limit", self.limit).done()
    }
}

/// A tail drop queue.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    params: Params,
    store: Store<P>,
    totals: Totals,
}

impl<P: Packet> Fifo<P> {
    /// An empty queue.
    pub fn new(params: Params) -> Self {
        Self { params, store: Store::default(), totals: Totals::default() }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters.
    pub fn change(&mut self, params: Params) {
        self.params = params;
    }
}

impl<P: Packet> Stored for Fifo<P> {
    type Store = Store<P>;

    #[inline]
    fn store(&self) -> &Store<P> {
        &self.store
    }
}

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
        self.totals.drops += 1;
        sink.dropped(packet, DropReason::Overflow, false);
        Return::Drop
    }

    #[inline]
    fn dequeue(
        &mut self,
        _now: Nanos,
        _draws: &mut impl Draws,
        _sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        match self.store.pop() {
            Some(queued) => {
                self.totals.sent(queued.packet.len());
                Dequeue::Packet(queued.packet)
            }
            None => Dequeue::Empty,
        }
    }

    fn state(&self, _visit: &mut dyn FnMut(&'static str, i128)) {}

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
    }
}
