//! The content of a record.

#![allow(clippy::float_cmp, reason = "counts are exact")]

use crate::common::*;
use sojourn_measure::metrics;
use sojourn_plan::{Change, Transport};
use sojourn_queue::DropReason;
use sojourn_sim::{Control, Record};
use sojourn_units::{Rate, SECOND};

fn mixed() -> sojourn_plan::Plan {
    let mut plan = Dumbbell::new(3, 10_000_000, 20 * MS, "codel limit 1000p ecn")
        .group("ftp", 3, tcp("cubic ecn classic"), "bulk")
        .group("call", 2, Transport::Udp, "voip")
        .group("web", 3, tcp("reno"), "web pages 3 interpage exp(1s) objects 2")
        .group("job", 3, tcp("reno"), "transfer size 30kb forever think exp(1s)")
        .seconds(2, 10)
        .plan;
    plan.observe.series_interval = 100 * MS;
    plan.observe.per_flow_histograms = true;
    plan.observe.monitor = true;
    plan.observe.capture = vec![0, 1];
    plan
}

fn tables(record: &Record) -> [(&str, &sojourn_measure::Table); 6] {
    [
        ("summary", &record.summary),
        ("flows", &record.flows),
        ("queues", &record.queues),
        ("series", &record.series),
        ("distributions", &record.distributions),
        ("flow_series", &record.flow_series),
    ]
}

#[test]
fn every_column_is_registered_with_its_unit() {
    let record = run(&mixed(), 1).unwrap();
    for (name, table) in tables(&record) {
        assert!(table.rows() > 0, "{name} is empty");
        for column in &table.columns {
            if column.name.contains(".state.") {
                continue;
            }
            let metric = metrics::of_column(&column.name)
                .unwrap_or_else(|| panic!("{name}: {} is not registered", column.name));
            assert_eq!(metric.unit, column.unit, "{}", column.name);
        }
    }
}

#[test]
fn the_summary_has_what_scenarios_ask_for() {
    let record = run(&mixed(), 1).unwrap();
    for name in [
        "goodput",
        "udp_loss",
        "sojourn_mean",
        "sojourn_sd",
        "sojourn_p50",
        "sojourn_p95",
        "sojourn_p99",
        "sojourn_p999",
        "queue_mean",
        "utilisation",
        "loss",
        "jain",
        "consecutive_loss_mean",
        "marks",
        "retransmissions",
        "ftp.goodput",
        "ftp.rtt_p99",
        "ftp.srtt_p50",
        "ftp.srtt_p95",
        "ftp.cwnd_mean",
        "call.mos",
        "call.jitter",
        "web.page_p95",
        "job.fct_p99",
        "back.sojourn_mean",
    ] {
        let _ = metric(&record, name);
    }
    let reasons =
        DropReason::ALL.map(|reason| metric(&record, &format!("drops_{}", reason.name())));
    assert_eq!(reasons.iter().sum::<f64>(), metric(&record, "drops"));
    assert!(metric(&record, "marks") > 0.0);
    assert!(metric(&record, "ftp.rtt_p50") > 0.04);
    // Only the smoothed times contain the wait for delayed acknowledgements.
    let (last, smoothed) = (metric(&record, "ftp.rtt_mean"), metric(&record, "ftp.srtt_mean"));
    assert!(smoothed > last && smoothed < 1.5 * last, "{smoothed} s beside {last} s");
    assert!(metric(&record, "ftp.cwnd_mean") > 1448.0);
    // Both ends of the run are sampled.
    assert_eq!(record.series.rows(), 101);
    assert!(record.series.column("bottleneck.state.count").is_some());
    assert!(record.series.column("ftp.0.cwnd").is_some());
}

