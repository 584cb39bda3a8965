//! Tests of `tbf` against Linux's `sch_tbf.c`.

use crate::common::{Bench, Dice, Frame, Kept};
use proptest::prelude::*;
use sojourn_queue::tbf::Constants;
use sojourn_queue::{
    Call, Dequeue, Device, Discipline, DropReason, Ecn, NoKernelEquivalent, Params, Return, View,
};
use sojourn_units::{EPOCH, MILLISECOND, Nanos, SECOND};

const MS: Nanos = MILLISECOND;

fn constants(text: &str) -> Constants {
    match Params::parse(text, &Device::default()) {
        Ok(Params::Tbf(params)) => params.constants(),
        other => panic!("{text}: {other:?}"),
    }
}

fn error(text: &str) -> String {
    Params::parse(text, &Device::default()).unwrap_err().to_string()
}

/// Takes all packets that may leave up to `until`, each as early as possible; returns times and
/// packets.
fn drain(bench: &mut Bench, until: Nanos) -> Vec<(Nanos, Frame)> {
    let mut left = Vec::new();
    loop {
        match bench.take() {
            Some(frame) => left.push((bench.now, frame)),
            None => match bench.not_before {
                Some(time) if time <= until => bench.wait(time - bench.now),
                _ => return left,
            },
        }
    }
}

#[test]
fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
    // The transmission of 1000 bytes takes a millisecond.
    let mut bench = Bench::new("tbf rate 8mbit burst 5000 limit 100000");
    (0..10).for_each(|_| _ = bench.arrive(1000));
    let times: Vec<_> =
        drain(&mut bench, EPOCH + SECOND).iter().map(|(at, _)| at - EPOCH).collect();
    assert_eq!(times, [0, 0, 0, 0, 0, MS, 2 * MS, 3 * MS, 4 * MS, 5 * MS]);
    assert_eq!(bench.counter("overlimits"), 5);
    // An idle time fills the bucket to its depth.
    bench.wait(100 * MS);
    (0..10).for_each(|_| _ = bench.arrive(1000));
    let now = bench.now;
    let burst = drain(&mut bench, now).len();
    assert_eq!(burst, 5);
}

#[test]
fn the_peak_rate_spreads_bursts() {
    let mut bench = Bench::new("tbf rate 8mbit burst 5000 limit 100000 peakrate 16mbit mtu 1000");
    (0..10).for_each(|_| _ = bench.arrive(1000));
    let times: Vec<_> =
        drain(&mut bench, EPOCH + SECOND).iter().map(|(at, _)| at - EPOCH).collect();
    // Packets leave at distances of half a millisecond while the bucket has tokens, then of a
    // millisecond.
    let half = MS / 2;
    let expected = [0, half, MS, 3 * half, 2 * MS, 5 * half, 3 * MS, 7 * half, 4 * MS, 5 * MS];
    assert_eq!(times, expected);
    assert_eq!(bench.state("ptokens"), 0);
}

#[test]
fn packets_larger_than_the_bucket_are_dropped() {
    let mut bench = Bench::new("tbf rate 8mbit burst 5000 limit 3000 peakrate 16mbit mtu 1000");
    assert_eq!(bench.arrive(1001), Return::Drop);
    assert_eq!(bench.arrive(1000), Return::Success);
    assert_eq!((bench.counter("drops"), bench.counter("packets")), (1, 0));
    let warnings = |text| Params::warnings(text, &Device::default());
    assert!(warnings("tbf rate 8mbit burst 1514 limit 3000").is_empty());
    assert!(warnings("tbf rate 8mbit burst 1513 limit 3000")[0].contains("longer than 1513 bytes"));
}

#[test]
fn a_full_queue_drops_the_new_packet() {
    let mut bench = Bench::new("tbf rate 8kbit burst 2000 limit 3000");
    let given = [1000, 1000, 1000, 1, 1000].map(|len| bench.arrive(len));
    assert_eq!(given[..3], [Return::Success; 3]);
    assert_eq!(given[3..], [Return::Drop; 2]);
    assert!(
        bench.kept.dropped.iter().all(|(_, why, queued)| *why == DropReason::Overflow && !queued)
    );
}

