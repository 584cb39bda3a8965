//! ETS: enhanced transmission selection.
//!
//! Source: Linux `sch_ets.c`, tc-ets(8), IEEE 802.1Qaz.
//!
//! Each band is a class: band n is `1:n`. The first `strict` bands are served in order, as in
//! `prio`. While they are empty, the other bands take turns by deficit round robin, as in `drr`.
//! The band of a packet follows from classes, filters and priorities as in `prio`.
//!
//! Invariants: a sharing band sends only while no strict band can send; sharing bands with packets
//! send bytes in the ratio of their quanta.

use crate::classes::rounds::quantum;
use crate::classes::{
    About, BANDS, ClassParams, Classful, Fault, Ranked, Scheduler, TREE, Tree, Turns, tree_of,
};
use crate::device::Device;
use crate::discipline::Sink;
use crate::kinds::bytes_of;
use crate::packet::Packet;
use crate::prio::{Map, band, check_map};
use sojourn_units::declare::{Param, Parameters, derived, group, integer};
use sojourn_units::params;
use sojourn_units::words::{Given, Kind, Value, WordError};

params! {
    /// Parameters of a band.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Share on Device {
        /// Bytes that the band may send per round; replaces the band's entry in `quanta`.
        quantum: Option<u32> = Param::word(
            Kind::Size,
            "",
            |value| u32::try_from(value.integer()).map(Some).map_err(|_| "is too large".to_owned()),
            |quantum| quantum.map(|quantum| Value::Integer(quantum.into())),
        )
        .initially(|_| None),
    }
}

impl ClassParams for Share {
    const DISCIPLINE: &'static str = "ets";
    const IMPLICIT: bool = true;
}

params! {
    "ets": "enhanced transmission selection: strict bands first, then bands that share the rate",
    from "Linux sch_ets.c";

    /// Parameters of ETS.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Params on Device {
        /// Number of bands; by default the number of bands that `strict` and `quanta` name.
        bands: u8 = integer(1, 16, "").initially(|_| 0),
        /// Number of bands that are served before all others, in order.
        strict: u8 = integer(0, 16, "0"),
        /// Bytes that each band after the strict ones may send per round; a band without an entry
        /// may send one largest frame of the device.
        quanta: Vec<u32> = Param::word(
            Kind::Numbers { most: BANDS, max: u32::MAX as u64 },
            "",
            |value| Ok(value.numbers().iter().map(|number| *number as u32).collect()),
            |quanta: &Vec<u32>| {
                let numbers = quanta.iter().map(|number| u64::from(*number)).collect::<Vec<_>>();
                (!numbers.is_empty()).then_some(Value::Numbers(numbers))
            },
        )
        .initially(|_| Vec::new()),
        /// Band of each priority from 0 on, for packets without a class; priorities without an
        /// entry use the last band.
        priomap: Vec<u8> = Param::word(
            Kind::Numbers { most: 16, max: 15 },
            "",
            |value| Ok(bytes_of(value)),
            |map: &Vec<u8>| {
                let numbers = map.iter().map(|band| u64::from(*band)).collect::<Vec<_>>();
                (!numbers.is_empty()).then_some(Value::Numbers(numbers))
            },
        )
        .initially(|_| Vec::new()),
        /// Quanta and disciplines of the bands, and the filters.
        tree: Tree<Share> = group(TREE, |_| Tree::default(), Tree::set, Tree::write),
        /// Largest frame of the device, in bytes.
        frame: u32 = derived(|device: &Device| device.psched_mtu),
    }
}

impl Params {
    /// Returns the band of a priority; bands count from 0.
    fn band_of(&self, priority: usize) -> u8 {
        self.priomap.get(priority).copied().unwrap_or(self.bands.saturating_sub(1))
    }

    /// Returns the band of each priority.
    pub fn map(&self) -> Map {
        std::array::from_fn(|priority| self.band_of(priority))
    }

    /// Returns the effective quantum of a band in bytes; 0 for a strict band.
    pub fn quantum(&self, band: usize) -> u32 {
        let Some(place) = band.checked_sub(self.strict.into()) else { return 0 };
        let own = self.tree.class(band as u16 + 1).and_then(|class| class.words.quantum);
        let given = own.or(self.quanta.get(place).copied());
        quantum(given.unwrap_or_default(), self.frame)
    }
}

impl Classful for Params {
    tree_of!(Share);

    fn leaves(&self) -> Vec<u16> {
        self.ids()
    }

    fn prepare(&mut self, given: &Given, _device: &Device) -> Result<(), WordError> {
        if self.bands != 0 {
            self.tree.keep_bands(self.bands.into());
        }
        let named = usize::from(self.strict) + self.quanta.len();
        if self.bands == 0 {
            if named == 0 || named > BANDS {
                return Err(given.error(
                    "",
                    "`ets` needs `bands`, `strict` or `quanta`, with 1 to 16 bands in total",
                ));
            }
            self.bands = named as u8;
        }
        if named > self.bands.into() {
            let word = if given.has("quanta") { "quanta" } else { "strict" };
            let message =
                format!("`strict` and `quanta` name {named} bands, but `bands` is {}", self.bands);
            return Err(given.error(word, message));
        }
        check_map(&self.priomap, self.bands, given)
    }

    fn finish(&mut self, _given: &Given, _device: &Device) -> Vec<Fault> {
        let strict = u16::from(self.strict);
        let wrong =
            self.tree.classes.iter().filter(|c| c.id <= strict && c.words.quantum.is_some());
        let faults = wrong.map(|class| Fault {
            about: About::Class(class.id),
            message: format!(
                "`{}` is a strict band and cannot have a quantum",
                self.tree.name(class.id)
            ),
        });
        faults.chain(self.tree.faults(|id| (1..=u16::from(self.bands)).contains(&id))).collect()
    }

    /// Returns the parameters to which the words of a change are applied. If the change names words
    /// of `ets`, the bands have default values; otherwise they are unchanged. Inner disciplines and
    /// filters are kept.
    fn restated(&self, given: &Given, device: &Device) -> Self {
        let mut restated = self.clone();
        if ["bands", "strict", "quanta", "priomap"].iter().any(|word| given.has(word)) {
            restated = Self { tree: restated.tree, ..Self::new(device) };
            for class in &mut restated.tree.classes {
                class.words.quantum = None;
            }
        }
        restated
    }
}

impl Ranked for Params {
    const TURNS: Turns = Turns::Bytes;

    fn ids(&self) -> Vec<u16> {
        (1..=self.bands.into()).collect()
    }

    fn strict(&self) -> u16 {
        self.strict.into()
    }

    fn turn(&self, id: u16) -> u32 {
        self.quantum(usize::from(id) - 1)
    }

    fn class_of<P: Packet>(
        &self,
        packet: &P,
        sink: &impl Sink<P>,
        _has: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        Some(band(&self.tree, self.bands, packet, sink, |priority| self.band_of(priority)))
    }
}

/// Strict bands, and bands that share by deficit round robin.
pub type Ets<P> = Scheduler<P, Params>;
