//! DRR: deficit round robin.
//!
//! Source: Linux `sch_drr.c`; Shreedhar, Varghese, SIGCOMM 1995.
//!
//! Classes that have packets take turns. A class sends as long as its deficit covers its next packet; otherwise
//! the deficit grows by `quantum` and the turn passes on. A packet that no filter sends to a class, and that
//! names none, is dropped.
//!
//! Invariants: over any span in which two classes have packets, the bytes that they send are in the ratio of
//! their quanta, but for one quantum and one packet each.

use crate::classes::rounds::{Rounds, quantum};
use crate::classes::{Children, Class, ClassParams, TREE, Tree};
use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, Return, Sink};
use crate::kinds::bytes;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::store::viewed;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, derived, group};
use sojourn_units::words::{Given, Table, WordError};
use sojourn_units::{Nanos, params};
use std::collections::BTreeMap;

/// The words of `drr`.
pub const TABLE: Table = Table {
    name: "drr",
    summary: "deficit round robin between classes, each with a discipline of its own",
    source: "Linux sch_drr.c",
    words: Params::WORDS,
};

params! {
    /// A class.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Share on Device {
        /// Bytes that the class may send a round; 0 is a frame of the device.
        quantum: u32 = bytes("0b"),
    }
}

impl ClassParams for Share {
    const DISCIPLINE: &'static str = "drr";
}

params! {
    /// Parameters of DRR.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// The classes and the filters.
        tree: Tree<Share> = group(TREE, |_| Tree::default(), Tree::set, Tree::write),
        /// The largest frame of the device.
        frame: u32 = derived(|device: &Device| device.psched_mtu),
    }
}

impl Params {
    /// The quantum of a class, as it counts.
    pub fn quantum(&self, class: &Share) -> u32 {
        quantum(class.quantum, self.frame)
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];

    fn limit(&self) -> Option<(Unit, u32)> {
        None
    }

    fn settle(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        self.tree.read(given, device)?;
        self.tree.check(given, |id| self.tree.class(id).is_some())
    }

    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        let changed = self.clone().with(given, device)?;
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

/// Classes that take turns.
#[derive(Clone, Debug)]
pub struct Drr<P> {
    params: Params,
    children: Children<P>,
    rounds: Rounds,
    /// Places of classes by their number.
    places: BTreeMap<u16, usize>,
    /// By place: number and quantum.
    classes: Vec<(u16, u32)>,
}

impl<P: Packet> Drr<P> {
    fn place(&self, packet: &P) -> Option<usize> {
        if let Some(place) = packet.class().and_then(|class| self.places.get(&class)) {
            return Some(*place);
        }
        let class = self.params.tree.filters.iter().find_map(|filter| filter.class(packet))?;
        self.places.get(&class).copied()
    }

    /// Adds a class, or takes over its new quantum.
    fn put(&mut self, class: &Class<Share>, now: Nanos) {
        let place = match self.places.get(&class.id) {
            Some(place) => *place,
            None => self.children.add(self.params.tree.child(class.id), now),
        };
        self.places.insert(class.id, place);
        self.rounds.grow(place + 1);
        if self.classes.len() <= place {
            self.classes.resize(place + 1, (0, 0));
        }
        self.classes[place] = (class.id, self.params.quantum(&class.words));
    }
}

impl<P: Packet> Configured<P, Params> for Drr<P> {
    fn new(params: Params, now: Nanos) -> Self {
        let mut drr = Self {
            params,
            children: Children::default(),
            rounds: Rounds::default(),
            places: BTreeMap::new(),
            classes: Vec::new(),
        };
        for class in drr.params.tree.classes.clone() {
            drr.put(&class, now);
        }
        drr
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters: classes that are no more lose their packets; a quantum counts from the next
    /// turn on.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        for class in std::mem::take(&mut self.params.tree.classes) {
            let Some(&place) = self.places.get(&class.id) else { continue };
            if params.tree.class(class.id).is_some() {
                self.children.change(place, &params.tree.child(class.id), now, sink);
            } else {
                self.places.remove(&class.id);
                self.rounds.forget(place);
                self.children.remove(place, now, sink);
            }
        }
        self.params = params;
        for class in self.params.tree.classes.clone() {
            self.put(&class, now);
        }
    }
}

viewed!(Drr in children);

impl<P: Packet> Discipline<P> for Drr<P> {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        let Some(place) = self.place(&packet) else {
            return self.children.refuse(packet, sink);
        };
        let given = self.children.enqueue(place, now, packet, draws, sink);
        if !self.children.is_empty(place) && !self.rounds.is_active(place) {
            self.rounds.add(place, self.classes[place].1);
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
        let quantum = |place: usize| self.classes[place].1;
        self.rounds.serve(&mut self.children, now, quantum, draws, sink)
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

    /// Of a class, by its number.
    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if let Some(place) = u16::try_from(flow).ok().and_then(|id| self.places.get(&id)) {
            self.children.state(Some(*place), visit);
            visit("deficit", self.rounds.deficit(*place).into());
        }
    }

    /// The classes that have packets, the next to be served first.
    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.rounds.active().for_each(|place| visit(0, self.classes[place].0.into()));
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.children.counters(visit);
    }
}
