//! Flows behind a balancer: the choices of servers, their times and their quality.
#![allow(clippy::float_cmp, reason = "counts and shares that are exact")]

use crate::common::{self, MS, app, line, metric, run, tcp};
use sojourn_balance::Params;
use sojourn_link::Loss;
use sojourn_measure::Values;
use sojourn_plan::{
    Balancer, Bottleneck, Change, Fault, Group, Link, Node, Plan, Probes, Server, Transport, Wire,
};
use sojourn_random::{Distribution, Unit};
use sojourn_sim::Record;
use sojourn_units::{Nanos, SECOND};

/// Clients and servers around a switch. The links to the servers have given rates and queues.
struct Star {
    plan: Plan,
    clients: usize,
}

impl Star {
    fn new(clients: usize, rates: &[u64], queue: &str, policy: &str) -> Self {
        let mut plan = common::Dumbbell::new(1, 1_000_000, 0, queue).seconds(0, 20).plan;
        plan.nodes = vec![Node { name: "switch".into() }];
        plan.links.clear();
        let mut host = |name: String, rate: u64, queue: &str| {
            plan.nodes.push(Node { name: name.clone() });
            let node = plan.nodes.len() - 1;
            let access = line(1_000_000_000, 0, "pfifo limit 10000p");
            for (name, from, to, params) in [
                (name.clone(), 0, node, line(rate, 0, queue)),
                (format!("{name}.reverse"), node, 0, access),
            ] {
                plan.links.push(Link {
                    name,
                    from,
                    to: Some(to),
                    medium: None,
                    ring: 0,
                    host: None,
                    host_queue: false,
                    offload: None,
                    params,
                    changes: Vec::new(),
                });
            }
            node
        };
        for i in 0..clients {
            host(format!("client{i}"), 1_000_000_000, "pfifo limit 10000p");
        }
        let nodes: Vec<usize> =
            rates.iter().enumerate().map(|(i, &r)| host(format!("server{i}"), r, queue)).collect();
        let port = |node: usize| 2 * (node - 1);
        plan.observe.bottleneck =
            Bottleneck { name: "servers".into(), links: nodes.iter().map(|&n| port(n)).collect() };
        if nodes.len() == 1 {
            plan.observe.bottleneck.name = "server0".into();
        }
        plan.balancers = vec![Balancer {
            name: "lb".into(),
            policy: Params::parse(policy).unwrap(),
            servers: nodes
                .iter()
                .map(|&node| Server { node, port: port(node), weight: 1, service: None })
                .collect(),
            delay: MS,
            decision: 0,
            probes: Probes::default(),
            faults: Vec::new(),
        }];
        plan.groups.clear();
        Self { plan, clients }
    }

    fn flows(mut self, name: &str, count: u32, transport: Transport, text: &str) -> Self {
        let first = self.plan.balancers[0].servers[0].node;
        let pairs = (1..=self.clients).map(|client| (client, first)).collect();
        self.plan.groups.push(Group {
            balancer: Some(0),
            count,
            start_spread: 100 * MS,
            ..Group::new(name, pairs, transport, app(text))
        });
        self
    }

    /// Spreads the starts of the last group's flows over this time.
    fn over(mut self, spread: Nanos) -> Self {
        self.plan.groups.last_mut().unwrap().start_spread = spread;
        self
    }

    fn service(mut self, text: &str) -> Self {
        let service = Distribution::parse(text, Unit::Time).unwrap();
        for server in &mut self.plan.balancers[0].servers {
            server.service = Some(service);
        }
        self
    }

    /// Adds Web sessions of all clients behind the balancer.
    fn browsing(mut self, count: u32, text: &str) -> Self {
        self = self.flows("web", count, tcp("cubic"), text);
        for pair in &mut self.plan.groups.last_mut().unwrap().pairs {
            *pair = (pair.1, pair.0);
        }
        self
    }

