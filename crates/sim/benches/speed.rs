//! Wall time of whole runs and of the event queue. `bench/counts` measures instruction counts,
//! which do not depend on other processes.

#[path = "../tests/common/mod.rs"]
mod common;
use common::{Dumbbell, MS, run, tcp};
use divan::counter::ItemsCount;
use sojourn_network::Deadlines;
use sojourn_plan::{Plan, Transport};

fn main() {
    divan::main();
}

/// Returns a plan in which about 165,000 packets cross the bottleneck: 1 Gbit/s for two seconds.
fn dumbbell(flows: u32, queue: &str) -> Plan {
    Dumbbell::new(flows as usize, 1_000_000_000, 10 * MS, queue)
        .group("ftp", flows, tcp("cubic"), "bulk")
        .seconds(0, 2)
        .plan
}

#[divan::bench(args = [1, 10, 100], sample_count = 10)]
fn tcp_dumbbell(bencher: divan::Bencher, flows: u32) {
    let plan = dumbbell(flows, "pfifo limit 1000p");
    bencher.counter(ItemsCount::new(165_000u32)).bench_local(|| run(&plan, 1).unwrap().events);
}

#[divan::bench(
    args = ["pfifo limit 1000p", "codel", "fq_codel", "pie", "fq_pie", "cobalt", "fq_cobalt", "cake"],
    sample_count = 10
)]
fn disciplines(bencher: divan::Bencher, queue: &str) {
    let plan = dumbbell(20, queue);
    bencher.counter(ItemsCount::new(165_000u32)).bench_local(|| run(&plan, 1).unwrap().events);
}

#[divan::bench(sample_count = 10)]
fn udp_through_one_queue(bencher: divan::Bencher) {
    let plan = Dumbbell::new(1, 1_000_000_000, MS, "pfifo limit 1000p")
        .group("cbr", 1, Transport::Udp, "cbr rate 900mbit")
        .seconds(0, 2)
        .plan;
    bencher.counter(ItemsCount::new(148_600u32)).bench_local(|| run(&plan, 1).unwrap().events);
}

/// Moves the earliest of `n` deadlines to a later time, as for a busy link.
#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn deadlines(bencher: divan::Bencher, n: u32) {
    let mut queue = Deadlines::new(n);
    for id in 0..n {
        queue.set(id, u64::from(id) * 7);
    }
    bencher.counter(ItemsCount::new(1_000u32)).bench_local(|| {
        for _ in 0..1_000 {
            let (at, id) = queue.first().unwrap();
            queue.set(id, at + 1 + u64::from(n) * 7 * (1 + u64::from(id % 3)) / 2);
        }
    });
}
