//! `client`: the clients of a published study; each combines a kind of flow with a model of its
//! packet times.
//!
//! Source: S. Shu, "Adaptive In-Network Queue Management based on the Stochasticity of Network
//! Flows", bachelor thesis, University of Groningen, 2023, tables 1 and 3; and the code published
//! with it, in which ns-3.35's `OnOffApplication` sends.
//!
//! Where the thesis describes packets with random gaps, its code runs sources that send at a
//! constant rate in on periods and are silent in off periods. Both readings can be selected:
//! `..-packets` and `..-gaps` follow the text of the thesis, `..-onoff` the code. A client is an
//! alias for a description of `cbr` or `packets`.

use crate::application::{AppParams, Carrier};
use crate::kinds::{named_rows, optional_bytes};
use crate::length::MAX_PAYLOAD;
use sojourn_random::Distribution;
use sojourn_units::declare::{Param, choice};
use sojourn_units::words::{Kind, Value};
use sojourn_units::{Nanos, Rate, SECOND, text_params};
use std::convert::Infallible;

/// A kind of flow (table 3 of the thesis).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// Name of the kind in a description.
    pub name: &'static str,
    /// Payload rate of a client, in bits per second.
    pub rate: u64,
    /// Payload of a packet in bytes.
    pub payload: u32,
    /// Packets per second in the Poisson models; the thesis rounds it, and for `voip` it does not
    /// match the rate.
    pub lambda: f64,
    /// Default transport.
    pub carrier: Carrier,
    /// Settings, as the help shows them.
    pub words: &'static str,
    /// Source of the numbers.
    pub source: &'static str,
}

const TABLE_3: &str = "the thesis' table 3 [verified]";

/// All kinds of flow.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "ftp",
        rate: 10_000_000,
        payload: 1400,
        lambda: 892.0,
        carrier: Carrier::Tcp,
        words: "rate 10mbit payload 1400 lambda 892, over TCP; a long flow, which the thesis simulates for 60 s",
        source: TABLE_3,
    },
    Preset {
        name: "streaming",
        rate: 5_000_000,
        payload: 1400,
        lambda: 446.0,
        carrier: Carrier::Tcp,
        words: "rate 5mbit payload 1400 lambda 446, over TCP; a long flow, which the thesis simulates for 60 s",
        source: TABLE_3,
    },
    Preset {
        name: "http",
        rate: 1_500_000,
        payload: 1400,
        lambda: 133.0,
        carrier: Carrier::Tcp,
        words: "rate 1.5mbit payload 1400 lambda 133, over TCP; a short flow, which the thesis simulates for 10 s",
        source: TABLE_3,
    },
    Preset {
        name: "voip",
        rate: 128_000,
        payload: 300,
        lambda: 50.0,
        carrier: Carrier::Udp,
        words: "rate 128kbit payload 300 lambda 50, over UDP; a short flow, which the thesis simulates for 10 s",
        source: "the thesis' table 3 [verified]; there lambda and payload give 120 kbit/s, but the rate is 128 kbit/s",
    },
    Preset {
        name: "gaming",
        rate: 80_000,
        payload: 200,
        lambda: 50.0,
        carrier: Carrier::Udp,
        words: "rate 80kbit payload 200 lambda 50, over UDP; a short flow, which the thesis simulates for 10 s",
        source: TABLE_3,
    },
];

/// A model of packet times (table 1 of the thesis), in one of two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Name of the model in a description.
    pub name: &'static str,
    /// Description that the model abbreviates.
    pub words: &'static str,
    /// Reading of the thesis, and source of the numbers.
    pub source: &'static str,
}

/// All models. In a description, `RATE`, `PAYLOAD` and `LAMBDA` are those of the client, and `GAP`
/// is the time of one packet at the client's rate.
pub const MODELS: &[Model] = &[
    Model {
        name: "cbr",
        words: "cbr rate RATE payload PAYLOAD",
        source: "thesis text and code: on for 1 s, off for 0 s, so it always sends [verified]",
    },
    Model {
        name: "vbr",
        words: "cbr rate RATE payload PAYLOAD on 1s off 1.5s begin off phase resume",
        source: "thesis text and code; sends 40 % of the rate on average [verified]",
    },
    Model {
        name: "poisson-packets",
        words: "packets interval exp(1/LAMBDA) payload PAYLOAD",
        source: "thesis text: packets are a Poisson process [verified]",
    },
    Model {
        name: "poisson-onoff",
        words: "cbr rate RATE payload PAYLOAD on exp(1/LAMBDA) off exp(1/LAMBDA) begin off phase resume",
        source: "thesis code, for the model that the text calls Poisson; sends half the rate on average [verified]",
    },
    Model {
        name: "pareto-gaps",
        words: "packets interval pareto(GAP,2.5) payload PAYLOAD",
        source: "thesis text: the shape 2.5 [verified]; the scale k is 1.5 without a unit there, and is chosen here to give the client's rate [reconstructed]",
    },
    Model {
        name: "pareto-onoff",
        words: "cbr rate RATE payload PAYLOAD on 1s off pareto(2.5s,2.5) begin off phase resume",
        source: "thesis code: off periods of at least k = 1.5 s, alpha 2.5; sends 29 % of the rate on average [verified]",
    },
    Model {
        name: "weibull-gaps",
        words: "packets interval weibull(GAP/0.903,1.5) payload PAYLOAD",
        source: "thesis text: the shape 1.5 [verified]; the scale b is 1 without a unit there, and is chosen here to give the client's rate [reconstructed]",
    },
    Model {
        name: "weibull-onoff",
        words: "cbr rate RATE payload PAYLOAD on 3s off weibull(1s,1.5) begin off phase resume",
        source: "thesis code: on for 3 s, not 1 s as in the other models; sends 77 % of the rate on average [verified]",
    },
];

