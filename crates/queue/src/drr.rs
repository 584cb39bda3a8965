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

use crate::classes::rounds::quantum;
use crate::classes::{ClassParams, Classful, Ranked, Scheduler, TREE, Tree, Turns};
use crate::device::Device;
use crate::discipline::Sink;
use crate::packet::Packet;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Param, Parameters, derived, group, narrow};
use sojourn_units::params;
use sojourn_units::words::{Given, Kind, Table, Value, WordError};

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
        quantum: u32 = Param::word(
            Kind::Size,
            "0b",
            narrow,
            |quantum| (*quantum != 0).then(|| Value::Integer((*quantum).into())),
        ),
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
    /// Returns the quantum of a class, as it counts.
    pub fn quantum(&self, class: &Share) -> u32 {
        quantum(class.quantum, self.frame)
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

    fn complete(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        self.tree.read(given, device)?;
        self.tree.check(given, |id| self.tree.class(id).is_some())
    }
}

impl Ranked for Params {
    const TURNS: Turns = Turns::Bytes;

    fn ids(&self) -> Vec<u16> {
        self.tree.ids()
    }

    fn strict(&self) -> u16 {
        0
    }

    fn turn(&self, id: u16) -> u32 {
        self.tree.class(id).map_or(0, |class| self.quantum(&class.words))
    }

    fn class_of<P: Packet>(
        &self,
        packet: &P,
        sink: &impl Sink<P>,
        has: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        packet.class().filter(|class| has(*class)).or_else(|| self.tree.filtered(packet, sink))
    }
}

/// Classes that take turns.
pub type Drr<P> = Scheduler<P, Params>;
