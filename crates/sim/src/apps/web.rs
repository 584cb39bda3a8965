//! Web sessions: objects asked for, and how they come.
//!
//! An object is a request on a connection of its own, answered on another. Behind a balancer, each
//! request gets a server like any other connection, and the answer comes from there; pending steps
//! are stored with the object, and the flow's timer shows the earliest of them and of the user's
//! next action.

use crate::app::{App, Declared, Event, Report};
use crate::world::{AGAIN, Assignment, Change, Handle, NEVER, Step, World};
use sojourn_measure::Imbalance;
use sojourn_network::{Node, Place, node};
use sojourn_plan::PlanError;
use sojourn_traffic::web::{ObjectId, Session};
use sojourn_units::Nanos;

/// An object on its way.
#[derive(Clone, Copy, Debug)]
struct Object {
    id: ObjectId,
    /// When it was requested.
    at: Nanos,
    /// Index of its server among the session's.
    server: u32,
    /// Bytes of the request.
    request: u64,
    /// Bytes of the answer.
    bytes: u64,
    /// How many were asked for before it, and it.
    number: u32,
    /// The assignment of its server, if a balancer chooses.
    assignment: Option<Assignment>,
    /// When that goes on; never if it need not.
    due: Nanos,
}

/// A session of a Web client.
#[derive(Clone, Debug)]
pub struct Web {
    /// The user's behaviour.
    session: Session,
    /// Servers: node, path to the client, path to the server.
    servers: Vec<(Node, Place, Place)>,
    /// Objects being fetched, in slots that are used again.
    objects: Vec<Option<Object>>,
    /// Objects asked for so far.
    asked: u32,
    /// Pages loaded since the end of the warm-up.
    pages: u64,
}

impl Web {
    /// Requests what is due, and sets the next time.
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

    /// Asks for the next object that is due. Returns whether there was one.
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

    /// Advances an object whose time has come, towards its server or from there. Returns whether
    /// there was one.
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

    /// The client sends its request.
    fn request(&mut self, world: &mut World, id: u32, slot: u32) {
        let client = world.flows[id as usize].nodes.1;
        let Some(object) = self.objects[slot as usize] else { return };
        let (server, down, up) = self.servers[object.server as usize];
        let connection = world.open(id, (slot, false, false), (client, server, up, down));
        world.offer(connection, object.request);
    }

    /// A request has come in: its server works on it, or answers at once.
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

    /// The server answers.
    fn answer(&mut self, world: &mut World, id: u32, slot: u32) {
        let client = world.flows[id as usize].nodes.1;
        let Some(object) = self.objects[slot as usize] else { return };
        let (server, down, up) = self.servers[object.server as usize];
        let connection = world.open(id, (slot, true, false), (server, client, down, up));
        world.offer(connection, object.bytes);
    }

    /// An object has come, or never will.
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
        // The user goes on, also past an object that could not be had.
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
        // A user knows one address if a balancer is behind it.
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

    fn report(&self, _world: &World, _id: u32) -> Report {
        Report { pages: self.pages, ..Report::default() }
    }
}
