//! Measures the nanoseconds of a hop: `send`, and `poll` at each event, without an event queue.
//!
//! `cargo bench -p sojourn-link [-- PART OF A CASE'S NAME]`
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use sojourn_link::{Corrupt, Event, Link, Observer, Params};
use sojourn_queue::{Ecn, Headers, Packet, Sender, TcpView};
use sojourn_random::Key;
use sojourn_units::{EPOCH, Nanos};
use std::hint::black_box;
use std::time::Instant;

/// A packet with the size of the simulator's packet in memory.
#[derive(Clone)]
struct Frame {
    bytes: u32,
    flow: u32,
    _rest: [u64; 5],
}

impl Packet for Frame {
    #[inline]
    fn len(&self) -> u32 {
        self.bytes
    }
    #[inline]
    fn flow_hash(&self) -> u32 {
        self.flow
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    #[inline]
    fn set_ce(&mut self) -> bool {
        false
    }
}

#[derive(Default)]
struct Count {
    delivered: u64,
    bytes: u64,
}

impl Observer<Frame> for Count {
    #[inline]
    fn on_event(&mut self, at: Nanos, packet: &Frame, event: Event) {
        if event == Event::Delivered {
            self.delivered += 1;
            self.bytes ^= u64::from(packet.bytes) ^ at;
        }
    }
    fn tcp(&self, _: &Frame) -> Option<TcpView> {
        None
    }
    fn headers(&self, _: &Frame) -> Headers {
        Headers::default()
    }

    fn sender(&self, _: &Frame) -> Sender {
        Sender::default()
    }
}

impl Corrupt for Frame {
    fn corrupt(&mut self, _: u32) {}
}

/// Offers a burst of packets every `gap` nanoseconds, and runs every event at its time. Returns
/// nanoseconds and events per packet, of the fastest of five runs.
fn measure(rate: &str, netem: &str, queue: &str, gap: Nanos, burst: u32) -> (f64, f64) {
    const PACKETS: u32 = 2_000_000;
    let params = Params::parse(rate, netem, queue).unwrap();
    let mut best = (f64::MAX, 0.0);
    for _ in 0..5 {
        let mut link: Link<Frame> = Link::new(&params, Key::new(1, "bench"), EPOCH);
        let (mut sink, mut events, mut now) = (Count::default(), 0u64, EPOCH);
        let start = Instant::now();
        for number in 0..PACKETS / burst {
            now += gap;
            while let Some(at) = link.next_wakeup().filter(|at| *at <= now) {
                link.poll(at, &mut sink);
                events += 1;
            }
            for k in 0..burst {
                let flow = (number ^ k).wrapping_mul(0x9E37_79B9);
                link.send(now, black_box(Frame { bytes: 1514, flow, _rest: [0; 5] }), &mut sink);
            }
        }
        let spent = start.elapsed().as_nanos() as f64;
        black_box((sink.delivered, sink.bytes));
        let offered = f64::from(PACKETS);
        if spent / offered < best.0 {
            best = (spent / offered, events as f64 / offered);
        }
    }
    best
}

fn main() {
    let cases = [
        ("uncongested pfifo", "delay 1ms", "pfifo limit 1000", 20_000, 1),
        ("congested pfifo", "delay 1ms", "pfifo limit 1000", 12_112 * 8, 8),
        ("overloaded pfifo", "delay 1ms", "pfifo limit 100", 11_000, 1),
        ("uncongested jitter", "delay 1ms 500us", "pfifo limit 1000", 20_000, 1),
        ("uncongested loss", "delay 1ms loss 1%", "pfifo limit 1000", 20_000, 1),
        ("uncongested codel", "delay 1ms", "codel", 20_000, 1),
        ("congested codel", "delay 1ms", "codel", 12_112 * 8, 8),
        ("uncongested fq_codel", "delay 1ms", "fq_codel", 20_000, 1),
        ("congested fq_codel", "delay 1ms", "fq_codel", 12_112 * 8, 8),
        ("congested pie", "delay 1ms", "pie", 12_112 * 8, 8),
    ];
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for (name, netem, queue, gap, burst) in cases {
        if wanted.as_ref().is_some_and(|part| !name.contains(part)) {
            continue;
        }
        let (nanos, events) = measure("1gbit", netem, queue, gap, burst);
        println!("{name:24} {nanos:6.1} ns a packet, {events:.2} events");
    }
}
