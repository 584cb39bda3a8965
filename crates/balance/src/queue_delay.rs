//! The queue in which a new packet would wait the shortest time: backlog over rate.
//!
//! A queue of 50 packets on a link of 100 Mbit/s has a shorter delay than a queue of 20 packets on
//! a link of 10 Mbit/s. The backlog includes one full frame of the new flow, so that among empty
//! queues the one with the fastest link is chosen. If the rate of a port is unknown, it is assumed
//! to be 1 Mbit/s times the server's weight.

use crate::contract::{Policy, PolicyParams, Request};
use crate::facts::Backlog;
use crate::needs::{Freshness, Needs, Signal, period};
use crate::pick::Pick;
use sojourn_units::{Nanos, Rate, params};

params! {
    "queue-delay": "the queue with the shortest wait, which is its backlog over its rate",
    from "shortest expected delay; Banawan and Zahorjan 1989";

    /// Period of readings.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Time between two readings; with 0s, the queues are read at each choice.
        period: Nanos = period(),
    }
}

impl PolicyParams for Params {
    type Policy = QueueDelay;

    fn needs(&self) -> Needs {
        Needs { rates: true, ..Needs::read(Signal::Backlog, Freshness::every(self.period)) }
    }

    fn build(&self, _servers: usize, _key: u64) -> QueueDelay {
        QueueDelay
    }
}

/// Length of a full Ethernet frame in bytes.
const FRAME: u64 = 1514;

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct QueueDelay;

impl Policy for QueueDelay {
    type View = Backlog;

    fn choose(&mut self, Request { servers, draws, .. }: Request<'_, Backlog>) -> Option<Pick> {
        let delay = |i| {
            let seen: Backlog = servers.get(i)?;
            let assumed = u64::from(servers.weight(i)) * 1_000_000;
            let rate = seen.rate.map_or(assumed, Rate::bits);
            Some(seen.bytes.saturating_add(FRAME) as f64 * 8.0 / rate as f64)
        };
        servers.least(delay, draws)
    }
}
