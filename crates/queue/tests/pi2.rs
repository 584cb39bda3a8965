//! Tests of `pi2` and `dualpi2` against their paper, RFC 9332 and Linux's `sch_dualpi2.c`.

use crate::common::{Bench, Dice, Frame, Kept};
use proptest::prelude::*;
use sojourn_queue::{
    Device, Discipline, Draws, DropReason, Ecn, MarkReason, Params, Return, View, pi,
};
use sojourn_units::{MICROSECOND, MILLISECOND, Nanos, SECOND};

const MS: Nanos = MILLISECOND;
const US: Nanos = MICROSECOND;
/// Transmission time of the largest frame at 10 Mbit/s.
const FRAME: Nanos = 1_211_200;

fn frame(flow: u32, ecn: Ecn) -> Frame {
    Frame { flow, ecn, ..Frame::new(0, 1514) }
}

fn share(part: usize, of: usize) -> f64 {
    part as f64 / of as f64
}

/// Returns whether `found` of `n` trials is within five standard deviations of the expectation for
/// a probability of `p`.
fn is_share(found: usize, n: usize, p: f64) -> bool {
    let deviation = (p * (1.0 - p) * n as f64).sqrt();
    (found as f64 - p * n as f64).abs() <= 5.0 * deviation + 1.0
}

mod controller {
    use super::*;

