//! The queue that a packet would leave first: backlog over rate.
//!
//! A queue of 50 packets before 100 Mbit/s is shorter in time than one of 20 packets before 10 Mbit/s.
//! A full frame of the new flow is counted in, so that of two empty queues the faster one is taken. A
//! port whose rate is not known counts as one of its server's weight in Mbit/s.

use super::{Backlog, Draws, Flow, Fresh, Pick, Policy, Sight, period, period_word};
use serde::{Deserialize, Serialize};
use sojourn_units::quantity::format_time;
use sojourn_units::words::{Given, Table, WordError};
use sojourn_units::{Nanos, Rate};

/// The words of `queue-delay`.
pub const TABLE: Table = Table {
    name: "queue-delay",
    summary: "the queue with the least backlog over rate: the shortest wait",
    source: "shortest expected delay; Banawan and Zahorjan 1989",
    words: &[period_word("0s")],
};

/// A full Ethernet frame.
const FRAME: u64 = 1514;

/// Age of the information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time from one reading to the next; 0 for one at each choice.
    pub period: Nanos,
}

impl Params {
    pub(super) fn read(given: &Given) -> Result<Self, WordError> {
        Ok(Self { period: period(given, 0, 0)? })
    }

    pub(super) fn fresh(self) -> Fresh {
        Fresh::every(self.period)
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "queue-delay period {}", format_time(self.period))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct QueueDelay;

impl Policy for QueueDelay {
    type View = Backlog;

    fn choose(
        &mut self,
        _now: Nanos,
        _flow: &Flow,
        sight: &Sight<'_, Backlog>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        let delay = |i| {
            let seen: Backlog = sight.get(i)?;
            let assumed = u64::from(sight.weight(i)) * 1_000_000;
            let rate = seen.rate.map_or(assumed, Rate::bits);
            Some(seen.bytes.saturating_add(FRAME) as f64 * 8.0 / rate as f64)
        };
        sight.least(delay, draws)
    }
}
