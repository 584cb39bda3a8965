//! The server whose port has sent the fewest packets of late.
//!
//! The paper's SLPLB, defined in words only: polling period and load as the packets sent since the last poll
//! are a reconstruction.
//!
//! The load is known once two readings have been taken; before that servers are drawn. All flows that
//! begin within a period go to the same server, which is then the busiest one: with flows shorter than
//! the period, the policy herds. Once all ports are saturated, the slowest one has the least load.

use super::rates::Rates;
use super::{Counters, Draws, Flow, PERIOD, Pick, Policy, Sight, period, period_word};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use sojourn_units::quantity::format_time;
use sojourn_units::words::{Given, Table, WordError};

/// The words of `least-packets`.
pub const TABLE: Table = Table {
    name: "least-packets",
    summary: "the server whose port has sent the fewest packets in the last period (SLPLB)",
    source: "queue-length load balancing (the queue-lb paper), reconstructed",
    words: &[period_word("1s")],
};

/// The polling period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time from one reading of the counters to the next.
    pub period: Nanos,
}

impl Default for Params {
    fn default() -> Self {
        Self { period: PERIOD }
    }
}

impl Params {
    pub(super) fn read(given: &Given) -> Result<Self, WordError> {
        Ok(Self { period: period(given, PERIOD, 1)? })
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "least-packets period {}", format_time(self.period))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct LeastPackets(Rates);

impl LeastPackets {
    /// A new one for so many servers.
    pub fn new(servers: usize) -> Self {
        Self(Rates::new(servers))
    }
}

impl Policy for LeastPackets {
    type View = Counters;

    fn observe(&mut self, now: Nanos, sight: &Sight<'_, Counters>) {
        self.0.observe(now, sight, |counters| counters.packets);
    }

    fn choose(
        &mut self,
        _now: Nanos,
        _flow: &Flow,
        sight: &Sight<'_, Counters>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        self.0.choose(sight, draws)
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &'static str, f64)) {
        // In packets a second.
        self.0.state("load", visit);
    }
}
