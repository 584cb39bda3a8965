//! What each discipline is known for, against its paper or RFC.

use crate::common::{self, Bench, Frame, drops};
use sojourn_queue::{Discipline, DropReason, Ecn, MarkReason, Return, View};
use sojourn_units::{MILLISECOND, Nanos, SECOND};

const MS: Nanos = MILLISECOND;

/// Arrivals every `gap`, departures every `service`, for `span`; gives each delivery's sojourn time.
fn open_loop(bench: &mut Bench, len: u32, gap: Nanos, service: Nanos, span: Nanos) -> Vec<Nanos> {
    let end = bench.now + span;
    let (mut arrival, mut departure) = (bench.now + gap, bench.now + service);
    let mut sojourns = Vec::new();
    while arrival.min(departure) < end {
        let next = arrival.min(departure);
        bench.wait(next - bench.now);
        if arrival <= departure {
            bench.arrive(len);
            arrival += gap;
        } else {
            let at = bench.queue.enqueued_at(0);
            let before = bench.kept.dropped.len();
            if bench.take().is_some() && bench.kept.dropped.len() == before {
                sojourns.push(bench.now - at.expect("one was there"));
            }
            departure += service;
        }
    }
    sojourns
}

mod fifo {
    use super::*;

    #[test]
    fn limits_are_exact() {
        let mut bench = Bench::new("pfifo limit 3");
        let given: Vec<_> = (0..5).map(|_| bench.arrive(1500)).collect();
        assert_eq!(given, [[Return::Success; 3].as_slice(), &[Return::Drop; 2]].concat());
        assert_eq!(bench.dropped_ids(), [3, 4]);
        assert_eq!(drops(&bench, DropReason::Overflow), 2);
        let mut bench = Bench::new("bfifo limit 3000");
        assert_eq!(bench.arrive(1500), Return::Success);
        assert_eq!(bench.arrive(1501), Return::Drop);
        assert_eq!(bench.arrive(1500), Return::Success);
        assert_eq!(bench.arrive(1), Return::Drop);
    }

    #[test]
    fn a_lower_limit_drops_nothing_that_is_queued() {
        let mut bench = Bench::new("pfifo limit 4");
        (0..4).for_each(|_| _ = bench.arrive(100));
        bench.change("pfifo limit 2");
        assert_eq!(bench.queue.packets(), 4);
        bench.take();
        assert_eq!(bench.arrive(100), Return::Drop);
        bench.take();
        bench.take();
        assert_eq!(bench.arrive(100), Return::Success);
    }
}

mod codel {
    use super::*;

    #[test]
    fn no_drop_while_delay_stays_below_target() {
        let mut bench = Bench::new("codel");
        // A standing queue of four packets of 1.2 ms: 4.8 ms.
        (0..4).for_each(|_| _ = bench.arrive(1514));
        for _ in 0..2000 {
            bench.wait(1_200_000);
            bench.take();
            bench.arrive(1514);
        }
        assert!(bench.kept.dropped.is_empty());
        assert_eq!(bench.state("first_above_time"), 0);
    }

    /// The k-th drop of an episode is due at the sum of interval / sqrt(i); the kernel's 16-bit root
    /// takes about 0.9 of that at first and nears it.
    #[test]
    fn drops_follow_the_square_root() {
        let mut bench = Bench::new("codel limit 100000");
        (0..9000).for_each(|_| _ = bench.arrive(1514));
        let start = bench.now;
        let mut times = Vec::new();
        while times.len() < 40 {
            bench.wait(MS / 5);
            let before = bench.kept.dropped.len();
            bench.take();
            times.extend((before..bench.kept.dropped.len()).map(|_| bench.now - start));
        }
        // Delay passes target 5 ms after the burst; then a whole interval must pass.
        assert!(times[0] >= 105 * MS && times[0] < 106 * MS, "first drop at {}", times[0]);
        for k in [3usize, 10, 39] {
            let ideal: f64 = (1..=k).map(|i| 100.0 / (i as f64).sqrt()).sum();
            let found = (times[k] - times[0]) as f64 / MS as f64;
            let ratio = found / ideal;
            assert!((0.85..1.01).contains(&ratio), "drop {k}: {found} ms, ideal {ideal} ms");
        }
        assert_eq!(bench.state("count"), 40);
    }

