//! The test of responsiveness: its results on paths with known delays.

#![allow(clippy::float_cmp, reason = "results that are the same are equal")]

use crate::common::*;
use sojourn_measure::Values;
use sojourn_units::SECOND;

/// Returns a plan of one test, described by `words`, on a line of 20 Mbit/s with a base round-trip
/// time of 40 ms and the queue `queue` in the direction of downloads.
fn line(queue: &str, words: &str) -> Dumbbell {
    Dumbbell::new(1, 20_000_000, 20 * MS, queue)
        .group("test", 1, tcp("cubic"), &format!("responsiveness {words}"))
        .seconds(0, 40)
}

fn found(net: &Dumbbell, name: &str) -> f64 {
    metric(&run(&net.plan, 1).unwrap(), &format!("test.{name}"))
}

/// Connections limited by small windows leave the queues empty, so each round-trip time is the base
/// round-trip time.
#[test]
fn a_path_without_queues_has_sixty_over_its_round_trip_time() {
    for direction in ["download", "upload", "both"] {
        for tls in [0, 1, 2] {
            let words =
                format!("responsiveness direction {direction} initial 2 most 2 tls {tls} once");
            let mut net = Dumbbell::new(1, 1_000_000_000, 20 * MS, "pfifo limit 1000p")
                .group("test", 1, tcp("reno rwnd 64kb"), &words)
                .seconds(0, 30);
            net.plan.groups[0].start_spread = 0;
            let record = run(&net.plan, 1).unwrap();
            let found = |name: &str| metric(&record, &format!("test.{name}"));
            for name in ["foreign", "idle"] {
                let trips = found(&format!("responsiveness_08_{name}"));
                assert!((trips / 1500.0 - 1.0).abs() < 0.01, "{words}: {name} {trips}");
            }
            // A self probe waits for free space in the window, for at most one round trip.
            let (foreign, loaded) = ("responsiveness_08_foreign", "responsiveness_08_loaded");
            assert!((750.0..1505.0).contains(&found(loaded)), "{words}: {}", found(loaded));
            let mean = f64::midpoint(found(foreign), found(loaded));
            assert!((found("responsiveness_08") / mean - 1.0).abs() < 1e-12);
            let added = 60.0 / mean - 60.0 / found("responsiveness_08_idle");
            assert!((found("probe_added") - added).abs() < 1e-12);
            assert_eq!(found("probe_tls").is_nan(), tls == 0);
            assert!((found("responsiveness_08_confidence") - 3.0).abs() < 1e-9);
            // The test ends one idle interval and eleven loaded intervals after its start.
            let Values::Real(ends) = &record.flows.column("end").unwrap().values else { panic!() };
            assert!((ends[0] - 12.0).abs() < 0.1, "{}", ends[0]);
        }
    }
}

/// A buffer of 200 ms that the load fills, compared with queue disciplines that keep the delay low.
#[test]
fn a_full_buffer_costs_a_round_trip_its_time() {
    let idle = found(&line("pfifo limit 1000p", "direction download"), "responsiveness_08_idle");
    assert!((idle / 1490.0 - 1.0).abs() < 0.01, "{idle}");
    let fifo = run(&line("bfifo limit 500kb", "direction download").plan, 1).unwrap();
    let trips = metric(&fifo, "test.responsiveness_08");
    assert!((200.0..400.0).contains(&trips), "{trips}");
    // The added delay of probes is about the sojourn time of packets.
    let (added, wait) = (metric(&fifo, "test.probe_added"), metric(&fifo, "sojourn_p50"));
    assert!((0.1..0.25).contains(&added) && (added / wait - 1.0).abs() < 0.3, "{added} {wait}");
    let fair = run(&line("fq_codel", "direction download").plan, 1).unwrap();
    let foreign = metric(&fair, "test.responsiveness_08_foreign");
    assert!(foreign > 0.9 * idle, "{foreign} {idle}");
    let all = metric(&fair, "test.responsiveness_08");
    assert!(all > 0.8 * idle && all < 1.02 * idle, "{all} {idle}");
}

