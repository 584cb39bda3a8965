//! Balancers: the controllers that choose a server for each flow, and their knowledge of the
//! servers.

use serde::{Deserialize, Serialize};
use sojourn_random::Distribution;
use sojourn_units::{Nanos, SECOND};

/// A switch with servers behind its own address, and the controller that chooses one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balancer {
    /// Its name, the destination of flows.
    pub name: String,
    /// Its policy.
    pub policy: sojourn_balance::Params,
    /// The servers behind it.
    pub servers: Vec<Server>,
    /// Delay from the switch to the controller, and of the way back.
    #[serde(default)]
    pub delay: Nanos,
    /// Time that the controller needs for a decision.
    #[serde(default)]
    pub decision: Nanos,
    /// How it detects servers that cannot be reached.
    #[serde(default)]
    pub probes: Probes,
    /// Times at which servers cannot be reached, as the controller's probes find. The links'
    /// changes decide what happens to packets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// Probes through the data path, which a reachable server answers at once. They begin at a drawn
/// time of the first period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    /// Time between two probes.
    pub every: Nanos,
    /// Number of unanswered probes after which a server is down, when the next one is due.
    pub misses: u32,
}

impl Default for Probes {
    /// Returns one probe a second, and three misses.
    fn default() -> Self {
        Self { every: SECOND, misses: 3 }
    }
}

/// A time at which a server cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Number of the server behind the balancer.
    pub server: usize,
    /// Begin, from the start of the run.
    pub at: Nanos,
    /// End, from the start of the run; never if `None`.
    #[serde(default)]
    pub until: Option<Nanos>,
}

impl Fault {
    /// Returns whether the server cannot be reached at the time `since` the start of the run.
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
    /// Nanoseconds of work on each transfer received, one after the other; none if it takes no
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Distribution>,
}
