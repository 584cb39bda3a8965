//! Any application, by name.

use crate::length::MAX_PAYLOAD;
use crate::spurts::Spurts;
use crate::{Emission, bulk, cbr, client, packets, replay, transfer, voip, web};
use serde::{Deserialize, Serialize};
use sojourn_random::{Key, Unit};
use sojourn_units::Nanos;
use sojourn_units::words::{self, Table, WordError};
use std::fmt;

/// An application and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum App {
    /// `bulk`.
    Bulk(bulk::Params),
    /// `transfer`.
    Transfer(transfer::Params),
    /// `cbr`.
    Cbr(cbr::Params),
    /// `packets`.
    Packets(packets::Params),
    /// `replay`.
    Replay(replay::Params),
    /// `voip`.
    Voip(voip::Params),
    /// `web`.
    Web(web::Params),
}

const TABLES: &[&Table] = &[
    &bulk::TABLE,
    &transfer::TABLE,
    &cbr::TABLE,
    &packets::TABLE,
    &replay::TABLE,
    &voip::TABLE,
    &client::TABLE,
    &web::TABLE,
];

/// What may carry an application's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// The words of every application.
pub fn tables() -> &'static [&'static Table] {
    TABLES
}

impl App {
    /// Reads a description such as `cbr rate 250kbit size 573`.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let (table, given) = words::describe("application", TABLES, text)?;
        Ok(match table.name {
            "transfer" => Self::Transfer(transfer::Params::read(&given)?),
            "cbr" => Self::Cbr(cbr::Params::read(&given)?),
            "packets" => Self::Packets(packets::Params::read(&given)?),
            "voip" => Self::Voip(voip::Params::read(&given)?),
            "replay" => Self::Replay(replay::Params::read(&given)?),
            "client" => client::read(&given)?,
            "web" => Self::Web(web::Params::read(&given)?),
            _ => Self::Bulk(bulk::Params {}),
        })
    }

    /// What may carry the application that `text` describes, the usual carrier first.
    ///
    /// # Errors
    /// As [`App::parse`].
    pub fn carriers(text: &str) -> Result<&'static [Carrier], WordError> {
        let (table, given) = words::describe("application", TABLES, text)?;
        let usual = match table.name {
            "client" => client::carrier(&given),
            _ if Self::parse(text)?.sends_packets() => Carrier::Udp,
            _ => return Ok(&[Carrier::Tcp]),
        };
        Ok(match usual {
            Carrier::Tcp => &[Carrier::Tcp, Carrier::Udp],
            Carrier::Udp => &[Carrier::Udp, Carrier::Tcp],
        })
    }

    /// Says what is wrong with parameters that do not come from a text, if anything is.
    ///
    /// # Errors
    /// A distribution without sense, a packet without bytes.
    pub fn check(&self) -> Result<(), String> {
        let spurts =
            |spurts: &Option<Spurts>| spurts.map(|s| vec![s.on, s.off]).unwrap_or_default();
        let (distributions, length) = match self {
            Self::Bulk(_) => (Vec::new(), 1),
            Self::Transfer(params) => (vec![params.size, params.think], 1),
            Self::Cbr(params) => (spurts(&params.spurts), params.length),
            Self::Packets(params) => (vec![params.interval, params.length], 1),
            Self::Replay(params) => {
                params.check().map_err(|why| format!("`replay`: {why}"))?;
                (Vec::new(), 1)
            }
            Self::Voip(params) => (spurts(&params.spurts), params.payload),
            Self::Web(params) => {
                let web::Params { pages, inter_page, objects, inter_object, size, .. } = *params;
                let mut all = vec![pages, inter_page, objects, inter_object, size];
                all.extend(params.inter_session);
                (all, params.packet)
            }
        };
        if length == 0 {
            return Err(format!("`{}`: a packet has at least one byte", self.name()));
        }
        for distribution in distributions {
            let text = || distribution.format(Unit::Number);
            distribution.check().map_err(|why| format!("`{}`: {}: {why}", self.name(), text()))?;
        }
        Ok(())
    }

    /// Its words.
    pub fn table(&self) -> &'static Table {
        match self {
            Self::Bulk(_) => &bulk::TABLE,
            Self::Transfer(_) => &transfer::TABLE,
            Self::Cbr(_) => &cbr::TABLE,
            Self::Packets(_) => &packets::TABLE,
            Self::Replay(_) => &replay::TABLE,
            Self::Voip(_) => &voip::TABLE,
            Self::Web(_) => &web::TABLE,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.table().name
    }

    /// Whether it sends packets on its own schedule, rather than data by a transport's.
    pub fn sends_packets(&self) -> bool {
        matches!(self, Self::Cbr(_) | Self::Packets(_) | Self::Replay(_) | Self::Voip(_))
    }

    /// The longest UDP payload that it may send, or a frame can hold; 0 if it sends no packets.
    pub fn longest_payload(&self) -> u32 {
        match self {
            Self::Cbr(params) => params.counts.payload(params.length),
            Self::Packets(params) => {
                // Nothing is drawn that is exceeded with less than 2^-53.
                let longest = params.length.exceeded_with(f64::EPSILON / 4.0);
                let longest = longest.min(f64::from(2 * MAX_PAYLOAD));
                params.counts.payload(libm::ceil(longest) as u32).max(1)
            }
            Self::Replay(params) => params.longest_payload(),
            Self::Voip(params) => params.payload,
            Self::Bulk(_) | Self::Transfer(_) | Self::Web(_) => 0,
        }
    }

    /// Whether a flow of it ends by itself.
    pub fn ends(&self) -> bool {
        match self {
            Self::Transfer(params) => params.repeat.is_some(),
            Self::Replay(params) => params.repeat.is_some(),
            Self::Bulk(_) | Self::Cbr(_) | Self::Packets(_) | Self::Voip(_) | Self::Web(_) => false,
        }
    }

    /// The packets of one flow from `start` on, if it [sends packets](Self::sends_packets).
    pub fn packet_source(&self, key: Key, start: Nanos) -> Option<PacketSource> {
        match self {
            Self::Cbr(params) => Some(PacketSource::Cbr(cbr::Cbr::new(params, key, start))),
            Self::Packets(params) => {
                Some(PacketSource::Packets(packets::Packets::new(params, key, start)))
            }
            Self::Replay(params) => Some(PacketSource::Replay(replay::Replay::new(params, start))),
            Self::Voip(params) => Some(PacketSource::Voip(voip::Voip::new(params, key, start))),
            Self::Bulk(_) | Self::Transfer(_) | Self::Web(_) => None,
        }
    }
}