    #[test]
    fn the_last_mtu_is_never_dropped() {
        let mut bench = Bench::new("codel target 1ms interval 5ms");
        for _ in 0..200 {
            // 40 small packets: more than one MTU together, so some go, but never below one MTU.
            (0..40).for_each(|_| _ = bench.arrive(100));
            while bench.queue.packets() > 0 {
                bench.wait(3 * MS);
                bench.take();
                if bench.queue.bytes() == 0 {
                    break;
                }
            }
        }
        assert!(!bench.kept.dropped.is_empty());
        for (frame, ..) in &bench.kept.dropped {
            assert!(frame.id % 40 < 26, "packet {} left less than an MTU behind", frame.id);
        }
    }

    #[test]
    fn ecn_marks_by_the_same_clock() {
        let signals = |text: &str| {
            let mut bench = Bench::new(text);
            let mut times = Vec::new();
            for _ in 0..3000 {
                bench.offer(Frame { ecn: Ecn::Ect0, ..Frame::new(0, 1514) });
            }
            for _ in 0..1500 {
                bench.wait(MS);
                let before = bench.kept.dropped.len() + bench.kept.marked.len();
                bench.take();
                if bench.kept.dropped.len() + bench.kept.marked.len() > before {
                    times.push(bench.now);
                }
            }
            (times, bench.kept.dropped.len(), bench.kept.marked.len())
        };
        let (dropping, drops, _) = signals("codel limit 5000");
        let (marking, none, marks) = signals("codel limit 5000 ecn");
        assert_eq!(dropping, marking);
        assert_eq!((drops, none), (marks, 0));
        assert!(marks > 50);
    }

    #[test]
    fn ce_threshold_marks_whatever_stayed_longer() {
        let mut bench = Bench::new("codel ce_threshold 2ms");
        for wait in [MS, 2 * MS, 2 * MS + 2000, 10 * MS] {
            bench.offer(Frame { ecn: Ecn::Ect1, ..Frame::new(0, 100) });
            bench.wait(wait);
            bench.take();
        }
        assert_eq!(bench.kept.marked, [(2, MarkReason::CeThreshold), (3, MarkReason::CeThreshold)]);
    }

    /// The clock has 32 bits: of two times half its range apart neither is after the other.
    #[test]
    fn half_the_clock_is_not_after() {
        let tick = 1 << 10;
        let half = tick << 31;
        for (wait, marks) in [(half - tick, 1), (half, 0), (half + tick, 0)] {
            let mut bench = Bench::new("codel ce_threshold 0");
            bench.offer(Frame { ecn: Ecn::Ect1, ..Frame::new(0, 100) });
            bench.wait(wait);
            bench.take();
            assert_eq!(bench.kept.marked.len(), marks, "{wait}");
        }
        // So far beyond, a delay is not below target either: the first judgement starts the interval.
        let mut bench = Bench::new("codel target 1us");
        (0..5).for_each(|_| _ = bench.arrive(1514));
        bench.wait(half);
        bench.take();
        assert_ne!(bench.state("first_above_time"), 0);
    }

    #[test]
    fn a_change_drops_from_the_head_unjudged() {
        let mut bench = Bench::new("codel limit 10");
        (0..10).for_each(|_| _ = bench.arrive(1000));
        bench.wait(300 * MS);
        let before = bench.state("first_above_time");
        bench.change("codel limit 7");
        assert_eq!(bench.dropped_ids(), [0, 1, 2]);
        assert_eq!(bench.state("first_above_time"), before);
        assert_eq!(bench.counter("drops"), 3);
    }
}

mod pie {
    use super::*;

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
            // 1.1 times the link.
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
        // 3 packets of 1000 bytes are less than two frames of 1514, however late.
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
            // 3 % more than the link at first, then three times the link.
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

