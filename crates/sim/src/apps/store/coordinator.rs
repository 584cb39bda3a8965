//! Coordinators: which replicas a request is sent to, and the outcome of their answers.

use super::message::{Id, Message};
use super::replica::Task;
use super::request::{DATA, FIRST, Operation, REPAIR};
use super::{Event, Store};
use crate::channels::Host;
use crate::world::World;
use sojourn_replication::{Need, NodeId, Outcome, Tally, repair};

impl Store {
    /// Begins a request at its coordinator: selects replicas and sends them messages.
    pub(super) fn coordinate(&mut self, world: &mut World, node: NodeId, id: Id) {
        let Some(request) = self.slots.get(id).filter(|r| r.open && r.tally.is_none()) else {
            return;
        };
        request.begun = self.now;
        let (operation, key) = (request.operation, request.key);
        self.probe.coordinated[node as usize] += 1;
        self.find_replicas(key);
        let local = self.ring.data_centre(node);
        let level = match operation {
            Operation::Write => self.params.write_level,
            Operation::Read | Operation::Scan => self.params.read_level,
        };
        let need = level.need(&self.placement, local);
        let found = std::mem::take(&mut self.found);
        let now = self.now;
        let mut asked: Vec<(NodeId, u32)> = found
            .iter()
            .filter(|&&replica| self.faults.seen_up(node, replica, now))
            .map(|&replica| (replica, self.ring.data_centre(replica)))
            .collect();
        let mut spare = Vec::new();
        if operation != Operation::Write {
            spare = self.nearest(node, &need, &mut asked);
        }
        match Tally::new(need, &asked) {
            Err(outcome) => self.reply(world, id, outcome),
            Ok(tally) => {
                self.version += u64::from(operation == Operation::Write);
                let version = self.version;
                let mut measured = false;
                if let Some(request) = self.slots.get(id) {
                    measured = request.measured;
                    (request.version, request.tally, request.spare) = (version, Some(tally), spare);
                }
                if operation == Operation::Write && measured {
                    let replicas = found.iter().map(|&n| (n, self.ring.data_centre(n)));
                    self.staleness.begin(key, version, replicas);
                }
                if operation == Operation::Write && self.params.patience.hints {
                    for &away in found.iter().filter(|&&n| asked.iter().all(|a| a.0 != n)) {
                        self.hint(node, away, key, version);
                    }
                }
                let patience = &self.params.patience;
                let (write, read) = (patience.write, patience.read);
                let speculate = match &mut self.waits {
                    Some(waits) => Some(waits.wait(node, now)),
                    None => patience.speculate,
                };
                let wait = if operation == Operation::Write { write } else { read };
                self.at(now.saturating_add(wait), Event::Expires { id });
                if let (Operation::Read, Some(wait)) = (operation, speculate) {
                    self.at(now.saturating_add(wait), Event::Speculate { id });
                }
                for (i, &(replica, _)) in asked.iter().enumerate() {
                    self.ask(world, node, replica, id, i == 0);
                }
            }
        }
        self.found = found;
    }

    /// Reduces `asked` to the replicas that a read needs, the nearest first; the nearest replica is
    /// the coordinator itself, if it has one. Returns the other replicas, the nearest one last.
    fn nearest(&self, node: NodeId, need: &Need, asked: &mut Vec<(NodeId, u32)>) -> Vec<NodeId> {
        let place = self.ring.place(node);
        asked.sort_by_key(|&(replica, dc)| {
            (replica != node, dc != place.0, self.ring.place(replica) != place)
        });
        let mut chosen: Vec<(NodeId, u32)> = Vec::new();
        let mut rest = Vec::new();
        for &(replica, dc) in asked.iter() {
            let wanted = match need {
                Need::Any { count } => chosen.len() < *count as usize,
                Need::Local { data_centre, count } => {
                    dc == *data_centre && chosen.len() < *count as usize
                }
                Need::Each { counts } => {
                    let here = chosen.iter().filter(|c| c.1 == dc).count();
                    counts.get(dc as usize).is_some_and(|&count| here < count as usize)
                }
            };
            if wanted {
                chosen.push((replica, dc));
            } else {
                rest.push(replica);
            }
        }
        *asked = chosen;
        rest.reverse();
        rest
    }

    /// Sends one replica the message of the request's present step. `data` is whether a read
    /// requests the data; otherwise it requests a digest.
    fn ask(&mut self, world: &mut World, node: NodeId, replica: NodeId, id: Id, data: bool) {
        let Some(request) = self.slots.get(id) else { return };
        let (step, key, version) = (request.step, request.key, request.version);
        let records = if data { request.records } else { 0 };
        let write = request.operation == Operation::Write || step == REPAIR;
        let bytes = self.params.workload.value;
        if replica == node {
            let from = node;
            let task = if write {
                Task::Write { from, id, step, key, version }
            } else {
                Task::Read { from, id, step, key, records }
            };
            self.enqueue(world, node, task);
        } else if write {
            self.send(world, node, replica, Message::Write { id, step, key, version, bytes });
        } else {
            self.send(world, node, replica, Message::Read { id, step, key, records });
        }
    }

    /// Handles a replica's answer to the step `step`; the version is `None` if the replica failed.
    pub(super) fn done(
        &mut self,
        world: &mut World,
        replica: NodeId,
        node: NodeId,
        id: Id,
        step: u8,
        version: Option<u64>,
    ) {
        let Some(request) = self.slots.get(id).filter(|r| r.step == step) else { return };
        let Some(tally) = request.tally.as_mut() else { return };
        let outcome = match version {
            None => tally.fail(replica),
            Some(version) => {
                request.answers.push((replica, version));
                tally.answer(replica)
            }
        };
        match outcome {
            Some(Outcome::Acknowledged) if request.operation != Operation::Write => {
                self.read_answered(world, node, id);
            }
            Some(outcome) => self.reply(world, id, outcome),
            None => self.close(id),
        }
    }

