//! IQLB: the shortest queue among those below a threshold.
//!
//! Equation 1 of the queue-lb paper: among the ports whose queue is below 80 % of its limit, the
//! port with the fewest packets is chosen. Ties are broken at random. The paper does not define the
//! choice if no queue is below the threshold. Here the parameter `full` determines it; by default
//! the shortest queue is chosen. A queue whose limit is unknown counts as below the threshold.

use crate::contract::{Policy, PolicyParams, Request};
use crate::facts::Backlog;
use crate::needs::{Freshness, Needs, Signal, period};
use crate::pick::{Pick, Reason};
use sojourn_units::declare::{Choices, Param, probability};
use sojourn_units::words::{Kind, Meaning, Value};
use sojourn_units::{Nanos, choices, meanings, params};

choices! {
    /// Choice if all queues are above the threshold.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Full {
        /// The server with the shortest queue.
        Shortest = "shortest",
        /// A random server.
        Random = "random",
        /// No server: the flow is refused.
        Refuse = "refuse",
    }
}

const FULL: &[Meaning] = meanings! {
    "shortest", "The server with the shortest queue.";
    "random", "A random server.";
    "refuse", "No server: the flow is refused.";
};

params! {
    "iqlb": "the shortest of the queues whose lengths are below a threshold",
    from "queue-length load balancing (the queue-lb paper), equation 1";

    /// Threshold, choice above it, and period of readings.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Share of a queue's limit; queues that use less than this share are preferred.
        threshold: f64 = probability("0.8"),
        /// Choice if all queues are above the threshold.
        full: Full = Param::word(
            Kind::Named { of: FULL },
            "shortest",
            |value| Full::named(value.text()).ok_or_else(|| "is not known".to_owned()),
            |full| Some(Value::Text(full.name().to_owned())),
        ),
        /// Time between two readings; with 0s, the queues are read at each choice.
        period: Nanos = period(),
    }
}

impl PolicyParams for Params {
    type Policy = Iqlb;

    fn needs(&self) -> Needs {
        Needs { limits: true, ..Needs::read(Signal::Backlog, Freshness::every(self.period)) }
    }

    fn build(&self, _servers: usize, _key: u64) -> Iqlb {
        Iqlb { params: *self }
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct Iqlb {
    params: Params,
}

impl Policy for Iqlb {
    type View = Backlog;

    fn choose(&mut self, Request { servers, draws, .. }: Request<'_, Backlog>) -> Option<Pick> {
        let packets = |i| servers.get(i).map(|backlog| backlog.packets);
        let below = |i| {
            servers.get(i).filter(|b| b.limit.is_none() || b.occupancy() < self.params.threshold)
        };
        let found =
            servers.least_of(servers.up(), |i| below(i).map(|backlog| backlog.packets), draws);
        if found.is_some() || servers.up().all(|i| servers.get(i).is_none()) {
            return found.or_else(|| servers.least(packets, draws));
        }
        match self.params.full {
            Full::Refuse => None,
            Full::Random => servers.draw(|_| true, draws).map(|i| (i, Reason::Full)),
            Full::Shortest => servers.least(packets, draws).map(|(i, _)| (i, Reason::Full)),
        }
    }
}
