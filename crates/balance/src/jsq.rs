//! Join the shortest queue.
//!
//! The queue with the fewest packets is chosen; ties are broken at random. For queues of equal rate
//! and with current lengths, no policy has a lower mean delay in heavy traffic. With outdated
//! lengths, all flows of a period join the queue that was shortest at the last reading
//! (Mitzenmacher, "How useful is old information?").

use crate::contract::{Policy, PolicyParams, Request};
use crate::facts::Backlog;
use crate::needs::{Freshness, Needs, Signal, period};
use crate::pick::Pick;
use sojourn_units::{Nanos, params};

params! {
    "jsq": "join the shortest queue",
    from "Winston 1977; Mitzenmacher 2000 on old queue lengths";

    /// Period of readings.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Time between two readings; with 0s, the queues are read at each choice.
        period: Nanos = period(),
    }
}

impl PolicyParams for Params {
    type Policy = Jsq;

    fn needs(&self) -> Needs {
        Needs::read(Signal::Backlog, Freshness::every(self.period))
    }

    fn build(&self, _servers: usize, _key: u64) -> Jsq {
        Jsq
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct Jsq;

impl Policy for Jsq {
    type View = Backlog;

    fn choose(&mut self, Request { servers, draws, .. }: Request<'_, Backlog>) -> Option<Pick> {
        servers.least(|i| servers.get(i).map(|backlog| backlog.packets), draws)
    }
}
