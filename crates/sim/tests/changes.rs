//! Links whose rate, delay or loss changes during the run.

use crate::common::*;
use sojourn_plan::{Bottleneck, Change, Plan, Transport, Wire};
use sojourn_units::{Nanos, Rate, SECOND};

const MBIT: u64 = 1_000_000;

fn rate(at: Nanos, every: Nanos, mbit: u64) -> Change {
    Change { at, every, rate: Rate::new(mbit * MBIT), wire: None }
}

fn wire(at: Nanos, netem: &str) -> Change {
    let netem = sojourn_link::Netem::parse(netem).unwrap();
    let wire = Wire { delay: netem.delay, impairments: netem.impairments };
    Change { at, every: 0, rate: None, wire: Some(wire) }
}

/// Returns a plan of datagrams over a link of 10 Mbit/s with these changes; the access links are
/// ten times as fast. `words` describe the packet source.
fn cbr(words: &str, changes: Vec<Change>) -> Plan {
    let mut plan = Dumbbell::new(1, 10 * MBIT, 0, "pfifo limit 100p")
        .group("cbr", 1, Transport::Udp, words)
        .seconds(0, 8)
        .plan;
    plan.groups[0].start_spread = 0;
    plan.links[0].changes = changes;
    for link in &mut plan.links[2..] {
        link.params.rate = Rate::new(1_000 * MBIT);
    }
    plan
}

/// Returns the starts of transmissions on the bottleneck in nanoseconds, from its capture.
fn begins(plan: &Plan) -> Vec<u64> {
    let mut plan = plan.clone();
    plan.observe.capture = vec![0];
    let record = run(&plan, 1).unwrap();
    let mut bytes = &record.captures[0][24..];
    let mut times = Vec::new();
    while let Some((header, rest)) = bytes.split_at_checked(16) {
        let word = |i: usize| u64::from(u32::from_le_bytes(header[i..i + 4].try_into().unwrap()));
        times.push(word(0) * SECOND + word(4));
        bytes = &rest[word(8) as usize..];
    }
    times
}

fn gaps(times: &[u64], from: u64, to: u64) -> Vec<u64> {
    times
        .windows(2)
        .filter(|pair| (from..to).contains(&pair[0]))
        .map(|pair| pair[1] - pair[0])
        .collect()
}

#[test]
fn frames_leave_at_the_present_rate() {
    // 1250 bytes take 1 ms at 10 Mbit/s, 2 ms at 5 Mbit/s, and 0.5 ms at 20 Mbit/s.
    let plan =
        cbr("cbr rate 50mbit size 1250", vec![rate(2 * SECOND, 0, 5), rate(4 * SECOND, 0, 20)]);
    let times = begins(&plan);
    assert!(gaps(&times, SECOND / 10, 2 * SECOND - MS).iter().all(|gap| *gap == MS));
    assert!(gaps(&times, 2 * SECOND, 4 * SECOND - 2 * MS).iter().all(|gap| *gap == 2 * MS));
    assert!(gaps(&times, 4 * SECOND, 8 * SECOND - MS).iter().all(|gap| *gap == MS / 2));
    // The transmission in progress at a change ends at the rate at which it began.
    let across = |change: u64| {
        let next = times.partition_point(|at| *at < change);
        (change - times[next - 1], times[next] - times[next - 1], times[next + 1] - times[next])
    };
    let (since, first, second) = across(2 * SECOND);
    assert!(since > 0 && since < MS, "{since}");
    assert_eq!((first, second), (MS, 2 * MS));
    let (since, first, second) = across(4 * SECOND);
    assert!(since > 0 && since < 2 * MS, "{since}");
    assert_eq!((first, second), (2 * MS, MS / 2));
}

#[test]
fn a_period_is_the_same_written_out() {
    let ftp = |changes| {
        let mut plan = Dumbbell::new(2, 10 * MBIT, 20 * MS, "codel")
            .group("ftp", 2, tcp("cubic"), "bulk")
            .seconds(1, 5)
            .plan;
        plan.links[0].changes = changes;
        run(&plan, 1).unwrap()
    };
    let period = ftp(vec![rate(300 * MS, 600 * MS, 2), rate(600 * MS, 600 * MS, 10)]);
    let list = (1..20).map(|n| rate(n * 300 * MS, 0, if n % 2 == 1 { 2 } else { 10 }));
    let written = ftp(list.collect());
    assert_eq!(period.trace_hash, written.trace_hash);
    assert_eq!(format!("{:?}", period.summary), format!("{:?}", written.summary));
    assert_ne!(period.trace_hash, ftp(Vec::new()).trace_hash);
}

