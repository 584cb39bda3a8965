//! QTM: the shortest average queue.
//!
//! Equation 2 of the queue-lb paper: once per second the length of each queue enters an average,
//! `avg = (1 - w) avg + w length` with w = 0.5, and a new flow goes to the queue with the least
//! average. Averages begin at 0, as in the paper's flow chart. The paper does not define ties; here
//! they are broken at random. There is no threshold. Without a tie, all flows that begin in one
//! period go to the same server. With flows shorter than the period, the policy therefore overloads
//! one server after another.

use crate::contract::{Policy, PolicyParams, Request};
use crate::facts::Backlog;
use crate::needs::{Freshness, Needs, Signal, span};
use crate::pick::Pick;
use crate::view::Servers;
use sojourn_units::declare::probability;
use sojourn_units::{Nanos, params};

params! {
    "qtm": "the shortest average queue; queue lengths are read once per period",
    from "queue-length load balancing (the queue-lb paper), equation 2";

    /// Weight and period of the average.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Weight of a new reading in the average.
        weight: f64 = probability("0.5"),
        /// Time between two readings.
        period: Nanos = span("1s"),
    }
}

impl PolicyParams for Params {
    type Policy = Qtm;

    fn needs(&self) -> Needs {
        Needs::read(Signal::Backlog, Freshness::Averaged { period: self.period })
    }

    fn build(&self, servers: usize, _key: u64) -> Qtm {
        Qtm { params: *self, average: vec![None; servers] }
    }
}

/// The policy of one balancer.
#[derive(Clone, Debug)]
pub struct Qtm {
    params: Params,
    /// Average length of each queue in packets; `None` before the first reading.
    average: Vec<Option<f64>>,
}

impl Policy for Qtm {
    type View = Backlog;

    fn observe(&mut self, _now: Nanos, servers: &Servers<'_, Backlog>) {
        let w = self.params.weight;
        for (i, average) in self.average.iter_mut().enumerate() {
            *average = servers
                .get(i)
                .map(|seen| (1.0 - w) * average.unwrap_or(0.0) + w * seen.packets as f64);
        }
    }

    fn choose(&mut self, Request { servers, draws, .. }: Request<'_, Backlog>) -> Option<Pick> {
        servers.least(|i| self.average[i], draws)
    }

    /// Resets the averages of servers that have no readings, since they were down.
    fn changed(&mut self, servers: &Servers<'_, Backlog>) {
        for (i, average) in self.average.iter_mut().enumerate() {
            if servers.get(i).is_none() {
                *average = None;
            }
        }
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        for (i, average) in self.average.iter().enumerate() {
            visit(i, "average", average.unwrap_or(f64::NAN));
        }
    }
}
