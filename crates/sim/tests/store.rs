//! A replicated store: outcomes and times of requests, effects of faults, and balanced counts.

#![allow(clippy::float_cmp, reason = "counts are whole numbers")]

use crate::common::{MS, line, metric, run};
use proptest::prelude::*;
use sojourn_link::Loss;
use sojourn_plan::store::{
    Arrivals, Fault, Host, Keys, Load, Patience, Percentile, Service, What, Workload,
};
use sojourn_plan::{App, Bottleneck, Link, Node, Observe, Plan, Store};
use sojourn_random::Distribution;
use sojourn_replication::{Level, Placement, Policy};
use sojourn_units::declare::Choices;
use sojourn_units::{Nanos, SECOND};

const CLIENT_DELAY: Nanos = 10 * MS;

/// Returns a plan of store nodes that are all linked to each other, and of one client that is
/// linked to all of them and makes writes.
fn mesh(nodes: usize, delay: Nanos, loss: f64, factor: u32, requests: u64) -> Plan {
    let mut links = Vec::new();
    let mut join = |a: usize, b: usize, delay, loss| {
        for (from, to) in [(a, b), (b, a)] {
            let mut params = line(1_000_000_000, delay, "pfifo limit 1000p");
            if loss > 0.0 {
                params.impairments.loss = Loss::Random { probability: loss, correlation: 0.0 };
            }
            let name = format!("{from}-{to}");
            let changes = Vec::new();
            links.push(Link {
                name,
                from,
                to: Some(to),
                medium: None,
                ring: 0,
                host: None,
                host_queue: false,
                offload: None,
                params,
                changes,
            });
        }
    };
    for a in 0..nodes {
        (a + 1..nodes).for_each(|b| join(a, b, delay, loss));
        join(nodes, a, CLIENT_DELAY, 0.0);
    }
    let host = |node| Host { node, data_centre: 0, rack: 0 };
    let span = |ns: u64| Distribution::constant(ns as f64);
    Plan {
        sources: std::collections::BTreeMap::default(),
        duration: 3600 * SECOND,
        warmup: 0,
        nodes: (0..=nodes).map(|i| Node { name: format!("n{i}") }).collect(),
        media: Vec::new(),
        links,
        groups: Vec::new(),
        balancers: Vec::new(),
        apps: vec![App::Store(Box::new(Store {
            name: "store".into(),
            data_centres: vec!["dc1".into()],
            nodes: (0..nodes).map(host).collect(),
            clients: vec![host(nodes)],
            tokens: 1,
            placement: Placement::Simple { factor },
            write_level: Level::Quorum,
            read_level: Level::Quorum,
            coordinator: Policy::RoundRobin,
            tcp: sojourn_tcp::Params::parse("cubic").unwrap(),
            load: Load {
                start: 0,
                requests: Some(requests),
                warmup: 0,
                outstanding: 1,
                arrivals: Arrivals::Closed { think: 0 },
            },
            workload: Workload {
                read: 0.0,
                update: 0.0,
                insert: 1.0,
                scan: 0.0,
                modify: 0.0,
                records: 0,
                keys: Keys::Uniform,
                value: 200,
                scan_length: 10,
            },
            service: Service {
                coordinate: span(MS),
                write: span(MS / 2),
                read: span(MS / 2),
                threads: 4,
                queue: 1000,
            },
            patience: Patience {
                write: 60 * SECOND,
                read: 60 * SECOND,
                client: 120 * SECOND,
                speculate: None,
                percentile: None,
                read_repair: true,
                hints: false,
                detect: 2 * SECOND,
                recover: SECOND,
            },
            faults: Vec::new(),
        }))],
        observe: Observe {
            bottleneck: Bottleneck { name: "0-1".into(), links: vec![0] },
            series_interval: 0,
            per_flow_histograms: false,
            monitor: false,
            capture: Vec::new(),
            qlog: Vec::new(),
            snaplen: 128,
            trace_hash: true,
        },
    }
}

fn store(plan: &mut Plan) -> &mut Store {
    let App::Store(store) = &mut plan.apps[0];
    store
}

fn mean_ms(plan: &Plan, seed: u64) -> f64 {
    metric(&run(plan, seed).unwrap(), "store.latency_mean") * 1e3
}

