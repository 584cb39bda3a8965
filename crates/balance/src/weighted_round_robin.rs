//! Turns in proportion to the weights, spread out.
//!
//! Smooth weighted round robin, as nginx has it: each server's credit grows by its weight, the one
//! with most credit is chosen and pays the sum of all weights. With weights 5, 1, 1 the turns are
//! a a b a c a a, not a a a a a b c. In every full round each server has as many turns as its weight.

use super::{Draws, Flow, Pick, Policy, Reason, Sight};
use serde::{Deserialize, Serialize};
use sojourn_units::words::Table;

/// The words of `weighted-round-robin`.
pub const TABLE: Table = Table {
    name: "weighted-round-robin",
    summary: "turns in proportion to the servers' weights, spread out",
    source: "nginx, ngx_http_upstream_round_robin.c",
    words: &[],
};

/// Nothing to set: the weights are the servers'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// The policy.
#[derive(Clone, Debug)]
pub struct WeightedRoundRobin {
    credit: Vec<i64>,
}

impl WeightedRoundRobin {
    /// A new one for so many servers.
    pub fn new(servers: usize) -> Self {
        Self { credit: vec![0; servers] }
    }
}

impl Policy for WeightedRoundRobin {
    type View = ();

    fn choose(
        &mut self,
        _now: u64,
        _flow: &Flow,
        sight: &Sight<'_, ()>,
        _draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        let (mut best, mut total) = (None, 0);
        for i in sight.up() {
            let weight = i64::from(sight.weight(i));
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

    /// Credits begin anew: those of a server that was away would come out of the others' turns.
    fn changed(&mut self, _sight: &Sight<'_, ()>) {
        self.credit.fill(0);
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &'static str, f64)) {
        for (i, credit) in self.credit.iter().enumerate() {
            visit(i, "credit", *credit as f64);
        }
    }
}