    /// Makes a server unreachable: its links lose all packets, and probes detect the fault.
    fn fault(mut self, server: usize, at: Nanos, until: Option<Nanos>) -> Self {
        let node = self.plan.balancers[0].servers[server].node;
        for link in &mut self.plan.links {
            if link.from == node || link.to == Some(node) {
                let mut wire = |at: Nanos, loss: f64| {
                    let mut impairments = link.params.impairments;
                    impairments.loss = Loss::Random { probability: loss, correlation: 0.0 };
                    let wire = Some(Wire { delay: link.params.delay, impairments });
                    link.changes.push(Change { at, every: 0, rate: None, wire });
                };
                wire(at, 1.0);
                if let Some(at) = until {
                    wire(at, 0.0);
                }
            }
        }
        self.plan.balancers[0].faults.push(Fault { server, at, until });
        self
    }

    fn run(&self, seed: u64) -> Record {
        run(&self.plan, seed).unwrap()
    }
}

/// Returns the number of flows that are assigned to each server at the end.
fn receivers(record: &Record) -> Vec<(String, usize)> {
    let Values::Text(to) = &record.flows.column("to").unwrap().values else { panic!("no texts") };
    let mut names: Vec<String> = to.clone();
    names.sort();
    names.dedup();
    names.into_iter().map(|n| (n.clone(), to.iter().filter(|t| **t == n).count())).collect()
}

#[test]
fn flows_of_packets_have_one_server_each() {
    let star = Star::new(4, &[10_000_000; 2], "pfifo limit 100p", "round-robin").flows(
        "udp",
        8,
        Transport::Udp,
        "cbr rate 1mbit size 1000",
    );
    let record = star.run(1);
    assert_eq!(receivers(&record), [("server0".to_owned(), 4), ("server1".to_owned(), 4)]);
    assert_eq!(metric(&record, "lb.choices"), 8.0);
    assert_eq!(metric(&record, "lb.choices_jain"), 1.0);
    assert_eq!(metric(&record, "lb.choices_repeated"), 0.0);
    for server in ["server0", "server1"] {
        let throughput = metric(&record, &format!("{server}.throughput"));
        assert!((throughput / 4e6 - 1.0).abs() < 0.01, "{server}: {throughput}");
    }
    assert_eq!(metric(&record, "udp.packet_loss"), 0.0);
}

/// The packets after a flow's first packet wait together with it: none is lost, and the first
/// packet waits longest.
#[test]
fn packets_wait_for_the_decision() {
    let mut star = Star::new(1, &[100_000_000], "pfifo limit 1000p", "random").flows(
        "udp",
        1,
        Transport::Udp,
        "cbr rate 8mbit size 1000",
    );
    star.plan.balancers[0].delay = 20 * MS;
    star.plan.balancers[0].decision = 10 * MS;
    let record = star.run(1);
    assert_eq!(metric(&record, "udp.packet_loss"), 0.0);
    let longest = common::real(&record.distributions, "high", {
        let Values::Text(metrics) = &record.distributions.column("metric").unwrap().values else {
            panic!("no texts")
        };
        metrics.iter().rposition(|name| name == "delay").unwrap()
    });
    assert!((0.050..0.0515).contains(&longest), "{longest}");
    let sent = metric(&record, "udp.sent");
    assert!((19_800.0..=20_001.0).contains(&sent), "{sent}");
}

/// With a one-way delay d, a choice takes 2 d without a reading, 4 d with a reading, plus the time
/// of a decision.
#[test]
fn decisions_take_their_time() {
    for (policy, expected) in [("random", 5.0), ("qtm", 5.0), ("iqlb", 9.0), ("jsq", 9.0)] {
        let mut star = Star::new(2, &[10_000_000; 2], "pfifo limit 100p", policy).flows(
            "small",
            20,
            tcp("cubic"),
            "transfer size 1kb",
        );
        star.plan.balancers[0].delay = 2 * MS;
        star.plan.balancers[0].decision = MS;
        let record = star.run(3);
        assert_eq!(metric(&record, "small.finished"), 20.0);
        for name in ["lb.decision_mean", "lb.decision_p50"] {
            let took = metric(&record, name) * 1e3;
            assert!((took / expected - 1.0).abs() < 0.02, "{policy} {name}: {took} ms");
        }
        let least = metric(&record, "small.fct_p50") * 1e3;
        assert!(least > expected && least < expected + 10.0, "{policy}: {least}");
        let age = metric(&record, "lb.age_mean") * 1e3;
        match policy {
            "random" => assert!(age.is_nan()),
            // Read at 2 d, and chosen at 3 d plus the decision's time, unless another flow's
            // reading arrives in between.
            "iqlb" | "jsq" => assert!((2.5..3.0001).contains(&age), "{policy}: {age}"),
            _ => assert!(age > 2.0, "{policy}: {age}"),
        }
    }
}

