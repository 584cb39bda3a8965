//! A node at work: things to do, one after the other or some at once, and the data it keeps.

use super::{Event, Id, Message, Store};
use crate::channel::Host;
use crate::engine::Engine;
use sojourn_random::{Key, Stream};
use sojourn_replication::{NodeId, Outcome};
use std::collections::{BTreeMap, VecDeque};

/// Something that a node does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Coordinate { id: Id },
    Write { from: Host, id: Id, step: u8, key: u64, version: u64 },
    Read { from: Host, id: Id, step: u8, key: u64, records: u32 },
    Hint { from: Host, key: u64, version: u64 },
}

/// One node.
pub(super) struct Replica {
    /// Things begun, and those that wait.
    busy: u32,
    queue: VecDeque<Task>,
    /// Times it has stopped.
    life: u32,
    draws: Stream,
    /// The newest version of each record that was written here.
    data: BTreeMap<u64, u64>,
}

impl Replica {
    pub(super) fn new(key: Key) -> Self {
        let draws = key.stream("service");
        Self { busy: 0, queue: VecDeque::new(), life: 0, draws, data: BTreeMap::new() }
    }

    /// It stops: what it was doing is forgotten, its data are not.
    pub(super) fn stop(&mut self) {
        self.busy = 0;
        self.queue.clear();
        self.life += 1;
    }

    fn write(&mut self, key: u64, version: u64) {
        let newest = self.data.entry(key).or_default();
        *newest = version.max(*newest);
    }

    /// All records that were written here, with their versions.
    pub(super) fn versions(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.data.iter().map(|(&key, &version)| (key, version))
    }

    /// The version of a record that it keeps.
    pub(super) fn version(&self, key: u64) -> u64 {
        self.data.get(&key).copied().unwrap_or(0)
    }
}

impl Store {
    /// A node is to do something: at once, when others are done, or not at all.
    pub(super) fn enqueue(&mut self, engine: &mut Engine, node: NodeId, task: Task) {
        if self.faults.is_down(node, self.now) {
            return;
        }
        let service = &self.params.service;
        let replica = &mut self.replicas[node as usize];
        if replica.busy < service.threads && replica.queue.is_empty() {
            self.start(node, task);
        } else if replica.queue.len() < service.queue as usize {
            replica.queue.push_back(task);
        } else {
            self.refuse(engine, node, task);
        }
    }

    fn start(&mut self, node: NodeId, task: Task) {
        let service = &self.params.service;
        let replica = &mut self.replicas[node as usize];
        replica.busy += 1;
        let time = match task {
            Task::Coordinate { .. } => service.coordinate.sample_nanos(&mut replica.draws),
            Task::Write { .. } | Task::Hint { .. } => {
                service.write.sample_nanos(&mut replica.draws)
            }
            Task::Read { records, .. } => {
                let each = service.read.sample_nanos(&mut replica.draws);
                each.saturating_mul(u64::from(records.max(1)))
            }
        };
        let life = replica.life;
        self.at(self.now.saturating_add(time), Event::Served { node, life, task });
    }

    fn refuse(&mut self, engine: &mut Engine, node: NodeId, task: Task) {
        match task {
            Task::Coordinate { id } => self.reply(engine, id, Outcome::Error),
            Task::Write { from, id, step, .. } | Task::Read { from, id, step, .. } => {
                self.report_done(engine, node, from, id, step, None, 0);
            }
            Task::Hint { .. } => {}
        }
    }

    /// A node is done with something, and goes on to the next.
    pub(super) fn served(&mut self, engine: &mut Engine, node: NodeId, life: u32, task: Task) {
        let replica = &mut self.replicas[node as usize];
        if replica.life != life {
            return;
        }
        replica.busy -= 1;
        match task {
            Task::Coordinate { id } => self.coordinate(engine, node, id),
            Task::Write { from, id, step, key, version } => {
                replica.write(key, version);
                self.report.stored[node as usize] += 1;
                self.report_done(engine, node, from, id, step, Some(version), 0);
            }
            Task::Read { from, id, step, key, records } => {
                let version = replica.version(key);
                let bytes = self.params.workload.value.saturating_mul(u64::from(records));
                self.report_done(engine, node, from, id, step, Some(version), bytes);
            }
            Task::Hint { from, key, version } => {
                replica.write(key, version);
                self.report.stored[node as usize] += 1;
                self.send(engine, node, from, Message::Hinted);
            }
        }
        let replica = &mut self.replicas[node as usize];
        if replica.life == life
            && replica.busy < self.params.service.threads
            && let Some(next) = replica.queue.pop_front()
        {
            self.start(node, next);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    fn report_done(
        &mut self,
        engine: &mut Engine,
        node: NodeId,
        to: Host,
        id: Id,
        step: u8,
        version: Option<u64>,
        bytes: u64,
    ) {
        if to == node {
            self.done(engine, node, to, id, step, version);
        } else {
            self.send(engine, node, to, Message::Done { id, step, version, bytes });
        }
    }
}
