//! Shared media, and bottlenecks of several links.
#![allow(clippy::float_cmp, reason = "counts are exact")]

use crate::common::*;
use sojourn_link::csma;
use sojourn_plan::{Bottleneck, Link, Medium, Node, Plan, Transport};
use sojourn_sim::Record;
use sojourn_units::{Rate, SECOND};

fn sum(record: &Record, column: &str) -> f64 {
    (0..record.queues.rows()).map(|row| real(&record.queues, column, row)).sum()
}

#[test]
fn a_bus_of_a_millisecond_carries_fewer_than_a_thousand_frames_a_second() {
    // 100 clients offer 10 Mbit/s each.
    let plan = lan(100, 5, MS, "pfifo limit 100p");
    let plan = with_clients(plan, "cbr", Transport::Udp, "cbr rate 10mbit payload 1400");
    let record = run(&plan, 1).unwrap();
    let frames = metric(&record, "cbr.received") / 10.0;
    // Transmission and propagation take 1.005768 ms.
    assert!(frames < 994.3 && frames > 980.0, "{frames} frames/s");
    assert!((metric(&record, "cbr.udp_goodput") / (frames * 1400.0 * 8.0) - 1.0).abs() < 1e-9);
    assert!(metric(&record, "cbr.jain") > 0.98);
    // The medium is nearly always occupied.
    let occupancy = metric(&record, "lan.occupancy");
    assert!(occupancy > 0.98 && occupancy < 1.0, "{occupancy}");
    assert!((metric(&record, "utilisation") - occupancy).abs() < 1e-12);
    assert!((sum(&record, "utilisation") - occupancy).abs() < 1e-9);
    let (attempts, deferrals) = (metric(&record, "lan.attempts"), metric(&record, "lan.deferrals"));
    assert_eq!(attempts - deferrals, metric(&record, "departures"));
    assert!(deferrals > 100.0 * metric(&record, "departures"));
    // Some frames find the medium busy in all of their attempts.
    assert!(metric(&record, "abandoned") > 10.0, "{}", metric(&record, "abandoned"));
    assert_eq!(sum(&record, "abandoned"), metric(&record, "abandoned"));
}

#[test]
fn a_lan_that_is_not_congested_only_delays() {
    let plan =
        with_clients(lan(3, 2, MS, "pfifo limit 100p"), "cbr", Transport::Udp, "cbr rate 100kbit");
    let record = run(&plan, 1).unwrap();
    assert_eq!(metric(&record, "drops") + metric(&record, "abandoned"), 0.0);
    assert_eq!(metric(&record, "cbr.packet_loss"), 0.0);
    assert!((metric(&record, "cbr.delay_p50") - 0.001_006).abs() < 5e-6);
    // Three clients send 8.26 frames per second each, and a frame occupies the medium for 1 ms.
    assert!((metric(&record, "lan.occupancy") - 0.0249).abs() < 0.0005);
}

#[test]
fn littles_law_holds_over_all_queues_together() {
    let plan = lan(10, 2, MS, "pfifo limit 10000p");
    let mut plan =
        with_clients(plan, "poisson", Transport::Udp, "packets interval exp(14ms) size 1000");
    plan.duration = 101 * SECOND;
    let record = run(&plan, 4).unwrap();
    assert!(metric(&record, "queue_mean") > 1.0);
    let rate = metric(&record, "departures") / metric(&record, "measured");
    let expected = rate * metric(&record, "sojourn_mean");
    // Equal except for packets queued at the start and the end of the measured time.
    assert!((metric(&record, "queue_mean") / expected - 1.0).abs() < 1e-2);
}

#[test]
fn tcp_shares_the_bus_with_its_acknowledgments() {
    for queue in ["pfifo limit 200p", "codel", "fq_codel", "pie"] {
        let plan = with_clients(lan(10, 5, MS, queue), "ftp", tcp("reno delack 1"), "bulk");
        let record = run(&plan, 3).unwrap();
        let goodput = metric(&record, "goodput");
        // An acknowledgement occupies the bus nearly as long as a segment. Five servers win the bus
        // less often than ten clients, but later cumulative acknowledgements replace dropped ones.
        assert!(goodput > 4.5e6 && goodput < 8e6, "{queue}: {goodput}");
        assert!(metric(&record, "lan.occupancy") > 0.9, "{queue}");
        assert!(metric(&record, "ftp.jain") > 0.7, "{queue}: {}", metric(&record, "ftp.jain"));
    }
}

