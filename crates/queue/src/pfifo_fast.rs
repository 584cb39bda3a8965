//! `pfifo_fast`: three FIFOs by priority, the default of Linux without a configured discipline.
//!
//! Source: Linux `sch_generic.c`; the bands of the priorities are in `tc-prio(8)`.
//!
//! A packet's priority selects its band; a band is served only while all bands before it are empty.
//! Each band holds up to `txqueuelen` packets, independently of the other bands.
//!
//! Invariants: a packet leaves only if all bands before its own are empty; no band exceeds its
//! limit.

use crate::bands::Bands;
use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Call, Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals};
use crate::kinds::packets;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::viewed;
use crate::tc::Inside;
use sojourn_units::declare::Parameters;
use sojourn_units::{Nanos, params};

const BANDS: usize = 3;

/// Band of each priority from 0 to 15.
const BAND: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

params! {
    "pfifo_fast": "three FIFOs by priority, each of txqueuelen packets",
    from "Linux sch_generic.c, tc-prio(8)";

    /// Parameters of `pfifo_fast`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in each of the three bands: the device's txqueuelen. tc has no
        /// word for it.
        limit: u32 = packets("1000p").above_zero(),
    }
}

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit.saturating_mul(BANDS as u32)))
    }

    /// States that the limit is the transmit queue length of the device.
    fn inside(&self) -> Option<Inside<'_>> {
        Some(Inside { txqueuelen: Some(self.limit), ..Inside::default() })
    }

    /// `tc` accepts no options for `pfifo_fast`.
    fn to_tc(&self) -> String {
        Self::TABLE.name.to_owned()
    }
}

/// A `pfifo_fast` queue.
#[derive(Clone, Debug)]
pub struct PfifoFast<P> {
    params: Params,
    bands: Bands<P, BANDS>,
    totals: Totals,
}

impl<P: Packet> Configured<P, Params> for PfifoFast<P> {
    fn new(params: Params, _now: Nanos) -> Self {
        Self { params, bands: Bands::default(), totals: Totals::default() }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. If a band exceeds the new limit, its oldest packets are dropped.
    fn change(&mut self, params: Params, _now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params;
        self.bands.cut(params.limit as usize, &mut self.totals, sink);
    }
}

viewed!(PfifoFast in bands);

impl<P: Packet> Discipline<P> for PfifoFast<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        let band = usize::from(BAND[packet.priority() as usize & 15]);
        if self.bands.len(band) < self.params.limit as usize {
            self.bands.push(band, call.now, packet);
            return Return::Success;
        }
        self.totals.refuse(packet, DropReason::Overflow, call.sink);
        Return::Drop
    }

    fn dequeue(&mut self, _call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        self.totals.leave(self.bands.pop())
    }

    fn head(&self) -> Option<Dequeue<&P>> {
        Some(self.bands.head())
    }

    /// Visits the state of a band; bands are numbered from 0, and band 0 is served first.
    fn flow_state(&self, band: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        self.bands.state(band, visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
    }
}
