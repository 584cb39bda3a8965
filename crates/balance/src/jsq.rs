//! Join the shortest queue.
//!
//! The fewest packets, ties by draw. With queues of one rate and true lengths nothing does better on
//! the mean in heavy traffic; with old lengths all flows of a period join the same queue (Mitzenmacher,
//! "How useful is old information?").

use super::{Backlog, Draws, Flow, Fresh, Pick, Policy, Sight, period, period_word};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use sojourn_units::quantity::format_time;
use sojourn_units::words::{Given, Table, WordError};

/// The words of `jsq`.
pub const TABLE: Table = Table {
    name: "jsq",
    summary: "join the shortest queue",
    source: "Winston 1977; Mitzenmacher 2000 on its use of old lengths",
    words: &[period_word("0s")],
};

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
        write!(f, "jsq period {}", format_time(self.period))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Jsq;

impl Policy for Jsq {
    type View = Backlog;

    fn choose(
        &mut self,
        _now: Nanos,
        _flow: &Flow,
        sight: &Sight<'_, Backlog>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        sight.least(|i| sight.get(i).map(|backlog| backlog.packets), draws)
    }
}
