//! `pfifo_fast`: three FIFOs by priority, Linux's default without a configured discipline.
//!
//! Source: Linux `sch_generic.c`; the bands of priorities and of the TOS byte are those of `tc-prio(8)`.
//!
//! A packet's priority names its band, and a band is served only while those before it are empty. Each band
//! holds `txqueuelen` packets of its own, so one band's backlog takes no room from another.
//!
//! Invariants: a packet leaves only if all earlier bands are empty; no band exceeds its limit.

use crate::bands::Bands;
use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals};
use crate::kinds::packets;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::viewed;
use crate::tc::Inside;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::Parameters;
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};

/// The words of `pfifo_fast`.
pub const TABLE: Table = Table {
    name: "pfifo_fast",
    summary: "three FIFOs by priority, each of txqueuelen packets",
    source: "Linux sch_generic.c, tc-prio(8)",
    words: Params::WORDS,
};

const BANDS: usize = 3;

/// The band of each priority.
const BAND: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

params! {
    /// Parameters of `pfifo_fast`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Packets that fit in each of the three bands: the device's txqueuelen. tc has no such word.
        limit: u32 = packets("1000p").above_zero(),
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit.saturating_mul(BANDS as u32)))
    }

    /// Its limit is the device's.
    fn inside(&self) -> Option<Inside<'_>> {
        Some(Inside { txqueuelen: Some(self.limit), ..Inside::default() })
    }

    /// `tc` takes no words.
    fn to_tc(&self) -> String {
        TABLE.name.to_owned()
    }
}

/// Three bands.
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

    /// Replaces the parameters. Packets that no longer fit their band are dropped from the head.
    fn change(&mut self, params: Params, _now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params;
        self.bands.cut(params.limit as usize, &mut self.totals, sink);
    }
}

viewed!(PfifoFast in bands);

impl<P: Packet> Discipline<P> for PfifoFast<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        _draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        let band = usize::from(BAND[packet.priority() as usize & 15]);
        if self.bands.len(band) < self.params.limit as usize {
            self.bands.push(band, now, packet);
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
        self.totals.leave(self.bands.pop())
    }

    fn head(&self) -> Option<Dequeue<&P>> {
        Some(self.bands.head())
    }

    fn state(&self, _visit: &mut dyn FnMut(&'static str, i128)) {}

    /// Bands are numbered from 0, which is served first.
    fn flow_state(&self, band: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        self.bands.state(band, visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
    }
}
