//! `pfifo` and `bfifo`: FIFOs with tail drop. `pfifo_head_drop` shares their queue.
//!
//! Source: Linux `sch_fifo.c`.
//!
//! Packets leave in the order of arrival. A packet that exceeds the limit is dropped on arrival.
//! The limit of `pfifo` counts packets, that of `bfifo` bytes.
//!
//! Invariants: without changes of parameters, the backlog never exceeds the limit. A change to a
//! lower limit drops no queued packet, as in the kernel.

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Call, Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals};
use crate::kinds::packets;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, viewed};
use sojourn_units::declare::{Parameters, derived};
use sojourn_units::words::{Kind, Table};
use sojourn_units::{Nanos, params, words};

/// Name, summary, source and words of the discipline `pfifo`.
pub const PFIFO: Table = Table {
    name: "pfifo",
    summary: "a FIFO with tail drop and a limit in packets",
    source: "Linux sch_fifo.c",
    words: Params::WORDS,
};

/// Name, summary, source and words of the discipline `bfifo`.
pub const BFIFO: Table = Table {
    name: "bfifo",
    summary: "a FIFO with tail drop and a limit in bytes",
    source: "Linux sch_fifo.c",
    words: words! {
        "limit", Kind::Size, "1514000b",
            "Maximum number of bytes in the queue; the kernel's default is txqueuelen times the largest frame.";
    },
};

params! {
    /// Parameters of `pfifo` and `bfifo`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Unit of `limit`: packets for `pfifo`, bytes for `bfifo`.
        unit: Unit = derived(|_| Unit::Packets),
        /// Maximum number of packets in the queue; the kernel's default is the device's txqueuelen.
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

/// Parameters of a FIFO with tail drop or head drop.
pub trait FifoParams: DisciplineParams {
    /// Whether a full queue drops its oldest packet to accept an arrival; otherwise it drops the
    /// arrival.
    const DROPS_HEAD: bool;
}

impl FifoParams for Params {
    const DROPS_HEAD: bool = false;
}

/// A FIFO with a limit.
#[derive(Clone, Debug)]
pub struct Fifo<P, D = Params> {
    params: D,
    packets: PacketFifo<P>,
    totals: Totals,
}

impl<P: Packet, D: FifoParams> Configured<P, D> for Fifo<P, D> {
    fn new(params: D, _now: Nanos) -> Self {
        Self { params, packets: PacketFifo::default(), totals: Totals::default() }
    }

    fn params(&self) -> &D {
        &self.params
    }

    /// Replaces the parameters. With head drop, the oldest packets above the new limit are dropped;
    /// with tail drop, no queued packet is dropped.
    fn change(&mut self, params: D, _now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params;
        if D::DROPS_HEAD
            && let Some((Unit::Packets, limit)) = self.params.limit()
        {
            self.packets.cut(limit as usize, &mut self.totals, sink);
        }
    }
}

viewed!(Fifo<D: FifoParams> in packets);

impl<P: Packet, D: FifoParams> Discipline<P> for Fifo<P, D> {
    #[inline]
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        let fits = |(unit, limit): (Unit, u32)| unit.fits(limit, &self.packets, &packet);
        if self.params.limit().is_none_or(fits) {
            self.packets.push(call.now, packet);
            return Return::Success;
        }
        if !D::DROPS_HEAD {
            self.totals.refuse(packet, DropReason::Overflow, call.sink);
            return Return::Drop;
        }
        self.totals.drops += 1;
        if let Some(oldest) = self.packets.pop() {
            call.sink.dropped(oldest.packet, DropReason::Overflow, true);
        }
        self.packets.push(call.now, packet);
        Return::Congestion
    }

    fn dequeue(&mut self, _call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        self.totals.leave(self.packets.pop().map(|queued| queued.packet))
    }

    #[inline]
    fn pass(&mut self, now: Nanos, packet: &P) -> bool {
        let fits = |(unit, limit): (Unit, u32)| unit.fits(limit, &self.packets, packet);
        let passes = self.packets.is_empty() && self.params.limit().is_none_or(fits);
        if passes {
            self.packets.leaves(now);
            self.totals.sent(packet.len());
        }
        passes
    }

    fn rests(&self) -> bool {
        true
    }

    fn head(&self) -> Option<Dequeue<&P>> {
        Some(self.packets.head())
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
    }
}
