//! Requests at their coordinators: who is asked, and what the answers come to.

use super::replica::Task;
use super::{Event, Id, Message, Store};
use crate::channel::Host;
use crate::engine::Engine;
use sojourn_replication::{Need, NodeId, Outcome, Tally, repair};
use sojourn_units::Nanos;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    Scan,
}

impl Operation {
    /// Its row in the report.
    pub(super) fn kind(self) -> usize {
        self as usize
    }
}

/// Steps of a request: replicas are asked; where a read's answers differ, for all the data; and those
/// behind are written to.
const FIRST: u8 = 0;
const DATA: u8 = 1;
const REPAIR: u8 = 2;

/// A request.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Request {
    generation: u32,
    pub(super) operation: Operation,
    /// A write of the same record follows.
    pub(super) modify: bool,
    pub(super) key: u64,
    pub(super) records: u32,
    pub(super) client: u32,
    /// Whoever was asked; nobody yet if it is no node's number.
    pub(super) coordinator: NodeId,
    pub(super) intended: Nanos,
    pub(super) measured: bool,
    /// The client waits.
    pub(super) waiting: bool,
    /// The coordinator has something to do with it, or will have.
    pub(super) open: bool,
    /// Its slot may be used again.
    free: bool,
    step: u8,
    version: u64,
    tally: Option<Tally>,
    answers: Vec<(NodeId, u64)>,
    /// Replicas that may be asked besides, the last one first.
    spare: Vec<NodeId>,
}

impl Request {
    /// Whether its coordinator has begun with it.
    pub(super) fn is_begun(&self) -> bool {
        self.tally.is_some()
    }
}

/// All requests that somebody still has to do with.
#[derive(Default)]
pub(super) struct Slots {
    list: Vec<Request>,
    free: Vec<u32>,
}

impl Slots {
    /// Puts a request into a slot.
    pub(super) fn insert(
        &mut self,
        operation: Operation,
        (key, records): (u64, u32),
        client: u32,
        intended: Nanos,
        (measured, modify): (bool, bool),
    ) -> Id {
        let slot = self.free.pop().unwrap_or(self.list.len() as u32);
        let fresh = Request {
            generation: self.list.get(slot as usize).map_or(0, |old| old.generation + 1),
            operation,
            modify,
            key,
            records,
            client,
            coordinator: NodeId::MAX,
            intended,
            measured,
            waiting: true,
            open: false,
            free: false,
            step: FIRST,
            version: 0,
            tally: None,
            answers: Vec::new(),
            spare: Vec::new(),
        };
        let generation = fresh.generation;
        match self.list.get_mut(slot as usize) {
            Some(place) => *place = fresh,
            None => self.list.push(fresh),
        }
        Id { slot, generation }
    }

    /// The request, unless it is gone.
    pub(super) fn get(&mut self, id: Id) -> Option<&mut Request> {
        let request = self.list.get_mut(id.slot as usize)?;
        (request.generation == id.generation && (request.waiting || request.open))
            .then_some(request)
    }

    /// Frees the slot of a request that nobody has to do with any more.
    pub(super) fn settle(&mut self, id: Id) {
        let request = &mut self.list[id.slot as usize];
        let over = !request.waiting && !request.open;
        if over && request.generation == id.generation && !request.free {
            request.free = true;
            self.free.push(id.slot);
        }
    }

    /// Requests of a kind that a client waits for.
    pub(super) fn waiting(&self, kind: usize) -> u64 {
        self.list.iter().filter(|r| r.waiting && r.operation.kind() == kind).count() as u64
    }

    /// Those that `matches`.
    pub(super) fn matching(&self, matches: impl Fn(&Request) -> bool) -> Vec<Id> {
        let ids = self.list.iter().enumerate().filter(|(_, r)| (r.waiting || r.open) && matches(r));
        ids.map(|(slot, r)| Id { slot: slot as u32, generation: r.generation }).collect()
    }
}

