//! `pfifo_head_drop`: a FIFO that drops its oldest packet when it is full.
//!
//! Source: Linux `sch_fifo.c`.
//!
//! Packets leave in the order of arrival. An arrival that finds the queue full is queued all the same, and the
//! packet at the head is dropped for it, so that news of a loss reaches the receiver without the queue's delay.
//!
//! Invariants: the backlog never exceeds the limit; every arrival is queued.

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals};
use crate::kinds::packets;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::store::{Store, viewed};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::Parameters;
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};

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

/// A FIFO with head drop.
#[derive(Clone, Debug)]
pub struct PfifoHeadDrop<P> {
    params: Params,
    store: Store<P>,
    totals: Totals,
}

impl<P: Packet> Configured<P, Params> for PfifoHeadDrop<P> {
    fn new(params: Params, _now: Nanos) -> Self {
        Self { params, store: Store::default(), totals: Totals::default() }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. Packets that no longer fit are dropped from the head.
    fn change(&mut self, params: Params, _now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params;
        self.store.cut(params.limit as usize, &mut self.totals, sink);
    }
}

viewed!(PfifoHeadDrop in store);

impl<P: Packet> Discipline<P> for PfifoHeadDrop<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        _draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        if self.store.len() < self.params.limit as usize {
            self.store.push(now, packet);
            return Return::Success;
        }
        self.totals.drops += 1;
        if let Some(oldest) = self.store.pop() {
            sink.dropped(oldest.packet, DropReason::Overflow, true);
        }
        self.store.push(now, packet);
        Return::Congestion
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
