//! `cbr`: packets of one length at a constant rate, possibly in spurts.
//!
//! The times are exact: after n packets no rounding has added up. With jitter each interval is
//! multiplied by a number drawn uniformly from 1 - jitter to 1 + jitter, as ns-2's `random_` does
//! with one half.

use crate::Emission;
use crate::length::{Counts, MAX_PAYLOAD, UDP_HEADERS};
use crate::spurts::{Activity, Spurts};
use crate::words::positive;
use serde::{Deserialize, Serialize};
use sojourn_random::{Key, Stream, Unit};
use sojourn_units::words::{Given, Kind, Table, Word, WordError};
use sojourn_units::{Nanos, Rate, SECOND, quantity};
use std::fmt::Write;

/// The words of `cbr`.
pub const TABLE: Table = Table {
    name: "cbr",
    summary: "packets of one length at a constant rate",
    source: "",
    words: &[
        Word {
            name: "rate",
            kind: Kind::Rate,
            default: "",
            doc: "Rate while sending, counted in Ethernet frames with `size`, in payload with `payload`.",
        },
        Word {
            name: "size",
            kind: Kind::Size,
            default: "1514",
            doc: "Length of the Ethernet frame without FCS: payload and 42 bytes of headers.",
        },
        Word {
            name: "payload",
            kind: Kind::Size,
            default: "",
            doc: "Length of the UDP payload, instead of `size`.",
        },
        Word {
            name: "jitter",
            kind: Kind::Probability,
            default: "0%",
            doc: "Each interval varies uniformly by this part of itself.",
        },
        Word {
            name: "on",
            kind: Kind::Name,
            default: "",
            doc: "Length of spurts, such as exp(1s); needs `off`. Without them it sends always.",
        },
        Word {
            name: "off",
            kind: Kind::Name,
            default: "",
            doc: "Length of silences between spurts, such as pareto(2s,1.5); needs `on`.",
        },
    ],
};

/// What the user sets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Rate while sending.
    pub rate: Rate,
    /// Length of a packet in bytes.
    pub length: u32,
    /// What rate and length count.
    pub counts: Counts,
    /// Relative half-width of an interval's variation.
    pub jitter: f64,
    /// Spurts and silences; it sends always if `None`.
    pub spurts: Option<Spurts>,
}

impl Params {
    /// A steady source of frames.
    pub fn steady(rate: Rate, frame: u32) -> Self {
        Self { rate, length: frame, counts: Counts::Frame, jitter: 0.0, spurts: None }
    }

    pub(crate) fn read(given: &Given) -> Result<Self, WordError> {
        let Some(rate) = given.rate("rate") else {
            return Err(given.error("rate", "`cbr` needs `rate`, such as `cbr rate 250kbit`"));
        };
        let mut params = Self::steady(rate, 1514);
        if let Some(counts) = Counts::given(given)? {
            let word = counts.word();
            let length = given.integer(word).unwrap_or(0);
            let (least, most) = match counts {
                Counts::Frame => (UDP_HEADERS + 1, MAX_PAYLOAD + UDP_HEADERS),
                Counts::Payload => (1, MAX_PAYLOAD),
            };
            if !(u64::from(least)..=u64::from(most)).contains(&length) {
                return Err(
                    given.error(word, format!("`{word}` must be from {least} to {most} bytes"))
                );
            }
            params.counts = counts;
            params.length = length as u32;
        }
        params.jitter = given.real("jitter").unwrap_or(0.0);
        let (on, off) = (positive(given, "on", Unit::Time)?, positive(given, "off", Unit::Time)?);
        params.spurts = match (on, off) {
            (Some(on), Some(off)) => Some(Spurts { on, off }),
            (None, None) => None,
            (Some(_), None) => return Err(given.error("on", "`on` needs `off`")),
            (None, Some(_)) => return Err(given.error("off", "`off` needs `on`")),
        };
        Ok(params)
    }

    pub(crate) fn write(&self) -> String {
        let rate = quantity::format_rate(self.rate);
        let mut text = format!("cbr rate {rate} {} {}", self.counts.word(), self.length);
        if self.jitter > 0.0 {
            let _ = write!(text, " jitter {}", self.jitter);
        }
        if let Some(Spurts { on, off }) = self.spurts {
            let _ = write!(text, " on {} off {}", on.format(Unit::Time), off.format(Unit::Time));
        }
        text
    }
}

/// One source.
#[derive(Clone, Debug)]
pub struct Cbr {
    rate: u64,
    payload: u32,
    /// Whole nanoseconds of an interval, and what remains of it in 1/rate.
    interval: (Nanos, u64),
    remainder: u64,
    jitter: f64,
    draws: Stream,
    activity: Option<Activity>,
    next: Nanos,
}

