//! The server with the fewest open connections relative to its weight.
//!
//! The balancer counts the connections itself, so the numbers are always current. But they do not
//! show the load of a connection. As in the scheduler `wlc` of LVS, the number of open connections
//! is divided by the weight; ties are broken at random.

use crate::contract::{Policy, PolicyParams, Request};
use crate::needs::{Needs, Signal};
use crate::pick::Pick;
use crate::view::Connections;
use sojourn_units::params;

params! {
    "least-connections": "the server with the fewest open connections for its weight",
    from "Linux net/netfilter/ipvs/ip_vs_wlc.c";

    /// The policy has no parameters; weights belong to the servers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {}
}

impl PolicyParams for Params {
    type Policy = LeastConnections;

    fn needs(&self) -> Needs {
        Needs::weighted(Signal::Connections)
    }

    fn build(&self, _servers: usize, _key: u64) -> LeastConnections {
        LeastConnections
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct LeastConnections;

impl Policy for LeastConnections {
    type View = Connections;

    fn choose(&mut self, Request { servers, draws, .. }: Request<'_, Connections>) -> Option<Pick> {
        servers.least(
            |i| servers.get(i).map(|seen| f64::from(seen.open) / f64::from(servers.weight(i))),
            draws,
        )
    }
}