impl Store {
    /// A coordinator begins with a request.
    pub(super) fn coordinate(&mut self, engine: &mut Engine, node: NodeId, id: Id) {
        let Some(request) = self.slots.get(id).filter(|r| r.open && r.tally.is_none()) else {
            return;
        };
        let (operation, key) = (request.operation, request.key);
        self.report.coordinated[node as usize] += 1;
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
            Err(outcome) => self.reply(engine, id, outcome),
            Ok(tally) => {
                self.version += u64::from(operation == Operation::Write);
                let version = self.version;
                if let Some(request) = self.slots.get(id) {
                    (request.version, request.tally, request.spare) = (version, Some(tally), spare);
                }
                if operation == Operation::Write && self.params.patience.hints {
                    for &away in found.iter().filter(|&&n| asked.iter().all(|a| a.0 != n)) {
                        self.hint(node, away, key, version);
                    }
                }
                let patience = &self.params.patience;
                let (write, read, speculate) = (patience.write, patience.read, patience.speculate);
                let wait = if operation == Operation::Write { write } else { read };
                self.at(now.saturating_add(wait), Event::Expires { id });
                if let (Operation::Read, Some(wait)) = (operation, speculate) {
                    self.at(now.saturating_add(wait), Event::Speculate { id });
                }
                for (i, &(replica, _)) in asked.iter().enumerate() {
                    self.ask(engine, node, replica, id, i == 0);
                }
            }
        }
        self.found = found;
    }

    /// Leaves only as many replicas as a read needs, the nearest ones, itself first; the rest is spare.
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

    /// Asks one replica for what the request's step wants; `data` rather than a digest.
    fn ask(&mut self, engine: &mut Engine, node: NodeId, replica: NodeId, id: Id, data: bool) {
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
            self.enqueue(engine, node, task);
        } else if write {
            self.send(engine, node, replica, Message::Write { id, step, key, version, bytes });
        } else {
            self.send(engine, node, replica, Message::Read { id, step, key, records });
        }
    }

    /// A replica has answered.
    pub(super) fn done(
        &mut self,
        engine: &mut Engine,
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
                self.read_answered(engine, node, id);
            }
            Some(outcome) => self.reply(engine, id, outcome),
            None => self.close(id),
        }
    }

    /// A read has as many answers as it wants.
    fn read_answered(&mut self, engine: &mut Engine, node: NodeId, id: Id) {
        let Some(request) = self.slots.get(id) else { return };
        let answers = std::mem::take(&mut request.answers);
        let mut asked = Vec::new();
        match request.step {
            FIRST if repair::differ(&answers) => {
                request.step = DATA;
                asked.extend(answers.iter().map(|&(replica, _)| replica));
                self.report.mismatches += 1;
            }
            DATA => {
                request.version = repair::newest(&answers, &mut asked);
                if !self.params.patience.read_repair {
                    asked.clear();
                }
                request.step = REPAIR;
                self.report.repairs += asked.len() as u64;
            }
            _ => {}
        }
        if asked.is_empty() {
            self.reply(engine, id, Outcome::Acknowledged);
            return;
        }
        let nodes: Vec<_> = asked.iter().map(|&n| (n, self.ring.data_centre(n))).collect();
        let need = Need::Any { count: nodes.len() as u32 };
        if let (Some(request), Ok(tally)) = (self.slots.get(id), Tally::new(need, &nodes)) {
            request.tally = Some(tally);
        }
        for replica in asked {
            self.ask(engine, node, replica, id, true);
        }
    }

    /// A read waits long: another replica is asked for the data.
    pub(super) fn speculate(&mut self, engine: &mut Engine, id: Id) {
        let Some(request) = self.slots.get(id).filter(|r| r.step == FIRST) else { return };
        let node = request.coordinator;
        let Some(tally) = request.tally.as_mut().filter(|tally| !tally.is_over()) else { return };
        let Some(replica) = request.spare.pop() else { return };
        tally.ask(replica, self.ring.data_centre(replica));
        self.report.speculations += 1;
        self.ask(engine, node, replica, id, true);
    }

    /// A coordinator has waited long enough.
    pub(super) fn expires(&mut self, engine: &mut Engine, id: Id) {
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
            self.reply(engine, id, outcome);
        }
        self.slots.settle(id);
    }

    fn hint(&mut self, node: NodeId, replica: NodeId, key: u64, version: u64) {
        if replica != node && self.hints[node as usize].keep(replica, (key, version)) {
            self.report.hints += 1;
        }
    }

    /// A coordinator answers its client.
    pub(super) fn reply(&mut self, engine: &mut Engine, id: Id, outcome: Outcome) {
        let value = self.params.workload.value;
        let Some(request) = self.slots.get(id) else { return };
        let bytes = match (outcome, request.operation) {
            (Outcome::Acknowledged, Operation::Read | Operation::Scan) => {
                value.saturating_mul(u64::from(request.records))
            }
            _ => 0,
        };
        let (client, node, waiting) = (request.client, request.coordinator, request.waiting);
        if outcome != Outcome::Acknowledged || request.operation != Operation::Write {
            request.tally = None;
        }
        self.close(id);
        // Who has given up is not waiting for a message any more, but would get one.
        if waiting {
            let opener: Host = self.client_host(client);
            self.report.messages += 1;
            engine.post_back(node, opener, Message::Answer { id, outcome, bytes });
        }
    }

    /// Lets go of a request that has nothing left to be waited for.
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

    /// A node has stopped: what it coordinated is forgotten.
    pub(super) fn abandon(&mut self, node: NodeId) {
        for id in self.slots.matching(|r| r.open && r.coordinator == node) {
            if let Some(request) = self.slots.get(id) {
                request.open = false;
                request.tally = None;
                self.slots.settle(id);
            }
        }
    }
}
