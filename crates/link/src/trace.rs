//! A capacity recorded as a trace of delivery opportunities.
//!
//! At each opportunity the transmitter may send a number of bytes at once: several small packets,
//! or parts of a large one, whose rest waits for the next opportunity. Unused bytes are lost. A
//! packet leaves the queue at the first opportunity with space for a part of it, and is complete at
//! the last opportunity that it needs. A packet that comes exactly at an opportunity is too late
//! for this opportunity. The trace begins with the link and repeats: its last opportunity is the
//! beginning of the next round.
//!
//! # Source
//! Mahimahi's `mm-link` and the traces it replays (Netravali et al., USENIX ATC 2015): milliseconds, one a
//! line, each an opportunity for a packet of full length.

use crate::capacity::Capacity;
use sojourn_units::{MILLISECOND, Nanos, Rate, SECOND, data};
use std::sync::Arc;

/// Delivery opportunities in rounds that repeat.
#[data]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(try_from = "Text", into = "Text")]
pub struct Trace {
    /// Times after the beginning of a round, from above 0 to its end, with the number of
    /// opportunities up to and at each time.
    steps: Arc<[(Nanos, u64)]>,
    /// Bytes of each opportunity.
    bytes: u32,
}

/// The form of a [`Trace`] in plans.
#[data]
#[derive(Clone, Debug)]
#[serde(deny_unknown_fields)]
struct Text {
    /// Times of the opportunities of a round, in milliseconds.
    opportunities: Vec<u32>,
    #[serde(default = "full_packet")]
    bytes: u32,
}

fn full_packet() -> u32 {
    Trace::BYTES
}

impl TryFrom<Text> for Trace {
    type Error = String;
    fn try_from(text: Text) -> Result<Self, String> {
        Self::new(&text.opportunities, text.bytes)
    }
}

impl From<Trace> for Text {
    fn from(trace: Trace) -> Self {
        let mut opportunities = Vec::with_capacity(trace.len());
        for &(at, count) in trace.steps.iter() {
            opportunities.resize(count as usize, (at / MILLISECOND) as u32);
        }
        Self { opportunities, bytes: trace.bytes }
    }
}

impl Trace {
    /// Bytes of an opportunity in Mahimahi's format.
    pub const BYTES: u32 = 1500;
    /// Greatest number of opportunities of a trace.
    pub const LONGEST: usize = 1_000_000;

    /// Returns a trace with opportunities at these times in milliseconds, in ascending order, each
    /// for `bytes` bytes. An opportunity at 0 belongs to the end of the round before.
    ///
    /// # Errors
    /// No opportunity, too many of them, times out of order or all 0, or `bytes` of 0.
    pub fn new(opportunities: &[u32], bytes: u32) -> Result<Self, String> {
        let Some(&last) = opportunities.last() else {
            return Err("a trace needs an opportunity".to_owned());
        };
        if opportunities.len() > Self::LONGEST {
            return Err(format!("a trace has at most {} opportunities", Self::LONGEST));
        }
        if let Some(i) = opportunities.windows(2).position(|pair| pair[0] > pair[1]) {
            let (a, b) = (opportunities[i], opportunities[i + 1]);
            return Err(format!("opportunities must be in order; found {b} ms after {a} ms"));
        }
        if last == 0 {
            return Err("the last opportunity of a trace must be after 0 ms".to_owned());
        }
        if bytes == 0 {
            return Err("an opportunity is for at least one byte".to_owned());
        }
        let first = opportunities.partition_point(|&at| at == 0);
        let mut steps: Vec<(Nanos, u64)> = Vec::new();
        let round = opportunities[first..].iter().chain(std::iter::repeat_n(&last, first));
        for (i, &at) in round.enumerate() {
            let (at, count) = (Nanos::from(at) * MILLISECOND, i as u64 + 1);
            match steps.last_mut() {
                Some(step) if step.0 == at => step.1 = count,
                _ => steps.push((at, count)),
            }
        }
        Ok(Self { steps: steps.into(), bytes })
    }

