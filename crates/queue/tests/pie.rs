//! Tests of PIE against its paper and RFC 8033.

use crate::common::{Bench, Frame, drops, open_loop};
use sojourn_queue::{Discipline, DropReason, Ecn};
use sojourn_units::{MILLISECOND, Nanos, SECOND};

const MS: Nanos = MILLISECOND;

#[test]
fn nothing_is_dropped_in_the_first_150_ms_of_congestion() {
    let mut bench = Bench::new("pie limit 100000");
    open_loop(&mut bench, 1000, 300_000, 1_000_000, 150 * MS);
    assert!(bench.kept.dropped.is_empty());
    open_loop(&mut bench, 1000, 300_000, 1_000_000, 2 * SECOND);
    assert!(drops(&bench, DropReason::Early) > 100);
}

#[test]
fn the_delay_is_held_at_target() {
    for text in ["pie", "pie dq_rate_estimator"] {
        let mut bench = Bench::new(text);
        // The load is 1.1 times the link's rate.
        open_loop(&mut bench, 1000, 909_091, 1_000_000, 60 * SECOND);
        let sojourns = open_loop(&mut bench, 1000, 909_091, 1_000_000, 60 * SECOND);
        let mean = sojourns.iter().sum::<u64>() as f64 / sojourns.len() as f64 / MS as f64;
        assert!((13.0..18.0).contains(&mean), "{text}: {mean} ms");
        let share = bench.counter("dropped") as f64 / bench.next_id as f64;
        assert!((share - 1.0 / 11.0).abs() < 0.01, "{text}: {share}");
    }
}

#[test]
fn two_full_frames_are_let_be() {
    let mut bench = Bench::new("pie target 1us");
    // Three packets of 1000 bytes are less than two frames of 1514 bytes, so none is dropped early
    // at any delay.
    for _ in 0..3 {
        bench.arrive(1000);
    }
    for _ in 0..2000 {
        bench.wait(4 * MS);
        bench.take();
        bench.arrive(1000);
    }
    assert!(bench.state("prob") > 0);
    assert!(bench.kept.dropped.is_empty());
}

#[test]
fn ecn_marks_up_to_ten_percent() {
    let mut bench = Bench::new("pie ecn");
    let tenth = i128::from((u64::MAX >> 8) / 10);
    let mut dropped_high = false;
    for i in 0..40_000u32 {
        // The load is 1.03 times the link's rate at first, and then three times the rate.
        bench.wait(if i < 20_000 { 970_000 } else { 333_333 });
        let (drops, marks) = (bench.kept.dropped.len(), bench.kept.marked.len());
        bench.offer(Frame { ecn: Ecn::Ect0, ..Frame::new(0, 1000) });
        let prob = bench.state("prob");
        if bench.kept.dropped.len() > drops {
            assert!(prob > tenth);
            dropped_high = true;
        }
        assert!(bench.kept.marked.len() == marks || prob <= tenth);
        if if i < 20_000 { i % 33 != 0 } else { i % 3 == 0 } {
            bench.take();
        }
    }
    assert!(dropped_high);
    assert!(bench.kept.marked.len() > 100);
}

/// At a constant probability p, the gap between two drops is at least 0.85 / p.
#[test]
fn gaps_between_drops_are_neither_tiny_nor_huge() {
    let mut bench = Bench::new("pie");
    open_loop(&mut bench, 1000, 909_091, 1_000_000, 60 * SECOND);
    let from = bench.kept.dropped.len();
    open_loop(&mut bench, 1000, 909_091, 1_000_000, 120 * SECOND);
    let ids: Vec<u64> = bench.kept.dropped[from..].iter().map(|(f, ..)| f.id).collect();
    let gaps: Vec<u64> = ids.windows(2).map(|w| w[1] - w[0]).collect();
    // A share of drops of 1 / 11 needs a probability of about 1.85 / 11.
    let p = 1.85 / 11.0;
    let inside = gaps.iter().filter(|&&gap| (0.6 / p..8.5 / p).contains(&(gap as f64))).count();
    assert!(inside * 100 >= gaps.len() * 97, "{inside} of {}", gaps.len());
}

mod edges {
    use crate::common::Dice;
    use sojourn_queue::pie::{Constants, State};
    use sojourn_queue::{Device, Params as Any};

    const MAX: u64 = u64::MAX >> 8;
    const TARGET: u64 = 234_375;

    fn constants() -> Constants {
        let Ok(Any::Pie(params)) = Any::parse("pie", &Device::default()) else { panic!() };
        params.constants()
    }

    /// Returns the change of the probability by one update, with a constant delay of one tick above
    /// target.
    fn step(prob: u64) -> u64 {
        let (qdelay, qdelay_old) = (TARGET + 1, TARGET + 1);
        let mut state = State { prob, qdelay, qdelay_old, ..State::default() };
        state.update(&constants(), 10_000);
        state.prob - prob
    }

