//! The behaviour of whole connections over a link with a queue.

use crate::pipe::{Fate, Pipe};
use sojourn_tcp::Phase;
use sojourn_units::{MILLISECOND, Nanos, SECOND};
use std::cell::RefCell;
use std::rc::Rc;

/// Returns the goodput in bit/s over `span`, after a warm-up of `warm`.
fn goodput(pipe: &mut Pipe, warm: Nanos, span: Nanos) -> f64 {
    pipe.run(warm);
    let before = pipe.ends[1].bytes_delivered();
    pipe.run(span);
    (pipe.ends[1].bytes_delivered() - before) as f64 * 8e9 / span as f64
}

/// Share of payload in a full frame: 1448 of 1514 bytes.
const FULL: f64 = 1448.0 / 1514.0;

#[test]
fn every_control_fills_a_link() {
    for (text, least) in [("reno", 0.99), ("cubic", 0.99), ("bbr", 0.94), ("cubic pacing on", 0.98)]
    {
        let mut pipe = Pipe::simple(text, "20mbit", 20 * MILLISECOND, 70);
        pipe.ends[0].write_unlimited();
        let share = goodput(&mut pipe, 5 * SECOND, 30 * SECOND) / (20e6 * FULL);
        println!("{text}: {share:.3}");
        // A filled hole may deliver up to a queue of data at once.
        assert!(share > least && share < 1.002, "{text}: {share}");
    }
}

/// Classic `HyStart` ends slow start while the queue grows. `HyStart++` detects the queue only in
/// the first ACKs of the next round, and then still grows by a quarter per round, so it needs a
/// queue for the data of a round.
#[test]
fn hystart_leaves_slow_start_before_the_queue_overflows() {
    let dropped = |words: &str, limit: usize| {
        let text = format!("cubic rwnd 64mb sndbuf 64mb hystart {words}");
        let mut pipe = Pipe::simple(&text, "100mbit", 50 * MILLISECOND, limit);
        pipe.ends[0].write_unlimited();
        pipe.run(3 * SECOND);
        pipe.paths[0].dropped
    };
    let (none, classic) = (dropped("none", 400), dropped("classic", 400));
    assert!(none > 300 && classic < none / 20, "{none} {classic}");
    let (none, plus) = (dropped("none", 1500), dropped("plus_plus", 1500));
    assert!(none > 300 && plus < none / 2, "{none} {plus}");
}

#[test]
fn the_receive_window_follows_the_rate() {
    // 100 Mbit/s and 100 ms need 1.25 MB in flight, twenty times the initial receive window.
    let mut pipe = Pipe::simple("cubic", "100mbit", 50 * MILLISECOND, 1000);
    pipe.ends[0].write_unlimited();
    let share = goodput(&mut pipe, 4 * SECOND, 4 * SECOND) / (100e6 * FULL);
    assert!(share > 0.98, "{share}");
    // Without window scaling at most 65535 bytes arrive per round-trip time.
    let mut pipe = Pipe::simple("cubic window_scaling off", "100mbit", 50 * MILLISECOND, 1000);
    pipe.ends[0].write_unlimited();
    let rate = goodput(&mut pipe, 4 * SECOND, 4 * SECOND);
    assert!(rate <= 65_535.0 * 80.0 && rate > 0.9 * 65_535.0 * 80.0, "{rate}");
    // With a fixed window, one window arrives per round-trip time.
    let mut pipe = Pipe::simple(
        "cubic memory payload autotune off rwnd 144800b",
        "100mbit",
        50 * MILLISECOND,
        1000,
    );
    pipe.ends[0].write_unlimited();
    let rate = goodput(&mut pipe, 4 * SECOND, 4 * SECOND);
    assert!((rate / (144_800.0 * 80.0) - 1.0).abs() < 0.03, "{rate}");
    // In memory, the window is the share of payload in a frame, 1448 of 2304 bytes or 160/256.
    let words = "cubic memory truesize autotune off rwnd 230400b frame_memory 2304b";
    let mut pipe = Pipe::simple(words, "100mbit", 50 * MILLISECOND, 1000);
    pipe.ends[0].write_unlimited();
    let rate = goodput(&mut pipe, 4 * SECOND, 4 * SECOND);
    assert!((rate / (144_000.0 * 80.0) - 1.0).abs() < 0.03, "{rate}");
}

/// A writer that waits for memory or for the peer's window has more to send, so its rate samples
/// are not application-limited, and BBR finds that the pipe is full.
#[test]
fn bbr_leaves_startup_though_a_buffer_limits_it() {
    for words in ["sndbuf 500kb", "sndbuf 1mb", "sndbuf 2mb", "autotune off rwnd 800kb"] {
        let mut pipe = Pipe::simple(&format!("bbr {words}"), "20mbit", 100 * MILLISECOND, 5000);
        pipe.ends[0].write_unlimited();
        pipe.run(6 * SECOND);
        let mode = format!("{:?}", pipe.ends[0].control().and_then(|control| control.mode()));
        assert!(mode.contains("ProbeBw"), "{words}: {mode}");
    }
}

#[test]
fn delayed_acks_halve_the_acks() {
    let acks = |words: &str| {
        let mut pipe =
            Pipe::simple(&format!("reno profile rfc {words}"), "10mbit", 10 * MILLISECOND, 60);
        pipe.ends[0].write_unlimited();
        pipe.run(10 * SECOND);
        pipe.paths[1].sent as f64 / pipe.paths[0].sent as f64
    };
    let (each, second, fourth) = (acks("delack_timeout 0"), acks(""), acks("delack 4"));
    assert!(each > 0.98 && (0.48..0.56).contains(&second) && (0.23..0.33).contains(&fourth));
}

