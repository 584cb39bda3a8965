//! Random durations, from a distribution or from measured values.

use crate::distribution::{Distribution, Unit};
use crate::stream::Stream;
use sojourn_units::words::WordError;
use sojourn_units::{Nanos, SECOND, data};
use std::sync::Arc;

/// A distribution of measured durations. Each duration is drawn in proportion to its frequency.
#[data]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(try_from = "Vec<(Nanos, u64)>", into = "Vec<(Nanos, u64)>")]
pub struct Measured {
    /// Durations in ascending order, in nanoseconds. Each has the number of measurements up to and
    /// including it.
    steps: Arc<[(Nanos, u64)]>,
}

impl TryFrom<Vec<(Nanos, u64)>> for Measured {
    type Error = String;
    fn try_from(counts: Vec<(Nanos, u64)>) -> Result<Self, String> {
        Self::new(&counts)
    }
}

impl From<Measured> for Vec<(Nanos, u64)> {
    fn from(measured: Measured) -> Self {
        let mut before = 0;
        let own = |&(span, upto): &(Nanos, u64)| {
            let count = upto - before;
            before = upto;
            (span, count)
        };
        measured.steps.iter().map(own).collect()
    }
}

impl Measured {
    /// Maximum number of different durations.
    pub const MOST: usize = 100_000;
    /// Maximum duration, in nanoseconds.
    pub const LONGEST: Nanos = 60 * SECOND;

    /// Returns the distribution of these durations, each given in nanoseconds with its number of
    /// measurements.
    ///
    /// # Errors
    /// If the list is empty, too long or not in ascending order, a number is 0, or a duration is
    /// too long.
    pub fn new(counts: &[(Nanos, u64)]) -> Result<Self, String> {
        if counts.is_empty() || counts.len() > Self::MOST {
            let found = counts.len();
            return Err(format!("needs 1 to {} different durations; found {found}", Self::MOST));
        }
        let mut steps: Vec<(Nanos, u64)> = Vec::with_capacity(counts.len());
        for &(span, count) in counts {
            let (last, upto) = steps.last().map_or((None, 0), |&(span, upto)| (Some(span), upto));
            if last.is_some_and(|last| last >= span) {
                return Err("the durations must be different and in ascending order".to_owned());
            }
            if span > Self::LONGEST {
                return Err("a duration must be at most 60s".to_owned());
            }
            let Some(upto) = upto.checked_add(count).filter(|_| count > 0) else {
                return Err("counts must be above 0, and their sum below 2^64".to_owned());
            };
            steps.push((span, upto));
        }
        Ok(Self { steps: steps.into() })
    }

    /// Returns the total number of measurements.
    fn total(&self) -> u64 {
        self.steps[self.steps.len() - 1].1
    }

    /// Returns the mean in nanoseconds.
    pub fn mean(&self) -> f64 {
        let (mut sum, mut before) = (0.0, 0);
        for &(span, upto) in self.steps.iter() {
            sum += span as f64 * (upto - before) as f64;
            before = upto;
        }
        sum / self.total() as f64
    }

    /// Draws a duration in nanoseconds.
    fn sample(&self, draws: &mut Stream) -> Nanos {
        let number = draws.below(self.total());
        self.steps[self.steps.partition_point(|&(_, upto)| upto <= number)].0
    }
}

/// A source of random durations.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(untagged)]
pub enum Span {
    /// Durations from a distribution.
    Law(Distribution),
    /// Measured durations.
    Measured {
        /// The measured durations.
        measured: Measured,
    },
    /// Measured durations of a file that has not been read yet.
    File {
        /// Name of the file.
        file: String,
    },
}

impl Span {
    /// A duration of always zero.
    pub const ZERO: Self = Self::Law(Distribution::Const { value: 0.0 });

