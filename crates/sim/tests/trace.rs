//! Links that follow a recorded trace of delivery opportunities, end to end.

#![allow(clippy::float_cmp, reason = "counts are exact")]

use crate::common::*;
use sojourn_link::Trace;
use sojourn_plan::{Bottleneck, Plan, Transport};
use sojourn_units::SECOND;

/// Returns a trace with half a second at 24 Mbit/s, half a second without opportunities, and half a
/// second at 12 Mbit/s.
fn uneven() -> Trace {
    let times: Vec<u32> = (1..1000).map(|i| i / 2).chain(1000..1500).chain([1500]).collect();
    Trace::new(&times, 1500).unwrap()
}

/// Returns a plan with a bottleneck that follows a trace, and with much faster access links.
fn following(words: &str, transport: Transport) -> Plan {
    let mut plan = Dumbbell::new(1, 10_000_000, 20 * MS, "pfifo limit 100p")
        .group("flow", 1, transport, words)
        .seconds(0, 6)
        .plan;
    plan.groups[0].start_spread = 0;
    plan.links[0].params.rate = None;
    plan.links[0].params.trace = Some(uneven());
    plan
}

#[test]
fn a_full_queue_uses_every_opportunity() {
    let mut plan = following("cbr rate 50mbit size 1500", Transport::Udp);
    plan.observe.series_interval = SECOND / 2;
    let record = run(&plan, 1).unwrap();
    // Each repetition of the trace, 1.5 s, has 1500 opportunities for one packet each.
    assert!((metric(&record, "departures") - 4.0 * 1500.0).abs() < 20.0);
    assert!(metric(&record, "utilisation") <= 1.0);
    assert!(metric(&record, "utilisation") > 0.995);
    let series = |column: &str, row| real(&record.series, &format!("bottleneck.{column}"), row);
    for round in 0..4 {
        let row = 3 * round + 1;
        assert!((series("throughput", row) / 24e6 - 1.0).abs() < 0.03);
        assert_eq!(series("throughput", row + 1), 0.0);
        assert!(series("utilisation", row + 1).is_nan());
        assert!((series("throughput", row + 2) / 12e6 - 1.0).abs() < 0.01);
        assert!(series("queue", row + 1) > 90.0);
    }
}

#[test]
fn a_light_load_uses_its_share_and_waits_for_opportunities() {
    let record = run(&following("cbr rate 1mbit size 1500", Transport::Udp), 1).unwrap();
    let mean = 1500.0 * 1500.0 * 8.0 / 1.5;
    assert!((metric(&record, "utilisation") / (1e6 / mean) - 1.0).abs() < 0.01);
    // A packet waits at most for the half second without opportunities.
    assert!(
        (metric(&record, "sojourn_max") - 0.5).abs() < 0.02,
        "{}",
        metric(&record, "sojourn_max")
    );
    assert!(metric(&record, "sojourn_p50") < 0.002);
}

#[test]
fn tcp_runs_over_a_trace() {
    let plan = following("bulk", tcp("cubic"));
    let first = run(&plan, 1).unwrap();
    let again = run(&plan, 1).unwrap();
    assert_eq!(first.trace_hash, again.trace_hash);
    assert!(metric(&first, "utilisation") > 0.5);
    assert!(metric(&first, "goodput") > 6e6, "{}", metric(&first, "goodput"));
}

#[test]
fn taken_together_each_has_its_own_share() {
    let mut plan = following("cbr rate 50mbit size 1500", Transport::Udp);
    plan.observe.bottleneck = Bottleneck { name: "both".into(), links: vec![0, 1] };
    let record = run(&plan, 1).unwrap();
    // The opposite direction is idle, which halves the mean.
    assert!((metric(&record, "utilisation") - 0.5).abs() < 0.005);
}
