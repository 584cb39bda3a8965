//! Tests of RED against its papers.

use crate::common::{Bench, Frame, drops};
use sojourn_queue::{DropReason, Ecn, Return, View};
use sojourn_units::{MILLISECOND, Nanos, SECOND};

const MS: Nanos = MILLISECOND;

/// Offers packets while the backlog is held at `packets`, so that the average approaches this
/// backlog; returns the gaps between early drops.
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
    assert_eq!((bench.dice.calls, bench.state("qcount")), (0, -1));
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

/// Without a ramp, as for DCTCP: the kernel allows `max` equal to `min`.
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
    assert_eq!((drops(&bench, DropReason::Early), bench.dice.calls), (0, 0));
}

/// With `wait`, the gap is uniform from 1/p to 2/p, with a mean of 1.5/p.
#[test]
fn waiting_gaps_are_uniform_above_the_least() {
    for averaging in ["burst 20", "weight 0.1"] {
        let text = format!("red limit 100000 min 10000 max 30000 {averaging} probability 0.1 wait");
        let mut bench = Bench::new(&text);
        let gaps = gaps_at(&mut bench, 21, 1000, 60_000);
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((29.0..32.0).contains(&mean), "{averaging}: mean gap {mean}");
        assert!((19..=22).contains(gaps.iter().min().unwrap()), "{:?}", gaps.iter().min());
        assert!((38..=42).contains(gaps.iter().max().unwrap()), "{:?}", gaps.iter().max());
    }
}

/// At a constant average the gap is uniform from 1 to 1/p, with a mean of half of 1/p.
#[test]
fn gaps_are_uniform() {
    // In the middle of the ramp, p is half of 10 %.
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

/// After n arrivals at a backlog of q, an average that was 0 is q (1 - (1 - w)^n).
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
            // The arriving packet does not count: each sample is one packet less than the held
            // backlog.
            let seen = held * 0.99;
            let ideal = seen + (start - seen) * libm::pow(1.0 - weight, f64::from(n));
            let found = bench.state("qavg") as f64 / f64::from(1 << bits);
            assert!((found - ideal).abs() < 0.001 * held, "{text}: {found}, ideal {ideal}");
        }
    }
}

/// While the link is idle, the average decays as if packets arrived at an empty queue.
#[test]
fn a_weight_decays_while_idle() {
    let mut bench = Bench::new("red limit 1mb min 400000 max 500000 weight 0.01 bandwidth 8mbit");
    (0..300).for_each(|_| _ = bench.arrive(1000));
    while bench.take().is_some() {}
    let before = bench.state("qavg") as f64;
    // The transmission of 1000 bytes takes 1 ms.
    bench.wait(50 * MS);
    bench.arrive(1000);
    let ratio = bench.state("qavg") as f64 / before;
    assert!((ratio - libm::pow(0.99, 50.0)).abs() < 1e-4, "{ratio}");
}

#[test]
fn gentle_is_continuous_and_ends_where_it_should() {
    for (ramp, end) in [("gentle", 60), ("gentle-limit", 100)] {
        let text =
            format!("red limit 100 min 10 max 30 unit packets weight 0.5 probability 0.2 {ramp}");
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
    bench.wait(SECOND + 16 * MS); // each of the two timers is up to 8 ms late
    let raised = bench.state("max_P");
    // The probability rises twice by a quarter, since a quarter is less than 1 %.
    assert_eq!(raised, start + start / 4 + (start + start / 4) / 4);
    while bench.take().is_some() {}
    bench.wait(3600 * SECOND);
    assert!(bench.state("max_P") < start);
    assert!(bench.state("max_P") >= 42_949_673 / 10 * 9, "not below 0.9 %");
}

/// At the edges of the target band the probability does not change.
#[test]
fn adaptive_rests_in_its_band() {
    // The difference of max and min is 20 packets: the band is 18 to 22 packets, and with weight 1
    // the average is the backlog.
    let moved = |backlog: usize| {
        let mut bench = Bench::new("red limit 200 min 10 max 30 unit packets weight 1 adaptive");
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
        bench.wait(508 * MS);
        (bench.state("max_P") - before).signum()
    };
    assert_eq!([17, 18, 22, 23].map(moved), [-1, 0, 0, 1]);
}

/// With Linux's arithmetic too, an adapted probability changes the divisor of later draws.
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
        let text = format!("red limit 40000 min 5000 max 10000 burst 7 probability 0.5 {flags}");
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
