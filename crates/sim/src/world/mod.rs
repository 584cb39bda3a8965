//! The world: the services that an application uses.
//!
//! Clock, timers, the network, TCP connections, controllers of balancers, measurements of flows and
//! groups, and the seed. It knows no application: transport returns the events of a connection
//! ([`Change`]), and the event loop notifies the connection's owner.

mod access;
mod connections;
mod controller;
mod flow;
mod hash;
mod timers;
mod transport;

pub use access::Access;
pub use connections::{Change, Handle, Opening, Owner};
pub use controller::{AGAIN, Assignment, Step};
pub use flow::{Before, Flow};
pub use hash::hash;
pub use timers::{NEVER, Timer};

use crate::load::Cargo;
use crate::observers::Observers;
use connections::Connections;
use controller::Controller;
use sojourn_link::Medium;
use sojourn_measure::{FlowAccount, Moments};
use sojourn_network::{GroupProbe, Network, Options, node};
use sojourn_plan::{Plan, PlanError, Transport, at};
use sojourn_units::{EPOCH, Nanos};
use timers::Timers;

/// The services that an application uses.
pub struct World<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Key of random draws.
    pub seed: u64,
    /// The time.
    pub now: Nanos,
    /// Links and packets.
    pub net: Network<Cargo, Observers>,
    /// Timers of applications and connections.
    pub timers: Timers,
    /// All flows, group by group. A flow's number is its application's.
    pub flows: Vec<Flow>,
    /// Measurements of each group.
    pub groups: Vec<GroupProbe>,
    /// The controllers of all balancers.
    pub controllers: Vec<Controller>,
    /// TCP connections.
    pub connections: Connections,
    /// Since when things are measured.
    pub since: Nanos,
    /// The media as they were then.
    pub media_before: Vec<Medium>,
    /// Sequences of connections that have hashes of their own, those of flows first.
    identities: u32,
}

impl<'a> World<'a> {
    /// The world of a valid plan at its beginning, without flows.
    pub fn new(plan: &'a Plan, seed: u64, options: Options) -> Self {
        let mut net = Network::new(plan, seed, options, Observers::new(plan));
        let of_hosts: Vec<usize> = net.observer.links_of_hosts().collect();
        plan.observe
            .capture
            .iter()
            .chain(&of_hosts)
            .for_each(|&link| net.observe_link(EPOCH, link));
        let flows = plan.groups.iter().map(|group| group.count as usize).sum();
        net.accounts.reserve_exact(2 * flows);
        let apps = flows + plan.apps.len();
        Self {
            plan,
            seed,
            now: EPOCH,
            media_before: net.media().to_vec(),
            net,
            timers: Timers::new(apps as u32),
            flows: Vec::with_capacity(flows),
            groups: plan.groups.iter().map(GroupProbe::new).collect(),
            controllers: Controller::all(plan, seed),
            connections: Connections::new(plan, apps),
            since: EPOCH,
            identities: flows as u32,
        }
    }

    /// Adds the next flow of a group, and returns its number.
    ///
    /// # Errors
    /// If no links lead from its sender to its receiver.
    pub fn add_flow(&mut self, g: usize, planned: &sojourn_plan::Flow) -> Result<u32, PlanError> {
        let group = &self.plan.groups[g];
        let (from, to) = (planned.pair.0 as u32, planned.pair.1 as u32);
        let there = self.path(g, from, to)?;
        let back = match group.transport {
            Transport::Tcp(_) => self.path(g, to, from)?,
            Transport::Udp => 0,
        };
        let client = group.client_first(planned.pair).0 as u32;
        for server in self.servers(g) {
            self.path(g, client, server)?;
            if back != 0 {
                self.path(g, server, client)?;
            }
        }
        let id = self.flows.len() as u32;
        let account = self.net.open_account();
        self.net.open_account();
        self.flows.push(Flow {
            group: g as u32,
            number: planned.number,
            nodes: (node(from), node(to)),
            places: (there, back),
            assignment: group.balancer.map(Assignment::new),
            account,
            start: planned.start.unwrap_or(NEVER),
            stop: planned.stop.unwrap_or(NEVER),
            end: None,
            connections: 0,
            current: None,
            before: None,
            delay: self.plan.observe.per_flow_histograms.then(Default::default),
            packet_delays: self.groups[g].packet_delay.is_some().then(Default::default),
            finished: 0,
        });
        Ok(id)
    }

    /// Returns the path between two nodes, for a group.
    ///
    /// # Errors
    /// If no links lead there.
    pub fn path(&mut self, g: usize, from: u32, to: u32) -> Result<u32, PlanError> {
        self.net.path(self.now, from, to).ok_or_else(|| {
            let message = "no links lead from a sender to its receiver";
            PlanError::new(at!["groups", g], message)
        })
    }

    /// Returns the nodes of the servers that a balancer has for a group; none without one.
    pub fn servers(&self, g: usize) -> Vec<u32> {
        let balancer = self.plan.groups[g].balancer;
        balancer.into_iter().flat_map(|b| self.controllers[b].nodes()).collect()
    }

    /// Returns a number by which the hashes of a sequence of connections differ from all others.
    pub fn new_identity(&mut self) -> u32 {
        self.identities += 1;
        self.identities - 1
    }

    /// Sets an application's timer, or moves it.
    #[inline]
    pub fn set_timer(&mut self, app: u32, at: Nanos) {
        self.timers.set(Timer::App(app), at);
    }

    /// Clears an application's timer.
    #[inline]
    pub fn clear_timer(&mut self, app: u32) {
        self.timers.clear(Timer::App(app));
    }

    /// Sets the first timer of a flow, if that is before it stops and before the run ends.
    pub fn start_timer(&mut self, flow: u32, at: Nanos) {
        if at < self.flows[flow as usize].stop.min(EPOCH + self.plan.duration) {
            self.set_timer(flow, at);
        }
    }

    /// A flow with one connection has ended.
    pub fn end_flow(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        self.groups[flow.group as usize].end(self.now);
        flow.current = None;
        flow.end = Some(self.now);
    }

    /// Returns when a controller reads queues next.
    pub fn next_reading(&self) -> Nanos {
        Controller::next_of(&self.controllers)
    }

    /// Lets the controllers that read queues now do so.
    pub fn read_queues(&mut self) {
        for controller in &mut self.controllers {
            controller.read_due(self.now, &self.net);
        }
    }

    /// The warm-up is over: measuring begins.
    pub fn restart(&mut self) {
        let now = self.now;
        self.since = now;
        self.net.restart(now);
        self.media_before = self.net.media().to_vec();
        for group in &mut self.groups {
            group.restart(now);
        }
        self.controllers.iter_mut().for_each(Controller::restart);
        for (flow, tally) in self.flows.iter_mut().zip(self.connections.tallies(now)) {
            let account = flow.account as usize;
            let books = [self.net.accounts[account], self.net.accounts[account + 1]];
            let has_begun = flow.connections > 0 || books != <[FlowAccount; 2]>::default();
            flow.before = has_begun.then(|| Box::new(Before { tally, books }));
            flow.finished = 0;
            if let Some(delays) = &mut flow.packet_delays {
                **delays = Moments::default();
            }
            if let Some(delay) = &mut flow.delay {
                delay.clear();
            }
        }
    }
}
