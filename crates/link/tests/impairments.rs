//! The wire's effects on packets, compared with formulas.

use crate::common::{Frame, Log, drain, link, params};
use proptest::prelude::*;
use sojourn_link::Event;
use sojourn_queue::Ecn;
use sojourn_units::{EPOCH, MICROSECOND, MILLISECOND, Nanos};

/// Sends `count` packets, one each millisecond, over an infinitely fast link.
fn send(netem: &str, seed: u64, count: u32) -> Log {
    send_through(netem, "pfifo limit 10", seed, count)
}

fn send_through(netem: &str, queue: &str, seed: u64, count: u32) -> Log {
    let mut log = Log::default();
    let mut link = link(&params(0, netem, queue), seed);
    for number in 0..count {
        link.send(EPOCH + Nanos::from(number) * MILLISECOND, Frame::new(number, 100), &mut log);
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

    // The simple Gilbert model loses all packets in the bad state: bursts of mean length 1/r.
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
    // With weight 1/2 a draw is the mean of two variables and not uniform: values near 0 are much
    // rarer.
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
    // Of a packet that is both duplicated and lost, one copy arrives.
    let log = send("duplicate 100% loss 100%", 8, 100);
    assert_eq!((log.delivered().len(), lost(&log).len()), (100, 100));
}

#[test]
fn corruption_is_reported_with_entropy() {
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
    // The queue's draws, jitter, corruption and reordering do not change the losses.
    assert_eq!(plain, lost(&send("delay 20ms 5ms loss 5% corrupt 10% reorder 10%", 11, n)));
    assert_eq!(plain, lost(&send_through("loss 5%", "pie", 11, n)));
    assert_ne!(plain, lost(&send("loss 5%", 12, n)));
    assert_eq!(send("delay 20ms 5ms loss 5%", 11, n).0, send("delay 20ms 5ms loss 5%", 11, n).0);
    // A higher loss ratio loses all packets that the lower one loses, so runs with different ratios
    // are paired.
    let more = lost(&send("loss 6%", 11, n));
    assert!(plain.iter().all(|number| more.contains(number)));
}

#[test]
fn the_queue_holds_no_packet_of_the_wire() {
    let mut log = Log::default();
    let mut link = link(&params(0, "delay 1s", "pfifo limit 1"), 1);
    for number in 0..1000 {
        link.send(EPOCH + Nanos::from(number) * MICROSECOND, Frame::new(number, 100), &mut log);
    }
    assert_eq!((link.in_flight(), link.backlog().packets), (1000, 0));
    drain(&mut link, &mut log);
    assert_eq!(log.delivered().len(), 1000);
}

/// The long-run ratio of Salsano's four states, from their balance equations.
#[test]
fn the_four_states_have_their_stationary_ratio_and_bursts() {
    let n = 400_000;
    let [p13, p31, p32, p23, p14] = [0.02, 0.25, 0.1, 0.5, 0.01];
    let good = 1.0 / (1.0 + p13 / p31 * (1.0 + p32 / p23) + p14);
    let expected = good * (p13 / p31 + p14);
    let losses = lost(&send("loss state 2% 25% 10% 50% 1%", 5, n));
    let ratio = losses.len() as f64 / f64::from(n);
    // Bursts have 1/p31 losses on average, so the number of bursts, not of packets, gives the
    // interval.
    let widened = margin(expected, n) * (2.0f64 / p31).sqrt();
    assert!((ratio - expected).abs() < widened, "{ratio} for {expected} +- {widened}");

    // With p13 and p31 only, bursts have a mean length of 1/p31. With p14 only, no two losses
    // follow each other.
    let losses = lost(&send("loss state 1% 20%", 6, n));
    let bursts = 1 + losses.windows(2).filter(|w| w[1] != w[0] + 1).count();
    let mean = losses.len() as f64 / bursts as f64;
    assert!((mean - 5.0).abs() < 3.3 * 4.5 / (bursts as f64).sqrt(), "{mean} from {bursts}");
    let ratio = losses.len() as f64 / f64::from(n);
    assert!((ratio - 0.01 / 0.21).abs() < 0.004, "{ratio}");
    let single = lost(&send("loss state 0% 100% 0% 100% 20%", 7, n));
    assert!(single.windows(2).all(|w| w[1] > w[0] + 1));
    let ratio = single.len() as f64 / f64::from(n);
    assert!((ratio - 0.2 / 1.2).abs() < margin(0.2 / 1.2, n), "{ratio}");
}

#[test]
fn ecn_marks_instead_of_losing() {
    let mut log = Log::default();
    let mut link = link(&params(0, "loss 100% ecn", "pfifo limit 10"), 1);
    for number in 0..10 {
        let mut frame = Frame::new(number, 100);
        frame.ecn = if number % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        link.send(EPOCH + Nanos::from(number) * MILLISECOND, frame, &mut log);
    }
    drain(&mut link, &mut log);
    assert_eq!(lost(&log), [1, 3, 5, 7, 9]);
    let marked = log.times(|what| matches!(what, Event::Marked(_)));
    assert_eq!(marked.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
    assert_eq!(log.delivered().len(), 5);
}

/// Arrivals, in ns after the first offer, of packets offered `every` ns.
fn arrivals(netem: &str, every: Nanos, bytes: &[u32]) -> Vec<(u32, Nanos)> {
    let mut log = Log::default();
    let mut link = link(&params(0, netem, "pfifo limit 10"), 1);
    for (number, bytes) in (0..).zip(bytes) {
        link.send(EPOCH + Nanos::from(number) * every, Frame::new(number, *bytes), &mut log);
    }
    drain(&mut link, &mut log);
    log.delivered().iter().map(|(number, at)| (*number, at - EPOCH)).collect()
}

/// `netem_enqueue`: the delay, less what the last packet still waits, then `packet_time_ns`.
#[test]
fn the_wires_rate_is_netems_arithmetic() {
    fn netem(
        delay: i64,
        rate: i64,
        overhead: i64,
        cell: i64,
        cell_overhead: i64,
        every: i64,
        lengths: &[u32],
    ) -> Vec<(u32, Nanos)> {
        let mut last: Option<i64> = None;
        let mut all = Vec::new();
        for (number, length) in (0..).zip(lengths) {
            let (mut now, mut delay) = (i64::from(number) * every, delay);
            if let Some(last) = last.filter(|last| *last > now) {
                delay = (delay - (last - now)).max(0);
                now = last;
            }
            let mut length = i64::from(*length) + overhead;
            if cell > 0 {
                let mut cells = length / cell;
                cells += i64::from(length > cells * cell);
                length = cells * (cell + cell_overhead);
            }
            let sent = now + delay + length * 1_000_000_000 / (rate / 8);
            last = Some(sent);
            all.push((number, sent as Nanos));
        }
        all
    }
    let lengths = [1500, 40, 1500, 1500, 700, 48, 47, 49, 1500, 1500];
    for every in [0, 300_000, 5_000_000] {
        assert_eq!(
            arrivals("delay 10ms rate 8mbit", every as Nanos, &lengths),
            netem(10_000_000, 8_000_000, 0, 0, 0, every, &lengths)
        );
        assert_eq!(
            arrivals("rate 1mbit 20 48 5", every as Nanos, &lengths),
            netem(0, 1_000_000, 20, 48, 5, every, &lengths)
        );
    }
}

#[test]
fn jitter_before_a_rate_does_not_reorder() {
    let numbers = |netem: &str| -> Vec<u32> {
        arrivals(netem, 100_000, &vec![100; 5000]).iter().map(|(number, _)| *number).collect()
    };
    let sorted: Vec<u32> = (0..5000).collect();
    assert_eq!(numbers("delay 20ms 10ms rate 100mbit limit 9999"), sorted);
    assert_eq!(numbers("delay 20ms 10ms keeporder"), sorted);
    assert_ne!(numbers("delay 20ms 10ms"), sorted);
}

#[test]
fn packets_beyond_the_limit_are_lost() {
    // The limit is reached twice: each packet is on the wire for 10 ms, and 20 packets come at 1 ms
    // intervals.
    let log = send("delay 10ms limit 5", 1, 20);
    assert_eq!(lost(&log), [5, 6, 7, 8, 9, 15, 16, 17, 18, 19]);
    // A bottleneck of 100 packets a second that holds three packets.
    let log = send("rate 80kbit limit 3", 1, 30);
    let arrived: Vec<_> = log.delivered().iter().map(|(number, _)| *number).collect();
    assert_eq!(arrived, [0, 1, 2, 10, 20]);
    // If the link has a rate of its own, the limit is checked when the transmission ends.
    let mut log = Log::default();
    let mut link = link(&params(8_000_000, "delay 3ms limit 3", "pfifo limit 100"), 1);
    for number in 0..20 {
        link.send(EPOCH, Frame::new(number, 1000), &mut log);
    }
    drain(&mut link, &mut log);
    assert!(lost(&log).is_empty());
}

/// `netem_dequeue` and `get_slot_next`, computed by hand. Packets come each millisecond. At the
/// packet of 1 ms the slot of 0 ms is over, and the next slot is 10 ms later.
#[test]
fn packets_gather_for_their_slot() {
    const MS: Nanos = MILLISECOND;
    let slots = |netem: &str| -> Vec<(u32, Nanos)> {
        arrivals(netem, MS, &[100; 25]).iter().map(|(n, at)| (*n, at / MS)).collect()
    };
    // The first packet arrives in the first slot, which is open from the beginning.
    let open = slots("slot 10ms packets 1");
    assert_eq!(open[..4], [(0, 0), (1, 10), (2, 20), (3, 30)]);
    let five = slots("slot 10ms packets 5");
    let times: Vec<Nanos> = five.iter().map(|(_, at)| *at).collect();
    assert_eq!(times[..7], [0, 11, 11, 11, 11, 11, 21]);
    assert_eq!(five.iter().map(|(n, _)| *n).collect::<Vec<_>>(), (0..25).collect::<Vec<_>>());
    // A slot of 250 bytes admits three packets of 100 bytes: the third uses the last bytes.
    let bytes = slots("slot 10ms bytes 250");
    assert_eq!(bytes[0], (0, 0));
    let times: Vec<_> = bytes[1..7].iter().map(|(_, at)| *at).collect();
    assert_eq!(times, [11, 11, 11, 21, 21, 21]);
    // No packet is lost or remains, for any times between slots.
    for netem in [
        "slot 1ms 30ms",
        "delay 5ms 3ms slot 2ms 4ms packets 2",
        "slot distribution pareto 5ms 2ms",
        "rate 1mbit slot 3ms",
    ] {
        assert_eq!(slots(netem).len(), 25, "{netem}");
    }
}

proptest! {
    /// A packet is lost exactly if the wire has its maximum of packets, those that wait for a slot
    /// included.
    #[test]
    fn packets_that_wait_for_a_slot_count_towards_the_limit(
        delay in 0..20u32,
        jitter in 0..5u32,
        slot in (1..15u32, 0..15u32, 1..4u32),
        limit in 1..25usize,
        seed in 0..1000u64,
    ) {
        let (least, more, packets) = slot;
        let log = send(
            &format!("delay {delay}ms {}ms slot {least}ms {}ms packets {packets} limit {limit}",
                jitter.min(delay), least + more),
            seed,
            200,
        );
        let (lost, arrived) = (lost(&log), log.delivered());
        for number in 0..200 {
            let now = EPOCH + Nanos::from(number) * MILLISECOND;
            let ahead = arrived.iter().filter(|(other, at)| *other < number && *at > now).count();
            prop_assert!(ahead <= limit);
            prop_assert_eq!(lost.contains(&number), ahead == limit, "packet {}", number);
        }
    }
}

#[test]
fn waiting_packets_arrive_after_slots_are_removed() {
    for netem in ["slot 10ms", "delay 1ms 1ms slot 10ms"] {
        let mut log = Log::default();
        let mut link = link(&params(0, netem, "pfifo limit 10"), 1);
        for number in 0..5 {
            let at = EPOCH + Nanos::from(number) * MILLISECOND;
            link.send(at, Frame::new(number, 100), &mut log);
        }
        let end = EPOCH + 8 * MILLISECOND;
        link.set_wire(end, &params(0, "", "pfifo limit 10"), &mut log);
        drain(&mut link, &mut log);
        let late = log.delivered().iter().filter(|(_, at)| *at == end).count();
        assert!(late >= 3, "{netem}: {late}");
        assert!(log.delivered().windows(2).all(|w| w[0].1 <= w[1].1));
    }
}