    fn params(text: &str) -> pi::Params {
        match Params::parse(text, &Device::default()) {
            Ok(Params::DualPi2(params)) => params.pi,
            Ok(Params::Pi2(params)) => params.pi,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Returns the probability after one update from `prob`.
    fn step(text: &str, prob: u32, last: Nanos, delay: Nanos) -> u32 {
        let mut state = pi::State { prob, last_qdelay: last };
        state.update(&params(text).constants(), delay, pi::MAX_PROB);
        assert_eq!(state.last_qdelay, delay);
        state.prob
    }

    /// The kernel's gains are 41 and 819 in 1/256 Hz, which become 44 and 879 in units of 2^-32 per
    /// 64 ns.
    #[test]
    fn the_arithmetic_is_the_kernels() {
        let from = 1 << 30;
        // The delay is 1 ms above target and constant: 10^6 ns * 44 / 64.
        assert_eq!(step("dualpi2", from, 16 * MS, 16 * MS) - from, 687_500);
        // The delay is 1 ms below target: the probability falls by the same amount.
        assert_eq!(from - step("dualpi2", from, 14 * MS, 14 * MS), 687_500);
        // The delay is at target and has risen by 1 ms: 10^6 * 879 / 64, rounded down.
        assert_eq!(step("dualpi2", from, 14 * MS, 15 * MS) - from, 13_734_375);
        // The sum of both corrections is rounded towards zero, for positive and for negative
        // corrections.
        assert_eq!(step("dualpi2", from, 15 * MS, 15 * MS + 1) - from, (44 + 879) / 64);
        assert_eq!(from - step("dualpi2", from, 15 * MS, 15 * MS - 1), (44 + 879) / 64);
        // The paper's gains are about twice as large for `alpha`, and nearly equal for `beta`.
        assert_eq!(step("pi2", from, 21 * MS, 21 * MS) - from, 1_000_000 * 85 / 64);
        assert_eq!(step("pi2", from, 19 * MS, 20 * MS) - from, 1_000_000 * 858 / 64);
    }

    #[test]
    fn it_stays_between_zero_and_one() {
        assert_eq!(step("dualpi2", 10, 15 * MS, 0), 0);
        assert_eq!(step("dualpi2", u32::MAX - 10, 15 * MS, 60 * MS), u32::MAX);
        assert_eq!(step("dualpi2", 12_345, 15 * MS, 15 * MS), 12_345, "at rest on target");
    }

    /// The kernel truncates a correction to 32 bits, and detects an overflow only if the sum has
    /// wrapped.
    #[test]
    fn a_correction_of_more_than_one_is_cut_to_32_bits() {
        // The delay falls by 320 ms: the sum of 320e6 * 879 / 64 and 15e6 * 44 / 64 is 1.023 times
        // 2^32.
        let fall = (15 * MS * 44 + 320 * MS * 879) / 64;
        assert!(fall > 1 << 32 && fall < (1 << 32) + (1 << 30));
        let left = step("dualpi2", 1 << 31, 320 * MS, 0);
        assert_eq!(u64::from(left), (1 << 31) - (fall - (1 << 32)));
        assert_eq!(step("dualpi2", 1 << 20, 320 * MS, 0), 0, "less than what is left over");
        // The correction is one and a fraction; the sum of the initial probability and the fraction
        // does not exceed 1.
        let rise = (335 * MS * 44 + 350 * MS * 879) / 64;
        assert_eq!(u64::from(step("dualpi2", 1 << 20, 0, 350 * MS)), (1 << 20) + rise - (1 << 32));
        assert_eq!(step("dualpi2", u32::MAX - 9, 0, 350 * MS), u32::MAX);
    }

    proptest! {
        /// For any delay, gain and probability, the update follows section 14 of the recordings'
        /// rules, computed with wider numbers.
        #[test]
        fn the_update_is_the_kernels(
            prob: u32,
            last in prop_oneof![0..SECOND, any::<u64>()],
            delay in prop_oneof![0..SECOND, any::<u64>()],
            alpha in 1u32..16_776_960,
            beta in 1u32..16_776_960,
        ) {
            let mut params = params("dualpi2");
            (params.alpha, params.beta) = (alpha, beta);
            let mut state = pi::State { prob, last_qdelay: last };
            state.update(&params.constants(), delay, pi::MAX_PROB);
            let gain = |given: u32| ((u128::from(given) * u128::from(u32::MAX)) >> 2) / 1_000_000_000;
            let weighed = |since: u64, gain: u128| i128::from(delay.wrapping_sub(since) as i64) * gain as i128;
            let change = (weighed(15 * MS, gain(alpha)) + weighed(last, gain(beta))) as i64;
            let sum = i128::from(prob) + i128::from(change).signum() * (i128::from(change.unsigned_abs() >> 6) & 0xffff_ffff);
            prop_assert_eq!(i128::from(state.prob), sum.clamp(0, i128::from(u32::MAX)));
        }
    }

    /// RFC 9332: `p_C = (p_CL / k)^2`, checked with the shares of the decisions.
    #[test]
    fn classic_is_the_square_of_what_l4s_gets() {
        const N: usize = 200_000;
        for (k, prob) in [(2, 0.05), (2, 0.2), (2, 0.45), (3, 0.3), (1, 0.6)] {
            let constants = params(&format!("dualpi2 coupling_factor {k}")).constants();
            let state = pi::State { prob: (prob * 4_294_967_296.0) as u32, last_qdelay: 0 };
            let mut dice = Dice::new(9);
            let mut count = |verdict: &mut dyn FnMut(&mut Dice) -> pi::Verdict, wanted| {
                (0..N).filter(|_| verdict(&mut dice) == wanted).count()
            };
            let marked = count(&mut |d| state.scalable(&constants, true, d), pi::Verdict::Mark);
            let dropped = count(&mut |d| state.classic(&constants, false, d), pi::Verdict::Drop);
            let echoed = count(&mut |d| state.classic(&constants, true, d), pi::Verdict::Mark);
            assert!(is_share(marked, N, f64::from(k) * prob), "{k} {prob}: {marked}");
            assert!(is_share(dropped, N, prob * prob), "{k} {prob}: {dropped}");
            assert!(is_share(echoed, N, prob * prob), "{k} {prob}: {echoed}");
            let root = share(marked, N) / f64::from(k);
            assert!((share(dropped, N) / (root * root) - 1.0).abs() < 0.1, "{k} {prob}");
        }
    }

    #[test]
    fn overload_begins_where_marks_carry_no_more() {
        let constants = params("dualpi2").constants();
        let mut dice = Dice::new(3);
        let below = pi::State { prob: u32::MAX / 2, last_qdelay: 0 };
        let above = pi::State { prob: u32::MAX / 2 + 1, last_qdelay: 0 };
        for _ in 0..2000 {
            assert_ne!(below.scalable(&constants, true, &mut dice), pi::Verdict::Drop);
            assert_ne!(below.classic(&constants, true, &mut dice), pi::Verdict::Drop);
            assert_ne!(above.classic(&constants, true, &mut dice), pi::Verdict::Mark);
            assert_eq!(above.scalable(&constants, false, &mut dice), pi::Verdict::Mark);
        }
        let drops = (0..20_000)
            .filter(|_| above.scalable(&constants, true, &mut dice) == pi::Verdict::Drop)
            .count();
        assert!(is_share(drops, 20_000, 0.25), "{drops}");
        let sure = pi::State { prob: u32::MAX, last_qdelay: 0 };
        assert!((0..1000).all(|_| sure.classic(&constants, true, &mut dice) == pi::Verdict::Drop));
    }

    /// An L4S packet needs one draw, a Classic packet a second draw only if the first one is below
    /// p'.
    #[test]
    fn as_many_draws_as_the_kernel_makes() {
        struct Counted(u32, usize);
        impl Draws for Counted {
            fn draw_u16(&mut self) -> u16 {
                panic!("32 bits only")
            }
            fn draw_u32(&mut self) -> u32 {
                self.1 += 1;
                self.0
            }
            fn draw_u64(&mut self) -> u64 {
                panic!("32 bits only")
            }
        }
        let constants = params("dualpi2").constants();
        let state = pi::State { prob: 1000, last_qdelay: 0 };
        // A draw equal to the probability causes a drop or mark.
        for (draw, classic, scalable) in [
            (1000, (pi::Verdict::Drop, 2), pi::Verdict::Mark),
            (1001, (pi::Verdict::Pass, 1), pi::Verdict::Mark),
            (2000, (pi::Verdict::Pass, 1), pi::Verdict::Mark),
            (2001, (pi::Verdict::Pass, 1), pi::Verdict::Pass),
        ] {
            let mut draws = Counted(draw, 0);
            assert_eq!((state.classic(&constants, false, &mut draws), draws.1), classic);
            let mut draws = Counted(draw, 0);
            assert_eq!((state.scalable(&constants, true, &mut draws), draws.1), (scalable, 1));
        }
    }
}

/// Offers a packet every `gap` and takes one every `FRAME`, for `span`; `next` returns the n-th
/// packet. Returns the longer delay of the queues in milliseconds, and p', at each departure.
fn open_loop(
    bench: &mut Bench,
    gap: Nanos,
    span: Nanos,
    next: impl Fn(u64) -> Frame,
) -> Vec<(f64, f64)> {
    let mut seen = Vec::new();
    let end = bench.now + span;
    let (mut arrival, mut departure) = (bench.now + gap, bench.now + FRAME);
    while arrival.min(departure) < end {
        let at = arrival.min(departure);
        bench.wait(at - bench.now);
        if arrival <= departure {
            bench.offer(next(bench.next_id));
            arrival += gap;
        } else {
            let delay = bench.queue.enqueued_at(0).map_or(0, |at| bench.now - at);
            seen.push((delay as f64 / MS as f64, bench.state("prob") as f64 / 4_294_967_296.0));
            bench.take();
            departure += FRAME;
        }
    }
    seen
}

/// Returns the means of the results of [`open_loop`].
fn means(seen: &[(f64, f64)]) -> (f64, f64) {
    let sum = seen.iter().fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
    (sum.0 / seen.len() as f64, sum.1 / seen.len() as f64)
}

/// Under an unresponsive load of r times the link's rate, p' approaches the value whose square
/// is 1 - 1/r, and the delay approaches the target. Drops of `dualpi2`, on departure, have an immediate
/// effect. Drops of `pi2`, on arrival, affect the delay of the oldest packet one queueing delay
/// later, so that at high loads the probability oscillates.
#[test]
fn the_target_is_held_over_loads() {
    for (text, target, loads) in
        [("pi2", 20.0, [1.03, 1.1, 1.3, 1.6, 2.0]), ("dualpi2", 15.0, [1.03, 1.3, 2.0, 3.0, 5.0])]
    {
        for load in loads {
            let gap = (FRAME as f64 / load) as Nanos;
            let mut bench = Bench::new(text);
            open_loop(&mut bench, gap, 20 * SECOND, |_| frame(0, Ecn::NotEct));
            let seen = open_loop(&mut bench, gap, 60 * SECOND, |_| frame(0, Ecn::NotEct));
            let (delay, p) = means(&seen);
            println!("{text}, load {load}: {delay:.2} ms, p' {p:.3}");
            // Half of a frame's transmission time belongs to the delay, which is read before a
            // departure.
            assert!((delay - target).abs() < 1.0, "{text}, load {load}: {delay} ms");
            assert!((p * p - (1.0 - 1.0 / load)).abs() < 0.02, "{text}, load {load}: p' {p}");
        }
    }
}

mod single {
    use super::*;

    #[test]
    fn limits_are_exact_and_counted() {
        let mut bench = Bench::new("pi2 limit 3");
        let given: Vec<_> = (0..5).map(|_| bench.arrive(1514)).collect();
        assert_eq!(given, [[Return::Success; 3].as_slice(), &[Return::Drop; 2]].concat());
        assert_eq!(bench.counter("overflow"), 2);
        bench.change("pi2 limit 1");
        assert_eq!((bench.queue.packets(), bench.kept.dropped.len()), (1, 4));
        assert_eq!(bench.dropped_ids(), [3, 4, 0, 1], "a change drops from the head");
    }

    #[test]
    fn the_timer_runs_by_tupdate() {
        let mut bench = Bench::new("pi2 tupdate 1500us");
        let first = bench.queue.next_timer().unwrap();
        assert_eq!(first, bench.now + 1500 * US);
        bench.queue.on_timer(first);
        assert_eq!(bench.queue.next_timer(), Some(first + 1500 * US));
    }

    #[test]
    fn the_delay_is_the_heads() {
        let mut bench = Bench::new("pi2");
        bench.wait(30 * MS);
        bench.arrive(1514);
        bench.wait(2 * MS);
        assert_eq!(bench.state("last_qdelay"), 2_000_000);
        bench.take();
        bench.wait(32 * MS);
        assert_eq!(bench.state("last_qdelay"), 0);
    }

    #[test]
    fn two_full_frames_are_let_be() {
        let mut bench = Bench::new("pi2 alpha 100 beta 100 limit 10");
        bench.arrive(1514);
        bench.wait(SECOND);
        assert_eq!(bench.state("prob"), i128::from(u32::MAX));
        bench.arrive(1513);
        assert_eq!(bench.arrive(1514), Return::Success, "3027 bytes are less than two frames");
        assert_eq!(bench.arrive(1514), Return::Drop);
        assert_eq!(bench.counter("early"), 1);
    }

    /// With both kinds of traffic in one queue, each kind has its own probability, and no
    /// ECN-capable packet is dropped.
    #[test]
    fn kinds_are_distinguished_in_one_queue() {
        let mut bench = Bench::new("pi2 ecn");
        let kinds = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        // The load is 1.02, so that drops of a quarter of the packets are sufficient.
        let gap = FRAME * 100 / 102;
        open_loop(&mut bench, gap, 10 * SECOND, |n| frame(0, kinds[(n % 4) as usize]));
        bench.kept = Kept::default();
        open_loop(&mut bench, gap, 40 * SECOND, |n| frame(0, kinds[(n % 4) as usize]));
        assert!(bench.kept.dropped.iter().all(|(f, ..)| f.ecn == Ecn::NotEct));
        let marks = |kind| bench.kept.marked.iter().filter(|(id, _)| id % 4 == kind).count();
        let (classic, l4s, ce) = (marks(1), marks(2), marks(3));
        let drops = bench.kept.dropped.len();
        println!("drops {drops}, marks {classic} {l4s} {ce}");
        assert!((share(classic, drops) - 1.0).abs() < 0.2, "{classic} {drops}");
        assert!(l4s > 3 * classic && (share(ce, l4s) - 1.0).abs() < 0.1);
        // Without `ecn` all packets are Classic, and are dropped.
        let mut bench = Bench::new("pi2");
        open_loop(&mut bench, gap, 40 * SECOND, |n| frame(0, kinds[(n % 4) as usize]));
        let classes =
            [1, 2, 3].map(|k| bench.kept.dropped.iter().filter(|(f, ..)| f.id % 4 == k).count());
        assert!(bench.kept.marked.is_empty() && classes.iter().all(|&n| n > 100), "{classes:?}");
    }
}

mod dualpi2 {
    use super::*;

    fn of(bench: &Bench, flow: u32) -> (usize, usize) {
        let drops = bench.kept.dropped.iter().filter(|(f, ..)| f.flow == flow).count();
        (drops, bench.kept.marked.len())
    }

    #[test]
    fn the_last_bit_of_the_ecn_field_decides() {
        for (text, in_l) in [
            ("dualpi2", [false, true, false, true]),
            ("dualpi2 any_ect", [false, true, true, true]),
        ] {
            let mut bench = Bench::new(text);
            for (ecn, is_l) in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].into_iter().zip(in_l) {
                let before = bench.flow(1, "qlen");
                bench.offer(frame(0, ecn));
                assert_eq!(bench.flow(1, "qlen") > before, is_l, "{text} {ecn:?}");
            }
            let l = in_l.iter().filter(|l| **l).count();
            assert_eq!(bench.counter("packets_in_l"), l as u64);
            assert_eq!(bench.counter("packets_in_c"), 4 - l as u64);
            assert_eq!(bench.flow(0, "backlog"), (4 - l as i128) * 1514);
        }
    }

    #[test]
    fn limits_are_of_both_queues() {
        let mut bench = Bench::new("dualpi2 limit 3");
        let kinds = [Ecn::Ect1, Ecn::NotEct, Ecn::Ect1, Ecn::NotEct, Ecn::Ect1];
        let given: Vec<_> = kinds.map(|ecn| bench.offer(frame(0, ecn))).to_vec();
        assert_eq!(given, [[Return::Success; 3].as_slice(), &[Return::Drop; 2]].concat());
        assert_eq!(bench.counter("overlimits"), 2);
        assert_eq!(bench.counter("maxq"), 2, "the kernel counts before the packet");
        assert!(
            bench.kept.dropped.iter().all(|(_, r, queued)| *r == DropReason::Overflow && !queued)
        );
        // A frame occupies 2026 bytes.
        let mut bench = Bench::new("dualpi2 memlimit 4052");
        assert_eq!(bench.offer(frame(0, Ecn::Ect1)), Return::Success);
        assert_eq!(bench.offer(frame(0, Ecn::NotEct)), Return::Success);
        assert_eq!(bench.arrive(40), Return::Drop);
        assert_eq!(bench.state("memory_used"), 4052);
        bench.take();
        assert_eq!(bench.arrive(1514), Return::Success);
    }

    #[test]
    fn a_change_drops_from_the_classic_queue_first() {
        let mut bench = Bench::new("dualpi2");
        for n in 0..6 {
            bench.offer(frame(0, if n % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct }));
        }
        bench.change("dualpi2 limit 2");
        assert_eq!(bench.dropped_ids(), [1, 3, 5, 0]);
        assert_eq!(bench.state("memory_used"), 2 * (1514 + 512));
        bench.change("dualpi2 classic_protection 100%");
        assert_eq!(bench.state("credit"), 151_400);
    }

