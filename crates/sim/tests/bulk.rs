//! Bulk TCP on dumbbells.

#![allow(clippy::float_cmp, reason = "counts are exact")]

use crate::common::*;
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
