//! The server whose port sent the fewest bytes in the last period.
//!
//! This is the policy LBW of the queue-lb paper. The paper cites Padilha and Batista (ETRI Journal
//! 41, 2019), who define the policy only in prose. The polling period, and the definition of the
//! load as the bytes sent between two polls, are a reconstruction.
//!
//! The load is known after two readings; until then servers are chosen at random. Without a tie,
//! all flows that begin in one period go to the least loaded server, which then becomes the busiest
//! one. With flows shorter than the period, the policy therefore overloads one server after
//! another. If all ports are saturated, the slowest port has the least load. Loads are divided by the
//! servers' weights: with the ports' rates as weights, the policy compares utilisations.

use crate::contract::PolicyParams;
use crate::needs::{Freshness, Needs, Signal, span};
use crate::rates::Rates;
use sojourn_units::{Nanos, params};

params! {
    "least-bandwidth": "the server whose port has sent the fewest bytes in the last period (LBW)",
    from "queue-length load balancing (the queue-lb paper), reconstructed";

    /// Period of readings.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Time between two readings of the counters.
        period: Nanos = span("1s"),
    }
}

impl PolicyParams for Params {
    type Policy = Rates;

    fn needs(&self) -> Needs {
        let freshness = Freshness::Sampled { period: self.period };
        Needs { weights: true, ..Needs::read(Signal::Counters, freshness) }
    }

    fn build(&self, servers: usize, _key: u64) -> Rates {
        Rates::new(servers, |counters| counters.bytes)
    }
}
