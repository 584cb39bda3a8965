//! Clients: when they make requests, of which kind, and to which coordinator.

use super::message::{Id, Message};
use super::request::Operation;
use super::script::{Asked, Kind};
use super::{Client, Event, Store};
use crate::channels::Host;
use crate::world::World;
use sojourn_plan::store::Arrivals;
use sojourn_replication::{Chooser, Outcome};
use sojourn_units::{EPOCH, MILLISECOND, Nanos};
use std::collections::VecDeque;

/// Minimum time before the next request of a closed loop after a request that ended with an error,
/// for example because no node was up.
const RETRY: Nanos = MILLISECOND;

impl Store {
    /// Creates the clients, and schedules their first requests.
    pub(super) fn begin_clients(&mut self) {
        let start = EPOCH + self.params.load.start;
        let nodes = self.ring.nodes() as u64;
        for i in 0..self.params.clients.len() as u32 {
            let key = self.key.child(u64::from(self.client_host(i)));
            let mut client = Client {
                data_centre: self.params.clients[i as usize].data_centre,
                chooser: Chooser::new(
                    self.params.coordinator,
                    key.stream("turn").below(nodes) as u32,
                ),
                work: key.stream("work"),
                gaps: key.stream("gaps"),
                active: 0,
                backlog: VecDeque::new(),
            };
            match self.params.load.arrivals {
                Arrivals::Closed { .. } => {
                    for _ in 0..self.params.load.outstanding {
                        self.at(start, Event::Issue { client: i });
                    }
                }
                Arrivals::Open { every } => {
                    let first = start.saturating_add(every.sample_nanos(&mut client.gaps));
                    self.at(first, Event::Arrive { client: i });
                }
            }
            self.clients.push(client);
        }
    }

    fn may_issue(&self) -> bool {
        self.params.load.requests.is_none_or(|requests| self.issued < requests)
    }

    /// Makes the next request of a client in a closed loop, unless all requests have been made.
    pub(super) fn issue(&mut self, world: &mut World, client: u32) {
        if self.may_issue() {
            let id = self.draw(client);
            self.dispatch(world, id);
        }
    }

    /// Makes the request that is due in an open loop, and schedules the next one.
    pub(super) fn arrive(&mut self, world: &mut World, client: u32) {
        let Arrivals::Open { every } = self.params.load.arrivals else { return };
        if !self.may_issue() {
            return;
        }
        let outstanding = self.params.load.outstanding;
        let state = &mut self.clients[client as usize];
        let next = self.now.saturating_add(every.sample_nanos(&mut state.gaps));
        let full = outstanding > 0 && state.active >= outstanding;
        self.at(next, Event::Arrive { client });
        let id = self.draw(client);
        if full {
            self.clients[client as usize].backlog.push_back(id);
        } else {
            self.dispatch(world, id);
        }
    }

    /// Draws a client's next request: its kind and record.
    fn draw(&mut self, client: u32) -> Id {
        let draws = &mut self.clients[client as usize].work;
        let asked = Asked::draw(&self.params.workload, &mut self.keys, draws);
        let (operation, modify) = match asked.kind {
            Kind::Insert | Kind::Update => (Operation::Write, false),
            Kind::Scan => (Operation::Scan, false),
            Kind::Read => (Operation::Read, false),
            Kind::Modify => (Operation::Read, true),
        };
        self.make(operation, (asked.key, asked.records), client, modify)
    }

    fn make(&mut self, operation: Operation, what: (u64, u32), client: u32, modify: bool) -> Id {
        self.issued += 1;
        let measured = self.probe.offer(operation.kind(), self.now, self.issued);
        self.slots.insert(operation, what, client, self.now, (measured, modify))
    }

    /// Sends a request to a coordinator.
    fn dispatch(&mut self, world: &mut World, id: Id) {
        let Some(request) = self.slots.get(id) else { return };
        let (key, client, operation) = (request.key, request.client, request.operation);
        self.find_replicas(key);
        let (now, viewer) = (self.now, self.client_host(client));
        let faults = &self.faults;
        let state = &mut self.clients[client as usize];
        state.active += 1;
        let up = |node| faults.seen_up(viewer, node, now);
        let chosen = state.chooser.choose(self.ring.places(), state.data_centre, &self.found, up);
        let Some(node) = chosen else {
            self.finish(world, id, Outcome::Error);
            return;
        };
        let wait = self.params.patience.client;
        self.at(now.saturating_add(wait), Event::ClientExpires { id });
        if let Some(request) = self.slots.get(id) {
            (request.coordinator, request.open) = (node, true);
        }
        let bytes = if operation == Operation::Write { self.params.workload.value } else { 0 };
        self.send(world, viewer, node, Message::Ask { id, bytes });
    }

    /// Handles a coordinator's answer.
    pub(super) fn answered(&mut self, world: &mut World, id: Id, outcome: Outcome) {
        self.finish(world, id, outcome);
    }

    /// Handles the timeout of a request at its client.
    pub(super) fn client_expires(&mut self, world: &mut World, id: Id) {
        self.finish(world, id, Outcome::TimedOut);
    }

    /// Handles the break of the channel that host `from` opened to `to`. If `from` is a client, its
    /// pending requests at `to` have an unknown outcome and count as timed out.
    pub(super) fn broken(&mut self, world: &mut World, from: Host, to: Host) {
        let Some(client) = from.checked_sub(self.replicas.len() as Host) else { return };
        for id in self.slots.matching(|r| r.client == client && r.coordinator == to) {
            self.finish(world, id, Outcome::TimedOut);
            // A request that the coordinator has not begun was lost with the channel.
            if let Some(request) = self.slots.get(id).filter(|r| !r.is_begun()) {
                request.open = false;
                self.slots.settle(id);
            }
        }
    }

    /// Records the outcome of a client's request, and makes or schedules the client's next request.
    fn finish(&mut self, world: &mut World, id: Id, outcome: Outcome) {
        let now = self.now;
        let Some(request) = self.slots.get(id).filter(|r| r.waiting) else { return };
        request.waiting = false;
        let (client, key) = (request.client, request.key);
        let modify = request.modify && outcome == Outcome::Acknowledged;
        let (kind, latency) = (request.operation.kind(), now - request.intended);
        let measured = request.measured;
        self.slots.settle(id);
        self.probe.finish(kind, outcome, latency, measured, now);
        let state = &mut self.clients[client as usize];
        state.active -= 1;
        if modify {
            let write = self.make(Operation::Write, (key, 1), client, false);
            self.dispatch(world, write);
        } else if let Some(next) = state.backlog.pop_front() {
            self.dispatch(world, next);
        } else if let Arrivals::Closed { think } = self.params.load.arrivals {
            let pause = if outcome == Outcome::Error { think.max(RETRY) } else { think };
            self.at(now.saturating_add(pause), Event::Issue { client });
        }
    }
}