/// Returns the share of data segments that leave at the same time as the segment before.
fn together(words: &str, rate: &str) -> f64 {
    let text = format!("reno {words} autotune off rwnd 100kb");
    let mut pipe = Pipe::simple(&text, rate, 50 * MILLISECOND, 1000);
    let last = Rc::new(RefCell::new((0, 0u64, 0u64)));
    let seen = last.clone();
    pipe.log = Some(Box::new(move |now, end, segment| {
        if end == 0 && segment.len > 0 {
            let (at, count, total) = *seen.borrow();
            *seen.borrow_mut() = (now, count + u64::from(at == now), total + 1);
        }
    }));
    pipe.ends[0].write_unlimited();
    pipe.run(5 * SECOND);
    let (_, count, total) = *last.borrow();
    count as f64 / total as f64
}

/// Pacing spreads a window over the round-trip time: once this is known, data segments leave one by
/// one, or two by two in super-packets.
#[test]
fn pacing_spreads() {
    assert!(together("pacing off tso off", "1gbit") > 0.4);
    assert!(together("pacing on tso off", "1gbit") < 0.02);
    assert!((0.45..0.55).contains(&together("pacing on", "1gbit")));
}

/// A super-packet has about a millisecond of data at 1.2 times cwnd per round-trip time, and the
/// sender waits as long to fill it.
#[test]
fn super_packets_hold_a_millisecond() {
    let burst = |words: &str, rate: &str, window: &str| {
        let text = format!("reno {words} autotune off rwnd {window}");
        let mut pipe = Pipe::simple(&text, rate, 50 * MILLISECOND, 1000);
        let runs = Rc::new(RefCell::new((0, 0u64, 0u64)));
        let seen = runs.clone();
        pipe.log = Some(Box::new(move |now, end, segment| {
            if end == 0 && segment.len > 0 && now > 3 * SECOND {
                let (at, bursts, segments) = *seen.borrow();
                *seen.borrow_mut() = (now, bursts + u64::from(at != now), segments + 1);
            }
        }));
        pipe.ends[0].write_unlimited();
        pipe.run(6 * SECOND);
        let (_, bursts, segments) = *runs.borrow();
        segments as f64 / bursts as f64
    };
    // 1.2 times 100 Mbit/s for 2^-10 s is ten segments.
    let (off, on) = (burst("tso off", "100mbit", "2mb"), burst("", "100mbit", "2mb"));
    assert!(off < 2.6 && (6.0..11.0).contains(&on), "{off} {on}");
    // At 10 Mbit/s acknowledgements are more than a millisecond apart, so the sender does not wait.
    let (off, on) = (burst("tso off", "10mbit", "200kb"), burst("", "10mbit", "200kb"));
    assert!((on - off).abs() < 0.1, "{off} {on}");
}

/// A burst of losses in a large window is repaired without a timeout, in a few round-trip times.
#[test]
fn a_large_window_recovers() {
    for words in ["", "rack off", "profile rfc"] {
        let mut pipe = Pipe::simple(
            &format!("cubic {words} hystart none rwnd 64mb sndbuf 64mb"),
            "1gbit",
            40 * MILLISECOND,
            4000,
        );
        let mut data = 0u64;
        pipe.paths[0].fate = Box::new(move |_, segment| {
            data += u64::from(segment.len > 0);
            // One in seven of 3000 segments is lost, early in slow start.
            if (5_000..8_000).contains(&data) && data.is_multiple_of(7) {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        pipe.ends[0].write_unlimited();
        assert!(pipe.run_until(3 * SECOND, |p| p.ends[0].counters().recoveries == 1));
        let begun = pipe.now;
        assert!(pipe.run_until(3 * SECOND, |p| p.ends[0].phase() == Phase::Open));
        let took = pipe.now - begun;
        let c = pipe.ends[0].counters();
        println!("{words}: {} ms, {} repeated", took / MILLISECOND, c.retransmits);
        assert_eq!(c.rtos, 0, "{words}");
        assert!((300..500).contains(&c.retransmits), "{words} {}", c.retransmits);
        assert!(took < 400 * MILLISECOND, "{words} {took}");
    }
}

/// Reordering by less than a quarter of a round-trip time hardly slows down RACK with undo, while
/// the counting of duplicate ACKs halves cwnd again and again.
#[test]
fn rack_bears_reordering() {
    let rate = |words: &str| {
        let mut pipe = Pipe::simple(&format!("reno {words}"), "20mbit", 40 * MILLISECOND, 200);
        let mut n = 0u64;
        pipe.paths[0].fate = Box::new(move |_, _| {
            n += 1;
            if n.is_multiple_of(50) { Fate::Late(10 * MILLISECOND) } else { Fate::Deliver }
        });
        pipe.ends[0].write_unlimited();
        goodput(&mut pipe, 5 * SECOND, 20 * SECOND) / (20e6 * FULL)
    };
    let (rack, counted) = (rate(""), rate("rack off undo off"));
    println!("rack {rack:.3}, counted {counted:.3}");
    assert!(rack > 0.95 && counted < 0.8 * rack);
}

/// Data flows in both directions of a connection, so data segments carry acknowledgements.
#[test]
fn both_directions_at_once() {
    let mut pipe = Pipe::simple("cubic", "10mbit", 10 * MILLISECOND, 50);
    pipe.ends[0].write_unlimited();
    pipe.ends[1].write_unlimited();
    pipe.run(10 * SECOND);
    for end in 0..2 {
        let rate = pipe.ends[end].bytes_delivered() as f64 * 8.0 / 10.0;
        assert!(rate > 0.85 * 10e6 * FULL, "{rate}");
    }
}