/// The drops and marks in the time series add up to the counts in the summary.
#[test]
fn series_of_verdicts_add_up() {
    let mut plan = Dumbbell::new(3, 10_000_000, 20 * MS, "codel limit 60p ecn")
        .group("marked", 2, tcp("cubic ecn classic"), "bulk")
        .group("dropped", 1, tcp("reno"), "bulk")
        .seconds(0, 10)
        .plan;
    plan.observe.series_interval = 100 * MS;
    let record = run(&plan, 1).unwrap();
    for verdict in ["drops", "marks"] {
        let column = format!("bottleneck.{verdict}");
        let rows = 0..record.series.rows();
        let sum: f64 = rows.map(|row| real(&record.series, &column, row)).sum();
        assert_eq!(sum, metric(&record, verdict), "{verdict}");
        assert!(sum > 0.0, "{verdict}");
    }
}

/// Packets that a policy drops for its measurements count as drops, under their own reason.
#[test]
fn drops_by_measuring_are_counted() {
    let of = |text: &str| {
        let plan = Dumbbell::new(2, 10_000_000, 10 * MS, text)
            .group("ftp", 2, tcp("reno"), "bulk")
            .group("cbr", 1, Transport::Udp, "cbr rate 3mbit")
            .seconds(0, 10)
            .plan;
        let record = run(&plan, 1).unwrap();
        let of = |reason: DropReason| metric(&record, &format!("drops_{}", reason.name()));
        let [early, forced, measurement] =
            [DropReason::Early, DropReason::Forced, DropReason::Measurement].map(of);
        let all: f64 = DropReason::ALL.map(of).iter().sum();
        assert_eq!(all, metric(&record, "drops"), "{text}");
        assert!(early > 0.0 && forced > 0.0, "{text}");
        measurement
    };
    assert_eq!(of("daqm preset c1"), 0.0);
    let measured = of("daqm preset c1 as-published");
    assert!(measured > 100.0 && measured % 5.0 == 0.0, "{measured}");
}