    /// As in Linux, a change resets the credit if it names `classic_protection`, even with an equal
    /// value.
    #[test]
    fn a_share_that_is_given_restarts_the_credit() {
        let mut bench = Bench::new("dualpi2");
        for ecn in [Ecn::Ect1, Ecn::NotEct, Ecn::Ect1, Ecn::NotEct] {
            bench.offer(frame(0, ecn));
        }
        bench.take();
        assert_eq!(bench.state("credit"), -121_120 + 15_140);
        bench.change("dualpi2 limit 9");
        assert_eq!(bench.state("credit"), -121_120 + 15_140);
        bench.change("dualpi2 classic_protection 10%");
        assert_eq!(bench.state("credit"), -121_120);
    }

    /// The controller's arrival time of the oldest packet is set by the first arrival and updated
    /// only by departures.
    #[test]
    fn drops_by_a_change_keep_the_age_of_the_queue() {
        let mut bench = Bench::new("dualpi2");
        let begin = bench.now;
        for _ in 0..3 {
            bench.offer(frame(0, Ecn::NotEct));
            bench.wait(MS);
        }
        bench.change("dualpi2 limit 1");
        assert_eq!(bench.state("c_head_ts"), i128::from(begin));
        bench.change("dualpi2 limit 9");
        bench.offer(frame(0, Ecn::NotEct));
        assert_eq!(bench.state("c_head_ts"), i128::from(begin));
        let arrived = bench.now;
        bench.take();
        assert_eq!(bench.state("c_head_ts"), i128::from(arrived));
        bench.take();
        assert_eq!(bench.state("c_head_ts"), 0);
    }