    /// At a steady probability the accumulator lets no gap between drops be shorter than 0.85 / p.
    #[test]
    fn gaps_between_drops_are_neither_tiny_nor_huge() {
        let mut bench = Bench::new("pie");
        open_loop(&mut bench, 1000, 909_091, 1_000_000, 60 * SECOND);
        let from = bench.kept.dropped.len();
        open_loop(&mut bench, 1000, 909_091, 1_000_000, 120 * SECOND);
        let ids: Vec<u64> = bench.kept.dropped[from..].iter().map(|(f, ..)| f.id).collect();
        let gaps: Vec<u64> = ids.windows(2).map(|w| w[1] - w[0]).collect();
        // The drop share of 1 / 11 needs p of about 1.85 / 11.
        let p = 1.85 / 11.0;
        let inside = gaps.iter().filter(|&&gap| (0.6 / p..8.5 / p).contains(&(gap as f64))).count();
        assert!(inside * 100 >= gaps.len() * 97, "{inside} of {}", gaps.len());
    }

    mod edges {
        use crate::common::Dice;
        use sojourn_queue::pie::{Law, State};
        use sojourn_queue::{Device, Params as Any};

        const MAX: u64 = u64::MAX >> 8;
        const TARGET: u64 = 234_375;

        fn law() -> Law {
            let Ok(Any::Pie(params)) = Any::parse("pie", &Device::default()) else { panic!() };
            params.law()
        }

        /// How far one update moves the probability at one tick above target, without movement.
        fn step(prob: u64) -> u64 {
            let (qdelay, qdelay_old) = (TARGET + 1, TARGET + 1);
            let mut state = State { prob, qdelay, qdelay_old, ..State::default() };
            state.update(&law(), 10_000);
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
                state.update(&law(), 10_000);
                state.prob - prob
            };
            assert_eq!(rise(MAX / 10), MAX / 100 * 2);
            assert!(rise(MAX / 10 - 1) > MAX / 50);
            // Above 250 ms there is more.
            let mut state = State { prob: MAX / 5, qdelay: 3_906_251, ..State::default() };
            state.update(&law(), 10_000);
            assert_eq!(state.prob - MAX / 5, MAX / 100 * 2 + MAX / 50);
        }

        #[test]
        fn the_end_of_64_bits_is_one() {
            let mut state = State { prob: u64::MAX - 5, qdelay: 4_000_000, ..State::default() };
            state.update(&law(), 10_000);
            assert_eq!(state.prob, MAX);
            // Falling below 0 is 0.
            let mut state = State { prob: 1000, qdelay: 0, qdelay_old: TARGET, ..State::default() };
            state.update(&law(), 0);
            assert_eq!(state.prob, 0);
        }

        #[test]
        fn an_idle_queue_forgets() {
            let mut state = State { prob: MAX / 2, ..State::default() };
            let mut falls = Vec::new();
            for backlog in [0, 5000] {
                let before = state.prob;
                state.update(&law(), backlog);
                falls.push(before - state.prob);
            }
            // No decay by 1/64 while something is queued.
            let alpha = 2 * (MAX / 15_625_000) / 16 * TARGET;
            assert!(falls[0] > alpha && falls[0] > MAX / 200);
            assert_eq!(falls[1], alpha);
        }

        #[test]
        fn the_accumulator_has_exact_ends() {
            let asked = |accu_prob: u64| {
                let mut dice = Dice::new(3);
                let prob = MAX / 1000;
                let mut state =
                    State { prob, accu_prob: accu_prob - prob, burst_time: 0, ..State::default() };
                state.qdelay = TARGET;
                let early = state.early(&law(), 4000, 1000, &mut dice);
                (early, dice.asked)
            };
            assert_eq!(asked(MAX / 100 * 85 - 1), (false, 0));
            assert_eq!(asked(MAX / 100 * 85).1, 1);
            assert_eq!(asked(MAX / 2 * 17 - 1).1, 1);
            assert_eq!(asked(MAX / 2 * 17), (true, 0));
        }

