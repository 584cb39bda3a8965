//! A handler that takes messages out of a buffer, at a speed that fluctuates.

use serde::{Deserialize, Serialize};
use sojourn_random::{Key, Pause, Pauses, Stream};
use sojourn_units::{Bytes, Nanos, SECOND};

/// How fast messages are processed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Bytes a second while it works.
    pub rate: u64,
    /// Additional time for each message.
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
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.rate == 0 {
            return Err("the handler's rate must be above 0");
        }
        self.pauses.iter().try_for_each(Pause::check)
    }
}

/// A handler.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    params: Params,
    sources: Vec<Pauses>,
    draws: Stream,
    /// Time at which it was at work.
    pub(super) busy: Nanos,
}

impl Handler {
    pub(super) fn new(params: &Params, key: Key) -> Self {
        let source =
            |(i, pause): (usize, &Pause)| Pauses::new(*pause, key.child(i as u64).stream("pauses"));
        Self {
            sources: params.pauses.iter().enumerate().map(source).collect(),
            params: params.clone(),
            draws: key.stream("work"),
            busy: 0,
        }
    }

    /// Returns when a message is done that is begun at `now`. Beginnings must not go back in time.
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
            self.sources.iter_mut().for_each(|source| source.advance(now));
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
