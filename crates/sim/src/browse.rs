//! Web sessions: objects asked for, and how they come.
//!
//! An object is a request on a connection of its own, answered on another. Where a balancer stands
//! before the servers, each request gets a server like any other connection, and the answer comes
//! from there; what it has to wait for is kept with the object, and the flow's timer shows the
//! earliest of that and of what the user does next.

use crate::balance::{AGAIN, Balanced, Step, hashed};
use crate::engine::{Engine, NEVER};
use crate::flow::{Driver, Flow, Object, Web};
use crate::tcp_host::Purpose;
use sojourn_units::Nanos;

/// A flow's session.
fn session(flow: &mut Flow) -> &mut Web {
    let Driver::Web(web) = &mut flow.driver else { unreachable!("only Web flows have objects") };
    web
}

impl Engine<'_> {
    /// A Web session requests what is due, and sets its next time.
    pub(crate) fn browse(&mut self, id: u32) {
        while self.lead_on(id) || self.ask(id) {}
        let now = self.now;
        let flow = &mut self.flows[id as usize];
        let (stop, balanced) = (flow.stop, flow.balanced.is_some());
        let web = session(flow);
        let user = if now < stop { web.session.next_event() } else { None };
        let mut next = user.filter(|&at| at < stop).unwrap_or(NEVER);
        if balanced {
            next = web.objects.iter().flatten().map(|object| object.due).fold(next, Nanos::min);
        }
        if next == NEVER {
            self.timers.clear(id);
        } else {
            self.timers.set(id, next);
        }
    }

    /// Asks for the next object that is due. Says whether there was one.
    fn ask(&mut self, id: u32) -> bool {
        let now = self.now;
        let flow = &mut self.flows[id as usize];
        let balanced = flow.balanced.map(|balanced| Balanced::new(balanced.balancer));
        if now >= flow.stop {
            return false;
        }
        let web = session(flow);
        let Some(request) = web.session.poll(now) else { return false };
        web.asked += 1;
        let object = Object {
            id: request.object,
            at: request.at,
            server: request.server,
            request: request.request,
            bytes: request.bytes,
            number: web.asked,
            balanced,
            due: if balanced.is_some() { now } else { NEVER },
        };
        let slot = web.objects.iter().position(Option::is_none).unwrap_or(web.objects.len());
        if slot == web.objects.len() {
            web.objects.push(None);
        }
        web.objects[slot] = Some(object);
        self.groups[flow.group as usize].begin(now);
        if balanced.is_none() {
            self.request(id, slot as u32);
        }
        true
    }

    /// Leads an object on whose time has come, towards its server or from there. Says whether there
    /// was one.
    fn lead_on(&mut self, id: u32) -> bool {
        let now = self.now;
        let Flow { driver: Driver::Web(web), balanced: Some(last), .. } =
            &mut self.flows[id as usize]
        else {
            return false;
        };
        let mut due = web.objects.iter_mut().enumerate();
        let Some((slot, object, mut balanced)) = due.find_map(|(slot, object)| {
            let object = object.as_mut().filter(|object| object.due <= now)?;
            let balanced = object.balanced?;
            Some((slot as u32, object, balanced))
        }) else {
            return false;
        };
        if balanced.is_serving() {
            (object.due, object.balanced) = (NEVER, Some(balanced.served()));
            self.answer(id, slot);
            return true;
        }
        let step = self.desks[balanced.balancer]
            .advance(now, &mut balanced, &self.net, || hashed(self.seed, id, object.number));
        object.balanced = Some(balanced);
        object.due = match step {
            Step::Wait(at) => at,
            Step::Refused => now.saturating_add(AGAIN),
            Step::Open(server) => {
                object.server = server as u32;
                *last = balanced;
                NEVER
            }
        };
        if let Step::Open(_) = step {
            self.request(id, slot);
        }
        true
    }

    /// The client sends its request.
    fn request(&mut self, id: u32, slot: u32) {
        let flow = &mut self.flows[id as usize];
        let client = flow.nodes.1;
        let web = session(flow);
        let Some(object) = web.objects[slot as usize] else { return };
        let (server, down, up) = web.servers[object.server as usize];
        let connection = self.open(id, Purpose::Request(slot), (client, server, up, down));
        self.offer(connection, object.request);
    }

    /// A request has come in: its server works on it, or answers at once.
    pub(crate) fn requested(&mut self, id: u32, slot: u32) {
        let now = self.now;
        let Driver::Web(web) = &mut self.flows[id as usize].driver else { return };
        let Some(object) = &mut web.objects[slot as usize] else { return };
        if let Some(balanced) = &mut object.balanced {
            let done = self.desks[balanced.balancer].serve_one(now, balanced);
            if done > now {
                object.due = done;
                self.browse(id);
                return;
            }
        }
        self.answer(id, slot);
    }

    /// The server answers.
    fn answer(&mut self, id: u32, slot: u32) {
        let flow = &mut self.flows[id as usize];
        let client = flow.nodes.1;
        let web = session(flow);
        let Some(object) = web.objects[slot as usize] else { return };
        let (server, down, up) = web.servers[object.server as usize];
        let connection = self.open(id, Purpose::Answer(slot), (server, client, down, up));
        self.offer(connection, object.bytes);
    }

    /// An object has come, or never will.
    pub(crate) fn fetched(&mut self, id: u32, slot: u32, success: bool) {
        let now = self.now;
        let flow = &mut self.flows[id as usize];
        let group = &mut self.groups[flow.group as usize];
        let Driver::Web(web) = &mut flow.driver else { return };
        let Some(done) = web.objects[slot as usize].take() else { return };
        if let Some(balanced) = done.balanced {
            self.desks[balanced.balancer].let_go(now, &balanced);
        }
        group.end(now);
        if success {
            group.fct.record(now - done.at);
            flow.finished += 1;
        }
        // The user goes on, also past an object that could not be had.
        if let Some(page) = web.session.complete(now, done.id)
            && success
        {
            group.page.record(page.finished - page.started);
            web.pages += 1;
        }
        if web.session.is_finished() {
            flow.end = Some(now);
        }
        self.browse(id);
    }
}
