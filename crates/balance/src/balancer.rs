//! A policy with its servers.

use crate::facts::{Flow, Reading, Server};
use crate::family::{Any, Params};
use crate::needs::{Look, Needs};
use crate::pick::{Draws, Reason};
use crate::sight::Known;
use sojourn_units::Nanos;

/// A server chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its index.
    pub server: usize,
    /// Why.
    pub reason: Reason,
    /// Age of what was known of it; none if nothing was looked at.
    pub age: Option<Nanos>,
}

/// A policy with its servers.
#[derive(Clone, Debug)]
pub struct Balancer {
    servers: Vec<Known>,
    policy: Any,
    needs: Needs,
}

/// The greatest number of servers.
pub const MOST_SERVERS: usize = 4096;

impl Balancer {
    /// The policy that `params` describes before `servers`, all of them up. `key` is that of the stream
    /// that a policy from outside draws from.
    ///
    /// # Panics
    /// With more than [`MOST_SERVERS`] servers.
    pub fn new(params: &Params, servers: &[Server], key: u64) -> Self {
        assert!(servers.len() <= MOST_SERVERS, "at most {MOST_SERVERS} servers");
        let mut balancer = Self {
            servers: servers.iter().copied().map(Known::new).collect(),
            policy: Any::new(params, servers.len(), key),
            needs: params.needs(),
        };
        balancer.policy.changed(&balancer.servers);
        balancer
    }

    /// What its policy needs.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Number of servers.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Whether it has no servers.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Tells what has been read of the servers at `now`, in their order.
    ///
    /// # Panics
    /// If there are not as many readings as servers.
    pub fn observe(&mut self, now: Nanos, readings: &[Reading]) {
        assert_eq!(readings.len(), self.servers.len(), "a reading for each server");
        for (known, reading) in self.servers.iter_mut().zip(readings) {
            if let Some(backlog) = reading.backlog {
                known.backlog = Some((now, backlog));
            }
            if let Some(counters) = reading.counters {
                known.counters = Some((now, counters));
            }
        }
        self.policy.observe(now, &self.servers);
    }

    /// The server for a new flow, which counts as open from now on; none if all are down, or if the
    /// policy refuses.
    pub fn choose(&mut self, now: Nanos, flow: &Flow, draws: &mut Draws<'_>) -> Option<Choice> {
        let (server, reason) = self.policy.choose(now, *flow, &self.servers, draws)?;
        let known = &mut self.servers[server];
        debug_assert!(known.up, "a server that is down was chosen");
        known.open = known.open.saturating_add(1);
        let age = |at: Nanos| now.saturating_sub(at);
        let age = match self.needs.look {
            Look::Nothing => None,
            Look::Connections | Look::Latency => Some(0),
            Look::Counters => known.counters.map(|(at, _)| age(at)),
            Look::Backlog => known.backlog.map(|(at, _)| age(at)),
        };
        Some(Choice { server, reason, age })
    }

    /// A flow that nobody asked about is at `server`, and counts as open from now on: one that began
    /// before this balancer, or that goes where its client's other flows go.
    pub fn adopt(&mut self, server: usize) {
        let known = &mut self.servers[server];
        known.open = known.open.saturating_add(1);
    }

    /// A flow that was given to `server` has ended. `latency` is how long its request took, if known.
    pub fn finished(&mut self, now: Nanos, server: usize, latency: Option<Nanos>) {
        self.servers[server].open = self.servers[server].open.saturating_sub(1);
        self.policy.finished(now, server, latency, &self.servers);
    }

    /// A server has come up or gone down. Its readings are forgotten; its open flows are not.
    pub fn set_up(&mut self, server: usize, up: bool) {
        let known = &mut self.servers[server];
        if known.up != up {
            (known.up, known.backlog, known.counters) = (up, None, None);
            self.policy.changed(&self.servers);
        }
    }

    /// Whether a server is up.
    pub fn is_up(&self, server: usize) -> bool {
        self.servers[server].up
    }

    /// Flows that a server has been given and that have not finished.
    pub fn open(&self, server: usize) -> u32 {
        self.servers[server].open
    }

    /// What the policy remembers, for traces and views: server, name and value.
    pub fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        self.policy.state(visit);
    }
}
