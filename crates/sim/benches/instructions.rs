//! Instructions of small runs under callgrind: the gate for changes. Needs `valgrind` and
//! `gungraun-runner`; so it is built only with `--features instructions`.
#![allow(
    missing_docs,
    unused_qualifications,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::needless_pass_by_value,
    reason = "what the macros make"
)]

#[path = "../tests/common/mod.rs"]
mod common;
use common::{Dumbbell, MS, run, tcp};
use gungraun::{library_benchmark, library_benchmark_group, main};
use sojourn_plan::{Plan, Transport};
use std::hint::black_box;

fn tcp_plan(flows: u32, queue: &str) -> Plan {
    Dumbbell::new(flows as usize, 1_000_000_000, 10 * MS, queue)
        .group("ftp", flows, tcp("cubic"), "bulk")
        .seconds(0, 1)
        .plan
}

fn udp_plan() -> Plan {
    Dumbbell::new(1, 1_000_000_000, MS, "pfifo limit 1000p")
        .group("cbr", 1, Transport::Udp, "cbr rate 900mbit")
        .seconds(0, 1)
        .plan
}

#[library_benchmark]
#[bench::ten(tcp_plan(10, "pfifo limit 1000p"))]
#[bench::hundred(tcp_plan(100, "pfifo limit 1000p"))]
#[bench::codel(tcp_plan(20, "codel"))]
#[bench::fq_codel(tcp_plan(20, "fq_codel"))]
#[bench::udp(udp_plan())]
fn whole_run(plan: Plan) -> u64 {
    black_box(run(&plan, 1).unwrap().events)
}

library_benchmark_group!(name = runs, benchmarks = whole_run);
main!(library_benchmark_groups = runs);
