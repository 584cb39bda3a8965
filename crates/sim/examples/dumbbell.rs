//! Measures the simulator's speed in bottleneck packets per CPU-second, with and without trace hash
//! and probes.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the example measures the simulator"
)]

#[path = "../tests/common/mod.rs"]
mod common;
use common::{Dumbbell, MS, metric, tcp};
use sojourn_sim::{Control, Options, run_with};
use std::fs;

/// Returns the CPU time of this process in seconds, which other processes affect less than wall
/// time.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

fn main() {
    let words = std::env::args().nth(1).unwrap_or_else(|| "cubic".to_owned());
    let queue = std::env::args().nth(2).unwrap_or_else(|| "pfifo limit 1000p".to_owned());
    let only = std::env::args().nth(3).and_then(|n| n.parse::<u32>().ok());
    println!(
        "flows hash probes  packets/s  events/packet   events/s  utilisation   loss  ns/packet"
    );
    for flows in [10, 100].into_iter().filter(|n| only.is_none_or(|only| only == *n)) {
        for (trace, probes) in [(false, false), (true, true)] {
            let plan = Dumbbell::new(flows as usize, 1_000_000_000, 10 * MS, &queue)
                .group("ftp", flows, tcp(&words), "bulk")
                .seconds(1, 20)
                .plan;
            let before = cpu();
            let record = run_with(
                &plan,
                1,
                Options { trace, probes, monitor: false, adjustable: false, fused: true },
                &mut |_| Control::Continue,
            )
            .unwrap();
            let seconds = cpu() - before;
            // Departures are counted only after the warm-up, a twentieth of the run; the CPU time
            // is that of the whole run.
            let packets = metric(&record, "departures") * 20.0 / 19.0;
            println!(
                "{flows:5} {trace:>5} {probes:>5} {:10.0} {:14.2} {:10.0} {:12.3} {:6.4} {:10.0}",
                packets / seconds,
                record.events as f64 / packets,
                record.events as f64 / seconds,
                metric(&record, "utilisation"),
                metric(&record, "loss"),
                seconds / packets * 1e9,
            );
        }
    }
}