        #[test]
        fn the_guards_have_exact_ends() {
            let early = |state: State, backlog| {
                let busy = State { accu_prob: MAX / 2 * 17, prob: MAX / 1000, ..state };
                let prob = if state.prob == 0 { busy.prob } else { state.prob };
                State { prob, ..busy }.early(&law(), backlog, 1000, &mut Dice::new(1))
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
        assert_eq!(bench.queue.next_timer(), Some(bench.now + 500 * MS));
        bench.wait(500 * MS + 300);
        assert_eq!(bench.queue.next_timer(), Some(bench.now - 300 + 7 * MS));
        // A late timer does not catch up.
        bench.now += 50 * MS;
        bench.queue.on_timer(bench.now);
        assert_eq!(bench.queue.next_timer(), Some(bench.now - 300 + 7 * MS));
    }
}

mod cobalt {
    use super::*;
    use sojourn_queue::Params;
    use sojourn_queue::cobalt::{Law, State};

    const LAW: Law = Law {
        interval: 100 * MS,
        target: 5 * MS,
        mtu_time: 0,
        p_inc: 1 << 24,
        p_dec: 1 << 20,
        blue_threshold: u64::MAX,
        ecn: true,
    };

    #[test]
    fn the_law_is_cakes_by_default() {
        assert_eq!(Law::default(), LAW);
        let Params::Cobalt(params) = Bench::new("cobalt").params else { panic!() };
        assert_eq!(params.control.law(), LAW);
    }

    #[test]
    fn small_counts_have_exact_roots() {
        // From the recordings' description of the kernel's table.
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
        let mut state = State::default();
        let mut dice = common::Dice::new(1);
        let mut now = SECOND;
        let mut frame = Frame::new(0, 100);
        while state.count < 16 {
            now += 200 * MS;
            let count = state.count as usize;
            state.should_drop(&LAW, now, now - SECOND / 2, &mut frame, 0, &mut dice);
            if state.count as usize > count && state.count > 1 && state.count < 16 {
                assert_eq!(state.rec_inv_sqrt, table[state.count as usize]);
            }
        }
        assert_eq!(dice.asked, 0);
    }

    #[test]
    fn count_decays_outside_an_episode() {
        let mut state = State::default();
        let mut dice = common::Dice::new(1);
        let mut now = SECOND;
        let mut frame = Frame::new(0, 100);
        while state.count < 20 {
            now += 20 * MS;
            state.should_drop(&LAW, now, now - 50 * MS, &mut frame, 0, &mut dice);
        }
        let mut seen = vec![state.count];
        while state.count > 0 {
            now += 20 * MS;
            assert!(!state.should_drop(&LAW, now, now - MS, &mut frame, 0, &mut dice));
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
                state.queue_full(&LAW, now);
            } else {
                state.queue_empty(&LAW, now);
            }
            moves += u64::from(state.p_drop != before);
        }
        assert!((150..=201).contains(&moves), "{moves} moves in 1 s of target 5 ms");
        assert!(state.p_drop > 0, "it rises by 1/256 and falls by 1/4096");
    }

    /// Traffic that does not respond: BLUE finds the share that must go.
    #[test]
    fn unresponsive_overload_settles() {
        // Three times the link: two thirds must go.
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
        assert_eq!(bench.dice.asked, 0);
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

    /// ns-3's addition: delay alone raises BLUE, once per target, where nothing overflows.
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
        // It moves at 51, 57, 63 and 69 ms.
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

    /// From rest, drops of a standing queue come at the sums of interval / sqrt(i).
    #[test]
    fn the_control_law_from_rest() {
        let mut bench = Bench::new("cobalt memlimit 1gb");
        // A fresh queue has no root yet and signals at once; one episode gives it one.
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
        let start = bench.now;
        let mut times = Vec::new();
        while times.len() < 6 {
            bench.wait(MS / 50);
            let before = bench.kept.dropped.len();
            bench.take();
            times.extend((before..bench.kept.dropped.len()).map(|_| bench.now - start));
        }
        for (time, ideal) in times.iter().zip([100.0, 170.7, 228.5, 278.5, 323.2, 364.0]) {
            // The delay passes target 5 ms after the burst.
            let found = *time as f64 / MS as f64 - 5.0;
            assert!((found - ideal).abs() < 0.2, "{found} ms, ideal {ideal} ms");
        }
    }
}

mod red {
    use super::*;

