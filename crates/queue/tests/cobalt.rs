//! Tests of COBALT against CAKE's source.

use crate::common::{Bench, Dice, Frame, drops, open_loop};
use sojourn_queue::cobalt::{Constants, State};
use sojourn_queue::{DropReason, Ecn, Linux, Params, View};
use sojourn_units::{MILLISECOND, Nanos, SECOND};

const MS: Nanos = MILLISECOND;

const CONSTANTS: Constants = Constants {
    interval: 100 * MS,
    target: 5 * MS,
    mtu_time: 0,
    p_inc: 1 << 24,
    p_dec: 1 << 20,
    blue_threshold: u64::MAX,
    ecn: true,
    linux: Linux::V7_3,
};

#[test]
fn the_law_is_cakes_by_default() {
    assert_eq!(Constants::default(), CONSTANTS);
    let Params::Cobalt(params) = Bench::new("cobalt").params else { panic!() };
    assert_eq!(params.control.constants(), CONSTANTS);
}

#[test]
fn small_counts_have_exact_roots() {
    // Values from the description of the kernel's table in the recordings.
    let table = [
        4_294_967_295u32,
        4_294_967_295,
        3_035_289_760,
        2_479_700_455,
        2_147_483_647,
        1_920_767_767,
        1_753_413_055,
        1_623_345_051,
        1_518_500_250,
        1_431_655_765,
        1_358_187_914,
        1_294_981_364,
        1_239_850_263,
        1_191_209_601,
        1_147_878_294,
        1_108_955_788,
    ];
    let mut newer = table;
    (newer[2], newer[3], newer[6]) = (3_037_000_500, 2_479_700_525, 1_753_413_056);
    for (linux, table) in [(Linux::V6_1, table), (Linux::V6_12, newer), (Linux::V7_3, newer)] {
        let constants = Constants { linux, ..CONSTANTS };
        let mut state = State::default();
        let mut dice = Dice::new(1);
        let mut now = SECOND;
        let mut frame = Frame::new(0, 100);
        while state.count < 16 {
            now += 200 * MS;
            let count = state.count as usize;
            state.should_drop(&constants, now, now - SECOND / 2, &mut frame, 0, &mut dice);
            if state.count as usize > count && state.count > 1 && state.count < 16 {
                assert_eq!(state.rec_inv_sqrt, table[state.count as usize], "{linux:?}");
            }
        }
        assert_eq!(dice.calls, 0);
    }
}

/// Since Linux 7.3 BLUE draws only for packets that `CoDel`'s part does not drop; a marked packet
/// counts as not dropped.
#[test]
fn blue_draws_for_what_is_not_dropped_already() {
    for (linux, ecn, draws) in [
        (Linux::V6_1, Ecn::NotEct, 1),
        (Linux::V6_12, Ecn::NotEct, 1),
        (Linux::V7_3, Ecn::NotEct, 0),
        (Linux::V6_1, Ecn::Ect0, 1),
        (Linux::V7_3, Ecn::Ect0, 1),
    ] {
        let constants = Constants { linux, ..CONSTANTS };
        let mut dice = Dice::new(1);
        // CoDel's next drop is due, and BLUE's probability is above 0.
        let mut state = State { count: 1, dropping: true, p_drop: 1, ..State::default() };
        let mut frame = Frame { ecn, ..Frame::new(0, 100) };
        let drop = state.should_drop(&constants, SECOND, SECOND / 2, &mut frame, 0, &mut dice);
        assert_eq!((drop, dice.calls), (ecn == Ecn::NotEct, draws), "{linux:?} {ecn:?}");
        // Below target CoDel drops nothing: only BLUE decides.
        let mut calm = State { p_drop: 1, ..State::default() };
        calm.should_drop(&constants, SECOND, SECOND, &mut frame, 0, &mut dice);
        assert_eq!(dice.calls, draws + 1);
    }
}

#[test]
fn count_decays_outside_an_episode() {
    let mut state = State::default();
    let mut dice = Dice::new(1);
    let mut now = SECOND;
    let mut frame = Frame::new(0, 100);
    while state.count < 20 {
        now += 20 * MS;
        state.should_drop(&CONSTANTS, now, now - 50 * MS, &mut frame, 0, &mut dice);
    }
    let mut seen = vec![state.count];
    while state.count > 0 {
        now += 20 * MS;
        assert!(!state.should_drop(&CONSTANTS, now, now - MS, &mut frame, 0, &mut dice));
        seen.push(state.count);
    }
    assert!(!state.dropping);
    assert!(seen.windows(2).all(|w| w[0] - w[1] <= 1), "one at a time: {seen:?}");
    assert!(seen.len() > 20);
}

