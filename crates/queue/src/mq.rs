//! `mq`: the transmit queues of a device, each with its own discipline.
//!
//! Source: Linux `sch_mq.c`, and `skb_tx_hash` of `net/core/dev.c` for the choice of a queue.
//!
//! A network card has several transmit queues, so that processors need not wait for each other. A
//! flow's hash selects the queue, as on a Linux device without XPS. The disciplines of the queues
//! are independent. In Linux the card's arbiter decides which queue sends next; here the queues
//! with packets send one packet each in turn. This arbiter is a model: cards differ, and some have
//! weights or priorities.
//!
//! Invariants: all packets of a flow are in one queue; between two departures from a queue that
//! always has packets, each other queue sends at most one packet.

use crate::classes::{
    About, ClassParams, Classful, Fault, Ranked, Scheduler, TREE, Tree, Turns, tree_of,
};
use crate::device::Device;
use crate::discipline::Sink;
use crate::fifo;
use crate::packet::Packet;
use crate::params::{Params as Child, tables};
use crate::pfifo_fast;
use sojourn_units::declare::{Parameters, group, integer};
use sojourn_units::words::{Given, Kind, Word, WordError};
use sojourn_units::{Rate, params, words};

const DEFAULT: &[Word] = words! {
    "default_qdisc", Kind::Name, "pfifo_fast", "Discipline, with its default parameters, of each transmit queue without a statement; in Linux the sysctl net.core.default_qdisc.";
};

const QUEUES: &[Word] = &[DEFAULT[0], TREE[0], TREE[1], TREE[2]];

params! {
    /// A transmit queue; its discipline has all parameters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TransmitQueue on Device {}
}

impl ClassParams for TransmitQueue {
    const DISCIPLINE: &'static str = "mq";
    const IMPLICIT: bool = true;
    const FILTERED: bool = false;
    const AT_ROOT: bool = true;
}

params! {
    "mq": "transmit queues of a device: a flow's hash selects the queue, and each queue has its own discipline",
    from "Linux sch_mq.c";

    /// Parameters of `mq`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Params on Device {
        /// Number of transmit queues, which are the classes 1:1, 1:2, and so on; in Linux a
        /// property of the device.
        numtxqueues: u16 = integer(2, 4096, "4"),
        /// Disciplines of the transmit queues.
        tree: Tree<TransmitQueue> = group(QUEUES, |_| Tree::default(), Tree::set, Tree::write),
    }
}

impl Params {
    /// Returns the discipline of transmit queues without a statement.
    fn default_qdisc(&self, given: &Given, device: &Device) -> Result<Child, WordError> {
        let word = DEFAULT[0].name;
        let name = given.text(word).unwrap_or(DEFAULT[0].default);
        // A plain FIFO holds as many packets as the device's `txqueuelen`.
        let is_plain = [pfifo_fast::Params::TABLE.name, fifo::PFIFO.name].contains(&name);
        let limit = is_plain.then(|| format!(" limit {}", self.tree.txqueuelen));
        let text = format!("{name}{}", limit.unwrap_or_default());
        Child::parse(&text, device).map_err(|error| {
            if tables().iter().any(|table| table.name == name) {
                return given
                    .error(word, format!("`{name}` cannot be the default discipline: {error}"));
            }
            given.within(word, error)
        })
    }
}

impl Classful for Params {
    tree_of!(TransmitQueue);

    /// `tc` accepts no options for `mq`: the device sets the number of queues.
    fn own_words(&self) -> String {
        Self::TABLE.name.to_owned()
    }

    /// Returns the sum of the rates of the queues' disciplines; `None` if one of them has no rate.
    fn total_rate(&self) -> Option<Rate> {
        let rates =
            self.tree.ids().into_iter().map(|id| self.tree.child(id).rate().map(Rate::bits));
        rates.sum::<Option<u64>>().and_then(Rate::new)
    }

    fn prepare(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        self.tree.keep_bands(self.numtxqueues);
        self.default_qdisc(given, device).map(|_| ())
    }

    fn finish(&mut self, given: &Given, device: &Device) -> Vec<Fault> {
        let queues = self.numtxqueues;
        let others = self.tree.classes.iter().filter(|class| !(1..=queues).contains(&class.id));
        let faults: Vec<_> = others
            .map(|class| Fault {
                about: About::Class(class.id),
                message: format!(
                    "`{}` is not one of {queues} transmit queues: `numtxqueues` sets their number",
                    self.tree.name(class.id)
                ),
            })
            .collect();
        if faults.is_empty()
            && let Ok(default) = self.default_qdisc(given, device)
        {
            self.tree.fill(queues, device, &default);
        }
        faults
    }
}

impl Ranked for Params {
    const TURNS: Turns = Turns::Packets;

    /// Returns the class by the flow's hash. A flow-queueing discipline in the class uses the same
    /// hash, so that its flows may fall into only a part of its buckets.
    fn class_of<P: Packet>(
        &self,
        packet: &P,
        _sink: &impl Sink<P>,
        _has: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        let queues = u64::from(self.numtxqueues);
        Some(1 + ((u64::from(packet.flow_hash()) * queues) >> 32) as u16)
    }
}

/// Transmit queues that send one packet each in turn.
pub type Mq<P> = Scheduler<P, Params>;
