//! Tests of dAQM: each feature, and each quirk of its published code, with values computed by hand.

#![allow(clippy::float_cmp, reason = "a setting is as it was written")]

use crate::common::{Bench, Frame, Kept};
use proptest::prelude::*;
use sojourn_queue::daqm::{Feature, Params as Daqm, Setting};
use sojourn_queue::{Device, Discipline, DropReason, Params, Return, View};
use sojourn_units::{EPOCH, MICROSECOND, MILLISECOND, Nanos};

const MS: Nanos = MILLISECOND;

fn daqm(text: &str) -> Daqm {
    match Params::parse(text, &Device::default()) {
        Ok(Params::Daqm(params)) => params,
        other => panic!("{text}: {other:?}"),
    }
}

/// Waits until `at`, counted from the creation of the queue.
fn until(bench: &mut Bench, at: Nanos) {
    bench.wait(EPOCH + at - bench.now);
}

/// Returns a queue of `text` in which packets have arrived at `times`.
fn filled(text: &str, times: impl IntoIterator<Item = Nanos>) -> Bench {
    let mut bench = Bench::new(text);
    for at in times {
        until(&mut bench, at);
        assert_eq!(bench.arrive(1000), Return::Success);
    }
    bench
}

/// Takes a packet at `at`; returns its number.
fn take(bench: &mut Bench, at: Nanos) -> Option<u64> {
    until(bench, at);
    bench.take().map(|frame| frame.id)
}

/// Returns the numbers of the packets dropped for `reason`.
fn dropped(bench: &Bench, reason: DropReason) -> Vec<u64> {
    bench.kept.dropped.iter().filter(|(_, r, _)| *r == reason).map(|(f, ..)| f.id).collect()
}

/// Returns whether the packet that leaves at `at` is dropped for `feature`.
fn is_hit(bench: &mut Bench, at: Nanos, feature: &str) -> bool {
    let before = dropped(bench, DropReason::Forced).len();
    let number = Feature::ALL.iter().position(|f| f.name() == feature).unwrap() as i128 + 1;
    take(bench, at);
    let hit = dropped(bench, DropReason::Forced).len() > before;
    assert!(!hit || bench.state("hit") == number, "another feature was hit");
    hit
}

/// Arrival times of six packets, whose sojourn times at 20 ms are 20, 18, 16, 12, 6 and 5 ms.
const UNEVEN: [Nanos; 6] = [0, 2 * MS, 4 * MS, 8 * MS, 14 * MS, 15 * MS];

mod presets {
    use super::*;

    /// Table 2 of the paper: thresholds of S, S1 to S3, Q, Q1 to Q3; drop probability; duration in
    /// ms; features that are on.
    #[test]
    fn presets_are_those_of_the_paper() {
        let singles = [200.0, 0.01, 0.01, 0.01, 20.0, 0.01, 0.01, 0.01];
        let all = vec![
            ("c1", [1000.0, 10.0, 10.0, 10.0, 120.0, 1.0, 10.0, 10.0], 0.05, 400, None),
            ("c2", [600.0, 0.1, 0.1, 0.1, 80.0, 0.1, 0.1, 0.1], 0.5, 400, None),
            ("c3", [100.0, 0.01, 0.01, 0.01, 20.0, 0.01, 0.01, 0.01], 0.98, 400, None),
            ("f1", singles, 0.9, 200, Some(Feature::S)),
            ("f2", singles, 0.9, 200, Some(Feature::S1)),
            ("f3", singles, 0.9, 200, Some(Feature::S2)),
            ("f4", singles, 0.9, 200, Some(Feature::S3)),
            ("f5", singles, 0.9, 200, Some(Feature::Q)),
            ("f6", singles, 0.9, 200, Some(Feature::Q1)),
            ("f7", singles, 0.9, 200, Some(Feature::Q2)),
            ("f8", singles, 0.9, 200, Some(Feature::Q3)),
        ];
        for (name, thresholds, rate, duration, only) in all {
            let params = daqm(&format!("daqm preset {name}"));
            for (feature, threshold) in Feature::ALL.into_iter().zip(thresholds) {
                let setting = params.features.of(feature);
                assert_eq!(setting.on, only.is_none_or(|only| only == feature), "{name}");
                assert_eq!(
                    (setting.threshold, setting.duration),
                    (threshold, duration * MS),
                    "{name}"
                );
                let share = f64::from(setting.rate) / 4_294_967_296.0;
                assert!((share - rate).abs() < 1e-9, "{name}");
            }
        }
        assert_eq!(daqm("daqm"), daqm("daqm preset c1"));
    }

