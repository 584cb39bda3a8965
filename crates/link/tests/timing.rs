//! The times of events: theoretical times, ties, late callers, rates, order, changes.

use crate::common::{Drive, Frame, Log, SHAPER, all_queues, drain, link, params, run, station};
use proptest::prelude::*;
use sojourn_link::{Backlog, Cells, Event};
use sojourn_queue::{DropReason, Ecn, Return};
use sojourn_units::{EPOCH, MICROSECOND, MILLISECOND, Nanos, Rate, SECOND};

const MBIT: u64 = 1_000_000;
/// Transmission time of a full frame at 10 Mbit/s.
const FULL: Nanos = 1_211_200;

#[test]
fn an_uncongested_packet_costs_one_event() {
    let mut link = link(&params(10 * MBIT, "delay 15ms", "pfifo limit 10"), 1);
    let mut log = Log::default();
    assert_eq!(link.next_wakeup(), None);
    assert_eq!(link.send(EPOCH, Frame::new(0, 1514), &mut log), Return::Success);
    let arrival = EPOCH + FULL + 15 * MILLISECOND;
    assert_eq!(link.next_wakeup(), Some(arrival));
    assert!(link.is_transmitting());
    link.poll(arrival, &mut log);
    assert_eq!(link.next_wakeup(), None);
    assert_eq!(link.backlog(), Backlog::default());
    assert_eq!(
        log.0,
        [(EPOCH, 0, Event::Offered), (EPOCH, 0, Event::Departed), (arrival, 0, Event::Delivered)]
    );
    link.assert_conserved();
}

#[test]
fn a_congested_packet_costs_two() {
    let mut link = link(&params(10 * MBIT, "delay 15ms", "pfifo limit 10"), 1);
    let mut log = Log::default();
    for number in 0..3 {
        link.send(EPOCH, Frame::new(number, 1514), &mut log);
    }
    let mut events = 0;
    while let Some(at) = link.next_wakeup() {
        link.poll(at, &mut log);
        events += 1;
    }
    // Three arrivals, and two departures after the first.
    assert_eq!(events, 5);
    assert_eq!(log.departed(), [(0, EPOCH), (1, EPOCH + FULL), (2, EPOCH + 2 * FULL)]);
}

#[test]
fn a_departure_precedes_an_arrival_at_the_same_instant() {
    let mut link = link(&params(10 * MBIT, "", "pfifo limit 1"), 1);
    let mut log = Log::default();
    link.send(EPOCH, Frame::new(0, 1514), &mut log);
    link.send(EPOCH, Frame::new(1, 1514), &mut log);
    assert_eq!(link.send(EPOCH + FULL - 1, Frame::new(2, 1514), &mut log), Return::Drop);
    assert_eq!(link.send(EPOCH + FULL, Frame::new(3, 1514), &mut log), Return::Success);
    drain(&mut link, &mut log);
    let dropped =
        log.times(|what| *what == Event::Dropped { reason: DropReason::Overflow, queued: false });
    assert_eq!(dropped, [(2, EPOCH + FULL - 1)]);
    assert_eq!(log.departed().last(), Some(&(3, EPOCH + 2 * FULL)));
}

#[test]
fn an_infinitely_fast_link_only_delays() {
    let mut link = link(&params(0, "delay 2ms", "pfifo limit 1"), 1);
    let mut log = Log::default();
    for number in 0..5 {
        assert_eq!(link.send(EPOCH, Frame::new(number, 1514), &mut log), Return::Success);
    }
    drain(&mut link, &mut log);
    assert!(log.delivered().iter().all(|(_, at)| *at == EPOCH + 2 * MILLISECOND));
    assert_eq!(log.delivered().len(), 5);
}

#[test]
fn a_link_without_rate_and_delay_does_not_deliver_within_offer() {
    let mut link = link(&params(0, "", "pfifo limit 1"), 1);
    let mut log = Log::default();
    link.send(EPOCH, Frame::new(0, 100), &mut log);
    assert!(log.delivered().is_empty());
    assert_eq!(link.next_wakeup(), Some(EPOCH));
    link.poll(EPOCH, &mut log);
    assert_eq!(log.delivered(), [(0, EPOCH)]);
}

#[test]
fn overhead_counts_on_the_link() {
    let mut with = params(8 * MBIT, "", "pfifo limit 10");
    with.overhead = 24;
    let mut log = Log::default();
    let mut link = link(&with, 1);
    link.send(EPOCH, Frame::new(0, 100), &mut log);
    drain(&mut link, &mut log);
    assert_eq!(log.delivered(), [(0, EPOCH + 124 * MICROSECOND)]);
}

