//! `replay`: the packets of a capture, with its times and lengths.
//!
//! This module does not read the capture file. A description contains the file's path; the caller
//! reads the file and passes its packets to [`Params::load`]. After that the parameters contain the
//! packets instead of the path, so a plan is complete and depends only on the content of the file.
//!
//! A replay is open loop: it sends the captured packets regardless of losses and delays. Times are
//! exact; with a `speed` other than 1 each time is divided by it and rounded, so that errors do not
//! accumulate.

use crate::Emission;
use crate::application::{AppParams, Source};
use crate::kinds::repeat;
use crate::length::{MAX_PAYLOAD, UDP_HEADERS};
use sojourn_capture::{Endpoint, Packet, Select};
use sojourn_random::Key;
use sojourn_units::declare::{Param, derived, group, real};
use sojourn_units::words::{Given, Kind, Value, Word, WordError};
use sojourn_units::{Nanos, data, params, words};
use std::fmt::Write;
use std::sync::Arc;

/// Maximum number of packets in a replay.
pub const MOST_PACKETS: usize = 1_000_000;

/// A packet to send: its time, in nanoseconds after the first packet, and its UDP payload in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    after: Nanos,
    payload: u32,
}

/// Packets in the order of sending, shared by the flows of a group. In a plan they are a text in
/// which each packet has the nanoseconds since the previous one and its payload: `0:100
/// 1000000:1472`.
#[data]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[serde(try_from = "String", into = "String")]
pub struct Trace(Arc<[Part]>);

impl TryFrom<String> for Trace {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut after: Nanos = 0;
        let mut part = |word: &str| {
            let (gap, payload) = word.split_once(':')?;
            after = after.checked_add(gap.parse().ok()?)?;
            Some(Part { after, payload: payload.parse().ok()? })
        };
        let parts: Vec<Part> = text
            .split_ascii_whitespace()
            .map(|word| part(word).ok_or_else(|| format!("`{word}` is not a packet of a replay")))
            .collect::<Result<_, _>>()?;
        Ok(Self(parts.into()))
    }
}

impl From<Trace> for String {
    fn from(trace: Trace) -> Self {
        let mut text = Self::new();
        let mut last = 0;
        for part in trace.0.iter() {
            let space = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{space}{}:{}", part.after - last, part.payload);
            last = part.after;
        }
        text
    }
}

params! {
    "replay": "the packets of a capture file, with its times and lengths",
    from "pcap or pcapng";

    /// Parameters of `replay`.
    #[derive(Clone, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Path of the capture file, relative to the scenario's folder; in double quotes if it
        /// contains spaces.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String> = file(),
        /// Selection of packets of the capture; applied when the capture is read.
        #[serde(default, skip_serializing_if = "Select::is_all")]
        select: Select = select(),
        /// Factor by which packets are sent faster than captured.
        speed: f64 = real(1e-6, 1e6, "1"),
        /// Number of times that the packets are sent; `None` for endless repetition.
        repeat: Option<u32> = repeat().docs(&[
            (
                "repeat",
                "Number of times that the packets are sent; each repetition begins one mean gap after the last packet of the previous one.",
            ),
            ("forever", "Repeats the packets without end."),
        ]),
        /// Packets to send; empty until the capture is read.
        packets: Trace = derived(|()| Trace::default()),
    }
}

const fn file() -> Param<Option<String>> {
    let to = |file: &Option<String>| {
        let file = file.as_ref()?;
        let quote = if file.contains(char::is_whitespace) { "\"" } else { "" };
        Some(Value::Text(format!("{quote}{file}{quote}")))
    };
    Param::word(Kind::Name, "", |value| Ok(Some(value.text().to_owned())), to).initially(|()| None)
}

