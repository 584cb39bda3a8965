//! PRIO: strict priorities.
//!
//! Source: Linux `sch_prio.c`, tc-prio(8).
//!
//! Each band is a class: band n is `1:n`. The first band that has a packet is served, so a band
//! that always has packets starves the bands after it. A packet may name its class, or a filter
//! selects it. Otherwise `priomap` gives the band of the packet's priority, which follows from its
//! code point.
//!
//! Invariants: a band sends only while each band before it is empty or is a shaper that holds its
//! packets; packets of one band leave in the order of the band's discipline.

use crate::classes::{ClassParams, Classful, Fault, Ranked, Scheduler, TREE, Tree, Turns, tree_of};
use crate::device::Device;
use crate::discipline::Sink;
use crate::kinds::bytes_of;
use crate::packet::Packet;
use sojourn_units::declare::{Param, Parameters, group, integer};
use sojourn_units::params;
use sojourn_units::words::{Given, Kind, Value, WordError};

/// Band of each priority from 0 to 15.
pub(crate) type Map = [u8; 16];

params! {
    /// A band; its discipline has all parameters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Band on Device {}
}

impl ClassParams for Band {
    const DISCIPLINE: &'static str = "prio";
    const IMPLICIT: bool = true;
}

params! {
    "prio": "strict priorities: bands in order, each with its own discipline",
    from "Linux sch_prio.c";

    /// Parameters of `prio`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Params on Device {
        /// Number of bands; a band is served before the bands after it.
        bands: u8 = integer(2, 16, "3"),
        /// Band of each priority from 0 to 15, for packets without a class.
        priomap: Map = Param::word(
            Kind::Numbers { most: 16, max: 15 },
            "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
            |value| Map::try_from(bytes_of(value)).map_err(|_| "needs 16 bands".to_owned()),
            |map| Some(Value::Numbers(map.iter().map(|band| u64::from(*band)).collect())),
        ),
        /// Disciplines of the bands, and the filters.
        tree: Tree<Band> = group(TREE, |_| Tree::default(), Tree::set, Tree::write),
    }
}

/// Returns the class of a packet's band; `map` returns the band of a priority.
pub(crate) fn band<C, P: Packet>(
    tree: &Tree<C>,
    bands: u8,
    packet: &P,
    sink: &impl Sink<P>,
    map: impl Fn(usize) -> u8,
) -> u16 {
    let band = match packet.class().or_else(|| tree.filtered(packet, sink)) {
        Some(class) if (1..=u16::from(bands)).contains(&class) => return class,
        Some(_) => map(0),
        // A priority of at least 2^16 identifies a class of another discipline.
        None if packet.priority() >= 1 << 16 => map(0),
        None => map((packet.priority() & 15) as usize),
    };
    u16::from(band) + 1
}

/// Checks that `priomap` names only existing bands.
pub(crate) fn check_map(map: &[u8], bands: u8, given: &Given) -> Result<(), WordError> {
    match map.iter().find(|band| **band >= bands) {
        Some(band) => {
            let message =
                format!("`priomap` names band {band}, but the last band is {}", bands - 1);
            Err(given.error("priomap", message))
        }
        None => Ok(()),
    }
}

impl Classful for Params {
    tree_of!(Band);

    fn leaves(&self) -> Vec<u16> {
        self.ids()
    }

    fn prepare(&mut self, given: &Given, _device: &Device) -> Result<(), WordError> {
        self.tree.keep_bands(self.bands.into());
        check_map(&self.priomap, self.bands, given)
    }

    fn finish(&mut self, _given: &Given, _device: &Device) -> Vec<Fault> {
        self.tree.faults(|id| (1..=u16::from(self.bands)).contains(&id))
    }

    /// Returns the parameters to which the words of a change are applied. If the change names
    /// `bands` or `priomap`, both have default values; otherwise they are unchanged. Inner
    /// disciplines and filters are kept.
    fn restated(&self, given: &Given, device: &Device) -> Self {
        if given.has("bands") || given.has("priomap") {
            return Self { tree: self.tree.clone(), ..Self::new(device) };
        }
        self.clone()
    }
}

impl Ranked for Params {
    const TURNS: Turns = Turns::None;

    fn ids(&self) -> Vec<u16> {
        (1..=self.bands.into()).collect()
    }

    fn strict(&self) -> u16 {
        self.bands.into()
    }

    fn class_of<P: Packet>(
        &self,
        packet: &P,
        sink: &impl Sink<P>,
        _has: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        Some(band(&self.tree, self.bands, packet, sink, |priority| self.priomap[priority]))
    }
}

/// Bands that are served in strict order.
pub type Prio<P> = Scheduler<P, Params>;
