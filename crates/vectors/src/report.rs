//! Results of replays.

use serde::Serialize;
use std::fmt;

/// Outcome of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// All results equal the recorded ones.
    Agrees,
    /// A result differs.
    Differs {
        /// Line of the text, from 1.
        line: usize,
        /// Compared quantity.
        what: String,
        /// Recorded value.
        expected: String,
        /// Value found.
        found: String,
    },
    /// The text is not a complete scenario in the format.
    Malformed {
        /// Line of the text, from 1.
        line: usize,
        /// Description of the error.
        why: String,
    },
    /// The discipline of the scenario does not exist here; the scenario was not replayed.
    UnknownDiscipline,
}

impl Outcome {
    pub(crate) fn malformed(line: usize, why: impl Into<String>) -> Self {
        Self::Malformed { line, why: why.into() }
    }

    pub(crate) fn differs(
        line: usize,
        what: impl Into<String>,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        Self::Differs {
            line,
            what: what.into(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agrees => write!(f, "agrees"),
            Self::Differs { line, what, expected, found } => {
                write!(f, "line {line}: {what}: recorded {expected}, found {found}")
            }
            Self::Malformed { line, why } => write!(f, "line {line}: malformed: {why}"),
            Self::UnknownDiscipline => write!(f, "unknown discipline"),
        }
    }
}

/// Times of the recorded timers, compared with the times at which Linux's timer wheel would fire
/// them. Recordings may fire timers at any time, so this is reported but not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timers {
    /// Number of timers at exactly this time.
    pub on_time: usize,
    /// Number of timers after it.
    pub late: usize,
    /// Number of timers before it.
    pub early: usize,
}

/// Result of the replay of one scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the discipline.
    pub discipline: String,
    /// Number of operations that agreed.
    pub operations: usize,
    /// Punctuality of the periodic task.
    pub timers: Timers,
    /// Outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}): {}, {} operations",
            self.scenario, self.discipline, self.outcome, self.operations
        )
    }
}