/// A change fills the buckets, and a lower limit drops no packet.
#[test]
fn a_change_states_all_anew() {
    let mut bench =
        Bench::new("tbf rate 8mbit burst 2000 limit 9000 peakrate 16mbit mtu 1600 overhead 9");
    (0..5).for_each(|_| _ = bench.arrive(1000));
    drain(&mut bench, EPOCH);
    bench.change("tbf rate 16mbit burst 3000 limit 1000");
    assert_eq!((bench.state("tokens"), bench.state("ptokens")), (1_500_000, 0));
    assert_eq!(bench.queue.packets(), 4);
    assert_eq!(bench.arrive(1000), Return::Drop, "while full");
    assert_eq!(drain(&mut bench, EPOCH).len(), 3);
    let params = bench.params.to_text();
    assert_eq!(params, "tbf rate 16mbit burst 3000 limit 1000 overhead 0 mpu 0");
    let missing = bench.params.change("tbf rate 9mbit", &Device::default()).unwrap_err();
    assert_eq!(missing.to_string(), "`tbf` needs `burst`, such as `burst 16kb`");
}

/// No packet fits a limit of 0 bytes, which `tc` rejects.
#[test]
fn nothing_fits_a_limit_of_zero() {
    let Ok(Params::Tbf(mut params)) =
        Params::parse("tbf rate 8mbit burst 5000 limit 1", &Device::default())
    else {
        panic!()
    };
    params.limit = 0;
    let mut queue = Params::Tbf(params).build::<Frame>(EPOCH);
    let (mut dice, mut kept) = (Dice::new(1), Kept::default());
    let mut call = Call { now: EPOCH, draws: &mut dice, sink: &mut kept };
    assert_eq!(queue.enqueue(Frame::new(0, 1), &mut call), Return::Drop);
    assert_eq!(queue.dequeue(&mut call), Dequeue::Empty);
    assert_eq!(queue.wake_up(), None);
}

#[test]
fn words_are_those_of_tc() {
    let one =
        constants("tbf rate 5mbit burst 6kb latency 50ms peakrate 10mbit mtu 1600 linklayer adsl");
    let other = constants(
        "tbf rate 5mbit buffer 6kb limit 9kb peakrate 10mbit minburst 1600 linklayer atm",
    );
    assert_eq!(one, other);
    assert_eq!(constants("tbf rate 5mbit maxburst 6kb limit 9kb").buffer, 9_830_400);
    let limit = |text: &str| Params::parse(text, &Device::default()).unwrap().limit().unwrap().1;
    // The limit is the bytes that the rate sends during the latency, plus the bucket.
    assert_eq!(limit("tbf rate 8mbit burst 5000 latency 50ms"), 55_000);
    assert_eq!(limit("tbf rate 8mbit burst 50000 latency 50ms peakrate 9mbit mtu 2000"), 58_250);
    for (text, message) in [
        ("tbf", "`tbf` needs `rate`, such as `rate 10mbit`"),
        ("tbf rate 1mbit limit 9kb", "`tbf` needs `burst`, such as `burst 16kb`"),
        ("tbf rate 1mbit burst 9kb", "`tbf` needs `limit` or `latency`, such as `latency 50ms`"),
        ("tbf rate 7bit burst 9kb limit 9kb", "`rate` must be at least a byte a second"),
        ("tbf rate 1mbit burst 0b limit 9kb", "`burst` must be above 0"),
        ("tbf rate 1mbit burst 9kb limit 0b", "`limit` must be above 0"),
        ("tbf rate 1mbit burst 9kb latency 1ns", "`latency` must be above 0"),
        (
            "tbf rate 1mbit burst 9kb buffer 9kb limit 9kb",
            "`buffer` and `burst` are the same parameter; remove one",
        ),
        (
            "tbf rate 1mbit burst 9kb limit 9kb latency 1ms",
            "`limit` and `latency` exclude each other",
        ),
        (
            "tbf rate 9mbit burst 9kb limit 9kb peakrate 9mbit mtu 2kb",
            "`peakrate` must be above `rate`",
        ),
        (
            "tbf rate 9mbit burst 9kb limit 9kb peakrate 10mbit",
            "`peakrate` needs `mtu`, such as `mtu 1600`",
        ),
        (
            "tbf rate 9gbit burst 9kb latency 9s",
            "`latency` is too long: the resulting limit must be below 4gb",
        ),
        ("tbf rate 9mbit burst 9kb child", "`child` needs a value"),
        ("tbf rate 9mbit burst 9kb child codle", "unknown queue `codle`: did you mean `codel`?"),
    ] {
        assert_eq!(error(text), message, "{text}");
    }
    let text = "tbf rate 9mbit burst 9kb child fq_codel   limt 9p";
    let error = Params::parse(text, &Device::default()).unwrap_err();
    assert_eq!(&text[error.at], "limt");
    let tc = Params::parse("tbf rate 9mbit burst 9kb limit 9kb linklayer atm", &Device::default());
    let tc = tc.unwrap().to_tc();
    assert_eq!(tc.unwrap(), "tbf rate 9mbit burst 9216 limit 9216 overhead 0 mpu 0 linklayer atm");
}

