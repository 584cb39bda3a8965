//! A handler that processes the messages of a buffer, with pauses and at a random speed.

use serde::{Deserialize, Serialize};
use sojourn_random::{Key, Pause, Pauses, Stream};
use sojourn_units::{Bytes, Nanos, SECOND};

/// The speed and the pauses of a handler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Bytes per second while the handler works.
    pub rate: u64,
    /// Time in nanoseconds for each message, in addition to the time for its bytes.
    #[serde(default)]
    pub per_message: Nanos,
    /// Whether each message's time is exponentially distributed; otherwise it is constant.
    #[serde(default)]
    pub random: bool,
    /// Processes of pauses. Pauses of different processes may overlap.
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
    /// Time for which the handler has worked, without pauses.
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

    /// Returns the time at which the processing of a message ends if it begins at `now`. From one
    /// call to the next `now` must not decrease.
    pub(super) fn finish(&mut self, now: Nanos, bytes: Bytes) -> Nanos {
        let work = bytes as u128 * u128::from(SECOND) / u128::from(self.params.rate);
        let mut work = work as Nanos + self.params.per_message;
        if self.params.random {
            work = (work as f64 * -libm::log(self.draws.uniform())) as Nanos;
        }
        self.busy += work;
        let mut now = now;
        loop {
            // Drop the pauses that are over; then find the present or next pause.
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
