//! FQ in a network: flows paced by `maxrate` behind a faster link, and shares of a full one.

use crate::common::*;

fn near(found: f64, expected: f64, margin: f64) {
    assert!((found / expected - 1.0).abs() <= margin, "{found}, expected {expected}");
}

/// Three flows of 4 Mbit/s each leave two fifths of the link free.
#[test]
fn maxrate_holds_each_flow_to_its_rate() {
    let plan = Dumbbell::new(3, 20_000_000, 10 * MS, "fq maxrate 4mbit")
        .group("ftp", 3, tcp("cubic"), "bulk")
        .seconds(5, 25)
        .plan;
    let record = run(&plan, 1).unwrap();
    near(metric(&record, "utilisation"), 0.6, 0.01);
    near(metric(&record, "jain"), 1.0, 0.01);
}

/// A flow of CUBIC and one of Reno share a full link evenly.
#[test]
fn flows_share_a_full_link() {
    let plan = Dumbbell::new(2, 20_000_000, 10 * MS, "fq")
        .group("cubic", 1, tcp("cubic"), "bulk")
        .group("reno", 1, tcp("reno"), "bulk")
        .seconds(10, 40)
        .plan;
    let record = run(&plan, 1).unwrap();
    near(metric(&record, "cubic.goodput") / metric(&record, "goodput"), 0.5, 0.05);
}