    #[test]
    fn a_class_is_asked_where_the_ecn_field_says_nothing() {
        for (ecn, class, is_l) in [
            (Ecn::NotEct, None, false),
            (Ecn::NotEct, Some(0), false),
            (Ecn::NotEct, Some(1), true),
            (Ecn::Ect0, Some(2), true),
            (Ecn::NotEct, Some(3), false),
            (Ecn::Ect1, Some(0), true),
        ] {
            let mut bench = Bench::new("dualpi2");
            bench.offer(Frame { class, ..frame(0, ecn) });
            assert_eq!(bench.counter("packets_in_l"), u64::from(is_l), "{ecn:?} {class:?}");
        }
    }

    /// L4S packets that are not ECN-capable are dropped above the threshold; packets of class 2 are
    /// not.
    #[test]
    fn the_step_drops_what_it_cannot_mark() {
        let mut bench = Bench::new("dualpi2 step_thresh 1p min_qlen_step 2");
        for class in [1, 1, 2, 1, 1] {
            bench.offer(Frame { class: Some(class), ..frame(0, Ecn::NotEct) });
        }
        let left: Vec<_> = std::iter::from_fn(|| bench.take()).map(|frame| frame.id).collect();
        // At the arrival of the first two packets, fewer than two packets were queued. The last
        // packets leave at most one packet behind.
        assert_eq!(left, [0, 1, 2, 3, 4]);
        assert!(bench.kept.dropped.is_empty());
        let mut bench = Bench::new("dualpi2 step_thresh 1ms");
        for class in [1, 2, 1] {
            bench.offer(Frame { class: Some(class), ..frame(0, Ecn::NotEct) });
        }
        bench.offer(frame(0, Ecn::Ect1));
        bench.now += MS + 1;
        let left: Vec<_> = std::iter::from_fn(|| bench.take()).map(|frame| frame.id).collect();
        assert_eq!((left, bench.dropped_ids()), (vec![1, 3], vec![0, 2]));
        assert_eq!((bench.counter("step_marks"), bench.counter("drops")), (1, 2));
        assert_eq!(bench.state("memory_used"), 0);
    }

