//! Tests of SFB against its paper and Linux.

use crate::common::{self, Bench, Frame, drops};
use sojourn_queue::{Draws, DropReason, Ecn, Return, View};
use sojourn_units::{MILLISECOND as MS, SECOND};

const LEVELS: usize = 8;
const BINS: usize = 16;

fn bin(hash: u32, level: usize) -> usize {
    (hash >> (4 * level)) as usize % BINS
}

fn qlen(bench: &Bench, slot: usize, level: usize) -> Vec<i128> {
    (0..BINS).map(|bin| bench.flow((slot * LEVELS + level) * BINS + bin, "qlen")).collect()
}

fn p_mark(bench: &Bench, slot: usize) -> Vec<i128> {
    (0..LEVELS * BINS).map(|bin| bench.flow(slot * LEVELS * BINS + bin, "p_mark")).collect()
}

fn offer(bench: &mut Bench, flow: u32) -> Return {
    bench.offer(Frame { flow, ..Frame::new(0, 1000) })
}

/// At each level each bin has 1/16 of the flows, and the bins of two levels are independent.
#[test]
fn the_hash_spreads_flows_evenly_under_every_key() {
    let mut dice = common::Dice::new(5);
    for flows in [0..4096u32, 1_000_000..1_004_096] {
        let key = dice.draw_key();
        let hashes: Vec<u32> = flows.map(|flow| dice.keyed_hash(key, flow)).collect();
        let chi = |cells: usize, cell: &dyn Fn(u32) -> usize| {
            let mut counts = vec![0.0; cells];
            for &hash in &hashes {
                counts[cell(hash)] += 1.0;
            }
            let mean = hashes.len() as f64 / cells as f64;
            counts.iter().map(|c| (c - mean) * (c - mean) / mean).sum::<f64>()
        };
        for level in 0..LEVELS {
            // With 15 degrees of freedom, 99.99 % of the values are below 44.
            assert!(chi(BINS, &|hash| bin(hash, level)) < 44.0, "level {level}");
            for other in 0..level {
                let pair = |hash| bin(hash, level) * BINS + bin(hash, other);
                // With 255 degrees of freedom, 99.99 % of the values are below 346.
                assert!(chi(BINS * BINS, &pair) < 346.0, "levels {level}, {other}");
            }
        }
    }
}

/// The bins under two keys are independent: two flows share a bin of a level under one key in 16.
#[test]
fn keys_are_independent() {
    let mut dice = common::Dice::new(6);
    let trials = 8000;
    let shared: usize = (0..trials)
        .map(|_| {
            let key = dice.draw_key();
            let hashes = [1, 2].map(|flow| dice.keyed_hash(key, flow));
            (0..LEVELS).filter(|&level| bin(hashes[0], level) == bin(hashes[1], level)).count()
        })
        .sum();
    let mean = (trials * LEVELS) as f64 / 16.0;
    assert!((shared as f64 - mean).abs() < 4.0 * mean.sqrt(), "{shared}, not {mean}");
}

#[test]
fn each_level_counts_every_packet_queued() {
    let mut bench = Bench::new("sfb limit 60 max 20 target 8");
    for i in 0..3000u32 {
        bench.wait(MS);
        offer(&mut bench, i % 13);
        if i % 50 > 20 {
            bench.take();
        }
        if i % 97 == 0 {
            for level in 0..LEVELS {
                let sum: i128 = qlen(&bench, 0, level).iter().sum();
                assert_eq!(sum, bench.queue.packets() as i128);
            }
        }
    }
    assert!(bench.queue.packets() > 0);
}