named_rows!(Preset in PRESETS);
named_rows!(Model in MODELS);

text_params! {
    "client": "a client of the dAQM thesis: a kind of flow with a model of its packet times",
    from "Shu 2023, tables 1 and 3, and its published code";

    /// Parameters of a client.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Params {
        /// Kind of flow; sets rate, payload, lambda and transport.
        preset: Preset = choice("http"),
        /// Model of packet times; `..-onoff` and `vbr` follow the published code, `..-gaps` and
        /// `..-packets` the text of the thesis.
        model: Model = choice("cbr"),
        /// Payload rate while the client sends; replaces the rate of `preset`.
        rate: Option<Rate> =
            Param::word(Kind::Rate, "", |value| Ok(Rate::new(value.integer())), |_| None)
                .initially(|()| None),
        /// Payload of a packet, or length of a write into TCP; replaces the payload of `preset`.
        payload: Option<u32> = optional_bytes::<1, MAX_PAYLOAD>(),
        /// Packets per second of the Poisson models; by default that of the preset, or rate / (8
        /// payload) if `rate` or `payload` is given.
        lambda: Option<f64> = Param::word(
            Kind::Real { min: 1e-3, max: 1e9 },
            "",
            |value: &Value| Ok(Some(value.real())),
            |_| None,
        )
        .initially(|()| None),
    }
}

impl AppParams for Params {
    type Source = Infallible;

    fn stands_for(&self) -> Option<String> {
        let rate = self.rate.map_or(self.preset.rate, Rate::bits);
        let payload = self.payload.unwrap_or(self.preset.payload);
        let gap = f64::from(payload) * 8.0 * SECOND as f64 / rate as f64;
        let lambda = match self.lambda {
            Some(lambda) => lambda,
            None if self.rate.is_some() || self.payload.is_some() => SECOND as f64 / gap,
            None => self.preset.lambda,
        };
        // Mean of the Weibull distribution with scale 1; the models' descriptions contain it as
        // 0.903.
        let unit = Distribution::Weibull { scale: 1.0, shape: 1.5 }.mean();
        let text = self.model.words.replace("RATE", &format!("{rate}bit"));
        let text = text.replace("PAYLOAD", &payload.to_string());
        let text = text.replace("1/LAMBDA", &whole(SECOND as f64 / lambda));
        Some(text.replace("GAP/0.903", &whole(gap / unit)).replace("GAP", &whole(gap)))
    }

    fn carriers(&self) -> &'static [Carrier] {
        match self.preset.carrier {
            Carrier::Tcp => &[Carrier::Tcp, Carrier::Udp],
            Carrier::Udp => &[Carrier::Udp, Carrier::Tcp],
        }
    }
}

/// Returns a time as text for a description, in whole nanoseconds and at least 1 ns.
fn whole(nanos: f64) -> String {
    format!("{}ns", (libm::round(nanos) as Nanos).max(1))
}

#[cfg(test)]
mod tests {
    use super::{MODELS, PRESETS};
    use crate::App;

    fn text(words: &str) -> String {
        App::parse(words).unwrap().to_string()
    }

    #[test]
    fn words_replace_words() {
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

    /// Checks that the shown settings of a preset are its values.
    #[test]
    fn presets_are_their_words() {
        for preset in PRESETS {
            let (words, _) = preset.words.split_once(',').unwrap();
            for model in MODELS {
                let name = [preset.name, " model ", model.name].concat();
                let explicit = format!("client preset {name} {words}");
                assert_eq!(App::parse(&explicit), App::parse(&format!("client preset {name}")));
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
                "unknown word `size` for `client`; allowed: preset, model, rate, payload, lambda",
            ),
        ] {
            assert_eq!(App::parse(text).unwrap_err().to_string(), why);
        }
        let error = App::parse("client model pareto-onof").unwrap_err();
        assert_eq!(error.nearest.as_deref(), Some("pareto-onoff"));
    }
}