    #[test]
    fn words_of_one_feature_go_before_those_of_all() {
        let params = daqm("daqm q1-rate 0.25 rate 0.75 duration 1ms s-duration 2ms preset c3");
        let of = |feature| *params.features.of(feature);
        assert_eq!((of(Feature::Q1).rate, of(Feature::Q2).rate), (1 << 30, 3 << 30));
        assert_eq!((of(Feature::S).duration, of(Feature::Q).duration), (2 * MS, MS));
        assert_eq!(of(Feature::Q3).threshold, 0.01);
    }

    #[test]
    fn every_number_has_its_word() {
        let blank = daqm("daqm features none");
        for feature in Feature::ALL {
            let name = feature.name();
            let threshold = match feature {
                Feature::S => "7ms",
                Feature::Q => "7p",
                _ => "7",
            };
            let text = format!(
                "daqm features {name} {name}-threshold {threshold} {name}-rate 0.5 {name}-duration 3ms"
            );
            let mut wanted = blank;
            *wanted.features.of_mut(feature) =
                Setting { on: true, threshold: 7.0, rate: 1 << 31, duration: 3 * MS };
            assert_eq!(daqm(&text), wanted);
        }
    }
}

mod features {
    use super::*;

    #[test]
    fn s_is_the_oldest_packets_wait() {
        let mut bench = filled("daqm features s s-threshold 20ms", UNEVEN);
        bench.arrive(1000);
        assert!(!is_hit(&mut bench, 20 * MS, "s"));
        assert_eq!(bench.state("s"), 20_000);
        // The next packet arrived at 2 ms.
        assert!(is_hit(&mut bench, 22 * MS + 1, "s"));
    }

    #[test]
    fn q_is_the_number_queued() {
        for (threshold, hit) in [(6, false), (5, true)] {
            let text = format!("daqm features q q-threshold {threshold}p");
            assert_eq!(is_hit(&mut filled(&text, UNEVEN), 20 * MS, "q"), hit);
        }
    }

    /// With an interval of 2 ms: S1 = (18 - 20) / 2. The slopes are a = (16 - 20) / 4, b = (12 -
    /// 18) / 4 and c = (6 - 16) / 4. Then S2 = (b - a) / 2, and S3 = ((c - b) / 2 - (b - a) / 2) /
    /// 2.
    #[test]
    fn derivatives_of_waits_by_hand() {
        let mut bench = filled("daqm features s", UNEVEN);
        assert_eq!(take(&mut bench, 20 * MS), Some(0));
        assert_eq!(bench.state("s1"), -1000);
        assert_eq!(bench.state("s2"), -250);
        assert_eq!(bench.state("s3"), -125);
        for (name, size) in [("s1", 1.0), ("s2", 0.25), ("s3", 0.125)] {
            for (threshold, hit) in [(size, false), (size - 0.001, true)] {
                let text = format!("daqm features {name} {name}-threshold {threshold}");
                assert_eq!(is_hit(&mut filled(&text, UNEVEN), 20 * MS, name), hit, "{text}");
            }
        }
    }

    /// The lengths are 10, 13, 20, 34 and 30 at 15, 30, 45, 60 and 75 ms. Q1 = 13 - 10. The slopes
    /// are a = (20 - 10) / 2, b = (34 - 13) / 2 and c = (30 - 20) / 2. Then Q2 = b - a, and Q3 = (c
    /// - b) - (b - a). One sample later the five lengths are 13, 20, 34, 30 and 30.
    #[test]
    fn derivatives_of_lengths_by_hand() {
        let history = |text: &str| {
            let mut bench = Bench::new(text);
            for (tick, arrivals) in [10, 3, 7, 14, 0u64].into_iter().enumerate() {
                until(&mut bench, (15 * tick as u64 + 1) * MS);
                (0..arrivals).for_each(|_| _ = bench.arrive(1000));
            }
            (0..4).for_each(|_| _ = bench.take());
            bench
        };
        let mut bench = history("daqm features s");
        take(&mut bench, 74 * MS);
        assert_eq!([bench.state("q1"), bench.state("q2"), bench.state("q3")], [0; 3]);
        let mut bench = history("daqm features s");
        take(&mut bench, 76 * MS);
        let now = [bench.state("q1"), bench.state("q2"), bench.state("q3")];
        assert_eq!(now, [3000, 5500, -11_000]);
        bench.arrive(1000);
        take(&mut bench, 91 * MS);
        let slid = [bench.state("q1"), bench.state("q2"), bench.state("q3")];
        // The slopes are a = 21 / 2, b = 10 / 2, c = -4 / 2.
        assert_eq!(slid, [7000, -5500, -1500]);
        for (name, size) in [("q1", 3.0), ("q2", 5.5), ("q3", 11.0)] {
            for (threshold, hit) in [(size, false), (size - 0.001, true)] {
                let text = format!("daqm features {name} {name}-threshold {threshold}");
                assert_eq!(is_hit(&mut history(&text), 76 * MS, name), hit, "{text}");
            }
        }
    }