impl Cbr {
    /// A source that sends its first packet at `start`.
    pub fn new(params: &Params, key: Key, start: Nanos) -> Self {
        let rate = params.rate.bits();
        let scaled = u128::from(params.length) * 8 * u128::from(SECOND);
        let interval = ((scaled / u128::from(rate)) as Nanos, (scaled % u128::from(rate)) as u64);
        Self {
            rate,
            payload: params.counts.payload(params.length),
            interval,
            remainder: 0,
            jitter: params.jitter,
            draws: key.stream("jitter"),
            activity: params.spurts.map(|spurts| Activity::new(spurts, key, start)),
            next: start,
        }
    }

    /// The next packet.
    pub fn next_packet(&mut self) -> Emission {
        let at = self.next;
        let mut interval = self.interval.0;
        // Sums of two remainders fit: a rate of 2^63 bit/s is far beyond any link's.
        self.remainder += self.interval.1;
        if self.remainder >= self.rate {
            self.remainder -= self.rate;
            interval += 1;
        }
        if self.jitter > 0.0 {
            let by = self.jitter * (2.0 * self.draws.uniform() - 1.0) * interval as f64;
            interval = interval.saturating_add_signed(libm::round(by) as i64);
        }
        // A source faster than the clock still lets time pass.
        self.next = at + interval.max(1);
        if let Some(activity) = &mut self.activity {
            let placed = activity.place(self.next);
            if placed != self.next {
                self.remainder = 0;
            }
            self.next = placed;
        }
        Emission { at, payload: self.payload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;
    use sojourn_units::{EPOCH, MILLISECOND};

    fn source(text: &str, seed: u64) -> Cbr {
        let App::Cbr(params) = App::parse(text).unwrap() else { panic!("{text}") };
        Cbr::new(&params, Key::new(seed, "cbr"), EPOCH)
    }

    #[test]
    fn times_are_exact_for_ever() {
        let mut source = source("cbr rate 250kbit size 573", 1);
        let interval = |n: u128| (n * 573 * 8 * u128::from(SECOND) / 250_000) as Nanos;
        for n in 0..100_000 {
            assert_eq!(source.next_packet(), Emission { at: EPOCH + interval(n), payload: 531 });
        }
    }

    #[test]
    fn a_rate_that_divides_nothing_does_not_drift() {
        let mut source = source("cbr rate 333333bit payload 1000", 1);
        let last = (0..=33_333).map(|_| source.next_packet()).last().unwrap();
        assert_eq!(last.payload, 1000);
        assert_eq!(last.at - EPOCH, (33_333u128 * 8000 * u128::from(SECOND) / 333_333) as Nanos);
    }

    #[test]
    fn jitter_varies_intervals_within_its_bounds() {
        let mut source = source("cbr rate 1mbit size 1250 jitter 50%", 2);
        let times: Vec<Nanos> = (0..20_000).map(|_| source.next_packet().at).collect();
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
        assert!(gaps.iter().all(|gap| (5.0..=15.0).contains(gap)));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // The deviation is 10 / sqrt(12) ms.
        assert!((mean - 10.0).abs() < 3.3 * 2.89 / 141.4, "{mean}");
    }

    #[test]
    fn spurts_and_silences() {
        let mut source = source("cbr rate 1mbit size 1250 on 25ms off 1s", 1);
        let times: Vec<Nanos> =
            (0..7).map(|_| (source.next_packet().at - EPOCH) / MILLISECOND).collect();
        // 25 ms hold three packets 10 ms apart; each spurt opens with one.
        assert_eq!(times, [0, 10, 20, 1025, 1035, 1045, 2050]);
    }

    #[test]
    fn on_and_off_have_their_shares() {
        let mut source = source("cbr rate 1mbit size 125 on exp(500ms) off pareto(1.5s,3)", 4);
        let n = 400_000u32;
        let last = (0..n).map(|_| source.next_packet().at).last().unwrap();
        let rate = f64::from(n) * 1000.0 / ((last - EPOCH) as f64 / 1e9);
        // A quarter of the time, plus half a packet per spurt of 500.
        assert!((rate / 250_000.0 - 1.0).abs() < 0.1, "{rate}");
    }

    #[test]
    fn is_refused_without_sense() {
        for (text, why) in [
            ("cbr", "`cbr` needs `rate`, such as `cbr rate 250kbit`"),
            (
                "cbr rate 1mbit size 100 payload 50",
                "`size` (of the Ethernet frame) and `payload` (of UDP) exclude each other",
            ),
            ("cbr rate 1mbit size 42", "`size` must be from 43 to 9014 bytes"),
            ("cbr rate 1mbit on 1s", "`on` needs `off`"),
            (
                "cbr rate 1mbit on exp(1) off 1s",
                "`on`: `mean` needs a time with its unit, such as 15s; found `1`",
            ),
        ] {
            assert_eq!(App::parse(text).unwrap_err().to_string(), why);
        }
    }
}
