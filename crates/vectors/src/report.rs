//! Results of replays.

use serde::Serialize;
use std::fmt;

/// Outcome of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// All results equal the recorded ones.
    Agrees,
    /// The first result that differs from the recorded one.
    Differs {
        /// Line number in the text, from 1.
        line: usize,
        /// Name of the compared quantity.
        what: String,
        /// Recorded value.
        expected: String,
        /// Value in the replay.
        found: String,
    },
    /// The text is not a complete scenario in the format `aqm-vectors/1`.
    Malformed {
        /// Line number in the text, from 1.
        line: usize,
        /// Description of the error.
        why: String,
    },
    /// The project does not implement the scenario's discipline, so the scenario was not replayed.
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

/// Numbers of recorded timers, by comparison with the time at which Linux's timer wheel would fire
/// each. A recording may fire timers at any time, so a difference is reported but is not an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timers {
    /// Number of timers recorded at the wheel's time, or at a high-resolution timer's due time.
    pub on_time: usize,
    /// Number of recorded timers that the timer wheel would fire later than recorded.
    pub late: usize,
    /// Number of recorded timers that the timer wheel would fire earlier than recorded.
    pub early: usize,
}

/// Result of the replay of one scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the discipline.
    pub discipline: String,
    /// Number of operations that were replayed without a difference.
    pub operations: usize,
    /// Times of the periodic task's timers.
    pub timers: Timers,
    /// Outcome of the replay.
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
