//! Activity that comes in spurts with silence between them.

use serde::{Deserialize, Serialize};
use sojourn_random::{Distribution, Key, Stream};
use sojourn_units::Nanos;

/// Lengths of spurts and silences in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spurts {
    /// Length of a spurt.
    pub on: Distribution,
    /// Length of a silence.
    pub off: Distribution,
}

/// The spurts of one source, the first from its start.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    spurts: Spurts,
    on: Stream,
    off: Stream,
    end: Nanos,
}

impl Activity {
    pub fn new(spurts: Spurts, key: Key, start: Nanos) -> Self {
        let (mut on, off) = (key.stream("on"), key.stream("off"));
        let end = start + spurts.on.sample_nanos(&mut on).max(1);
        Self { spurts, on, off, end }
    }

    /// `at` if it lies in the present spurt, else the start of the next, which a packet opens.
    pub fn place(&mut self, at: Nanos) -> Nanos {
        if at < self.end {
            return at;
        }
        let begin = self.end + self.spurts.off.sample_nanos(&mut self.off);
        self.end = begin + self.spurts.on.sample_nanos(&mut self.on).max(1);
        begin
    }
}
