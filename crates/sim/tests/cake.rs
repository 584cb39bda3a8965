//! CAKE in a network: its shaper before a faster link, isolation of hosts, classes, and the filter
//! of acknowledgements.

use crate::common::*;
use sojourn_plan::{Bottleneck, Plan, Transport};

fn near(found: f64, expected: f64, margin: f64) {
    assert!((found / expected - 1.0).abs() <= margin, "{found}, expected {expected}");
}

/// The output rate is the shaper's rate, with any load.
#[test]
fn the_shaped_rate_is_exact() {
    for (queue, share) in [
        ("cake bandwidth 18mbit", 0.9),
        ("cake bandwidth 18mbit besteffort flowblind", 0.9),
        ("cake bandwidth 15mbit diffserv4 dual-srchost ingress", 0.75),
        // The IP packet of a frame of 1514 bytes has 1500 bytes; with 40 bytes of overhead it takes
        // 33 ATM cells.
        ("cake bandwidth 18mbit besteffort pppoe-llcsnap", 0.9 * 1514.0 / (33.0 * 53.0)),
    ] {
        let plan = Dumbbell::new(2, 20_000_000, 10 * MS, queue)
            .group("ftp", 4, tcp("cubic"), "bulk")
            .seconds(5, 25)
            .plan;
        let record = run(&plan, 1).unwrap();
        // With four flows the queue is sometimes empty for a short time.
        let margin = if queue.contains("ingress") { 0.02 } else { 1e-3 };
        near(metric(&record, "utilisation"), share, margin);
        near(metric(&record, "throughput"), share * 20e6, margin);
    }
}

/// With host isolation, a host with eight flows and a host with one flow get half of the link each.
#[test]
fn hosts_share_equally_with_any_number_of_flows() {
    let shares = |queue: &str| {
        let mut dumbbell = Dumbbell::new(2, 20_000_000, 10 * MS, queue)
            .group("many", 8, tcp("cubic"), "bulk")
            .group("one", 1, tcp("cubic"), "bulk");
        dumbbell.plan.groups[0].pairs.truncate(1);
        dumbbell.plan.groups[1].pairs.remove(0);
        let record = run(&dumbbell.seconds(5, 65).plan, 1).unwrap();
        metric(&record, "one.goodput") / metric(&record, "goodput")
    };
    // The single flow uses slightly less than its share, since its small window consists of whole
    // segments.
    near(shares("cake bandwidth 18mbit"), 0.5, 0.07);
    near(shares("cake bandwidth 18mbit dual-srchost"), 0.5, 0.07);
    near(shares("cake bandwidth 18mbit flows"), 1.0 / 9.0, 0.1);
}

/// A call with the DSCP of expedited forwarding waits for at most one frame.
#[test]
fn a_marked_call_is_not_delayed() {
    let mut dumbbell = Dumbbell::new(2, 20_000_000, 10 * MS, "cake bandwidth 8mbit")
        .group("ftp", 8, tcp("cubic"), "bulk")
        .group("call", 1, Transport::Udp, "voip");
    dumbbell.plan.groups[1].dscp = 46;
    let record = run(&dumbbell.seconds(5, 25).plan, 1).unwrap();
    let excess = metric(&record, "call.delay_p999") - 0.010;
    assert!(excess < 0.0035, "{excess} s beyond propagation");
}

/// Returns a plan of downloads whose acknowledgements use a link with a hundredth of the rate.
fn asymmetric(filter: &str) -> Plan {
    let mut plan = Dumbbell::new(2, 50_000_000, 10 * MS, "pfifo limit 200p")
        .group("ftp", 2, tcp("cubic"), "bulk")
        .seconds(5, 35)
        .plan;
    plan.links[1].params = line(500_000, 5 * MS, &format!("cake bandwidth 450kbit {filter}"));
    plan.observe.bottleneck = Bottleneck { name: plan.links[1].name.clone(), links: vec![1] };
    plan
}

#[test]
fn filtered_acknowledgements_make_room() {
    let without = run(&asymmetric("no-ack-filter"), 1).unwrap();
    assert!(metric(&without, "drops_ack_filter").abs() < f64::EPSILON);
    let filtered = run(&asymmetric("ack-filter"), 1).unwrap();
    let removed = metric(&filtered, "drops_ack_filter");
    assert!(removed > 1000.0, "{removed}");
    let (slow, fast) = (metric(&without, "goodput"), metric(&filtered, "goodput"));
    assert!(fast > 1.2 * slow, "{slow} without, {fast} with the filter");
    assert!(metric(&filtered, "sojourn_p95") < metric(&without, "sojourn_p95"));
}

/// The filter of acknowledgements also works if a transmit ring or the wait for a shared medium
/// holds packets outside the queue.
#[test]
fn a_ring_and_a_medium_leave_the_filter_on() {
    for ring in [0, 1, 2] {
        let mut plan = asymmetric("");
        plan.links[1].params = line(100_000, 5 * MS, "cake unlimited ack-filter-aggressive");
        plan.links[1].ring = ring;
        let record = run(&plan, 1).unwrap();
        let (arrivals, removed) =
            (metric(&record, "arrivals"), metric(&record, "drops_ack_filter"));
        assert!(removed > 0.2 * arrivals, "ring {ring}: {removed} of {arrivals}");
    }
    for filter in ["no-ack-filter", "ack-filter"] {
        let mut plan = lan(4, 1, 0, &format!("cake bandwidth 450kbit {filter}"));
        // The server's station sends the data; the clients' acknowledgements wait in their shapers.
        let server = plan.links.len() - 1;
        plan.links[server].params = line(2_000_000_000, 0, "pfifo limit 200p");
        let mut plan = with_clients(plan, "ftp", tcp("cubic"), "bulk");
        for pair in &mut plan.groups[0].pairs {
            *pair = (pair.1, pair.0);
        }
        let removed = metric(&run(&plan, 1).unwrap(), "drops_ack_filter");
        assert_eq!(removed > 1000.0, filter == "ack-filter", "{filter}: {removed}");
    }
}

/// Two runs of the same plan and seed have equal results.
#[test]
fn it_repeats() {
    let plan = asymmetric("ack-filter-aggressive");
    let [one, other] = [run(&plan, 7).unwrap(), run(&plan, 7).unwrap()];
    assert_eq!(one.trace_hash, other.trace_hash);
}
