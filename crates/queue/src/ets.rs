//! ETS: enhanced transmission selection.
//!
//! Source: Linux `sch_ets.c`, tc-ets(8), IEEE 802.1Qaz.
//!
//! Each band is a class: the n-th is `1:n`. The first `strict` bands are served in order, as by `prio`; while they
//! are empty, the others take turns by deficit round robin, as with `drr`. Bands come from classes, filters
//! and priorities as with `prio`.
//!
//! Invariants: a sharing band sends only while all strict ones are empty; sharing bands that have packets send
//! in the ratio of their quanta.

use crate::classes::rounds::quantum;
use crate::classes::{BANDS, ClassParams, Classful, Ranked, Scheduler, TREE, Tree, Turns};
use crate::device::Device;
use crate::discipline::Sink;
use crate::kinds::bytes_of;
use crate::packet::Packet;
use crate::prio::{Map, band, check_map};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Param, Parameters, derived, group, integer};
use sojourn_units::params;
use sojourn_units::words::{Given, Kind, Table, Value, WordError};

/// The words of `ets`.
pub const TABLE: Table = Table {
    name: "ets",
    summary: "enhanced transmission selection: strict bands before bands that share",
    source: "Linux sch_ets.c",
    words: Params::WORDS,
};

params! {
    /// A band.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Share on Device {
        /// Bytes that the band may send a round, instead of its place in quanta.
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
    /// Parameters of ETS.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Bands; without it as many as strict and quanta name.
        bands: u8 = integer(1, 16, "").initially(|_| 0),
        /// Bands that are served before all others, in their order.
        strict: u8 = integer(0, 16, "0"),
        /// Bytes that each of the other bands may send a round; one that is left out has a frame of the device.
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
        /// Band of each priority from 0 on, for packets without a class; of the others it is the last one.
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
        /// The bands' quanta and disciplines, and the filters.
        tree: Tree<Share> = group(TREE, |_| Tree::default(), Tree::set, Tree::write),
        /// The largest frame of the device.
        frame: u32 = derived(|device: &Device| device.psched_mtu),
    }
}

impl Params {
    /// Returns the band of a priority.
    fn band_of(&self, priority: usize) -> u8 {
        self.priomap.get(priority).copied().unwrap_or(self.bands.saturating_sub(1))
    }

    /// Returns the band of each priority.
    pub fn map(&self) -> Map {
        std::array::from_fn(|priority| self.band_of(priority))
    }

    /// Returns the quantum of a band, as it counts; 0 of a strict one.
    pub fn quantum(&self, band: usize) -> u32 {
        let Some(place) = band.checked_sub(self.strict.into()) else { return 0 };
        let own = self.tree.class(band as u16 + 1).and_then(|class| class.words.quantum);
        let given = own.or(self.quanta.get(place).copied());
        quantum(given.unwrap_or_default(), self.frame)
    }
}

impl Classful for Params {
    const TABLE: &'static Table = &TABLE;

    type Class = Share;

    fn tree(&self) -> &Tree<Share> {
        &self.tree
    }

    fn tree_mut(&mut self) -> &mut Tree<Share> {
        &mut self.tree
    }

    fn leaves(&self) -> Vec<u16> {
        self.ids()
    }

    fn complete(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        if self.bands != 0 {
            self.tree.keep_bands(self.bands.into());
        }
        let named = usize::from(self.strict) + self.quanta.len();
        if self.bands == 0 {
            if named == 0 || named > BANDS {
                return Err(given
                    .error("", "`ets` needs `bands`, `strict` or `quanta`, of at most 16 bands"));
            }
            self.bands = named as u8;
        }
        if named > self.bands.into() {
            let word = if given.has("quanta") { "quanta" } else { "strict" };
            let message = format!("`strict` and `quanta` name {named} bands of {}", self.bands);
            return Err(given.error(word, message));
        }
        check_map(&self.priomap, self.bands, given)?;
        self.tree.read(given, device)?;
        let strict = u16::from(self.strict);
        for class in &self.tree.classes {
            if class.id <= strict && class.words.quantum.is_some() {
                let message =
                    format!("`{}` is strict and has no quantum", self.tree.name(class.id));
                return Err(self.tree.class_error(given, class.id, message));
            }
        }
        self.tree.check(given, |id| (1..=u16::from(self.bands)).contains(&id))
    }

    /// Bands are stated anew, unless only classes are named; disciplines and filters stay.
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

/// Strict bands, and bands that share.
pub type Ets<P> = Scheduler<P, Params>;
