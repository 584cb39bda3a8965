//! Writes a bottleneck's capture in pcap format to standard output, for tshark.

#[path = "../tests/common/mod.rs"]
mod common;
use common::{Dumbbell, MS, run, tcp};
use sojourn_plan::Transport;
use std::io::Write;

fn main() -> std::io::Result<()> {
    let mut plan = Dumbbell::new(2, 10_000_000, 10 * MS, "codel ecn")
        .group("ftp", 1, tcp("cubic ecn classic"), "bulk")
        .group("call", 1, Transport::Udp, "voip")
        .group("job", 1, tcp("reno"), "transfer size 30kb")
        .seconds(0, 3)
        .plan;
    plan.observe.capture = vec![0, 1];
    plan.observe.snaplen = 2000;
    let record = run(&plan, 1).expect("the plan is valid");
    let which = usize::from(std::env::args().nth(1).is_some());
    std::io::stdout().write_all(&record.captures[which])
}