#[test]
fn cells_count_on_the_link_and_hold_the_overhead() {
    let lasts = |cells, overhead, bytes| {
        let mut with = params(8 * MBIT, "", "pfifo limit 10");
        (with.cells, with.overhead) = (cells, overhead);
        let mut log = Log::default();
        let mut link = link(&with, 1);
        link.send(EPOCH, Frame::new(0, bytes), &mut log);
        drain(&mut link, &mut log);
        (log.delivered()[0].1 - EPOCH) / MICROSECOND
    };
    // At 8 Mbit/s a byte takes a microsecond. PPPoE over ATM: a full packet takes 33 cells.
    assert_eq!(lasts(Cells::Atm, 26, 1514), 33 * 53);
    assert_eq!(lasts(Cells::Atm, 70, 1514), 33 * 53);
    assert_eq!(lasts(Cells::Atm, 71, 1514), 34 * 53);
    assert_eq!(lasts(Cells::Ptm, 16, 1514), 1530 + 24);
}

#[test]
#[should_panic(expected = "time went back")]
fn time_never_goes_back() {
    let mut link = link(&params(0, "", "pfifo limit 1"), 1);
    let mut log = Log::default();
    link.poll(EPOCH + 1, &mut log);
    link.send(EPOCH, Frame::new(0, 100), &mut log);
}

#[test]
fn a_change_of_rate_takes_effect_with_the_next_transmission() {
    let before = params(10 * MBIT, "delay 1ms", "pfifo limit 10");
    let mut after = params(100 * MBIT, "delay 1ms", "pfifo limit 10");
    let mut log = Log::default();
    let mut link = link(&before, 1);
    for number in 0..3 {
        link.send(EPOCH, Frame::new(number, 1514), &mut log);
    }
    link.change(EPOCH + 1, &after, &mut log).unwrap();
    after.rate = Rate::new(MBIT);
    run(&mut link, EPOCH + FULL, &mut log);
    link.change(EPOCH + FULL + 1, &after, &mut log).unwrap();
    drain(&mut link, &mut log);
    assert_eq!(log.departed(), [(0, EPOCH), (1, EPOCH + FULL), (2, EPOCH + FULL + FULL / 10)]);
    assert_eq!(
        log.delivered().last(),
        Some(&(2, EPOCH + FULL + FULL / 10 + 10 * FULL + MILLISECOND))
    );
}

/// Returns the arrivals of ten full frames, offered at once to a link of 10 Mbit/s with ten times
/// this rate from `at` on.
fn ends_with_a_change(at: Nanos, ring: u32) -> Vec<Nanos> {
    let slow = params(10 * MBIT, "delay 1ms", "pfifo limit 100");
    let fast = params(100 * MBIT, "delay 1ms", "pfifo limit 100");
    let mut log = Log::default();
    if ring == 0 {
        let mut link = link(&slow, 1);
        for number in 0..10 {
            link.send(EPOCH, Frame::new(number, 1514), &mut log);
        }
        run(&mut link, at - 1, &mut log);
        link.set_wire(at, &fast, &mut log);
        drain(&mut link, &mut log);
    } else {
        let mut station = station(&slow, ring, 1);
        for number in 0..10 {
            station.send(EPOCH, Frame::new(number, 1514), None, &mut log);
        }
        run(&mut station, at - 1, &mut log);
        station.set_wire(at, &fast, None, &mut log);
        drain(&mut station, &mut log);
    }
    log.delivered().iter().map(|(_, at)| at - EPOCH - MILLISECOND).collect()
}

#[test]
fn a_wire_is_another_from_its_time_on() {
    // In the midst of the second transmission, at its very end, and a moment later.
    let cases = [(FULL + 1, 2), (2 * FULL - 1, 2), (2 * FULL, 2), (2 * FULL + 1, 3)];
    for (at, slow) in cases {
        let end = |n: u64| n.min(slow) * FULL + n.saturating_sub(slow) * FULL / 10;
        let expected: Vec<_> = (1..=10).map(end).collect();
        for ring in [0, 1, 20] {
            let ends = ends_with_a_change(EPOCH + at, ring);
            assert_eq!(ends, expected, "change at {at}, ring of {ring}");
        }
    }
}

