//! Power of d choices, with memory.
//!
//! The policy draws `d` servers at random. It chooses the server with the fewest packets among
//! these and the `memory` least loaded servers of the previous choice (the (d, m) policy of DRILL).
//! With two choices instead of one, the longest queues are exponentially shorter. With outdated
//! lengths and without memory, flows do not all choose the same server, since the random servers
//! differ from flow to flow. With memory they soon do, since a remembered server remains the
//! shortest until the next reading. With current lengths, no memory and many servers at load `rho`,
//! the fraction of queues with at least k jobs tends to `rho^((d^k - 1)/(d - 1))`.

use crate::contract::{Policy, PolicyParams, Request};
use crate::facts::Backlog;
use crate::needs::{Freshness, Needs, Signal, period};
use crate::pick::Pick;
use crate::urn::{MOST, Urn, drawn};
use sojourn_units::declare::integer;
use sojourn_units::{Nanos, params};

params! {
    "power-of-d": "the shortest of d random queues and of the queues remembered from the last choice",
    from "Mitzenmacher 2001; Ghorbani et al. 2017 (DRILL)";

    /// Numbers of random servers and of remembered servers, and period of readings.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Number of different random servers among which each flow chooses.
        d: u64 = drawn(),
        /// Number of least loaded servers of the previous choice that are considered again.
        memory: u64 = integer(0, MOST, "1"),
        /// Time between two readings; with 0s, the queues are read at each choice.
        period: Nanos = period(),
    }
}

impl PolicyParams for Params {
    type Policy = PowerOfD;

    fn needs(&self) -> Needs {
        Needs::read(Signal::Backlog, Freshness::every(self.period))
    }

    fn build(&self, servers: usize, _key: u64) -> PowerOfD {
        PowerOfD {
            params: *self,
            remembered: Vec::with_capacity(self.memory as usize),
            looked: Vec::with_capacity((self.d + self.memory) as usize),
            urn: Urn::new(servers),
        }
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct PowerOfD {
    params: Params,
    /// Least loaded servers of the previous choice.
    remembered: Vec<usize>,
    /// Servers that are considered for the current flow.
    looked: Vec<usize>,
    urn: Urn,
}

impl Policy for PowerOfD {
    type View = Backlog;

    fn choose(&mut self, Request { servers, draws, .. }: Request<'_, Backlog>) -> Option<Pick> {
        self.looked.clear();
        self.looked.extend_from_slice(self.urn.draw(&servers, self.params.d, draws));
        for &server in &self.remembered {
            if servers.is_up(server) && !self.looked.contains(&server) {
                self.looked.push(server);
            }
        }
        let packets = |i| servers.get(i).map(|backlog: Backlog| backlog.packets);
        let picked = servers
            .least_of(self.looked.iter().copied(), packets, draws)
            .or_else(|| servers.least(packets, draws));
        // The sort is stable: among servers with equal queues, the newly drawn ones, in random
        // order, precede the remembered ones.
        self.looked.sort_by_key(|&i| packets(i).unwrap_or(u64::MAX));
        self.remembered.clear();
        self.remembered.extend(self.looked.iter().take(self.params.memory as usize));
        picked
    }
}
