//! Choice by the flow's hash modulo the number of servers, as in ECMP.
//!
//! The policy has no state, so several balancers agree without communication. If a server is added
//! or removed, most flows are assigned to other servers; [`maglev`](super::maglev) avoids this.

use crate::contract::{Policy, PolicyParams, Request};
use crate::needs::{Needs, Signal};
use crate::pick::{Pick, Reason};
use sojourn_units::params;

params! {
    "hash": "by the hash of the flow's addresses, protocol and ports, as ECMP",
    from "RFC 2992";

    /// The policy has no parameters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {}
}

impl PolicyParams for Params {
    type Policy = Hash;

    fn needs(&self) -> Needs {
        Needs::of(Signal::Nothing)
    }

    fn build(&self, _servers: usize, _key: u64) -> Hash {
        Hash
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct Hash;

impl Policy for Hash {
    type View = ();

    fn choose(&mut self, Request { flow, servers, .. }: Request<'_, ()>) -> Option<Pick> {
        let up = servers.up().count() as u64;
        let nth = flow.hash.checked_rem(up)?;
        servers.up().nth(nth as usize).map(|i| (i, Reason::Hashed))
    }
}
