//! `packets`: packets with independent intervals and independent lengths (a renewal process), such
//! as Poisson, Pareto or Weibull arrivals, or a variable bit rate.

use crate::Emission;
use crate::application::{AppParams, Source};
use crate::kinds::{given_law, positive, time};
use crate::length::{Counts, Length, MAX_PAYLOAD};
use sojourn_random::{Distribution, Key, Stream, Unit};
use sojourn_units::declare::{Param, group};
use sojourn_units::words::{Given, Kind, Word};
use sojourn_units::{Nanos, params, words};

params! {
    "packets": "packets with independent intervals and lengths: Poisson, Pareto, Weibull, variable rate";

    /// Parameters of `packets`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Time between two packets; exp(..) gives Poisson arrivals.
        interval: Distribution = time("exp(10ms)").check(positive),
        /// Length of a packet, rounded up to whole bytes and limited to a jumbo frame.
        #[serde(flatten)]
        size: Length<Distribution> = length(),
    }
}

const fn length() -> Param<Length<Distribution>> {
    const WORDS: &[Word] = words! {
        "size", Kind::Name, "1514",
            "Length of the Ethernet frame without frame check sequence: a size, or a distribution.";
        "payload", Kind::Name, "", "Length of the UDP payload; replaces `size`.";
    };
    let set = |size: &mut Length<Distribution>, given: &Given| {
        let Some(counts) = Counts::given(given)? else { return Ok(()) };
        if let Some(length) = given_law(given, counts.word(), Unit::Size)? {
            *size = Length { length, counts };
        }
        Ok(())
    };
    group(
        WORDS,
        |()| Length { length: Distribution::constant(1514.0), counts: Counts::Frame },
        set,
        |size, text| text.value(size.counts.word(), size.length.format(Unit::Size)),
    )
}

impl AppParams for Params {
    type Source = Packets;

    fn distributions(&self) -> Vec<Distribution> {
        vec![self.interval, self.size.length]
    }

    fn longest_payload(&self) -> u32 {
        // A draw is at least 2^-53, so values that are exceeded with a probability of 2^-54 are
        // never drawn.
        let longest = self.size.length.exceeded_with(f64::EPSILON / 4.0);
        let longest = longest.min(f64::from(2 * MAX_PAYLOAD));
        self.size.counts.payload(libm::ceil(longest) as u32).max(1)
    }

    fn source(&self, key: Key, start: Nanos) -> Option<Packets> {
        Some(Packets::new(self, key, start))
    }
}

/// A source of `packets`.
#[derive(Clone, Debug)]
pub struct Packets {
    params: Params,
    intervals: Stream,
    lengths: Stream,
    next: Nanos,
}

impl Packets {
    /// Returns a source whose first packet leaves one interval after `start`.
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
}

impl Source for Packets {
    fn next_packet(&mut self) -> Emission {
        let at = self.next;
        self.step();
        let Length { length, counts } = self.params.size;
        let length = length.sample_count(&mut self.lengths);
        let length = length.min(u64::from(2 * MAX_PAYLOAD)) as u32;
        Emission { at, payload: counts.payload(length).max(1) }
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
