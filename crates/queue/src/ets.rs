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

use crate::classes::rounds::{Rounds, quantum};
use crate::classes::{Children, ClassParams, TREE, Tree};
use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, Return, Sink};
use crate::kinds::bytes_of;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::prio::{BANDS, Map, band};
use crate::store::viewed;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Param, Parameters, derived, group, integer};
use sojourn_units::words::{Given, Kind, Table, Value, WordError};
use sojourn_units::{Nanos, params};

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
    /// The band of each priority.
    pub fn map(&self) -> Map {
        let mut map = [self.bands.saturating_sub(1); 16];
        for (to, band) in map.iter_mut().zip(&self.priomap) {
            *to = *band;
        }
        map
    }

    /// The quantum of a band, as it counts; 0 of a strict one.
    pub fn quantum(&self, band: usize) -> u32 {
        let Some(place) = band.checked_sub(self.strict.into()) else { return 0 };
        let own = self.tree.class(band as u16 + 1).and_then(|class| class.words.quantum);
        let given = own.or(self.quanta.get(place).copied());
        quantum(given.unwrap_or_default(), self.frame)
    }

    fn complete(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
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
        if let Some(band) = self.priomap.iter().find(|band| **band >= self.bands) {
            let message =
                format!("`priomap` names band {band}, and the last one is {}", self.bands - 1);
            return Err(given.error("priomap", message));
        }
        self.tree.read(given, device)?;
        let strict = u16::from(self.strict);
        for class in &self.tree.classes {
            if class.id <= strict && class.words.quantum.is_some() {
                let message =
                    format!("`{}` is strict and has no quantum", self.tree.name(class.id));
                return Err(given.error(";", message));
            }
        }
        self.tree.check(given, |id| (1..=u16::from(self.bands)).contains(&id))
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];

    fn limit(&self) -> Option<(Unit, u32)> {
        None
    }

    fn settle(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        self.complete(given, device)
    }

    /// States the bands anew, as `tc` does, unless only classes are named; disciplines and filters stay.
    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        let mut changed = self.clone();
        if ["bands", "strict", "quanta", "priomap"].iter().any(|word| given.has(word)) {
            changed = Self { tree: changed.tree, ..Self::new(device) };
            for class in &mut changed.tree.classes {
                class.words.quantum = None;
            }
        }
        changed.set(given)?;
        if changed.bands != 0 {
            let last = u16::from(changed.bands);
            changed.tree.classes.retain(|class| class.id <= last);
        }
        changed.complete(given, device)?;
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

/// Strict bands, and bands that share.
#[derive(Clone, Debug)]
pub struct Ets<P> {
    params: Params,
    map: Map,
    /// By band.
    children: Children<P>,
    rounds: Rounds,
    /// By band.
    quanta: [u32; BANDS],
}

/// What each band of `params` may send a round.
fn quanta(params: &Params) -> [u32; BANDS] {
    std::array::from_fn(|band| if band < params.bands.into() { params.quantum(band) } else { 0 })
}

impl<P: Packet> Configured<P, Params> for Ets<P> {
    fn new(params: Params, now: Nanos) -> Self {
        let mut children = Children::default();
        for band in 0..params.bands {
            children.add(params.tree.child(u16::from(band) + 1), now);
        }
        let mut rounds = Rounds::default();
        rounds.grow(BANDS);
        Self { map: params.map(), quanta: quanta(&params), params, children, rounds }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. Bands that are no more lose their packets; those that become sharing and have
    /// packets go to the end of the round, and those that become strict leave it.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        for band in params.bands..self.params.bands {
            self.rounds.forget(band.into());
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
        self.quanta = quanta(&params);
        let there = self.params.bands.min(params.bands);
        for band in params.strict..self.params.strict.min(there) {
            let band = usize::from(band);
            if !self.children.is_empty(band) {
                self.rounds.add(band, self.quanta[band]);
            }
        }
        for band in self.params.strict..params.strict {
            self.rounds.remove(band.into());
        }
        self.map = params.map();
        self.params = params;
    }
}

viewed!(Ets in children);

impl<P: Packet> Discipline<P> for Ets<P> {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        let Params { bands, strict, tree, .. } = &self.params;
        let band = band(tree, &self.map, *bands, &packet);
        let given = self.children.enqueue(band, now, packet, draws, sink);
        let shares = band >= usize::from(*strict);
        if shares && !self.children.is_empty(band) && !self.rounds.is_active(band) {
            self.rounds.add(band, self.quanta[band]);
        }
        given
    }

    fn dequeue(
        &mut self,
        now: Nanos,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        self.children.begin();
        let mut wait: Option<Nanos> = None;
        for band in 0..usize::from(self.params.strict) {
            match self.children.dequeue(band, now, draws, sink) {
                Dequeue::Packet(packet) => return Dequeue::Packet(packet),
                Dequeue::Empty => {}
                Dequeue::NotBefore(time) => wait = Some(wait.map_or(time, |wait| wait.min(time))),
            }
        }
        let quanta = &self.quanta;
        match self.rounds.serve(&mut self.children, now, |band| quanta[band], draws, sink) {
            Dequeue::Packet(packet) => Dequeue::Packet(packet),
            Dequeue::Empty => self.children.wait(wait),
            Dequeue::NotBefore(time) => {
                self.children.wait(Some(wait.map_or(time, |wait| wait.min(time))))
            }
        }
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
            visit("deficit", self.rounds.deficit(flow - 1).into());
        }
    }

    /// The sharing bands that have packets, from 1 on, the next to be served first.
    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.rounds.active().for_each(|band| visit(0, band + 1));
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.children.counters(visit);
    }
}