    /// If all features are above their thresholds, the first in the paper's order is hit. The test
    /// turns features off one after another.
    #[test]
    fn features_are_checked_in_order() {
        let order = ["s3", "q3", "s2", "q2", "s1", "q1", "s", "q"];
        for (place, first) in order.into_iter().enumerate() {
            let text = format!(
                "daqm preset c3 sampling 4ms s-threshold 0 q-threshold 0p features {}",
                order[place..].join("+")
            );
            let mut bench = filled(&text, UNEVEN);
            (0..3).for_each(|_| _ = bench.arrive(1000));
            // The lengths are 2, 3, 4, 9 and 9 at 4 to 20 ms, so that no derivative is zero.
            assert!(is_hit(&mut bench, 20 * MS, first), "{first}");
            assert_eq!(bench.counter(&format!("hits_{first}")), 1);
        }
    }

    #[test]
    fn few_packets_and_a_young_queue_are_not_evaluated() {
        let mut bench = filled("daqm preset c3", (0..6).map(|n| n * 10 * MICROSECOND));
        take(&mut bench, 5 * MS);
        bench.arrive(1000);
        assert_eq!(bench.counter("evaluated"), 0);
        take(&mut bench, 5 * MS + 1);
        assert_eq!(bench.counter("evaluated"), 1);
        // From here on at most five packets remain.
        (0..5).for_each(|_| _ = bench.take());
        assert_eq!(bench.counter("evaluated"), 1);
    }
}

mod interval {
    use super::*;

    #[test]
    fn a_constant_interval_scales_each_derivative_by_its_power() {
        let state = |interval: &str| {
            let mut bench = filled(&format!("daqm features s interval {interval}"), UNEVEN);
            take(&mut bench, 20 * MS);
            [bench.state("s1"), bench.state("s2"), bench.state("s3")]
        };
        assert_eq!(state("2ms"), [-1000, -250, -125]);
        assert_eq!(state("1ms"), [-2000, -1000, -1000]);
        assert_eq!(state("500us"), [-4000, -4000, -8000]);
    }

    /// The arrivals are at 0, 2, 4, 8, 14 and 15 ms: the mean of the five intervals is 3 ms.
    #[test]
    fn a_measured_interval_is_the_mean_gap_of_the_queue() {
        let mut bench = filled("daqm features s interval measured", UNEVEN);
        take(&mut bench, 20 * MS);
        let by_hand = [-2.0 / 3.0, (-1.0 + 4.0 / 6.0) / 3.0];
        assert_eq!(bench.state("s1"), (by_hand[0] * 1000.0_f64).round() as i128);
        assert_eq!(bench.state("s2"), (by_hand[1] * 1000.0_f64).round() as i128);
    }

    /// With the measured interval, S1 is -1 for arrivals at any constant rate: the sojourn time
    /// falls by the interval from one packet to the next. With a constant interval, S1 depends on
    /// the rate.
    #[test]
    fn even_arrivals_are_flat() {
        for gap in [100 * MICROSECOND, MS, 7 * MS] {
            let even = (0..20).map(|n| n * gap);
            let mut bench = filled("daqm features s interval measured", even.clone());
            take(&mut bench, 200 * MS);
            let [s1, s2, s3] = ["s1", "s2", "s3"].map(|name| bench.state(name));
            assert_eq!([s1, s2, s3], [-1000, 0, 0]);
            let mut bench = filled("daqm features s interval 1ms", even);
            take(&mut bench, 200 * MS);
            assert_eq!(bench.state("s1"), -i128::from(gap) / 1000);
        }
    }