#[test]
fn a_late_caller_changes_nothing() {
    let slow = params(10 * MBIT, "delay 1ms", "pfifo limit 100");
    let fast = params(100 * MBIT, "delay 2ms", "pfifo limit 100");
    let events = |punctual: bool| {
        let mut log = Log::default();
        let mut link = link(&slow, 1);
        for number in 0..10 {
            link.send(EPOCH, Frame::new(number, 1514), &mut log);
        }
        if punctual {
            run(&mut link, EPOCH + 3 * FULL - 1, &mut log);
        }
        link.set_wire(EPOCH + 3 * FULL, &fast, &mut log);
        link.set_wire(EPOCH + 3 * FULL, &fast, &mut log);
        drain(&mut link, &mut log);
        link.assert_conserved();
        log.0
    };
    assert_eq!(events(true), events(false));
}

#[test]
#[should_panic(expected = "time went back")]
fn a_change_never_comes_too_late() {
    let fast = params(100 * MBIT, "", "pfifo limit 1");
    let mut log = Log::default();
    let mut link = link(&fast, 1);
    link.poll(EPOCH + 1, &mut log);
    link.set_wire(EPOCH, &fast, &mut log);
}

#[test]
fn capacity_follows_the_rate() {
    // Idle at 10 Mbit/s for a second, then busy for a millisecond of the next at 100 Mbit/s.
    let slow = params(10 * MBIT, "", "pfifo limit 10");
    let fast = params(100 * MBIT, "", "pfifo limit 10");
    let mut log = Log::default();
    let mut link = link(&slow, 1);
    let start = link.capacity(EPOCH);
    link.set_wire(EPOCH + SECOND, &fast, &mut log);
    link.send(EPOCH + SECOND, Frame::new(0, 12_500), &mut log);
    let used = |now| (link.capacity(now) - start).used;
    assert_eq!(used(EPOCH + SECOND), 0);
    assert_eq!(used(EPOCH + SECOND + MILLISECOND / 2) * 2, used(EPOCH + 2 * SECOND));
    let share = (link.capacity(EPOCH + 2 * SECOND) - start).share();
    assert!((share - 100_000.0 / 110_000_000.0).abs() < 1e-15, "{share}");
}

#[test]
fn a_transmission_across_a_change_uses_no_more_than_was_offered() {
    let slow = params(MBIT, "", "pfifo limit 100");
    let fast = params(100 * MBIT, "", "pfifo limit 100");
    let mut log = Log::default();
    let mut link = link(&fast, 1);
    let start = link.capacity(EPOCH);
    for number in 0..50 {
        link.send(EPOCH, Frame::new(number, 1514), &mut log);
    }
    let mut before = start;
    for step in 1..200 {
        let now = EPOCH + step * 50 * MICROSECOND;
        run(&mut link, now - 1, &mut log);
        link.set_wire(now, if step % 2 == 0 { &fast } else { &slow }, &mut log);
        let capacity = link.capacity(now);
        let since = capacity - before;
        assert_eq!(since.used, since.offered, "at step {step}");
        before = capacity;
    }
    assert!(link.backlog().packets > 0);
}

#[test]
fn a_shorter_delay_never_reorders() {
    let mut log = Log::default();
    let mut link = link(&params(10 * MBIT, "delay 50ms", "pfifo limit 10"), 1);
    link.send(EPOCH, Frame::new(0, 1514), &mut log);
    let shorter = params(10 * MBIT, "delay 1ms", "pfifo limit 10");
    link.change(EPOCH + 2 * MILLISECOND, &shorter, &mut log).unwrap();
    link.send(EPOCH + 2 * MILLISECOND, Frame::new(1, 1514), &mut log);
    link.send(EPOCH + SECOND, Frame::new(2, 1514), &mut log);
    drain(&mut link, &mut log);
    let first = EPOCH + FULL + 50 * MILLISECOND;
    assert_eq!(log.delivered(), [(0, first), (1, first), (2, EPOCH + SECOND + FULL + MILLISECOND)]);
}

#[test]
fn jitter_may_begin_and_end_while_packets_are_on_the_wire() {
    let plain = params(10 * MBIT, "delay 50ms", "pfifo limit 100");
    let jittery = params(10 * MBIT, "delay 50ms 20ms", "pfifo limit 100");
    let mut log = Log::default();
    let mut link = link(&plain, 1);
    for number in 0..60 {
        let now = EPOCH + u64::from(number) * 2 * MILLISECOND;
        let phase = if (number / 15) % 2 == 0 { &plain } else { &jittery };
        link.change(now, phase, &mut log).unwrap();
        link.send(now, Frame::new(number, 1514), &mut log);
        link.assert_conserved();
    }
    drain(&mut link, &mut log);
    let arrivals = log.delivered();
    assert_eq!(arrivals.len(), 60);
    assert!(arrivals.windows(2).all(|w| w[0].1 <= w[1].1));
    assert!(arrivals.windows(2).any(|w| w[0].0 > w[1].0));
}

