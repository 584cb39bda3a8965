//! Service of nodes: up to `threads` tasks at once, the others in a queue of limited length.

use super::message::{Id, Message};
use super::replica::Task;
use super::{Event, Store};
use crate::channels::Host;
use crate::world::World;
use sojourn_replication::{NodeId, Outcome};

impl Store {
    /// Gives a node a task: the node begins at once, queues the task, or refuses it if the queue is
    /// full. A crashed node ignores it.
    pub(super) fn enqueue(&mut self, world: &mut World, node: NodeId, task: Task) {
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
            self.refuse(world, node, task);
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

    fn refuse(&mut self, world: &mut World, node: NodeId, task: Task) {
        match task {
            Task::Coordinate { id } => self.reply(world, id, Outcome::Error),
            Task::Write { from, id, step, .. } | Task::Read { from, id, step, .. } => {
                self.report_done(world, node, from, id, step, None, 0);
            }
            Task::Hint { .. } => {}
        }
    }

    /// Finishes a node's task, and begins the next one in its queue. Tasks from before a crash are
    /// ignored.
    pub(super) fn served(&mut self, world: &mut World, node: NodeId, life: u32, task: Task) {
        let replica = &mut self.replicas[node as usize];
        if replica.life != life {
            return;
        }
        replica.busy -= 1;
        match task {
            Task::Coordinate { id } => self.coordinate(world, node, id),
            Task::Write { from, id, step, key, version } => {
                replica.write(key, version);
                self.staleness.take(node, key, version, self.now);
                self.probe.stored[node as usize] += 1;
                self.report_done(world, node, from, id, step, Some(version), 0);
            }
            Task::Read { from, id, step, key, records } => {
                let version = replica.version(key);
                let bytes = self.params.workload.value.saturating_mul(u64::from(records));
                self.report_done(world, node, from, id, step, Some(version), bytes);
            }
            Task::Hint { from, key, version } => {
                replica.write(key, version);
                self.staleness.take(node, key, version, self.now);
                self.probe.stored[node as usize] += 1;
                self.send(world, node, from, Message::Hinted);
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
        world: &mut World,
        node: NodeId,
        to: Host,
        id: Id,
        step: u8,
        version: Option<u64>,
        bytes: u64,
    ) {
        if to == node {
            self.done(world, node, to, id, step, version);
        } else {
            self.send(world, node, to, Message::Done { id, step, version, bytes });
        }
    }
}
