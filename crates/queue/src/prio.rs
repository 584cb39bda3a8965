//! PRIO: strict priorities.
//!
//! Source: Linux `sch_prio.c`, tc-prio(8).
//!
//! Each band is a class: the n-th is `1:n`. A packet leaves the first band that has one, so a busy band starves
//! those behind it. The band is that of the class that the packet names, or of the filter that fits it; else
//! `priomap` gives the one of the packet's priority, which follows from its code point.
//!
//! Invariants: a band sends only while those before it are empty, or hold their packets back; packets of one
//! band leave in its discipline's order.

use crate::classes::{Children, ClassParams, TREE, Tree};
use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, Return, Sink};
use crate::kinds::bytes_of;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::store::viewed;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Param, Parameters, group, integer};
use sojourn_units::words::{Given, Kind, Table, Value, WordError};
use sojourn_units::{Nanos, params};

/// The words of `prio`.
pub const TABLE: Table = Table {
    name: "prio",
    summary: "strict priorities: bands in order, each with a discipline of its own",
    source: "Linux sch_prio.c",
    words: Params::WORDS,
};

/// Bands at most.
pub(crate) const BANDS: usize = 16;

/// Bands of priorities.
pub(crate) type Map = [u8; 16];

params! {
    /// A band: all is in its discipline.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Band on Device {}
}

impl ClassParams for Band {
    const DISCIPLINE: &'static str = "prio";
    const IMPLICIT: bool = true;
}

params! {
    /// Parameters of PRIO.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Bands, of which each is served before those behind it.
        bands: u8 = integer(2, 16, "3"),
        /// Band of each priority from 0 to 15, for packets without a class.
        priomap: Map = Param::word(
            Kind::Numbers { most: 16, max: 15 },
            "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
            |value| Map::try_from(bytes_of(value)).map_err(|_| "needs 16 bands".to_owned()),
            |map| Some(Value::Numbers(map.iter().map(|band| u64::from(*band)).collect())),
        ),
        /// The bands' disciplines and the filters.
        tree: Tree<Band> = group(TREE, |_| Tree::default(), Tree::set, Tree::write),
    }
}

/// The band of a packet's priority.
pub(crate) fn by_priority(map: &Map, priority: u32) -> usize {
    // Larger ones are names of classes of other disciplines.
    let priority = if priority >= 1 << 16 { 0 } else { priority };
    map[(priority & 15) as usize].into()
}

/// The band of a packet.
pub(crate) fn band<C>(tree: &Tree<C>, map: &Map, bands: u8, packet: &impl Packet) -> usize {
    let filtered = || tree.filters.iter().find_map(|filter| filter.class(packet));
    match packet.class().or_else(filtered) {
        None => by_priority(map, packet.priority()),
        Some(class) if (1..=u16::from(bands)).contains(&class) => usize::from(class - 1),
        Some(_) => map[0].into(),
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];

    fn limit(&self) -> Option<(Unit, u32)> {
        None
    }

    fn settle(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        if let Some(band) = self.priomap.iter().find(|band| **band >= self.bands) {
            let message =
                format!("`priomap` names band {band}, and the last one is {}", self.bands - 1);
            return Err(given.error("priomap", message));
        }
        self.tree.read(given, device)?;
        self.tree.check(given, |id| (1..=u16::from(self.bands)).contains(&id))
    }

    /// States bands and their map anew, as `tc` does; classes and filters stay.
    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        let mut changed = self.clone();
        if given.has("bands") || given.has("priomap") {
            let Self { bands, priomap, .. } = Self::new(device);
            (changed.bands, changed.priomap) = (bands, priomap);
        }
        changed.set(given)?;
        let last = u16::from(changed.bands);
        changed.tree.classes.retain(|class| class.id <= last);
        changed.settle(given, device)?;
        changed.tree.check_change(&self.tree, given)?;
        Ok(changed)
    }

    fn has_handle(&self, handle: u16) -> bool {
        self.tree.has_handle(handle)
    }

    fn in_kernel(&self) -> Result<(), &'static str> {
        self.tree.in_kernel()
    }
}

/// Bands in order.
#[derive(Clone, Debug)]
pub struct Prio<P> {
    params: Params,
    /// By band.
    children: Children<P>,
}

impl<P: Packet> Configured<P, Params> for Prio<P> {
    fn new(params: Params, now: Nanos) -> Self {
        let mut children = Children::default();
        for band in 0..params.bands {
            children.add(params.tree.child(u16::from(band) + 1), now);
        }
        Self { params, children }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. Bands that are no more lose their packets.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        for band in params.bands..self.params.bands {
            self.children.remove(band.into(), now, sink);
        }
        for band in 0..params.bands {
            let child = params.tree.child(u16::from(band) + 1);
            if band < self.params.bands {
                self.children.change(band.into(), &child, now, sink);
            } else {
                self.children.add(child, now);
            }
        }
        self.params = params;
    }
}

viewed!(Prio in children);

impl<P: Packet> Discipline<P> for Prio<P> {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        let Params { bands, priomap, tree } = &self.params;
        let band = band(tree, priomap, *bands, &packet);
        self.children.enqueue(band, now, packet, draws, sink)
    }

    fn dequeue(
        &mut self,
        now: Nanos,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        self.children.begin();
        let mut wait: Option<Nanos> = None;
        for band in 0..usize::from(self.params.bands) {
            match self.children.dequeue(band, now, draws, sink) {
                Dequeue::Packet(packet) => return Dequeue::Packet(packet),
                Dequeue::Empty => {}
                Dequeue::NotBefore(time) => wait = Some(wait.map_or(time, |wait| wait.min(time))),
            }
        }
        self.children.wait(wait)
    }

    fn wake_up(&self) -> Option<Nanos> {
        self.children.wake_up()
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.children.next_timer()
    }

    fn on_timer(&mut self, now: Nanos) {
        self.children.on_timer(now);
    }

    fn state(&self, _visit: &mut dyn FnMut(&'static str, i128)) {}

    /// Of a band, from 1 on.
    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if (1..=BANDS).contains(&flow) {
            self.children.state(Some(flow - 1), visit);
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.children.counters(visit);
    }
}