    #[test]
    fn a_burst_has_no_slope() {
        let mut bench = filled("daqm preset c3 features s1+s2+s3 interval measured", [0; 9]);
        assert_eq!(take(&mut bench, 20 * MS), Some(0));
        assert_eq!(bench.counter("evaluated"), 1);
        assert_eq!(bench.state("s1"), 0);
    }
}

mod phase {
    use super::*;

    const HIT: &str = "daqm features s s-threshold 1ms s-duration 30ms";

    #[test]
    fn a_hit_drops_the_packet_and_gives_the_next() {
        let mut bench = filled(HIT, UNEVEN);
        assert_eq!(take(&mut bench, 20 * MS), Some(1));
        assert_eq!(bench.kept.dropped.len(), 1);
        let (frame, reason, queued) = &bench.kept.dropped[0];
        assert_eq!((frame.id, *reason, *queued), (0, DropReason::Forced, true));
        assert_eq!(bench.state("phase_until"), i128::from(EPOCH + 50 * MS));
        assert_eq!((bench.counter("drops"), bench.counter("packets")), (1, 1));
    }

    #[test]
    fn arrivals_are_dropped_for_the_duration_at_the_rate() {
        let mut bench = filled(&format!("{HIT} rate 1"), UNEVEN);
        take(&mut bench, 20 * MS);
        until(&mut bench, 50 * MS - 1);
        assert_eq!(bench.arrive(1000), Return::Drop);
        assert_eq!(dropped(&bench, DropReason::Early), [6]);
        until(&mut bench, 50 * MS);
        assert_eq!(bench.arrive(1000), Return::Success);
        let share = |rate: &str| {
            let mut bench = filled(&format!("{HIT} limit 20000p rate {rate}"), UNEVEN);
            take(&mut bench, 20 * MS);
            (0..10_000).filter(|_| bench.arrive(1000) == Return::Drop).count()
        };
        assert_eq!(share("0"), 0);
        assert!((2800..3200).contains(&share("0.3")), "{}", share("0.3"));
    }

    #[test]
    fn nothing_is_evaluated_in_a_phase() {
        let mut bench = filled(&format!("{HIT} rate 0"), (0..40).map(|n| n * MICROSECOND));
        take(&mut bench, 20 * MS);
        for at in 21..50 {
            take(&mut bench, at * MS);
        }
        assert_eq!((bench.counter("evaluated"), bench.kept.dropped.len()), (1, 1));
        assert_eq!(take(&mut bench, 50 * MS), Some(32));
        assert_eq!((bench.counter("evaluated"), bench.kept.dropped.len()), (2, 2));
    }

    #[test]
    fn the_feature_that_is_hit_gives_rate_and_duration() {
        let text = "daqm features s+q rate 0 q-rate 1 q-duration 9ms s-duration 1ms q-threshold 5p";
        let mut bench = filled(text, UNEVEN);
        assert!(is_hit(&mut bench, 20 * MS, "q"));
        assert_eq!(bench.state("phase_until"), i128::from(EPOCH + 29 * MS));
        assert_eq!(bench.arrive(1000), Return::Drop);
    }

    #[test]
    fn no_room_goes_before_the_phase_and_needs_no_draw() {
        let mut bench = filled(&format!("{HIT} rate 1 limit 6p"), UNEVEN);
        assert_eq!(bench.arrive(1000), Return::Drop);
        take(&mut bench, 20 * MS);
        (0..3).for_each(|_| _ = bench.arrive(1000));
        assert_eq!(dropped(&bench, DropReason::Overflow), [6]);
        assert_eq!((dropped(&bench, DropReason::Early), bench.dice.calls), (vec![7, 8, 9], 3));
    }

    #[test]
    fn a_change_leaves_the_phase_and_the_samples() {
        let mut bench = filled(&format!("{HIT} rate 1"), UNEVEN);
        take(&mut bench, 20 * MS);
        bench.change("daqm rate 0 duration 1ms limit 3p sampling 40ms");
        assert_eq!(bench.queue.packets(), 3);
        assert_eq!(bench.arrive(1000), Return::Drop);
        bench.take();
        assert_eq!(bench.arrive(1000), Return::Drop, "the phase goes on as it began");
        assert_eq!(bench.queue.next_timer(), Some(EPOCH + 30 * MS));
        until(&mut bench, 30 * MS);
        assert_eq!(bench.queue.next_timer(), Some(EPOCH + 70 * MS));
    }
}