mod child {
    use super::*;

    fn params(text: &str) -> Params {
        Params::parse(text, &Device::default()).unwrap()
    }

    #[test]
    fn all_that_follows_describes_it() {
        let text =
            "tbf rate 9mbit burst 9kb child tbf rate 5mbit burst 4kb child codel limit 7p ecn";
        let outer = params(text);
        assert_eq!(outer.limit(), params("codel limit 7p ecn").limit());
        assert_eq!(params(&outer.to_text()), outer);
        let json = serde_json::to_string(&outer).unwrap();
        assert_eq!(serde_json::from_str::<Params>(&json).unwrap(), outer);
        assert!(matches!(outer.to_tc(), Err(NoKernelEquivalent { .. })));
    }

    /// A change of TBF keeps the child, except for the limit of a FIFO. A change that names the
    /// child changes it, but not its discipline.
    #[test]
    fn a_change_may_name_it() {
        let device = Device::default();
        let before = params("tbf rate 9mbit burst 9kb child codel limit 7p ecn");
        let kept = before.change("tbf rate 5mbit burst 4kb", &device).unwrap();
        assert_eq!(kept, params("tbf rate 5mbit burst 4kb child codel limit 7p ecn"));
        let changed =
            before.change("tbf rate 5mbit burst 4kb child codel limit 5p", &device).unwrap();
        assert_eq!(changed, params("tbf rate 5mbit burst 4kb child codel limit 5p ecn"));
        let error = before.change("tbf rate 5mbit burst 4kb child pie", &device).unwrap_err();
        assert_eq!(error.to_string(), "`child` cannot be changed into another discipline");
        let fifo = params("tbf rate 9mbit burst 9kb child pfifo limit 7p");
        let changed = fifo.change("tbf rate 9mbit burst 9kb limit 3000", &device).unwrap();
        assert_eq!(changed, params("tbf rate 9mbit burst 9kb limit 3000 child pfifo limit 3000"));
    }

    /// As in Linux, `CoDel` decides about a packet when TBF inspects it, and RED is not notified
    /// that its queue is empty.
    #[test]
    fn it_is_looked_at_as_the_kernel_does() {
        let mut bench =
            Bench::new("tbf rate 8kbit burst 2000 child codel target 1ms interval 10ms");
        (0..4).for_each(|_| _ = bench.arrive(1000));
        bench.take();
        bench.take();
        bench.wait(5 * MS);
        assert!(bench.take().is_none() && bench.not_before.is_some());
        let judged = bench.state("ldelay");
        assert_eq!(judged, 5 * 1_000_000 / 1024);
        bench.wait(10 * MS);
        assert!(bench.take().is_none());
        assert_eq!(bench.state("ldelay"), judged, "it waits next to the queue, after the decision");
        assert_eq!(bench.queue.packets(), 2);
        assert_eq!(bench.queue.enqueued_at(0), Some(EPOCH));

        let red = "red limit 60000 min 5000 max 15000 avpkt 1000 burst 8 probability 0.02";
        let mut bare = Bench::new(red);
        let mut bench = Bench::new(&format!("tbf rate 8mbit burst 5000 child {red}"));
        for bench in [&mut bare, &mut bench] {
            bench.arrive(1000);
            bench.take();
            bench.wait(MS);
            bench.take();
        }
        assert!(bare.state("qidlestart") > 0);
        assert_eq!(bench.state("qidlestart"), 0);
    }

    #[test]
    fn drops_of_the_child_count() {
        let mut bench =
            Bench::new("tbf rate 8mbit burst 5000 child fq_codel limit 3p flows 4 target 1ms");
        for flow in 0..6 {
            bench.offer(Frame { flow, ecn: Ecn::NotEct, ..Frame::new(0, 1000) });
        }
        assert_eq!(bench.counter("drops"), bench.kept.dropped.len() as u64);
        assert_eq!(bench.counter("drop_overlimit"), bench.counter("drops"));
        assert_eq!((bench.counter("qlen"), bench.counter("backlog")), (3, 3000));
    }