/// With a shaper slower than its link, packets leave at the shaper's rate, regardless of calls
/// meanwhile, and the link is idle between them.
#[test]
fn a_shaper_holds_packets_back() {
    let mut log = Log::default();
    let mut link = link(&params(20 * MBIT, "", "cake bandwidth 18mbit interplanetary"), 1);
    for number in 0..1000 {
        link.send(EPOCH + u64::from(number), Frame::new(number, 1500), &mut log);
    }
    drain(&mut link, &mut log);
    let departed = log.departed();
    assert_eq!(departed.len(), 1000);
    // 1500 bytes take 2/3 ms at 18 Mbit/s; the shaper rounds its rate to 34 bits.
    for (place, (_, at)) in departed.iter().enumerate() {
        let due = EPOCH + place as Nanos * 2 * MILLISECOND / 3;
        assert!(at.abs_diff(due) <= 1 + place as Nanos, "{place}: {at}, due {due}");
    }
    let end = departed[999].1 + 2 * MILLISECOND / 3;
    let share = link.busy(end) as f64 / (end - EPOCH) as f64;
    assert!((share - 0.9).abs() < 1e-5, "{share}");
}

#[test]
fn a_change_to_another_discipline_is_refused() {
    let mut log = Log::default();
    let mut link = link(&params(10 * MBIT, "", "pfifo limit 10"), 1);
    let other = params(MBIT, "", "codel");
    assert!(link.change(EPOCH, &other, &mut log).is_err());
    link.send(EPOCH, Frame::new(0, 1514), &mut log);
    drain(&mut link, &mut log);
    assert_eq!(log.delivered(), [(0, EPOCH + FULL)]);
}

#[test]
fn a_ring_takes_packets_out_of_the_queue_ahead_of_time() {
    let params = params(10 * MBIT, "delay 1ms", "pfifo limit 1");
    let mut log = Log::default();
    let mut station = station(&params, 2, 1);
    let verdicts: Vec<_> = (0..5)
        .map(|number| station.send(EPOCH, Frame::new(number, 1514), None, &mut log))
        .collect();
    // One packet is being sent, two wait in the ring and one in the queue; the fifth is dropped.
    assert_eq!(verdicts[4], Return::Drop);
    assert!(verdicts[..4].iter().all(|verdict| *verdict == Return::Success));
    assert_eq!((station.link().backlog().packets, station.in_flight()), (1, 3));
    assert_eq!((station.link().stats().departed.packets, station.begun().packets), (3, 1));
    drain(&mut station, &mut log);
    assert_eq!(log.departed(), [(0, EPOCH), (1, EPOCH), (2, EPOCH), (3, EPOCH + FULL)]);
    let arrivals: Vec<_> =
        (0..4).map(|n| (n, EPOCH + u64::from(n + 1) * FULL + MILLISECOND)).collect();
    assert_eq!(log.delivered(), arrivals);
    assert_eq!(station.busy(EPOCH + SECOND), 4 * FULL);
    assert_eq!(station.begun(), station.link().stats().departed);
}

#[test]
fn a_transmission_counts_in_proportion_to_its_progress() {
    let params = params(10 * MBIT, "delay 1ms", "pfifo limit 10");
    let mut log = Log::default();
    let mut link = link(&params, 1);
    let (mut with_ring, mut slower) = (station(&params, 1, 1), params.clone());
    slower.rate = Rate::new(MBIT);
    for number in 0..2 {
        link.send(EPOCH, Frame::new(number, 1514), &mut log);
        with_ring.send(EPOCH, Frame::new(number, 1514), None, &mut log);
    }
    let mut before = 0;
    for step in 0..=30 {
        let now = EPOCH + step * FULL / 10;
        link.poll(now, &mut log);
        with_ring.poll(now, None, &mut log);
        // The second frame begins and ends at the old rate.
        if step == 15 {
            link.set_wire(now, &slower, &mut log);
            with_ring.set_wire(now, &slower, None, &mut log);
        }
        let sent = link.transmitted(now);
        assert_eq!(sent, 1514 * step.min(20) / 10, "{step}");
        assert_eq!(with_ring.transmitted(now), sent, "{step}");
        assert!(sent >= before);
        before = sent;
    }
}

