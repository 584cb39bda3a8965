//! A handler that takes messages out of a buffer, at a speed that fluctuates.

use serde::{Deserialize, Serialize};
use sojourn_random::{Key, Stream};
use sojourn_units::{Bytes, Nanos, SECOND};

/// Times at which a handler does nothing: collection of garbage, a write to disk, a CPU quota.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// From the start of one pause to the start of the next.
    pub every: Nanos,
    /// Length of a pause.
    pub length: Nanos,
    /// Both are drawn uniformly within this part of themselves, 0 to 1.
    #[serde(default)]
    pub jitter: f64,
}

/// How fast messages are processed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Bytes a second while it works.
    pub rate: u64,
    /// Time that each message costs besides.
    #[serde(default)]
    pub per_message: Nanos,
    /// Whether the time for each message is drawn from an exponential distribution.
    #[serde(default)]
    pub random: bool,
    /// When it pauses; several pauses overlap as they come.
    #[serde(default)]
    pub pauses: Vec<Pause>,
}

impl Params {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.rate == 0 {
            return Err("the handler's rate must be above 0".to_owned());
        }
        for pause in &self.pauses {
            if pause.every == 0 || pause.length >= pause.every {
                return Err("a pause must be shorter than the time from one to the next".to_owned());
            }
            if !(0.0..=1.0).contains(&pause.jitter) {
                return Err("the jitter of a pause lies between 0 and 1".to_owned());
            }
        }
        Ok(())
    }
}

/// One of its kinds of pauses, and the next of them.
#[derive(Clone, Debug)]
struct Source {
    pause: Pause,
    draws: Stream,
    start: Nanos,
    end: Nanos,
}

impl Source {
    fn new(pause: Pause, key: Key) -> Self {
        let mut draws = key.stream("pauses");
        // The first begins somewhere in the first interval, so that handlers do not march in step.
        let first = if pause.jitter > 0.0 { draws.below(pause.every) } else { pause.every };
        let mut source = Self { pause, draws, start: first, end: 0 };
        source.end = source.start + source.length();
        source
    }

    fn drawn(&mut self, mean: Nanos) -> Nanos {
        let jitter = self.pause.jitter;
        if jitter == 0.0 {
            return mean;
        }
        (mean as f64 * (1.0 + jitter * (2.0 * self.draws.uniform() - 1.0))) as Nanos
    }

    fn length(&mut self) -> Nanos {
        self.drawn(self.pause.length)
    }

    fn advance(&mut self) {
        let gap = self.drawn(self.pause.every);
        self.start = (self.start + gap).max(self.end);
        self.end = self.start + self.length();
    }
}

/// A handler.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    params: Params,
    sources: Vec<Source>,
    draws: Stream,
    /// Time at which it was at work.
    pub(super) busy: Nanos,
}

impl Handler {
    pub(super) fn new(params: &Params, key: Key) -> Self {
        let source = |(i, pause): (usize, &Pause)| Source::new(*pause, key.child(i as u64));
        Self {
            sources: params.pauses.iter().enumerate().map(source).collect(),
            params: params.clone(),
            draws: key.stream("work"),
            busy: 0,
        }
    }

    /// When a message is done that is begun at `now`. Beginnings must not go back in time.
    pub(super) fn finish(&mut self, now: Nanos, bytes: Bytes) -> Nanos {
        let work = bytes as u128 * u128::from(SECOND) / u128::from(self.params.rate);
        let mut work = work as Nanos + self.params.per_message;
        if self.params.random {
            work = (work as f64 * -libm::log(self.draws.uniform())) as Nanos;
        }
        self.busy += work;
        let mut now = now;
        loop {
            // Pauses that are over, and the one that is on or comes next.
            for source in &mut self.sources {
                while source.end <= now {
                    source.advance();
                }
            }
            let Some(next) = self.sources.iter().min_by_key(|s| s.start) else { return now + work };
            let free = next.start.saturating_sub(now);
            if work <= free {
                return now + work;
            }
            work -= free;
            now = next.end;
        }
    }
}
