//! Web sessions: requests for objects, and their answers.
//!
//! The client sends the request for an object on a new connection, and the server sends the object
//! on another new connection. Behind a balancer, each request is assigned to a server, which also
//! sends the answer. The next step of each assignment is stored with its object. The flow's timer
//! is set to the earliest of these steps and the user's next action.

use crate::app::{App, Declared, Event, Report};
use crate::world::{AGAIN, Assignment, Change, Handle, NEVER, Step, World};
use sojourn_measure::Imbalance;
use sojourn_network::{Node, Place, node};
use sojourn_plan::PlanError;
use sojourn_traffic::web::{ObjectId, Session};
use sojourn_units::Nanos;

/// An object that is being fetched.
#[derive(Clone, Copy, Debug)]
struct Object {
    id: ObjectId,
    /// When the object was requested.
    at: Nanos,
    /// Index of the object's server in the session's list of servers.
    server: u32,
    /// Bytes of the request.
    request: u64,
    /// Bytes of the answer.
    bytes: u64,
    /// Number of the object in the session, counted from 1.
    number: u32,
    /// The assignment of a server; `None` without a balancer.
    assignment: Option<Assignment>,
    /// When the next step of the assignment is due, or [`NEVER`].
    due: Nanos,
}

/// A session of a Web client.
#[derive(Clone, Debug)]
pub struct Web {
    /// The user's behaviour.
    session: Session,
    /// The servers: node, path to the client, path from the client.
    servers: Vec<(Node, Place, Place)>,
    /// Objects being fetched, in slots that are reused.
    objects: Vec<Option<Object>>,
    /// Number of objects requested so far.
    asked: u32,
    /// Number of pages loaded since the end of the warm-up.
    pages: u64,
}

impl Web {
    /// Makes all steps and requests that are due, and sets the flow's timer to the next one.
    fn browse(&mut self, world: &mut World, id: u32) {
        while self.advance(world, id) || self.ask(world, id) {}
        let now = world.now;
        let flow = &world.flows[id as usize];
        let user = if now < flow.stop { self.session.next_event() } else { None };
        let mut next = user.filter(|&at| at < flow.stop).unwrap_or(NEVER);
        if flow.assignment.is_some() {
            next = self.objects.iter().flatten().map(|object| object.due).fold(next, Nanos::min);
        }
        if next == NEVER {
            world.clear_timer(id);
        } else {
            world.set_timer(id, next);
        }
    }

    /// Requests the next object if it is due. Returns whether an object was requested.
    fn ask(&mut self, world: &mut World, id: u32) -> bool {
        let now = world.now;
        let flow = &world.flows[id as usize];
        let assignment = flow.assignment.map(|last| Assignment::new(last.balancer));
        if now >= flow.stop {
            return false;
        }
        let Some(request) = self.session.poll(now) else { return false };
        self.asked += 1;
        let object = Object {
            id: request.object,
            at: request.at,
            server: request.server,
            request: request.request,
            bytes: request.bytes,
            number: self.asked,
            assignment,
            due: if assignment.is_some() { now } else { NEVER },
        };
        let free = self.objects.iter().position(Option::is_none);
        let slot = free.unwrap_or(self.objects.len());
        if slot == self.objects.len() {
            self.objects.push(None);
        }
        self.objects[slot] = Some(object);
        world.groups[flow.group as usize].begin(now);
        if assignment.is_none() {
            self.request(world, id, slot as u32);
        }
        true
    }

    /// Makes the next step of an object's assignment if one is due: towards its server, or from the
    /// server after processing. Returns whether a step was made.
    fn advance(&mut self, world: &mut World, id: u32) -> bool {
        let now = world.now;
        if world.flows[id as usize].assignment.is_none() {
            return false;
        }
        let mut due = self.objects.iter_mut().enumerate();
        let Some((slot, object, mut assignment)) = due.find_map(|(slot, object)| {
            let object = object.as_mut().filter(|object| object.due <= now)?;
            let assignment = object.assignment?;
            Some((slot as u32, object, assignment))
        }) else {
            return false;
        };
        if assignment.is_serving() {
            (object.due, object.assignment) = (NEVER, Some(assignment.served()));
            self.answer(world, id, slot);
            return true;
        }
        let step = world.advance(&mut assignment, id, object.number);
        object.assignment = Some(assignment);
        object.due = match step {
            Step::Wait(at) => at,
            Step::Refused => now.saturating_add(AGAIN),
            Step::Open(server) => {
                object.server = server as u32;
                world.flows[id as usize].assignment = Some(assignment);
                NEVER
            }
        };
        if let Step::Open(_) = step {
            self.request(world, id, slot);
        }
        true
    }