    /// Continues a read that has all answers of its present step: requests the data if the answers
    /// differ, then repairs outdated replicas (with `read_repair`), then replies.
    fn read_answered(&mut self, world: &mut World, node: NodeId, id: Id) {
        let Some(request) = self.slots.get(id) else { return };
        let answers = std::mem::take(&mut request.answers);
        let mut asked = Vec::new();
        match request.step {
            FIRST if repair::differ(&answers) => {
                request.step = DATA;
                asked.extend(answers.iter().map(|&(replica, _)| replica));
                self.probe.mismatches += 1;
            }
            DATA => {
                request.version = repair::newest(&answers, &mut asked);
                if !self.params.patience.read_repair {
                    asked.clear();
                }
                request.step = REPAIR;
                self.probe.repairs += asked.len() as u64;
            }
            _ => {}
        }
        if asked.is_empty() {
            self.reply(world, id, Outcome::Acknowledged);
            return;
        }
        let nodes: Vec<_> = asked.iter().map(|&n| (n, self.ring.data_centre(n))).collect();
        let need = Need::Any { count: nodes.len() as u32 };
        if let (Some(request), Ok(tally)) = (self.slots.get(id), Tally::new(need, &nodes)) {
            request.tally = Some(tally);
        }
        for replica in asked {
            self.ask(world, node, replica, id, true);
        }
    }

    /// Sends a read that has waited long to one more replica.
    pub(super) fn speculate(&mut self, world: &mut World, id: Id) {
        let Some(request) = self.slots.get(id).filter(|r| r.step == FIRST) else { return };
        let node = request.coordinator;
        let Some(tally) = request.tally.as_mut().filter(|tally| !tally.is_over()) else { return };
        let Some(replica) = request.spare.pop() else { return };
        tally.ask(replica, self.ring.data_centre(replica));
        self.probe.speculations += 1;
        self.ask(world, node, replica, id, true);
    }

    /// Handles the timeout of a request at its coordinator.
    pub(super) fn expires(&mut self, world: &mut World, id: Id) {
        let Some(request) = self.slots.get(id).filter(|r| r.open) else { return };
        let Some(mut tally) = request.tally.take() else { return };
        let (node, key, version) = (request.coordinator, request.key, request.version);
        request.open = false;
        if request.operation == Operation::Write && self.params.patience.hints {
            for replica in tally.waiting() {
                self.hint(node, replica, key, version);
            }
        }
        if let Some(outcome) = tally.expire() {
            self.reply(world, id, outcome);
        }
        self.slots.settle(id);
    }

    fn hint(&mut self, node: NodeId, replica: NodeId, key: u64, version: u64) {
        if replica != node && self.hints[node as usize].keep(replica, (key, version)) {
            self.probe.hints += 1;
        }
    }

    /// Sends a request's outcome from the coordinator to the client.
    pub(super) fn reply(&mut self, world: &mut World, id: Id, outcome: Outcome) {
        let value = self.params.workload.value;
        let Some(request) = self.slots.get(id) else { return };
        let bytes = match (outcome, request.operation) {
            (Outcome::Acknowledged, Operation::Read | Operation::Scan) => {
                value.saturating_mul(u64::from(request.records))
            }
            _ => 0,
        };
        let (client, node, waiting) = (request.client, request.coordinator, request.waiting);
        if let (Operation::Read, Some(waits)) = (request.operation, &mut self.waits) {
            waits.record(node, self.now, self.now - request.begun);
        }
        if request.operation == Operation::Write && request.measured {
            let (key, version, now) = (request.key, request.version, self.now);
            if outcome == Outcome::Acknowledged {
                self.staleness.acknowledge(key, version, now);
            } else {
                self.staleness.forget(key, version);
            }
        }
        let Some(request) = self.slots.get(id) else { return };
        if outcome != Outcome::Acknowledged || request.operation != Operation::Write {
            request.tally = None;
        }
        self.close(id);
        // A client whose own timeout has expired no longer waits, so it is sent no answer.
        if waiting {
            let opener: Host = self.client_host(client);
            self.probe.messages += 1;
            self.channels.post_back(world, node, opener, Message::Answer { id, outcome, bytes });
        }
    }

    /// Closes a request at its coordinator when no further answer is awaited. With hints, an
    /// acknowledged write stays open until all replicas have answered or its timeout expires.
    fn close(&mut self, id: Id) {
        let hints = self.params.patience.hints;
        let Some(request) = self.slots.get(id) else { return };
        let over = request
            .tally
            .as_ref()
            .is_none_or(|tally| tally.is_over() && (!hints || tally.waiting().next().is_none()));
        if over {
            request.tally = None;
            request.open = false;
            self.slots.settle(id);
        }
    }

    /// Removes the requests that a crashed node coordinated.
    pub(super) fn abandon(&mut self, node: NodeId) {
        for id in self.slots.matching(|r| r.open && r.coordinator == node) {
            if let Some(request) = self.slots.get(id) {
                request.open = false;
                request.tally = None;
                let (key, version) = (request.key, request.version);
                self.staleness.forget(key, version);
                self.slots.settle(id);
            }
        }
    }
}
