//! Wall time of whole runs and of the event queue: the fastest of ten. `bench/counts` measures
//! instruction counts, which do not depend on other processes.
//!
//! `cargo bench -p sojourn-sim --bench speed [-- PART OF A CASE'S NAME]`
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

#[path = "../tests/common/mod.rs"]
mod common;
use common::{Dumbbell, MS, run, tcp};
use sojourn_network::Deadlines;
use sojourn_plan::{Plan, Transport};
use std::hint::black_box;
use std::time::Instant;

/// Returns a plan in which about 165,000 packets cross the bottleneck: 1 Gbit/s for two seconds.
fn dumbbell(flows: u32, queue: &str) -> Plan {
    Dumbbell::new(flows as usize, 1_000_000_000, 10 * MS, queue)
        .group("ftp", flows, tcp("cubic"), "bulk")
        .seconds(0, 2)
        .plan
}

/// Prints the time of a case, unless the command line selects others.
fn measure(name: &str, items: u32, mut work: impl FnMut() -> u64) {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    if words.next().is_some_and(|part| !name.contains(&part)) {
        return;
    }
    let spent = (0..10).map(|_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    });
    let fastest = spent.min().unwrap_or_default();
    let nanos = fastest.as_nanos() as f64 / f64::from(items);
    println!("{name:32} {:9.3} ms, {nanos:7.1} ns an item", fastest.as_secs_f64() * 1e3);
}

fn main() {
    const PACKETS: u32 = 165_000;
    for flows in [1, 10, 100] {
        let plan = dumbbell(flows, "pfifo limit 1000p");
        measure(&format!("tcp dumbbell, flows: {flows}"), PACKETS, || {
            run(&plan, 1).unwrap().events
        });
    }
    for queue in ["pfifo", "codel", "fq_codel", "pie", "fq_pie", "cobalt", "fq_cobalt", "cake"] {
        let plan = dumbbell(20, queue);
        measure(&format!("discipline {queue}"), PACKETS, || run(&plan, 1).unwrap().events);
    }
    let plan = Dumbbell::new(1, 1_000_000_000, MS, "pfifo limit 1000p")
        .group("cbr", 1, Transport::Udp, "cbr rate 900mbit")
        .seconds(0, 2)
        .plan;
    measure("udp through one queue", 148_600, || run(&plan, 1).unwrap().events);
    for n in [10u32, 100, 1_000, 10_000] {
        // Each step moves the earliest deadline to a later time, as for a busy link.
        let mut queue = Deadlines::new(n);
        for id in 0..n {
            queue.set(id, u64::from(id) * 7);
        }
        measure(&format!("deadlines: {n}"), 1_000, || {
            for _ in 0..1_000 {
                let (at, id) = queue.first().unwrap();
                queue.set(id, at + 1 + u64::from(n) * 7 * (1 + u64::from(id % 3)) / 2);
            }
            queue.first().unwrap().0
        });
    }
}
