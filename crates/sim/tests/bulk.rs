//! Bulk TCP on dumbbells.

#![allow(clippy::float_cmp, reason = "counts are exact")]

use crate::common::*;
use proptest::prelude::*;
use sojourn_units::SECOND;

#[test]
fn one_flow_fills_the_bottleneck() {
    for words in ["reno", "cubic"] {
        let plan = Dumbbell::new(1, 10_000_000, 20 * MS, "pfifo limit 100p")
            .group("ftp", 1, tcp(words), "bulk")
            .seconds(5, 30)
            .plan;
        let record = run(&plan, 1).unwrap();
        assert!(
            metric(&record, "utilisation") > 0.95,
            "{words}: {}",
            metric(&record, "utilisation")
        );
        let goodput = metric(&record, "goodput");
        assert!(goodput > 0.9e7 && goodput < 1e7, "{words}: {goodput}");
        assert!(metric(&record, "retransmissions") > 0.0, "{words}");
        assert!((metric(&record, "ftp.goodput") - goodput).abs() < 1e-9);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]
    /// Delays are on the way back only, so that few packets are between link and host.
    #[test]
    fn goodput_is_at_most_what_the_last_link_carried(
        control in prop::sample::select(vec!["reno", "cubic", "bbr", "reno rwnd 20kb"]),
        queue in prop::sample::select(vec!["pfifo limit 9p", "cake", "fq_codel", "codel ecn"]),
        (hosts, rate, delay) in (1usize..49, 1_000_000u64..9_000_000, MS..60 * MS),
        (warmup, seed) in (1u64..9, any::<u64>()),
    ) {
        let mut net = Dumbbell::new(hosts, rate, 0, queue);
        net.plan.links[1].params.delay = delay;
        let net = net.group("ftp", hosts as u32, tcp(control), "bulk").seconds(warmup, 10);
        let record = run(&net.plan, seed).unwrap();
        let bits = |name| metric(&record, name) * metric(&record, "measured");
        let near = 3.0 * 1514.0 * 8.0;
        prop_assert!(bits("goodput") <= bits("throughput") + near);
        let sum = (0..hosts).map(|i| real(&record.flows, "goodput", i)).sum::<f64>();
        prop_assert!((sum - metric(&record, "goodput")).abs() < 1.0);
    }
}

/// Data that arrived before the end of the warm-up do not count when their hole is filled later.
#[test]
fn many_flows_have_no_goodput_above_the_rate() {
    let plan = Dumbbell::new(96, 2_000_000, 40 * MS, "cake")
        .group("ftp", 96, tcp("reno"), "bulk")
        .seconds(8, 12)
        .plan;
    let record = run(&plan, 1).unwrap();
    let carried = metric(&record, "throughput");
    assert!(metric(&record, "goodput") <= carried, "{}", metric(&record, "goodput"));
    let delivered = metric(&record, "delivered");
    assert!(delivered > 2e6, "{delivered}: the order of arrival was not the point");
}

#[test]
fn flows_share() {
    let plan = Dumbbell::new(10, 100_000_000, 20 * MS, "pfifo limit 300p")
        .group("ftp", 10, tcp("reno"), "bulk")
        .seconds(5, 60)
        .plan;
    let record = run(&plan, 1).unwrap();
    assert!(metric(&record, "utilisation") > 0.95, "{}", metric(&record, "utilisation"));
    assert!(metric(&record, "jain") > 0.85, "{}", metric(&record, "jain"));
    assert_eq!(record.reached, 60 * SECOND);
}