/// The load saturates only the direction that the test names.
#[test]
fn load_has_the_given_direction() {
    let busy = |direction: &str| {
        let mut net = line("pfifo limit 100p", &format!("direction {direction}"));
        net.plan.links[1].params.queue = queue("pfifo limit 100p");
        let record = run(&net.plan, 1).unwrap();
        // Links 0 and 1: the bottleneck and the opposite direction.
        [0, 1].map(|link| real(&record.queues, "utilisation", link) > 0.8)
    };
    assert_eq!(busy("download"), [true, false]);
    assert_eq!(busy("upload"), [false, true]);
    assert_eq!(busy("both"), [true, true]);
}

/// Intervals before the end of the warm-up do not count, so traffic that ends before it has no
/// effect.
#[test]
fn the_warm_up_is_left_out() {
    let mut net = line("pfifo limit 200p", "direction download most 1 interval 500ms")
        .group("calls", 1, sojourn_plan::Transport::Udp, "cbr rate 25mbit")
        .seconds(12, 40);
    net.plan.groups[1].stop = Some(8 * SECOND);
    let record = run(&net.plan, 1).unwrap();
    let with = metric(&record, "test.responsiveness_08_loaded");
    let alone =
        line("pfifo limit 200p", "direction download most 1 interval 500ms").seconds(12, 40);
    let alone = found(&alone, "responsiveness_08_loaded");
    assert!((with / alone - 1.0).abs() < 0.25, "{with} {alone}");
}

/// The result does not depend on whether the load continues after it.
#[test]
fn the_load_may_go_on_after_the_result() {
    let found = |words: &str, stop: Option<u64>| {
        let mut net = line("fq_codel", &format!("direction download {words}"));
        net.plan.groups[0].stop = stop.map(|at| at * SECOND);
        let record = run(&net.plan, 1).unwrap();
        let Values::Real(ends) = &record.flows.column("end").unwrap().values else { panic!() };
        (metric(&record, "test.responsiveness_08"), metric(&record, "utilisation"), ends[0])
    };
    let (held, once, stopped) = (found("", None), found("once", None), found("", Some(35)));
    assert_eq!((held.0, held.0), (once.0, stopped.0));
    assert!(held.1 > 0.9 && once.1 < 0.7, "{} {}", held.1, once.1);
    assert!(held.2.is_nan() && once.2 < 30.0);
    assert!((stopped.2 - 35.0).abs() < 1e-9, "{}", stopped.2);
}

/// A test that is stopped early has a result of low confidence, or no result.
#[test]
fn a_short_test_has_little_confidence() {
    let stopped = |seconds: u64| {
        let mut net = line("fq_codel", "direction download");
        net.plan.groups[0].stop = Some(seconds * SECOND);
        run(&net.plan, 1).unwrap()
    };
    let none = stopped(2);
    assert!(metric(&none, "test.responsiveness_08").is_nan());
    assert!(metric(&none, "test.responsiveness_08_confidence").is_nan());
    let few = stopped(5);
    assert!(metric(&few, "test.responsiveness_08") > 500.0);
    assert!((metric(&few, "test.responsiveness_08_confidence") - 1.0).abs() < 1e-9);
}

/// Several tests in a group share the path, and the group's result is their mean.
#[test]
fn a_group_has_the_mean_of_its_tests() {
    let mut net = line("fq_codel", "direction download");
    net.plan.groups[0].count = 2;
    let both = found(&net, "responsiveness_08");
    assert!((800.0..1500.0).contains(&both), "{both}");
}

/// On a line that loses all packets, the test receives no answer and has no result.
#[test]
fn a_dead_line_has_no_result() {
    let mut net = line("pfifo limit 100p", "");
    net.plan.links[0].params.impairments.loss =
        sojourn_link::Loss::Random { probability: 1.0, correlation: 0.0 };
    let record = run(&net.plan, 1).unwrap();
    assert!(metric(&record, "test.responsiveness_08").is_nan());
    assert!(metric(&record, "test.responsiveness_08_idle").is_nan());
}
