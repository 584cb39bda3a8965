//! The world: the services that an application uses.
//!
//! The services are clock, timers, the network, TCP connections, controllers of balancers,
//! measurements of flows and groups, and the seed. The world does not call applications: its
//! transport returns the events of a connection ([`Change`]), and the event loop notifies the
//! connection's owner.

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
    /// The run's seed, from which all random draws follow.
    pub seed: u64,
    /// The present simulated time; the run starts at [`EPOCH`].
    pub now: Nanos,
    /// Links and packets.
    pub net: Network<Cargo, Observers>,
    /// Timers of applications and connections.
    pub timers: Timers,
    /// All flows, group by group. A flow's index is also the number of its application.
    pub flows: Vec<Flow>,
    /// Measurements of each group.
    pub groups: Vec<GroupProbe>,
    /// The controllers of all balancers.
    pub controllers: Vec<Controller>,
    /// TCP connections.
    pub connections: Connections,
    /// Start of the measured time: the run's start, then the end of the warm-up.
    pub since: Nanos,
    /// Copies of the shared media at `since`.
    pub media_before: Vec<Medium>,
    /// Number of identities (see [`Self::new_identity`]). Flows have the first ones.
    identities: u32,
}

impl<'a> World<'a> {
    /// Returns the world of a valid plan at the run's start, without flows. `others` is the number of
    /// applications that the plan does not declare.
    pub fn new(plan: &'a Plan, seed: u64, options: Options, others: usize) -> Self {
        let mut net = Network::new(plan, seed, options, Observers::new(plan));
        let of_hosts: Vec<usize> = net.observer.links_of_hosts().collect();
        plan.observe
            .capture
            .iter()
            .chain(&of_hosts)
            .for_each(|&link| net.observe_link(EPOCH, link));
        let flows = plan.groups.iter().map(|group| group.count as usize).sum();
        net.accounts.reserve_exact(2 * flows);
        let apps = flows + plan.apps.len() + others;
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
    /// If no links lead from the flow's sender to its receiver, or back for TCP.
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

    /// Returns the path from node `from` to node `to` for group `g`.
    ///
    /// # Errors
    /// If no links lead from `from` to `to`.
    pub fn path(&mut self, g: usize, from: u32, to: u32) -> Result<u32, PlanError> {
        self.net.path(self.now, from, to).ok_or_else(|| {
            let message = "no links lead from a sender to its receiver";
            PlanError::new(at!["groups", g], message)
        })
    }

    /// Returns the nodes of the servers of a group's balancer; empty without a balancer.
    pub fn servers(&self, g: usize) -> Vec<u32> {
        let balancer = self.plan.groups[g].balancer;
        balancer.into_iter().flat_map(|b| self.controllers[b].nodes()).collect()
    }

    /// Returns a new identity, for a channel. The hashes of the channel's connections differ from
    /// all other hashes.
    pub fn new_identity(&mut self) -> u32 {
        self.identities += 1;
        self.identities - 1
    }

    /// Sets an application's timer, or moves it.
    pub fn set_timer(&mut self, app: u32, at: Nanos) {
        self.timers.set(Timer::App(app), at);
    }

    /// Clears an application's timer.
    pub fn clear_timer(&mut self, app: u32) {
        self.timers.clear(Timer::App(app));
    }

    /// Sets a flow's first timer, if `at` is before the flow's stop and the end of the run.
    pub fn start_timer(&mut self, flow: u32, at: Nanos) {
        if at < self.flows[flow as usize].stop.min(EPOCH + self.plan.duration) {
            self.set_timer(flow, at);
        }
    }

    /// Records the end of a flow that had one connection.
    pub fn end_flow(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        self.groups[flow.group as usize].end(self.now);
        flow.current = None;
        flow.end = Some(self.now);
    }

    /// Returns the time of the next periodic reading of queues by a controller, or [`NEVER`].
    pub fn next_reading(&self) -> Nanos {
        Controller::next_of(&self.controllers)
    }

    /// Reads queues for the controllers whose periodic readings are due now.
    pub fn read_queues(&mut self) {
        for controller in &mut self.controllers {
            controller.read_due(self.now, &self.net);
        }
    }

    /// Begins all measurements anew at the end of the warm-up.
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
