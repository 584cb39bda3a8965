//! Comparison of simulations with formulas of queueing theory and TCP models.

use crate::common::*;
use sojourn_link::Loss;
use sojourn_plan::{Plan, Transport};

/// Returns a plan with one UDP source and one link; the access links are so fast that their delay
/// is negligible. `words` describe the source.
fn single_queue(words: &str, rate: u64) -> Plan {
    let mut plan = Dumbbell::new(1, rate, 0, "pfifo limit 1000000p")
        .group("source", 1, Transport::Udp, words)
        .seconds(10, 1010)
        .plan;
    for link in &mut plan.links[2..] {
        link.params.rate = None;
    }
    plan
}

fn mean_of(metric_name: &str, plan: &Plan, seeds: u64) -> (f64, f64) {
    let values: Vec<f64> =
        (1..=seeds).map(|seed| metric(&run(plan, seed).unwrap(), metric_name)).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let var = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    (mean, (var / n).sqrt())
}

#[test]
fn m_d_1_waits_as_long_as_it_should() {
    // 1000 bytes take 1 ms at 8 Mbit/s, so the load is 0.8.
    let plan = single_queue("packets interval exp(1250us) size 1000", 8_000_000);
    let (wait, error) = mean_of("sojourn_mean", &plan, 5);
    let expected = 0.8 / (2.0 * 1000.0 * 0.2);
    assert!((wait - expected).abs() < 4.0 * error + 0.002 * expected, "{wait} {expected} {error}");
    let (load, _) = mean_of("utilisation", &plan, 1);
    assert!((load - 0.8).abs() < 0.005, "{load}");
}

#[test]
fn m_g_1_follows_pollaczek_and_khinchin() {
    // Lengths are exponential, rounded up to whole bytes, and at least the headers and one byte, so
    // the queue is nearly M/M/1.
    let plan = single_queue("packets interval exp(1250us) size exp(1000)", 8_000_000);
    let (mut mean, mut second) = (0.0, 0.0);
    for k in 1..20_000u32 {
        let p = libm::exp(-f64::from(k - 1) / 1000.0) - libm::exp(-f64::from(k) / 1000.0);
        let service = f64::from(k.max(43)) * 1e-6;
        mean += p * service;
        second += p * service * service;
    }
    let lambda = 800.0;
    let expected = lambda * second / (2.0 * (1.0 - lambda * mean));
    assert!((expected / 0.004 - 1.0).abs() < 0.03, "nearly M/M/1's 4 ms: {expected}");
    let (wait, error) = mean_of("sojourn_mean", &plan, 5);
    assert!((wait - expected).abs() < 4.0 * error + 0.002 * expected, "{wait} {expected} {error}");
}

#[test]
fn littles_law_holds_exactly() {
    let plan = single_queue("packets interval exp(1250us) size exp(1000)", 8_000_000);
    let record = run(&plan, 9).unwrap();
    let rate = metric(&record, "departures") / metric(&record, "measured");
    let expected = rate * metric(&record, "sojourn_mean");
    // Equal except for packets queued at the start and the end of the measured time.
    assert!((metric(&record, "queue_mean") / expected - 1.0).abs() < 1e-3);
}

/// Returns the goodput, in segments per second, of one flow over a link that loses packets at
/// random.
fn lossy(words: &str, loss: f64, rtt: u64) -> f64 {
    let words = format!("{words} rwnd 64mb autotune off sndbuf 64mb mss 1000 timestamps off");
    let mut plan = Dumbbell::new(1, 1_000_000_000, rtt * MS / 2, "pfifo limit 100000p")
        .group("ftp", 1, tcp(&words), "bulk")
        .seconds(50, 650)
        .plan;
    plan.links[0].params.impairments.loss = Loss::Random { probability: loss, correlation: 0.0 };
    mean_of("goodput", &plan, 3).0 / 8000.0
}

#[test]
fn newreno_follows_the_square_root_of_loss() {
    for (p, rtt) in [(0.001, 50), (0.01, 100)] {
        let rate = lossy("reno delack 1", p, rtt);
        let r = rtt as f64 / 1000.0;
        let mathis = (1.5 / p).sqrt() / r;
        let t0 = r + 0.2;
        let pftk = 1.0
            / (r * (2.0 * p / 3.0).sqrt()
                + t0 * (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p));
        println!("reno p {p}: {rate} Mathis {mathis} PFTK {pftk}");
        assert!(rate > 0.8 * pftk && rate < 1.2 * mathis, "{rate} not in {pftk}..{mathis}");
    }
}

#[test]
fn cubic_follows_its_response_function() {
    // Loss rates and round-trip times at which CUBIC is faster than Reno.
    for (p, rtt) in [(2e-4, 100), (1e-3, 200)] {
        let rate = lossy("cubic delack 1 hystart none", p, rtt);
        let r = rtt as f64 / 1000.0;
        let expected = 1.054 * libm::pow(r / p, 0.75) / r;
        println!("cubic p {p}: {rate} expected {expected}");
        assert!((rate / expected - 1.0).abs() < 0.25, "{rate} {expected}");
    }
}