#[test]
fn without_loss_a_write_takes_its_ways_and_its_work() {
    // The coordinator is a replica with probability RF/N; then a quorum needs one remote replica
    // less. All nodes have the same distance.
    for (factor, remote) in [(1, 0.8), (2, 1.0), (3, 1.0), (5, 1.0)] {
        let mut plan = mesh(5, 20 * MS, 0.0, factor, 2000);
        store(&mut plan).load.warmup = 100;
        let record = run(&plan, 1).unwrap();
        assert_eq!(metric(&record, "store.acknowledged"), 1900.0);
        let (mean, expected) =
            (metric(&record, "store.latency_mean") * 1e3, 20.0 + 1.5 + 40.0 * remote);
        assert!((mean - expected).abs() < 1.0, "RF{factor}: {mean} ms of {expected}");
    }
}

#[test]
fn a_thousand_writes_are_coordinated_evenly() {
    let record = run(&mesh(5, MS, 0.0, 3, 1000), 7).unwrap();
    for node in 0..5 {
        assert_eq!(metric(&record, &format!("store.n{node}.coordinated")), 200.0);
    }
    let stored: f64 = (0..5).map(|n| metric(&record, &format!("store.n{n}.stored"))).sum();
    assert_eq!((stored, metric(&record, "store.unconverged")), (3000.0, 0.0));
}