    /// With a shaper in a shaper, the slower one determines the rate.
    #[test]
    fn it_may_be_a_shaper() {
        let mut bench = Bench::new(
            "tbf rate 80mbit burst 9000 child cake bandwidth 8mbit besteffort flowblind",
        );
        (0..5).for_each(|_| _ = bench.arrive(1000));
        let times: Vec<_> =
            drain(&mut bench, EPOCH + SECOND).iter().map(|(at, _)| (at - EPOCH) / MS).collect();
        assert_eq!(times, [0, 1, 2, 3, 4]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any arrivals and any times of `dequeue`: the bytes of any period are at most the rate
    /// times the period plus a burst, a packet that waits leaves at the announced time, and packets
    /// leave in the order of arrival.
    #[test]
    fn no_span_carries_more_than_rate_and_burst(
        kbit in 50u64..5_000,
        burst in 1_514u32..20_000,
        peak in prop::option::of((1u64..4, 1_514u32..4_000)),
        (overhead, mpu, atm) in (0u16..60, 0u16..100, any::<bool>()),
        waits in prop::collection::vec((0u64..40_000_000, 40u32..1_515), 1..150),
    ) {
        let peak = peak.map(|(times, mtu)| (kbit * (times + 1), mtu));
        let text = [
            format!("tbf rate {kbit}kbit burst {burst} limit 60000 overhead {overhead} mpu {mpu}"),
            peak.map_or(String::new(), |(rate, mtu)| format!(" peakrate {rate}kbit mtu {mtu}")),
            if atm { " linklayer atm".to_owned() } else { String::new() },
        ]
        .concat();
        let constants = constants(&text);
        let mut bench = Bench::new(&text);
        let mut left: Vec<(Nanos, Frame)> = Vec::new();
        for (wait, len) in waits {
            bench.arrive(len);
            let until = bench.now + wait;
            left.extend(drain(&mut bench, until));
            bench.wait(until.saturating_sub(bench.now));
        }
        prop_assert!(left.is_sorted_by_key(|(_, frame)| frame.id));
        for (speed, depth) in [(Some(constants.rate), constants.buffer), (constants.peak, constants.mtu)] {
            let Some(speed) = speed else { continue };
            for (first, (begin, _)) in left.iter().enumerate() {
                let mut used = 0;
                for (end, frame) in &left[first..] {
                    used += speed.time(frame.len);
                    prop_assert!(used <= end - begin + depth as u64, "{used} in {}", end - begin);
                }
            }
        }
    }

    /// The tokens follow section 15 of the recordings' rules, computed with wider numbers.
    #[test]
    fn tokens_are_those_of_the_rules(
        kbit in 1u64..100_000,
        burst in 1_514u32..200_000,
        steps in prop::collection::vec((prop_oneof![0u64..30_000_000, 0u64..9_000_000_000], 40u32..1_515), 1..60),
    ) {
        let text = format!("tbf rate {kbit}kbit burst {burst} limit 4000000");
        let constants = constants(&text);
        let mut bench = Bench::new(&text);
        let (mut tokens, mut checked) = (i128::from(constants.buffer), EPOCH);
        let mut waiting = std::collections::VecDeque::new();
        for (wait, len) in steps {
            bench.wait(wait);
            bench.arrive(len);
            waiting.push_back(len);
            let depth = i128::from(constants.buffer);
            let length = waiting[0];
            let since = i128::from(bench.now - checked).min(depth);
            let rest = (since + tokens).min(depth) - i128::from(constants.rate.time(length));
            let taken = bench.take().map(|frame| frame.len);
            if rest >= 0 {
                prop_assert_eq!(taken, Some(length));
                (tokens, checked) = (rest, bench.now);
                waiting.pop_front();
            } else {
                prop_assert_eq!(taken, None);
                prop_assert_eq!(bench.queue.wake_up(), Some(bench.now + (-rest) as u64));
            }
            prop_assert_eq!(bench.state("tokens"), tokens);
            prop_assert_eq!(bench.state("t_c"), i128::from(checked));
        }
    }
}
