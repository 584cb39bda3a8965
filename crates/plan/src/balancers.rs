//! Balancers: who chooses a server for each flow that is sent to them, and what is known of the servers.

use serde::{Deserialize, Serialize};
use sojourn_random::Distribution;
use sojourn_units::{Nanos, SECOND};

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
