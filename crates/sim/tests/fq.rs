//! FQ in a network: flows limited by `maxrate` before a faster link, shares of a full link, and
//! pacing by the queue of a host.

use crate::common::*;
use sojourn_plan::{Offload, Plan};
use sojourn_units::Rate;

fn near(found: f64, expected: f64, margin: f64) {
    assert!((found / expected - 1.0).abs() <= margin, "{found}, expected {expected}");
}

/// Three flows limited to 4 Mbit/s each use three fifths of the link of 20 Mbit/s.
#[test]
fn maxrate_holds_each_flow_to_its_rate() {
    let plan = Dumbbell::new(3, 20_000_000, 10 * MS, "fq maxrate 4mbit")
        .group("ftp", 3, tcp("cubic"), "bulk")
        .seconds(5, 25)
        .plan;
    let record = run(&plan, 1).unwrap();
    near(metric(&record, "utilisation"), 0.6, 0.01);
    near(metric(&record, "jain"), 1.0, 0.01);
}

/// A CUBIC flow and a Reno flow share a full link evenly.
#[test]
fn flows_share_a_full_link() {
    let plan = Dumbbell::new(2, 20_000_000, 10 * MS, "fq")
        .group("cubic", 1, tcp("cubic"), "bulk")
        .group("reno", 1, tcp("reno"), "bulk")
        .seconds(10, 40)
        .plan;
    let record = run(&plan, 1).unwrap();
    near(metric(&record, "cubic.goodput") / metric(&record, "goodput"), 0.5, 0.05);
}

/// Returns a plan of a server whose own link of 1 Gbit/s has the queue `text`, followed by a link
/// of 20 Mbit/s with a queue of `room` packets.
fn server(text: &str, room: u32, control: &str) -> Plan {
    let mut plan = Dumbbell::new(1, 20_000_000, 20 * MS, &format!("pfifo limit {room}p"))
        .group("flow", 1, tcp(control), "bulk")
        .seconds(5, 25)
        .plan;
    plan.links[OWN].params = line(1_000_000_000, 5 * MS, text);
    plan.links[OWN].host_queue = true;
    plan.groups[0].start_spread = 0;
    plan
}

/// Index of the server's own link.
const OWN: usize = 2;

/// Returns the goodput, the retransmissions, and the 99th percentile of the bottleneck's sojourn
/// time.
fn outcome(plan: &Plan) -> [f64; 3] {
    let record = run(plan, 1).unwrap();
    ["goodput", "flow.retransmissions", "sojourn_p99"].map(|name| metric(&record, name))
}

/// A host's `fq` paces BBR as TCP's own pacing timer does without `fq`.
#[test]
fn a_host_s_fq_paces_as_the_timer_of_tcp() {
    let [timer, fq] = ["pfifo limit 1000p", "fq"].map(|text| outcome(&server(text, 100, "bbr")));
    near(fq[0], timer[0], 0.01);
    near(fq[2], timer[2], 0.05);
    assert_eq!((fq[1], timer[1]), (0.0, 0.0));
}

/// Returns the plan with the server's own link as the bottleneck of its metrics.
fn at_the_server(mut plan: Plan) -> Plan {
    plan.observe.bottleneck.links = vec![OWN];
    plan.observe.bottleneck.name.clone_from(&plan.links[OWN].name);
    plan
}

/// TCP small queues: far less than the congestion window waits in the host's queue.
#[test]
fn little_of_a_connection_is_in_its_host_s_queue() {
    let record = run(&at_the_server(server("fq", 100, "bbr")), 1).unwrap();
    let [longest, window] = ["queue_max", "cwnd_mean"].map(|name| metric(&record, name));
    // Two super-packets of two segments each, and one more super-packet.
    assert!((4.0..=6.0).contains(&longest) && window > 100_000.0, "{longest}, {window}");
}

/// The server's link of 10 Mbit/s is the bottleneck, and CUBIC's window exceeds the path. If the
/// queue is the host's own, with any discipline, the excess waits in the socket instead of the
/// queue.
#[test]
fn small_queues_bound_what_waits_before_every_queue_of_a_host() {
    let longest = |text: &str, host_queue| {
        let mut plan = at_the_server(server(text, 1000, "cubic"));
        plan.links[OWN].params.rate = Rate::new(10_000_000);
        plan.links[OWN].host_queue = host_queue;
        metric(&run(&plan, 1).unwrap(), "queue_max")
    };
    for text in ["pfifo limit 1000p", "pfifo_fast", "codel limit 1000p target 1s interval 2s"] {
        assert!(longest(text, false) > 900.0, "{text}");
        assert!((4.0..=12.0).contains(&longest(text, true)), "{text}: {}", longest(text, true));
    }
}