/// A responsive flow is in the penalty box if *all* its bins are shared with unresponsive flows.
/// With M unresponsive flows the probability is [1 - (1 - 1/16)^M]^8.
#[test]
fn false_positives_follow_the_formula() {
    for (unresponsive, trials) in [(20, 3000u32), (40, 1500)] {
        let mut wrong = 0;
        for seed in 0..trials {
            let mut bench =
                Bench::new("sfb target 1 max 1000 increment 1 decrement 0 penalty_rate 0");
            bench.dice = common::Dice::new(seed.into());
            // The second packet of each flow arrives at bins with a packet, whose probability
            // becomes 1.
            for flow in 1..=unresponsive {
                offer(&mut bench, flow);
                assert_eq!(offer(&mut bench, flow), Return::Congestion);
            }
            let penalised = bench.counter("penaltydrop");
            offer(&mut bench, 0);
            wrong += u32::from(bench.counter("penaltydrop") > penalised);
        }
        let covered = 1.0 - libm::pow(15.0 / 16.0, f64::from(unresponsive));
        let ideal = libm::pow(covered, LEVELS as f64);
        let found = f64::from(wrong) / f64::from(trials);
        let error = (ideal * (1.0 - ideal) / f64::from(trials)).sqrt();
        assert!((found - ideal).abs() < 4.0 * error, "{found}, the formula gives {ideal}");
    }
}

/// A flow is in the penalty box only if all its bins have probability 1; otherwise its smallest
/// probability applies.
#[test]
fn the_mildest_bin_decides() {
    let mut bench = Bench::new("sfb target 1 max 1000 increment 1 decrement 0 penalty_rate 0");
    for flow in 1..=200 {
        let saturated = p_mark(&bench, 0);
        let draws = bench.dice.calls;
        let (penalised, before) = (bench.counter("penaltydrop"), bench.queue.packets());
        offer(&mut bench, flow);
        let judged = p_mark(&bench, 0);
        if bench.counter("penaltydrop") > penalised {
            continue;
        }
        // The packet was queued: its smallest probability was 0, since one of its bins had been
        // empty.
        assert_eq!((bench.queue.packets(), bench.dice.calls > draws), (before + 1, true));
        assert_eq!(saturated, judged);
        offer(&mut bench, flow);
    }
    assert_eq!(bench.counter("penaltydrop"), 200, "each flow by its second packet at the latest");
    assert_eq!(bench.counter("earlydrop"), 0);
}

#[test]
fn a_bin_moves_by_its_backlog() {
    let mut bench = Bench::new("sfb target 3 max 100 increment 0.1 decrement 0.01");
    let p = |bench: &Bench| p_mark(bench, 0).into_iter().max().expect("bins");
    (0..3).for_each(|_| _ = offer(&mut bench, 1));
    assert_eq!(p(&bench), 0, "the third finds two");
    offer(&mut bench, 1);
    let up = p(&bench);
    assert_eq!(up, 6554);
    while bench.take().is_some() {}
    assert_eq!(p(&bench), up, "it falls by arrivals, not by time");
    bench.wait(3600 * SECOND);
    bench.change("sfb");
    assert_eq!(p(&bench), 0);
    let mut bench = Bench::new("sfb target 1 max 100 increment 0.1 decrement 0.01");
    (0..2).for_each(|_| _ = offer(&mut bench, 1));
    while bench.take().is_some() {}
    offer(&mut bench, 1);
    assert_eq!(p(&bench), 6554 - 655);
    assert_eq!(p_mark(&bench, 0).iter().filter(|p| **p > 0).count(), LEVELS);
}

/// Up to a probability of 1/2 all decisions are marks. Above it some are drops, and at 1 all are
/// drops.
#[test]
fn marks_give_way_to_drops() {
    let shares = |probability: f64| {
        let steps = (probability * 100.0) as usize;
        // The bins have `target` packets, so each arrival raises their probability by one step. The
        // change at the start of each trial resets them.
        let (mut drops, mut marks) = (0, 0);
        let trials = 3000;
        let mut bench = Bench::new("sfb target 1 max 60000 increment 0.01 decrement 0");
        for _ in 0..trials {
            bench.change("sfb target 1 max 60000 increment 0.01 decrement 0");
            bench.kept.dropped.clear();
            bench.offer(Frame { ecn: Ecn::Ect0, ..Frame::new(0, 100) });
            for step in 1..=steps {
                bench.kept.marked.clear();
                bench.kept.dropped.clear();
                bench.offer(Frame { ecn: Ecn::Ect0, ..Frame::new(0, 100) });
                if step == steps {
                    drops += bench.kept.dropped.len();
                    marks += bench.kept.marked.len();
                }
            }
        }
        [drops, marks].map(|n| n as f64 / f64::from(trials))
    };
    for (p, drop) in [(0.2, 0.0), (0.5, 0.0), (0.6, 0.2), (0.9, 0.8)] {
        let [drops, marks] = shares(p);
        // Among draws below p, those below 2 (p - 1/2) cause drops.
        assert!((drops - drop).abs() < 0.04, "at {p}: {drops} dropped, {drop} due");
        let mark = if p > 0.5 { 1.0 - p } else { p };
        assert!((marks - mark).abs() < 0.04, "at {p}: {marks} marked, {mark} due");
    }
}

