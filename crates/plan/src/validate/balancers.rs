//! Validation of a plan's balancers, and of the groups that use them.

use crate::problems::Problems;
use crate::{Balancer, Fault, Plan, Transport, at, limits};
use sojourn_balance::MOST_SERVERS;
use sojourn_random::Unit;
use std::collections::BTreeSet;

impl Balancer {
    /// Checks that indices of nodes, links and servers are in range.
    pub(super) fn check_indices(&self, i: usize, plan: &Plan, problems: &mut Problems) {
        for (j, server) in self.servers.iter().enumerate() {
            let at = |field: &'static str| at!["balancers", i, "servers", j, field];
            problems.index(at("node"), "node", server.node, plan.nodes.len());
            problems.index(at("port"), "link", server.port, plan.links.len());
        }
        for (j, fault) in self.faults.iter().enumerate() {
            let at = at!["balancers", i, "faults", j, "server"];
            problems.index(at, "server", fault.server, self.servers.len());
        }
    }

    fn check(&self, i: usize, plan: &Plan, problems: &mut Problems) {
        let at = |field: &'static str| at!["balancers", i, field];
        problems.add_failed(at("policy"), self.policy.check());
        for (field, span) in [("delay", self.delay), ("decision", self.decision)] {
            if span > limits::CONTROL {
                problems.add(at(field), "must be at most 60s");
            }
        }
        if let Some(period) = self.policy.needs().freshness.period().filter(|&period| period > 0) {
            if period < limits::SHORTEST_PERIOD {
                problems.add(at("policy"), "`period` must be at least 10us");
            } else if self.delay / period > limits::READINGS {
                let most = limits::READINGS;
                let message = format!("more than {most} readings would be in transit at once");
                problems.add(at("delay"), message);
            }
        }
        if self.servers.is_empty() || self.servers.len() > MOST_SERVERS {
            problems
                .add(at("servers"), format!("the number of servers must be 1 to {MOST_SERVERS}"));
        }
        let mut nodes = BTreeSet::new();
        for (j, server) in self.servers.iter().enumerate() {
            let at = |field: &'static str| at!["balancers", i, "servers", j, field];
            if !nodes.insert(server.node) {
                let node = &plan.nodes[server.node].name;
                problems.add(at("node"), format!("`{node}` must not be listed twice"));
            }
            if server.weight == 0 {
                problems.add(at("weight"), "must be at least 1");
            }
            if let Some(service) = server.service
                && let Err(why) = service.check()
            {
                let text = service.format(Unit::Time);
                problems.add(at("service"), format!("{text}: {why}"));
            }
        }
        self.check_faults(i, problems);
    }

    fn check_faults(&self, i: usize, problems: &mut Problems) {
        let at = |field: &'static str| at!["balancers", i, field];
        if !(limits::SHORTEST_PROBES..=limits::CONTROL).contains(&self.probes.every) {
            problems.add(at("probes").join("every"), "the interval of probes must be 1ms to 60s");
        }
        if !(1..=limits::MISSES).contains(&self.probes.misses) {
            problems.add(at("probes").join("misses"), format!("must be 1 to {}", limits::MISSES));
        }
        let (faults, most) = (self.faults.len() as u64, limits::FAULTS as u64);
        problems.at_most(at("faults"), "faults", faults, most);
        for (j, fault) in self.faults.iter().enumerate() {
            let at = || at("faults").join(j);
            if fault.until.is_some_and(|until| until <= fault.at) {
                problems.add(at().join("until"), "the end must be after the begin");
            }
            let during = |other: &Fault| other.holds(fault.at) || fault.holds(other.at);
            if self.faults[..j].iter().any(|o| o.server == fault.server && during(o)) {
                problems.add(at(), "the faults of a server must not overlap");
            }
        }
    }
}

impl Plan {
    pub(super) fn check_balancers(&self, problems: &mut Problems) {
        for (i, balancer) in self.balancers.iter().enumerate() {
            balancer.check(i, self, problems);
        }
        for (g, group) in self.groups.iter().enumerate() {
            let servers = group.balancer.map_or(&[][..], |b| &self.balancers[b].servers);
            let Some(first) = servers.first() else { continue };
            let at = |j: usize| at!["groups", g, "pairs", j];
            let pairs: Vec<_> = group.pairs.iter().map(|&pair| group.client_first(pair)).collect();
            if let Some(j) = pairs.iter().position(|&(_, server)| server != first.node) {
                problems.add(
                    at(j),
                    "the pairs of a balanced group must contain the balancer's first server",
                );
            }
            // Other checks report a pair whose client is the first server.
            let behind = |client: usize| servers[1..].iter().any(|other| other.node == client);
            if let Some(j) = pairs.iter().position(|&(client, _)| behind(client)) {
                let node = &self.nodes[pairs[j].0].name;
                let message =
                    format!("the client `{node}` must not be a server behind the balancer");
                problems.add(at(j), message);
            }
        }
    }

    /// Returns the routes that a balanced group needs in addition to those of its pairs: from each
    /// client to all servers, and for TCP back.
    pub(super) fn balanced_ways(&self, g: usize) -> impl Iterator<Item = (usize, usize)> {
        let group = &self.groups[g];
        let servers = group.balancer.map_or(&[][..], |b| &self.balancers[b].servers);
        let back = matches!(group.transport, Transport::Tcp(_));
        group.pairs.iter().flat_map(move |&pair| {
            let (client, _) = group.client_first(pair);
            servers.iter().flat_map(move |server| {
                let back = back.then_some((server.node, client));
                [Some((client, server.node)), back].into_iter().flatten()
            })
        })
    }
}
