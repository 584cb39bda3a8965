//! A path: links in a row, with the interface for other programs.

use crate::common::*;
use proptest::prelude::*;
use sojourn_link::presets::PRESETS;
use sojourn_link::{
    Direction, Event, Headers, Key, Observer, Params, Path, Port, Seen, Sender, Station, TcpView,
    Trace,
};
use sojourn_queue::Ecn;
use sojourn_units::{EPOCH, MILLISECOND, Nanos, SECOND};

/// A time at which all packets have arrived.
const END: Nanos = 20 * SECOND;

fn parse(rate: &str, netem: &str, queue: &str) -> Params {
    Params::parse(rate, netem, queue).unwrap()
}

/// Sends `frames` at their times, calling at every event, and returns the arrivals: time,
/// direction, number.
fn carry(
    path: &mut Path<Frame>,
    frames: &[(Nanos, Direction, Frame)],
) -> Vec<(Nanos, Direction, u32)> {
    let mut arrivals = Vec::new();
    let mut take = |path: &mut Path<Frame>, until: Nanos| {
        while let Some(at) = path.next_wakeup().filter(|at| *at <= until) {
            while let Some(arrival) = path.poll(at) {
                assert_eq!(arrival.at, at, "next_wakeup named this time");
                arrivals.push((arrival.at, arrival.direction, arrival.packet.number));
            }
        }
    };
    for (at, direction, frame) in frames {
        take(path, *at);
        path.send(*at, *direction, frame.clone());
    }
    take(path, END);
    arrivals
}

fn assert_counted(path: &Path<Frame>, direction: Direction) {
    let stats = path.stats(direction);
    assert_eq!(
        stats.offered + stats.duplicated,
        stats.drops() + stats.lost + stats.delivered + stats.queued() + stats.on_line()
    );
    path.links(direction).iter().for_each(Port::assert_conserved);
}

#[test]
fn delays_of_links_in_a_row_add_up() {
    let hop = parse("12112000bit", "delay 3ms", "");
    let mut path = Path::new(&[hop.clone(), hop.clone()], &[hop], 1);
    let frames = [
        (0, Direction::Forward, Frame::new(1, 1514)),
        (0, Direction::Forward, Frame::new(2, 1514)),
        (MILLISECOND, Direction::Reverse, Frame::new(3, 1514)),
    ];
    let arrivals = carry(&mut path, &frames);
    let expected =
        [(5, Direction::Reverse, 3), (8, Direction::Forward, 1), (9, Direction::Forward, 2)];
    assert_eq!(
        arrivals,
        expected.map(|(ms, direction, number)| (ms * MILLISECOND, direction, number))
    );
    assert_eq!(path.next_wakeup(), None);
    assert_eq!(path.stats(Direction::Forward).delivered.packets, 2);
}

#[test]
fn a_direction_without_links_delivers_at_once() {
    let mut path: Path<Frame> = Path::new(&[], &[], 1);
    path.send(7, Direction::Reverse, Frame::new(1, 100));
    assert_eq!(path.next_wakeup(), Some(7));
    assert_eq!(path.poll(9).unwrap().at, 7);
    assert_eq!(path.poll(9), None);
}

#[test]
#[should_panic(expected = "a path's time is below 584 years")]
fn a_time_that_the_clock_cannot_hold_is_no_silence() {
    let mut path: Path<Frame> = Path::new(&[], &[], 1);
    path.send(7, Direction::Reverse, Frame::new(1, 100));
    path.poll(Nanos::MAX);
}

#[test]
fn a_change_applies_to_the_packets_after_it() {
    let (slow, fast) = (parse("1mbit", "", "pfifo"), parse("10mbit", "", "pfifo"));
    let mut path = Path::new(std::slice::from_ref(&slow), &[], 1);
    path.send(0, Direction::Forward, Frame::new(1, 1250));
    path.send(0, Direction::Forward, Frame::new(2, 1250));
    path.change(5 * MILLISECOND, Direction::Forward, 0, &fast).unwrap();
    assert_eq!(path.poll(SECOND).unwrap().at, 10 * MILLISECOND);
    assert_eq!(path.poll(SECOND).unwrap().at, 11 * MILLISECOND);
    let other = parse("1mbit", "", "codel");
    let refused = path.change(SECOND, Direction::Forward, 0, &other).unwrap_err();
    assert_eq!(refused.to_string(), "`pfifo` cannot be changed into `codel`");
}

#[test]
fn a_trace_decides_when_packets_leave() {
    let trace = Some(Trace::new(&[3, 5], Trace::BYTES).unwrap());
    let mut path = Path::new(&[Params { trace, ..parse("", "delay 1ms", "") }], &[], 1);
    path.send(0, Direction::Forward, Frame::new(1, 1500));
    path.send(0, Direction::Forward, Frame::new(2, 1500));
    let times = [path.poll(SECOND), path.poll(SECOND)].map(|arrival| arrival.unwrap().at);
    assert_eq!(times, [4 * MILLISECOND, 6 * MILLISECOND]);
}

/// The drops and marks of a path, with their times and links.
#[derive(Default)]
struct Seer(Vec<(Nanos, Direction, usize, Event)>);

impl Observer<Seen<'_, Frame>> for Seer {
    fn on_event(&mut self, at: Nanos, seen: &Seen<'_, Frame>, event: Event) {
        if matches!(event, Event::Dropped { .. } | Event::Marked(_)) {
            self.0.push((at, seen.direction, seen.position, event));
        }
    }
    fn tcp(&self, _: &Seen<'_, Frame>) -> Option<TcpView> {
        None
    }
    fn headers(&self, _: &Seen<'_, Frame>) -> Headers {
        Headers::default()
    }
    fn sender(&self, _: &Seen<'_, Frame>) -> Sender {
        Sender::default()
    }
}

