//! Small plans for tests, benches and examples.
#![allow(dead_code, missing_docs, clippy::missing_errors_doc)]

use sojourn_link::{Impairments, Params};
use sojourn_measure::{Table, Values};
use sojourn_plan::{Group, Link, Node, Observe, Plan, Transport};
use sojourn_queue::Device;
use sojourn_sim::{Control, Record, RunError};
use sojourn_traffic::App;
use sojourn_units::{Nanos, Rate, SECOND};

pub const MS: Nanos = 1_000_000;

pub fn queue(text: &str) -> sojourn_queue::Params {
    sojourn_queue::Params::parse(text, &Device::default()).unwrap()
}

pub fn line(rate: u64, delay: Nanos, text: &str) -> Params {
    Params {
        rate: Rate::new(rate),
        overhead: 0,
        delay,
        impairments: Impairments::default(),
        queue: queue(text),
    }
}

pub fn tcp(text: &str) -> Transport {
    Transport::Tcp(sojourn_tcp::Params::parse(text).unwrap())
}

pub fn app(text: &str) -> App {
    App::parse(text).unwrap()
}

/// Senders - left router - right router - receivers; the bottleneck leads from left to right.
/// Half of the one-way delay is the bottleneck's, the rest the access links'.
pub struct Dumbbell {
    pub plan: Plan,
    pairs: Vec<(usize, usize)>,
}

impl Dumbbell {
    pub fn new(hosts: usize, rate: u64, one_way: Nanos, text: &str) -> Self {
        let mut plan = Plan {
            duration: 10 * SECOND,
            warmup: 2 * SECOND,
            nodes: Vec::new(),
            links: Vec::new(),
            groups: Vec::new(),
            observe: Observe {
                bottleneck: 0,
                series_interval: 0,
                per_flow_histograms: false,
                monitor: false,
                capture: Vec::new(),
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
            plan.links.push(Link { name, from, to, params });
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
            name: name.into(),
            pairs: self.pairs.clone(),
            count,
            start: 0,
            start_spread: 100 * MS,
            start_every: 0,
            stop: None,
            dscp: 0,
            transport,
            app: app(text),
        });
        self
    }

    pub fn seconds(mut self, warmup: u64, duration: u64) -> Self {
        self.plan.warmup = warmup * SECOND;
        self.plan.duration = duration * SECOND;
        self
    }
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

/// A metric of the summary.
pub fn metric(record: &Record, name: &str) -> f64 {
    real(&record.summary, name, 0)
}