    /// Brings the average to about the backlog by arrivals at a held backlog; gives the gaps between
    /// early drops.
    fn gaps_at(bench: &mut Bench, packets: usize, len: u32, arrivals: usize) -> Vec<u64> {
        let mut ids = Vec::new();
        for round in 0..arrivals + 3000 {
            while bench.queue.packets() >= packets {
                bench.take();
            }
            bench.wait(1000);
            let before = bench.kept.dropped.len();
            bench.arrive(len);
            if round >= 3000 && bench.kept.dropped.len() > before {
                ids.push(bench.next_id);
            }
        }
        ids.windows(2).map(|w| w[1] - w[0]).collect()
    }

    #[test]
    fn no_early_drop_below_min() {
        let mut bench = Bench::new("red limit 100000 min 20000 max 60000 burst 30 probability 1");
        assert!(gaps_at(&mut bench, 20, 1000, 5000).is_empty());
        assert!(bench.kept.dropped.is_empty());
        assert_eq!((bench.dice.asked, bench.state("qcount")), (0, -1));
    }

    #[test]
    fn every_arrival_goes_above_max() {
        let mut bench = Bench::new("red limit 100000 min 5000 max 10000 burst 7 probability 0.01");
        while bench.state("qavg") < 10_000 << 2 {
            bench.arrive(1000);
        }
        let before = drops(&bench, DropReason::Forced);
        for _ in 0..100 {
            assert_eq!(bench.arrive(1000), Return::Congestion);
        }
        assert_eq!(drops(&bench, DropReason::Forced) - before, 100);
    }

    /// A step, as DCTCP is marked for: the kernel allows `max` to be `min`.
    #[test]
    fn without_a_ramp_it_steps() {
        let mut bench = Bench::new("red limit 100000 min 10000 max 10000 burst 12 probability 0.1");
        for _ in 0..200 {
            let given = bench.arrive(1000);
            let wlog = 2;
            let above = bench.state("qavg") >= 10_000 << wlog;
            assert_eq!(given == Return::Congestion, above);
        }
        assert!(drops(&bench, DropReason::Forced) > 100);
        assert_eq!((drops(&bench, DropReason::Early), bench.dice.asked), (0, 0));
    }

    /// With `wait`, the gap is uniform on 1/p .. 2/p: mean three halves of the shortest.
    #[test]
    fn waiting_gaps_are_uniform_above_the_least() {
        for averaging in ["burst 20", "weight 0.1"] {
            let text =
                format!("red limit 100000 min 10000 max 30000 {averaging} probability 0.1 wait");
            let mut bench = Bench::new(&text);
            let gaps = gaps_at(&mut bench, 21, 1000, 60_000);
            let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
            assert!((29.0..32.0).contains(&mean), "{averaging}: mean gap {mean}");
            assert!((19..=22).contains(gaps.iter().min().unwrap()), "{:?}", gaps.iter().min());
            assert!((38..=42).contains(gaps.iter().max().unwrap()), "{:?}", gaps.iter().max());
        }
    }

    /// At a held average the gap is uniform on 1 .. 1/p: mean half of the longest.
    #[test]
    fn gaps_are_uniform() {
        // Midway, p is half of 10 %.
        let mut bench = Bench::new("red limit 100000 min 10000 max 30000 burst 20 probability 0.1");
        let gaps = gaps_at(&mut bench, 21, 1000, 60_000);
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((9.8..11.2).contains(&mean), "mean gap {mean}");
        assert!((18..=21).contains(gaps.iter().max().unwrap()), "{:?}", gaps.iter().max());
        for part in [1..=5u64, 6..=10, 11..=15, 16..=21] {
            let share = gaps.iter().filter(|g| part.contains(g)).count() as f64 / gaps.len() as f64;
            assert!((0.2..0.3).contains(&share), "{part:?}: {share}");
        }
    }

