//! Requests, in slots that are reused.

use super::message::Id;
use sojourn_replication::{NodeId, Tally};
use sojourn_units::Nanos;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    Scan,
}

impl Operation {
    /// Returns the index of this operation in the probe's arrays.
    pub(super) fn kind(self) -> usize {
        self as usize
    }
}

/// Steps of a request. In `FIRST` the coordinator sends the write or read to replicas. If the
/// answers to a read differ, it requests the data from these replicas in `DATA`, and writes the
/// newest version to outdated replicas in `REPAIR`.
pub(super) const FIRST: u8 = 0;
pub(super) const DATA: u8 = 1;
pub(super) const REPAIR: u8 = 2;

/// A request.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent of each other")]
pub(super) struct Request {
    generation: u32,
    pub(super) operation: Operation,
    /// Whether a write of the same record follows.
    pub(super) modify: bool,
    pub(super) key: u64,
    pub(super) records: u32,
    pub(super) client: u32,
    /// The coordinator; `NodeId::MAX` before the choice.
    pub(super) coordinator: NodeId,
    pub(super) intended: Nanos,
    /// When the coordinator began with the request.
    pub(super) begun: Nanos,
    pub(super) measured: bool,
    /// Whether the client waits for the outcome.
    pub(super) waiting: bool,
    /// Whether the request was sent to its coordinator, which has not finished it.
    pub(super) open: bool,
    /// Whether the slot is in the list of free slots.
    free: bool,
    pub(super) step: u8,
    pub(super) version: u64,
    pub(super) tally: Option<Tally>,
    pub(super) answers: Vec<(NodeId, u64)>,
    /// Further replicas for a read that waits long; the last one is used first.
    pub(super) spare: Vec<NodeId>,
}

impl Request {
    /// Returns whether the coordinator has begun with the request and still awaits answers.
    pub(super) fn is_begun(&self) -> bool {
        self.tally.is_some()
    }
}

/// All requests in progress.
#[derive(Default)]
pub(super) struct Slots {
    list: Vec<Request>,
    free: Vec<u32>,
}

impl Slots {
    /// Stores a new request in a free slot.
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
            begun: 0,
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

    /// Returns the request; `None` if it is finished.
    pub(super) fn get(&mut self, id: Id) -> Option<&mut Request> {
        let request = self.list.get_mut(id.slot as usize)?;
        (request.generation == id.generation && (request.waiting || request.open))
            .then_some(request)
    }

    /// Frees the slot of a request if neither its client nor its coordinator needs it.
    pub(super) fn settle(&mut self, id: Id) {
        let request = &mut self.list[id.slot as usize];
        let over = !request.waiting && !request.open;
        if over && request.generation == id.generation && !request.free {
            request.free = true;
            self.free.push(id.slot);
        }
    }

    /// Returns the number of requests of a kind for which a client waits.
    pub(super) fn waiting(&self, kind: usize) -> u64 {
        self.list.iter().filter(|r| r.waiting && r.operation.kind() == kind).count() as u64
    }

    /// Returns the requests in progress for which `matches` holds.
    pub(super) fn matching(&self, matches: impl Fn(&Request) -> bool) -> Vec<Id> {
        let ids = self.list.iter().enumerate().filter(|(_, r)| (r.waiting || r.open) && matches(r));
        ids.map(|(slot, r)| Id { slot: slot as u32, generation: r.generation }).collect()
    }
}
