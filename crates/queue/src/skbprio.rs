//! SKBPRIO: strict priorities that share one limit.
//!
//! Source: tc-skbprio(8); observations of Linux 7.3 in virtual time.
//!
//! Each of 64 priorities has a FIFO; the packet with the largest priority leaves first. If the
//! queue is full and the arriving packet's priority is larger than the smallest queued one, the
//! newest packet of the smallest priority is dropped. Otherwise the arriving packet is dropped. A
//! flood of packets with small priorities therefore neither delays nor displaces packets with
//! larger ones.
//!
//! Invariants: without changes of parameters, the backlog never exceeds the limit; a packet is
//! dropped only while no packet with a smaller priority is queued.

use crate::bands::Bands;
use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Call, Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals, View};
use crate::kinds::packets;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::viewed;
use sojourn_units::{Nanos, params};

const PRIORITIES: usize = 64;

params! {
    "skbprio": "strict priorities with one limit: a full queue drops a packet of the smallest priority",
    from "Linux sch_skbprio.c, tc-skbprio(8)";

    /// Parameters of SKBPRIO.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets of all priorities together.
        limit: u32 = packets("64p").above_zero(),
    }
}

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }
}

/// A SKBPRIO queue.
#[derive(Clone, Debug)]
pub struct Skbprio<P> {
    params: Params,
    /// FIFO of each priority; band 0 has the largest priority.
    bands: Bands<P, PRIORITIES>,
    totals: Totals,
}

/// Returns the band of a priority; priorities above 63 count as 63.
fn band(priority: u32) -> usize {
    (PRIORITIES - 1).saturating_sub(priority as usize)
}

impl<P: Packet> Configured<P, Params> for Skbprio<P> {
    fn new(params: Params, _now: Nanos) -> Self {
        Self { params, bands: Bands::default(), totals: Totals::default() }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. A lower limit drops no queued packet.
    fn change(&mut self, params: Params, _now: Nanos, _sink: &mut impl Sink<P>) {
        self.params = params;
    }
}

viewed!(Skbprio in bands);

impl<P: Packet> Discipline<P> for Skbprio<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        let own = band(packet.priority());
        if self.bands.packets() < self.params.limit as usize {
            self.bands.push(own, call.now, packet);
            return Return::Success;
        }
        let displaced = self.bands.last().filter(|last| own < *last);
        let Some(displaced) = displaced.and_then(|last| self.bands.take_newest(last)) else {
            self.totals.refuse(packet, DropReason::Overflow, call.sink);
            return Return::Drop;
        };
        self.totals.drops += 1;
        call.sink.dropped(displaced.packet, DropReason::Overflow, true);
        self.bands.push(own, call.now, packet);
        Return::Congestion
    }

    fn dequeue(&mut self, _call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        self.totals.leave(self.bands.pop())
    }

    fn head(&self) -> Option<Dequeue<&P>> {
        Some(self.bands.head())
    }

    /// Visits the state of the FIFO of `priority`.
    fn flow_state(&self, priority: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if priority < PRIORITIES {
            self.bands.state(band(priority as u32), visit);
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
    }
}
