//! A node: the tasks that it has, and the data that it keeps.

use super::message::Id;
use crate::channels::Host;
use sojourn_random::{Key, Stream};
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
    pub(super) busy: u32,
    pub(super) queue: VecDeque<Task>,
    /// Times it has stopped.
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

    /// It stops: what it was doing is forgotten, its data are not.
    pub(super) fn stop(&mut self) {
        self.busy = 0;
        self.queue.clear();
        self.life += 1;
    }

    pub(super) fn write(&mut self, key: u64, version: u64) {
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