#[test]
fn a_station_forwards_to_other_links() {
    let mut plan = lan(2, 2, MS, "pfifo limit 100p");
    plan.nodes.push(Node { name: "isp".into() });
    for (name, from, to) in [("up", 3, 4), ("down", 4, 3)] {
        plan.links.push(Link {
            name: name.into(),
            from,
            to: Some(to),
            medium: None,
            ring: 0,
            host: None,
            host_queue: false,
            offload: None,
            changes: Vec::new(),
            params: line(10_000_000, 5 * MS, "pfifo limit 100p"),
        });
    }
    let mut plan = with_clients(plan, "ftp", tcp("reno"), "transfer size 30kb repeat 3");
    plan.warmup = 0;
    plan.groups[0].pairs = vec![(0, 4), (4, 1)];
    plan.groups[0].count = 2;
    let record = run(&plan, 1).unwrap();
    assert_eq!(metric(&record, "ftp.finished"), 6.0);
    // Each direction crosses the bus once and the line once.
    assert!(metric(&record, "ftp.rtt_p50") > 0.012);
    assert_eq!(metric(&record, "ftp.packet_loss"), 0.0);
    assert!(metric(&record, "up.departures") > 0.0 && metric(&record, "down.departures") > 0.0);
}

#[test]
fn both_directions_of_a_link_may_share_a_medium() {
    let halved = |shared: bool| {
        let mut plan = Dumbbell::new(1, 10_000_000, 0, "pfifo limit 100p")
            .group("east", 1, Transport::Udp, "cbr rate 9mbit")
            .group("west", 1, Transport::Udp, "cbr rate 9mbit")
            .plan;
        let pair = plan.groups[1].pairs[0];
        plan.groups[1].pairs = vec![(pair.1, pair.0)];
        plan.media = vec![Medium { name: "air".into(), access: csma::Params::default() }];
        for link in &mut plan.links[..2] {
            link.medium = shared.then_some(0);
        }
        run(&plan, 1).unwrap()
    };
    let (own, shared) = (halved(false), halved(true));
    assert!((metric(&own, "udp_goodput") / 17.5e6 - 1.0).abs() < 0.01);
    let goodput = metric(&shared, "udp_goodput");
    assert!(goodput < 9.8e6 && goodput > 8.5e6, "{goodput}");
    assert_eq!(metric(&own, "air.occupancy"), 0.0);
    assert!(metric(&shared, "air.occupancy") > 0.95);
    let ways = metric(&shared, "utilisation") + metric(&shared, "back.utilisation");
    assert!((ways - metric(&shared, "air.occupancy")).abs() < 1e-12);
}

#[test]
fn a_ring_hides_packets_from_the_queue() {
    let waits = |ring| {
        let mut plan = lan(10, 10, MS, "pfifo limit 1000p");
        plan.links.iter_mut().for_each(|link| link.ring = ring);
        let record =
            run(&with_clients(plan, "ftp", tcp("reno rwnd 64kb autotune off"), "bulk"), 1).unwrap();
        ["sojourn_mean", "queue_mean", "ftp.rtt_p50", "goodput"].map(|name| metric(&record, name))
    };
    let (without, with) = (waits(0), waits(20));
    // Packets in the ring are not in the queue, so the queue is shorter; the delays are equal.
    assert!(with[0] < 0.9 * without[0] && with[1] < 0.9 * without[1]);
    assert_eq!(with[2..], without[2..]);
}

