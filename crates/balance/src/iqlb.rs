//! IQLB: the shortest queue below a threshold.
//!
//! Equation 1 of the queue-lb paper: of the ports whose queue holds less than 80 % of what it may hold,
//! the one with the fewest packets; of several with as few, one at random. The paper does not say what
//! happens when all queues are above the threshold: here `full` does, by default the shortest one.
//! A queue without a known limit is never above it.

use super::{Backlog, Draws, Flow, Fresh, Pick, Policy, Reason, Sight, period, period_word};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use sojourn_units::quantity::format_time;
use sojourn_units::words::{Given, Kind, Meaning, Table, Word, WordError};

/// The words of `iqlb`.
pub const TABLE: Table = Table {
    name: "iqlb",
    summary: "the shortest queue below a threshold, as it is when the flow begins",
    source: "queue-length load balancing (the queue-lb paper), equation 1",
    words: &[
        Word {
            name: "threshold",
            kind: Kind::Probability,
            default: "0.8",
            doc: "Share of a queue's limit from which on it gets no new flow.",
        },
        Word {
            name: "full",
            kind: Kind::Named { of: FULL },
            default: "shortest",
            doc: "What happens when all queues are above the threshold.",
        },
        period_word("0s"),
    ],
};

const FULL: &[Meaning] = &[
    Meaning { name: "shortest", doc: "The shortest queue of all." },
    Meaning { name: "random", doc: "Any server, by draw." },
    Meaning { name: "refuse", doc: "None: the flow is turned away." },
];

/// What happens when all queues are above the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Full {
    /// The shortest queue of all.
    #[default]
    Shortest,
    /// Any server, by draw.
    Random,
    /// None: the flow is turned away.
    Refuse,
}

impl Full {
    fn name(self) -> &'static str {
        match self {
            Self::Shortest => "shortest",
            Self::Random => "random",
            Self::Refuse => "refuse",
        }
    }
}

/// Threshold and age of the information.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Share of a queue's limit from which on it gets no new flow.
    pub threshold: f64,
    /// What happens when all queues are above it.
    pub full: Full,
    /// Time from one reading to the next; 0 for one at each choice.
    pub period: Nanos,
}

impl Default for Params {
    fn default() -> Self {
        Self { threshold: 0.8, full: Full::Shortest, period: 0 }
    }
}

impl Params {
    pub(super) fn read(given: &Given) -> Result<Self, WordError> {
        let default = Self::default();
        let full = match given.text("full") {
            Some("random") => Full::Random,
            Some("refuse") => Full::Refuse,
            _ => Full::Shortest,
        };
        let threshold = given.real("threshold").unwrap_or(default.threshold);
        Ok(Self { threshold, full, period: period(given, default.period, 0)? })
    }

    pub(super) fn fresh(&self) -> Fresh {
        Fresh::every(self.period)
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { threshold, full, period } = self;
        write!(f, "iqlb threshold {threshold} full {} period {}", full.name(), format_time(*period))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Iqlb {
    params: Params,
}

impl Iqlb {
    /// A new one.
    pub fn new(params: Params) -> Self {
        Self { params }
    }
}

impl Policy for Iqlb {
    type View = Backlog;

    fn choose(
        &mut self,
        _now: Nanos,
        _flow: &Flow,
        sight: &Sight<'_, Backlog>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        let packets = |i| sight.get(i).map(|backlog| backlog.packets);
        let below =
            |i| sight.get(i).filter(|b| b.limit.is_none() || b.occupancy() < self.params.threshold);
        let found = sight.least_of(sight.up(), |i| below(i).map(|backlog| backlog.packets), draws);
        if found.is_some() || sight.up().all(|i| sight.get(i).is_none()) {
            return found.or_else(|| sight.least(packets, draws));
        }
        match self.params.full {
            Full::Refuse => None,
            Full::Random => sight.draw(|_| true, draws).map(|i| (i, Reason::Full)),
            Full::Shortest => sight.least(packets, draws).map(|(i, _)| (i, Reason::Full)),
        }
    }
}