const fn select() -> Param<Select> {
    const WORDS: &[Word] = words! {
        "from", Kind::Name, "",
            "Selects packets from an address, a port or both, such as 10.0.0.1, :443, [2001:db8::1]:443.";
        "to", Kind::Name, "", "Selects packets to an address, a port or both, in the form of `from`.";
        "protocol", Kind::Choice { of: &["tcp", "udp"] }, "", "Selects packets of this protocol.";
    };
    let set = |select: &mut Select, given: &Given| {
        let protocol = given.text("protocol").map(|name| if name == "tcp" { 6 } else { 17 });
        let (source, destination) = (endpoint(given, "from")?, endpoint(given, "to")?);
        *select = Select { source, destination, protocol };
        Ok(())
    };
    group(
        WORDS,
        |()| Select::default(),
        set,
        |select, text| {
            let protocol = select.protocol.map(|number| if number == 6 { "tcp" } else { "udp" });
            text.optional("from", select.source)
                .optional("to", select.destination)
                .optional("protocol", protocol)
        },
    )
}

fn endpoint(given: &Given, word: &str) -> Result<Option<Endpoint>, WordError> {
    let read = |text| {
        Endpoint::parse(text).ok_or_else(|| {
            given.error(word, format!("`{word}` needs an address, a port or both, such as 10.0.0.1, :443 or [2001:db8::1]:443; found `{text}`"))
        })
    };
    given.text(word).map(read).transpose()
}

impl AppParams for Params {
    const REQUIRED: Option<(&'static str, &'static str)> = Some(("file", "replay file a.pcap"));

    type Source = Replay;

    fn check(&self) -> Result<(), String> {
        let parts = &self.packets.0;
        if self.file.is_some() || !self.select.is_all() {
            return if parts.is_empty() {
                Ok(())
            } else {
                Err("`file` and `packets` exclude each other".to_owned())
            };
        }
        if !(1e-6..=1e6).contains(&self.speed) {
            return Err("`speed` must be from 0.000001 to 1000000".to_owned());
        }
        if parts.iter().any(|part| !(1..=MAX_PAYLOAD).contains(&part.payload)) {
            return Err(format!("payloads must be from 1 to {MAX_PAYLOAD} bytes"));
        }
        if parts.len() > MOST_PACKETS {
            return Err(format!(
                "at most {MOST_PACKETS} packets are allowed; found {}",
                parts.len()
            ));
        }
        if self.repeat != Some(1) && self.is_loaded() && self.period() as f64 / self.speed < 1.0 {
            return Err("packets that all have the same time cannot be repeated".to_owned());
        }
        Ok(())
    }

    fn longest_payload(&self) -> u32 {
        self.packets.0.iter().map(|part| part.payload).max().unwrap_or(0)
    }

    fn ends(&self) -> bool {
        self.repeat.is_some()
    }

    fn source(&self, _key: Key, start: Nanos) -> Option<Replay> {
        Some(Replay::new(self, start))
    }
}

impl Params {
    /// Returns these parameters with the packets of the capture instead of the file name. Packets
    /// are sorted by time; a frame shorter than a UDP packet with one byte becomes such a packet.
    ///
    /// # Errors
    /// No packets or too many, a packet longer than a jumbo frame, or another value not allowed.
    pub fn load(&self, mut packets: Vec<Packet>) -> Result<Self, String> {
        // A stable sort keeps the order of packets with equal times.
        packets.sort_by_key(|packet| packet.time);
        let Some(first) = packets.first().map(|packet| packet.time) else {
            return Err("no packet of the capture is selected; check `from`, `to` and `protocol`"
                .to_owned());
        };
        let longest = MAX_PAYLOAD + UDP_HEADERS;
        let part = |(i, packet): (usize, &Packet)| {
            if packet.frame > longest {
                return Err(format!(
                    "selected packet {} has {} bytes, more than a frame of {longest}: an offload of the host has \
                     merged packets; capture without offloads",
                    i + 1,
                    packet.frame
                ));
            }
            let payload = packet.frame.saturating_sub(UDP_HEADERS).max(1);
            Ok(Part { after: packet.time - first, payload })
        };
        let parts: Vec<Part> = packets.iter().enumerate().map(part).collect::<Result<_, _>>()?;
        let loaded = Self {
            file: None,
            select: Select::default(),
            packets: Trace(parts.into()),
            ..self.clone()
        };
        loaded.check().map(|()| loaded)
    }

