//! The share of the link that an unresponsive UDP flow gets with TCP flows.
#![allow(clippy::doc_markdown, reason = "CHOKe is a name, not code")]

use crate::common::*;
use sojourn_plan::Transport;

/// Returns the shares of a 10 Mbit/s link that a UDP flow and `count` TCP flows get, as means of
/// two seeds. The UDP flow sends at `load` times the link's rate.
fn shares(queue: &str, count: u32, load: f64) -> (f64, f64) {
    let rate = 1e7;
    let words = format!("cbr rate {}bit size 1066 jitter 10%", (load * rate) as u64);
    let mut plan = Dumbbell::new(4, rate as u64, 50 * MS, queue)
        .group("tcp", count, tcp("cubic mss 1000"), "bulk")
        .group("udp", 1, Transport::Udp, &words)
        .seconds(20, 60)
        .plan;
    for link in &mut plan.links[2..] {
        link.params.rate = None;
    }
    let runs = [1, 2].map(|seed| run(&plan, seed).unwrap());
    let mean = |name| runs.iter().map(|record| metric(record, name)).sum::<f64>() / 2.0 / rate;
    // All frames have 1066 bytes; the payload is 1024 bytes in UDP and 1000 bytes in TCP.
    (mean("udp_goodput") * 1066.0 / 1024.0, mean("goodput") * 1066.0 / 1000.0)
}

/// Returns the share of a UDP flow at `load` times the link's rate under CHOKe with many TCP flows,
/// after Tang, Wang and Low (2004).
///
/// A UDP packet waits for the time D in a queue of b packets. Each UDP arrival draws this packet
/// with probability 1/b, so the packet survives with probability exp(-a), where a = load D / b.
/// Little's law for both kinds of packets gives load and share as functions of a.
fn choke_share(load: f64) -> f64 {
    let at = |a: f64| {
        let survives = libm::exp(-a);
        let all = 1.0 + a * survives;
        (a * (2.0 - survives) / all, a * survives / all)
    };
    let (mut low, mut high) = (0.0, 50.0);
    while high - low > 1e-9 {
        let middle = f64::midpoint(low, high);
        if at(middle).0 < load { low = middle } else { high = middle }
    }
    at(low).1
}

#[test]
fn the_model_of_choke_peaks_where_its_paper_says() {
    let peak = 1.0 / (core::f64::consts::E + 1.0);
    assert!((choke_share(1.193) - peak).abs() < 1e-6);
    assert!((1..1000).all(|n| choke_share(f64::from(n) / 50.0) <= peak));
    assert!(choke_share(1000.0) < 1e-6);
}

/// With growing load, UDP's share rises to a quarter of the link and then falls. In a FIFO, UDP
/// would get the whole link.
#[test]
fn choke_starves_the_flow_that_sends_more() {
    let queue = "choke limit 1000 min 20 max 900 burst 30 probability 0.02";
    for load in [0.1, 0.5, 1.2, 3.0, 9.0] {
        let (udp, tcp) = shares(queue, 64, load);
        let model = choke_share(load);
        println!("load {load}: UDP {udp:.3}, model {model:.3}, TCP {tcp:.3}");
        assert!((udp - model).abs() < 0.01, "load {load}: UDP {udp}, model {model}");
        assert!(udp + tcp > 0.97, "the link is used: {udp} + {tcp}");
    }
    let (udp, _) = shares("pfifo limit 1000", 64, 3.0);
    assert!(udp > 0.95, "{udp}");
}

/// With SFB the UDP flow gets less than two fair shares at any load; with RED it gets nearly the
/// whole link.
#[test]
fn sfb_isolates_it() {
    let fair = 1.0 / 11.0;
    for load in [0.5, 1.0, 2.0, 4.0] {
        let (udp, tcp) = shares("sfb", 10, load);
        println!("load {load}: UDP {udp:.3}, TCP {tcp:.3}");
        assert!(udp < 2.0 * fair && tcp > 0.8, "load {load}: UDP {udp}, TCP {tcp}");
    }
    let (udp, _) = shares("red limit 300000 min 30000 max 100000", 10, 2.0);
    assert!(udp > 0.9, "{udp}");
}
