//! Errors of a plan, with their paths in it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

/// A step of a path in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Name of a field.
    Key(&'static str),
    /// Index of an element.
    Index(usize),
}

impl From<&'static str> for Segment {
    fn from(key: &'static str) -> Self {
        Self::Key(key)
    }
}

impl From<usize> for Segment {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// A path to a value in a plan, such as `groups[2].pairs[0]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(pub Vec<Segment>);

impl Path {
    /// Returns this path, extended by one step.
    #[must_use]
    pub fn join(&self, step: impl Into<Segment>) -> Self {
        let mut steps = self.0.clone();
        steps.push(step.into());
        Self(steps)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Segment::Key(key) if i == 0 => write!(f, "{key}")?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Returns the [`Path`] with the given steps, such as `at!["groups", 2, "stop"]`.
#[macro_export]
macro_rules! at {
    ($($step:expr),* $(,)?) => { $crate::Path(vec![$($crate::Segment::from($step)),*]) };
}

/// One error of a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct PlanError {
    /// Path of the wrong value.
    pub at: Path,
    /// Explanation of the error.
    pub message: String,
}

impl PlanError {
    /// Returns an error about the value at a path.
    pub fn new(at: Path, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// The errors of a plan, at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct PlanErrors(pub Vec<PlanError>);

impl From<PlanError> for PlanErrors {
    fn from(error: PlanError) -> Self {
        Self(vec![error])
    }
}

/// Maximum number of collected errors.
const MOST: usize = 200;

/// Collects errors.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<PlanError>);

impl Problems {
    /// Adds an error, unless there are already [`MOST`].
    pub fn add(&mut self, at: Path, message: impl Into<String>) {
        if self.0.len() < MOST {
            self.0.push(PlanError::new(at, message));
        }
    }

    /// Adds an error if a check failed.
    pub fn add_failed(&mut self, at: Path, result: Result<(), impl Into<String>>) {
        if let Err(message) = result {
            self.add(at, message);
        }
    }

    /// Adds an error if a number exceeds its limit.
    pub fn at_most(&mut self, at: Path, what: &str, n: u64, limit: u64) {
        if n > limit {
            self.add(at, format!("{n} {what}: at most {limit} are allowed"));
        }
    }

    /// Adds an error if an index is out of range.
    pub fn index(&mut self, at: Path, what: &str, index: usize, count: usize) {
        if index >= count {
            self.add(at, format!("there is no {what} {index}; there are only {count}"));
        }
    }

    /// Returns `Err` with all errors, or `Ok` without errors.
    pub fn result(&mut self) -> Result<(), PlanErrors> {
        if self.0.is_empty() { Ok(()) } else { Err(PlanErrors(std::mem::take(&mut self.0))) }
    }
}

/// Names that are in use, each with the kind of its owner.
#[derive(Debug, Default)]
pub(crate) struct Names<'a>(BTreeMap<&'a str, &'static str>);

impl<'a> Names<'a> {
    /// Records the name of an object of the kind `kind`, such as "a link". Adds an error if the
    /// name is empty or in use.
    pub fn give(
        &mut self,
        problems: &mut Problems,
        at: impl Fn() -> Path,
        name: &'a str,
        kind: &'static str,
    ) {
        if name.is_empty() {
            problems.add(at(), "is empty");
        }
        match self.0.entry(name) {
            Entry::Vacant(free) => drop(free.insert(kind)),
            Entry::Occupied(taken) => {
                let other = taken.get();
                problems.add(at(), format!("the name `{name}` is already the name of {other}"));
            }
        }
    }
}