    /// Returns whether the packets of the capture are loaded.
    pub fn is_loaded(&self) -> bool {
        !self.packets.0.is_empty()
    }

    /// Returns the captured time from the first packet to the first packet of the next repetition,
    /// in nanoseconds: the time to the last packet, plus one mean gap.
    fn period(&self) -> Nanos {
        let parts = &self.packets.0;
        let span = parts.last().map_or(0, |last| last.after);
        let gaps = (parts.len() as u64).saturating_sub(1);
        span.saturating_add(span.checked_div(gaps).unwrap_or(0))
    }
}

/// A source of `replay`.
#[derive(Clone, Debug)]
pub struct Replay {
    parts: Arc<[Part]>,
    speed: f64,
    period: Nanos,
    /// Captured time from the first packet to the start of the present repetition, and number of
    /// repetitions after it.
    offset: Nanos,
    left: Option<u32>,
    start: Nanos,
    next: usize,
}

impl Replay {
    /// Returns a source that sends the first packet at `start`.
    pub fn new(params: &Params, start: Nanos) -> Self {
        Self {
            parts: Arc::clone(&params.packets.0),
            speed: params.speed,
            period: params.period(),
            offset: 0,
            left: params.repeat.map(|repeat| repeat.saturating_sub(1)),
            start,
            next: 0,
        }
    }
}

