//! Links that follow a trace of delivery opportunities, compared with a plain replay: each
//! opportunity carries queued bytes, in order.

use crate::common::{Frame, Log, drain, params, run};
use proptest::prelude::*;
use sojourn_link::{Link, Params, Trace};
use sojourn_random::Key;
use sojourn_units::{EPOCH, MILLISECOND, Nanos, Rate, SECOND};

const MS: Nanos = MILLISECOND;

fn follow(trace: &Trace, queue: &str) -> Params {
    Params { trace: Some(trace.clone()), ..params(0, "delay 5ms", queue) }
}

fn link(trace: &Trace, queue: &str) -> Link<Frame> {
    Link::new(&follow(trace, queue), Key::new(1, "link"), EPOCH)
}

fn trace(opportunities: &[u32]) -> Trace {
    Trace::new(opportunities, 1500).unwrap()
}

/// Returns when packets, offered at these times after the start, leave the queue and end their
/// transmission.
fn offer(trace: &Trace, packets: &[(Nanos, u32)]) -> (Vec<Nanos>, Vec<Nanos>) {
    let mut log = Log::default();
    let mut link = link(trace, "pfifo limit 10000");
    for (number, &(at, bytes)) in packets.iter().enumerate() {
        run(&mut link, EPOCH + at, &mut log);
        link.send(EPOCH + at, Frame::new(number as u32, bytes), &mut log);
        link.assert_conserved();
    }
    drain(&mut link, &mut log);
    let since = |times: Vec<(u32, Nanos)>| times.iter().map(|(_, at)| at - EPOCH).collect();
    let through: Vec<_> = since(log.delivered());
    (since(log.departed()), through.iter().map(|at| at - 5 * MS).collect())
}

#[test]
fn an_opportunity_is_for_small_packets_or_a_part_of_a_large_one() {
    // 1000 and 500 bytes fill the first opportunity; 4000 bytes need two and two thirds, whose rest
    // the last packets use.
    let packets = [(0, 1000), (0, 500), (0, 4000), (0, 500), (0, 1)];
    let (left, through) = offer(&trace(&[2, 4, 6, 8, 10]), &packets);
    assert_eq!(left, [2, 2, 4, 8, 10].map(|ms| ms * MS));
    assert_eq!(through, [2, 2, 8, 8, 10].map(|ms| ms * MS));
}

#[test]
fn unused_opportunities_are_lost() {
    let packets = [(0, 100), (2 * MS, 1500), (3 * MS, 1500), (21 * MS, 60)];
    let (left, _) = offer(&trace(&[2, 4, 10]), &packets);
    // The packet of 2 ms comes too late for its opportunity; at 10 ms the trace begins again.
    assert_eq!(left, [2, 4, 10, 22].map(|ms| ms * MS));
}

#[test]
fn several_opportunities_at_one_time_are_one_after_the_other() {
    let packets = [(0, 2000), (0, 2000), (0, 1000)];
    let (left, through) = offer(&trace(&[3, 3, 3, 9]), &packets);
    assert_eq!(left, [3, 3, 3].map(|ms| ms * MS));
    assert_eq!(through, [3, 3, 9].map(|ms| ms * MS));
}

#[test]
fn an_opportunity_at_zero_is_that_of_the_round_before() {
    let packets = [(0, 1500), (0, 1500), (0, 1500), (0, 1500)];
    let (left, _) = offer(&trace(&[0, 10]), &packets);
    assert_eq!(left, [10, 10, 20, 20].map(|ms| ms * MS));
}