    #[test]
    fn the_probability_grows_with_the_average() {
        for text in [
            "red limit 200000 min 10000 max 50000 burst 20 probability 0.2",
            "red limit 200000 min 10000 max 50000 weight 0.01 probability 0.2",
            "red limit 200 min 10 max 50 unit packets burst 20 probability 0.2",
            "red limit 200 min 10 max 50 unit packets weight 0.01 probability 0.2 gentle",
        ] {
            let mut bench = Bench::new(text);
            let means: Vec<f64> = [16, 26, 36, 46]
                .map(|packets| {
                    let gaps = gaps_at(&mut bench, packets, 1000, 20_000);
                    gaps.iter().sum::<u64>() as f64 / gaps.len() as f64
                })
                .to_vec();
            for (mean, backlog) in means.iter().zip([15.0, 25.0, 35.0, 45.0]) {
                let p = 0.2 * (backlog - 10.0) / 40.0;
                let ideal = f64::midpoint(1.0, 1.0 / p);
                assert!((mean / ideal - 1.0).abs() < 0.1, "{text}: {mean}, ideal {ideal}");
            }
        }
    }

    /// After n arrivals at a backlog of q from rest, the average is q (1 - (1 - w)^n).
    #[test]
    fn the_average_is_exponentially_weighted() {
        for (text, weight, bits) in [
            ("red limit 1mb min 400000 max 500000 weight 0.002", 0.002, 24),
            ("red limit 1000 min 400 max 500 unit packets weight 0.3", 0.3, 24),
            ("red limit 1mb min 400000 max 500000 burst 700", 1.0 / 512.0, 9),
        ] {
            let mut bench = Bench::new(text);
            (0..100).for_each(|_| _ = bench.arrive(1000));
            let held = if text.contains("packets") { 100.0 } else { 100_000.0 };
            let start = bench.state("qavg") as f64 / f64::from(1 << bits);
            for n in 1..=600 {
                bench.take();
                bench.arrive(1000);
                // Each sample sees one packet less than held.
                let seen = held * 0.99;
                let ideal = seen + (start - seen) * libm::pow(1.0 - weight, f64::from(n));
                let found = bench.state("qavg") as f64 / f64::from(1 << bits);
                assert!((found - ideal).abs() < 0.001 * held, "{text}: {found}, ideal {ideal}");
            }
        }
    }

    /// An idle link lets the average decay as if empty packets had passed.
    #[test]
    fn a_weight_decays_while_idle() {
        let mut bench =
            Bench::new("red limit 1mb min 400000 max 500000 weight 0.01 bandwidth 8mbit");
        (0..300).for_each(|_| _ = bench.arrive(1000));
        while bench.take().is_some() {}
        let before = bench.state("qavg") as f64;
        // 1000 bytes take 1 ms.
        bench.wait(50 * MS);
        bench.arrive(1000);
        let ratio = bench.state("qavg") as f64 / before;
        assert!((ratio - libm::pow(0.99, 50.0)).abs() < 1e-4, "{ratio}");
    }

    #[test]
    fn gentle_is_continuous_and_ends_where_it_should() {
        for (ramp, end) in [("gentle", 60), ("gentle-limit", 100)] {
            let text = format!(
                "red limit 100 min 10 max 30 unit packets weight 0.5 probability 0.2 {ramp}"
            );
            let mut bench = Bench::new(&text);
            for backlog in [29u32, 31, 45, end - 2] {
                let gaps = gaps_at(&mut bench, backlog as usize + 1, 100, 20_000);
                let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
                let p = if backlog < 30 {
                    0.2 * f64::from(backlog - 10) / 20.0
                } else {
                    0.2 + 0.8 * f64::from(backlog - 30) / f64::from(end - 30)
                };
                let ideal = f64::midpoint(1.0, 1.0 / p);
                assert!((mean - ideal).abs() < 0.6, "{ramp} at {backlog}: {mean}, ideal {ideal}");
            }
            assert_eq!(drops(&bench, DropReason::Forced), 0);
        }
        let mut steep = Bench::new("red limit 100 min 10 max 30 unit packets weight 1 gentle");
        for _ in 0..1000 {
            steep.arrive(100);
        }
        assert!(steep.queue.packets() <= 61);
        assert!(drops(&steep, DropReason::Forced) > 800);
    }