#[test]
fn blue_moves_at_most_once_per_target() {
    let mut state = State::default();
    let mut moves = 0;
    let start = SECOND;
    for step in 0..4000 {
        let now = start + step * MS / 4;
        let before = state.p_drop;
        if step % 1000 < 500 {
            state.queue_full(&CONSTANTS, now);
        } else {
            state.queue_empty(&CONSTANTS, now);
        }
        moves += u64::from(state.p_drop != before);
    }
    assert!((150..=201).contains(&moves), "{moves} moves in 1 s of target 5 ms");
    assert!(state.p_drop > 0, "it rises by 1/256 and falls by 1/4096");
}

/// Under traffic that does not respond, BLUE's probability approaches the share that must be
/// dropped.
#[test]
fn unresponsive_overload_settles() {
    // The load is three times the rate of the link: two thirds must be dropped.
    let mut bench = Bench::new("cobalt memlimit 100kb");
    open_loop(&mut bench, 1000, 333_333, 1_000_000, 60 * SECOND);
    let p = bench.state("p_drop") as f64 / 4_294_967_296.0;
    assert!((0.60..0.75).contains(&p), "{p}");
    let before = bench.counter("drop_overlimit");
    open_loop(&mut bench, 1000, 333_333, 1_000_000, 10 * SECOND);
    assert!(bench.counter("drop_overlimit") - before < 600, "overflow has all but ended");
    assert_eq!(bench.state("unresponsive"), 1);
}

#[test]
fn without_overflow_blue_sleeps_and_asks_for_no_draws() {
    let mut bench = Bench::new("cobalt");
    open_loop(&mut bench, 1000, 950_000, 1_000_000, 20 * SECOND);
    assert_eq!(bench.state("p_drop"), 0);
    assert!(drops(&bench, DropReason::Early) > 10);
    assert_eq!(bench.dice.calls, 0);
}

#[test]
fn the_last_packet_is_never_dropped() {
    let mut bench = Bench::new("cobalt interval 1ms target 100us");
    for _ in 0..500 {
        bench.arrive(1000);
        bench.wait(20 * MS);
        assert!(bench.take().is_some());
    }
    assert!(bench.kept.dropped.is_empty());
}

/// With `blue_threshold`, as in ns-3, a long delay raises BLUE's probability once per target,
/// without an overflow.
#[test]
fn delay_above_the_threshold_raises_blue() {
    let p_drop_after = |text: &str| {
        let mut bench = Bench::new(text);
        (0..40).for_each(|_| _ = bench.arrive(1000));
        bench.wait(50 * MS);
        (0..20).for_each(|_| {
            bench.wait(MS);
            bench.take();
        });
        assert_eq!(drops(&bench, DropReason::Overflow), 0);
        assert_eq!(bench.state("unresponsive") > 0, bench.state("p_drop") > 0);
        bench.state("p_drop") >> 24
    };
    // The probability rises at 51, 57, 63 and 69 ms.
    assert_eq!(p_drop_after("cobalt blue_threshold 40ms"), 4);
    assert_eq!(p_drop_after("cobalt blue_threshold 60ms"), 2);
    assert_eq!(p_drop_after("cobalt blue_threshold 400ms"), 0);
    assert_eq!(p_drop_after("cobalt"), 0);
}

#[test]
fn without_ecn_nothing_is_marked() {
    let mut lost = Vec::new();
    for text in ["cobalt interval 4ms target 1ms", "cobalt interval 4ms target 1ms noecn"] {
        let mut bench = Bench::new(text);
        for _ in 0..400 {
            bench.offer(Frame { ecn: Ecn::Ect0, ..Frame::new(0, 1000) });
        }
        (0..200).for_each(|_| {
            bench.wait(MS);
            bench.take();
        });
        lost.push((bench.kept.marked.len(), bench.kept.dropped.len()));
    }
    let [(marked, 0), (0, dropped)] = lost[..] else { panic!("{lost:?}") };
    assert!(marked > 50 && dropped > 50, "{lost:?}");
}

/// After a rest, the k-th drop of a standing queue is due after the sum of interval / sqrt(i) for i
/// up to k.
#[test]
fn the_control_law_from_rest() {
    let mut bench = Bench::new("cobalt memlimit 1gb");
    // A new queue has no inverse square root yet and drops immediately: a first dropping state
    // computes it.
    (0..300).for_each(|_| _ = bench.arrive(100));
    for _ in 0..2000 {
        bench.wait(MS);
        bench.take();
        bench.arrive(100);
        if bench.queue.packets() < 4 {
            break;
        }
    }
    while bench.queue.packets() > 0 {
        bench.take();
    }
    for _ in 0..400 {
        bench.wait(100 * MS);
        bench.arrive(100);
        bench.take();
    }
    assert_eq!(bench.state("count"), 0);
    bench.kept.dropped.clear();
    (0..40_000).for_each(|_| _ = bench.arrive(100));
    let times = bench.drop_times(6, MS / 50);
    for (time, ideal) in times.iter().zip([100.0, 170.7, 228.5, 278.5, 323.2, 364.0]) {
        // The delay exceeds target 5 ms after the burst.
        let found = *time as f64 / MS as f64 - 5.0;
        assert!((found - ideal).abs() < 0.2, "{found} ms, ideal {ideal} ms");
    }
}