    /// While both queues have packets, the C queue gets 10 % of the bytes, or the share given by
    /// `classic_protection`.
    #[test]
    fn the_classic_queue_gets_its_share() {
        for (text, wanted) in [("", 0.1), (" classic_protection 35%", 0.35)] {
            for (c_len, l_len) in [(1514, 1514), (1514, 200), (64, 1514)] {
                let mut bench = Bench::new(&format!("dualpi2 limit 1000{text}"));
                let (mut c, mut l) = (0u64, 0u64);
                for _ in 0..20_000 {
                    while bench.flow(0, "qlen") < 3 {
                        bench.offer(Frame { len: c_len, ..frame(0, Ecn::NotEct) });
                    }
                    while bench.flow(1, "qlen") < 3 {
                        bench.offer(Frame { len: l_len, ..frame(1, Ecn::Ect1) });
                    }
                    let sent = bench.take().expect("both are busy");
                    *if sent.flow == 0 { &mut c } else { &mut l } += u64::from(sent.len);
                }
                let found = c as f64 / (c + l) as f64;
                assert!((found - wanted).abs() < 0.002, "{text} {c_len} {l_len}: {found}");
            }
        }
    }

    /// After an idle time the L queue is served first; service of the L queue while the C queue is
    /// empty does not change the credit.
    #[test]
    fn the_schedule_starts_anew_after_idleness() {
        let mut bench = Bench::new("dualpi2");
        assert_eq!(bench.state("credit"), -80 * 1514);
        for _ in 0..50 {
            bench.offer(frame(1, Ecn::Ect1));
            assert_eq!(bench.take().map(|f| f.flow), Some(1));
        }
        assert_eq!(bench.state("credit"), -80 * 1514, "no change while the other is empty");
        let order = |bench: &mut Bench| {
            (0..12).for_each(|_| _ = bench.offer(frame(0, Ecn::NotEct)));
            (0..12).for_each(|_| _ = bench.offer(frame(1, Ecn::Ect1)));
            let order: Vec<_> = std::iter::from_fn(|| bench.take().map(|f| f.flow)).collect();
            assert_eq!(order.len(), 24);
            order
        };
        let first = order(&mut bench);
        // A credit of -80 % of a frame rises by 10 % with each packet of the L queue; after nine
        // packets it is positive.
        assert_eq!(first[..11], [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1]);
        assert_eq!(order(&mut bench), first);
    }

