//! Turns in proportion to the servers' weights, evenly interleaved.
//!
//! This is the smooth weighted round robin of nginx. At each choice, the credit of each server
//! grows by its weight. The server with the highest credit is chosen, and the sum of all weights is
//! subtracted from its credit. With the weights 5, 1, 1 the order is a a b a c a a instead of a a a
//! a a b c. In each sequence of seven choices, each server has as many turns as its weight.

use crate::contract::{Policy, PolicyParams, Request};
use crate::needs::{Needs, Signal};
use crate::pick::{Pick, Reason};
use crate::view::Servers;
use sojourn_units::params;

params! {
    "weighted-round-robin": "turns in proportion to the servers' weights, evenly interleaved",
    from "nginx, ngx_http_upstream_round_robin.c";

    /// The policy has no parameters; weights belong to the servers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {}
}

impl PolicyParams for Params {
    type Policy = WeightedRoundRobin;

    fn needs(&self) -> Needs {
        Needs::weighted(Signal::Nothing)
    }

    fn build(&self, servers: usize, _key: u64) -> WeightedRoundRobin {
        WeightedRoundRobin { credit: vec![0; servers] }
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct WeightedRoundRobin {
    credit: Vec<i64>,
}

impl Policy for WeightedRoundRobin {
    type View = ();

    fn choose(&mut self, Request { servers, .. }: Request<'_, ()>) -> Option<Pick> {
        let (mut best, mut total) = (None, 0);
        for i in servers.up() {
            let weight = i64::from(servers.weight(i));
            self.credit[i] += weight;
            total += weight;
            if best.is_none_or(|b: usize| self.credit[i] > self.credit[b]) {
                best = Some(i);
            }
        }
        let server = best?;
        self.credit[server] -= total;
        Some((server, Reason::Turn))
    }

    /// Resets all credits, since the old credit of a returning server would distort the turns of
    /// the others.
    fn changed(&mut self, _servers: &Servers<'_, ()>) {
        self.credit.fill(0);
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        for (i, credit) in self.credit.iter().enumerate() {
            visit(i, "credit", *credit as f64);
        }
    }
}
