//! L4S end to end: Prague with other congestion controls over `dualpi2`, `pi2` and other queues.

use crate::common::*;
use sojourn_plan::Transport;
use sojourn_sim::Record;

/// Runs bulk flows, in groups named after their congestion control, over a bottleneck of `mbit`
/// Mbit/s with a base round-trip time of `rtt` ms.
fn bulk(queue: &str, mbit: u64, rtt: u64, groups: &[(&str, u32)], seed: u64) -> Record {
    let mut net = Dumbbell::new(1, mbit * 1_000_000, rtt * MS / 2, queue);
    for (words, count) in groups {
        let name = words.split(' ').next().unwrap();
        net = net.group(name, *count, tcp(words), "bulk");
    }
    run(&net.seconds(15, 45).plan, seed).unwrap()
}

/// Returns the milliseconds in the bottleneck's queue, computed from a group's one-way delay.
fn queueing(record: &Record, name: &str, mbit: u64, rtt: u64) -> f64 {
    // Transmission of a full frame at the bottleneck and at two links with ten times its rate.
    let frame = 1514.0 * 8.0 / (mbit as f64 * 1e6) * 1.2;
    (metric(record, name) - frame) * 1e3 - rtt as f64 / 2.0
}

/// A Prague flow and a CUBIC flow differ in goodput by at most a factor of two. The classic queue
/// has its target delay, the L4S queue the delay of its step threshold.
#[test]
fn prague_and_cubic_share_evenly() {
    for (mbit, rtt, prague, cubic) in
        [(40, 10, 1, 1), (40, 20, 1, 1), (100, 20, 2, 2), (40, 20, 1, 5), (40, 20, 5, 1)]
    {
        let groups = [("prague", prague), ("cubic", cubic)];
        let (mut ratio, mut c, mut l) = (0.0, 0.0, 0.0f64);
        for seed in 1..=3 {
            let record = bulk("dualpi2", mbit, rtt, &groups, seed);
            let rate = |name: &str, n: u32| metric(&record, name) / f64::from(n);
            ratio += rate("prague.goodput", prague) / rate("cubic.goodput", cubic) / 3.0;
            c += queueing(&record, "cubic.delay_mean", mbit, rtt) / 3.0;
            l = l.max(queueing(&record, "prague.delay_p99", mbit, rtt));
            assert!(metric(&record, "utilisation") > 0.99);
            assert!(metric(&record, "prague.retransmissions") < 0.5, "L4S is not dropped");
        }
        let case = format!("{mbit} Mbit/s, {rtt} ms, {prague}:{cubic}");
        println!("{case}: ratio {ratio:.2}, C {c:.2} ms, L p99 {l:.2} ms");
        assert!((0.5..=2.0).contains(&ratio), "{case}: {ratio}");
        assert!((c - 15.0).abs() < 1.5, "{case}: {c} ms");
        assert!(l < 1.5, "{case}: {l} ms");
    }
}

/// L4S flows alone use the whole link with about one millisecond in the queue, for all round-trip
/// times.
#[test]
fn l4s_waits_about_a_millisecond() {
    for (mbit, rtt, count) in [(40, 2, 1), (40, 20, 1), (200, 20, 4), (40, 80, 4)] {
        let record = bulk("dualpi2", mbit, rtt, &[("prague", count)], 1);
        let [mean, p99] = ["sojourn_mean", "sojourn_p99"].map(|name| metric(&record, name) * 1e3);
        println!("{mbit} Mbit/s, {rtt} ms, {count} flows: mean {mean:.2} ms, p99 {p99:.2} ms");
        assert!(mean < 1.0 && (0.9..2.2).contains(&p99), "{mean} {p99}");
        assert!(metric(&record, "utilisation") > 0.97);
        assert!(metric(&record, "drops") < 0.5 && metric(&record, "marks") > 100.0);
        let classic = bulk("dualpi2", mbit, rtt, &[("cubic", count)], 1);
        assert!(metric(&classic, "sojourn_p99") * 1e3 > 5.0 * p99);
    }
}

/// `pi2` holds its target with the same gains from a few flows up to loss rates of a fifth.
#[test]
fn pi2_holds_its_target_over_numbers_of_flows() {
    for words in ["reno", "cubic"] {
        for count in [5, 20, 100] {
            let record = bulk("pi2", 40, 20, &[(words, count)], 1);
            let mean = metric(&record, "sojourn_mean") * 1e3;
            println!("{count} {words}: {mean:.2} ms, loss {:.3}", metric(&record, "loss"));
            assert!((mean - 20.0).abs() < 0.5, "{count} {words}: {mean} ms");
            assert!(metric(&record, "utilisation") > 0.99);
        }
    }
}

/// In a single queue, L4S and classic flows also share evenly if classic packets are marked with
/// the square of the L4S probability, but not if both are marked with the same probability.
#[test]
fn one_queue_can_keep_the_kinds_even() {
    let ratio = |queue: &str| {
        let record = bulk(queue, 40, 20, &[("prague", 1), ("cubic ecn classic", 1)], 1);
        metric(&record, "prague.goodput") / metric(&record, "cubic.goodput")
    };
    let (pi2, pie) = (ratio("pi2 ecn"), ratio("pie ecn"));
    println!("pi2 {pi2:.2}, pie {pie:.2}");
    assert!((0.5..=2.0).contains(&pi2), "{pi2}");
    assert!(pie > 4.0, "{pie}");
}