    #[test]
    fn tuning_steps_are_exact() {
        let full = 2 * (MAX / 15_625_000) / 16;
        let mut shift = 0;
        assert_eq!(step(MAX / 10), full);
        for (power, bits) in
            [(10, 1), (100, 2), (1000, 2), (10_000, 2), (100_000, 2), (1_000_000, 2)]
        {
            assert_eq!(step(MAX / power), full >> shift, "at 1/{power}");
            shift += bits;
            assert_eq!(step(MAX / power - 1), full >> shift, "below 1/{power}");
        }
    }

    #[test]
    fn large_rises_are_cut_from_ten_percent_on() {
        let rise = |prob| {
            let mut state = State { prob, qdelay: 3_906_250, ..State::default() };
            state.update(&constants(), 10_000);
            state.prob - prob
        };
        assert_eq!(rise(MAX / 10), MAX / 100 * 2);
        assert!(rise(MAX / 10 - 1) > MAX / 50);
        // Above a delay of 250 ms the probability rises by another 2 %.
        let mut state = State { prob: MAX / 5, qdelay: 3_906_251, ..State::default() };
        state.update(&constants(), 10_000);
        assert_eq!(state.prob - MAX / 5, MAX / 100 * 2 + MAX / 50);
    }

    #[test]
    fn the_end_of_64_bits_is_one() {
        let mut state = State { prob: u64::MAX - 5, qdelay: 4_000_000, ..State::default() };
        state.update(&constants(), 10_000);
        assert_eq!(state.prob, MAX);
        // A result below 0 becomes 0.
        let mut state = State { prob: 1000, qdelay: 0, qdelay_old: TARGET, ..State::default() };
        state.update(&constants(), 0);
        assert_eq!(state.prob, 0);
    }

    #[test]
    fn an_idle_queue_forgets() {
        let mut state = State { prob: MAX / 2, ..State::default() };
        let mut falls = Vec::new();
        for backlog in [0, 5000] {
            let before = state.prob;
            state.update(&constants(), backlog);
            falls.push(before - state.prob);
        }
        // The probability decays by 1/64 only while the queue is empty.
        let alpha = 2 * (MAX / 15_625_000) / 16 * TARGET;
        assert!(falls[0] > alpha && falls[0] > MAX / 200);
        assert_eq!(falls[1], alpha);
    }

    #[test]
    fn the_accumulator_has_exact_ends() {
        let drops_at = |accu_prob: u64| {
            let mut dice = Dice::new(3);
            let prob = MAX / 1000;
            let mut state =
                State { prob, accu_prob: accu_prob - prob, burst_time: 0, ..State::default() };
            state.qdelay = TARGET;
            let early = state.early(&constants(), 4000, 1000, &mut dice);
            (early, dice.calls)
        };
        assert_eq!(drops_at(MAX / 100 * 85 - 1), (false, 0));
        assert_eq!(drops_at(MAX / 100 * 85).1, 1);
        assert_eq!(drops_at(MAX / 2 * 17 - 1).1, 1);
        assert_eq!(drops_at(MAX / 2 * 17), (true, 0));
    }

    #[test]
    fn the_guards_have_exact_ends() {
        let early = |state: State, backlog| {
            let busy = State { accu_prob: MAX / 2 * 17, prob: MAX / 1000, ..state };
            let prob = if state.prob == 0 { busy.prob } else { state.prob };
            State { prob, ..busy }.early(&constants(), backlog, 1000, &mut Dice::new(1))
        };
        let calm = State { burst_time: 0, qdelay: TARGET, ..State::default() };
        assert!(early(calm, 3028));
        assert!(!early(calm, 3027));
        assert!(!early(State { burst_time: 1, ..calm }, 3028));
        let fast = State { qdelay: TARGET / 2 - 1, ..calm };
        assert!(!early(State { prob: MAX / 5 - 1, ..fast }, 3028));
        assert!(early(State { prob: MAX / 5, ..fast }, 3028));
        assert!(early(State { qdelay: TARGET / 2, ..calm }, 3028));
    }
}

#[test]
fn the_timer_runs_by_jiffies() {
    let mut bench = Bench::new("pie tupdate 7ms");
    assert_eq!(bench.queue.next_timer(), Some(bench.now + 8 * MS));
    bench.wait(8 * MS + 300);
    assert_eq!(bench.queue.next_timer(), Some(bench.now - 300 + 8 * MS));
    // Updates that a late timer has missed are not made up for.
    bench.now += 50 * MS;
    bench.queue.on_timer(bench.now);
    assert_eq!(bench.queue.next_timer(), Some(bench.now - 300 + 8 * MS));
}
