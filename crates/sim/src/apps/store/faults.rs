//! Faults of the store: crashes of nodes, with or without a restart, and partitions between hosts.
//!
//! A crashed node sends and receives nothing, and loses its tasks; acknowledged writes are on its
//! disk. All other hosts detect a crash that lasts longer than a fixed time, and then remove their
//! connections to the node. In a partition, hosts discard each other's packets on arrival.

use crate::channels::Host;
use sojourn_plan::Store as Params;
use sojourn_plan::store::{Fault, What};
use sojourn_replication::NodeId;
use sojourn_units::{EPOCH, Nanos};

pub(super) const BEGINS: u8 = 0;
pub(super) const NOTICED: u8 = 1;
pub(super) const ENDS: u8 = 2;
pub(super) const OVER: u8 = 3;

/// All faults, in the plan's order.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    pub(super) list: Vec<Fault>,
    pub(super) nodes: u32,
    detect: Nanos,
    recover: Nanos,
}

impl Faults {
    pub(super) fn new(params: &Params) -> Self {
        let mut list = params.faults.clone();
        for fault in &mut list {
            fault.at += EPOCH;
            fault.until = fault.until.map(|until| until + EPOCH);
        }
        let (detect, recover) = (params.patience.detect, params.patience.recover);
        Self { list, nodes: params.nodes.len() as u32, detect, recover }
    }

    /// Returns the events of all faults: the fault's index, the time, the stage.
    pub(super) fn schedule(&self) -> Vec<(u32, Nanos, u8)> {
        let mut times = Vec::new();
        for (i, fault) in self.list.iter().enumerate() {
            let i = i as u32;
            times.push((i, fault.at, BEGINS));
            times.push((i, fault.at.saturating_add(self.detect), NOTICED));
            if let Some(until) = fault.until {
                times.push((i, until, ENDS));
                times.push((i, until.saturating_add(self.recover), OVER));
            }
        }
        times
    }

    /// Returns whether a fault separates two hosts.
    pub(super) fn parts(&self, fault: &Fault, a: Host, b: Host) -> bool {
        fault.what.parts(self.nodes, a, b)
    }

    /// Returns whether a fault separates two hosts at `now`.
    pub(super) fn cut(&self, a: Host, b: Host, now: Nanos) -> bool {
        self.list.iter().any(|fault| fault.is_on(now) && self.parts(fault, a, b))
    }

    /// Returns whether host `viewer` believes at `now` that `node` is up. Hosts detect a fault and
    /// its end with fixed delays.
    pub(super) fn seen_up(&self, viewer: Host, node: NodeId, now: Nanos) -> bool {
        viewer == node
            || !self.list.iter().any(|fault| {
                fault.at.saturating_add(self.detect) <= now
                    && fault.until.is_none_or(|until| now < until.saturating_add(self.recover))
                    && self.parts(fault, viewer, node)
            })
    }

    /// Returns whether a node is crashed at `now`.
    pub(super) fn is_down(&self, node: NodeId, now: Nanos) -> bool {
        self.list.iter().any(|fault| fault.what == What::Crash { node } && fault.is_on(now))
    }
}
