//! Measures the speed of simulated Web sessions over 10 Mbit/s, as in the study `taildrop`.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the example measures the simulator"
)]

#[path = "../tests/common/mod.rs"]
mod common;
use common::{Dumbbell, MS, metric, run, tcp};
use std::time::Instant;

fn main() {
    let sessions = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(800);
    let words = std::env::args().nth(2).unwrap_or_else(|| "web".to_owned());
    let plan = Dumbbell::new(4, 10_000_000, 75 * MS, "pfifo limit 300p")
        .group("web", sessions, tcp("reno"), &words)
        .seconds(100, 1000)
        .plan;
    let begin = Instant::now();
    let record = run(&plan, 1).expect("the plan is valid");
    let wall = begin.elapsed().as_secs_f64();
    for name in [
        "events",
        "packets",
        "utilisation",
        "loss",
        "consecutive_loss_mean",
        "sojourn_mean",
        "web.objects",
        "web.pages",
        "web.page_p50",
        "web.active_mean",
        "web.fct_p50",
        "web.unfinished",
        "timeouts",
    ] {
        println!("{name:24} {:.4}", metric(&record, name));
    }
    println!("{:24} {wall:.2}", "wall seconds");
    println!("{:24} {:.0}", "packets a second", metric(&record, "packets") / wall);
}
