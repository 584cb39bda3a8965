//! Tests of `skbprio` and `hhf` against recordings of Linux 7.3 in virtual time, behind `cbs`,
//! which takes a packet when the previous packet has been sent.
//!
//! A recording has the description of the queue, then a row for each arrival (nanoseconds, flow,
//! length, priority) and each departure (nanoseconds, number of the packet in the order of
//! arrival), then counters.

use crate::common::{Bench, Dice, Frame, Kept};
use sojourn_queue::{Device, Params, View};
use sojourn_units::{EPOCH, SECOND};

/// Returns a queue for a kernel with 100 timer ticks per second, as in the recordings.
fn bench(text: &str) -> Bench {
    let device = Device { hz: 100, ..Device::default() };
    let params = Params::parse(text, &device).unwrap_or_else(|why| panic!("{text}: {why}"));
    Bench {
        queue: params.build(EPOCH),
        params,
        dice: Dice::new(1),
        kept: Kept::default(),
        now: EPOCH,
        next_id: 0,
        not_before: None,
    }
}

/// Rate in bit/s at which packets leave.
const RATE: u64 = 40_000;

fn replay(recording: &str) {
    let mut rows = recording.lines();
    let mut bench = bench(rows.next().expect("the queue"));
    let start = EPOCH + 5 * SECOND;
    let mut idle = EPOCH;
    for row in rows {
        let words: Vec<&str> = row.split(' ').collect();
        let number = |n: usize| words[n].parse::<u64>().unwrap();
        if words[0] == "end" {
            assert_eq!(bench.counter(words[1]), number(2), "{row}");
            continue;
        }
        let now = start + number(0);
        // After its last packet, a card tries once more to take a packet.
        if bench.queue.packets() == 0 && bench.now < idle && idle <= now {
            bench.wait(idle - bench.now);
            assert_eq!(bench.take(), None, "{row}");
        }
        bench.wait(now - bench.now);
        if words[1] == "leaves" {
            let frame = bench.take().expect(row);
            assert_eq!(frame.id, number(2), "{row}");
            idle = now + u64::from(frame.len) * 8 * SECOND / RATE;
        } else {
            let (flow, priority) = (number(2) as u32, Some(number(4) as u32));
            bench.offer(Frame { flow, priority, ..Frame::new(0, number(3) as u32) });
        }
    }
    assert_eq!(bench.queue.packets(), 0);
}

#[test]
fn skbprio_sends_and_drops_the_same_packets() {
    replay(include_str!("recorded/skbprio-1.txt"));
    replay(include_str!("recorded/skbprio-2.txt"));
}

#[test]
fn hhf_sends_and_drops_the_same_packets() {
    replay(include_str!("recorded/hhf-1.txt"));
    replay(include_str!("recorded/hhf-2.txt"));
}

/// Times at which flows became heavy hitters, from the counters that `tc -s` printed.
#[test]
fn hhf_detects_as_it_was_seen() {
    let mut bench = bench("hhf limit 2000");
    bench.wait(2961 * SECOND);
    let send = |bench: &mut Bench, flow: u32, count: usize| {
        for _ in 0..count {
            bench.offer(Frame { flow, ..Frame::new(0, 1442) });
            bench.take();
        }
        (bench.counter("tot_hh"), bench.state("hh_flows_current_cnt"))
    };
    let millis = |bench: &mut Bench, millis: u64| bench.wait(millis * SECOND / 1000);
    assert_eq!(send(&mut bench, 1, 90), (0, 0));
    assert_eq!(send(&mut bench, 1, 1), (1, 1), "131222 of 131072 bytes");
    millis(&mut bench, 200);
    assert_eq!(send(&mut bench, 2, 50), (1, 1));
    millis(&mut bench, 60);
    assert_eq!(send(&mut bench, 2, 50), (1, 1), "the counters began anew");
    assert_eq!(send(&mut bench, 2, 41), (2, 2));
    assert_eq!(send(&mut bench, 2, 1), (2, 2));
    millis(&mut bench, 2000);
    assert_eq!(send(&mut bench, 1, 1), (2, 2), "its time is over, and its entry stays");
    assert_eq!(send(&mut bench, 1, 91), (3, 2), "the entry is used again");
    millis(&mut bench, 990);
    send(&mut bench, 1, 1);
    millis(&mut bench, 990);
    assert_eq!(send(&mut bench, 1, 1), (3, 2));
    millis(&mut bench, 1000);
    assert_eq!(send(&mut bench, 1, 91), (3, 2), "it has to be over");
    millis(&mut bench, 1030);
    assert_eq!(send(&mut bench, 1, 91), (4, 2));
}
