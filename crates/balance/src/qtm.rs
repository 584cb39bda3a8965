//! QTM: the shortest average queue.
//!
//! Equation 2 of the queue-lb paper: every second each queue's length enters an average,
//! `avg = (1 - w) avg + w length` with w = 0.5, and a new flow goes to the queue whose average is
//! least. Averages begin at 0, as the paper's flowchart has it; ties, of which the paper says nothing,
//! are broken at random. It has no threshold. All flows that begin within a period go to the same
//! server: with flows shorter than the period, the policy herds.

use super::{Backlog, Draws, Flow, PERIOD, Pick, Policy, Sight, period, period_word};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use sojourn_units::quantity::format_time;
use sojourn_units::words::{Given, Kind, Table, Word, WordError};

/// The words of `qtm`.
pub const TABLE: Table = Table {
    name: "qtm",
    summary: "the shortest average queue, sampled once a period",
    source: "queue-length load balancing (the queue-lb paper), equation 2",
    words: &[
        Word {
            name: "weight",
            kind: Kind::Probability,
            default: "0.5",
            doc: "Weight of a new sample in the average.",
        },
        period_word("1s"),
    ],
};

/// Weight and period of the average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Weight of a new sample.
    pub weight: f64,
    /// Time from one sample to the next.
    pub period: Nanos,
}

impl Default for Params {
    fn default() -> Self {
        Self { weight: 0.5, period: PERIOD }
    }
}

impl Params {
    pub(super) fn read(given: &Given) -> Result<Self, WordError> {
        let default = Self::default();
        let weight = given.real("weight").unwrap_or(default.weight);
        Ok(Self { weight, period: period(given, default.period, 1)? })
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "qtm weight {} period {}", self.weight, format_time(self.period))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Qtm {
    params: Params,
    /// Average packets of each queue; none while it has never been read.
    average: Vec<Option<f64>>,
}

impl Qtm {
    /// A new one for so many servers.
    pub fn new(params: Params, servers: usize) -> Self {
        Self { params, average: vec![None; servers] }
    }
}

impl Policy for Qtm {
    type View = Backlog;

    fn observe(&mut self, _now: Nanos, sight: &Sight<'_, Backlog>) {
        let w = self.params.weight;
        for (i, average) in self.average.iter_mut().enumerate() {
            *average = sight
                .get(i)
                .map(|seen| (1.0 - w) * average.unwrap_or(0.0) + w * seen.packets as f64);
        }
    }

    fn choose(
        &mut self,
        _now: Nanos,
        _flow: &Flow,
        sight: &Sight<'_, Backlog>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        sight.least(|i| self.average[i], draws)
    }

    /// A server that comes back begins anew.
    fn changed(&mut self, sight: &Sight<'_, Backlog>) {
        for (i, average) in self.average.iter_mut().enumerate() {
            if sight.get(i).is_none() {
                *average = None;
            }
        }
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &'static str, f64)) {
        for (i, average) in self.average.iter().enumerate() {
            visit(i, "average", average.unwrap_or(f64::NAN));
        }
    }
}
