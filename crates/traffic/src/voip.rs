//! `voip`: a voice codec's packets, and how a call sounds.
//!
//! Packets are RTP over UDP, one frame or several of the codec in each, at a fixed interval, all the
//! time or in talkspurts. The quality is ITU-T G.107's E-model with its defaults, its delay impairment
//! in the short form of Cole and Rosenbluth ("Voice over IP performance monitoring", 2001).

use crate::Emission;
use crate::application::{AppParams, Source, check_length};
use crate::kinds::{bytes, named_rows};
use crate::length::MAX_PAYLOAD;
use crate::spurts::{Activity, Spurts};
use serde::{Deserialize, Serialize};
use sojourn_random::{Distribution, Key};
use sojourn_units::declare::{Choices, Param, Parameters, group, time};
use sojourn_units::words::{Given, Kind, Table, Word, WordError};
use sojourn_units::{MILLISECOND, Nanos, params, words};

/// Bytes of an RTP header.
pub const RTP_HEADER: u32 = 12;

/// A codec as it is put into packets, with its E-model parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codec {
    /// Its word.
    pub name: &'static str,
    /// Time between packets.
    pub interval: Nanos,
    /// Voice bytes in a packet.
    pub voice: u32,
    /// How it impairs a call.
    pub impairment: Impairment,
}

/// What a codec takes from a call's quality.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Impairment {
    /// Algorithmic delay beyond the packet's own span.
    pub lookahead: Nanos,
    /// Equipment impairment factor Ie (G.113).
    pub ie: f64,
    /// Packet-loss robustness factor Bpl (G.113).
    pub bpl: f64,
}

/// The codecs known by name: G.113 Appendix I gives Ie and Bpl.
pub const CODECS: &[Codec] = &[
    Codec {
        name: "g711",
        interval: 20 * MILLISECOND,
        voice: 160,
        impairment: Impairment { lookahead: 0, ie: 0.0, bpl: 25.1 },
    },
    Codec {
        name: "g711-noplc",
        interval: 20 * MILLISECOND,
        voice: 160,
        impairment: Impairment { lookahead: 0, ie: 0.0, bpl: 4.3 },
    },
    Codec {
        name: "g729",
        interval: 20 * MILLISECOND,
        voice: 20,
        impairment: Impairment { lookahead: 5 * MILLISECOND, ie: 11.0, bpl: 19.0 },
    },
    Codec {
        name: "g723",
        interval: 30 * MILLISECOND,
        voice: 24,
        impairment: Impairment { lookahead: 7_500_000, ie: 15.0, bpl: 16.1 },
    },
    Codec {
        name: "gsm-efr",
        interval: 20 * MILLISECOND,
        voice: 31,
        impairment: Impairment { lookahead: 0, ie: 5.0, bpl: 10.0 },
    },
];

named_rows!(Codec in CODECS);

params! {
    /// Parameters of a call.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Impairments of the codec.
        #[serde(flatten)]
        impairment: Impairment = codec(),
        /// Time between packets; the payload grows with it unless it is given.
        interval: Nanos = time("20ms").above_zero(),
        /// UDP payload: voice and 12 bytes of RTP header.
        payload: u32 = bytes::<{ RTP_HEADER + 1 }, MAX_PAYLOAD>("172"),
        /// Talkspurts; it sends always if `None`.
        spurts: Option<Spurts> = talk(),
        /// Delay of the receiver's jitter buffer; packets later than this are lost to the ear.
        playout: Nanos = time("60ms"),
    }
}

const fn codec() -> Param<Impairment> {
    const WORDS: &[Word] = words! {
        "codec", Kind::Choice { of: Codec::NAMES }, "g711",
            "Sets interval, payload and the E-model's Ie and Bpl.";
    };
    let set = |impairment: &mut Impairment, given: &Given| {
        *impairment = Codec::of(given).impairment;
        Ok(())
    };
    group(
        WORDS,
        |()| CODECS[0].impairment,
        set,
        |impairment, text| {
            let codec = CODECS.iter().find(|codec| codec.impairment == *impairment);
            text.optional("codec", codec.map(|codec| codec.name))
        },
    )
}

