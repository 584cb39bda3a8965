//! How a run goes on, and why it may fail.

use sojourn_measure::Imbalance;
use sojourn_plan::{PlanError, PlanErrors};
use sojourn_units::Nanos;
use std::fmt;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time since the start.
    pub now: Nanos,
    /// Simulated time at the end.
    pub duration: Nanos,
    /// Events so far.
    pub events: u64,
    /// Events that took a turn of the event loop. Links that cost no event of their own save some.
    pub processed: u64,
}

impl Progress {
    /// The share of simulated time that is done.
    pub fn fraction(&self) -> f64 {
        self.now as f64 / self.duration as f64
    }
}

/// The caller's decision after a report of the progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Stop now and keep what is done.
    Stop,
}

/// Why there is no record.
#[derive(Clone, Debug, PartialEq)]
pub enum RunError {
    /// The plan cannot be run.
    Plan(PlanErrors),
    /// The books did not balance: a bug of the simulator.
    Conservation(Imbalance),
    /// More events at one instant than any scenario can mean: components call each other in a ring.
    NoProgress {
        /// The instant, since the start.
        at: Nanos,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::Conservation(error) => error.fmt(f),
            Self::NoProgress { at } => write!(
                f,
                "time stands still at {} s: do packets go round without rate and delay?",
                sojourn_units::time::seconds(*at)
            ),
        }
    }
}

impl std::error::Error for RunError {}

impl From<PlanErrors> for RunError {
    fn from(errors: PlanErrors) -> Self {
        Self::Plan(errors)
    }
}

impl From<PlanError> for RunError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error.into())
    }
}

impl From<Imbalance> for RunError {
    fn from(error: Imbalance) -> Self {
        Self::Conservation(error)
    }
}
