//! Runs the plan with a given name once, for counting instructions, and prints packets, events,
//! loss and trace hash. A second argument is the duration in milliseconds; the difference of the
//! counts of two durations excludes the start of the run.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the example measures the simulator"
)]

#[path = "../tests/common/mod.rs"]
mod common;
use common::{Dumbbell, MS, line, metric, run, tcp};
use sojourn_link::{Datagram, Direction, Params, Path};
use sojourn_measure::{Kind, TraceHash};
use sojourn_plan::{Bottleneck, Link, Node, Plan, Transport};

type Make = fn() -> Plan;

/// The plans by name. `bench/counts` checks the instruction counts of six, and of [`path`]; the
/// others show how costs grow.
const PLANS: [(&str, Make); 10] = [
    ("hundred", || bulk(100, 100, 1_000_000_000, 1_000, "pfifo limit 1000p")),
    ("slow", || bulk(64, 64, 10_000_000, 20_000, "pfifo limit 300p")),
    ("many", || bulk(100, 10_000, 1_000_000_000, 1_000, "pfifo limit 20000p")),
    ("fq_codel", || bulk(20, 20, 1_000_000_000, 1_000, "fq_codel")),
    ("datagrams", datagrams),
    ("leaf-spine-128", || leaf_spine(8, 16, 4)),
    ("leaf-spine-1024", || leaf_spine(32, 32, 8)),
    ("steady-100", || steady(100, 50_000)),
    ("steady-20000", || steady(20_000, 500)),
    ("steady-100000", || steady(100_000, 500)),
];

/// Returns a plan of bulk transfers over a bottleneck, for `duration` milliseconds.
fn bulk(hosts: usize, flows: u32, rate: u64, duration: u64, queue: &str) -> Plan {
    lasting(
        duration,
        Dumbbell::new(hosts, rate, 10 * MS, queue).group("ftp", flows, tcp("cubic"), "bulk"),
    )
}

/// Returns a plan of TCP flows with an offered load of 100 kbit/s each, over a bottleneck whose
/// rate is 20 % above the total load.
fn steady(flows: u32, duration: u64) -> Plan {
    let rate = u64::from(flows) * 120_000;
    let dumbbell = Dumbbell::new(100, rate, 10 * MS, "pfifo limit 100000p");
    lasting(
        duration,
        dumbbell.group("writes", flows, tcp("cubic"), "cbr rate 100kbit payload 1000"),
    )
}

fn lasting(milliseconds: u64, dumbbell: Dumbbell) -> Plan {
    let mut plan = dumbbell.plan;
    plan.warmup = 0;
    plan.duration = milliseconds * MS;
    plan
}

fn datagrams() -> Plan {
    Dumbbell::new(1, 1_000_000_000, MS, "pfifo limit 1000p")
        .group("cbr", 1, Transport::Udp, "cbr rate 900mbit")
        .seconds(0, 1)
        .plan
}

/// Returns a plan of a leaf-spine network with hosts at 1 Gbit/s and one bulk transfer from each
/// host to a host of another leaf. All traffic to a leaf crosses one spine, selected by the leaf's
/// number, over a link with a quarter of the total rate of the leaf's hosts.
fn leaf_spine(leaves: usize, hosts: usize, spines: usize) -> Plan {
    const GBIT: u64 = 1_000_000_000;
    let mut plan = lasting(20, Dumbbell::new(1, GBIT, 0, "pfifo limit 1p"));
    let leaf = |l: usize| l;
    let spine = |s: usize| leaves + s;
    let host = |h: usize| leaves + spines + h;
    let count = leaves * hosts;
    plan.nodes = (0..host(count)).map(|n| Node { name: format!("n{n}") }).collect();
    let mut links = Vec::new();
    let mut link = |from: usize, to: usize, rate: u64| {
        links.push(Link {
            name: format!("{from}-{to}"),
            from,
            to: Some(to),
            medium: None,
            ring: 0,
            host: None,
            host_queue: false,
            offload: None,
            params: line(rate, MS / 100, "pfifo limit 200p"),
            changes: Vec::new(),
        });
    };
    for l in 0..leaves {
        link(spine(l % spines), leaf(l), GBIT * hosts as u64 / 4);
        (0..spines).for_each(|s| link(leaf(l), spine(s), GBIT * hosts as u64 / 4));
        for h in l * hosts..(l + 1) * hosts {
            link(host(h), leaf(l), GBIT);
            link(leaf(l), host(h), GBIT);
        }
    }
    let to_hosts = (0..links.len()).filter(|&i| links[i].to >= Some(host(0))).collect();
    plan.observe.bottleneck = Bottleneck { name: "hosts".into(), links: to_hosts };
    plan.links = links;
    let mut group = Dumbbell::new(1, GBIT, 0, "pfifo limit 1p")
        .group("ftp", count as u32, tcp("cubic"), "bulk")
        .plan
        .groups
        .remove(0);
    group.pairs = (0..count).map(|h| (host(h), host((h + 3 * hosts + 5) % count))).collect();
    group.start_spread = MS;
    plan.groups.push(group);
    plan
}

/// Sends a million packets in a second, in pairs, over a FIFO link of 10 Gbit/s, by the interface
/// for other programs.
fn path() {
    let params = Params::parse("10gbit", "delay 1ms", "pfifo limit 1000p").unwrap();
    let mut path = Path::new(&[params], &[], 1);
    let (mut arrived, mut trace) = (0, TraceHash::new());
    for number in 0..1_000_000 {
        let now = number / 2 * 2_000;
        let packet = Datagram { headers: 1_250, ..Datagram::default() };
        path.send(now, Direction::Forward, packet);
        while let Some(arrival) = path.poll(now) {
            trace.add(arrival.at, 0, Kind::Received, arrived, 1_250, 0);
            arrived += 1;
        }
    }
    let stats = path.stats(Direction::Forward);
    let loss = stats.drops().packets as f64 / stats.offered.packets as f64;
    println!("{arrived} packets, {arrived} events, loss {loss:.4}, trace {:032x}", trace.value());
}

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    if name == "path" {
        return path();
    }
    let Some((_, plan)) = PLANS.iter().find(|(known, _)| *known == name) else {
        println!("path");
        for (known, _) in PLANS {
            println!("{known}");
        }
        return;
    };
    let mut plan = plan();
    if let Some(milliseconds) = std::env::args().nth(2) {
        plan.duration = milliseconds.parse::<u64>().expect("a number of milliseconds") * MS;
    }
    let record = run(&plan, 1).expect("the plans are valid");
    println!(
        "{} packets, {} events, loss {:.4}, trace {:032x}",
        metric(&record, "departures"),
        record.events,
        metric(&record, "loss"),
        record.trace_hash
    );
}
