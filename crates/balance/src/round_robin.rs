//! Round robin: each server in turn.
//!
//! Each server gets the same number of flows, regardless of its capacity, its link and the sizes of
//! flows.

use crate::contract::{Policy, PolicyParams, Request};
use crate::needs::{Needs, Signal};
use crate::pick::{Pick, Reason};
use sojourn_units::params;

params! {
    "round-robin": "each server in turn, regardless of weights";

    /// The policy has no parameters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {}
}

impl PolicyParams for Params {
    type Policy = RoundRobin;

    fn needs(&self) -> Needs {
        Needs::of(Signal::Nothing)
    }

    fn build(&self, _servers: usize, _key: u64) -> RoundRobin {
        RoundRobin::default()
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    next: usize,
}

impl Policy for RoundRobin {
    type View = ();

    fn choose(&mut self, Request { servers, .. }: Request<'_, ()>) -> Option<Pick> {
        let server = servers.up().find(|&i| i >= self.next).or_else(|| servers.up().next())?;
        self.next = server + 1;
        Some((server, Reason::Turn))
    }
}