    #[test]
    fn the_step_marks_what_waited_longer() {
        let mut bench = Bench::new("dualpi2");
        bench.offer(frame(0, Ecn::Ect1));
        bench.wait(1_000_000);
        assert_eq!(
            bench.take().map(|f| f.ecn),
            Some(Ecn::Ect1),
            "the step itself is not beyond it"
        );
        bench.offer(frame(0, Ecn::Ect1));
        bench.offer(frame(0, Ecn::NotEct));
        bench.wait(1_000_001);
        assert_eq!(bench.take().map(|f| f.ecn), Some(Ecn::Ce));
        assert_eq!(bench.take().map(|f| f.ecn), Some(Ecn::NotEct), "the C queue has no step");
        assert_eq!(bench.kept.marked, [(1, MarkReason::CeThreshold)]);
        assert_eq!((bench.counter("step_marks"), bench.counter("ecn_mark")), (1, 1));
    }

    #[test]
    fn the_step_may_count_packets() {
        let mut bench = Bench::new("dualpi2 step_thresh 2p");
        (0..5).for_each(|_| _ = bench.offer(frame(0, Ecn::Ect1)));
        let marked: Vec<_> = (0..5).map(|_| bench.take().unwrap().ecn == Ecn::Ce).collect();
        // The packets leave 4, 3, 2, 1 and no packet in the queue.
        assert_eq!(marked, [true, true, false, false, false]);
    }