mod penalty_box {
    use super::*;

    /// Returns a queue in which flow 1 always has probability 1, so that its packets need tokens.
    fn saturated(words: &str) -> Bench {
        let mut bench =
            Bench::new(&format!("sfb target 1 max 60000 increment 1 decrement 0 rehash 0 {words}"));
        offer(&mut bench, 1);
        bench
    }

    fn passes(bench: &mut Bench) -> bool {
        let queued = bench.queue.packets();
        let given = offer(bench, 1);
        assert_eq!(given == Return::Success, bench.queue.packets() > queued);
        given == Return::Success
    }

    #[test]
    fn the_burst_is_exact_and_then_the_rate() {
        let mut bench = saturated("penalty_rate 10 penalty_burst 5");
        assert_eq!((0..20).filter(|_| passes(&mut bench)).count(), 5);
        // A token arrives every 100 ms.
        let mut passed = 0;
        for _ in 0..30 {
            bench.wait(100 * MS);
            passed += usize::from(passes(&mut bench));
        }
        assert_eq!(passed, 30);
        assert_eq!(drops(&bench, DropReason::Forced), 15);
    }

    /// As in the kernel, an attempt without tokens restarts the wait. A flow that sends too often
    /// therefore never gets a token.
    #[test]
    fn impatience_is_punished() {
        let mut bench = saturated("penalty_rate 10 penalty_burst 1");
        assert!(passes(&mut bench));
        let mut passed = 0;
        for _ in 0..400 {
            bench.wait(50 * MS);
            passed += usize::from(passes(&mut bench));
        }
        assert_eq!(passed, 0);
    }

    /// Tokens accumulate for at most ten seconds, and at most up to `penalty_burst`.
    #[test]
    fn tokens_gather_so_long_and_no_longer() {
        for (words, most) in [
            ("penalty_rate 2 penalty_burst 100", 20),
            ("penalty_rate 2 penalty_burst 7", 7),
            ("penalty_rate 0 penalty_burst 7", 0),
            ("penalty_rate 5 penalty_burst 0", 0),
        ] {
            let mut bench = saturated(words);
            while passes(&mut bench) {}
            bench.wait(3600 * SECOND);
            assert_eq!((0..200).filter(|_| passes(&mut bench)).count(), most, "{words}");
        }
    }
}

mod rehash {
    use super::*;

    const WORDS: &str = "sfb target 1 max 60000 increment 1 decrement 0 rehash 1000";

    #[test]
    fn the_other_set_takes_over_after_the_period() {
        let mut bench = Bench::new(&format!("{WORDS} db 0"));
        bench.wait(SECOND);
        offer(&mut bench, 1);
        assert_eq!(bench.state("slot"), 0, "not before the period is over");
        bench.wait(MS);
        offer(&mut bench, 1);
        // The decision about this packet, and its count, are still those of the old set.
        assert_eq!(bench.state("slot"), 1);
        assert_eq!(qlen(&bench, 1, 0).iter().sum::<i128>(), 0);
        offer(&mut bench, 2);
        assert_eq!(qlen(&bench, 1, 0).iter().sum::<i128>(), 1);
        bench.wait(SECOND);
        offer(&mut bench, 3);
        assert_eq!(bench.state("slot"), 1);
        while bench.take().is_some() {}
        assert!(
            (0..2).all(|slot| (0..LEVELS).all(|l| qlen(&bench, slot, l).iter().all(|q| *q == 0)))
        );
    }

    #[test]
    fn without_a_period_the_hash_stays() {
        let mut bench = Bench::new("sfb rehash 0");
        for _ in 0..10 {
            bench.wait(3600 * SECOND);
            offer(&mut bench, 1);
        }
        assert_eq!((bench.state("slot"), bench.state("double_buffering")), (0, 0));
    }

