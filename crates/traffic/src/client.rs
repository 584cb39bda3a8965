//! `client`: the clients of a published study, a kind of flow with a model of its packets in time.
//!
//! Source: S. Shu, "Adaptive In-Network Queue Management based on the Stochasticity of Network
//! Flows", bachelor thesis, University of Groningen, 2023, tables 1 and 3; and its published code,
//! whose sources are ns-3.35's `OnOffApplication`.
//!
//! The thesis writes of packets whose gaps are distributed; its code runs sources that send at a
//! constant rate while they are on, and distributes the periods on and off. Both readings are here,
//! named apart: `..-onoff` (and `vbr`) is the code, `..-packets` and `..-gaps` is the text. A client
//! is no source of its own: its words stand for those of `cbr` or `packets`.

use crate::app::{App, Carrier};
use crate::length::Counts;
use crate::spurts::{Begin, Phase, Spurts};
use crate::{cbr, packets};
use sojourn_random::Distribution;
use sojourn_units::words::{Given, Kind, Table, Word, WordError};
use sojourn_units::{Nanos, Rate, SECOND};

/// A kind of flow: table 3 of the thesis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// Its word.
    pub name: &'static str,
    /// Bits per second of a client.
    pub rate: u64,
    /// Payload of a packet in bytes.
    pub payload: u32,
    /// Packets per second in the Poisson models; the thesis rounds, and gives `voip` another rate.
    pub lambda: f64,
    /// What carries it unless the scenario says otherwise.
    pub carrier: Carrier,
    /// What it sets, as shown.
    pub words: &'static str,
    /// Where the numbers come from.
    pub source: &'static str,
}

const TABLE_3: &str = "the thesis' table 3 [verified]";

/// The kinds of flow.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "ftp",
        rate: 10_000_000,
        payload: 1400,
        lambda: 892.0,
        carrier: Carrier::Tcp,
        words: "rate 10mbit payload 1400 lambda 892, over TCP; a long flow, observed for 60 s",
        source: TABLE_3,
    },
    Preset {
        name: "streaming",
        rate: 5_000_000,
        payload: 1400,
        lambda: 446.0,
        carrier: Carrier::Tcp,
        words: "rate 5mbit payload 1400 lambda 446, over TCP; a long flow, observed for 60 s",
        source: TABLE_3,
    },
    Preset {
        name: "http",
        rate: 1_500_000,
        payload: 1400,
        lambda: 133.0,
        carrier: Carrier::Tcp,
        words: "rate 1.5mbit payload 1400 lambda 133, over TCP; a short flow, observed for 10 s",
        source: TABLE_3,
    },
    Preset {
        name: "voip",
        rate: 128_000,
        payload: 300,
        lambda: 50.0,
        carrier: Carrier::Udp,
        words: "rate 128kbit payload 300 lambda 50, over UDP; a short flow, observed for 10 s",
        source: "the thesis' table 3 [verified]; its lambda is 120 kbit/s, not the 128 of its rate",
    },
    Preset {
        name: "gaming",
        rate: 80_000,
        payload: 200,
        lambda: 50.0,
        carrier: Carrier::Udp,
        words: "rate 80kbit payload 200 lambda 50, over UDP; a short flow, observed for 10 s",
        source: TABLE_3,
    },
];

/// A model of packets in time: table 1 of the thesis, read in one of two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its word.
    pub name: &'static str,
    /// What it stands for.
    pub words: &'static str,
    /// Which reading it is, and where its numbers come from.
    pub source: &'static str,
}

/// The models. `RATE`, `PAYLOAD` and `LAMBDA` are the client's, `GAP` is the time that a packet takes
/// at its rate.
pub const MODELS: &[Model] = &[
    Model {
        name: "cbr",
        words: "cbr rate RATE payload PAYLOAD",
        source: "text and code: on 1 s, off 0 s, which is always on [verified]",
    },
    Model {
        name: "vbr",
        words: "cbr rate RATE payload PAYLOAD on 1s off 1.5s begin off phase resume",
        source: "text and code; 40 % of the rate on the mean [verified]",
    },
    Model {
        name: "poisson-packets",
        words: "packets interval exp(1/LAMBDA) payload PAYLOAD",
        source: "the text: Poisson arrivals of packets [verified]",
    },
    Model {
        name: "poisson-onoff",
        words: "cbr rate RATE payload PAYLOAD on exp(1/LAMBDA) off exp(1/LAMBDA) begin off phase resume",
        source: "the code, which the thesis calls Poisson; half the rate on the mean [verified]",
    },
    Model {
        name: "pareto-gaps",
        words: "packets interval pareto(GAP,2.5) payload PAYLOAD",
        source: "the text [verified], its shape; its k of 1.5 (unit not given) scaled to the client's rate, which is ours [reconstructed]",
    },
    Model {
        name: "pareto-onoff",
        words: "cbr rate RATE payload PAYLOAD on 1s off pareto(2.5s,2.5) begin off phase resume",
        source: "the code: off periods of at least k = 1.5 s, alpha 2.5; 29 % of the rate on the mean [verified]",
    },
    Model {
        name: "weibull-gaps",
        words: "packets interval weibull(GAP/0.903,1.5) payload PAYLOAD",
        source: "the text [verified], its shape; its b of 1 (unit not given) scaled to the client's rate, which is ours [reconstructed]",
    },
    Model {
        name: "weibull-onoff",
        words: "cbr rate RATE payload PAYLOAD on 3s off weibull(1s,1.5) begin off phase resume",
        source: "the code, on 3 s where the other models have 1 s; 77 % of the rate on the mean [verified]",
    },
];