#[test]
fn nothing_takes_time_that_has_none() {
    let mut star = Star::new(2, &[10_000_000; 2], "pfifo limit 100p", "iqlb").flows(
        "small",
        20,
        tcp("cubic"),
        "transfer size 1kb repeat 5",
    );
    star.plan.balancers[0].delay = 0;
    let record = star.run(3);
    assert_eq!(metric(&record, "lb.decision_mean"), 0.0);
    assert_eq!(metric(&record, "lb.choices"), 100.0);
    assert_eq!(metric(&record, "lb.misplaced"), 0.0, "it sees what the oracle sees");
    assert_eq!(metric(&record, "small.finished"), 100.0);
}

/// With background traffic at one server's port, policies that read queues avoid that server.
#[test]
fn the_loaded_port_is_avoided() {
    let mut shares = vec![];
    for policy in ["random", "iqlb", "queue-delay", "least-bandwidth"] {
        let mut star = Star::new(4, &[10_000_000; 2], "pfifo limit 50p", policy)
            .flows("tcp", 200, tcp("cubic"), "transfer size 30kb")
            .over(18 * SECOND);
        let mut background = star.plan.groups[0].clone();
        let port = star.plan.balancers[0].servers[1].node;
        (background.name, background.balancer) = ("background".into(), None);
        background.pairs = vec![(1, port)];
        (background.count, background.start_spread) = (1, 0);
        (background.transport, background.app) =
            (Transport::Udp, app("cbr rate 9.9mbit size 1000"));
        star.plan.groups.push(background);
        let record = star.run(5);
        shares.push(metric(&record, "lb.misplaced"));
        assert_eq!(metric(&record, "lb.choices"), 200.0);
    }
    assert!(shares[0] > 0.3, "{shares:?}");
    assert!(shares[1..].iter().all(|&share| share < 0.3), "{shares:?}");
}

/// The older the readings of queue lengths, the more flows go to the same server and the longer
/// they wait. The choice between two random servers avoids this herding.
#[test]
fn old_information_herds() {
    let star = |policy: &str| {
        Star::new(8, &[20_000_000; 4], "pfifo limit 1000p", policy)
            .flows("tcp", 4000, tcp("cubic"), "transfer size 35kb")
            .over(19 * SECOND)
            .run(2)
    };
    let policies = ["jsq", "jsq period 100ms", "qtm", "power-of-d memory 0 period 1s", "random"];
    let records = policies.map(star);
    let repeated = records.each_ref().map(|r| metric(r, "lb.choices_repeated"));
    assert!(repeated[0] < 0.55 && repeated[2] > 0.9, "{repeated:?}");
    assert!(repeated[3] < 0.5 && (repeated[4] - 0.25).abs() < 0.03, "{repeated:?}");
    let fct = records.each_ref().map(|r| metric(r, "tcp.fct_p95"));
    assert!(fct[0] < fct[1] && fct[1] < fct[2], "{fct:?}");
    assert!(fct[0] < fct[4] && fct[4] < fct[2] && fct[3] < fct[2], "{fct:?}");
}

/// A random choice gives two M/M/1 queues with half of the load each: the mean time in the system
/// is 1 / (mu - lambda / 2). A policy that counts connections has a lower mean.
#[test]
fn service_times_queue_as_theory_says() {
    let mean = |policy: &str| {
        let mut star = Star::new(50, &[1_000_000_000; 2], "pfifo limit 1000p", policy)
            .flows("jobs", 30_000, tcp("cubic"), "transfer size 100b")
            .over(199 * SECOND)
            .service("exp(8ms)");
        star.plan.duration = 200 * SECOND;
        star.plan.balancers[0].delay = 0;
        let record = star.run(4);
        assert!(metric(&record, "jobs.finished") > 29_900.0);
        metric(&record, "jobs.fct_mean") * 1e3
    };
    let random = mean("random");
    let lambda = 30_000.0 / 199.0 / 2.0;
    let expected = 1e3 / (125.0 - lambda);
    assert!((random / expected - 1.0).abs() < 0.06, "{random} ms for {expected} ms");
    let known = mean("least-connections");
    assert!(known < 0.75 * random, "{known} {random}");
    let idle = mean("jiq");
    assert!(idle < 0.8 * random, "{idle} {random}");
}