#[test]
fn captures_are_pcap_files() {
    let record = run(&mixed(), 1).unwrap();
    assert_eq!(record.captures.len(), 2);
    let bytes = &record.captures[0];
    assert_eq!(bytes[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    // Each record has matching lengths, the plan's addresses and a valid IPv4 header.
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut frames, mut last) = (24, 0, (0, 0));
    while at < bytes.len() {
        let (time, kept, len) = ((word(at), word(at + 4)), word(at + 8), word(at + 12));
        assert!(time >= last && kept <= len.min(128));
        last = time;
        let ip = &bytes[at + 16 + 14..at + 16 + 34];
        assert_eq!(ip[0], 0x45);
        assert_eq!(u32::from(u16::from_be_bytes([ip[2], ip[3]])), len - 14);
        let sum: u32 = ip.chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        at += 16 + kept as usize;
        frames += 1;
    }
    assert_eq!(at, bytes.len());
    assert!(frames > 1000);
}

#[test]
fn stopping_keeps_what_is_done() {
    let plan = mixed();
    let record = sojourn_sim::run(&plan, 1, &mut |progress| {
        if progress.fraction() >= 0.5 { Control::Stop } else { Control::Continue }
    })
    .unwrap();
    assert!(!record.complete);
    assert!(record.reached >= plan.duration / 2 && record.reached < plan.duration * 6 / 10);
    assert!(metric(&record, "goodput") > 0.0);
    // A run may also be stopped before its first event.
    let record = sojourn_sim::run(&plan, 1, &mut |_| Control::Stop).unwrap();
    assert!(!record.complete && record.reached == 0);
}

#[test]
fn the_series_adds_up_to_the_summary() {
    let record = run(&mixed(), 1).unwrap();
    // The summary counts a packet at the start of its transmission; the series count its bytes
    // during the transmission.
    let packet = 1514.0 * 8.0 / 8.0;
    for (column, summed, margin) in [
        ("ftp.goodput", "ftp.goodput", 0.0),
        ("call.udp_goodput", "call.udp_goodput", 0.0),
        ("bottleneck.throughput", "throughput", packet),
    ] {
        // A sample is taken at the end of its interval; the warm-up is 2 s, the run 10 s.
        let measured = (21..=100).map(|row| real(&record.series, column, row)).sum::<f64>() / 80.0;
        let metric = metric(&record, summed);
        let difference = (measured - metric).abs();
        assert!(difference <= margin + 1e-6 * metric, "{column}: {measured} {metric}");
    }
}

/// The bytes of a frame count during its transmission, not at the start. No sample of a slow link
/// therefore exceeds its rate, and the samples add up to the transmitted bytes.
#[test]
fn no_sample_of_throughput_exceeds_the_rate() {
    let (rate, interval) = (100_000, 25 * MS);
    for ring in [0, 1] {
        let mut plan = Dumbbell::new(1, rate, 20 * MS, "codel")
            .group("ftp", 2, tcp("cubic"), "bulk")
            .seconds(0, 20)
            .plan;
        plan.observe.series_interval = interval;
        plan.links[0].ring = ring;
        let halved = plan.links[0].params.rate.map(|rate| rate.bits() / 2).and_then(Rate::new);
        plan.links[0].changes =
            vec![Change { at: 10 * SECOND, every: 0, rate: halved, wire: None }];
        let record = run(&plan, 1).unwrap();
        let sample = |row| real(&record.series, "bottleneck.throughput", row);
        // Samples count whole bytes.
        let rounding = 8.0 * 1e9 / interval as f64;
        for row in 1..record.series.rows() {
            // The transmission in progress at the change of the rate ends at the old rate.
            let highest = if row < 406 { rate } else { rate / 2 } as f64;
            assert!(sample(row) <= highest + rounding, "ring {ring}, {row}: {}", sample(row));
        }
        let bits: f64 = (0..record.series.rows()).map(sample).sum::<f64>() * interval as f64 / 1e9;
        let sent = metric(&record, "throughput") * 20.0;
        assert!(
            (sent - 1514.0 * 8.0..=sent + 1.0).contains(&bits),
            "ring {ring}: {bits} of {sent}"
        );
        assert!(bits > 1.4e6, "ring {ring}: {bits}");
    }
}

/// The monitor's last samples equal the totals, and its series contain the queue that changed last.
#[test]
fn the_flow_series_ends_in_the_totals() {
    let mut plan = Dumbbell::new(3, 2_000_000, 20 * MS, "pfifo limit 20p")
        .group("ftp", 3, tcp("reno"), "bulk")
        .group("call", 2, Transport::Udp, "voip")
        .seconds(0, 5)
        .plan;
    plan.observe.series_interval = 100 * MS;
    plan.observe.monitor = true;
    let record = run(&plan, 1).unwrap();
    let table = &record.flow_series;
    let last: Vec<_> = (0..table.rows()).filter(|&row| real(table, "time", row) >= 5.0).collect();
    // Calls send packets in one direction only.
    assert_eq!(last.len(), 3 * 2 + 2);
    let sum = |name| last.iter().map(|&row| real(table, name, row)).sum::<f64>();
    assert_eq!(sum("sent"), metric(&record, "packets"));
    let drops: f64 = (0..plan.links.len()).map(|i| real(&record.queues, "drops", i)).sum();
    assert_eq!(sum("dropped"), drops);
    assert!(drops > 0.0);
    assert_eq!(sum("measurement_drops"), 0.0);
    for &row in &last {
        let mean = real(table, "delay_sum", row) / real(table, "received", row);
        assert!((0.02..0.2).contains(&mean), "{mean}");
        assert!(real(table, "first_sent", row) <= real(table, "last_received", row));
    }
    for row in 0..record.series.rows() {
        let latest = real(&record.series, "latest.queue", row);
        let anywhere = plan
            .links
            .iter()
            .map(|link| real(&record.series, &format!("{}.queue", link.name), row));
        assert!(anywhere.into_iter().any(|length| length == latest));
    }
}