#[test]
fn changes_that_change_nothing_leave_no_trace() {
    let trace = |changes| {
        let record = run(&cbr("cbr rate 12mbit", changes), 1).unwrap();
        (record.trace_hash, metric(&record, "utilisation").to_bits())
    };
    let plain = trace(Vec::new());
    assert_eq!(trace(vec![rate(0, SECOND, 10)]), plain);
    assert_eq!(trace(vec![wire(3 * SECOND, "")]).0, plain.0);
    assert_eq!(trace(vec![rate(8 * SECOND, 0, 1)]), plain);
    assert_eq!(trace(vec![rate(100 * SECOND, 0, 1)]), plain);
    assert_ne!(trace(vec![rate(7 * SECOND, 0, 1)]), plain);
}

#[test]
fn utilisation_is_of_the_capacity_at_each_time() {
    // Alternately 10 and 100 Mbit/s, beginning with 10 Mbit/s.
    let changes = || vec![rate(SECOND, 2 * SECOND, 100), rate(2 * SECOND, 2 * SECOND, 10)];
    let full = run(&cbr("cbr rate 400mbit", changes()), 1).unwrap();
    // The first frame arrives 12 us after the start.
    assert!(metric(&full, "utilisation") <= 1.0);
    assert!(metric(&full, "utilisation") > 1.0 - 2e-5, "{}", metric(&full, "utilisation"));
    assert!((metric(&full, "throughput") / 55e6 - 1.0).abs() < 1e-3);

    for ring in [0, 5] {
        let mut plan = cbr("cbr rate 5mbit", changes());
        plan.links[0].ring = ring;
        plan.observe.series_interval = SECOND;
        let part = run(&plan, 1).unwrap();
        assert!((metric(&part, "utilisation") - 5.0 / 55.0).abs() < 1e-3);
        for second in 0..8 {
            let used = real(&part.series, "bottleneck.utilisation", second + 1);
            let expected = if second % 2 == 0 { 0.5 } else { 0.05 };
            assert!((used - expected).abs() < 2e-3, "{second}: {used}");
        }
    }

    // The bottleneck together with the opposite link, which is idle and does not change.
    let mut plan = cbr("cbr rate 5mbit", changes());
    plan.observe.bottleneck = Bottleneck { name: "both".into(), links: vec![0, 1] };
    let both = run(&plan, 1).unwrap();
    assert!((metric(&both, "utilisation") - 2.5 / 55.0).abs() < 1e-3);
}

#[test]
fn the_warm_up_may_end_amid_changes() {
    let mut plan = cbr("cbr rate 5mbit", vec![rate(SECOND, 0, 100), rate(6 * SECOND, 0, 10)]);
    plan.warmup = 4 * SECOND;
    let record = run(&plan, 1).unwrap();
    assert!((metric(&record, "utilisation") - 5.0 / 55.0).abs() < 1e-3);
}

#[test]
fn a_queue_grows_when_its_link_becomes_slow() {
    let mut plan = cbr("cbr rate 5mbit", vec![rate(4 * SECOND, 0, 1)]);
    plan.observe.series_interval = SECOND;
    let record = run(&plan, 1).unwrap();
    assert!(real(&record.series, "bottleneck.queue", 4) < 1.5);
    // An excess of 4 Mbit/s fills a queue of 100 packets within a third of a second.
    assert!(real(&record.series, "bottleneck.queue", 5) >= 99.0);
    assert!((metric(&record, "udp_loss") - 0.4).abs() < 0.02);
}

#[test]
fn a_delay_changes_and_a_line_breaks_and_is_mended() {
    let changes = vec![
        wire(2 * SECOND, "delay 50ms"),
        wire(4 * SECOND, "delay 50ms loss 100%"),
        wire(6 * SECOND, "delay 10ms"),
    ];
    let record = run(&cbr("cbr rate 1mbit", changes), 1).unwrap();
    let received = metric(&record, "cbr.received") / metric(&record, "cbr.sent");
    assert!((received - 0.75).abs() < 0.01, "{received}");
    // Each delay holds for a third of the packets that arrive; transmission takes 1.2 ms.
    let mean = (0.0 + 0.05 + 0.01) / 3.0 + 0.0012;
    assert!((metric(&record, "cbr.delay_mean") - mean).abs() < 0.0005);
}

#[test]
fn links_change_each_by_itself() {
    let mut plan = cbr("cbr rate 5mbit", vec![rate(4 * SECOND, 0, 1)]);
    plan.links[1].changes = vec![rate(2 * SECOND, 2 * SECOND, 3), wire(4 * SECOND, "delay 5ms")];
    let alone = cbr("cbr rate 5mbit", vec![rate(4 * SECOND, 0, 1)]);
    // The opposite link carries no packets in this plan.
    assert_eq!(run(&plan, 1).unwrap().trace_hash, run(&alone, 1).unwrap().trace_hash);
}
