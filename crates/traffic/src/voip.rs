//! `voip`: the packets of a voice codec, and the quality of a call.
//!
//! Packets are RTP over UDP, with one or more frames of the codec, at a fixed interval,
//! continuously or in talkspurts. The quality is computed by the E-model ([`crate::emodel`]).

use crate::Emission;
use crate::application::{AppParams, Source, check_length};
use crate::emodel::{self, Quality};
use crate::kinds::{bytes, named_rows};
use crate::length::MAX_PAYLOAD;
use crate::playout::Playout;
use crate::spurts::{Activity, Spurts};
use sojourn_random::{Distribution, Key};
use sojourn_units::declare::{Choices, Param, group, time};
use sojourn_units::words::{Given, Kind, Value, Word, WordError};
use sojourn_units::{MILLISECOND, Nanos, data, params, words};

/// Length of an RTP header, in bytes.
pub const RTP_HEADER: u32 = 12;

/// A codec with its packets and its parameters for the E-model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codec {
    /// Name of the codec in a description.
    pub name: &'static str,
    /// Time between packets, in nanoseconds.
    pub interval: Nanos,
    /// Bytes of voice in a packet, without the RTP header.
    pub voice: u32,
    /// Impairment of a call's quality by the codec.
    pub impairment: Impairment,
}

/// Impairment of a call's quality by the codec.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairment {
    /// Algorithmic delay of the codec in addition to the packet's duration, in nanoseconds.
    pub lookahead: Nanos,
    /// Equipment impairment factor Ie (G.113).
    pub ie: f64,
    /// Packet-loss robustness factor Bpl (G.113).
    pub bpl: f64,
}

/// The known codecs. Ie and Bpl are those of G.113, Appendix I.
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
    "voip": "a voice call: RTP packets of a codec, with the call's quality by the E-model",
    from "RFC 3551; ITU-T G.107, G.113 Appendix I";

    /// Parameters of a call.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Impairment of the call's quality by the codec.
        #[serde(flatten)]
        impairment: Impairment = codec(),
        /// Time between packets. The payload grows with it, unless `payload` is given.
        interval: Nanos = time("20ms").above_zero(),
        /// UDP payload in bytes: voice, and 12 bytes of RTP header.
        payload: u32 = bytes::<{ RTP_HEADER + 1 }, MAX_PAYLOAD>("172"),
        /// Talkspurts and silences; without them packets are sent continuously.
        spurts: Option<Spurts> = talk(),
        /// Delay of the receiver's jitter buffer: `adaptive`, as in WebRTC's NetEQ, or a fixed time
        /// beyond the smallest delay. Packets that arrive later count as lost.
        playout: Playout = Playout::param(),
        /// Loudness rating of the talker's echo in dB (TELR of G.107), from 5 (loud) to 65; without
        /// it the echo is cancelled.
        echo: Option<f64> = echo(),
    }
}

const fn echo() -> Param<Option<f64>> {
    let to = |telr: &Option<f64>| telr.map(|telr| Value::Text(telr.to_string()));
    Param::word(Kind::Real { min: 5.0, max: 65.0 }, "", |value| Ok(Some(value.real())), to)
        .initially(|()| None)
}

const fn codec() -> Param<Impairment> {
    const WORDS: &[Word] = words! {
        "codec", Kind::Choice { of: Codec::NAMES }, "g711",
            "Codec; sets interval, payload, and Ie and Bpl of the E-model.";
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
            "Duration of a talkspurt, such as exp(1s); needs `silence`. Without talkspurts packets are sent continuously.";
        "silence", Kind::Name, "", "Duration of a silence, such as exp(1.35s); needs `talk`.";
    };
    group(
        WORDS,
        |()| None,
        |spurts, given| Spurts::set(spurts, given, "talk", "silence"),
        |spurts, text| Spurts::write(*spurts, text, "talk", "silence"),
    )
}

impl Codec {
    /// Returns the given codec, or the default g711.
    fn of(given: &Given) -> Self {
        given.text("codec").and_then(Self::named).unwrap_or(CODECS[0])
    }
}

impl AppParams for Params {
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
    /// Returns the quality of a call. `playout` is the mean time from departure to playout in
    /// nanoseconds, `loss` the share of packets that are lost or late.
    pub fn quality(&self, playout: Nanos, loss: f64, burst_ratio: f64) -> Quality {
        // The delay of a voice sample includes the packet's duration and the lookahead.
        let Impairment { lookahead, ie, bpl } = self.impairment;
        let mouth_to_ear = playout + self.interval + lookahead;
        emodel::quality(
            emodel::delay_impairment(mouth_to_ear, self.echo),
            emodel::equipment_impairment(loss, ie, bpl, burst_ratio),
        )
    }
}

/// Packet source of one direction of a call.
#[derive(Clone, Debug)]
pub struct Voip {
    interval: Nanos,
    payload: u32,
    activity: Option<Box<Activity>>,
    next: Nanos,
}

impl Voip {
    /// Returns the source of a call that starts at `start`.
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
    fn the_delay_of_a_sample_is_more_than_the_network_s() {
        let call = params("voip codec g729");
        // 75 + 20 + 5 ms from mouth to ear cost nothing yet.
        let near = call.quality(75 * MILLISECOND, 0.0, 1.0);
        assert!((near.rating - (93.2 - 11.0)).abs() < 1e-9);
        // 175 + 20 + 5 ms: Idd of 200 ms.
        let far = call.quality(175 * MILLISECOND, 0.0, 1.0);
        assert!((far.rating - (93.2 - 11.0 - 3.044)).abs() < 1e-3, "{far:?}");
        let echoing = params("voip codec g729 echo 45").quality(175 * MILLISECOND, 0.0, 1.0);
        assert!(echoing.rating < far.rating - 20.0, "{echoing:?}");
    }

    #[test]
    fn playout_is_a_time_or_adaptive() {
        assert_eq!(params("voip").playout, Playout::Adaptive);
        assert_eq!(params("voip playout adaptive").playout, Playout::Adaptive);
        assert_eq!(params("voip playout 60ms").playout, Playout::Fixed(60 * MILLISECOND));
        let error = App::parse("voip playout soon").unwrap_err();
        assert!(
            error.message.contains("`adaptive` or a time, such as 60ms; found `soon`"),
            "{}",
            error.message
        );
        assert!(App::parse("voip echo 80").unwrap_err().message.contains("65"));
    }
}
