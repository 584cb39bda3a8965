//! qlog traces of connections.
//!
//! Source: draft-ietf-quic-qlog-main-schema-04 and draft-ietf-quic-qlog-quic-events-03 (qlog 0.3),
//! the version that qvis reads, as JSON text sequences (RFC 7464).
//! Idea: a trace observes the end that sends the flow's data after each of its inputs and outputs,
//! and records what has changed. TCP has no packet numbers. The number of a data segment is the
//! number of data segments sent before it, so a retransmission has a number of its own.
//! Invariants: the trace changes nothing in the run; a connection without a trace costs one
//! comparison for each segment.

use serde_json::{Map, Value, json};
use sojourn_tcp::{Connection, Phase, Segment};
use sojourn_units::{EPOCH, Nanos};
use std::collections::BTreeMap;

/// Maximum size of a trace in bytes; a warning at its end says that later events are left out.
const LARGEST: usize = if cfg!(test) { 1 << 12 } else { 1 << 30 };

/// The last transmission of a data segment.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    end: u64,
    is_lost: bool,
}

/// The trace of one connection.
#[derive(Clone, Debug)]
pub struct Qlog {
    name: String,
    text: Vec<u8>,
    /// Data segments that are not acknowledged, by their first sequence number.
    sent: BTreeMap<u64, Sent>,
    /// Number of data segments sent, and of segments received.
    counts: [u64; 2],
    state: String,
    /// Last values of metrics, and of the control's state.
    metrics: BTreeMap<String, i128>,
    control: BTreeMap<String, i128>,
}

impl Qlog {
    /// Returns the trace of the connection with number `count` of a flow.
    pub fn new(group: &str, flow: u32, count: u32) -> Self {
        let safe = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let further = if count > 0 { format!(".{count}") } else { String::new() };
        let name: String = format!("{group}.{flow}{further}.sqlog");
        let mut log = Self {
            name: name.chars().map(safe).collect(),
            text: Vec::new(),
            sent: BTreeMap::new(),
            counts: [0; 2],
            state: String::new(),
            metrics: BTreeMap::new(),
            control: BTreeMap::new(),
        };
        log.write(&json!({
            "qlog_format": "JSON-SEQ",
            "qlog_version": "0.3",
            "title": format!("{group} {flow}, connection {count}"),
            "trace": {
                "vantage_point": { "name": "sojourn", "type": "server" },
                "common_fields": {
                    "protocol_type": ["TCP"],
                    "reference_time": 0,
                    "time_format": "relative",
                },
            },
        }));
        log
    }

    /// Returns the name of the trace's file, and its content.
    pub fn into_file(self) -> (String, Vec<u8>) {
        (self.name, self.text)
    }

    /// Records that the end sends a segment.
    pub fn on_sent(&mut self, now: Nanos, segment: &Segment, tcp: &Connection) {
        if segment.len == 0 {
            return;
        }
        let Segment { seq, len, .. } = *segment;
        let number = self.counts[0];
        self.counts[0] += 1;
        let sent = Sent { number, end: seq + u64::from(len), is_lost: false };
        let repeated = self.sent.insert(seq, sent).is_some();
        let frame = json!({
            "frame_type": "stream", "stream_id": 0, "offset": seq.saturating_sub(1), "length": len,
        });
        let mut data = json!({
            "header": header(number),
            "raw": { "length": segment.wire_len(), "payload_length": len },
            "frames": [frame],
        });
        if repeated {
            let timeout = tcp.phase() == Phase::Loss;
            data["trigger"] =
                if timeout { "retransmit_timeout" } else { "retransmit_reordered" }.into();
        }
        self.event(now, "transport:packet_sent", &data);
    }

    /// Records that the end receives a segment.
    pub fn on_received(&mut self, now: Nanos, segment: &Segment) {
        let number = self.counts[1];
        self.counts[1] += 1;
        let mut acked: Vec<u64> = Vec::new();
        while let Some(first) = self.sent.first_entry()
            && first.get().end <= segment.ack
        {
            acked.push(first.remove().number);
        }
        for (start, end) in segment.sack() {
            let held = self.sent.range(start..end.max(start)).filter(|(_, sent)| sent.end <= end);
            let held: Vec<u64> = held.map(|(&seq, _)| seq).collect();
            acked.extend(held.iter().filter_map(|seq| self.sent.remove(seq)).map(|s| s.number));
        }
        acked.sort_unstable();
        let runs = acked.chunk_by(|a, b| a + 1 == *b);
        let ranges: Vec<_> = runs.map(|run| [run[0], run[run.len() - 1]]).collect();
        let mut frame = json!({ "frame_type": "ack" });
        if !ranges.is_empty() {
            frame["acked_ranges"] = json!(ranges);
        }
        let raw = json!({ "length": segment.wire_len(), "payload_length": segment.len });
        let data = json!({ "header": header(number), "raw": raw, "frames": [frame] });
        self.event(now, "transport:packet_received", &data);
    }