    /// Sends an object's request from the client to the server.
    fn request(&mut self, world: &mut World, id: u32, slot: u32) {
        let client = world.flows[id as usize].nodes.1;
        let Some(object) = self.objects[slot as usize] else { return };
        let (server, down, up) = self.servers[object.server as usize];
        let connection = world.open(id, (slot, false, false), (client, server, up, down));
        world.offer(connection, object.request);
    }

    /// Handles the arrival of a request: the server processes it, or answers at once.
    fn requested(&mut self, world: &mut World, id: u32, slot: u32) {
        let now = world.now;
        let Some(object) = &mut self.objects[slot as usize] else { return };
        if let Some(assignment) = &mut object.assignment {
            let done = world.controllers[assignment.balancer].serve_one(now, assignment);
            if done > now {
                object.due = done;
                self.browse(world, id);
                return;
            }
        }
        self.answer(world, id, slot);
    }

    /// Sends an object from the server to the client.
    fn answer(&mut self, world: &mut World, id: u32, slot: u32) {
        let client = world.flows[id as usize].nodes.1;
        let Some(object) = self.objects[slot as usize] else { return };
        let (server, down, up) = self.servers[object.server as usize];
        let connection = world.open(id, (slot, true, false), (server, client, down, up));
        world.offer(connection, object.bytes);
    }

    /// Records the end of an object's transfer; `success` is whether the object was delivered.
    fn fetched(&mut self, world: &mut World, id: u32, slot: u32, success: bool) {
        let now = world.now;
        let flow = &mut world.flows[id as usize];
        let group = &mut world.groups[flow.group as usize];
        let Some(done) = self.objects[slot as usize].take() else { return };
        if let Some(assignment) = done.assignment {
            world.controllers[assignment.balancer].release(now, &assignment);
        }
        group.end(now);
        if success {
            group.fct.record(now - done.at);
            flow.finished += 1;
        }
        // The session continues even if the object was not delivered. A page counts only if its
        // last object was delivered.
        if let Some(page) = self.session.complete(now, done.id)
            && success
        {
            group.page.record(page.finished - page.started);
            self.pages += 1;
        }
        if self.session.is_finished() {
            flow.end = Some(now);
        }
        self.browse(world, id);
    }
}

impl App for Web {
    fn try_new(declared: Declared, world: &mut World, id: u32) -> Result<Option<Self>, PlanError> {
        let Declared::Flow(group, planned) = declared else { return Ok(None) };
        let sojourn_traffic::App::Web(params) = &group.app else { return Ok(None) };
        let flow = &world.flows[id as usize];
        let (g, start) = (flow.group as usize, flow.start);
        let client = planned.pair.1 as u32;
        let own = group.servers(planned.pair.1);
        // Behind a balancer, the session draws servers as without a balancer. The balancer replaces
        // the drawn servers.
        let begins = planned.begins(world.plan.duration);
        let session = Session::new(params, planned.key, own.len() as u32, begins);
        let mut all = world.servers(g);
        if all.is_empty() {
            all.extend(own.into_iter().map(|server| server as u32));
        }
        let servers = all
            .into_iter()
            .map(|server| {
                let down = world.path(g, server, client)?;
                Ok((node(server), down, world.path(g, client, server)?))
            })
            .collect::<Result<Vec<_>, PlanError>>()?;
        world.start_timer(id, start);
        Ok(Some(Self { session, servers, objects: Vec::new(), asked: 0, pages: 0 }))
    }

    fn on_timer(&mut self, world: &mut World, id: u32) {
        world.clear_timer(id);
        self.browse(world, id);
    }

    fn on_event(&mut self, world: &mut World, id: u32, event: Event) {
        let Event::Connection(Handle { tag: slot, forward, .. }, change) = event else { return };
        match change {
            Change::Complete if forward => self.fetched(world, id, slot, true),
            Change::Complete => self.requested(world, id, slot),
            Change::Lost => self.fetched(world, id, slot, false),
            Change::Progress { .. } | Change::Closed | Change::Settled => {}
        }
    }

    fn restart(&mut self) {
        self.pages = 0;
    }

    fn audit(&self, _world: &World, _id: u32) -> Result<(), Imbalance> {
        Ok(())
    }

    fn report(&self, world: &World, id: u32) -> Report {
        let stop = world.flows[id as usize].stop;
        let stop = if stop < world.now { stop } else { NEVER };
        let objects = self.objects.iter().flatten().map(|object| object.at).collect();
        let open = [objects, self.session.loading(stop).collect()];
        Report { pages: self.pages, open, ..Report::default() }
    }
}
