//! Stations on one shared medium: times of transmissions, carried frames, and frames given up.

use crate::common::{Frame, params};
use proptest::prelude::*;
use sojourn_link::{Event, Medium, Observer, Params, Station, csma};
use sojourn_queue::{Headers, Sender, TcpView};
use sojourn_random::Key;
use sojourn_units::{EPOCH, MICROSECOND, MILLISECOND, Nanos, SECOND};

const GBIT: u64 = 1_000_000_000;
/// A frame with 1400 B of TCP payload: IP and TCP headers with timestamps, Ethernet header.
const LENGTH: u32 = 1400 + 52 + 14;

/// Stations on a medium, with the events of each in order.
struct Bus {
    stations: Vec<Station<Frame>>,
    medium: Medium,
    logs: Vec<Events>,
}

#[derive(Clone, Default)]
struct Events {
    offered: Vec<(Nanos, u32)>,
    departed: Vec<(Nanos, u32)>,
    dropped: Vec<u32>,
    abandoned: Vec<(Nanos, u32)>,
    delivered: Vec<(Nanos, u32)>,
}

impl Observer<Frame> for Events {
    fn on_event(&mut self, at: Nanos, frame: &Frame, event: Event) {
        match event {
            Event::Offered => self.offered.push((at, frame.number)),
            Event::Departed => self.departed.push((at, frame.number)),
            Event::Dropped { .. } => self.dropped.push(frame.number),
            Event::Abandoned => self.abandoned.push((at, frame.number)),
            Event::Delivered => self.delivered.push((at, frame.number)),
            _ => {}
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

impl Bus {
    fn new(stations: usize, params: &Params, access: csma::Params, seed: u64) -> Self {
        Self::with_rings(stations, params, 0, access, seed)
    }

    fn with_rings(
        stations: usize,
        params: &Params,
        ring: u32,
        access: csma::Params,
        seed: u64,
    ) -> Self {
        let station = |i| Station::new(params, ring, Key::new(seed, "bus").child(i as u64), EPOCH);
        Self {
            stations: (0..stations).map(station).collect(),
            medium: Medium::new(access),
            logs: vec![Events::default(); stations],
        }
    }

    fn send(&mut self, station: usize, now: Nanos, frame: Frame) {
        let log = &mut self.logs[station];
        self.stations[station].send(now, frame, Some(&mut self.medium), log);
    }

    /// Runs every event up to `until`, ties by the number of the station.
    fn run(&mut self, until: Nanos) {
        loop {
            let events = self.stations.iter().map(Station::next_wakeup).enumerate();
            let Some((at, i)) = events.filter_map(|(i, at)| Some((at?, i))).min() else { break };
            if at > until {
                break;
            }
            self.stations[i].poll(at, Some(&mut self.medium), &mut self.logs[i]);
        }
        self.stations.iter().for_each(Station::assert_conserved);
    }

    /// Keeps `backlog` frames at every station for `length`, refilled every millisecond.
    fn saturate(&mut self, backlog: u32, length: Nanos) {
        let mut number = 0;
        for step in 0..length / MILLISECOND {
            let now = EPOCH + step * MILLISECOND;
            self.run(now);
            for i in 0..self.stations.len() {
                while self.stations[i].link().backlog().packets < backlog {
                    self.send(i, now, Frame::new(number, LENGTH));
                    number += 1;
                }
            }
        }
        self.run(EPOCH + length);
    }

    fn carried(&self) -> Vec<usize> {
        self.logs.iter().map(|log| log.delivered.len()).collect()
    }
}

fn wire(netem: &str) -> Params {
    params(2 * GBIT, netem, "pfifo limit 1000")
}

/// Results of ns-3 3.37 with all device queues full, from five runs of 10 s: number of stations,
/// then frames carried, backoffs and frames given up per second. Its frames are 4 B longer, by the
/// FCS.
const NS3: [(usize, f64, f64, f64); 4] = [
    (1, 744.7, 7940.0, 0.0),
    (2, 827.8, 10_601.0, 0.0),
    (10, 949.3, 27_586.0, 0.0),
    (100, 989.3, 207_969.0, 7.5),
];

#[test]
fn the_propagation_delay_bounds_what_a_bus_carries_as_in_ns3() {
    let takes = u64::from(LENGTH) * 8 / 2;
    let most = SECOND as f64 / (MILLISECOND + takes) as f64;
    assert!((most - 994.17).abs() < 0.01, "{most}");
    for (stations, frames, backoffs, given_up) in NS3 {
        let mut bus = Bus::new(stations, &wire("delay 1ms"), csma::Params::default(), 7);
        bus.saturate(20, 40 * SECOND);
        let rate = bus.carried().iter().sum::<usize>() as f64 / 40.0;
        let counters = bus.medium.counters();
        println!("{stations} stations: {rate} frames/s, {counters:?} in 40 s");
        assert!(rate <= most);
        assert!((rate / frames - 1.0).abs() < 0.01, "{rate} frames/s, ns-3 {frames}");
        let deferrals = counters.deferrals as f64 / 40.0;
        assert!((deferrals / backoffs - 1.0).abs() < 0.01, "{deferrals}/s, ns-3 {backoffs}");
        let abandoned = counters.abandoned as f64 / 40.0;
        assert!((abandoned - given_up).abs() < 2.0, "{abandoned}/s, ns-3 {given_up}");
        let busy: Nanos = bus.stations.iter().map(|s| s.busy(EPOCH + 40 * SECOND)).sum();
        assert_eq!(busy, bus.medium.occupied(EPOCH + 40 * SECOND));
        assert!((busy as f64 / (rate * 40.0 * (MILLISECOND + takes) as f64) - 1.0).abs() < 1e-3);
    }
}

#[test]
fn frames_follow_each_other_and_arrive_after_transmission_and_propagation() {
    let mut bus = Bus::new(5, &wire("delay 100us"), csma::Params::default(), 3);
    bus.saturate(3, SECOND);
    let takes = u64::from(LENGTH) * 8 / 2;
    let mut sent: Vec<(Nanos, u32)> = bus.logs.iter().flat_map(|l| l.departed.clone()).collect();
    sent.sort_unstable();
    assert!(sent.len() > 5000);
    // Each transmission begins after the frame before has arrived.
    assert!(sent.windows(2).all(|w| w[1].0 > w[0].0 + takes + 100 * MICROSECOND));
    for log in &bus.logs {
        let arrivals: Vec<_> =
            log.departed.iter().map(|(at, n)| (at + takes + 100 * MICROSECOND, *n)).collect();
        assert_eq!(arrivals[..log.delivered.len()], log.delivered);
        assert!(log.departed.windows(2).all(|w| w[0].1 < w[1].1), "frames changed places");
    }
}

#[test]
fn a_station_alone_waits_for_the_frame_before_and_the_gap() {
    let access = csma::Params { max_slots: 1, ..csma::Params::default() };
    let mut bus = Bus::new(1, &params(10_000_000, "", "pfifo limit 9"), access, 1);
    for number in 0..3 {
        bus.send(0, EPOCH, Frame::new(number, 1000));
    }
    bus.run(EPOCH + SECOND);
    // A frame takes 800 us; then comes the gap of 12 bytes, 9.6 us, which is longer than the
    // propagation.
    let starts: Vec<_> = bus.logs[0].departed.iter().map(|(at, _)| at - EPOCH).collect();
    assert_eq!(starts, [0, 809_600, 1_619_200]);
    // With a propagation delay of 100 us the next attempt fails, and another follows in every slot.
    let mut bus = Bus::new(1, &params(10_000_000, "delay 100us", "pfifo limit 9"), access, 1);
    for number in 0..2 {
        bus.send(0, EPOCH, Frame::new(number, 1000));
    }
    bus.run(EPOCH + SECOND);
    assert_eq!(bus.logs[0].departed[1].0 - EPOCH, 900_600);
    assert_eq!(bus.medium.counters().deferrals, 91);
}

#[test]
fn stations_share_alike() {
    let mut bus = Bus::new(20, &wire("delay 1ms"), csma::Params::default(), 11);
    bus.saturate(5, 100 * SECOND);
    let carried = bus.carried();
    let (sum, squares) =
        carried.iter().fold((0.0, 0.0), |(s, q), &n| (s + n as f64, q + (n * n) as f64));
    let jain = sum * sum / (20.0 * squares);
    println!("{carried:?} jain {jain}");
    assert!(jain > 0.999, "{carried:?}");
}

#[test]
fn a_frame_is_given_up_after_its_last_attempt() {
    let access = csma::Params { retries: 40, ..csma::Params::default() };
    let mut bus = Bus::new(50, &wire("delay 1ms"), access, 5);
    bus.saturate(4, 20 * SECOND);
    let abandoned: usize = bus.logs.iter().map(|log| log.abandoned.len()).sum();
    assert_eq!(abandoned as u64, bus.medium.counters().abandoned);
    assert!(abandoned > 1000, "{abandoned}");
    for (station, log) in bus.stations.iter().zip(&bus.logs) {
        assert_eq!(station.link().stats().abandoned.packets, log.abandoned.len() as u64);
        assert_eq!(
            station.begun() + station.link().stats().abandoned,
            station.link().stats().departed
        );
        // There are forty backoffs of at most 999 slots; the first ten are far shorter.
        for &(at, number) in &log.abandoned {
            let before =
                log.departed.iter().rev().find(|(_, n)| *n < number).map_or(EPOCH, |d| d.0);
            let began = before.max(log.offered.iter().find(|o| o.1 == number).unwrap().0);
            assert!(at - began < 34 * MILLISECOND, "{}", at - began);
        }
    }
    // Without retries, a station that finds the medium busy gives its frame up at once.
    let access = csma::Params { retries: 0, ..access };
    let mut bus = Bus::new(2, &wire("delay 1ms"), access, 5);
    bus.send(0, EPOCH, Frame::new(0, LENGTH));
    bus.send(1, EPOCH + 1, Frame::new(1, LENGTH));
    bus.run(EPOCH + SECOND);
    assert_eq!(bus.logs[1].abandoned, [(EPOCH + 1, 1)]);
    assert_eq!(bus.carried(), [1, 0]);
}

#[test]
fn a_ring_waits_outside_the_queue() {
    let mut bus = Bus::with_rings(2, &wire("delay 1ms"), 100, csma::Params::default(), 5);
    for number in 0..150 {
        bus.send(0, EPOCH, Frame::new(number, LENGTH));
    }
    bus.send(1, EPOCH, Frame::new(200, LENGTH));
    // One frame is being sent and a hundred are in the ring; the other station's frame has left its
    // queue too.
    assert_eq!(bus.stations[0].link().backlog().packets, 49);
    assert_eq!(bus.stations[1].link().backlog().packets, 0);
    assert_eq!((bus.stations[1].in_flight(), bus.logs[1].departed.len()), (1, 1));
    bus.run(EPOCH + 10 * SECOND);
    assert_eq!(bus.carried(), [150, 1]);
    assert_eq!(bus.stations[0].begun().packets, 150);
}

#[derive(Clone, Debug)]
struct Case {
    stations: usize,
    netem: &'static str,
    queue: &'static str,
    rate: u64,
    ring: u32,
    access: csma::Params,
    seed: u64,
    /// Arrivals: time since the arrival before, station, length in bytes.
    arrivals: Vec<(Nanos, usize, u32)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let access = (1..60 * MICROSECOND, 1u32..1100, 1u32..12, 0u32..60, 0u32..40).prop_map(
        |(slot, max_slots, ceiling, retries, gap)| csma::Params {
            slot,
            max_slots,
            ceiling,
            retries,
            gap,
        },
    );
    let gap = prop_oneof![Just(0), 0..200 * MICROSECOND, 0..5 * MILLISECOND];
    (
        1..8usize,
        prop::sample::select(vec![
            "",
            "delay 300us",
            "delay 1ms 500us loss 10% duplicate 10% reorder 10%",
        ]),
        prop::sample::select(vec!["pfifo limit 5", "codel limit 9", "fq_codel limit 9", "pie"]),
        prop_oneof![Just(0), 1_000_000..3 * GBIT],
        prop_oneof![Just(0u32), 1u32..9],
        access,
        any::<u64>(),
        prop::collection::vec((gap, 0..8usize, 60..1514u32), 1..200),
    )
        .prop_map(|(stations, netem, queue, rate, ring, access, seed, arrivals)| Case {
            stations,
            netem,
            queue,
            rate,
            ring,
            access,
            seed,
            arrivals,
        })
}

impl Case {
    fn run(&self) -> Bus {
        let params = params(self.rate, self.netem, self.queue);
        let mut bus = Bus::with_rings(self.stations, &params, self.ring, self.access, self.seed);
        let mut now = EPOCH;
        for (number, (gap, station, bytes)) in self.arrivals.iter().enumerate() {
            now += gap;
            bus.run(now);
            bus.send(station % self.stations, now, Frame::new(number as u32, *bytes));
        }
        bus.run(now + 3600 * SECOND);
        bus
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Every frame is delivered, dropped or given up, and no station waits for ever. (The medium
    /// itself asserts that two transmissions never overlap.)
    #[test]
    fn nothing_is_lost_and_nothing_waits_for_ever(case in cases()) {
        let bus = case.run();
        for (station, log) in bus.stations.iter().zip(&bus.logs) {
            prop_assert_eq!(station.link().backlog().packets, 0);
            prop_assert_eq!(station.in_flight(), 0);
            let counters = station.link().stats();
            prop_assert_eq!(
                log.offered.len() as u64 + counters.duplicated.packets,
                (log.dropped.len() + log.abandoned.len() + log.delivered.len()) as u64
                    + counters.lost.packets
            );
            prop_assert!(log.departed.windows(2).all(|w| w[0].0 <= w[1].0));
        }
        let counters = bus.medium.counters();
        let begun: u64 = bus.stations.iter().map(|s| s.begun().packets).sum();
        prop_assert_eq!(counters.attempts, counters.deferrals + begun);
    }

    #[test]
    fn the_same_seed_gives_the_same_run(case in cases()) {
        let (first, second) = (case.run(), case.run());
        for (a, b) in first.logs.iter().zip(&second.logs) {
            prop_assert_eq!(&a.departed, &b.departed);
            prop_assert_eq!(&a.abandoned, &b.abandoned);
        }
    }
}
