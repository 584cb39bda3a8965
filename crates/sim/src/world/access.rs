//! Flows behind a balancer: whether a flow may send, or waits for a server.

use super::World;
use super::controller::{AGAIN, Assignment, Stage, Step, hashed};
use sojourn_network::node;
use sojourn_units::Nanos;

/// The result of a flow's request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The flow may send: it has a server, or no balancer.
    Granted,
    /// The flow waits for a server, and its timer is set; or it has stopped.
    Pending,
    /// No server is available.
    Refused,
    /// The flow's server has finished processing the received data.
    Served,
}

impl World<'_> {
    /// Returns whether a flow, whose timer is due, may send. Requests a server if the flow needs
    /// one.
    #[inline]
    pub fn access(&mut self, id: u32) -> Access {
        match self.flows[id as usize].assignment {
            None | Some(Assignment { stage: Stage::Open, .. }) => Access::Granted,
            Some(assignment) => self.assign(id, assignment),
        }
    }

    #[cold]
    fn assign(&mut self, id: u32, mut assignment: Assignment) -> Access {
        if assignment.is_serving() {
            return Access::Served;
        }
        let count = self.flows[id as usize].connections;
        let step = self.advance(&mut assignment, id, count);
        self.flows[id as usize].assignment = Some(assignment);
        match step {
            Step::Wait(at) => {
                self.set_timer(id, at);
                Access::Pending
            }
            Step::Refused => Access::Refused,
            Step::Open(server) => self.lead(id, assignment.balancer, server),
        }
    }

    /// Advances an assignment as far as possible at the present time. `flow` and `connection` give
    /// the hash by which a policy may choose.
    pub fn advance(&mut self, assignment: &mut Assignment, flow: u32, connection: u32) -> Step {
        let (controller, seed) = (&mut self.controllers[assignment.balancer], self.seed);
        controller.advance(self.now, assignment, &self.net, || hashed(seed, flow, connection))
    }

    /// Sets the flow's paths between its sender and the assigned server. If the flow has stopped
    /// meanwhile, ends the flow instead.
    fn lead(&mut self, id: u32, balancer: usize, server: usize) -> Access {
        let flow = &mut self.flows[id as usize];
        if self.now >= flow.stop {
            flow.end = Some(self.now);
            self.clear_timer(id);
            self.release(id);
            return Access::Pending;
        }
        let server = self.controllers[balancer].node(server);
        let pairs = &self.plan.groups[flow.group as usize].pairs;
        let sender = pairs[flow.number as usize % pairs.len()].0 as u32;
        flow.nodes.1 = node(server);
        let (net, now) = (&mut self.net, self.now);
        let mut path = |from, to| net.path(now, from, to).expect("the plan was checked");
        flow.places.0 = path(sender, server);
        if flow.places.1 != 0 {
            flow.places.1 = path(server, sender);
        }
        Access::Granted
    }

    /// Makes a refused flow request a server again after [`AGAIN`].
    pub fn retry(&mut self, id: u32) {
        self.retry_at(id, self.now + AGAIN);
    }

    /// Makes a refused flow request a server again at `at`; ends the flow if it stops before that.
    pub fn retry_at(&mut self, id: u32, at: Nanos) {
        let flow = &mut self.flows[id as usize];
        if at < flow.stop {
            self.set_timer(id, at);
        } else {
            flow.end = Some(self.now);
            self.clear_timer(id);
        }
    }

    /// Handles the complete arrival of a flow's transfer. Returns whether the transfer is over;
    /// otherwise its server processes it until the flow's timer is due.
    pub fn serve(&mut self, id: u32) -> bool {
        let Some(mut assignment) = self.flows[id as usize].assignment else { return true };
        if assignment.is_serving() {
            return true;
        }
        let done = self.controllers[assignment.balancer].serve_one(self.now, &mut assignment);
        if done == self.now {
            return true;
        }
        self.flows[id as usize].assignment = Some(assignment);
        self.set_timer(id, done);
        false
    }

    /// Ends the assignment of a server when a flow or its connection is over.
    pub fn release(&mut self, id: u32) {
        let now = self.now;
        if let Some(assignment) = &mut self.flows[id as usize].assignment
            && assignment.stage != Stage::Idle
        {
            assignment.stage = Stage::Idle;
            self.controllers[assignment.balancer].release(now, assignment);
        }
    }
}