#[test]
fn bad_traces_are_refused() {
    for (opportunities, bytes, why) in [
        (&[][..], 1500, "needs an opportunity"),
        (&[0, 0], 1500, "must be after 0 ms"),
        (&[5, 4], 1500, "found 4 ms after 5 ms"),
        (&[5], 0, "at least one byte"),
        (&vec![1; Trace::LONGEST + 1], 1500, "at most 1000000"),
    ] {
        let error = Trace::new(opportunities, bytes).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn the_mean_rate_is_what_a_full_queue_gets() {
    let uneven = trace(&[1, 1, 2, 50, 51, 52, 53, 1000]);
    assert_eq!(uneven.mean(), Rate::new(8 * 1500 * 8).unwrap());
    let mut log = Log::default();
    let mut link = link(&uneven, "pfifo limit 10000");
    for number in 0..1000 {
        link.send(EPOCH, Frame::new(number, 1500), &mut log);
    }
    run(&mut link, EPOCH + 100 * SECOND, &mut log);
    assert_eq!(link.stats().departed.packets, 800);
    let capacity = link.capacity(EPOCH + 100 * SECOND + 1);
    assert_eq!(capacity.used, capacity.offered);
    assert_eq!(capacity.offered, 8 * 100 * u128::from(1500 * 8 * SECOND));
}

#[test]
fn capacity_is_used_at_opportunities() {
    let mut log = Log::default();
    let mut link = link(&trace(&[10]), "pfifo limit 10");
    link.send(EPOCH, Frame::new(0, 3500), &mut log);
    let mut shares = Vec::new();
    for ms in [9, 10, 20, 29, 30, 40] {
        run(&mut link, EPOCH + ms * MS, &mut log);
        let capacity = link.capacity(EPOCH + ms * MS);
        let bytes = |units: u128| (units / u128::from(8 * SECOND)) as u64;
        shares.push((bytes(capacity.offered), bytes(capacity.used)));
    }
    let expected = [(0, 0), (0, 0), (1500, 1500), (3000, 3000), (3000, 3000), (4500, 3500)];
    assert_eq!(shares, expected);
}

#[test]
fn a_link_may_begin_and_cease_to_follow_a_trace() {
    let mut log = Log::default();
    let fixed = params(12_000_000, "delay 5ms", "pfifo limit 100");
    let followed = follow(&trace(&[10]), "pfifo limit 100");
    let mut link = Link::new(&fixed, Key::new(1, "link"), EPOCH);
    for number in 0..8 {
        link.send(EPOCH, Frame::new(number, 1500), &mut log);
    }
    // The changes come during the third packet, and later while the transmitter waits for an
    // opportunity.
    run(&mut link, EPOCH + 5 * MS / 2, &mut log);
    link.set_wire(EPOCH + 5 * MS / 2, &followed, &mut log);
    run(&mut link, EPOCH + 25 * MS, &mut log);
    link.set_wire(EPOCH + 25 * MS, &fixed, &mut log);
    drain(&mut link, &mut log);
    let left: Vec<_> = log.departed().iter().map(|(_, at)| (at - EPOCH) / 100_000).collect();
    assert_eq!(left, [0, 10, 20, 125, 225, 250, 260, 270]);
    let capacity = link.capacity(EPOCH + 28 * MS);
    let used = |from: Nanos| (capacity - link.capacity(EPOCH + from)).used;
    assert_eq!(used(28 * MS), 0);
    assert!(capacity.used <= capacity.offered);
}

/// A plain replay of a trace. Arrivals at the time of an opportunity come after it.
fn replay(opportunities: &[u32], packets: &[(Nanos, u32)]) -> (Vec<Nanos>, Vec<Nanos>) {
    let (mut left, mut through) = (Vec::new(), Vec::new());
    let mut in_transit = 0;
    let mut base = 0;
    'rounds: loop {
        for &ms in opportunities {
            let now = base + Nanos::from(ms) * MS;
            let mut room = 1500;
            while room > 0 {
                if in_transit == 0 {
                    match packets.get(left.len()) {
                        None if through.len() == packets.len() => break 'rounds,
                        Some(&(at, bytes)) if at < now => {
                            left.push(now);
                            in_transit = bytes;
                        }
                        _ => break,
                    }
                }
                let sent = room.min(in_transit);
                room -= sent;
                in_transit -= sent;
                if in_transit == 0 {
                    through.push(now);
                }
            }
        }
        base += Nanos::from(*opportunities.last().unwrap()) * MS;
    }
    (left, through)
}

fn packets() -> impl Strategy<Value = Vec<(Nanos, u32)>> {
    let gap = prop_oneof![
        2 => Just(0),
        2 => 0..3 * MS,
        2 => (0..10u64).prop_map(|ms| ms * MS),
        1 => 0..80 * MS
    ];
    let bytes = prop_oneof![Just(1500u32), Just(1514), 1..200u32, 1..9000u32];
    proptest::collection::vec((gap, bytes), 1..80).prop_map(|mut packets| {
        let mut now = 0;
        for packet in &mut packets {
            now += packet.0;
            packet.0 = now;
        }
        packets
    })
}

fn opportunities() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(0..40u32, 1..60).prop_map(|mut times| {
        times.sort_unstable();
        if times.last() == Some(&0) {
            times.push(3);
        }
        times
    })
}

proptest! {
    #[test]
    fn any_trace_is_replayed(times in opportunities(), packets in packets()) {
        prop_assert_eq!(offer(&trace(&times), &packets), replay(&times, &packets));
    }

    #[test]
    fn a_late_caller_changes_nothing(times in opportunities(), packets in packets(), late in 0..50 * MS) {
        let trace = trace(&times);
        let mut log = Log::default();
        let mut link = link(&trace, "pfifo limit 10000");
        let last = packets.last().unwrap().0;
        for (number, &(at, bytes)) in packets.iter().enumerate() {
            link.send(EPOCH + at, Frame::new(number as u32, bytes), &mut log);
        }
        link.poll(EPOCH + last + late, &mut log);
        drain(&mut link, &mut log);
        let left: Vec<_> = log.departed().iter().map(|(_, at)| at - EPOCH).collect();
        prop_assert_eq!(left, offer(&trace, &packets).0);
    }

    #[test]
    fn no_more_is_used_than_offered(times in opportunities(), packets in packets(), step in 1..20 * MS) {
        let mut log = Log::default();
        let mut link = link(&trace(&times), "pfifo limit 10000");
        let mut next = packets.iter().peekable();
        let mut before = link.capacity(EPOCH);
        for now in (1..40).map(|n| n * step) {
            while let Some(&(at, bytes)) = next.next_if(|(at, _)| *at <= now) {
                run(&mut link, EPOCH + at, &mut log);
                link.send(EPOCH + at, Frame::new(0, bytes), &mut log);
            }
            run(&mut link, EPOCH + now, &mut log);
            let capacity = link.capacity(EPOCH + now);
            let since = capacity - before;
            prop_assert!(since.used <= since.offered, "{:?} until {}", since, now);
            before = capacity;
        }
    }
}
