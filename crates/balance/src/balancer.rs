//! A balancer: a policy together with the state of its servers.

use crate::facts::{Flow, Reading, Server};
use crate::family::{Any, Params};
use crate::needs::{Needs, Signal};
use crate::pick::{Draws, Reason};
use crate::view::Known;
use sojourn_units::Nanos;

/// The choice of a server for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the server.
    pub server: usize,
    /// Reason of the choice.
    pub reason: Reason,
    /// Age in nanoseconds of the policy's information about the server: 0 for open flows and
    /// latencies, `None` without information or before the first reading.
    pub age: Option<Nanos>,
}

/// A policy together with the state of its servers.
#[derive(Clone, Debug)]
pub struct Balancer {
    servers: Vec<Known>,
    policy: Any,
    needs: Needs,
}

/// Maximum number of servers.
pub const MOST_SERVERS: usize = 4096;

impl Balancer {
    /// Returns a balancer with the policy of `params` for `servers`, which are all up. `key` is the
    /// key of the random stream that an external policy receives.
    ///
    /// # Panics
    /// If there are more than [`MOST_SERVERS`] servers.
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

    /// Returns the information that the policy needs.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Returns the number of servers.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Returns whether the balancer has no servers.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Stores readings of all servers, taken at `now` and given in the order of the servers, and
    /// passes them to the policy.
    ///
    /// # Panics
    /// If the number of readings differs from the number of servers.
    pub fn observe(&mut self, now: Nanos, readings: &[Reading]) {
        assert_eq!(readings.len(), self.servers.len(), "there must be one reading for each server");
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

    /// Returns the server for a new flow, which then counts as open. Returns `None` if all servers
    /// are down or the policy refuses the flow.
    pub fn choose(&mut self, now: Nanos, flow: &Flow, draws: &mut Draws<'_>) -> Option<Choice> {
        let (server, reason) = self.policy.choose(now, *flow, &self.servers, draws)?;
        let known = &mut self.servers[server];
        debug_assert!(known.up, "the policy chose a server that is down");
        known.open = known.open.saturating_add(1);
        let age = |at: Nanos| now.saturating_sub(at);
        let age = match self.needs.signal {
            Signal::Nothing => None,
            Signal::Connections | Signal::Latency => Some(0),
            Signal::Counters => known.counters.map(|(at, _)| age(at)),
            Signal::Backlog => known.backlog.map(|(at, _)| age(at)),
        };
        Some(Choice { server, reason, age })
    }

    /// Assigns a flow to `server` without a choice, and counts it as open. Used for flows that are
    /// older than this balancer, or that must use the server of their client's other flows.
    pub fn adopt(&mut self, server: usize) {
        let known = &mut self.servers[server];
        known.open = known.open.saturating_add(1);
    }

    /// Records the end of a flow at `server`. `latency` is the duration of the flow's request in
    /// nanoseconds, if known.
    pub fn finished(&mut self, now: Nanos, server: usize, latency: Option<Nanos>) {
        self.servers[server].open = self.servers[server].open.saturating_sub(1);
        self.policy.finished(now, server, latency, &self.servers);
    }

    /// Sets whether a server is up. If this changes, the server's readings are discarded; its open
    /// flows remain.
    pub fn set_up(&mut self, server: usize, up: bool) {
        let known = &mut self.servers[server];
        if known.up != up {
            (known.up, known.backlog, known.counters) = (up, None, None);
            self.policy.changed(&self.servers);
        }
    }

    /// Returns whether a server is up.
    pub fn is_up(&self, server: usize) -> bool {
        self.servers[server].up
    }

    /// Returns the number of a server's flows that have not finished.
    pub fn open(&self, server: usize) -> u32 {
        self.servers[server].open
    }

    /// Calls `visit` for each variable of the policy's state, with the server, the name and the
    /// value.
    pub fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        self.policy.state(visit);
    }
}
