//! The server with the fewest open connections for its weight.
//!
//! The balancer counts what it has given out itself, so nothing is ever old; what it does not know is
//! how heavy a connection is. Weighted as LVS' `wlc`: open connections over weight; ties by draw.

use super::{Connections, Draws, Flow, Pick, Policy, Sight};
use serde::{Deserialize, Serialize};
use sojourn_units::words::Table;

/// The words of `least-connections`.
pub const TABLE: Table = Table {
    name: "least-connections",
    summary: "the server with the fewest open connections for its weight",
    source: "Linux net/netfilter/ipvs/ip_vs_wlc.c",
    words: &[],
};

/// Nothing to set: the weights are the servers'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// The policy.
#[derive(Clone, Debug)]
pub struct LeastConnections;

impl Policy for LeastConnections {
    type View = Connections;

    fn choose(
        &mut self,
        _now: u64,
        _flow: &Flow,
        sight: &Sight<'_, Connections>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        sight.least(
            |i| sight.get(i).map(|seen| f64::from(seen.open) / f64::from(sight.weight(i))),
            draws,
        )
    }
}