    /// Records losses, metrics and states that have changed.
    pub fn update(&mut self, now: Nanos, tcp: &Connection) {
        let mut lost = Vec::new();
        for seq in tcp.lost() {
            if let Some(sent) = self.sent.get_mut(&seq)
                && !std::mem::replace(&mut sent.is_lost, true)
            {
                lost.push(sent.number);
            }
        }
        for number in lost {
            self.event(now, "recovery:packet_lost", &json!({ "header": header(number) }));
        }
        let Some(control) = tcp.control() else { return };
        let mut data = Map::new();
        let times = [
            ("latest_rtt", tcp.latest_rtt()),
            ("min_rtt", tcp.min_rtt()),
            ("smoothed_rtt", tcp.srtt()),
        ];
        for (name, rtt) in times {
            if let Some(rtt) = rtt.filter(|&rtt| renewed(&mut self.metrics, name, rtt.into())) {
                data.insert(name.to_owned(), milliseconds(rtt).into());
            }
        }
        let counters = tcp.counters();
        let numbers = [
            ("recoveries", Some(counters.recoveries)),
            ("timeouts", Some(counters.rtos)),
            ("taken_back", Some(counters.spurious)),
            ("bytes_in_flight", Some(tcp.pipe())),
            ("congestion_window", Some(tcp.cwnd())),
            ("pacing_rate", control.pacing_rate().map(|rate| rate.saturating_mul(8))),
            ("ssthresh", Some(tcp.ssthresh())),
        ];
        for (name, number) in numbers {
            if let Some(number) = number.filter(|&n| renewed(&mut self.metrics, name, n.into())) {
                data.insert(name.to_owned(), number.into());
            }
        }
        let (known, mut own) = (&mut self.control, Map::new());
        control.state(&mut |name, value| {
            if renewed(known, name, value) {
                // The largest number is a bound that does not apply.
                let number = u64::try_from(value).ok().filter(|&n| n < u64::MAX);
                own.insert(name.to_owned(), number.into());
            }
        });
        if !own.is_empty() {
            data.insert("control".to_owned(), own.into());
        }
        if !data.is_empty() {
            self.event(now, "recovery:metrics_updated", &data.into());
        }
        self.update_state(now, tcp, control.mode().map(|mode| format!("{mode:?}")));
    }

    /// Records a new state: the control's own `mode`, else the phase of TCP.
    fn update_state(&mut self, now: Nanos, tcp: &Connection, mode: Option<String>) {
        let phase = || match tcp.phase() {
            Phase::Open if tcp.cwnd() < tcp.ssthresh() => "slow_start".to_owned(),
            Phase::Open => "congestion_avoidance".to_owned(),
            Phase::Reduced => "reduced".to_owned(),
            Phase::Recovery => "recovery".to_owned(),
            Phase::Loss => "loss".to_owned(),
        };
        let state = mode.map_or_else(phase, |mode| snake(&mode));
        if state == self.state {
            return;
        }
        let old = std::mem::replace(&mut self.state, state.clone());
        let mut data = json!({ "new": state });
        if !old.is_empty() {
            data["old"] = old.into();
        }
        self.event(now, "recovery:congestion_state_updated", &data);
    }

    fn event(&mut self, now: Nanos, name: &str, data: &Value) {
        if self.text.len() >= LARGEST {
            return;
        }
        let time = milliseconds(now - EPOCH);
        self.write(&json!({ "time": time, "name": name, "data": data }));
        if self.text.len() >= LARGEST {
            let data = json!({ "message": "largest size of a trace: later events are left out" });
            self.write(&json!({ "time": time, "name": "loglevel:warning", "data": data }));
        }
    }

    fn write(&mut self, record: &Value) {
        self.text.push(0x1e);
        self.text.extend_from_slice(record.to_string().as_bytes());
        self.text.push(b'\n');
    }
}

fn header(number: u64) -> Value {
    json!({ "packet_number": number, "packet_type": "1RTT" })
}

fn milliseconds(time: Nanos) -> f64 {
    time as f64 / 1e6
}

/// Returns whether a value differs from the last one, which it replaces.
fn renewed(known: &mut BTreeMap<String, i128>, name: &str, value: i128) -> bool {
    match known.get_mut(name) {
        Some(last) => std::mem::replace(last, value) != value,
        None => known.insert(name.to_owned(), value).is_none(),
    }
}

/// Returns the name of a type's variant in lower case, with `_` between its words.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(c.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_the_largest_size_ends_with_a_warning() {
        let mut log = Qlog::new("bulk", 0, 0);
        for number in 0..1000 {
            log.event(EPOCH, "recovery:packet_lost", &json!({ "header": header(number) }));
        }
        let (_, text) = log.into_file();
        let text = String::from_utf8(text).expect("a trace is UTF-8");
        assert!(text.len() < LARGEST + 1000);
        assert_eq!(text.matches("later events are left out").count(), 1);
        assert!(text.lines().last().is_some_and(|line| line.contains("loglevel:warning")));
    }
}