#[test]
fn an_observer_sees_drops_and_marks_with_their_links() {
    let codel = parse("8mbit", "", "codel limit 100p ecn");
    let wide = parse("1gbit", "", "pfifo");
    let mut path = Path::observed(&[wide, codel.clone()], &[codel], 1, Seer::default());
    for number in 0..8000 {
        let ecn = if number % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        let direction = [Direction::Forward, Direction::Reverse][number as usize / 2 % 2];
        let now = u64::from(number) * MILLISECOND / 4;
        path.send(now, direction, Frame { ecn, ..Frame::new(number, 1000) });
        while path.poll(now).is_some() {}
    }
    for (direction, position) in [(Direction::Forward, 1), (Direction::Reverse, 0)] {
        let stats = path.stats(direction);
        let seen = |wanted: fn(&Event) -> bool| {
            let events = path.observer().0.iter().filter(|e| e.1 == direction && wanted(&e.3));
            events.inspect(|e| assert!(e.2 == position && e.0 < 2 * SECOND)).count() as u64
        };
        assert_eq!(seen(|event| matches!(event, Event::Dropped { .. })), stats.drops().packets);
        assert_eq!(seen(|event| matches!(event, Event::Marked(_))), stats.marked.packets);
        assert!(stats.drops().packets > 10 && stats.marked.packets > 10, "{stats:?}");
    }
}

#[test]
fn a_link_with_a_transmit_ring_is_a_part_of_a_path() {
    let hop = parse("12112000bit", "delay 3ms", "pfifo limit 2p");
    let ring = Station::new(&hop, 4, Key::new(1, "ring"), EPOCH);
    let mut path = Path::of(vec![Port::Station(Box::new(ring), None)], vec![], ());
    for number in 0..10 {
        path.send(0, Direction::Forward, Frame::new(number, 1514));
    }
    let stats = path.stats(Direction::Forward);
    // One in transmission, four in the ring, two in the queue.
    assert_eq!((stats.drops().packets, stats.queued().packets, stats.on_line().packets), (3, 2, 5));
    let numbers: Vec<_> =
        std::iter::from_fn(|| path.poll(SECOND)).map(|a| a.packet.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
    assert_counted(&path, Direction::Forward);
}

#[test]
fn words_without_effect_are_reported() {
    let warnings = Params::warnings("10mbit", "rate 1mbit", "fq_codel ce_threshold_selector 0/1");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(Params::warnings("10mbit", "delay 20ms", "fq_codel").is_empty());
}

#[test]
fn errors_name_the_part_of_the_description() {
    let wrong = |rate, netem, queue| Params::parse(rate, netem, queue).unwrap_err();
    assert!(wrong("20", "", "").to_string().starts_with("rate: "));
    assert!(wrong("20mbit", "delay", "").to_string().starts_with("netem: `delay` needs a time"));
    let error = wrong("20mbit", "", "codle");
    assert_eq!((error.part, error.error.nearest.as_deref()), ("queue", Some("codel")));
}

#[test]
fn presets_carry_packets_both_ways() {
    for preset in PRESETS {
        let (forward, reverse) = preset.params().unwrap();
        let mut path = Path::new(&forward, &reverse, 1);
        let mut frames = Vec::new();
        for number in 0..1000 {
            let direction = [Direction::Forward, Direction::Reverse][number as usize % 2];
            frames.push((u64::from(number) * 5 * MILLISECOND, direction, Frame::new(number, 1000)));
        }
        let arrivals = carry(&mut path, &frames);
        assert!(arrivals.len() > 980, "{}: {}", preset.name, arrivals.len());
        assert_counted(&path, Direction::Forward);
        assert_counted(&path, Direction::Reverse);
    }
}

proptest! {
    /// A caller who calls rarely sees the same packets at the same times as one who calls at every
    /// event.
    #[test]
    fn a_late_caller_changes_nothing(
        queue in proptest::sample::select(all_queues()),
        gaps in proptest::collection::vec((0u64..3_000_000, 40u32..1514, 0u32..3), 1..120),
        seed: u64,
    ) {
        let first = parse("6mbit", "delay 4ms 3ms loss 2% duplicate 1% reorder 3%", &queue);
        let hops = [first, parse("5mbit", "delay 1ms slot 2ms", "codel ecn")];
        let mut now = 0;
        let frames: Vec<_> = gaps.iter().enumerate().map(|(number, &(gap, bytes, way))| {
            now += gap;
            let direction = if way == 0 { Direction::Reverse } else { Direction::Forward };
            let frame = Frame { ecn: Ecn::Ect0, ..Frame::new(number as u32, bytes) };
            (now, direction, frame)
        }).collect();
        let mut punctual = Path::new(&hops, &hops[..1], seed);
        let arrivals = carry(&mut punctual, &frames);
        let mut late = Path::new(&hops, &hops[..1], seed);
        for (at, direction, frame) in frames {
            late.send(at, direction, frame);
        }
        let seen: Vec<_> = std::iter::from_fn(|| late.poll(END))
            .map(|arrival| (arrival.at, arrival.direction, arrival.packet.number)).collect();
        prop_assert_eq!(arrivals, seen);
        for direction in [Direction::Forward, Direction::Reverse] {
            assert_counted(&late, direction);
            prop_assert_eq!(late.stats(direction), punctual.stats(direction));
        }
    }
}