#[test]
fn a_run_is_a_function_of_plan_and_seed() {
    let plan = mesh(3, 10 * MS, 0.05, 2, 200);
    let hash = |seed| run(&plan, seed).unwrap().trace_hash;
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn two_replicas_suffer_most_from_loss() {
    let mean = |factor| {
        let plan = mesh(5, 50 * MS, 0.075, factor, 1000);
        (1..=3).map(|seed| mean_ms(&plan, seed)).sum::<f64>() / 3.0
    };
    let (two, three, five) = (mean(2), mean(3), mean(5));
    assert!(two > three + 25.0, "{two} {three}");
    assert!(five < three, "{five} {three}");
}

#[test]
fn a_consistency_level_waits_for_as_many_as_it_says() {
    let mean = |level| {
        let mut plan = mesh(5, 30 * MS, 0.05, 3, 800);
        store(&mut plan).write_level = level;
        mean_ms(&plan, 3)
    };
    let (one, quorum, all) = (mean(Level::One), mean(Level::Quorum), mean(Level::All));
    assert!(one < quorum - 10.0 && quorum < all - 10.0, "{one} {quorum} {all}");
}

fn crash(node: u32, at: u64, until: Option<u64>) -> Fault {
    let until = until.map(|s| s * SECOND);
    Fault { at: at * SECOND, until, what: What::Crash { node } }
}

#[test]
fn a_returning_node_gets_the_missed_writes() {
    let mut plan = mesh(3, 5 * MS, 0.0, 3, 3000);
    let of = store(&mut plan);
    of.patience.hints = true;
    of.patience.write = 2 * SECOND;
    of.patience.client = 4 * SECOND;
    of.faults = vec![crash(1, 10, Some(30))];
    let record = run(&plan, 1).unwrap();
    let of = |name: &str| metric(&record, &format!("store.{name}"));
    assert_eq!(of("pending"), 0.0);
    // Requests that the crashed node should coordinate time out until the crash is detected.
    assert!(of("timed_out") >= 1.0 && of("timed_out") < 10.0, "{}", of("timed_out"));
    assert_eq!(of("acknowledged") + of("timed_out"), 3000.0);
    assert!(of("hints") > 100.0);
    assert_eq!((of("unavailable"), of("unconverged")), (0.0, 0.0));
    // Without hints the replica keeps its old versions.
    store(&mut plan).patience.hints = false;
    assert!(metric(&run(&plan, 1).unwrap(), "store.unconverged") > 100.0);
}

#[test]
fn a_minority_answers_that_it_is_unavailable() {
    let mut plan = mesh(3, 5 * MS, 0.0, 3, 1000);
    let of = store(&mut plan);
    of.patience.write = 2 * SECOND;
    // The client is on the same side of the partition as node 0.
    let what = What::Partition { nodes: vec![0], clients: vec![0] };
    of.faults = vec![Fault { at: 5 * SECOND, until: None, what }];
    plan.duration = 60 * SECOND;
    let record = run(&plan, 1).unwrap();
    let of = |name: &str| metric(&record, &format!("store.{name}"));
    assert!(of("acknowledged") > 50.0 && of("unavailable") > 100.0);
    // With the consistency level ONE, writes still succeed.
    store(&mut plan).write_level = Level::One;
    let one = run(&plan, 1).unwrap();
    assert_eq!(metric(&one, "store.unavailable"), 0.0);
    let acknowledged = metric(&one, "store.acknowledged");
    assert!(acknowledged > 990.0, "{acknowledged}");
}

#[test]
fn an_open_loop_counts_from_the_time_intended() {
    let mut plan = mesh(1, 0, 0.0, 1, 2000);
    let of = store(&mut plan);
    of.write_level = Level::One;
    of.load.arrivals = Arrivals::Open { every: Distribution::constant(10e6) };
    of.load.outstanding = 0;
    of.load.warmup = 10;
    plan.observe.bottleneck = Bottleneck { name: "1-0".into(), links: vec![0] };
    let open = metric(&run(&plan, 1).unwrap(), "store.latency_mean") * 1e3;
    assert!((open - 21.5).abs() < 0.1, "{open}");
    // With one request at a time, each request is 11.5 ms later than due than the one before, and
    // the latency includes this wait.
    store(&mut plan).load.outstanding = 1;
    let queued = metric(&run(&plan, 1).unwrap(), "store.latency_max") * 1e3;
    assert!((queued / (2000.0 * 11.5) - 1.0).abs() < 0.02, "{queued}");
}

#[test]
fn reads_find_and_mend_what_differs() {
    let mut plan = mesh(3, 5 * MS, 0.0, 3, 4000);
    let of = store(&mut plan);
    of.workload = Workload { read: 0.5, update: 0.5, insert: 0.0, records: 50, ..of.workload };
    of.write_level = Level::Two;
    of.patience.write = 2 * SECOND;
    of.faults = vec![crash(2, 20, Some(40))];
    let record = run(&plan, 1).unwrap();
    let of = |name: &str| metric(&record, &format!("store.{name}"));
    assert!(
        of("mismatches") > 10.0 && of("read_repairs") > 5.0,
        "{} {}",
        of("mismatches"),
        of("read_repairs")
    );
    assert_eq!(of("reads.requests") + of("writes.requests"), 4000.0);
    store(&mut plan).patience.read_repair = false;
    let without = run(&plan, 1).unwrap();
    assert_eq!(metric(&without, "store.read_repairs"), 0.0);
    assert!(metric(&without, "store.unconverged") >= metric(&record, "store.unconverged"));
}

#[test]
fn a_read_that_waits_asks_another_replica() {
    let mut plan = mesh(5, 20 * MS, 0.075, 3, 1500);
    let of = store(&mut plan);
    of.workload = Workload { read: 1.0, insert: 0.0, records: 1000, ..of.workload };
    let plain = run(&plan, 1).unwrap();
    store(&mut plan).patience.speculate = Some(60 * MS);
    let quick = run(&plan, 1).unwrap();
    assert_eq!(metric(&plain, "store.speculations"), 0.0);
    assert!(metric(&quick, "store.speculations") > 30.0);
    assert!(metric(&quick, "store.latency_p99") < 0.8 * metric(&plain, "store.latency_p99"));
}

#[test]
fn a_read_that_takes_longer_than_nearly_all_asks_another_replica() {
    let mut plan = mesh(5, 20 * MS, 0.02, 3, 4000);
    let of = store(&mut plan);
    of.workload = Workload { read: 1.0, insert: 0.0, records: 1000, ..of.workload };
    of.patience.read = 5 * SECOND;
    let plain = run(&plan, 1).unwrap();
    let percentile = |share| Some(Percentile { share, least: 0, most: None });
    let mut with = |rule| {
        store(&mut plan).patience.percentile = rule;
        run(&plan, 1).unwrap()
    };
    let (often, seldom) = (with(percentile(0.9)), with(percentile(0.99)));
    // After the first read timeout a tenth or a hundredth of the reads wait as long.
    let asked = |record| metric(record, "store.speculations");
    assert!((150.0..=420.0).contains(&asked(&often)), "{}", asked(&often));
    assert!((10.0..=80.0).contains(&asked(&seldom)), "{}", asked(&seldom));
    assert!(metric(&often, "store.latency_p99") < 0.8 * metric(&plain, "store.latency_p99"));
    let never = with(Some(Percentile { share: 0.5, least: 4 * SECOND, most: None }));
    assert!(asked(&never) <= 1.0);
}

#[test]
fn a_thousand_nodes_work() {
    let (nodes, clients) = (1000, 10);
    let mut plan = mesh(1, 0, 0.0, 1, 3000);
    plan.nodes = (0..=nodes + clients).map(|i| Node { name: format!("n{i}") }).collect();
    let hub = nodes + clients;
    plan.links = (0..hub)
        .flat_map(|host| [(host, hub), (hub, host)])
        .map(|(from, to)| Link {
            name: format!("{from}-{to}"),
            from,
            to: Some(to),
            medium: None,
            ring: 0,
            host: None,
            host_queue: false,
            offload: None,
            params: line(1_000_000_000, 5 * MS, "pfifo limit 1000p"),
            changes: Vec::new(),
        })
        .collect();
    plan.observe.bottleneck = Bottleneck { name: plan.links[0].name.clone(), links: vec![0] };
    let of = store(&mut plan);
    let host = |i: usize| Host { node: i, data_centre: (i % 2) as u32, rack: (i / 2 % 5) as u32 };
    of.data_centres = vec!["a".into(), "b".into()];
    of.nodes = (0..nodes).map(host).collect();
    of.clients = (nodes..hub).map(host).collect();
    of.tokens = 16;
    of.placement = Placement::NetworkTopology { factors: vec![3, 3] };
    of.write_level = Level::EachQuorum;
    of.coordinator = Policy::TokenDcAware;
    let record = run(&plan, 1).unwrap();
    assert_eq!(metric(&record, "store.acknowledged"), 3000.0);
    assert_eq!(metric(&record, "store.unconverged"), 0.0);
    // The coordinator is a replica, the one-way delay is 10 ms, and most messages first open their
    // connections.
    let mean = metric(&record, "store.latency_mean") * 1e3;
    assert!((80.0..102.0).contains(&mean), "{mean}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// With random faults all audits pass, and the outcomes add up to the number of requests.
    #[test]
    fn requests_add_up(
        nodes in 1usize..5,
        factor in 1u32..5,
        level in 0usize..8,
        mix in 0usize..4,
        open: bool,
        hints: bool,
        faults in proptest::collection::vec(
            (0u64..20, 1u64..15, 0u32..5, any::<bool>(), any::<bool>()), 0..4),
        threads in 1u32..3,
        queue in 0u32..4,
        seed in 0u64..1000,
    ) {
        let mut plan = mesh(nodes, 5 * MS, 0.05, factor.min(nodes as u32), 600);
        plan.duration = 40 * SECOND;
        plan.warmup = 2 * SECOND;
        if nodes == 1 {
            plan.observe.bottleneck.name = "1-0".into();
        }
        let of = store(&mut plan);
        of.write_level = Level::ALL[level];
        of.read_level = Level::ALL[(level + 3) % 8];
        let (read, update, insert, scan, modify) =
            [(0.0, 0.0, 1.0, 0.0, 0.0), (0.5, 0.5, 0.0, 0.0, 0.0), (0.2, 0.2, 0.2, 0.2, 0.2),
             (0.5, 0.0, 0.0, 0.0, 0.5)][mix];
        let keys = [Keys::Uniform, Keys::Zipfian, Keys::Latest, Keys::Zipfian][mix];
        of.workload =
            Workload { read, update, insert, scan, modify, records: 20, keys, ..of.workload };
        if open {
            of.load.arrivals = Arrivals::Open { every: Distribution::Exponential { mean: 3e7 } };
            of.load.outstanding = threads;
        }
        of.patience = Patience {
            write: SECOND / 2,
            read: SECOND / 2,
            client: SECOND,
            speculate: hints.then_some(30 * MS),
            hints,
            ..of.patience
        };
        (of.service.threads, of.service.queue) = (threads, queue);
        for (at, length, node, stops, ends) in faults {
            let node = node % nodes as u32;
            let what = if stops {
                What::Crash { node }
            } else {
                What::Partition { nodes: vec![node], clients: Vec::new() }
            };
            let until = ends.then_some((at + length) * SECOND);
            of.faults.push(Fault { at: at * SECOND, until, what });
        }
        prop_assume!(plan.validate().is_ok());
        let record = run(&plan, seed).unwrap();
        let of = |name: &str| metric(&record, &format!("store.{name}"));
        let ended = of("acknowledged") + of("unavailable") + of("errors") + of("timed_out");
        prop_assert_eq!(of("requests"), ended + of("pending"));
    }
}
