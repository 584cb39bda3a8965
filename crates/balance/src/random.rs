//! A random server, with probabilities proportional to the weights.
//!
//! This is the baseline: the policy needs no information, and new flows do not gather at one
//! server. But the longest of n queues is far above the mean (balls into bins).

use crate::contract::{Policy, PolicyParams, Request};
use crate::needs::{Needs, Signal};
use crate::pick::{Pick, Reason};
use sojourn_units::params;

params! {
    "random": "a server at random, in proportion to the weights";

    /// The policy has no parameters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {}
}

impl PolicyParams for Params {
    type Policy = Random;

    fn needs(&self) -> Needs {
        Needs::weighted(Signal::Nothing)
    }

    fn build(&self, _servers: usize, _key: u64) -> Random {
        Random
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct Random;

impl Policy for Random {
    type View = ();

    fn choose(&mut self, Request { servers, draws, .. }: Request<'_, ()>) -> Option<Pick> {
        let total: u64 = servers.up().map(|i| u64::from(servers.weight(i))).sum();
        let only = servers.up().nth(1).is_none();
        let mut left = if total == 0 || only { 0 } else { draws(total) };
        for i in servers.up() {
            match left.checked_sub(u64::from(servers.weight(i))) {
                None => return Some((i, Reason::Drawn)),
                Some(rest) => left = rest,
            }
        }
        None
    }
}