const fn talk() -> Param<Option<Spurts>> {
    const WORDS: &[Word] = words! {
        "talk", Kind::Name, "",
            "Length of talkspurts, such as exp(1s); needs `silence`. Without them it sends always.";
        "silence", Kind::Name, "", "Length of silences, such as exp(1.35s); needs `talk`.";
    };
    group(
        WORDS,
        |()| None,
        |spurts, given| Spurts::set(spurts, given, "talk", "silence"),
        |spurts, text| Spurts::write(*spurts, text, "talk", "silence"),
    )
}

impl Codec {
    /// The codec that was given, or the usual one.
    fn of(given: &Given) -> Self {
        given.text("codec").and_then(Self::named).unwrap_or(CODECS[0])
    }
}

impl AppParams for Params {
    const TABLE: Table = Table {
        name: "voip",
        summary: "a voice call: RTP packets of a codec, its quality by the E-model",
        source: "RFC 3551; ITU-T G.107, G.113 Appendix I",
        words: Params::WORDS,
    };

    type Source = Voip;

    fn settle(&mut self, given: &Given) -> Result<(), WordError> {
        let codec = Codec::of(given);
        if !given.has("interval") {
            self.interval = codec.interval;
        }
        if !given.has("payload") {
            let voice = u128::from(codec.voice) * u128::from(self.interval);
            let voice = voice.div_ceil(u128::from(codec.interval));
            self.payload = voice.min(u128::from(MAX_PAYLOAD)) as u32 + RTP_HEADER;
        }
        Ok(())
    }

    fn distributions(&self) -> Vec<Distribution> {
        Spurts::distributions(self.spurts)
    }

    fn check(&self) -> Result<(), String> {
        check_length(self.payload)
    }

    fn longest_payload(&self) -> u32 {
        self.payload
    }

    fn source(&self, key: Key, start: Nanos) -> Option<Voip> {
        Some(Voip::new(self, key, start))
    }
}

impl Params {
    /// The quality of a call over a network with this one-way `delay` and this ratio of packets lost
    /// or too late for the jitter buffer.
    pub fn quality(&self, delay: Nanos, loss: f64, burst_ratio: f64) -> Quality {
        // A sample waits for its packet to fill, for the lookahead, and in the jitter buffer.
        let Impairment { lookahead, ie, bpl } = self.impairment;
        let mouth_to_ear = delay + self.interval + lookahead + self.playout;
        e_model(mouth_to_ear, loss, ie, bpl, burst_ratio)
    }
}

/// How a call sounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// The E-model's rating factor R, at most 93.2 here.
    pub rating: f64,
    /// The mean opinion score that is estimated from it, from 1 to 4.5.
    pub mos: f64,
}

/// R of a connection without delay and loss, with all of G.107's defaults.
pub const DEFAULT_RATING: f64 = 93.2;

/// The E-model with its defaults: R = 93.2 - Id - Ie,eff.
///
/// Id = 0.024 d + 0.11 (d - 177.3) above 177.3 ms, d the delay from mouth to ear in milliseconds.
/// Ie,eff = Ie + (95 - Ie) P / (P / B + Bpl), P the loss in percent and B the burst ratio (1 for
/// random loss).
pub fn e_model(mouth_to_ear: Nanos, loss: f64, ie: f64, bpl: f64, burst_ratio: f64) -> Quality {
    let d = mouth_to_ear as f64 / MILLISECOND as f64;
    let id = 0.024 * d + 0.11 * (d - 177.3).max(0.0);
    let percent = 100.0 * loss.clamp(0.0, 1.0);
    let ie_eff = ie + (95.0 - ie) * percent / (percent / burst_ratio + bpl);
    let rating = DEFAULT_RATING - id - ie_eff;
    Quality { rating, mos: mos(rating) }
}

/// The mean opinion score of a rating factor (G.107, Annex B). The cubic falls below 1 for small
/// ratings, the score does not.
pub fn mos(rating: f64) -> f64 {
    if rating <= 0.0 {
        return 1.0;
    }
    if rating >= 100.0 {
        return 4.5;
    }
    let cubic = rating * (rating - 60.0) * (100.0 - rating) * 7e-6;
    (1.0 + 0.035 * rating + cubic).max(1.0)
}

/// One direction of a call.
#[derive(Clone, Debug)]
pub struct Voip {
    interval: Nanos,
    payload: u32,
    activity: Option<Activity>,
    next: Nanos,
}

