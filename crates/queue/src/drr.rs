//! DRR: deficit round robin.
//!
//! Source: Linux `sch_drr.c`; Shreedhar, Varghese, SIGCOMM 1995.
//!
//! Classes with packets take turns. In its turn a class sends as long as its deficit covers its
//! next packet; then its deficit grows by `quantum` and the next class follows. A packet that no
//! filter assigns to a class, and that names no class itself, is dropped.
//!
//! Invariants: over any period in which two classes always have packets, their sent bytes are in
//! the ratio of their quanta, with an error of at most one quantum and one packet for each class.

use crate::classes::rounds::quantum;
use crate::classes::{ClassParams, Classful, Fault, Ranked, Scheduler, TREE, Tree, Turns, tree_of};
use crate::device::Device;
use crate::discipline::Sink;
use crate::packet::Packet;
use sojourn_units::declare::{Param, derived, group, narrow};
use sojourn_units::params;
use sojourn_units::words::{Given, Kind, Value};

params! {
    /// Parameters of a class.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Share on Device {
        /// Bytes that the class may send per round; 0 means the largest frame of the device.
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
    "drr": "deficit round robin between classes, each with its own discipline",
    from "Linux sch_drr.c";

    /// Parameters of `drr`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Params on Device {
        /// Classes and filters.
        tree: Tree<Share> = group(TREE, |_| Tree::default(), Tree::set, Tree::write),
        /// Largest frame of the device, in bytes.
        frame: u32 = derived(|device: &Device| device.psched_mtu),
    }
}

impl Params {
    /// Returns the effective quantum of a class, in bytes.
    pub fn quantum(&self, class: &Share) -> u32 {
        quantum(class.quantum, self.frame)
    }
}

impl Classful for Params {
    tree_of!(Share);

    const UNCLASSIFIED: &'static str = "are dropped";

    fn finish(&mut self, _given: &Given, _device: &Device) -> Vec<Fault> {
        self.tree.faults(|id| self.tree.class(id).is_some())
    }
}

impl Ranked for Params {
    const TURNS: Turns = Turns::Bytes;

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

/// Classes that take turns by deficit round robin.
pub type Drr<P> = Scheduler<P, Params>;
