//! Balancers: who chooses a server for each flow that is sent to them, and what is known of the servers.

use crate::validate::{PlanError, at_most, fail, limits};
use crate::{Plan, Transport};
use serde::{Deserialize, Serialize};
use sojourn_balance::MOST_SERVERS;
use sojourn_random::{Distribution, Unit};
use sojourn_units::{Nanos, SECOND};
use std::collections::BTreeSet;

/// A switch with an address of its own behind which servers stand, and the controller that chooses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balancer {
    /// Its name, which flows have for a destination.
    pub name: String,
    /// How it chooses.
    pub policy: sojourn_balance::Params,
    /// The servers behind it.
    pub servers: Vec<Server>,
    /// From the switch to the controller, and the same back.
    #[serde(default)]
    pub delay: Nanos,
    /// What a decision takes the controller.
    #[serde(default)]
    pub decision: Nanos,
    /// How it finds out which servers can be reached.
    #[serde(default)]
    pub probes: Probes,
    /// Times at which servers cannot be reached, as the controller's probes find. What then becomes
    /// of packets is up to the links' changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// Probes through the data path, answered at once by a server that can be reached. They begin at a
/// drawn moment of the first period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    /// From one to the next.
    pub every: Nanos,
    /// A server is down when the next one is due after so many without an answer.
    pub misses: u32,
}

impl Default for Probes {
    /// One a second, and three misses.
    fn default() -> Self {
        Self { every: SECOND, misses: 3 }
    }
}

/// A time at which a server cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Its number behind the balancer.
    pub server: usize,
    /// When it begins, from the start of the run.
    pub at: Nanos,
    /// When it is over; never if `None`.
    #[serde(default)]
    pub until: Option<Nanos>,
}

impl Fault {
    /// Whether the server cannot be reached `since` the start of the run.
    pub fn holds(&self, since: Nanos) -> bool {
        self.at <= since && since < self.until.unwrap_or(Nanos::MAX)
    }
}

/// A server behind a balancer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Index of its node.
    pub node: usize,
    /// Index of the link whose queue and counters are read.
    pub port: usize,
    /// Its weight.
    pub weight: u32,
    /// Nanoseconds that it works on a transfer that has come in, one after the other; none if it
    /// takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Distribution>,
}

/// The longest delay of a control channel, and the longest decision: sums stay far from overflow.
const LONGEST: Nanos = 60 * SECOND;
/// The shortest period of readings.
const SHORTEST_PERIOD: Nanos = 10_000;
/// Readings on their way to a controller at once.
const READINGS: Nanos = 10_000;
/// The shortest time between probes.
const SHORTEST_PROBES: Nanos = 1_000_000;
/// Probes without an answer.
const MISSES: u32 = 100;
/// Faults of a balancer's servers.
const FAULTS: usize = 1000;
/// Balancers.
const BALANCERS: usize = 1000;

impl Balancer {
    fn check(&self, i: usize, plan: &Plan) -> Result<(), PlanError> {
        let at = |field: &str| format!("balancers[{i}].{field}");
        if let Err(why) = self.policy.check() {
            return fail(at("policy"), why);
        }
        for (field, span) in [("delay", self.delay), ("decision", self.decision)] {
            if span > LONGEST {
                return fail(at(field), "must be at most 60s");
            }
        }
        if let Some(period) = self.policy.needs().fresh.period().filter(|&period| period > 0) {
            if period < SHORTEST_PERIOD {
                return fail(at("policy"), "`period` must be at least 10us");
            }
            if self.delay / period > READINGS {
                return fail(
                    at("delay"),
                    format!("more than {READINGS} readings would be on their way at once"),
                );
            }
        }
        if self.servers.is_empty() || self.servers.len() > MOST_SERVERS {
            return fail(at("servers"), format!("1 to {MOST_SERVERS} are allowed"));
        }
        let mut nodes = BTreeSet::new();
        for (j, server) in self.servers.iter().enumerate() {
            let at = |field: &str| format!("balancers[{i}].servers[{j}].{field}");
            if server.node >= plan.nodes.len() {
                return fail(at("node"), format!("there is no node {}", server.node));
            }
            if !nodes.insert(server.node) {
                return fail(at("node"), "stands there already");
            }
            if server.port >= plan.links.len() {
                return fail(at("port"), format!("there is no link {}", server.port));
            }
            if server.weight == 0 {
                return fail(at("weight"), "must be at least 1");
            }
            if let Some(Err(why)) = server.service.map(|service| service.check()) {
                let text = server.service.map(|service| service.format(Unit::Time));
                return fail(at("service"), format!("{}: {why}", text.unwrap_or_default()));
            }
        }
        self.check_faults(i)
    }

    fn check_faults(&self, i: usize) -> Result<(), PlanError> {
        let at = |field: &str| format!("balancers[{i}].{field}");
        if self.probes.every < SHORTEST_PROBES || self.probes.every > LONGEST {
            return fail(at("probes"), "must be 1ms to 60s apart");
        }
        if self.probes.misses == 0 || self.probes.misses > MISSES {
            return fail(at("misses"), format!("must be 1 to {MISSES}"));
        }
        at_most(&at("faults"), "faults", self.faults.len(), FAULTS)?;
        for (j, fault) in self.faults.iter().enumerate() {
            let at = format!("balancers[{i}].faults[{j}]");
            if fault.server >= self.servers.len() {
                return fail(at, format!("there is no server {}", fault.server));
            }
            if fault.until.is_some_and(|until| until <= fault.at) {
                return fail(at, "is over before it begins");
            }
            let during = |other: &Fault| other.holds(fault.at) || fault.holds(other.at);
            if self.faults[..j].iter().any(|o| o.server == fault.server && during(o)) {
                return fail(at, "its server cannot be reached then already");
            }
        }
        Ok(())
    }
}

impl Plan {
    pub(crate) fn check_balancers(&self) -> Result<(), PlanError> {
        at_most("balancers", "balancers", self.balancers.len(), BALANCERS)?;
        let mut servers = 0;
        for (i, balancer) in self.balancers.iter().enumerate() {
            balancer.check(i, self)?;
            servers += balancer.servers.len();
        }
        at_most("balancers", "servers", servers, limits::GROUPS)?;
        for (g, group) in self.groups.iter().enumerate() {
            let Some(balancer) = group.balancer else { continue };
            let at = |field: &str| format!("groups[{g}].{field}");
            if balancer >= self.balancers.len() {
                return fail(at("balancer"), format!("there is no balancer {balancer}"));
            }
            let servers = &self.balancers[balancer].servers;
            for &pair in &group.pairs {
                let (client, server) = group.client_first(pair);
                if server != servers[0].node {
                    return fail(at("pairs"), "a balanced flow has the first server in its pairs");
                }
                if servers.iter().any(|server| server.node == client) {
                    return fail(at("pairs"), "a server is behind the balancer and before it");
                }
            }
        }
        Ok(())
    }

    /// The ways that flows may take besides those of their pairs: from the clients of balanced
    /// groups to all servers, and back where TCP needs it.
    pub(crate) fn balanced_ways(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        self.groups.iter().enumerate().flat_map(move |(g, group)| {
            let servers = group.balancer.map_or(&[][..], |b| &self.balancers[b].servers);
            let back = matches!(group.transport, Transport::Tcp(_));
            group.pairs.iter().flat_map(move |&pair| {
                let (client, _) = group.client_first(pair);
                servers.iter().flat_map(move |server| {
                    let back = back.then_some((g, server.node, client));
                    [Some((g, client, server.node)), back].into_iter().flatten()
                })
            })
        })
    }
}