#[test]
fn a_ring_changes_when_packets_leave_the_queue_not_when_they_arrive() {
    let params = params(10 * MBIT, "delay 1ms", "pfifo limit 1000");
    let arrivals = |ring| {
        let mut log = Log::default();
        let mut station = station(&params, ring, 1);
        for number in 0..200u32 {
            let now = EPOCH + u64::from(number / 3) * 3 * MILLISECOND;
            run(&mut station, now, &mut log);
            station.send(now, Frame::new(number, 60 + number * 7), None, &mut log);
        }
        drain(&mut station, &mut log);
        (log.delivered(), station.busy(EPOCH + 10 * SECOND))
    };
    assert_eq!(arrivals(0), arrivals(1));
    assert_eq!(arrivals(0), arrivals(50));
}

#[test]
fn a_station_changes_as_a_link_does() {
    let slow = params(10 * MBIT, "delay 1ms", "pfifo limit 10");
    let fast = params(100 * MBIT, "delay 1ms", "pfifo limit 10");
    let mut log = Log::default();
    let mut station = station(&slow, 1, 1);
    for number in 0..3 {
        station.send(EPOCH, Frame::new(number, 1514), None, &mut log);
    }
    station.change(EPOCH + 1, &fast, None, &mut log).unwrap();
    assert!(station.change(EPOCH + 2, &params(MBIT, "", "codel"), None, &mut log).is_err());
    drain(&mut station, &mut log);
    let ends = [FULL, FULL + FULL / 10, FULL + FULL / 5];
    assert_eq!(log.delivered(), [0, 1, 2].map(|n| (n, EPOCH + ends[n as usize] + MILLISECOND)));
}

#[derive(Clone, Debug)]
struct Case {
    rate: u64,
    netem: &'static str,
    /// Packets in the transmit ring of a station; a plain link if `None`.
    ring: Option<u32>,
    queue: String,
    seed: u64,
    /// Arrivals: time since the arrival before, length in bytes, whether ECN-capable.
    arrivals: Vec<(Nanos, u32, bool)>,
    /// How late `poll` is called after each arrival, if at all.
    wakes: Vec<Option<Nanos>>,
}

const WIRES: &[&str] = &[
    "",
    "delay 3ms",
    "delay 3ms 2ms",
    "delay 3ms 2ms 30% distribution normal keeporder",
    "delay 3ms 1ms loss 10% 25% duplicate 10% corrupt 5% reorder 20% 50% gap 3",
    "delay 1ms loss gemodel 10% 30% 80% 1%",
];

fn cases() -> impl Strategy<Value = Case> {
    let gap = prop_oneof![
        3 => 0u64..2 * MILLISECOND,
        1 => Just(0),
        1 => Just(FULL),
        1 => 0u64..300 * MILLISECOND
    ];
    let arrival = (gap, prop_oneof![Just(1514u32), 60u32..1514], any::<bool>());
    let wake = proptest::option::of(0u64..40 * MILLISECOND);
    (
        prop_oneof![Just(10 * MBIT), Just(0), MBIT..50 * MBIT],
        proptest::sample::select(WIRES),
        prop_oneof![3 => Just(None), 1 => Just(Some(1)), 1 => (2u32..30).prop_map(Some)],
        proptest::sample::select(all_queues()),
        any::<u64>(),
        proptest::collection::vec((arrival, wake), 1..150),
    )
        .prop_map(|(rate, netem, ring, queue, seed, steps)| {
            let (arrivals, wakes) = steps.into_iter().unzip();
            Case { rate, netem, ring, queue, seed, arrivals, wakes }
        })
}

impl Case {
    fn link(&self) -> Box<dyn Drive> {
        let params = params(self.rate, self.netem, &self.queue);
        match self.ring {
            None => Box::new(link(&params, self.seed)),
            Some(ring) => Box::new(station(&params, ring, self.seed)),
        }
    }

    fn frames(&self) -> impl Iterator<Item = (Nanos, Frame)> {
        self.arrivals.iter().enumerate().scan(EPOCH, |now, (i, (gap, bytes, ect))| {
            *now += gap;
            let mut frame = Frame::new(i as u32, *bytes);
            if *ect {
                frame.ecn = Ecn::Ect0;
            }
            Some((*now, frame))
        })
    }

