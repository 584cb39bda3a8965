//! Balancers: controllers that select a server for each flow, and what they know of the servers.

use sojourn_random::Distribution;
use sojourn_units::{Nanos, SECOND, data};

/// A switch whose address several servers share, and the controller that selects a server for each
/// flow.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Balancer {
    /// Name of the balancer, which flows use as destination.
    pub name: String,
    /// Policy that selects servers.
    pub policy: sojourn_balance::Params,
    /// Servers among which the controller selects.
    pub servers: Vec<Server>,
    /// One-way delay between the switch and the controller, in nanoseconds.
    #[serde(default)]
    pub delay: Nanos,
    /// Time that the controller needs for a decision, in nanoseconds.
    #[serde(default)]
    pub decision: Nanos,
    /// Probes with which the controller detects unreachable servers.
    #[serde(default)]
    pub probes: Probes,
    /// Intervals in which the controller's probes find servers unreachable. Whether data packets
    /// arrive depends on the links' changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// Probes through the data path; a reachable server answers a probe immediately. The first one is
/// sent at a random time in the first period.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    /// Time between two probes in nanoseconds.
    pub every: Nanos,
    /// Number of consecutive unanswered probes after which a server counts as down, at the time of
    /// the next probe.
    pub misses: u32,
}

impl Default for Probes {
    /// Returns probes with a period of one second, and three misses.
    fn default() -> Self {
        Self { every: SECOND, misses: 3 }
    }
}

/// An interval in which a server cannot be reached.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Index of the server in the balancer's list.
    pub server: usize,
    /// Begin of the interval in nanoseconds after the start of the run.
    pub at: Nanos,
    /// End of the interval in nanoseconds after the start of the run; `None` for no end.
    #[serde(default)]
    pub until: Option<Nanos>,
}

impl Fault {
    /// Returns whether the server is unreachable at `since` nanoseconds after the start of the run.
    pub fn holds(&self, since: Nanos) -> bool {
        self.at <= since && since < self.until.unwrap_or(Nanos::MAX)
    }
}

/// A server behind a balancer.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Index of the server's node.
    pub node: usize,
    /// Index of the link whose queue and counters the controller reads.
    pub port: usize,
    /// Weight of the server, at least 1.
    pub weight: u32,
    /// Distribution of the service time of a received transfer, in nanoseconds; transfers are
    /// processed one after another. `None` for no service time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Distribution>,
}