/// An `fq` queue paces senders only if the plan declares it as a host's own; otherwise it
/// identifies flows only by hash. A host's own `fq` also paces congestion controls without a pacing
/// timer, unless TCP's pacing is off.
#[test]
fn only_the_host_s_own_queue_paces() {
    let hash = |plan: &Plan| run(plan, 1).unwrap().trace_hash;
    let own = |text, control| hash(&server(text, 50, control));
    let elsewhere = |text| {
        let mut plan = server(text, 50, "cubic");
        plan.links[OWN].host_queue = false;
        hash(&plan)
    };
    assert_eq!(elsewhere("fq"), elsewhere("fq nopacing"));
    assert_ne!(own("fq", "cubic"), own("fq nopacing", "cubic"));
    assert_eq!(own("fq", "cubic pacing off"), own("fq nopacing", "cubic pacing off"));
    let router = |text| {
        let mut plan = server("pfifo limit 1000p", 50, "cubic");
        plan.links[0].params.queue = queue(text);
        hash(&plan)
    };
    assert_eq!(router("fq"), router("fq nopacing"));
}

/// A sender continues after its packets left the host's queue before their departure times or were
/// dropped there.
#[test]
fn a_near_horizon_stops_no_connection() {
    for text in ["fq horizon 100us horizon_cap", "fq horizon 100us", "fq flow_limit 1"] {
        let [goodput, ..] = outcome(&server(text, 50, "bbr"));
        assert!(goodput > 1e4, "{text}: {goodput}");
    }
    // Acknowledgements arrive before the departure times of the segments that they acknowledge.
    let mut near = server("fq horizon 1us horizon_cap", 50, "cubic");
    near.links.iter_mut().for_each(|link| link.params.delay = 10_000);
    assert!(outcome(&near)[0] > 1e6);
}

/// Queues hold super-packets as wholes, split them or drop them; no packet is lost or made, and TCP
/// fills the link. The counts of packets are those of queues: eight super-packets are a full queue.
#[test]
fn every_queue_of_a_host_holds_super_packets() {
    let texts = [
        "pfifo limit 8p",
        "bfifo limit 30kb",
        "fq_codel limit 8p",
        "fq_codel target 1ms interval 10ms",
        "codel target 1ms interval 10ms",
        "red limit 60kb min 10kb max 30kb avpkt 1000b",
        "sfq limit 8p",
        "fq flow_limit 2p",
        "pie target 1ms",
        "cake bandwidth 9mbit",
        "cake bandwidth 9mbit memlimit 20kb",
        "dualpi2",
        "dualpi2 no_split_gso limit 4p",
        "tbf rate 9mbit burst 2k limit 20k",
        "tbf rate 9mbit burst 100k limit 200k",
        "htb default 1; class 1:1 rate 9mbit; qdisc parent 1:1 cake",
        "prio; qdisc parent 1:1 tbf rate 9mbit burst 2k child codel; filter all to 1:1",
        "drr; class 1:1; qdisc parent 1:1 dualpi2; filter all to 1:1",
    ];
    for text in texts {
        let mut plan = at_the_server(server(text, 1000, "cubic"));
        plan.links[OWN].params.rate = Rate::new(10_000_000);
        plan.links[OWN].offload = Some(Offload::Linux);
        plan.groups[0].count = 6;
        let record = run(&plan, 1).unwrap();
        let goodput = metric(&record, "goodput");
        assert!((7.5e6..9.6e6).contains(&goodput), "{text}: {goodput}");
        assert_eq!(run(&plan, 1).unwrap().trace_hash, record.trace_hash, "{text}");
    }
}

/// Small queues leave two super-packets of each of six connections in the queue, which hold a
/// millisecond or two segments, so a limit of eight packets is one of 16 frames.
#[test]
fn a_limit_in_packets_counts_super_packets() {
    let of = |offload| {
        let mut plan = at_the_server(server("pfifo limit 8p", 1000, "cubic"));
        plan.links[OWN].params.rate = Rate::new(10_000_000);
        plan.links[OWN].offload = offload;
        plan.groups[0].count = 3;
        let record = run(&plan, 1).unwrap();
        ["drops", "queue_max", "backlog_max"].map(|name| metric(&record, name))
    };
    let [drops, longest, bytes] = of(None);
    assert!(drops > 0.0 && longest <= 8.0 && bytes <= 8.0 * 1514.0, "{drops} {longest} {bytes}");
    let [drops, longest, bytes] = of(Some(Offload::Linux));
    assert!(drops == 0.0 && longest <= 6.0, "{drops} {longest} {bytes}");
    assert!(bytes > 5.0 * 2.0 * 1514.0, "{bytes}");
}