    /// During the warm-up, arrivals of flows in the penalty box also update the next set, so these
    /// flows are in the box after the change too. Without a warm-up they are not in the box at
    /// first.
    #[test]
    fn the_warmup_hands_on_who_is_in_the_box() {
        for (db, known) in [(0, false), (500, true)] {
            let mut bench = Bench::new(&format!("{WORDS} db {db} penalty_rate 1000"));
            (0..3).for_each(|_| _ = offer(&mut bench, 1));
            bench.wait(400 * MS);
            offer(&mut bench, 1);
            assert_eq!(bench.state("double_buffering"), 0);
            bench.wait(300 * MS);
            (0..3).for_each(|_| _ = offer(&mut bench, 1));
            assert_eq!(bench.state("double_buffering"), i128::from(known));
            bench.wait(400 * MS);
            offer(&mut bench, 2);
            assert_eq!((bench.state("slot"), bench.state("double_buffering")), (1, 0));
            let draws = bench.dice.calls;
            offer(&mut bench, 1);
            // A flow in the penalty box needs no draw; any other flow needs a key and a draw.
            assert_eq!(bench.dice.calls == draws, known, "db {db}");
        }
    }
}

#[test]
fn the_limits() {
    let mut bench = Bench::new("sfb limit 5 max 3 target 100");
    let given: Vec<Return> = (0..4).map(|_| offer(&mut bench, 1)).collect();
    assert_eq!(given, [[Return::Success; 3].as_slice(), &[Return::Congestion]].concat());
    assert_eq!((bench.counter("bucketdrop"), drops(&bench, DropReason::Forced)), (1, 1));
    (2..5).for_each(|flow| _ = offer(&mut bench, flow));
    assert_eq!((bench.counter("queuedrop"), drops(&bench, DropReason::Overflow)), (1, 1));
    assert_eq!(bench.queue.packets(), 5);
}

/// One flow sends twice the link's rate, and nine flows send 1/20 of it each. SFB isolates the
/// first flow, and the others lose almost no packets.
#[test]
fn an_unresponsive_flow_is_isolated() {
    let mut bench = Bench::new("sfb increment 0.005 decrement 0.0005");
    let (mut sent, mut lost, mut delivered) = ([0u32; 10], [0u32; 10], [0u32; 10]);
    // The link sends one packet per millisecond.
    for tick in 0..60_000u32 {
        bench.wait(MS);
        let mut flows = vec![0, 0];
        flows.extend((1..10).filter(|flow| (tick + 2 * flow) % 20 == 0));
        for flow in flows {
            let before = bench.kept.dropped.len();
            offer(&mut bench, flow);
            if tick >= 20_000 {
                sent[flow as usize] += 1;
                lost[flow as usize] += (bench.kept.dropped.len() - before) as u32;
            }
        }
        if let Some(frame) = bench.take()
            && tick >= 20_000
        {
            delivered[frame.flow as usize] += 1;
        }
    }
    for flow in 1..10 {
        assert!(lost[flow] * 50 < sent[flow], "flow {flow}: {lost:?} of {sent:?}");
    }
    assert!(lost[0] * 10 > sent[0] * 7, "{lost:?} of {sent:?}, {delivered:?} delivered");
}

#[test]
fn a_change_starts_over() {
    let mut bench = Bench::new("sfb target 1 increment 0.5 rehash 100");
    (0..20).for_each(|flow| _ = offer(&mut bench, flow % 3));
    bench.wait(SECOND);
    (0..20).for_each(|flow| _ = offer(&mut bench, flow % 3));
    let (queued, lost) = (bench.queue.packets(), bench.kept.dropped.len());
    assert!(queued > 0 && bench.state("slot") == 1);
    bench.change("sfb penalty_burst 9");
    assert_eq!((bench.queue.packets(), bench.kept.dropped.len() - lost), (0, queued));
    assert_eq!((bench.state("slot"), bench.state("tokens_avail")), (0, 9));
    assert_eq!(bench.state("rehash_time"), i128::from(bench.now / MS));
    assert!((0..2).all(|slot| p_mark(&bench, slot).iter().all(|p| *p == 0)));
    assert_eq!(bench.counter("drops"), bench.kept.dropped.len() as u64);
}