    #[test]
    fn a_short_queue_may_be_spared_the_step() {
        let mut bench = Bench::new("dualpi2 min_qlen_step 2");
        (0..4).for_each(|_| _ = bench.offer(frame(0, Ecn::Ect1)));
        bench.wait(5 * MS);
        let marked: Vec<_> = (0..4).map(|_| bench.take().unwrap().ecn == Ecn::Ce).collect();
        assert_eq!(marked, [false, false, true, true], "the first two found fewer than two");
    }

    /// Returns a queue whose base probability has been raised to `prob` by one update with a large
    /// gain.
    fn driven(text: &str, prob: f64) -> Bench {
        let gain = prob / 0.985; // a second's delay, 985 ms above target
        let fast = format!("{text} tupdate 1s alpha {gain:.6} beta 0.00390625");
        let mut bench = Bench::new(&fast);
        bench.offer(frame(9, Ecn::NotEct));
        bench.wait(SECOND);
        bench.take();
        let now = bench.state("prob") as f64 / 4_294_967_296.0;
        assert!((now - prob).abs() < 0.01 || (prob > 1.0 && now > 0.999), "{now}");
        bench.change(text);
        bench
    }

    /// Returns the shares of `n` packets of a kind that are dropped and marked, from a queue of ten
    /// packets.
    fn fates(bench: &mut Bench, ecn: Ecn, n: usize) -> (f64, f64) {
        let before = (bench.kept.dropped.len(), bench.kept.marked.len());
        let mut seen = 0;
        while seen < n {
            while bench.queue.packets() < 10 {
                bench.offer(frame(0, ecn));
                seen += 1;
            }
            bench.take();
        }
        let drops = bench.kept.dropped.len() - before.0;
        (share(drops, n), share(bench.kept.marked.len() - before.1, n))
    }