#[test]
fn refused_flows_ask_again() {
    for (transport, text) in [
        (tcp("cubic"), "bulk"),
        (tcp("cubic"), "transfer size 10kb"),
        (Transport::Udp, "cbr rate 1mbit size 1000"),
    ] {
        let star =
            Star::new(2, &[10_000_000; 2], "pfifo limit 50p", "iqlb threshold 0 full refuse")
                .flows("flows", 4, transport, text);
        let record = star.run(1);
        assert_eq!(metric(&record, "lb.choices"), 0.0);
        // Four flows make a request once per second.
        let refused = metric(&record, "lb.choices_refused");
        assert!((76.0..=80.0).contains(&refused), "{text}: {refused}");
        assert_eq!(metric(&record, "flows.sent"), 0.0);
    }
}

/// The end of a flow reduces the count of its server's connections.
#[test]
fn ended_flows_are_counted_down() {
    let star = Star::new(3, &[10_000_000, 1_000_000], "pfifo limit 100p", "least-connections")
        .flows("tcp", 3, tcp("cubic"), "transfer size 100kb forever");
    let record = star.run(6);
    // Of three flows, one or two are at the slow server, where each takes ten times as long.
    let (fast, slow) =
        (metric(&record, "server0.throughput"), metric(&record, "server1.throughput"));
    assert!(fast > 5.0 * slow, "{fast} {slow}");
    assert!(slow > 0.8e6, "{slow}");
}

/// Each object of a page is assigned to a server separately, and that server sends the answer.
#[test]
fn web_objects_have_a_server_each() {
    let star = Star::new(4, &[50_000_000; 2], "pfifo limit 100p", "round-robin").browsing(
        8,
        "web pages 20 interpage exp(200ms) objects 3 interobject exp(20ms) size 10 packet 1000",
    );
    let record = star.run(1);
    let objects = metric(&record, "web.objects");
    let choices = metric(&record, "lb.choices");
    assert!(
        objects > 500.0 && choices >= objects && choices < objects + 10.0,
        "{objects} {choices}"
    );
    assert!(metric(&record, "lb.choices_jain") > 0.999);
    assert_eq!(metric(&record, "web.unfinished"), choices - objects);
    // Both directions of a server's line carry packets: requests to it, and answers from it.
    for server in ["server0", "server1"] {
        let (there, back) = (
            metric(&record, &format!("{server}.throughput")),
            metric(&record, &format!("{server}.reverse.throughput")),
        );
        assert!(back > 5.0 * there && there > 0.0, "{server}: {there} {back}");
    }
    // The decision takes 2 d; the lines have no delay.
    let least = metric(&record, "web.fct_p50") * 1e3;
    assert!((2.0..6.0).contains(&least), "{least}");
    let Values::Text(from) = &record.flows.column("from").unwrap().values else {
        panic!("no texts")
    };
    assert!(from.iter().all(|name| name.starts_with("server")), "{from:?}");
    let decided = metric(&record, "lb.decision_p50") * 1e3;
    assert!((decided / 2.0 - 1.0).abs() < 0.02, "{decided}");
}

/// A user requests the same objects with and without a balancer.
#[test]
fn users_behave_alike_with_and_without_a_balancer() {
    let words = "web pages 5 interpage exp(300ms) objects 2 size 4 packet 1000 once";
    let star = Star::new(2, &[50_000_000], "pfifo limit 100p", "random").browsing(4, words);
    let balanced = star.run(7);
    let mut plain = star.plan.clone();
    plain.groups[0].balancer = None;
    plain.balancers.clear();
    let plain = run(&plain, 7).unwrap();
    for name in ["web.objects", "web.pages", "web.bytes"] {
        assert_eq!(metric(&balanced, name), metric(&plain, name), "{name}");
    }
    assert!(metric(&balanced, "web.fct_mean") > metric(&plain, "web.fct_mean") + 0.0019);
}

