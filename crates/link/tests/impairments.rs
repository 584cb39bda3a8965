//! What the wire does to packets, against its formulas.

use crate::common::{Frame, Log, drain, link, params};
use sojourn_link::Event;
use sojourn_units::{EPOCH, MICROSECOND, MILLISECOND, Nanos};

/// Sends `count` packets, one each millisecond, over an infinitely fast link.
fn send(netem: &str, seed: u64, count: u32) -> Log {
    send_through(netem, "pfifo limit 10", seed, count)
}

fn send_through(netem: &str, queue: &str, seed: u64, count: u32) -> Log {
    let mut log = Log::default();
    let mut link = link(&params(0, netem, queue), seed);
    for number in 0..count {
        link.offer(EPOCH + Nanos::from(number) * MILLISECOND, Frame::new(number, 100), &mut log);
    }
    drain(&mut link, &mut log);
    log
}

fn lost(log: &Log) -> Vec<u32> {
    log.times(|what| *what == Event::Lost).into_iter().map(|(number, _)| number).collect()
}

/// Half-width of the 99.9 % interval of a ratio of independent events.
fn margin(p: f64, n: u32) -> f64 {
    3.3 * (p * (1.0 - p) / f64::from(n)).sqrt()
}

#[test]
fn independent_loss_has_its_ratio() {
    for p in [0.001, 0.01, 0.3] {
        let n = 100_000;
        let ratio = lost(&send(&format!("loss {}%", p * 100.0), 3, n)).len() as f64 / f64::from(n);
        assert!((ratio - p).abs() < margin(p, n), "{ratio} for {p}");
    }
    assert_eq!(lost(&send("loss 100%", 1, 1000)).len(), 1000);
}

#[test]
fn loss_is_on_the_wire_after_the_queue() {
    let log = send("loss 100%", 1, 10);
    assert_eq!(log.departed().len(), 10);
    assert!(log.delivered().is_empty());
}

#[test]
fn gilbert_elliott_has_its_stationary_ratio_and_bursts() {
    let n = 400_000;
    let (p, r, bad, good) = (0.01, 0.2, 0.7, 0.001);
    let losses = lost(&send("loss gemodel 1% 20% 70% 0.1%", 5, n));
    let expected = (p * bad + r * good) / (p + r);
    let ratio = losses.len() as f64 / f64::from(n);
    // Correlation over about 1/(p + r) packets widens the interval by the root of the ratio of
    // variances, (2 - p - r) / (p + r).
    let widened = margin(expected, n) * ((2.0 - p - r) / (p + r)).sqrt();
    assert!((ratio - expected).abs() < widened, "{ratio} for {expected} +- {widened}");

    // The simple Gilbert model loses whole visits to the bad state: bursts of mean length 1/r.
    let losses = lost(&send("loss gemodel 1% 20%", 6, n));
    let bursts = 1 + losses.windows(2).filter(|w| w[1] != w[0] + 1).count();
    let mean = losses.len() as f64 / bursts as f64;
    assert!((mean - 5.0).abs() < 3.3 * 4.5 / (bursts as f64).sqrt(), "{mean} from {bursts}");
}

#[test]
fn correlated_loss_comes_in_bursts_and_is_rarer_as_netems() {
    let n = 200_000;
    let losses = lost(&send("loss 10% 50%", 7, n));
    let ratio = losses.len() as f64 / f64::from(n);
    // With weight 1/2 the draw is a Bernoulli-like convolution, uniform only if the last result were
    // independent: far less mass near zero.
    assert!(ratio < 0.05, "{ratio}");
    let after_loss = losses.windows(2).filter(|w| w[1] == w[0] + 1).count() as f64;
    assert!(after_loss / losses.len() as f64 > 2.0 * ratio);
}

#[test]
fn duplicates_arrive_twice() {
    let n = 50_000;
    let log = send("delay 1ms duplicate 2%", 8, n);
    let copies = log.times(|what| *what == Event::Duplicated).len();
    assert!((copies as f64 / f64::from(n) - 0.02).abs() < margin(0.02, n));
    assert_eq!(log.delivered().len(), n as usize + copies);
    // Of a packet that is duplicated and lost, one arrives.
    let log = send("duplicate 100% loss 100%", 8, 100);
    assert_eq!((log.delivered().len(), lost(&log).len()), (100, 100));
}

#[test]
fn corruption_is_told_with_entropy() {
    let n = 50_000;
    let log = send("corrupt 3%", 9, n);
    let hit = log.times(|what| matches!(what, Event::Corrupted(_))).len();
    assert!((hit as f64 / f64::from(n) - 0.03).abs() < margin(0.03, n));
    assert_eq!(log.delivered().len(), n as usize);
}