/// The shape of the thesis' Pareto distribution; with k = 1.5 s its mean is 2.5 s.
const PARETO_SHAPE: f64 = 2.5;
/// The shape of its Weibull distribution.
const WEIBULL_SHAPE: f64 = 1.5;

/// The words of `client`.
pub const TABLE: Table = Table {
    name: "client",
    summary: "a client of the dAQM thesis: a kind of flow with a model of its packets in time",
    source: "Shu 2023, tables 1 and 3, and its published code",
    words: &[
        Word {
            name: "preset",
            kind: Kind::Choice { of: &["ftp", "streaming", "http", "voip", "gaming"] },
            default: "http",
            doc: "Kind of flow: sets rate, payload, lambda and what carries it.",
        },
        Word {
            name: "model",
            kind: Kind::Choice {
                of: &[
                    "cbr",
                    "vbr",
                    "poisson-packets",
                    "poisson-onoff",
                    "pareto-gaps",
                    "pareto-onoff",
                    "weibull-gaps",
                    "weibull-onoff",
                ],
            },
            default: "cbr",
            doc: "When packets leave; `..-onoff` and `vbr` as in the published code, `..-gaps` and `..-packets` as in the text.",
        },
        Word {
            name: "rate",
            kind: Kind::Rate,
            default: "",
            doc: "Payload rate while sending, instead of the preset's.",
        },
        Word {
            name: "payload",
            kind: Kind::Size,
            default: "",
            doc: "Payload of a packet, or length of a write into TCP, instead of the preset's.",
        },
        Word {
            name: "lambda",
            kind: Kind::Real { min: 1e-3, max: 1e9 },
            default: "",
            doc: "Packets per second of the Poisson models; the preset's, but rate / (8 payload) if `rate` or `payload` is given.",
        },
    ],
};

fn preset(given: &Given) -> &'static Preset {
    let name = given.text("preset").unwrap_or("http");
    PRESETS.iter().find(|preset| preset.name == name).unwrap_or(&PRESETS[2])
}

/// What carries such a client unless the scenario says otherwise.
pub(crate) fn carrier(given: &Given) -> Carrier {
    preset(given).carrier
}

/// The application that a client's words stand for.
pub(crate) fn read(given: &Given) -> Result<App, WordError> {
    let preset = preset(given);
    let rate = given.rate("rate").or(Rate::new(preset.rate)).expect("a preset has a rate");
    let payload =
        if given.has("payload") { Counts::Payload.length(given)? } else { preset.payload };
    let gap = f64::from(payload) * 8.0 * SECOND as f64 / rate.bits() as f64;
    let lambda = match given.real("lambda") {
        Some(lambda) => lambda,
        None if given.has("rate") || given.has("payload") => SECOND as f64 / gap,
        None => preset.lambda,
    };
    let exponential = Distribution::Exponential { mean: whole(SECOND as f64 / lambda) };
    let seconds = |span: f64| Distribution::constant(span * SECOND as f64);
    let on_off = |on, off| {
        let spurts = Spurts { on, off, begin: Begin::Off, phase: Phase::Resume };
        App::Cbr(cbr::Params {
            counts: Counts::Payload,
            spurts: Some(spurts),
            ..cbr::Params::steady(rate, payload)
        })
    };
    let gaps = |interval| {
        let length = Distribution::constant(f64::from(payload));
        App::Packets(packets::Params { interval, length, counts: Counts::Payload })
    };
    Ok(match given.text("model").unwrap_or("cbr") {
        "vbr" => on_off(seconds(1.0), seconds(1.5)),
        "poisson-packets" => gaps(exponential),
        "poisson-onoff" => on_off(exponential, exponential),
        "pareto-gaps" => gaps(Distribution::Pareto { mean: whole(gap), shape: PARETO_SHAPE }),
        "pareto-onoff" => {
            let mean = (5 * SECOND / 2) as f64;
            on_off(seconds(1.0), Distribution::Pareto { mean, shape: PARETO_SHAPE })
        }
        "weibull-gaps" => {
            let unit = Distribution::Weibull { scale: 1.0, shape: WEIBULL_SHAPE }.mean();
            gaps(Distribution::Weibull { scale: whole(gap / unit), shape: WEIBULL_SHAPE })
        }
        "weibull-onoff" => {
            let scale = SECOND as f64;
            on_off(seconds(3.0), Distribution::Weibull { scale, shape: WEIBULL_SHAPE })
        }
        _ => {
            App::Cbr(cbr::Params { counts: Counts::Payload, ..cbr::Params::steady(rate, payload) })
        }
    })
}

