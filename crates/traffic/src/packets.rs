//! `packets`: independent intervals and independent lengths (a renewal process): Poisson, Pareto or
//! Weibull arrivals, variable bit rate.

use crate::Emission;
use crate::length::{Counts, MAX_PAYLOAD};
use crate::words::positive;
use serde::{Deserialize, Serialize};
use sojourn_random::{Distribution, Key, Stream, Unit};
use sojourn_units::words::{Given, Kind, Table, Word, WordError};
use sojourn_units::{MILLISECOND, Nanos};

/// The words of `packets`.
pub const TABLE: Table = Table {
    name: "packets",
    summary: "packets with independent intervals and lengths: Poisson, Pareto, Weibull, variable rate",
    source: "",
    words: &[
        Word {
            name: "interval",
            kind: Kind::Name,
            default: "exp(10ms)",
            doc: "Time from packet to packet; exp(..) gives Poisson arrivals.",
        },
        Word {
            name: "size",
            kind: Kind::Name,
            default: "1514",
            doc: "Length of the Ethernet frame without FCS: a size, or a distribution.",
        },
        Word {
            name: "payload",
            kind: Kind::Name,
            default: "",
            doc: "Length of the UDP payload, instead of `size`.",
        },
    ],
};

/// What the user sets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Nanoseconds from packet to packet; at least one.
    pub interval: Distribution,
    /// Bytes of a packet, rounded up and cut to what a frame holds.
    pub length: Distribution,
    /// What the length counts.
    pub counts: Counts,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            interval: Distribution::Exponential { mean: (10 * MILLISECOND) as f64 },
            length: Distribution::constant(1514.0),
            counts: Counts::Frame,
        }
    }
}

impl Params {
    pub(crate) fn read(given: &Given) -> Result<Self, WordError> {
        let mut params = Self::default();
        if let Some(interval) = positive(given, "interval", Unit::Time)? {
            params.interval = interval;
        }
        if let Some(counts) = Counts::given(given)? {
            params.counts = counts;
            if let Some(length) = positive(given, counts.word(), Unit::Size)? {
                params.length = length;
            }
        }
        Ok(params)
    }

    pub(crate) fn write(&self) -> String {
        let (interval, length) = (self.interval.format(Unit::Time), self.length.format(Unit::Size));
        format!("packets interval {interval} {} {length}", self.counts.word())
    }
}

/// One source.
#[derive(Clone, Debug)]
pub struct Packets {
    params: Params,
    intervals: Stream,
    lengths: Stream,
    next: Nanos,
}

impl Packets {
    /// A source whose first packet comes one interval after `start`.
    pub fn new(params: &Params, key: Key, start: Nanos) -> Self {
        let mut source = Self {
            params: *params,
            intervals: key.stream("interval"),
            lengths: key.stream("length"),
            next: start,
        };
        source.step();
        source
    }

    fn step(&mut self) {
        self.next += self.params.interval.sample_nanos(&mut self.intervals).max(1);
    }

    /// The next packet.
    pub fn next_packet(&mut self) -> Emission {
        let at = self.next;
        self.step();
        let length = self.params.length.sample_count(&mut self.lengths);
        let length = length.min(u64::from(2 * MAX_PAYLOAD)) as u32;
        Emission { at, payload: self.params.counts.payload(length).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;
    use sojourn_units::EPOCH;

    fn emissions(text: &str, n: usize) -> Vec<Emission> {
        let mut source = App::parse(text).unwrap().packet_source(Key::new(9, "p"), EPOCH).unwrap();
        (0..n).map(|_| source.next_packet()).collect()
    }

    #[test]
    fn lengths_are_cut_to_what_a_frame_holds() {
        let all = emissions("packets interval 1ms payload pareto2(1000,1.1)", 20_000);
        assert!(all.iter().all(|e| (1..=MAX_PAYLOAD).contains(&e.payload)));
        assert!(all.iter().any(|e| e.payload == MAX_PAYLOAD));
        let frames = emissions("packets interval 1ms size uniform(60,100)", 1000);
        assert!(frames.iter().all(|e| (18..=58).contains(&e.payload)));
    }

    #[test]
    fn golden_sequence() {
        let all = emissions("packets interval weibull(5ms,0.5) size uniform(60,1514)", 3);
        let numbers: Vec<(Nanos, u32)> = all.iter().map(|e| (e.at - EPOCH, e.payload)).collect();
        assert_eq!(numbers, [(23_986_213, 811), (24_353_948, 1052), (28_378_158, 563)]);
    }
}
