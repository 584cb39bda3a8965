//! Power of d choices, with memory.
//!
//! The policy draws `d` servers and chooses the one with the fewest packets among these and the
//! `memory` least loaded servers of the previous choice (DRILL's (d, m)). Two choices shorten the
//! longest queues exponentially compared with one. Since the drawn servers differ from flow to
//! flow, outdated lengths do not make all flows herd; with memory they do, since a remembered
//! server stays the shortest in the outdated lengths. The fraction of queues with at least k jobs
//! tends to `rho^((d^k - 1)/(d - 1))` (memory 0, many servers).

use crate::contract::{Policy, PolicyParams, Request};
use crate::facts::Backlog;
use crate::needs::{Freshness, Needs, Signal, period};
use crate::pick::Pick;
use crate::urn::{MOST, Urn, drawn};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, integer};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};

params! {
    /// Number of choices.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Different servers drawn for each flow.
        d: u64 = drawn(),
        /// Least loaded servers of the previous choice that are considered again.
        memory: u64 = integer(0, MOST, "1"),
        /// Time from one reading to the next; with 0s readings are taken for each choice.
        period: Nanos = period(),
    }
}

impl PolicyParams for Params {
    const TABLE: Table = Table {
        name: "power-of-d",
        summary: "the shortest of d queues drawn at random and of those remembered",
        source: "Mitzenmacher 2001; Ghorbani et al. 2017 (DRILL)",
        words: Self::WORDS,
    };

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
    /// Servers considered for one flow.
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
        // The sort is stable, so the drawn servers come first in a random order: among equal
        // queues, any may be remembered.
        self.looked.sort_by_key(|&i| packets(i).unwrap_or(u64::MAX));
        self.remembered.clear();
        self.remembered.extend(self.looked.iter().take(self.params.memory as usize));
        picked
    }
}
