//! Two enums over all applications: one for their parameters, one for their packet sources.

use crate::Emission;
use crate::application::{AppParams, Carrier, Source};
use sojourn_random::{Key, Unit};
use sojourn_units::declare::Parameters;
use sojourn_units::words::{self, Given, Text, WordError};
use sojourn_units::{Nanos, each, family};
use std::fmt;

applications!(family! (
    /// Parameters of an application; the variant names the application.
    #[derive(Clone, Debug, PartialEq)]
    #[serde(tag = "name", rename_all = "snake_case")]
    pub enum App by AppParams;

    /// A flow of packets that follows its own schedule, independently of the transport.
    #[derive(Clone, Debug)]
    pub enum PacketSource of Source;
));

/// Returns the parameters of an application after reading the given words.
fn read_as<A: AppParams>(_: &A, given: &Given) -> Result<A, WordError> {
    if let Some((word, example)) = A::REQUIRED
        && given.find(word).is_none_or(|value| *value == words::Value::Text(String::new()))
    {
        let name = A::TABLE.name;
        return Err(given.error(word, format!("`{name}` needs `{word}`, such as `{example}`")));
    }
    let mut params = A::initial(given);
    params.set(given)?;
    params.settle(given)?;
    Ok(params)
}

fn sends<A: AppParams>(_: &A) -> bool {
    A::Source::SENDS
}

fn opens_sessions<A: AppParams>(_: &A) -> bool {
    A::OPENS_SESSIONS
}

fn is_balanced<A: AppParams>(_: &A) -> bool {
    A::IS_BALANCED
}

impl App {
    /// Reads a description such as `cbr rate 250kbit size 573`.
    ///
    /// # Errors
    /// The first error in the text, and its position.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let app = Self::described(text)?;
        match applications!(each! (App, &app, params => params.stands_for())) {
            Some(other) => {
                Self::parse(&other).map_err(|error| WordError { at: 0..text.len(), ..error })
            }
            None => Ok(app),
        }
    }

    /// Returns the application that a description names; an alias such as `client` is not replaced.
    fn described(text: &str) -> Result<Self, WordError> {
        let (table, given) = words::describe("application", tables(), text)?;
        let named = Self::named(table.name).expect("each declared name is that of an application");
        applications!(each! (App to App, &named, (params, app) => read_as(params, &given).map(app)))
    }

    /// Returns the transports that can carry the application that `text` describes, the default
    /// first.
    ///
    /// # Errors
    /// The first error in the text, and its position.
    pub fn carriers(text: &str) -> Result<&'static [Carrier], WordError> {
        Ok(applications!(each! (App, &Self::described(text)?, params => params.carriers())))
    }

    /// Checks parameters that were not parsed from a text, such as those of a plan.
    ///
    /// # Errors
    /// An invalid distribution, a packet without bytes, or another value that is not allowed.
    pub fn check(&self) -> Result<(), String> {
        let named = |why: String| format!("`{}`: {why}", self.name());
        applications!(each! (App, self, params => params.check())).map_err(named)?;
        for law in applications!(each! (App, self, params => params.distributions())) {
            let text = || law.format(Unit::Number);
            law.check().map_err(|why| named(format!("{}: {why}", text())))?;
        }
        Ok(())
    }

    /// Returns whether the application sends packets on its own schedule; otherwise the transport
    /// determines when its data leave.
    pub fn sends_packets(&self) -> bool {
        applications!(each! (App, self, params => sends(params)))
    }

    /// Returns the longest UDP payload that the application may send, in bytes, at most that of a
    /// jumbo frame; 0 if it sends no packets.
    pub fn longest_payload(&self) -> u32 {
        applications!(each! (App, self, params => params.longest_payload()))
    }

    /// Returns whether a flow is a session of its receiver, the client, which opens several
    /// connections to the senders.
    pub fn opens_sessions(&self) -> bool {
        applications!(each! (App, self, params => opens_sessions(params)))
    }

    /// Returns whether a balancer may select the server of a flow.
    pub fn is_balanced(&self) -> bool {
        applications!(each! (App, self, params => is_balanced(params)))
    }

    /// Returns whether the application's flows end by themselves.
    pub fn ends(&self) -> bool {
        applications!(each! (App, self, params => params.ends()))
    }

    /// Returns the packet source of a flow that starts at `start`; `None` if the application [sends
    /// no packets](Self::sends_packets).
    pub fn packet_source(&self, key: Key, start: Nanos) -> Option<PacketSource> {
        applications!(each! (App to PacketSource, self, (params, source) => {
            params.source(key, start).map(source)
        }))
    }
}

impl PacketSource {
    /// Returns the next packet. Times never decrease; after the last packet the result is
    /// [`Emission::NONE`].
    pub fn next_packet(&mut self) -> Emission {
        applications!(each! (PacketSource, self, source => source.next_packet()))
    }
}

/// Writes a description that [`App::parse`] reads as this application, with default values.
impl fmt::Display for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Text::new(self.name());
        f.write_str(&applications!(each! (App, self, params => params.write(text))).done())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::length::MAX_PAYLOAD;
    use proptest::prelude::*;
    use sojourn_units::words::Table;

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
        "responsiveness",
        "responsiveness direction upload tls 0 interval 200ms mad 3 trim 0.9 probes 20 once",
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
    fn plans_hold_nothing_but_the_parameters() {
        for text in TEXTS {
            let json = serde_json::to_value(App::parse(text).unwrap()).unwrap();
            let mut more = json.clone();
            more["more"] = 1.into();
            assert_eq!(serde_json::from_value::<App>(json).unwrap(), App::parse(text).unwrap());
            assert!(serde_json::from_value::<App>(more).is_err(), "{text}");
        }
        assert!(serde_json::from_str::<App>(r#"{"name":"client"}"#).is_err());
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

    /// Returns the shortest description of an application.
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
    fn tables_have_the_defaults() {
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
            "`web`: pareto2(12,1): the shape must be above 1, since otherwise the mean is infinite"
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