    #[test]
    fn adaptive_moves_towards_the_band() {
        let mut bench = Bench::new("red limit 100000 min 5000 max 15000 burst 8 adaptive");
        let start = bench.state("max_P");
        (0..14).for_each(|_| _ = bench.arrive(1000));
        for _ in 0..60 {
            bench.take();
            bench.arrive(1000);
        }
        assert!(bench.state("qavg") >> 3 > 11_000);
        bench.wait(SECOND);
        let raised = bench.state("max_P");
        // Twice a quarter, for that is less than 1 %.
        assert_eq!(raised, start + start / 4 + (start + start / 4) / 4);
        while bench.take().is_some() {}
        bench.wait(3600 * SECOND);
        assert!(bench.state("max_P") < start);
        assert!(bench.state("max_P") >= 42_949_673 / 10 * 9, "not below 0.9 %");
    }

    /// The band is open: at its edges nothing moves.
    #[test]
    fn adaptive_rests_in_its_band() {
        // D = 20 packets: the band is 18 .. 22 packets, and with weight 1 the average is the backlog.
        let moved = |backlog: usize| {
            let mut bench =
                Bench::new("red limit 200 min 10 max 30 unit packets weight 1 adaptive");
            for _ in 0..400 {
                if bench.queue.packets() > backlog {
                    bench.take();
                }
                bench.arrive(100);
            }
            while bench.queue.packets() > backlog {
                bench.take();
            }
            assert_eq!(bench.state("qavg") >> 24, backlog as i128);
            let before = bench.state("max_P");
            bench.wait(500 * MS);
            (bench.state("max_P") - before).signum()
        };
        assert_eq!([17, 18, 22, 23].map(moved), [-1, 0, 0, 1]);
    }

    /// With Linux's arithmetic too, a moved probability is what later draws are divided by.
    #[test]
    fn feng_changes_the_divisor() {
        let mut bench = Bench::new("red limit 1mb min 10000 max 30000 burst 20 feng");
        let before = (bench.state("max_P"), bench.state("recip_sh2"));
        (0..300).for_each(|_| _ = bench.arrive(1000));
        assert_eq!(bench.state("max_P"), 2 * before.0);
        assert_eq!(bench.state("recip_sh2"), before.1 + 1);
    }

    #[test]
    fn feng_moves_once_per_crossing() {
        let mut bench =
            Bench::new("red limit 200 min 10 max 30 unit packets weight 0.3 probability 0.01 feng");
        let start = bench.state("max_P");
        (0..100).for_each(|_| _ = bench.arrive(100));
        assert!(bench.state("qavg") >> 24 >= 30);
        assert_eq!(bench.state("max_P"), 2 * start);
        while bench.queue.packets() > 5 {
            bench.take();
        }
        for _ in 0..30 {
            bench.arrive(100);
            bench.take();
        }
        assert_eq!(bench.state("max_P"), 2 * start / 3);
    }

    #[test]
    fn ecn_harddrop_and_nodrop() {
        let fill = |flags: &str, ecn| {
            let text =
                format!("red limit 40000 min 5000 max 10000 burst 7 probability 0.5 {flags}");
            let mut bench = Bench::new(&text);
            (0..400).for_each(|_| _ = bench.offer(Frame { ecn, ..Frame::new(0, 1000) }));
            let reasons = [DropReason::Early, DropReason::Forced, DropReason::Overflow];
            (
                reasons.map(|r| drops(&bench, r) > 0),
                bench.counter("prob_mark") > 0,
                bench.counter("forced_mark") > 0,
            )
        };
        assert_eq!(fill("", Ecn::Ect0), ([true, true, false], false, false));
        assert_eq!(fill("ecn", Ecn::Ect0), ([false, false, true], true, true));
        assert_eq!(fill("ecn", Ecn::NotEct), ([true, true, false], false, false));
        assert_eq!(fill("ecn harddrop", Ecn::Ect0), ([false, true, false], true, false));
        assert_eq!(fill("ecn nodrop", Ecn::NotEct), ([false, false, true], false, false));
        assert_eq!(fill("ecn nodrop harddrop", Ecn::NotEct), ([false, true, false], false, false));
    }