impl Source for Replay {
    /// Returns the next packet; [`Emission::NONE`] after the last one.
    fn next_packet(&mut self) -> Emission {
        if self.next == self.parts.len() && self.left != Some(0) && !self.parts.is_empty() {
            self.left = self.left.map(|left| left - 1);
            self.offset = self.offset.saturating_add(self.period);
            self.next = 0;
        }
        let Some(part) = self.parts.get(self.next) else {
            return Emission::NONE;
        };
        self.next += 1;
        let after = self.offset.saturating_add(part.after);
        let after = if self.speed.to_bits() == 1f64.to_bits() {
            after
        } else {
            libm::round(after as f64 / self.speed) as Nanos
        };
        Emission { at: self.start.saturating_add(after), payload: part.payload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;
    use proptest::prelude::*;
    use sojourn_units::{EPOCH, SECOND};

    fn params(text: &str) -> Params {
        match App::parse(text).unwrap() {
            App::Replay(params) => params,
            other => panic!("{other:?}"),
        }
    }

    fn packets(of: &[(u64, u32)]) -> Vec<Packet> {
        of.iter().map(|&(ms, frame)| Packet { time: ms * 1_000_000, frame }).collect()
    }

    /// Returns times in milliseconds and payloads of the first `n` packets.
    fn sent(params: &Params, n: usize) -> Vec<(u64, u32)> {
        let mut source = Replay::new(params, EPOCH);
        (0..n)
            .map(|_| source.next_packet())
            .map(|e| (e.at.saturating_sub(EPOCH) / 1_000_000, e.payload))
            .take_while(|(at, _)| *at < 1 << 40)
            .collect()
    }

    #[test]
    fn times_and_lengths_are_the_captures() {
        let loaded = params("replay file a.pcap")
            .load(packets(&[(5000, 142), (5010, 1514), (5010, 60), (5005, 42)]))
            .unwrap();
        assert_eq!(sent(&loaded, 9), [(0, 100), (5, 1), (10, 1472), (10, 18)]);
        let fast =
            params("replay file a.pcap speed 2").load(packets(&[(0, 142), (9, 142)])).unwrap();
        assert_eq!(Replay::new(&fast, 7).next_packet().at, 7);
        assert_eq!(sent(&fast, 9), [(0, 100), (4, 100)]);
    }

    /// The mean rate of a repeated trace is that of the trace.
    #[test]
    fn repetitions_follow_after_a_mean_gap() {
        let trace = packets(&[(0, 142), (1, 142), (10, 142)]);
        let twice = params("replay file a.pcap repeat 2").load(trace.clone()).unwrap();
        assert_eq!(sent(&twice, 9), [0, 1, 10, 15, 16, 25].map(|at| (at, 100)));
        let for_ever = params("replay file a.pcap forever speed 10").load(trace).unwrap();
        let mut source = Replay::new(&for_ever, EPOCH);
        let last = (0..300_001).map(|_| source.next_packet()).last().unwrap();
        // 100 000 times 15 ms in a tenth of it: nothing has added up.
        assert_eq!(last.at - EPOCH, 150 * SECOND);
    }

    #[test]
    fn a_plan_holds_the_packets_and_no_name() {
        let named = params("replay file a.pcap from :53 protocol udp");
        assert!(!named.is_loaded());
        let json = |p: &Params| serde_json::to_string(p).unwrap();
        assert!(json(&named).contains("a.pcap"));
        let loaded = named.load(packets(&[(1, 142), (2, 143)])).unwrap();
        assert_eq!(json(&loaded), r#"{"speed":1.0,"repeat":1,"packets":"0:100 1000000:101"}"#);
        assert_eq!(serde_json::from_str::<Params>(&json(&loaded)).unwrap(), loaded);
        assert_eq!(loaded.check(), Ok(()));
    }

    #[test]
    fn an_impossible_replay_is_refused() {
        let named = params("replay file a.pcap");
        let load = |params: &Params, of: &[(u64, u32)]| params.load(packets(of)).unwrap_err();
        assert!(load(&named, &[]).starts_with("no packet of the capture is selected"));
        assert!(load(&named, &[(0, 60), (1, 65_226)]).starts_with("selected packet 2 has 65226"));
        let again = params("replay file a.pcap repeat 2");
        assert!(load(&again, &[(7, 60), (7, 60)]).contains("cannot be repeated"));
        for packets in ["5", "5:", "5:x", "-1:7", "18446744073709551615:1 1:1"] {
            let json = format!(r#"{{"speed":1.0,"repeat":1,"packets":"{packets}"}}"#);
            assert!(serde_json::from_str::<Params>(&json).is_err(), "{packets}");
        }
        for (text, why) in [
            ("replay", "`replay` needs `file`, such as `replay file a.pcap`"),
            ("replay file \"\"", "`replay` needs `file`, such as `replay file a.pcap`"),
            ("replay file a repeat 2 forever", "`repeat` and `forever` exclude each other"),
        ] {
            assert_eq!(App::parse(text).unwrap_err().to_string(), why);
        }
        let error = App::parse("replay file a from host:80").unwrap_err();
        assert_eq!(error.at, 19..26);
        assert!(error.message.ends_with("found `host:80`"));
    }

    proptest! {
        #[test]
        fn loaded_packets_are_sent(
            of in prop::collection::vec((0..u64::MAX, 0..9014u32), 1..50),
            speed in 1e-6..1e6f64,
            repeat in 1..4u32,
        ) {
            let all = of.iter().map(|&(time, frame)| Packet { time, frame }).collect();
            let named = Params { speed, repeat: Some(repeat), ..params("replay file a.pcap") };
            if let Ok(loaded) = named.load(all) {
                let mut source = Replay::new(&loaded, 5);
                let n = of.len() * repeat as usize;
                let sent: Vec<Emission> = (0..n).map(|_| source.next_packet()).collect();
                prop_assert!(sent.windows(2).all(|w| w[0].at <= w[1].at));
                prop_assert_eq!(source.next_packet().at, Nanos::MAX);
            } else {
                prop_assert!(repeat > 1);
            }
        }
    }
}