/// Each quirk alone: the same calls with the quirk and without it.
mod published {
    use super::*;

    fn both<T>(base: &str, quirk: &str, steps: impl Fn(&mut Bench) -> T) -> (T, T) {
        let mut plain = Bench::new(base);
        let mut quirky = Bench::new(&format!("{base} published {quirk}"));
        (steps(&mut plain), steps(&mut quirky))
    }

    fn fill(bench: &mut Bench, times: impl IntoIterator<Item = Nanos>) {
        for at in times {
            until(bench, at);
            bench.arrive(1000);
        }
    }

    #[test]
    fn discards_takes_five_packets_out_at_every_evaluation() {
        let steps = |bench: &mut Bench| {
            fill(bench, (0..20).map(|n| n * MS));
            let sent: Vec<_> = (0..4).filter_map(|_| bench.take().map(|f| f.id)).collect();
            (sent, dropped(bench, DropReason::Measurement))
        };
        let (plain, quirky) = both("daqm features s", "discards", steps);
        assert_eq!(plain, (vec![0, 1, 2, 3], vec![]));
        // After three evaluations two packets remain, which are too few for a fourth.
        let gone = [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17].to_vec();
        assert_eq!(quirky, (vec![0, 6, 12, 18], gone));
    }

    #[test]
    fn discards_and_a_hit_take_six_and_send_the_seventh() {
        let mut bench = Bench::new("daqm features s s-threshold 1ms published discards");
        fill(&mut bench, (0..7).map(|n| n * MS));
        assert_eq!(take(&mut bench, 10 * MS), Some(6));
        let kept: Vec<_> = bench.kept.dropped.iter().map(|(f, r, q)| (f.id, *r, *q)).collect();
        let measured = (1..6).map(|id| (id, DropReason::Measurement, true));
        assert_eq!(kept, measured.chain([(0, DropReason::Forced, true)]).collect::<Vec<_>>());
        assert_eq!((bench.counter("drops"), bench.counter("measurement")), (6, 5));
        // Six packets are one too few.
        fill(&mut bench, (11..17).map(|n| n * MS));
        until(&mut bench, 1000 * MS);
        bench.take();
        assert_eq!(bench.counter("evaluated"), 1);
    }

    #[test]
    fn literal_is_forty_for_any_backlog() {
        for (threshold, packets, found) in
            [(39, 6, (false, true)), (40, 50, (true, false)), (20, 30, (true, true))]
        {
            let base = format!("daqm features q q-threshold {threshold}p");
            let steps = |bench: &mut Bench| {
                fill(bench, (0..packets).map(|n| n * MICROSECOND));
                is_hit(bench, 10 * MS, "q")
            };
            assert_eq!(both(&base, "literal", steps), found, "{threshold} {packets}");
        }
    }

    #[test]
    fn interval_is_two_milliseconds_for_any_word() {
        for given in ["500us", "8ms", "measured"] {
            let steps = |bench: &mut Bench| {
                fill(bench, UNEVEN);
                take(bench, 20 * MS);
                bench.state("s1")
            };
            let (plain, quirky) =
                both(&format!("daqm features s interval {given}"), "interval", steps);
            assert_eq!(quirky, -1000);
            assert_ne!(plain, quirky);
        }
    }

    #[test]
    fn whole_ms_drops_the_fractions_of_waits() {
        let steps = |bench: &mut Bench| {
            // The sojourn times are 9.9, 9.2, 8.9, 8.1 and 7.5 ms, truncated 9, 9, 8, 8 and 7 ms.
            fill(bench, [100, 800, 1100, 1900, 2500, 2600].map(|us| us * MICROSECOND));
            take(bench, 10 * MS);
            ["s", "s1", "s2", "s3"].map(|name| bench.state(name))
        };
        let (plain, quirky) = both("daqm features s interval 1ms", "whole-ms", steps);
        // The slopes are a = (8.9 - 9.9) / 2, b = (8.1 - 9.2) / 2, c = (7.5 - 8.9) / 2.
        assert_eq!(plain, [9900, -700, -50, -100]);
        assert_eq!(quirky, [9900, 0, 0, 0]);
    }