    /// Parses a time, a distribution such as `exp(200us)`, or `measured(FILE)`.
    ///
    /// # Errors
    /// If [`Distribution::parse`] fails, or the file name is empty or contains parentheses.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        match text.strip_prefix("measured(").and_then(|rest| rest.strip_suffix(')')) {
            Some(file) if file.is_empty() || file.contains(['(', ')']) => Err(WordError {
                message: "`measured` needs a file without parentheses in its name, such as \
                          measured(stalls.txt)"
                    .to_owned(),
                at: 0..text.len(),
                found: text.to_owned(),
                allowed: vec!["measured(FILE)".to_owned()],
                nearest: None,
            }),
            Some(file) => Ok(Self::File { file: file.to_owned() }),
            None => Distribution::parse(text, Unit::Time).map(Self::Law),
        }
    }

    /// Returns a text that [`Span::parse`] parses to this value; `None` if a file was read.
    pub fn format(&self) -> Option<String> {
        match self {
            Self::Law(law) => Some(law.format(Unit::Time)),
            Self::Measured { .. } => None,
            Self::File { file } => Some(format!("measured({file})")),
        }
    }

    /// Returns whether this is the constant 0, for which no random number is drawn.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Returns the mean in nanoseconds; 0 for a file that has not been read.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Law(law) => law.mean(),
            Self::Measured { measured } => measured.mean(),
            Self::File { .. } => 0.0,
        }
    }

    /// Checks a value that did not come from a text.
    ///
    /// # Errors
    /// If [`Distribution::check`] fails, the mean is not between 0 and 60 s, or a file has not been
    /// read.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Law(law) => {
                law.check()?;
                if !(0.0..=Measured::LONGEST as f64).contains(&law.mean()) {
                    return Err("the distribution's mean must be between 0 and 60s".to_owned());
                }
                Ok(())
            }
            Self::Measured { .. } => Ok(()),
            Self::File { file } => Err(format!("the file `{file}` has not been read")),
        }
    }

    /// Draws a duration in nanoseconds, at most 60 s; 0 for a file that has not been read.
    #[inline]
    pub fn sample(&self, draws: &mut Stream) -> Nanos {
        match self {
            Self::Law(law) => law.sample_nanos(draws).min(Measured::LONGEST),
            Self::Measured { measured } => measured.sample(draws),
            Self::File { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use sojourn_units::{MICROSECOND, MILLISECOND};

    #[test]
    fn measured_spans_are_drawn_as_often_as_they_were_found() {
        let counts = [(0, 70), (MICROSECOND, 20), (MILLISECOND, 10)];
        let measured = Measured::new(&counts).unwrap();
        assert!((measured.mean() - 100_200.0).abs() < 1e-6, "{}", measured.mean());
        let span = Span::Measured { measured };
        let mut draws = Key::new(1, "host").stream("late");
        let mut found = [0; 3];
        for _ in 0..100_000 {
            let drawn = span.sample(&mut draws);
            found[counts.iter().position(|&(span, _)| span == drawn).unwrap()] += 1;
        }
        for (found, (_, count)) in found.into_iter().zip(counts) {
            assert!((found - count as i64 * 1000).abs() < 700, "{found} of {count}");
        }
    }

    #[test]
    fn a_span_reads_what_it_writes() {
        for text in ["const(200us)", "exp(200us)", "pareto2(1ms,1.5)", "measured(stalls.txt)"] {
            assert_eq!(Span::parse(text).unwrap().format().as_deref(), Some(text));
        }
        assert!(Span::parse("0").unwrap().is_zero());
        assert!(Span::parse("measured(a(1).txt)").is_err());
        assert_eq!(Span::parse("measured()").unwrap_err().allowed, ["measured(FILE)"]);
        assert!(Span::parse("measured(a.txt)").unwrap().check().is_err());
        assert!(Span::parse("exp(2ms)").unwrap().check().is_ok());
    }

    #[test]
    fn wrong_counts_are_refused() {
        for counts in [&[][..], &[(2, 1), (2, 1)], &[(1, 0)], &[(Measured::LONGEST + 1, 1)]] {
            assert!(Measured::new(counts).is_err(), "{counts:?}");
        }
        assert!(Measured::new(&[(1, u64::MAX), (2, 1)]).is_err());
    }
}