/// A span in whole nanoseconds, at least one: what a description can say.
fn whole(nanos: f64) -> f64 {
    (libm::round(nanos) as Nanos).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str) -> String {
        App::parse(words).unwrap().to_string()
    }

    #[test]
    fn words_stand_for_words() {
        for (client, plain) in [
            ("client", "cbr rate 1500kbit payload 1400"),
            ("client preset ftp", "cbr rate 10mbit payload 1400"),
            (
                "client preset gaming model vbr",
                "cbr rate 80kbit payload 200 on 1s off 1500ms begin off phase resume",
            ),
            (
                "client preset ftp model poisson-packets",
                "packets interval exp(1121076ns) payload 1400",
            ),
            (
                "client preset voip model poisson-onoff",
                "cbr rate 128kbit payload 300 on exp(20ms) off exp(20ms) begin off phase resume",
            ),
            ("client model pareto-gaps", "packets interval pareto(7466667ns,2.5) payload 1400"),
            (
                "client model pareto-onoff rate 400kbit",
                "cbr rate 400kbit payload 1400 on 1s off pareto(2500ms,2.5) begin off phase resume",
            ),
            ("client model weibull-gaps", "packets interval weibull(8271067ns,1.5) payload 1400"),
            (
                "client model weibull-onoff payload 50",
                "cbr rate 1500kbit payload 50 on 3s off weibull(1s,1.5) begin off phase resume",
            ),
            (
                "client preset voip model poisson-packets rate 128kbit",
                "packets interval exp(18750us) payload 300",
            ),
            (
                "client preset voip model poisson-packets payload 100 lambda 10",
                "packets interval exp(100ms) payload 100",
            ),
        ] {
            assert_eq!(App::parse(client), App::parse(plain), "{client}: {}", text(client));
        }
    }

    #[test]
    fn tables_list_what_can_be_chosen() {
        let choices = |word: usize| match TABLE.words[word].kind {
            Kind::Choice { of } => of.to_vec(),
            _ => panic!(),
        };
        assert_eq!(choices(0), PRESETS.iter().map(|p| p.name).collect::<Vec<_>>());
        assert_eq!(choices(1), MODELS.iter().map(|m| m.name).collect::<Vec<_>>());
    }

    /// What is shown of a preset and of a model is what they do.
    #[test]
    fn what_is_shown_is_what_is_done() {
        for preset in PRESETS {
            let (words, _) = preset.words.split_once(',').unwrap();
            for model in MODELS {
                let name = [preset.name, " model ", model.name].concat();
                let explicit = format!("client preset {name} {words}");
                assert_eq!(App::parse(&explicit), App::parse(&format!("client preset {name}")));
                let number =
                    |word: &str| words.split(' ').skip_while(|w| *w != word).nth(1).unwrap();
                let lambda: f64 = number("lambda").parse().unwrap();
                let gap = f64::from(preset.payload) * 8e9 / preset.rate as f64;
                let shown = model
                    .words
                    .replace("RATE", number("rate"))
                    .replace("PAYLOAD", number("payload"))
                    .replace("1/LAMBDA", &format!("{}ns", libm::round(1e9 / lambda)))
                    .replace("GAP/0.903", &format!("{}ns", libm::round(gap / 0.902_745_3)))
                    .replace("GAP", &format!("{}ns", libm::round(gap)));
                assert_eq!(App::parse(&shown), App::parse(&explicit), "{name}: {shown}");
            }
        }
    }

    #[test]
    fn is_refused_without_sense() {
        for (text, why) in [
            ("client payload 0", "`payload` must be from 1 to 8972 bytes"),
            ("client lambda 0", "`lambda` needs a number from 0.001 to 1000000000; found `0`"),
            (
                "client size 1514",
                "unknown word `size` for `client`; it takes preset, model, rate, payload, lambda",
            ),
        ] {
            assert_eq!(App::parse(text).unwrap_err().to_string(), why);
        }
        let error = App::parse("client model pareto-onof").unwrap_err();
        assert_eq!(error.nearest.as_deref(), Some("pareto-onoff"));
    }
}