/// In a single queue that marks both alike, Prague gets at most twice the goodput of CUBIC with its
/// detection of classic queues, and much more without.
#[test]
fn a_classic_queue_is_detected_and_shared() {
    for queue in ["codel ecn", "pie ecn"] {
        let ratio = |prague: &str| {
            let ratio = |seed| {
                let record = bulk(queue, 40, 20, &[(prague, 1), ("cubic ecn classic", 1)], seed);
                metric(&record, "prague.goodput") / metric(&record, "cubic.goodput")
            };
            (1..=3).map(ratio).sum::<f64>() / 3.0
        };
        let (off, on) = (ratio("prague"), ratio("prague classic_fallback"));
        println!("{queue}: {off:.2} without, {on:.2} with");
        assert!(off > 4.0, "{queue}: {off}");
        assert!((0.5..=2.0).contains(&on), "{queue}: {on}");
    }
}

/// The detection never takes an L4S queue for a classic one: the packets are the same without it.
#[test]
fn an_l4s_queue_is_not_taken_for_a_classic_one() {
    let step = "fq_codel ce_threshold 1ms ce_threshold_selector 0x01/0x01";
    for (queue, rtt) in [("dualpi2", 10), ("dualpi2", 20), ("dualpi2", 80), (step, 20)] {
        let hash = |prague: &str| {
            let record = bulk(queue, 40, rtt, &[(prague, 1), ("cubic", 1)], 1);
            assert!(metric(&record, "marks") > 100.0);
            record.trace_hash
        };
        assert_eq!(hash("prague"), hash("prague classic_fallback"), "{queue}, {rtt} ms");
    }
}

/// With unresponsive traffic in the classic queue, that queue still has its target delay, and the
/// L4S queue is still short.
#[test]
fn a_flood_of_classic_packets_does_not_lengthen_the_queues() {
    for (flood, loss) in [(60, 1.0 - 40.0 / 60.0), (100, 0.6)] {
        let net = Dumbbell::new(1, 40_000_000, 10 * MS, "dualpi2")
            .group("prague", 2, tcp("prague"), "bulk")
            .group("cbr", 1, Transport::Udp, &format!("cbr rate {flood}mbit"));
        let record = run(&net.seconds(20, 60).plan, 1).unwrap();
        let c = queueing(&record, "cbr.delay_mean", 40, 20);
        let l = queueing(&record, "prague.delay_p99", 40, 20);
        println!("{flood} Mbit/s: C {c:.2} ms, L p99 {l:.2} ms");
        assert!((c - 15.0).abs() < 1.0 && l < 1.5, "{c} {l}");
        assert!((metric(&record, "udp_loss") - loss).abs() < 0.02);
        assert!(metric(&record, "utilisation") > 0.99);
    }
}

/// Accurate ECN's counters report the same marks as DCTCP's echo: Prague's share with CUBIC
/// differs little, and CUBIC responds to marks as in RFC 3168.
#[test]
fn counters_of_marks_give_what_the_echo_gives() {
    let shares = |echo: &str| {
        let (mut prague, mut cubic) = (0.0, 0.0);
        for seed in 1..=3 {
            let groups = [
                (&*format!("prague ecn {}", if echo == "classic" { "l4s" } else { echo }), 1),
                (&*format!("cubic ecn {echo}"), 1),
            ];
            let record = bulk("dualpi2", 40, 20, &groups, seed);
            prague += metric(&record, "prague.goodput") / 3.0;
            cubic += metric(&record, "cubic.goodput") / 3.0;
        }
        (prague, cubic)
    };
    let (echo, counted) = (shares("classic"), shares("accecn"));
    for (a, b) in [(echo.0, counted.0), (echo.1, counted.1)] {
        assert!((b / a - 1.0).abs() < 0.15, "{echo:?} {counted:?}");
    }
}

/// Without ECN, Prague sends the same segments as Reno. Over a queue that does not mark, Prague has
/// losses.
#[test]
fn without_marks_prague_is_classic() {
    let hash = |words: &str| {
        let net = Dumbbell::new(1, 40_000_000, 10 * MS, "pfifo limit 60p");
        run(&net.group("ftp", 2, tcp(words), "bulk").plan, 1).unwrap().trace_hash
    };
    assert_eq!(hash("prague ecn off"), hash("reno"));
    assert_eq!(hash("prague ecn classic"), hash("reno ecn classic"));
    assert_ne!(hash("prague"), hash("reno"));
    let record = bulk("pfifo limit 60p", 40, 20, &[("prague", 2)], 1);
    assert!(metric(&record, "utilisation") > 0.95 && metric(&record, "jain") > 0.9);
    assert!(metric(&record, "prague.recoveries") > 2.0 && metric(&record, "marks") < 0.5);
}

/// DCTCP's packets enter the L4S queue with ECT(1), and the classic queue with ECT(0).
#[test]
fn dctcp_goes_where_its_codepoint_says() {
    let p99 = |words: &str| {
        let record = bulk("dualpi2", 40, 20, &[(words, 1)], 1);
        metric(&record, "sojourn_p99") * 1e3
    };
    let (l4s, classic) = (p99("dctcp ecn l4s"), p99("dctcp"));
    println!("L {l4s:.2} ms, C {classic:.2} ms");
    assert!(l4s < 1.5 && classic > 10.0, "{l4s} {classic}");
}
