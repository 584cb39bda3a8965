//! What befalls the store: nodes that stop and come back, and hosts that hear each other no more.
//!
//! A node that stops sends nothing, takes nothing and forgets what it was doing; what it had
//! acknowledged is on its disk. All others learn of it after a fixed time, and give up their connections
//! to it then. A partition is a filter at the hosts: packets arrive and are thrown away.

use super::Store;
use crate::channel::Host;
use crate::engine::Engine;
use sojourn_plan::Store as Params;
use sojourn_plan::store::{Fault, What};
use sojourn_replication::NodeId;
use sojourn_units::{EPOCH, Nanos};

const BEGINS: u8 = 0;
const NOTICED: u8 = 1;
const ENDS: u8 = 2;
const OVER: u8 = 3;

/// All faults, in the plan's order.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    list: Vec<Fault>,
    nodes: u32,
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

    /// When what happens: the fault's number, the time, the stage.
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

    /// Whether a fault stands between two hosts.
    fn parts(&self, fault: &Fault, a: Host, b: Host) -> bool {
        fault.what.parts(self.nodes, a, b)
    }

    /// Whether two hosts do not hear each other.
    pub(super) fn cut(&self, a: Host, b: Host, now: Nanos) -> bool {
        self.list.iter().any(|fault| fault.is_on(now) && self.parts(fault, a, b))
    }

    /// Whether `viewer` takes `node` to be up.
    pub(super) fn seen_up(&self, viewer: Host, node: NodeId, now: Nanos) -> bool {
        viewer == node
            || !self.list.iter().any(|fault| {
                fault.at.saturating_add(self.detect) <= now
                    && fault.until.is_none_or(|until| now < until.saturating_add(self.recover))
                    && self.parts(fault, viewer, node)
            })
    }

    /// Whether a node has stopped.
    pub(super) fn is_down(&self, node: NodeId, now: Nanos) -> bool {
        self.list.iter().any(|fault| fault.what == What::Crash { node } && fault.is_on(now))
    }
}

impl Store {
    pub(super) fn fault(&mut self, engine: &mut Engine, index: u32, stage: u8) {
        let now = self.now;
        let fault = self.faults.list[index as usize].clone();
        match stage {
            BEGINS | ENDS => {
                let faults = &self.faults;
                engine.channels.cut(|a, b| faults.cut(a, b, now));
                if let (BEGINS, What::Crash { node }) = (stage, &fault.what) {
                    self.replicas[*node as usize].stop();
                    self.abandon(*node);
                    engine.stop_host(*node);
                }
            }
            // It may have been over before anybody noticed.
            NOTICED if fault.until.is_none_or(|until| now < until) => {
                let faults = &self.faults;
                engine.give_up(|a, b| faults.parts(&fault, a, b));
            }
            OVER => {
                for replica in 0..self.faults.nodes {
                    for holder in 0..self.faults.nodes {
                        let before = self.faults.parts(&fault, holder, replica);
                        if before && holder != replica {
                            self.hand_over(engine, holder, replica);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// A node hands the next of its hints to their replica.
    pub(super) fn hand_over(&mut self, engine: &mut Engine, holder: NodeId, replica: NodeId) {
        if self.hints[holder as usize].held() == 0 {
            return;
        }
        if !self.faults.seen_up(holder, replica, self.now) || self.faults.is_down(holder, self.now)
        {
            return;
        }
        if let Some((key, version)) = self.hints[holder as usize].take(replica) {
            let bytes = self.params.workload.value;
            self.report.hints_handed += 1;
            self.send(engine, holder, replica, super::Message::Hint { key, version, bytes });
        }
    }
}