/// Requests queue at a server that needs time for each. A policy that counts connections shortens
/// the queues.
#[test]
fn web_servers_that_work_have_queues_of_requests() {
    let fct = |policy: &str| {
        let star = Star::new(8, &[1_000_000_000; 2], "pfifo limit 1000p", policy)
            .browsing(60, "web pages 400 interpage exp(1s) objects 1 size 1 packet 1000")
            .service("exp(20ms)");
        let record = star.run(3);
        assert!(metric(&record, "web.objects") > 500.0);
        metric(&record, "web.fct_mean") * 1e3
    };
    let (random, known) = (fct("random"), fct("least-connections"));
    // 30 of the 60 users at each server, each with about one request per second; a server
    // processes 50 requests per second.
    assert!(random > 35.0 && known > 20.0, "{random} {known}");
    assert!(known < 0.9 * random, "{random} {known}");
}

/// Returns the servers of the flows that began between two times in seconds.
fn chosen(record: &Record, from: f64, to: f64) -> Vec<String> {
    let Values::Text(servers) = &record.flows.column("to").unwrap().values else {
        panic!("no texts")
    };
    let begun = |row: &usize| (from..to).contains(&common::real(&record.flows, "start", *row));
    (0..servers.len()).filter(begun).map(|row| servers[row].clone()).collect()
}

/// An unreachable server is assigned flows until probes detect the fault, and none after that. When
/// it is reachable again, it is assigned flows again.
#[test]
fn no_new_flow_goes_to_a_server_that_is_known_to_be_down() {
    for policy in ["random", "round-robin", "maglev", "iqlb", "qtm", "least-connections"] {
        let mut star = Star::new(4, &[20_000_000; 3], "pfifo limit 100p", policy)
            .flows("udp", 400, Transport::Udp, "cbr rate 100kbit size 1000")
            .over(19 * SECOND)
            .fault(1, 5 * SECOND, Some(12 * SECOND));
        star.plan.groups[0].start_spread = 19 * SECOND;
        star.plan.balancers[0].probes = Probes { every: 200 * MS, misses: 3 };
        star.plan.groups[0].stop = None;
        let record = star.run(4);
        let gone = |from, to| chosen(&record, from, to).iter().any(|name| name == "server1");
        assert!(gone(0.0, 5.0) && gone(12.3, 20.0), "{policy}");
        // Detection takes at most four probe periods of 200 ms: up to one period until the first
        // missed probe, and three more. 10 ms are for the decision.
        assert!(!gone(5.0 + 0.8 + 0.01, 12.0 - 0.01), "{policy}");
        let lost = metric(&record, "lb.choices_unreachable");
        assert!(lost < 0.05, "{policy}: {lost}");
        if policy != "qtm" {
            assert!(lost > 0.0, "{policy}: no client knows at once");
        }
    }
}

/// A fault is detected between `misses` and `misses` + 1 periods later, and its end within one
/// period.
#[test]
fn detection_takes_what_is_stated() {
    let star = |until| {
        let mut star = Star::new(1, &[20_000_000; 2], "pfifo limit 100p", "round-robin")
            .flows("udp", 1900, Transport::Udp, "cbr rate 10kbit size 100")
            .fault(0, 4 * SECOND, until);
        (star.plan.groups[0].start_spread, star.plan.groups[0].start_every) = (0, 10 * MS);
        star.plan.balancers[0].probes = Probes { every: SECOND, misses: 2 };
        star
    };
    for seed in 0..5 {
        let record = star(Some(11 * SECOND)).run(seed);
        let last = |from: f64, to: f64| {
            (0..1900usize)
                .map(|i| i as f64 / 100.0)
                .zip(chosen(&record, 0.0, 20.0))
                .filter(|(at, name)| (from..to).contains(at) && name == "server0")
                .map(|(at, _)| at)
                .collect::<Vec<_>>()
        };
        let until = *last(0.0, 11.0).last().unwrap();
        assert!((5.9..7.1).contains(&until), "{until}");
        let again = last(11.0, 20.0)[0];
        assert!((11.0..12.1).contains(&again), "{again}");
        // A fault that ends before its detection has no effect on the choices.
        let short = star(Some(5 * SECOND + 500 * MS)).run(seed);
        let names = chosen(&short, 0.0, 20.0);
        assert_eq!(names.iter().filter(|name| *name == "server0").count(), 950);
    }
}

