//! Small plans for tests, benchmarks and examples.
#![allow(dead_code, missing_docs, clippy::missing_errors_doc)]

use sojourn_link::{Params, csma};
use sojourn_measure::{Table, Values};
use sojourn_plan::{Bottleneck, Group, Link, Medium, Node, Observe, Plan, Transport};
use sojourn_queue::Device;
use sojourn_sim::{Control, Record, RunError};
use sojourn_traffic::App;
use sojourn_units::{Nanos, Rate, SECOND};

pub const MS: Nanos = 1_000_000;

pub fn queue(text: &str) -> sojourn_queue::Params {
    sojourn_queue::Params::parse(text, &Device::default()).unwrap()
}

pub fn line(rate: u64, delay: Nanos, text: &str) -> Params {
    Params { rate: Rate::new(rate), delay, ..Params::parse("", "", text).unwrap() }
}

pub fn tcp(text: &str) -> Transport {
    Transport::Tcp(sojourn_tcp::Params::parse(text).unwrap())
}

pub fn app(text: &str) -> App {
    App::parse(text).unwrap()
}

/// A dumbbell: senders, left router, right router, receivers. The bottleneck leads from the left
/// router to the right one. It has half of the one-way delay, and the access links have the rest.
pub struct Dumbbell {
    pub plan: Plan,
    pairs: Vec<(usize, usize)>,
}

impl Dumbbell {
    pub fn new(hosts: usize, rate: u64, one_way: Nanos, text: &str) -> Self {
        let mut plan = Plan {
            sources: std::collections::BTreeMap::default(),
            duration: 10 * SECOND,
            warmup: 2 * SECOND,
            nodes: Vec::new(),
            media: Vec::new(),
            links: Vec::new(),
            balancers: Vec::new(),
            groups: Vec::new(),
            apps: Vec::new(),
            observe: Observe {
                bottleneck: Bottleneck { name: "bottleneck".into(), links: vec![0] },
                series_interval: 0,
                per_flow_histograms: false,
                monitor: false,
                capture: Vec::new(),
                qlog: Vec::new(),
                snaplen: 128,
                trace_hash: true,
            },
        };
        let mut node = |name: String| {
            plan.nodes.push(Node { name });
            plan.nodes.len() - 1
        };
        let (left, right) = (node("left".into()), node("right".into()));
        let pairs: Vec<_> =
            (0..hosts).map(|i| (node(format!("s{i}")), node(format!("r{i}")))).collect();
        let mut link = |name: String, from, to, params| {
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
        };
        link("bottleneck".into(), left, right, line(rate, one_way / 2, text));
        link("back".into(), right, left, line(rate, one_way / 2, "pfifo limit 10000p"));
        let access = line(10 * rate, one_way / 4, "pfifo limit 10000p");
        for (i, &(s, r)) in pairs.iter().enumerate() {
            link(format!("s{i}.up"), s, left, access.clone());
            link(format!("s{i}.down"), left, s, access.clone());
            link(format!("r{i}.up"), r, right, access.clone());
            link(format!("r{i}.down"), right, r, access.clone());
        }
        Self { plan, pairs }
    }

    pub fn group(mut self, name: &str, count: u32, transport: Transport, text: &str) -> Self {
        self.plan.groups.push(Group {
            count,
            start_spread: 100 * MS,
            ..Group::new(name, self.pairs.clone(), transport, app(text))
        });
        self
    }

    pub fn seconds(mut self, warmup: u64, duration: u64) -> Self {
        self.plan.warmup = warmup * SECOND;
        self.plan.duration = duration * SECOND;
        self
    }
}

/// Returns a plan of stations `client1`, ... and `server1`, ... on a bus of 2 Gbit/s. Each link has
/// the name of its station. Clients have the first numbers; client i sends to server i modulo
/// `servers`.
pub fn lan(clients: usize, servers: usize, delay: u64, text: &str) -> Plan {
    let mut plan = Dumbbell::new(1, 1_000_000, 0, text).seconds(1, 11).plan;
    let names = |kind: &'static str, n| (1..=n).map(move |i| format!("{kind}{i}"));
    let names: Vec<_> = names("client", clients).chain(names("server", servers)).collect();
    plan.nodes = names.iter().map(|name| Node { name: name.clone() }).collect();
    plan.media = vec![Medium { name: "lan".into(), access: csma::Params::default() }];
    plan.links = names
        .into_iter()
        .enumerate()
        .map(|(from, name)| Link {
            name,
            from,
            to: None,
            medium: Some(0),
            ring: 0,
            host: None,
            host_queue: false,
            offload: None,
            changes: Vec::new(),
            params: line(2_000_000_000, delay, text),
        })
        .collect();
    let links = (0..plan.links.len()).collect();
    plan.observe.bottleneck = Bottleneck { name: "lan".into(), links };
    plan
}

/// Adds a group with one flow for each client.
pub fn with_clients(mut plan: Plan, name: &str, transport: Transport, text: &str) -> Plan {
    let clients = plan.nodes.iter().filter(|node| node.name.starts_with("client")).count();
    let servers = plan.nodes.len() - clients;
    let mut net = Dumbbell::new(1, 1_000_000, 0, "pfifo limit 1p").group(name, 1, transport, text);
    let mut group = net.plan.groups.remove(0);
    group.pairs = (0..clients).map(|i| (i, clients + i % servers)).collect();
    group.count = clients as u32;
    plan.groups.push(group);
    plan
}

pub fn run(plan: &Plan, seed: u64) -> Result<Record, RunError> {
    sojourn_sim::run(plan, seed, &mut |_| Control::Continue)
}

pub fn real(table: &Table, name: &str, row: usize) -> f64 {
    match &table.column(name).unwrap_or_else(|| panic!("no column {name}")).values {
        Values::Real(v) => v[row],
        Values::Integer(v) => v[row] as f64,
        _ => panic!("{name} is not a number"),
    }
}

/// Returns a metric of the summary.
pub fn metric(record: &Record, name: &str) -> f64 {
    real(&record.summary, name, 0)
}
