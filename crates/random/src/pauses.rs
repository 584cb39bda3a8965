//! Pauses: intervals in which a worker does nothing, for example because of garbage collection, a
//! disk write, or an exhausted CPU quota.

use crate::stream::Stream;
use sojourn_units::{Nanos, data};

/// Parameters of pauses of one kind.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Mean time from the start of one pause to the start of the next, in nanoseconds.
    pub every: Nanos,
    /// Mean length of a pause, in nanoseconds.
    pub length: Nanos,
    /// Relative deviation of both times, 0 to 1: each is drawn uniformly, from its mean multiplied
    /// by (1 - jitter) to its mean multiplied by (1 + jitter).
    #[serde(default)]
    pub jitter: f64,
}

impl Pause {
    /// Checks the parameters.
    ///
    /// # Errors
    /// If a parameter is not allowed.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.length >= self.every {
            return Err("a pause must be shorter than the time between the starts of two pauses");
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err("the jitter of a pause must be between 0 and 1");
        }
        Ok(())
    }
}

/// Random process of the pauses of one kind.
pub trait Rhythm {
    /// Draws the start of the first pause, in nanoseconds.
    fn first(&self, draws: &mut Stream) -> Nanos;

    /// Draws the time from the start of a pause to the start of the next, in nanoseconds.
    fn every(&self, draws: &mut Stream) -> Nanos;

    /// Draws the length of a pause, in nanoseconds.
    fn length(&self, draws: &mut Stream) -> Nanos;
}

impl Pause {
    fn drawn(&self, mean: Nanos, draws: &mut Stream) -> Nanos {
        if self.jitter == 0.0 {
            return mean;
        }
        (mean as f64 * (1.0 + self.jitter * (2.0 * draws.uniform() - 1.0))) as Nanos
    }
}

impl Rhythm for Pause {
    /// With jitter, the first pause begins at a random time in the first interval, so that the
    /// pauses of several workers are not synchronised.
    fn first(&self, draws: &mut Stream) -> Nanos {
        if self.jitter > 0.0 { draws.below(self.every) } else { self.every }
    }

    fn every(&self, draws: &mut Stream) -> Nanos {
        self.drawn(self.every, draws)
    }

    fn length(&self, draws: &mut Stream) -> Nanos {
        self.drawn(self.length, draws)
    }
}

/// The sequence of pauses of one kind. It holds the current pause, or the next one.
#[derive(Clone, Debug)]
pub struct Pauses<R = Pause> {
    rhythm: R,
    draws: Stream,
    /// Start of the current or next pause, in nanoseconds.
    pub start: Nanos,
    /// End of the current or next pause, in nanoseconds.
    pub end: Nanos,
}

impl<R: Rhythm> Pauses<R> {
    /// Returns a sequence that holds its first pause.
    pub fn new(rhythm: R, mut draws: Stream) -> Self {
        let start = rhythm.first(&mut draws);
        let end = start + rhythm.length(&mut draws);
        Self { rhythm, draws, start, end }
    }

    /// Advances to the first pause that ends after `now`.
    pub fn advance(&mut self, now: Nanos) {
        while self.end <= now {
            let next = self.start + self.rhythm.every(&mut self.draws);
            self.start = next.max(self.end);
            self.end = self.start + self.rhythm.length(&mut self.draws);
        }
    }

    /// Returns the end of the current pause at `now`; `None` if `now` is not in a pause.
    pub fn ends(&mut self, now: Nanos) -> Option<Nanos> {
        self.advance(now);
        (self.start <= now).then_some(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn pauses_follow_each_other() {
        let millis = |n: Nanos| n * 1_000_000;
        let pause = Pause { every: millis(100), length: millis(30), jitter: 0.0 };
        let mut regular = Pauses::new(pause, Key::new(1, "x").stream("pauses"));
        assert_eq!(regular.ends(0), None);
        assert_eq!(regular.ends(millis(100)), Some(millis(130)));
        assert_eq!(regular.ends(millis(130)), None);
        assert_eq!(regular.ends(millis(515)), Some(millis(530)));
        let pause = Pause { jitter: 0.3, ..pause };
        let mut drawn = Pauses::new(pause, Key::new(1, "x").stream("pauses"));
        let paused = (0..100_000).filter(|&ms| drawn.ends(millis(ms)).is_some()).count();
        assert!((27_000..33_000).contains(&paused), "{paused}");
    }
}