    #[test]
    fn classic_drops_or_marks_by_the_square_and_l4s_is_never_dropped() {
        for text in ["dualpi2", "dualpi2 drop_enqueue", "dualpi2 overflow"] {
            let (mut c, mut e, mut l) = (driven(text, 0.3), driven(text, 0.3), driven(text, 0.3));
            let near = |found: (f64, f64), wanted: (f64, f64)| {
                let close = |a: f64, b: f64| (a - b).abs() < 0.02;
                assert!(close(found.0, wanted.0) && close(found.1, wanted.1), "{text}: {found:?}");
            };
            near(fates(&mut c, Ecn::NotEct, 8000), (0.09, 0.0));
            near(fates(&mut e, Ecn::Ect0, 8000), (0.0, 0.09));
            near(fates(&mut l, Ecn::Ect1, 8000), (0.0, 0.6));
        }
    }

    #[test]
    fn under_overload_ecn_is_no_excuse() {
        // If p' exceeds 1/2, every packet of the L queue is marked or dropped, and the drop
        // probability is that of Classic packets.
        let (drops, marks) = fates(&mut driven("dualpi2", 0.6), Ecn::Ect1, 8000);
        assert!((drops - 0.36).abs() < 0.02 && (marks - 0.64).abs() < 0.02, "{drops} {marks}");
        let (drops, marks) = fates(&mut driven("dualpi2", 0.6), Ecn::Ect0, 8000);
        assert!((drops - 0.36).abs() < 0.02 && marks < 1e-9, "{drops} {marks}");
        // With `overflow` p' is at most 1/2.
        let mut bench = driven("dualpi2 overflow", 0.5);
        bench.arrive(1514);
        bench.wait(SECOND);
        assert_eq!(bench.state("prob"), i128::from(u32::MAX / 2));
        assert!(bench.take().is_some());
    }

    #[test]
    fn the_controller_sees_the_longer_delay() {
        for (first, second) in [(Ecn::Ect1, Ecn::NotEct), (Ecn::NotEct, Ecn::Ect1)] {
            let mut bench = Bench::new("dualpi2");
            bench.wait(4 * MS);
            bench.offer(frame(0, first));
            bench.wait(5 * MS);
            bench.offer(frame(0, second));
            bench.wait(7 * MS);
            assert_eq!(bench.state("last_qdelay"), 12_000_000);
        }
    }

    /// As in the kernel, early drops on arrival do not notify the sending host; drops on overflow
    /// do.
    #[test]
    fn early_drops_on_arrival_return_success() {
        let mut bench = driven("dualpi2 drop_enqueue", 2.0);
        (0..3).for_each(|_| _ = bench.arrive(1514));
        assert_eq!(bench.arrive(1514), Return::Success);
        assert!(bench.kept.dropped.iter().all(|(_, r, queued)| *r == DropReason::Early && !queued));
        assert_eq!(of(&bench, 0).0, 2, "two frames are let be, the rest is dropped");
    }

    /// A flood in the L queue loses packets, while the C queue keeps its share of the rate.
    #[test]
    fn an_unresponsive_flood_in_l_leaves_c_its_share() {
        let mut bench = Bench::new("dualpi2");
        // L4S traffic has 1.5 times the link's rate, Classic traffic 0.05 times.
        let kind = |n: u64| if n % 31 == 30 { frame(0, Ecn::NotEct) } else { frame(1, Ecn::Ect1) };
        open_loop(&mut bench, FRAME * 100 / 155, 20 * SECOND, kind);
        let before = ["packets_in_c", "packets_in_l"].map(|name| bench.counter(name) as usize);
        bench.kept = Kept::default();
        let seen = open_loop(&mut bench, FRAME * 100 / 155, 60 * SECOND, kind);
        let after = ["packets_in_c", "packets_in_l"].map(|name| bench.counter(name) as usize);
        let lost = [0, 1]
            .map(|flow| share(of(&bench, flow).0, after[flow as usize] - before[flow as usize]));
        let (delay, p) = means(&seen);
        println!("lost {lost:?}, longest delay {delay:.2} ms, p' {p:.3}");
        // Of 1.55 packets 0.55 must be dropped, a share of 0.355; both kinds are dropped with p'
        // squared.
        assert!((lost[1] - 0.355).abs() < 0.02 && (lost[0] - lost[1]).abs() < 0.03, "{lost:?}");
        assert!((p * p - 0.355).abs() < 0.03, "{p}");
        assert!((delay - 15.0).abs() < 1.5, "{delay} ms");
    }
}
