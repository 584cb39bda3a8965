//! Many flows, many connections.
#![allow(clippy::float_cmp, reason = "counts are exact")]

use crate::common::*;

#[test]
fn time_must_go_on() {
    let mut plan = Dumbbell::new(1, 1_000_000, 0, "pfifo limit 100p")
        .group("ftp", 1, tcp("reno"), "bulk")
        .plan;
    for link in &mut plan.links {
        link.params.rate = None;
    }
    let error = run(&plan, 1).unwrap_err();
    assert!(error.to_string().starts_with("stopped at 0.0"), "{error}");
}

#[test]
fn ten_thousand_flows() {
    let mut plan = Dumbbell::new(100, 1_000_000_000, 20 * MS, "pfifo limit 20000p")
        .group("ftp", 10_000, tcp("cubic"), "bulk")
        .seconds(1, 3)
        .plan;
    plan.groups[0].start_spread = 1000 * MS;
    let record = run(&plan, 1).unwrap();
    assert_eq!(record.flows.rows(), 10_000);
    assert!(metric(&record, "utilisation") > 0.95);
    assert_eq!(metric(&record, "ftp.active_mean"), 10_000.0);
}

#[test]
fn a_thousand_sessions_reuse_their_slots() {
    let words = "web pages 10 interpage exp(1s) objects 2 interobject exp(50ms) size 10";
    let plan = Dumbbell::new(10, 200_000_000, 20 * MS, "pfifo limit 1000p")
        .group("web", 1000, tcp("reno profile linux-6"), words)
        .seconds(5, 30)
        .plan;
    let record = run(&plan, 1).unwrap();
    let objects = metric(&record, "web.objects");
    assert!(objects > 20_000.0, "{objects}");
    assert!(metric(&record, "web.active_mean") < 1000.0);
}
