//! Requests, in slots that are used again.

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
    /// Returns its row in the report.
    pub(super) fn kind(self) -> usize {
        self as usize
    }
}

/// Steps of a request: replicas are asked; where a read's answers differ, for all the data; and those
/// behind are written to.
pub(super) const FIRST: u8 = 0;
pub(super) const DATA: u8 = 1;
pub(super) const REPAIR: u8 = 2;

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
    /// The coordinator; not chosen yet if it is no node's number.
    pub(super) coordinator: NodeId,
    pub(super) intended: Nanos,
    pub(super) measured: bool,
    /// The client waits.
    pub(super) waiting: bool,
    /// The coordinator has something to do with it, or will have.
    pub(super) open: bool,
    /// Its slot may be used again.
    free: bool,
    pub(super) step: u8,
    pub(super) version: u64,
    pub(super) tally: Option<Tally>,
    pub(super) answers: Vec<(NodeId, u64)>,
    /// Further replicas that may be asked, the last one first.
    pub(super) spare: Vec<NodeId>,
}

impl Request {
    /// Returns whether its coordinator has begun with it.
    pub(super) fn is_begun(&self) -> bool {
        self.tally.is_some()
    }
}

/// All requests that are still in use.
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

    /// Returns the request, unless it is gone.
    pub(super) fn get(&mut self, id: Id) -> Option<&mut Request> {
        let request = self.list.get_mut(id.slot as usize)?;
        (request.generation == id.generation && (request.waiting || request.open))
            .then_some(request)
    }

    /// Frees the slot of a request that is not in use any more.
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

    /// Returns those for which `matches` holds.
    pub(super) fn matching(&self, matches: impl Fn(&Request) -> bool) -> Vec<Id> {
        let ids = self.list.iter().enumerate().filter(|(_, r)| (r.waiting || r.open) && matches(r));
        ids.map(|(slot, r)| Id { slot: slot as u32, generation: r.generation }).collect()
    }
}
