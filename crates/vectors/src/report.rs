//! What a replay found.

use serde::Serialize;
use std::fmt;

/// How a replay ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// Everything recorded came out the same.
    Agrees,
    /// Something came out otherwise.
    Differs {
        /// Line of the text, from 1.
        line: usize,
        /// What was compared.
        what: String,
        /// What was recorded.
        expected: String,
        /// What came out.
        found: String,
    },
    /// The text is not a complete scenario in the format.
    Malformed {
        /// Line of the text, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The scenario is of a discipline that is not here; it was not replayed.
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

/// When the recorded timers fired, against when Linux's timer wheel fires what the discipline asked
/// for. Recordings may fire them at any time, so this is told but not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timers {
    /// At the very time.
    pub on_time: usize,
    /// After it.
    pub late: usize,
    /// Before it.
    pub early: usize,
}

/// The result of replaying one scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// The discipline's name.
    pub discipline: String,
    /// Operations that agreed.
    pub operations: usize,
    /// The periodic task's punctuality.
    pub timers: Timers,
    /// How it ended.
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