/// The description that [`App::parse`] reads back, every word with its value.
impl fmt::Display for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::Bulk(_) => "bulk".to_owned(),
            Self::Transfer(params) => params.write(),
            Self::Cbr(params) => params.write(),
            Self::Packets(params) => params.write(),
            Self::Replay(params) => params.write(),
            Self::Voip(params) => params.write(),
            Self::Web(params) => params.write(),
        })
    }
}

/// A flow that sends packets on its own schedule.
#[derive(Clone, Debug)]
pub enum PacketSource {
    /// `cbr`.
    Cbr(cbr::Cbr),
    /// `packets`.
    Packets(packets::Packets),
    /// `replay`.
    Replay(replay::Replay),
    /// `voip`.
    Voip(voip::Voip),
}

impl PacketSource {
    /// The next packet; times never decrease.
    #[inline]
    pub fn next_packet(&mut self) -> Emission {
        match self {
            Self::Cbr(source) => source.next_packet(),
            Self::Packets(source) => source.next_packet(),
            Self::Replay(source) => source.next_packet(),
            Self::Voip(source) => source.next_packet(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXTS: &[&str] = &[
        "bulk",
        "transfer",
        "transfer size pareto2(30kb,1.5) forever think exp(1.5s)",
        "transfer size uniform(1000,2000.5) repeat 7",
        "cbr rate 250kbit size 573",
        "cbr rate 1.5mbit payload 200 jitter 5% on exp(1s) off pareto(2s,1.5)",
        "cbr rate 1mbit on exp(1ms) off exp(1ms) begin off phase resume",
        "packets interval exp(3ms) size uniform(64,1514)",
        "packets interval pareto(3ms,1.9) payload lognormal(200,0.6)",
        "replay file a.pcap",
        "replay file \"my trace.pcapng\" from [::1]:53 to 10.0.0.1 protocol udp speed 0.5 forever",
        "voip",
        "voip codec g729 talk exp(1s) silence exp(1.35s) playout 40ms",
        "voip codec gsm-efr interval 40ms",
        "voip codec g711-noplc payload 92",
        "client preset ftp model poisson-onoff",
        "client preset streaming model weibull-gaps rate 3333333bit",
        "web",
        "web preset ns2-large once",
        "web preset red-pd gapfrom start packet 1460 pages 3",
        "web preset mice-elephants intersession exp(100ms)",
    ];

    #[test]
    fn texts_read_back() {
        for text in TEXTS {
            let app = App::parse(text).unwrap();
            assert_eq!(app.check(), Ok(()));
            assert_eq!(App::parse(&app.to_string()).as_ref(), Ok(&app), "{text} -> {app}");
            assert_eq!(app.packet_source(Key::new(1, "x"), 1).is_some(), app.sends_packets());
        }
    }

    #[test]
    fn longest_payloads() {
        for (text, longest) in [
            ("bulk", 0),
            ("voip", 172),
            ("cbr rate 1mbit size 1514", 1472),
            ("cbr rate 1mbit payload 1400 jitter 10%", 1400),
            ("packets interval exp(3ms) size uniform(64,1514)", 1472),
            ("packets interval 1ms payload exp(200)", 7486),
            ("packets interval 1ms payload pareto(200,1.2)", MAX_PAYLOAD),
        ] {
            assert_eq!(App::parse(text).unwrap().longest_payload(), longest, "{text}");
        }
    }

    /// The shortest description of an application.
    fn bare(table: &Table) -> &'static str {
        match table.name {
            "cbr" => "cbr rate 1mbit",
            "replay" => "replay file a.pcap",
            name => name,
        }
    }

    #[test]
    fn every_table_has_its_application() {
        for table in tables() {
            let name = App::parse(bare(table)).unwrap().name();
            // A client is a name for others.
            assert_eq!(name, if table.name == "client" { "cbr" } else { table.name });
        }
    }

    /// The defaults that a table shows are those that hold.
    #[test]
    fn tables_tell_the_defaults() {
        for table in tables() {
            let mut text = table.name.to_owned();
            for word in table.words {
                let valued = !matches!(word.kind, words::Kind::Switch { .. } | words::Kind::Flag);
                if !word.default.is_empty() && valued && word.name != "payload" {
                    text += &[" ", word.name, " ", word.default].concat();
                }
            }
            // Words without a default that it cannot do without.
            text += bare(table).strip_prefix(table.name).unwrap_or("");
            assert_eq!(App::parse(&text), App::parse(bare(table)), "{text}");
        }
    }

    #[test]
    fn parameters_without_sense_are_found() {
        let App::Web(mut web) = App::parse("web").unwrap() else { panic!() };
        web.size = sojourn_random::Distribution::Lomax { mean: 12.0, shape: 1.0 };
        assert_eq!(
            App::Web(web).check().unwrap_err(),
            "`web`: pareto2(12,1): its shape must be above 1, or it has no mean"
        );
    }

    #[test]
    fn carriers_are_those_that_can_carry() {
        use Carrier::{Tcp, Udp};
        for (text, carriers) in [
            ("bulk", &[Tcp] as &[_]),
            ("web", &[Tcp]),
            ("voip", &[Udp, Tcp]),
            ("cbr rate 1mbit", &[Udp, Tcp]),
            ("client preset streaming", &[Tcp, Udp]),
            ("client preset gaming model vbr", &[Udp, Tcp]),
        ] {
            assert_eq!(App::carriers(text), Ok(carriers));
            assert_eq!(carriers.contains(&Udp), App::parse(text).unwrap().sends_packets());
        }
        assert!(App::carriers("cbr").is_err());
    }

    #[test]
    fn errors_name_the_nearest_word() {
        let error = |text: &str| App::parse(text).unwrap_err();
        assert_eq!(error("viop").to_string(), "unknown application `viop`: did you mean `voip`?");
        let preset = error("web preset pareto2");
        assert_eq!(preset.nearest.as_deref(), Some("pareto-2"));
        let size = error("web size paretto2(12,1.2)");
        assert_eq!(size.at, 9..25);
        assert_eq!(size.nearest.as_deref(), Some("pareto2"));
        assert_eq!(size.found, "paretto2");
    }

    proptest! {
        #[test]
        fn never_panics(
            name in proptest::sample::select(vec!["bulk", "transfer", "cbr rate 1mbit", "voip", "packets", "client", "replay file a", "web"]),
            text in "((size|on|off|lambda|model|think|pages|objects|rate|payload|1s|3|exp\\(1s\\)|pareto2\\(3,2\\)) ){0,6}",
            any in "\\PC{0,40}",
        ) {
            let _ = App::parse(&any);
            if let Ok(app) = App::parse(&format!("{name} {text}")) {
                prop_assert_eq!(App::parse(&app.to_string()), Ok(app));
            }
        }

        #[test]
        fn packets_come_in_order(index in 0usize..TEXTS.len(), seed: u64) {
            let app = App::parse(TEXTS[index]).unwrap();
            if let Some(mut source) = app.packet_source(Key::new(seed, "x"), 5) {
                let all: Vec<Emission> = (0..200).map(|_| source.next_packet()).collect();
                prop_assert!(all.windows(2).all(|w| w[0].at <= w[1].at));
                prop_assert!(all[0].at >= 5);
            }
        }
    }
}
