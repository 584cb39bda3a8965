//! Spans of time: drawn from a distribution, or measured.

use crate::distribution::{Distribution, Unit};
use crate::stream::Stream;
use serde::{Deserialize, Serialize};
use sojourn_units::words::WordError;
use sojourn_units::{Nanos, SECOND};
use std::sync::Arc;

/// Spans that were measured: each is drawn as often as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(Nanos, u64)>", into = "Vec<(Nanos, u64)>")]
pub struct Measured {
    /// Spans in their order, each with the number of those up to it.
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
    /// Different spans that are kept at most.
    pub const MOST: usize = 100_000;
    /// The longest span.
    pub const LONGEST: Nanos = 60 * SECOND;

    /// Spans, each with how often it was found.
    ///
    /// # Errors
    /// None at all, too many, out of order, one that was never found or is too long.
    pub fn new(counts: &[(Nanos, u64)]) -> Result<Self, String> {
        if counts.is_empty() || counts.len() > Self::MOST {
            let found = counts.len();
            return Err(format!("needs 1 to {} different spans; found {found}", Self::MOST));
        }
        let mut steps: Vec<(Nanos, u64)> = Vec::with_capacity(counts.len());
        for &(span, count) in counts {
            let (last, upto) = steps.last().map_or((None, 0), |&(span, upto)| (Some(span), upto));
            if last.is_some_and(|last| last >= span) {
                return Err("different spans stand in their order".to_owned());
            }
            if span > Self::LONGEST {
                return Err("a span is at most 60s".to_owned());
            }
            let Some(upto) = upto.checked_add(count).filter(|_| count > 0) else {
                return Err("counts are above 0, and their sum is below 2^64".to_owned());
            };
            steps.push((span, upto));
        }
        Ok(Self { steps: steps.into() })
    }

    /// How many spans were measured.
    fn total(&self) -> u64 {
        self.steps[self.steps.len() - 1].1
    }

    /// The mean, in nanoseconds.
    pub fn mean(&self) -> f64 {
        let (mut sum, mut before) = (0.0, 0);
        for &(span, upto) in self.steps.iter() {
            sum += span as f64 * (upto - before) as f64;
            before = upto;
        }
        sum / self.total() as f64
    }

    /// Draws one.
    fn sample(&self, draws: &mut Stream) -> Nanos {
        let number = draws.below(self.total());
        self.steps[self.steps.partition_point(|&(_, upto)| upto <= number)].0
    }
}

/// How spans of time are drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Span {
    /// From a distribution.
    Law(Distribution),
    /// From those that were measured.
    Measured {
        /// The spans.
        measured: Measured,
    },
    /// From a file that is still to be read.
    File {
        /// Its name.
        file: String,
    },
}

impl Span {
    /// No time.
    pub const ZERO: Self = Self::Law(Distribution::Const { value: 0.0 });

    /// Reads a time, a distribution such as `exp(200us)`, or `measured(FILE)`.
    ///
    /// # Errors
    /// As [`Distribution::parse`]; a file without a name, or with parentheses in it.
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

    /// The text that [`Span::parse`] reads back; `None` of spans that were measured.
    pub fn format(&self) -> Option<String> {
        match self {
            Self::Law(law) => Some(law.format(Unit::Time)),
            Self::Measured { .. } => None,
            Self::File { file } => Some(format!("measured({file})")),
        }
    }

    /// Whether it is always 0; nothing is drawn then.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// The mean in nanoseconds; 0 of a file.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Law(law) => law.mean(),
            Self::Measured { measured } => measured.mean(),
            Self::File { .. } => 0.0,
        }
    }

    /// Says what is wrong with numbers that do not come from a text, if anything is.
    ///
    /// # Errors
    /// As [`Distribution::check`]; a mean outside 0 to 60 s; a file that was not read.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Law(law) => {
                law.check()?;
                if !(0.0..=Measured::LONGEST as f64).contains(&law.mean()) {
                    return Err("its mean lies between 0 and 60s".to_owned());
                }
                Ok(())
            }
            Self::Measured { .. } => Ok(()),
            Self::File { file } => Err(format!("the file `{file}` has not been read")),
        }
    }

    /// Draws one; none is longer than a minute.
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
