//! Measures the nanoseconds per delivered segment, sender and receiver together.
//!
//! `cargo run --release -p sojourn-tcp --example speed [SEGMENTS [NAME]]`; on a busy machine
//! compare the instructions of two runs with different `SEGMENTS` instead, counted by `valgrind
//! --tool=callgrind`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads a clock"
)]

use sojourn_tcp::{Connection, Params, Role, Segment};
use sojourn_units::{EPOCH, Nanos};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Returns the nanoseconds that this process has run: on Linux its user time, in ticks of 10 ms,
/// which other processes hardly change.
fn clock(since: Instant) -> u64 {
    std::fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|text| text.rsplit(')').next()?.split_whitespace().nth(11)?.parse::<u64>().ok())
        .map_or_else(|| since.elapsed().as_nanos() as u64, |ticks| ticks * 10_000_000)
}

/// Transmission time of a segment at the bottleneck.
const GAP: Nanos = 12_112;

struct Run {
    segments: u64,
    nanos: f64,
    peak: u64,
    retransmits: u64,
    rtos: u64,
}

fn drain(end: &mut Connection, now: Nanos, out: &mut VecDeque<(Nanos, Segment)>, delay: Nanos) {
    while let Some(segment) = end.poll_transmit(now) {
        out.push_back((now + delay, segment));
    }
}

/// Runs a transfer and measures `segments` segments after a warm-up. Every `loss`-th segment sent
/// is lost (0: none); the queue holds `limit` segments.
fn run(text: &str, delay: Nanos, limit: u64, loss: u64, segments: u64) -> Run {
    let params = Arc::new(Params::parse(text).unwrap());
    let mut now = EPOCH;
    let mut a = Connection::new(&params, Role::Active, now);
    let mut b = Connection::new(&params, Role::Passive, now);
    a.write_unlimited();
    let mut data: VecDeque<(Nanos, Segment)> = VecDeque::new();
    let mut acks: VecDeque<(Nanos, Segment)> = VecDeque::new();
    let mut link_free = 0;
    let mut sent = 0u64;
    let mut peak = 0;
    let origin = Instant::now();
    let mut start = 0;
    let mut counted = 0u64;
    let warm = segments / 4;
    let mut begun = false;
    loop {
        while let Some(segment) = a.poll_transmit(now) {
            sent += 1;
            let at: Nanos = now.max(link_free);
            if at - now > limit * GAP || (loss > 0 && sent.is_multiple_of(loss)) {
                continue;
            }
            link_free = at + GAP;
            data.push_back((link_free + delay, segment));
        }
        let next_data = data.front().map_or(Nanos::MAX, |d| d.0);
        let next_ack = acks.front().map_or(Nanos::MAX, |d| d.0);
        let ta = a.deadline().unwrap_or(Nanos::MAX);
        let tb = b.deadline().unwrap_or(Nanos::MAX);
        now = next_data.min(next_ack).min(ta).min(tb);
        if now == next_ack {
            let (_, segment) = acks.pop_front().unwrap();
            a.on_segment(now, &segment, false);
            peak = peak.max(a.bytes_outstanding());
        } else if now == next_data {
            let (_, segment) = data.pop_front().unwrap();
            b.on_segment(now, &segment, false);
            drain(&mut b, now, &mut acks, delay);
            counted += 1;
            if !begun && counted >= warm {
                begun = true;
                counted = 0;
                start = clock(origin);
            }
            if begun && counted >= segments {
                break;
            }
        } else if now == ta {
            a.on_deadline(now);
        } else {
            b.on_deadline(now);
            drain(&mut b, now, &mut acks, delay);
        }
    }
    Run {
        segments: counted,
        nanos: (clock(origin) - start) as f64 / counted as f64,
        peak: peak / 1448,
        retransmits: a.counters().retransmits,
        rtos: a.counters().rtos,
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let segments = words.next().map_or(2_000_000, |n| n.parse().expect("a number of segments"));
    let only = words.next();
    println!("sizeof Connection {} Segment {}", size_of::<Connection>(), size_of::<Segment>());
    for (name, text, delay, limit, loss) in [
        ("small window", "reno rwnd 100kb", 1_000_000, 1000, 0),
        ("cubic, 1000-packet queue", "cubic rwnd 64mb sndbuf 64mb", 10_000_000, 1000, 0),
        ("cubic, loss 1/1000", "cubic rwnd 64mb sndbuf 64mb", 10_000_000, 1000, 1000),
        ("cubic, loss 1/100", "cubic rwnd 64mb sndbuf 64mb", 10_000_000, 1000, 100),
        ("reno rfc6675", "reno profile rfc", 10_000_000, 1000, 0),
        ("newreno without SACK", "reno profile rfc sack off", 10_000_000, 1000, 2000),
        ("10000-packet window", "cubic rwnd 64mb sndbuf 64mb", 60_000_000, 10_000, 0),
        (
            "10000-packet window, loss 1/5000",
            "cubic rwnd 64mb sndbuf 64mb",
            60_000_000,
            10_000,
            5000,
        ),
        ("bbr", "bbr rwnd 64mb sndbuf 64mb", 10_000_000, 1000, 0),
        ("bbr, loss 1/50, 10000", "bbr rwnd 64mb sndbuf 64mb", 60_000_000, 10_000, 50),
        ("paced cubic", "cubic pacing on rwnd 64mb sndbuf 64mb", 10_000_000, 1000, 0),
    ] {
        if only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
            continue;
        }
        let run = run(text, delay, limit, loss, segments);
        println!(
            "{name:34} {:6.1} ns a segment ({} segments, window {} at most, {} sent again, {} timeouts)",
            run.nanos, run.segments, run.peak, run.retransmits, run.rtos
        );
    }
}
