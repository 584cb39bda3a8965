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
