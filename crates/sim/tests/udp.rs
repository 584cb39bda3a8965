//! UDP over links, end to end.

#![allow(clippy::float_cmp, reason = "counts are exact")]

use crate::common::*;
use sojourn_plan::Transport;

#[test]
fn cbr_gets_through_an_idle_network() {
    let plan = Dumbbell::new(1, 10_000_000, 40 * MS, "pfifo limit 100p")
        .group("cbr", 1, Transport::Udp, "cbr rate 1mbit size 573")
        .plan;
    let record = run(&plan, 1).unwrap();
    assert!(record.complete);
    let payload = 1e6 * (573.0 - 42.0) / 573.0;
    assert!((metric(&record, "udp_goodput") / payload - 1.0).abs() < 1e-3);
    assert_eq!(metric(&record, "udp_loss"), 0.0);
    // Transmission at two access links of 100 Mbit/s and one link of 10 Mbit/s, and propagation.
    let expected = 0.04 + 573.0 * 8.0 * (2.0 / 100e6 + 1.0 / 10e6);
    assert!((metric(&record, "cbr.delay_p50") / expected - 1.0).abs() < 0.005);
    assert!((metric(&record, "utilisation") - 0.1).abs() < 1e-3);
    assert!(metric(&record, "sojourn_mean") < 1e-9);
    assert_eq!(record.flows.rows(), 1);
    assert_eq!(record.queues.rows(), plan.links.len());
}

#[test]
fn copies_are_no_goodput() {
    let mut plan = Dumbbell::new(1, 10_000_000, 40 * MS, "pfifo limit 100p")
        .group("cbr", 1, Transport::Udp, "cbr rate 1mbit size 573")
        .plan;
    let plain = run(&plan, 1).unwrap();
    plan.links[0].params.set_netem("delay 40ms 30ms duplicate 50%").unwrap();
    let twice = run(&plan, 1).unwrap();
    assert!(metric(&twice, "cbr.received") > 1.4 * metric(&twice, "cbr.sent"));
    let share = metric(&twice, "udp_goodput") / metric(&plain, "udp_goodput");
    assert!((share - 1.0).abs() < 0.01, "{share}");
}

/// A packet is lost if no copy of it arrives; lost copies alone do not count.
#[test]
fn lost_copies_are_no_lost_packets() {
    let plain = Dumbbell::new(1, 10_000_000, 40 * MS, "pfifo limit 100p")
        .group("cbr", 1, Transport::Udp, "cbr rate 1mbit size 573")
        .seconds(0, 60)
        .plan;
    let sent = metric(&run(&plain, 1).unwrap(), "udp_goodput");
    for (first, second) in [
        ("duplicate 100% loss 30%", ""),
        ("duplicate 100% loss 100%", ""),
        ("duplicate 40% loss 60%", ""),
        ("duplicate 100%", "loss 50%"),
        ("duplicate 50%", "corrupt 40%"),
        ("duplicate 100%", "duplicate 100% loss 70%"),
        ("loss 20%", "corrupt 10%"),
    ] {
        let mut plan = plain.clone();
        plan.links[0].params.set_netem(first).unwrap();
        let line = plan.links.iter().position(|link| Some(link.from) == plain.links[0].to).unwrap();
        plan.links[line].params.set_netem(second).unwrap();
        let record = run(&plan, 1).unwrap();
        let missing = 1.0 - metric(&record, "udp_goodput") / sent;
        let loss = metric(&record, "cbr.packet_loss");
        assert!((loss - missing).abs() < 0.01, "{first}, {second}: {loss} for {missing}");
    }
}

#[test]
fn a_link_is_never_busier_than_all_the_time() {
    // A transmission takes 1.2 s, so those at the start and the end of the measured time are partly
    // outside.
    let plan = Dumbbell::new(1, 10_000, 0, "pfifo limit 10p")
        .group("cbr", 1, Transport::Udp, "cbr rate 100kbit")
        .plan;
    let record = run(&plan, 1).unwrap();
    assert_eq!(metric(&record, "utilisation"), 1.0);
}

#[test]
fn overload_is_dropped() {
    let plan = Dumbbell::new(2, 10_000_000, 40 * MS, "pfifo limit 50p")
        .group("cbr", 2, Transport::Udp, "cbr rate 10mbit")
        .plan;
    let record = run(&plan, 1).unwrap();
    assert!((metric(&record, "udp_loss") - 0.5).abs() < 0.01);
    assert!((metric(&record, "utilisation") - 1.0).abs() < 1e-3);
    assert!((metric(&record, "queue_max") - 50.0).abs() < 1e-9);
    assert!((metric(&record, "sojourn_mean") / (50.0 * 1514.0 * 8.0 / 10e6) - 1.0).abs() < 0.05);
    assert!(metric(&record, "consecutive_loss_mean") >= 1.0);
}