/// While no server is reachable, flows are refused and repeat their requests until the first server
/// is reachable again. The same holds for Web objects and for transfers whose server became
/// unreachable.
#[test]
fn everybody_goes_and_comes_back() {
    let mut star = Star::new(4, &[20_000_000; 2], "pfifo limit 100p", "jsq")
        .flows("tcp", 40, tcp("cubic"), "transfer size 200kb repeat 5 think exp(1s)")
        .over(5 * SECOND)
        .browsing(4, "web pages 1000 interpage exp(200ms) objects 2 size 4 packet 1000")
        .fault(0, 4 * SECOND, Some(9 * SECOND))
        .fault(1, 4 * SECOND, Some(8 * SECOND));
    star.plan.duration = 60 * SECOND;
    star.plan.balancers[0].probes = Probes { every: 100 * MS, misses: 3 };
    let record = star.run(2);
    assert!(metric(&record, "lb.choices_refused") > 10.0);
    assert_eq!(metric(&record, "tcp.finished"), 200.0);
    assert!(metric(&record, "web.objects") > 500.0);
    // At most one object of each user is unfinished.
    assert!(metric(&record, "web.unfinished") <= 8.0);
}

#[test]
fn the_same_seed_gives_the_same_choices_and_starts_do_not_depend_on_the_policy() {
    let star = |policy: &str| {
        Star::new(4, &[10_000_000; 3], "pfifo limit 100p", policy)
            .flows("tcp", 30, tcp("cubic"), "transfer size 50kb")
            .over(10 * SECOND)
            .run(9)
    };
    let (a, b, c) = (star("random"), star("random"), star("round-robin"));
    assert_eq!(a.trace_hash, b.trace_hash);
    assert_ne!(a.trace_hash, c.trace_hash);
    for row in 0..30 {
        let start = |record: &Record| common::real(&record.flows, "start", row);
        assert_eq!(start(&a), start(&c));
    }
}

#[test]
fn plans_that_do_not_fit_are_refused() {
    let star = || {
        Star::new(2, &[10_000_000; 2], "pfifo limit 100p", "qtm")
            .flows("tcp", 2, tcp("cubic"), "bulk")
            .plan
    };
    let refused = |change: fn(&mut Plan), says: &str| {
        let mut plan = star();
        change(&mut plan);
        let error = plan.validate().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    assert_eq!(star().validate(), Ok(()));
    refused(|plan| plan.groups[0].balancer = Some(3), "groups[0].balancer: there is no balancer 3");
    refused(|plan| plan.balancers[0].servers.clear(), "balancers[0].servers");
    refused(|plan| plan.balancers[0].servers[1].weight = 0, "balancers[0].servers[1].weight");
    refused(|plan| plan.balancers[0].servers[1].port = 99, "there is no link 99");
    refused(
        |plan| plan.balancers[0].name = "server0".into(),
        "`server0` is already the name of a link",
    );
    refused(|plan| plan.groups[0].app = app("web"), "must contain the balancer's first server");
    let says = "groups[0].balancer: `responsiveness` cannot use a balancer";
    refused(|plan| plan.groups[0].app = app("responsiveness"), says);
    refused(|plan| plan.balancers[0].probes.every = 0, "must be 1ms to 60s");
    refused(|plan| plan.balancers[0].probes.misses = 0, "must be 1 to 100");
    let fault = |server, at, until| Fault { server, at, until };
    let faulty = |faults: &[Fault], says: &str| {
        let mut plan = star();
        plan.balancers[0].faults = faults.to_vec();
        let error = plan.validate().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    faulty(&[fault(2, 0, None)], "faults[0].server: there is no server 2");
    faulty(&[fault(0, MS, Some(MS))], "faults[0].until: the end must be after the begin");
    faulty(
        &[fault(0, MS, None), fault(0, 0, Some(2 * MS))],
        "the faults of a server must not overlap",
    );
    refused(|plan| plan.balancers[0].delay = 61 * SECOND, "balancers[0].delay");
    refused(
        |plan| {
            plan.balancers[0].policy = Params::parse("qtm period 10us").unwrap();
            plan.balancers[0].delay = SECOND;
        },
        "readings would be in transit",
    );
    refused(
        |plan| {
            plan.links.remove(6);
            plan.balancers[0].servers[1].port = 0;
        },
        "no links lead from",
    );
}
