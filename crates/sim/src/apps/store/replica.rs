//! A node: its tasks and its data.

use super::message::Id;
use crate::channels::Host;
use sojourn_random::{Key, Stream};
use std::collections::{BTreeMap, VecDeque};

/// A task of a node; each takes service time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Coordinate { id: Id },
    Write { from: Host, id: Id, step: u8, key: u64, version: u64 },
    Read { from: Host, id: Id, step: u8, key: u64, records: u32 },
    Hint { from: Host, key: u64, version: u64 },
}

/// One node.
pub(super) struct Replica {
    /// Number of tasks in service.
    pub(super) busy: u32,
    /// Tasks that wait for service.
    pub(super) queue: VecDeque<Task>,
    /// Number of crashes so far. Tasks that began before a crash have a lower number.
    pub(super) life: u32,
    pub(super) draws: Stream,
    /// The newest version of each record that was written here.
    data: BTreeMap<u64, u64>,
}

impl Replica {
    pub(super) fn new(key: Key) -> Self {
        let draws = key.stream("service");
        Self { busy: 0, queue: VecDeque::new(), life: 0, draws, data: BTreeMap::new() }
    }

    /// Handles a crash of the node: removes all tasks and keeps the data.
    pub(super) fn stop(&mut self) {
        self.busy = 0;
        self.queue.clear();
        self.life += 1;
    }

    pub(super) fn write(&mut self, key: u64, version: u64) {
        let newest = self.data.entry(key).or_default();
        *newest = version.max(*newest);
    }

    /// Returns all records that were written here, with their versions.
    pub(super) fn versions(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.data.iter().map(|(&key, &version)| (key, version))
    }

    /// Returns the newest version of a record that was written here, or 0.
    pub(super) fn version(&self, key: u64) -> u64 {
        self.data.get(&key).copied().unwrap_or(0)
    }
}