    #[test]
    fn a_change_starts_over() {
        let mut bench = Bench::new("red limit 40000 min 5000 max 20000 burst 7 probability 0.5");
        (0..30).for_each(|_| _ = bench.arrive(1000));
        let (queued, lost) = (bench.queue.packets(), bench.kept.dropped.len());
        bench.change("red limit 60000 ecn");
        assert_eq!(bench.queue.packets(), 0);
        assert_eq!(bench.kept.dropped.len() - lost, queued);
        assert_eq!((bench.state("qavg"), bench.state("qcount")), (0, -1));
        assert_eq!(bench.state("qidlestart"), bench.now.into());
    }
}

mod blue {
    use super::*;

    #[test]
    fn moves_at_most_once_per_freeze() {
        let mut bench = Bench::new("blue limit 5 freeze 10ms increment 0.01 decrement 0.001");
        let start = bench.now;
        for round in 0..2000u32 {
            bench.wait(MS);
            bench.arrive(1000);
            if round % 400 > 200 {
                bench.take();
                bench.take();
            }
        }
        let most = (bench.now - start) / (10 * MS) + 1;
        assert!(bench.counter("updates") <= most);
        assert!(bench.counter("updates") > most / 2);
    }

    #[test]
    fn rises_by_overflow_and_falls_by_idleness() {
        let mut bench = Bench::new("blue limit 2");
        (0..3).for_each(|_| _ = bench.arrive(100));
        let up = bench.state("p");
        assert_eq!(up, i128::from((0.0025 * 4_294_967_296.0) as u32));
        while bench.take().is_some() {}
        bench.wait(99 * MS);
        bench.arrive(100);
        assert_eq!(bench.state("p"), up, "still frozen");
        let mut exact = Bench::new("blue limit 1");
        exact.arrive(100);
        exact.arrive(100);
        exact.wait(100 * MS - 1);
        exact.arrive(100);
        assert_eq!(exact.state("p"), up);
        exact.wait(1);
        exact.arrive(100);
        assert!(exact.state("p") >= up || exact.counter("early") > 0);
        assert_eq!(exact.counter("updates"), 2);
        bench.take();
        bench.take();
        bench.wait(1000 * MS);
        bench.arrive(100);
        // Frozen until 100 ms; idle again since 99 ms: ten steps at 100, 200, ... 1000 ms.
        let down = i128::from((0.000_25 * 4_294_967_296.0) as u32);
        assert_eq!(bench.state("p"), up - 10 * down);
        bench.take();
        bench.take();
        bench.wait(3600 * SECOND);
        bench.arrive(100);
        assert_eq!(bench.state("p"), 0);
    }

    #[test]
    fn holds_unresponsive_overload() {
        let mut bench = Bench::new("blue limit 50 freeze 10ms");
        open_loop(&mut bench, 1000, 500_000, 1_000_000, 60 * SECOND);
        let p = bench.state("p") as f64 / 4_294_967_296.0;
        assert!((0.45..0.56).contains(&p), "{p}");
    }

    #[test]
    fn the_probability_never_exceeds_one() {
        let mut bench = Bench::new("blue limit 1 increment 0.9 freeze 1ms");
        for _ in 0..100 {
            bench.wait(2 * MS);
            bench.arrive(100);
        }
        assert_eq!(bench.state("p"), u32::MAX.into());
        let mut marking = Bench::new("blue limit 1 increment 0.9 freeze 1ms ecn");
        for _ in 0..100 {
            marking.wait(2 * MS);
            marking.offer(Frame { ecn: Ecn::Ect0, ..Frame::new(0, 100) });
            marking.take();
            marking.offer(Frame { ecn: Ecn::Ect0, ..Frame::new(0, 100) });
        }
        assert!(marking.kept.dropped.iter().all(|(_, r, _)| *r == DropReason::Overflow));
    }
}