    #[test]
    fn behind_leaves_the_packet_to_send_out() {
        let steps = |bench: &mut Bench| {
            fill(bench, UNEVEN.into_iter().chain([15 * MS]));
            take(bench, 20 * MS);
            ["s", "s1", "q"].map(|name| bench.state(name))
        };
        let (plain, quirky) = both("daqm features s", "behind", steps);
        assert_eq!(plain, [20_000, -1000, 7000]);
        assert_eq!(quirky, [18_000, -1000, 6000]);
        let six = |bench: &mut Bench| {
            fill(bench, UNEVEN);
            take(bench, 20 * MS);
            bench.counter("evaluated")
        };
        assert_eq!(both("daqm features s", "behind", six), (1, 0));
    }

    /// The length at the n-th sample is n². For the five samples from m on, Q1 is 2 m + 1.
    #[test]
    fn tumbling_looks_at_each_five_samples_once() {
        let steps = |bench: &mut Bench| {
            let mut seen = Vec::new();
            for n in 0..12u64 {
                until(bench, (15 * n + 1) * MS);
                while (bench.queue.packets() as u64) < n * n {
                    bench.arrive(1000);
                }
                until(bench, (15 * n + 16) * MS);
                // A dequeue sends one packet, which is replaced by an arrival before the next
                // sample.
                bench.take();
                seen.push(bench.state("q1") / 1000);
            }
            seen
        };
        let (plain, quirky) = both("daqm features s s-threshold 10s", "tumbling", steps);
        assert_eq!(plain, [0, 0, 0, 0, 1, 3, 5, 7, 9, 11, 13, 15]);
        assert_eq!(quirky, [0, 0, 0, 0, 1, 1, 1, 1, 1, 11, 11, 11]);
    }

    #[test]
    fn doubled_asks_for_a_sample_at_twice_the_time() {
        let steps = |bench: &mut Bench| {
            fill(bench, [10 * MS, 10 * MS, 10 * MS]);
            take(bench, 20 * MS);
            take(bench, 31 * MS);
            let first = bench.queue.next_timer().unwrap();
            until(bench, first - EPOCH);
            (first - EPOCH, bench.queue.next_timer().unwrap() - EPOCH)
        };
        let (plain, quirky) = both("daqm", "doubled", steps);
        assert_eq!((plain, quirky), ((45 * MS, 60 * MS), (55 * MS, 77 * MS)));
    }

    #[test]
    fn wall_clock_leaves_samples_out() {
        // A packet leaves every millisecond, so each causes a sample two milliseconds after the
        // previous sample.
        let times = |text: &str| {
            let mut bench = Bench::new(text);
            let mut times = Vec::new();
            for n in 1..60 {
                until(&mut bench, n * MS);
                bench.arrive(1000);
                bench.take();
                times.push((bench.queue.next_timer().unwrap() - EPOCH) / MS);
            }
            times.dedup();
            times.retain(|at| *at < 60);
            times
        };
        assert_eq!(times("daqm published doubled"), (17..60).step_by(2).collect::<Vec<_>>());
        let rare = "daqm published doubled+wall-clock wall-period 12ms";
        assert_eq!(times(rare), [17, 29, 41, 53]);
    }

    #[test]
    fn shared_takes_the_numbers_of_s1() {
        let steps = |bench: &mut Bench| {
            fill(bench, UNEVEN);
            assert!(is_hit(bench, 20 * MS, "q"));
            (bench.state("phase_until") - i128::from(bench.now), bench.state("phase_rate"))
        };
        let base = "daqm features q+s1 q-threshold 1p q-rate 0.5 q-duration 7ms s1-rate 0.25 s1-duration 9ms";
        let ms = i128::from(MS);
        assert_eq!(both(base, "shared", steps), ((7 * ms, 1 << 31), (9 * ms, 1 << 30)));
    }

    /// A feature that is off has the default threshold of the code, so it may still be hit.
    #[test]
    fn defaults_leave_no_feature_off() {
        let steps = |bench: &mut Bench| {
            fill(bench, [0, 101 * MS, 102 * MS, 103 * MS, 104 * MS, 105 * MS]);
            (is_hit(bench, 110 * MS, "s1"), bench.state("s1"))
        };
        let (plain, quirky) = both("daqm preset f5", "defaults", steps);
        assert_eq!(plain, (false, -50_500));
        assert_eq!(quirky, (true, -50_500));
        let (old, older) = (2500 * MS, 2501 * MS);
        for (at, hit) in [(old, false), (older, true)] {
            let steps = |bench: &mut Bench| {
                fill(bench, [0; 6]);
                is_hit(bench, at, "s")
            };
            assert_eq!(both("daqm features none", "defaults", steps), (false, hit));
        }
        for (packets, hit) in [(200, false), (201, true)] {
            let steps = |bench: &mut Bench| {
                fill(bench, (0..packets).map(|_| 0));
                is_hit(bench, 6 * MS, "q")
            };
            assert_eq!(both("daqm features none", "defaults", steps), (false, hit));
        }
    }

