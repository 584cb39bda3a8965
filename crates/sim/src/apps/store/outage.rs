//! Effects of faults on nodes: crash, detection by others, return, and handover of hints.

use super::Store;
use super::faults::{BEGINS, ENDS, NOTICED, OVER};
use super::message::Message;
use crate::world::World;
use sojourn_plan::store::What;
use sojourn_replication::NodeId;

impl Store {
    pub(super) fn fault(&mut self, world: &mut World, index: u32, stage: u8) {
        let now = self.now;
        let fault = self.faults.list[index as usize].clone();
        match stage {
            BEGINS | ENDS => {
                let faults = &self.faults;
                self.channels.cut(world, |a, b| faults.cut(a, b, now));
                if let (BEGINS, What::Crash { node }) = (stage, &fault.what) {
                    self.replicas[*node as usize].stop();
                    self.abandon(*node);
                    if let Some(waits) = &mut self.waits {
                        waits.forget(*node);
                    }
                    self.channels.stop_host(world, *node);
                }
            }
            // The outage may have ended before it was detected.
            NOTICED if fault.until.is_none_or(|until| now < until) => {
                let faults = &self.faults;
                self.channels.give_up(world, |a, b| faults.parts(&fault, a, b));
            }
            OVER => {
                for replica in 0..self.faults.nodes {
                    for holder in 0..self.faults.nodes {
                        let before = self.faults.parts(&fault, holder, replica);
                        if before && holder != replica {
                            self.hand_over(world, holder, replica);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Sends the next hint that `holder` keeps for `replica`, unless `holder` is down or believes
    /// that `replica` is down.
    pub(super) fn hand_over(&mut self, world: &mut World, holder: NodeId, replica: NodeId) {
        if self.hints[holder as usize].held() == 0 {
            return;
        }
        if !self.faults.seen_up(holder, replica, self.now) || self.faults.is_down(holder, self.now)
        {
            return;
        }
        if let Some((key, version)) = self.hints[holder as usize].take(replica) {
            let bytes = self.params.workload.value;
            self.probe.hints_handed += 1;
            self.send(world, holder, replica, Message::Hint { key, version, bytes });
        }
    }
}
