//! Runs with the same plan, seed and version are equal on all machines.
#![allow(clippy::float_cmp, reason = "counts are exact")]

use crate::common::{self, *};
use sojourn_plan::{Plan, Transport};

fn udp() -> Plan {
    Dumbbell::new(3, 10_000_000, 20 * MS, "pfifo limit 20p")
        .group("cbr", 2, Transport::Udp, "cbr rate 4mbit jitter 50%")
        .group("poisson", 1, Transport::Udp, "packets interval exp(3ms) size uniform(60,1514)")
        .seconds(1, 5)
        .plan
}

fn tcp_mix(queue: &str) -> Plan {
    tcp_mix_of(queue, "linux-7.3")
}

fn tcp_mix_of(queue: &str, profile: &str) -> Plan {
    let tcp = |control: &str| tcp(&format!("{control} profile {profile}"));
    let mut plan = Dumbbell::new(4, 20_000_000, 20 * MS, queue)
        .group("cubic", 3, tcp("cubic"), "bulk")
        .group("reno", 2, tcp("reno"), "bulk")
        .group("call", 2, Transport::Udp, "voip")
        .group("web", 4, tcp("cubic"), "web pages 3 interpage exp(1s) objects 2")
        .seconds(1, 5)
        .plan;
    plan.links[1].params.impairments.duplicate.probability = 0.01;
    plan.links[0].params.impairments.loss =
        sojourn_link::Loss::Random { probability: 0.001, correlation: 0.0 };
    plan
}

/// Returns a plan of packet sources over TCP that start one after the other. One source exceeds the
/// rate of the network.
fn streams() -> Plan {
    let mut plan = Dumbbell::new(3, 10_000_000, 20 * MS, "pfifo limit 50p")
        .group(
            "cbr",
            3,
            tcp("reno sndbuf 64kb"),
            "cbr rate 6mbit payload 1400 on exp(1s) off exp(1s)",
        )
        .group("poisson", 2, tcp("cubic blocking on"), "packets interval exp(1ms) payload 700")
        .group("call", 1, tcp("cubic"), "voip")
        .seconds(1, 5)
        .plan;
    plan.groups[0].start_every = 500 * MS;
    plan
}

fn l4s() -> Plan {
    Dumbbell::new(2, 20_000_000, 20 * MS, "dualpi2")
        .group("prague", 2, tcp("prague"), "bulk")
        .group("cubic", 2, tcp("cubic ecn classic"), "bulk")
        .group("cbr", 1, Transport::Udp, "cbr rate 3mbit jitter 50%")
        .seconds(1, 5)
        .plan
}

fn plans() -> Vec<(&'static str, Plan)> {
    vec![
        ("udp", udp()),
        ("streams", streams()),
        ("pfifo", tcp_mix("pfifo limit 100p")),
        ("codel", tcp_mix("codel")),
        ("fq_codel", tcp_mix("fq_codel")),
        ("pie", tcp_mix("pie")),
        ("fq_pie", tcp_mix("fq_pie")),
        ("fq_cobalt", tcp_mix("fq_cobalt limit 60p")),
        ("l4s", l4s()),
        (
            "red",
            tcp_mix("red limit 150000 min 15000 max 45000 avpkt 1500 burst 20 bandwidth 20mbit"),
        ),
        ("choke", tcp_mix("choke limit 100p min 10p max 30p burst 20 bandwidth 20mbit")),
        ("sfb", tcp_mix("sfb limit 200p increment 0.005 decrement 0.0005 rehash 2000 db 500")),
    ]
}

#[test]
fn the_same_run_twice_and_on_other_threads() {
    let plans = plans();
    let once: Vec<_> = plans.iter().map(|(_, plan)| run(plan, 7).unwrap()).collect();
    let threads: Vec<_> = plans
        .clone()
        .into_iter()
        .map(|(_, plan)| std::thread::Builder::new().spawn(move || run(&plan, 7).unwrap()).unwrap())
        .collect();
    for ((first, second), (name, plan)) in once.iter().zip(threads).zip(&plans) {
        let second = second.join().unwrap();
        assert_eq!(first.trace_hash, second.trace_hash, "{name}");
        assert_eq!(first.events, second.events, "{name}");
        // Compared as text, since NaN is not equal to itself.
        assert_eq!(format!("{:?}", first.summary), format!("{:?}", second.summary), "{name}");
        assert_ne!(first.trace_hash, run(plan, 8).unwrap().trace_hash, "{name}");
    }
}

/// Trace hashes of plans, equal in debug and release builds. Each change of a policy, of TCP or of
/// the order of events changes them, so that it is noticed. The test's message contains the new
/// values.
const GOLDEN: &[(&str, &str)] = &[
    ("udp", "cc5d63245d55b9da1ced262a95af2ced"),
    ("streams", "04d41d43ee30c566c84aa5aa5ae22381"),
    ("pfifo", "d40a267569a711a055e9033ac2f11a55"),
    ("codel", "7c07f2dde2700f6af015bee072fc7993"),
    ("fq_codel", "a372682ee57cb244ab3ac5f89191003f"),
    ("pie", "db2ac14e3d4f5e800a9b7e1a579583dc"),
    ("fq_pie", "c446bda8ea008d5dc0d8f8a66cdd47e6"),
    ("fq_cobalt", "22057f873d0caf8348b03b6bb71ad1be"),
    ("l4s", "a6027442f557630422edbceee3aa676e"),
    ("red", "7ffe0268be448e166cbc46cb444fb302"),
    ("choke", "31079b7ff56262ec345d7e2a01873454"),
    ("sfb", "f08c1db8fdb6ecb4927d167f650229dc"),
];

#[test]
fn golden_hashes() {
    let hash = |plan: &Plan| format!("{:032x}", run(plan, 1).unwrap().trace_hash);
    let now: Vec<_> = plans().iter().map(|(name, plan)| (*name, hash(plan))).collect();
    let same = now.iter().map(|(n, h)| (*n, h.as_str())).eq(GOLDEN.iter().copied());
    assert!(same, "the runs have changed; they are now\n{now:#?}");
}

/// The results of the profile `linux-6` do not depend on which profile is the default.
#[test]
fn golden_hashes_of_linux_6() {
    for (queue, golden) in [
        ("pfifo limit 100p", "a71d6fedbf82c0477a4ae53cd8d44921"),
        ("codel", "0b20f0aa4c1b660b95408115928eb33c"),
    ] {
        let record = run(&tcp_mix_of(queue, "linux-6"), 1).unwrap();
        assert_eq!(format!("{:032x}", record.trace_hash), golden, "{queue}");
    }
}

#[test]
fn another_queue_gets_the_same_arrivals() {
    let arrivals = |queue: &str| {
        let mut plan = udp();
        plan.links[0].params.queue = common::queue(queue);
        // Capture the access links of both senders.
        plan.observe.capture = vec![2, 6];
        let record = run(&plan, 5).unwrap();
        let (offered, drops) = (metric(&record, "arrivals"), metric(&record, "drops"));
        (record.captures, offered, drops)
    };
    let (fifo, codel, short) =
        (arrivals("pfifo limit 20p"), arrivals("codel limit 50p"), arrivals("pfifo limit 2p"));
    assert!(fifo.0 == codel.0 && fifo.0 == short.0, "the sources' packets differ");
    assert!(fifo.0.iter().all(|capture| capture.len() > 10_000));
    assert_eq!(fifo.1, codel.1);
    assert!(short.2 > fifo.2);
}