/// The counts of a bottleneck of several links are the sums over the links.
#[test]
fn a_bottleneck_of_several_links_is_their_sum() {
    let mut net = Dumbbell::new(4, 40_000_000, 10 * MS, "pfifo limit 200p")
        .group("ftp", 8, tcp("cubic"), "bulk")
        .group("cbr", 4, Transport::Udp, "cbr rate 6mbit")
        .seconds(2, 12);
    // The receivers' links are slower than the arriving traffic.
    let ports: Vec<usize> = (0..4).map(|i| 5 + 4 * i).collect();
    for &port in &ports {
        net.plan.links[port].params.rate = Rate::new(5_000_000);
        net.plan.links[port].params.queue = queue("codel limit 60p");
    }
    let names: Vec<_> = ports.iter().map(|&i| net.plan.links[i].name.clone()).collect();
    assert_eq!(names, ["r0.down", "r1.down", "r2.down", "r3.down"]);
    net.plan.observe.bottleneck = Bottleneck { name: "ports".into(), links: ports };
    net.plan.observe.series_interval = SECOND / 10;
    let record = run(&net.plan, 5).unwrap();
    let each = |name: &str| -> Vec<f64> {
        names.iter().map(|link| metric(&record, &format!("{link}.{name}"))).collect()
    };
    let sum = |name: &str| each(name).iter().sum::<f64>();
    for name in ["arrivals", "departures", "drops", "drops_early", "drops_overflow", "loss_events"]
    {
        assert_eq!(metric(&record, name), sum(name), "{name}");
        assert!(sum(name) > 0.0 || name == "drops_overflow", "{name}");
    }
    for name in ["throughput", "arrival_rate", "queue_mean", "backlog_mean"] {
        assert!((metric(&record, name) / sum(name) - 1.0).abs() < 1e-9, "{name}");
    }
    assert!((metric(&record, "utilisation") - sum("utilisation") / 4.0).abs() < 1e-12);
    let used = each("utilisation");
    let squares = used.iter().map(|u| u * u).sum::<f64>();
    let even = metric(&record, "utilisation_jain");
    let total = sum("utilisation");
    assert!((even - total * total / (4.0 * squares)).abs() < 1e-12);
    assert!(even > 0.25 && even < 1.0 + 1e-12, "{even}");
    let weighted: f64 =
        each("sojourn_mean").iter().zip(each("departures")).map(|(mean, n)| mean * n).sum();
    assert!((metric(&record, "sojourn_mean") / (weighted / sum("departures")) - 1.0).abs() < 1e-3);
    let greatest = each("sojourn_max").into_iter().fold(0.0, f64::max);
    assert_eq!(metric(&record, "sojourn_max"), greatest);
    // The sum of the queues is at most the sum of their maxima. Its deviation is less than the sum
    // of the queues' deviations.
    let longest = each("queue_max").into_iter().fold(0.0, f64::max);
    assert!(
        metric(&record, "queue_max") >= longest && metric(&record, "queue_max") <= sum("queue_max")
    );
    assert!(metric(&record, "queue_sd") < sum("queue_sd"));
    let lost = metric(&record, "drops") / (metric(&record, "drops") + sum("departures"));
    assert!((metric(&record, "loss") - lost).abs() < 1e-9);

    // Series and distributions contain the bottleneck under its own name, in addition to its links.
    for row in 0..record.series.rows() {
        for name in ["queue", "backlog", "throughput"] {
            let all = real(&record.series, &format!("ports.{name}"), row);
            let parts: f64 =
                names.iter().map(|l| real(&record.series, &format!("{l}.{name}"), row)).sum();
            assert!((all - parts).abs() < 1e-6, "{name} in row {row}");
        }
        let last = real(&record.series, "ports.last_sojourn", row);
        assert!(
            names.iter().any(|l| real(&record.series, &format!("{l}.last_sojourn"), row) == last)
        );
    }
    let text = format!("{:?}", record.distributions.column("place").unwrap().values);
    assert!(text.contains("\"ports\"") && text.contains("\"r0.down\""));
}

#[test]
fn watching_several_links_changes_nothing() {
    let plan = with_clients(lan(5, 2, MS / 10, "codel"), "ftp", tcp("cubic"), "bulk");
    let mut one = plan.clone();
    one.observe.bottleneck = Bottleneck { name: "client1".into(), links: vec![0] };
    let (all, one) = (run(&plan, 9).unwrap(), run(&one, 9).unwrap());
    assert_eq!(all.trace_hash, one.trace_hash);
    assert_eq!(format!("{:?}", all.queues), format!("{:?}", one.queues));
    assert_eq!(all.trace_hash, run(&plan, 9).unwrap().trace_hash);
    assert_ne!(all.trace_hash, run(&plan, 10).unwrap().trace_hash);
}

#[test]
fn only_the_bottleneck_has_columns_where_links_are_many() {
    let mut plan = with_clients(lan(70, 5, MS, "codel"), "cbr", Transport::Udp, "cbr rate 1mbit");
    plan.duration = 2 * SECOND;
    plan.observe.series_interval = SECOND / 10;
    let columns = |plan: &Plan, of: &str| {
        let record = run(plan, 1).unwrap();
        let has = |name: String| record.series.column(&name).is_some();
        (has(format!("{of}.queue")), has("client9.queue".into()), has("client9.state.count".into()))
    };
    assert_eq!(columns(&plan, "lan"), (true, false, false));
    plan.observe.bottleneck = Bottleneck { name: "some".into(), links: vec![1, 8, 40] };
    assert_eq!(columns(&plan, "some"), (true, true, true));
}