    #[test]
    fn flag_keeps_the_next_packet_from_being_evaluated() {
        let steps = |bench: &mut Bench| {
            fill(bench, (0..20).map(|n| n * MICROSECOND));
            let sent: Vec<_> = (20..25).filter_map(|at| take(bench, at * MS)).collect();
            (sent, bench.counter("evaluated"))
        };
        let (plain, quirky) = both("daqm features s s-threshold 1ms s-duration 0", "flag", steps);
        assert_eq!(plain, (vec![1, 3, 5, 7, 9], 5));
        assert_eq!(quirky, (vec![1, 2, 4, 5, 7], 3));
    }

    #[test]
    fn absolute_reads_the_runs_clock() {
        let evaluated = |text: &str| {
            let params = Params::parse(text, &Device::default()).unwrap();
            // The queue is created during a run.
            let mut bench = Bench::new(text);
            bench.now = EPOCH + 100 * MS;
            bench.queue = params.build(bench.now);
            (0..6).for_each(|_| _ = bench.arrive(1000));
            bench.wait(MS);
            bench.take();
            bench.counter("evaluated")
        };
        assert_eq!(evaluated("daqm target 5ms"), 0);
        assert_eq!(evaluated("daqm target 5ms published absolute"), 1);
        assert_eq!(evaluated("daqm target 101ms published absolute"), 0);
    }

    #[test]
    fn as_published_is_all_of_them() {
        assert_eq!(daqm("daqm as-published"), daqm("daqm published all"));
        assert_ne!(daqm("daqm as-published"), daqm("daqm"));
        assert_eq!(daqm("daqm published none"), daqm("daqm"));
    }
}

/// Each step is a wait, followed by an arrival (true) or a departure (false).
fn schedule() -> impl Strategy<Value = Vec<(Nanos, bool)>> {
    let wait = prop_oneof![3 => 0..3 * MS, 1 => Just(0), 1 => 0..40 * MS];
    prop::collection::vec((wait, prop::bool::weighted(0.55)), 1..400)
}

fn run(text: &str, ops: &[(Nanos, bool)]) -> (Vec<Option<Frame>>, Kept) {
    let mut bench = Bench::new(text);
    let mut sent = Vec::new();
    for (wait, arrives) in ops {
        bench.wait(*wait);
        if *arrives {
            bench.arrive(1000);
        } else {
            sent.push(bench.take());
        }
    }
    (sent, bench.kept)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Without hits, dAQM drops the same packets as a FIFO with tail drop.
    #[test]
    fn without_hits_it_is_a_fifo(ops in schedule(), limit in 5u32..60) {
        let far = "s-threshold 9999999s q-threshold 4000000000p s1-threshold 999999999 s2-threshold 999999999 \
                   s3-threshold 999999999 q1-threshold 999999999 q2-threshold 999999999 q3-threshold 999999999";
        let fifo = run(&format!("pfifo limit {limit}p"), &ops);
        for more in ["", "interval measured sampling 1ms"] {
            prop_assert_eq!(&run(&format!("daqm limit {limit}p {far} {more}"), &ops), &fifo);
        }
        // Among the quirks, only `discards` affects packets without a hit.
        let quirks = "literal+interval+whole-ms+behind+tumbling+doubled+wall-clock+shared+flag+absolute";
        prop_assert_eq!(&run(&format!("daqm limit {limit}p {far} published {quirks}"), &ops), &fifo);
    }

    /// A feature that is off is not evaluated: its settings have no effect.
    #[test]
    fn features_that_are_off_do_nothing(ops in schedule()) {
        let plain = run("daqm preset c2 features s1+q2 sampling 2ms", &ops);
        let other = "daqm preset c2 features s1+q2 sampling 2ms s-threshold 0 q-threshold 0p s3-threshold 0 q3-rate 1";
        prop_assert_eq!(run(other, &ops), plain);
    }
}