    /// Returns the number of opportunities of a round.
    #[expect(clippy::len_without_is_empty, reason = "a trace has at least one opportunity")]
    pub fn len(&self) -> usize {
        self.steps[self.steps.len() - 1].1 as usize
    }

    /// Returns the length of a round.
    pub fn period(&self) -> Nanos {
        self.steps[self.steps.len() - 1].0
    }

    /// Returns the mean rate.
    pub fn mean(&self) -> Rate {
        let bits = u128::from(self.bytes) * 8 * self.len() as u128 * u128::from(SECOND);
        let rate = bits / u128::from(self.period());
        Rate::new(u64::try_from(rate).unwrap_or(u64::MAX).max(1)).expect("above zero")
    }

    /// Returns the first opportunity not before `at`; both times count from the trace's beginning.
    fn next_from(&self, at: Nanos) -> Nanos {
        let last_moment = at.saturating_sub(1);
        let (round, since) = (last_moment / self.period(), last_moment % self.period());
        let next = self.steps.partition_point(|step| step.0 <= since);
        let next = self.steps.get(next).map_or(Nanos::MAX, |step| step.0);
        (round.saturating_mul(self.period())).saturating_add(next)
    }

    /// Returns the bytes of all opportunities up to and at `until`, a time since the trace's
    /// beginning.
    fn offered(&self, until: Nanos) -> u64 {
        let (rounds, since) = (until / self.period(), until % self.period());
        let next = self.steps.partition_point(|step| step.0 <= since);
        let count = if next == 0 { 0 } else { self.steps[next - 1].1 };
        (rounds * self.len() as u64 + count) * u64::from(self.bytes)
    }
}

/// A transmitter that follows a trace.
#[derive(Clone, Debug)]
pub struct Opportunities {
    trace: Trace,
    /// When the trace began.
    begin: Nanos,
    /// The opportunity that was used last, or that the packet begun last still needs.
    open: Nanos,
    /// Unused bytes of the opportunity `open`.
    room: u64,
    /// Bytes of all packets whose transmission has begun.
    begun: u64,
}

impl Opportunities {
    /// Returns a transmitter that follows `trace` from `now` on.
    pub fn new(trace: Trace, now: Nanos) -> Self {
        Self { trace, begin: now, open: now, room: 0, begun: 0 }
    }

    /// Returns the trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the first opportunity after `at`.
    pub fn after(&self, at: Nanos) -> Nanos {
        self.begin.saturating_add(self.trace.next_from(at - self.begin + 1))
    }

    /// Returns whether a transmission may begin at `at`; the transmitter has waited until then.
    pub fn is_open(&mut self, at: Nanos) -> bool {
        if self.open != at {
            let since = at - self.begin;
            if self.trace.next_from(since) != since || since == 0 {
                return false;
            }
            self.use_at(at);
        }
        self.room > 0
    }

    fn use_at(&mut self, at: Nanos) {
        let since = at - self.begin;
        self.open = at;
        self.room = self.trace.offered(since) - self.trace.offered(since - 1);
    }

    /// Begins a transmission of `bytes` bytes at an open opportunity. Returns the opportunity at
    /// which the transmission ends.
    pub fn transmit(&mut self, bytes: u32) -> Nanos {
        let mut left = u64::from(bytes);
        self.begun += left;
        while left > self.room {
            left -= self.room;
            self.use_at(self.after(self.open));
        }
        self.room -= left;
        self.open
    }

    /// Returns the bytes offered and used before `now`, the time of the last call or a later one.
    /// Opportunities at `now` itself are excluded.
    pub fn capacity(&self, now: Nanos) -> Capacity {
        let offered = self.trace.offered((now - self.begin).saturating_sub(1));
        // The packet in transmission uses all bytes offered from `now` to `open`, except `room`.
        let coming = if now <= self.open {
            self.trace.offered(self.open - self.begin) - offered - self.room
        } else {
            0
        };
        Capacity::of_bytes(offered, self.begun - coming)
    }
}
