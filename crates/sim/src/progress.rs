//! The progress of a run, and the reasons of failures.

use sojourn_measure::Imbalance;
use sojourn_plan::{PlanError, PlanErrors};
use sojourn_units::Nanos;
use sojourn_units::time::seconds;

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time since the run's start.
    pub now: Nanos,
    /// Simulated time from the run's start to its end.
    pub duration: Nanos,
    /// Number of events so far.
    pub events: u64,
    /// Number of events that the event loop processed. It is lower than `events` if some links need
    /// no events of their own.
    pub processed: u64,
    /// Begun and total number of requests, if all applications end with their last request.
    pub work: Option<(u64, u64)>,
}

impl Progress {
    /// Returns the larger one of two shares from 0 to 1: of the duration and of the requests.
    pub fn fraction(&self) -> f64 {
        let work = self.work.map_or(0.0, |(done, total)| done as f64 / total.max(1) as f64);
        (self.now as f64 / self.duration as f64).max(work)
    }
}

/// The caller's decision after a report of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Continue the run.
    Continue,
    /// Stop now; the record contains the results so far.
    Stop,
}

/// The reason for which a run has no record.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The plan cannot be run.
    #[error(transparent)]
    Plan(#[from] PlanErrors),
    /// An audit found that a ledger does not balance: a bug of the simulator.
    #[error(transparent)]
    Conservation(#[from] Imbalance),
    /// Too many events at one instant, such as packets that circulate without rate and delay.
    #[error(
        "stopped at {} s: too many events at one instant. The usual cause is a loop of links \
         without rate and delay: give one of them a delay",
        seconds(*at)
    )]
    NoProgress {
        /// The instant, counted from the run's start.
        at: Nanos,
    },
}

impl From<PlanError> for RunError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error.into())
    }
}