fn delays(netem: &str, seed: u64, n: u32) -> Vec<f64> {
    let arrivals = send(netem, seed, n).delivered();
    let sent = |number: u32| EPOCH + Nanos::from(number) * MILLISECOND;
    let mut all: Vec<f64> = arrivals
        .iter()
        .map(|(number, at)| (at - sent(*number)) as f64 / MILLISECOND as f64)
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn jitter_has_its_distribution() {
    let n = 40_000;
    let mean = |all: &[f64]| all.iter().sum::<f64>() / f64::from(n);
    let deviation = |all: &[f64]| {
        let m = mean(all);
        (all.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / f64::from(n)).sqrt()
    };
    let uniform = delays("delay 100ms 20ms", 1, n);
    assert!((mean(&uniform) - 100.0).abs() < 0.3);
    assert!(uniform[0] >= 80.0 && uniform[0] < 80.1 && uniform[n as usize - 1] <= 120.0);
    assert!((deviation(&uniform) - 20.0 / 3f64.sqrt()).abs() < 0.15);

    let normal = delays("delay 100ms 20ms distribution normal", 1, n);
    assert!((mean(&normal) - 100.0).abs() < 0.4);
    assert!((deviation(&normal) - 20.0).abs() < 0.3);

    // Median of 4/3 (U^(-1/3) - 3/2): 4/3 (2^(1/3) - 1.5) = -0.3201; least value -2/3.
    let pareto = delays("delay 100ms 20ms distribution pareto", 1, n);
    assert!((pareto[n as usize / 2] - (100.0 - 20.0 * 0.3201)).abs() < 0.2);
    assert!((pareto[0] - (100.0 - 20.0 * 2.0 / 3.0)).abs() < 0.01);
    assert!((pareto[n as usize - 1] - 180.0).abs() < 0.01);

    let mixed = delays("delay 100ms 20ms distribution paretonormal", 1, n);
    assert!((mixed[n as usize / 2] - (100.0 - 20.0 * 0.75 * 0.3201)).abs() < 0.2);
}

#[test]
fn delay_never_falls_below_zero() {
    let all = delays("delay 1ms 50ms", 2, 10_000);
    assert_eq!(all[0].to_bits(), 0.0f64.to_bits());
}

#[test]
fn correlated_jitter_changes_slowly() {
    let all = |netem: &str| -> f64 {
        let mut arrivals = send(netem, 4, 20_000).delivered();
        arrivals.sort_unstable();
        let delay: Vec<f64> = arrivals
            .iter()
            .map(|(number, at)| (at - EPOCH) as f64 - f64::from(*number) * 1e6)
            .collect();
        let mean = delay.iter().sum::<f64>() / delay.len() as f64;
        let var = delay.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>();
        delay.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / var
    };
    assert!(all("delay 100ms 20ms").abs() < 0.03);
    assert!((all("delay 100ms 20ms 60%") - 0.6).abs() < 0.03);
}

#[test]
fn reordered_packets_overtake_by_the_gap() {
    // Every fifth packet exactly: four with delay, then one without.
    let log = send("delay 10ms reorder 100% gap 5", 1, 20);
    let early: Vec<u32> = log
        .delivered()
        .iter()
        .filter(|(number, at)| *at == EPOCH + Nanos::from(*number) * MILLISECOND)
        .map(|(number, _)| *number)
        .collect();
    assert_eq!(early, [4, 9, 14, 19]);
    let n = 50_000;
    let log = send("delay 10ms reorder 25%", 1, n);
    let early = log
        .delivered()
        .iter()
        .filter(|(number, at)| *at == EPOCH + Nanos::from(*number) * MILLISECOND)
        .count();
    assert!((early as f64 / f64::from(n) - 0.25).abs() < margin(0.25, n));
}

#[test]
fn one_purpose_does_not_disturb_another() {
    let n = 5_000;
    let plain = lost(&send("loss 5%", 11, n));
    // The queue's draws, jitter, corruption and reordering leave the losses as they are.
    assert_eq!(plain, lost(&send("delay 20ms 5ms loss 5% corrupt 10% reorder 10%", 11, n)));
    assert_eq!(plain, lost(&send_through("loss 5%", "pie", 11, n)));
    assert_ne!(plain, lost(&send("loss 5%", 12, n)));
    assert_eq!(send("delay 20ms 5ms loss 5%", 11, n).0, send("delay 20ms 5ms loss 5%", 11, n).0);
    // More loss loses what less loss lost: runs that differ in it are paired.
    let more = lost(&send("loss 6%", 11, n));
    assert!(plain.iter().all(|number| more.contains(number)));
}

#[test]
fn the_queue_holds_no_packet_of_the_wire() {
    let mut log = Log::default();
    let mut link = link(&params(0, "delay 1s", "pfifo limit 1"), 1);
    for number in 0..1000 {
        link.offer(EPOCH + Nanos::from(number) * MICROSECOND, Frame::new(number, 100), &mut log);
    }
    assert_eq!((link.in_flight(), link.backlog().packets), (1000, 0));
    drain(&mut link, &mut log);
    assert_eq!(log.delivered().len(), 1000);
}