impl Voip {
    /// A call whose first packet leaves at `start`.
    pub fn new(params: &Params, key: Key, start: Nanos) -> Self {
        let interval = params.interval.max(1);
        let (activity, next) = Activity::begin(params.spurts, key, start, interval);
        Self { interval, payload: params.payload, activity, next }
    }
}

impl Source for Voip {
    fn next_packet(&mut self) -> Emission {
        let at = self.next;
        self.next += self.interval;
        if let Some(activity) = &mut self.activity {
            self.next = activity.place(self.next);
        }
        Emission { at, payload: self.payload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;
    use sojourn_units::{EPOCH, SECOND};

    fn params(text: &str) -> Params {
        let App::Voip(params) = App::parse(text).unwrap() else { panic!("{text}") };
        params
    }

    #[test]
    fn codecs_have_their_packets() {
        let shape = |text| {
            let p = params(text);
            (p.interval / MILLISECOND, p.payload)
        };
        assert_eq!(shape("voip"), (20, 172));
        assert_eq!(shape("voip codec g729"), (20, 32));
        assert_eq!(shape("voip codec g723"), (30, 36));
        assert_eq!(shape("voip codec g711 interval 10ms"), (10, 92));
        assert_eq!(shape("voip codec g729 interval 40ms"), (40, 52));
        assert_eq!(shape("voip interval 10ms payload 200"), (10, 200));
        // 64 kbit/s of voice.
        let mut call = Voip::new(&params("voip"), Key::new(1, "call"), EPOCH);
        let last = (0..=50).map(|_| call.next_packet()).last().unwrap();
        assert_eq!(last.at - EPOCH, SECOND);
    }

    #[test]
    fn talkspurts_have_their_share() {
        let words = params("voip talk exp(1s) silence exp(1.35s)");
        let mut call = Voip::new(&words, Key::new(2, "call"), EPOCH);
        let n = 200_000u32;
        let last = (0..n).map(|_| call.next_packet().at).last().unwrap();
        let talking = f64::from(n) * 0.02 / ((last - EPOCH) as f64 / 1e9);
        // A spurt's last interval is begun but not finished: one more packet in a hundred.
        assert!((talking - 1.01 / 2.36).abs() < 0.02, "{talking}");
    }

    #[test]
    fn mean_opinion_scores_of_known_ratings() {
        // G.107's table of ratings and scores, which rounds up here and there.
        for (rating, score) in
            [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)]
        {
            assert!((mos(rating) - score).abs() < 0.007, "{rating}: {}", mos(rating));
        }
        assert!((mos(93.2) - 4.41).abs() < 0.005);
        assert!((mos(0.0) - 1.0).abs() < 1e-12 && (mos(-5.0) - 1.0).abs() < 1e-12);
        assert!((mos(100.0) - 4.5).abs() < 1e-12 && (mos(120.0) - 4.5).abs() < 1e-12);
        let all: Vec<f64> = (0..1000).map(|r| mos(f64::from(r) / 10.0)).collect();
        assert!(all.windows(2).all(|w| w[0] <= w[1]));
    }

    #[test]
    fn delay_and_loss_impair() {
        let g711 = |delay: Nanos, loss| e_model(delay, loss, 0.0, 25.1, 1.0).rating;
        assert!((g711(0, 0.0) - 93.2).abs() < 1e-12);
        assert!((g711(100 * MILLISECOND, 0.0) - 90.8).abs() < 1e-9);
        // Above 177.3 ms: 0.024 x 200 + 0.11 x 22.7.
        assert!((g711(200 * MILLISECOND, 0.0) - (93.2 - 4.8 - 2.497)).abs() < 1e-9);
        // 2 % random loss: 95 x 2 / 27.1.
        assert!((g711(0, 0.02) - (93.2 - 190.0 / 27.1)).abs() < 1e-9);
        // Bursts are worse than random loss, and no concealment is worse than any.
        assert!(e_model(0, 0.02, 0.0, 25.1, 2.0).rating < g711(0, 0.02));
        assert!(e_model(0, 0.02, 0.0, 4.3, 1.0).rating < g711(0, 0.02) - 20.0);
        let call = params("voip codec g729");
        let quality = call.quality(40 * MILLISECOND, 0.0, 1.0);
        // 40 + 20 + 5 + 60 ms from mouth to ear.
        assert!((quality.rating - (93.2 - 3.0 - 11.0)).abs() < 1e-9);
    }
}