    /// Runs every event at its time.
    fn punctual(&self) -> Log {
        let mut log = Log::default();
        let mut link = self.link();
        for (now, frame) in self.frames() {
            run(link.as_mut(), now, &mut log);
            link.send(now, frame, &mut log);
            link.assert_conserved();
        }
        drain(link.as_mut(), &mut log);
        log
    }

    /// Calls `poll` late, as on a loaded machine.
    fn late(&self) -> Log {
        let mut log = Log::default();
        let mut link = self.link();
        let mut frames = self.frames().peekable();
        for wake in &self.wakes {
            let (now, frame) = frames.next().unwrap();
            link.send(now, frame, &mut log);
            let next = frames.peek().map_or(now, |(at, _)| *at);
            if let Some(late) = wake {
                link.poll((now + late).min(next), &mut log);
            }
            link.assert_conserved();
        }
        // All packets arrive within 45 s. Without this call the timers of a discipline would run
        // for hours of virtual time.
        link.poll(EPOCH + 60 * SECOND, &mut log);
        drain(link.as_mut(), &mut log);
        log
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Simulated and real links decide the same: a late caller changes nothing.
    #[test]
    fn lateness_changes_nothing(case in cases()) {
        let (punctual, late) = (case.punctual(), case.late());
        prop_assert_eq!(punctual.0, late.0);
    }

    #[test]
    fn a_station_without_ring_and_company_is_a_link(mut case in cases()) {
        case.ring = None;
        let link = case.punctual();
        case.ring = Some(0);
        prop_assert_eq!(link.0, case.punctual().0);
    }

    #[test]
    fn events_are_in_order_and_packets_are_conserved(case in cases()) {
        let log = case.punctual().0;
        prop_assert!(log.windows(2).all(|w| w[0].0 <= w[1].0));
        let count = |wanted: fn(&Event) -> bool| log.iter().filter(|e| wanted(&e.2)).count();
        let ends = count(|w| matches!(w, Event::Dropped { .. } | Event::Lost | Event::Delivered));
        prop_assert_eq!(case.arrivals.len() + count(|w| *w == Event::Duplicated), ends);
    }

    /// No interval carries more than the rate allows plus one frame, and the link is never idle
    /// while a packet waits (unless the discipline shapes).
    #[test]
    fn the_rate_holds_and_work_is_conserved(mut case in cases()) {
        case.ring = None;
        let rate = Rate::new(case.rate);
        let log = case.punctual();
        // The exact end of the transmissions so far, times the rate.
        let mut free = 0u128;
        let bits = rate.map_or(1, |rate| u128::from(rate.bits()));
        let mut waiting = 0;
        for (at, number, what) in &log.0 {
            match what {
                Event::Offered => waiting += 1,
                Event::Departed => {
                    let free_at = free.div_ceil(bits) as Nanos;
                    prop_assert!(*at >= free_at, "{number} departed before the link was free");
                    let offered = log.0.iter().any(|e| {
                        e.0 == *at && e.2 == Event::Offered
                    });
                    let kept_busy = *at == free_at || offered;
                    prop_assert!(kept_busy || case.queue == SHAPER, "{number} departed at {at}, free {free_at}");
                    let bytes = case.arrivals[*number as usize].1;
                    let begin = if *at == free_at { free } else { u128::from(*at) * bits };
                    free = begin + rate.map_or(0, |_| u128::from(bytes) * u128::from(8 * SECOND));
                    waiting -= 1;
                }
                Event::Dropped { .. } => waiting -= 1,
                _ => {}
            }
        }
        prop_assert_eq!(waiting, 0);
    }

    #[test]
    fn pfifo_keeps_the_order(mut case in cases()) {
        case.queue = "pfifo limit 20".to_owned();
        let departed = case.punctual().departed();
        prop_assert!(departed.windows(2).all(|w| w[0].0 < w[1].0));
        if !case.netem.contains("3ms 2ms") && !case.netem.contains("reorder") {
            let delivered = case.punctual().delivered();
            prop_assert!(delivered.windows(2).all(|w| w[0].0 <= w[1].0));
        }
    }

    #[test]
    fn keeporder_keeps_the_order(mut case in cases()) {
        case.queue = "pfifo limit 20".to_owned();
        case.netem = "delay 3ms 2ms distribution pareto keeporder duplicate 10%";
        let delivered = case.punctual().delivered();
        prop_assert!(delivered.windows(2).all(|w| w[0].0 <= w[1].0));
    }
}
