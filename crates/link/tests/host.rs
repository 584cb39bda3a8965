//! A late host: grain of timers, late wake-ups, stalls.

use crate::common::{Drive, Frame, Log, all_queues, drain, link, params, run, station};
use proptest::prelude::*;
use sojourn_link::{Event, Station, host};
use sojourn_units::{EPOCH, MICROSECOND, MILLISECOND, Nanos, SECOND};

const GBIT: u64 = 1_000_000_000;
/// A frame of full length.
const LENGTH: u32 = 1514;
/// Nanoseconds of a full frame at 1 Gbit/s.
const SENDING: Nanos = 12_112;
/// Rate of the shapers in bit/s.
const RATE: u64 = 900_000_000;

fn late(queue: &str, ring: u32, host: &str) -> Station<Frame> {
    let params = params(GBIT, "", queue);
    station(&params, ring, 1).with_host(&host::Params::parse(host).unwrap())
}

fn htb(burst: u64) -> String {
    let words = format!("rate {RATE}bit burst {burst} cburst {burst}");
    format!("htb default 1; class 1:1 parent 1: {words}; qdisc parent 1:1 pfifo limit 1000000p")
}

fn tbf(burst: u64) -> String {
    format!("tbf rate {RATE}bit burst {burst} limit 1000000000")
}

/// Offers `frames` frames at once. Returns their times of departure.
fn backlog(station: &mut Station<Frame>, frames: u32) -> Vec<Nanos> {
    let mut log = Log::default();
    for number in 0..frames {
        Drive::send(station, EPOCH, Frame::new(number, LENGTH), &mut log);
    }
    drain(station, &mut log);
    log.departed().into_iter().map(|(_, at)| at - EPOCH).collect()
}

/// Returns the rate in bit/s at which a backlog leaves.
fn goodput(queue: &str, ring: u32, host: &str) -> f64 {
    let departures = backlog(&mut late(queue, ring, host), 20_000);
    // The first 1000 frames are excluded, since the bucket was full at the beginning.
    let (first, last) = (departures[1000], departures[departures.len() - 1]);
    let bits = (departures.len() - 1001) as f64 * f64::from(LENGTH) * 8.0;
    bits * SECOND as f64 / (last - first) as f64
}

fn near(found: f64, expected: f64, margin: f64) {
    assert!((found / expected - 1.0).abs() <= margin, "{found}, expected {expected}");
}

#[test]
fn a_host_that_is_never_late_changes_nothing() {
    for queue in all_queues() {
        let params = params(10_000_000, "delay 1ms", &queue);
        let (mut plain, mut log) = (link(&params, 3), Log::default());
        let mut hosted = station(&params, 0, 3).with_host(&host::Params::parse("rx 5").unwrap());
        let mut of_hosted = Log::default();
        for number in 0..400 {
            let at = EPOCH + u64::from(number / 7) * 6 * MILLISECOND;
            run(&mut plain, at, &mut log);
            run(&mut hosted, at, &mut of_hosted);
            Drive::send(&mut plain, at, Frame::new(number, LENGTH), &mut log);
            Drive::send(&mut hosted, at, Frame::new(number, LENGTH), &mut of_hosted);
        }
        drain(&mut plain, &mut log);
        drain(&mut hosted, &mut of_hosted);
        assert_eq!(log.0, of_hosted.0, "{queue}");
    }
}

/// A shaper whose bucket holds the tokens of a tick loses no capacity. The loss of a smaller bucket
/// depends on the device too: a ring takes the packets of the whole bucket at once, and no further
/// packet before the next tick.
#[test]
fn a_bucket_must_hold_what_a_tick_brings() {
    // The rate is 112500 bytes per millisecond.
    for ring in [0, 256] {
        // The tolerance is the tick in which the backlog ends.
        near(goodput(&tbf(115_000), ring, "grain 1ms"), RATE as f64, 0.004);
    }
    near(goodput(&htb(115_000), 256, "grain 1ms"), RATE as f64, 0.004);
    let per_tick = (30_000 / LENGTH * LENGTH) as f64 / 112_500.0;
    near(goodput(&tbf(30_000), 256, "grain 1ms"), RATE as f64 * per_tick, 0.02);
    // Without a ring the queue is also asked at the end of each transmission.
    let asked = goodput(&tbf(30_000), 0, "grain 1ms") / RATE as f64;
    assert!((0.8..0.95).contains(&asked), "{asked}");
}

/// From a device whose ring takes a whole burst, a bucket of B bytes with packets of P bytes sends
/// B bytes in each P/r + L, if wake-ups are late by L: at the rate r if B is at least P + r L, else
/// at r B / (P + r L).
#[test]
fn late_wakeups_cost_what_does_not_fit_the_bucket() {
    let lost_per = |late: Nanos| RATE as f64 / 8.0 * late as f64 / SECOND as f64;
    for late in [50, 200, 1000] {
        let host = format!("late {late}us");
        let full = lost_per(late * MICROSECOND) + f64::from(LENGTH);
        for packets in [1.0, 3.0, 10.0, 60.0] {
            let burst = packets * f64::from(LENGTH);
            let expected = (burst / full).min(1.0) * RATE as f64;
            near(goodput(&tbf(burst.ceil() as u64), 256, &host), expected, 0.01);
        }
    }
}

/// `htb` sends while its tokens are not below 0, so one packet more than the bucket holds.
#[test]
fn htb_goes_below_zero_once_a_wakeup() {
    let late = 200.0 * 112.5; // bytes in 200 us
    for burst in [1600, 5000, 16_000, 23_000] {
        let tokens = f64::from(burst).min(late);
        let sent = ((tokens / f64::from(LENGTH)).floor() + 1.0) * f64::from(LENGTH);
        let expected = (sent / (sent - tokens + late)).min(1.0) * RATE as f64;
        near(goodput(&htb(burst as u64), 256, "late 200us"), expected, 0.01);
    }
}

/// Linux 7.3 with HZ 100 and `highres=off`, in virtual time: a veth device whose sender's socket is always
/// full, measured over a second. Kbit/s of frames at 900 Mbit/s by `burst`: `tbf` 3634 (5000 bytes) and 89629
/// (112500), `htb` 4845 and 90840, which are 3, 74, 4 and 75 packets a tick.
#[test]
fn a_tick_brings_as_many_packets_as_in_linux() {
    for (queue, burst, packets) in [
        (tbf as fn(u64) -> String, 5000, 3),
        (tbf, 112_500, 74),
        (htb, 5000, 4),
        (htb, 112_500, 75),
    ] {
        let departures = backlog(&mut late(&queue(burst), 1000, "grain 10ms"), 1000);
        let ticks = departures.chunk_by(|a, b| a == b).skip(1);
        let full: Vec<_> =
            ticks.filter(|tick| tick[0] < departures[departures.len() - 1]).collect();
        assert!(full.len() > 10, "{}", full.len());
        for tick in full {
            assert_eq!((tick.len(), tick[0] % (10 * MILLISECOND)), (packets, 0), "{burst}");
        }
    }
}

/// A packet that comes makes the host ask its queue, even if wake-ups are late.
#[test]
fn an_arrival_makes_the_host_look_at_its_queue() {
    let mut station = late(&tbf(2000), 0, "grain 10ms");
    let mut log = Log::default();
    for number in 0..600 {
        let at = EPOCH + u64::from(number) * 14 * MICROSECOND;
        run(&mut station, at, &mut log);
        Drive::send(&mut station, at, Frame::new(number, LENGTH), &mut log);
    }
    // There are tokens for each packet when it comes, and no tick has passed.
    assert!(log.departed().len() > 590, "{}", log.departed().len());
}

#[test]
fn during_a_stall_the_device_empties_its_ring_and_arrivals_wait() {
    let mut station = late("pfifo limit 1000p", 3, "stall 1ms every 10ms rx 5");
    let mut log = Log::default();
    let mut offer = |station: &mut Station<Frame>, at, numbers: std::ops::Range<u32>| {
        run(station, at, &mut log);
        numbers.for_each(|n| {
            Drive::send(station, at, Frame::new(n, LENGTH), &mut log);
        });
    };
    // When the stall begins, one packet is being sent and three are in the ring.
    let stall = EPOCH + 10 * MILLISECOND;
    offer(&mut station, stall - MICROSECOND, 0..6);
    offer(&mut station, stall, 6..14);
    assert_eq!(station.link().backlog().packets, 2 + 5);
    drain(&mut station, &mut log);
    let departed: Vec<_> = log.departed();
    let at_once = departed.iter().filter(|(_, at)| *at < stall).count();
    assert_eq!(at_once, 4);
    // The packets in the ring are sent during the stall, the others after it.
    let delivered = log.delivered();
    assert_eq!(delivered[3].1, stall - MICROSECOND + 4 * SENDING);
    assert!(departed[4..].iter().all(|(_, at)| *at >= stall + MILLISECOND), "{departed:?}");
    assert_eq!(delivered[4].1, stall + MILLISECOND + SENDING);
    let dropped = log.times(|event| matches!(event, Event::Dropped { queued: false, .. }));
    assert_eq!(dropped, [(11, stall), (12, stall), (13, stall)]);
}

/// After a stall, a shaper of 900 Mbit/s on a line of 1 Gbit/s sends the delayed packets, as far as
/// its bucket has tokens.
#[test]
fn a_stall_costs_what_does_not_fit_the_bucket() {
    let host = "stall 1ms every 20ms";
    near(goodput(&htb(115_000), 256, host), RATE as f64, 0.002);
    let small = goodput(&htb(15_000), 256, host);
    // In each 20 ms, tokens for 112.5 kB less the bucket are lost, and up to one packet more.
    near(small, RATE as f64 * (1.0 - (112.5 - 15.0) / 2250.0), 0.005);
}

proptest! {
    /// A packet that has waited leaves at a tick, or right after another packet. Delays do not
    /// accumulate.
    #[test]
    fn wakeups_come_at_ticks(
        grain in prop::sample::select(vec![100 * MICROSECOND, MILLISECOND, 4 * MILLISECOND]),
        frames in 50..400_u32,
        more in 0..50_000_u64,
        ring in prop::sample::select(vec![0, 1, 64, 1000]),
    ) {
        let depth = RATE / 8 * grain / SECOND + u64::from(LENGTH) + 64 + more;
        let host = format!("grain {grain}ns");
        let departures = backlog(&mut late(&tbf(depth), ring, &host), frames);
        prop_assert_eq!(departures.len(), frames as usize);
        for pair in departures.windows(2) {
            let follows = pair[1] - pair[0] <= SENDING;
            prop_assert!(pair[1] % grain == 0 || follows, "{:?} of {}", pair, grain);
        }
        // Packets leave by the bucket's tokens, then at the rate, at most a tick late after any
        // number of ticks.
        let bytes = u64::from(frames) * u64::from(LENGTH);
        let due = bytes.saturating_sub(depth) * 8 * SECOND / RATE;
        let line = bytes * 8 * SECOND / GBIT;
        let last = departures[departures.len() - 1];
        prop_assert!(last <= due + grain + line.min(depth * 8), "{} is due at {}", last, due);
        prop_assert!(last + SENDING >= due.min(line), "{} is due at {}", last, due);
    }

    /// Every packet that comes is queued, sent or dropped, at every instant.
    #[test]
    fn late_hosts_keep_all_packets(
        queue in prop::sample::select(all_queues()),
        host in prop::sample::select(vec![
            "grain 1ms",
            "late exp(300us)",
            "stall exp(1ms) every exp(3ms)",
            "grain 4ms late pareto2(100us,1.5) stall 500us every uniform(1ms,2ms) rx 7",
        ]),
        ring in 0..6_u32,
        gaps in prop::collection::vec(0..2_000_000_u64, 1..200),
        seed: u64,
    ) {
        let params = params(20_000_000, "delay 1ms", &queue);
        let host = host::Params::parse(host).unwrap();
        let mut station = station(&params, ring, seed).with_host(&host);
        let (mut log, mut at) = (Log::default(), EPOCH);
        for (number, gap) in gaps.iter().enumerate() {
            at += gap;
            run(&mut station, at, &mut log);
            Drive::send(&mut station, at, Frame::new(number as u32, LENGTH), &mut log);
            station.assert_conserved();
        }
        drain(&mut station, &mut log);
        prop_assert!(log.0.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        let ends = |event: &Event| matches!(event, Event::Delivered | Event::Dropped { .. });
        let ended = log.times(ends).len();
        let left = station.link().backlog().packets as usize;
        prop_assert_eq!(ended + left, gaps.len());
        prop_assert_eq!(left, 0);
    }
}

#[test]
fn words_of_a_host() {
    let refused = |text: &str| host::Params::parse(text).unwrap_err();
    assert_eq!(refused("late").found, "late");
    assert!(refused("stall 1ms").message.contains("`every`"));
    assert!(refused("every 1ms").message.contains("`stall`"));
    assert!(refused("grain 2s").message.contains("at most 1s"));
    assert!(refused("late expo(2ms)").message.contains("unknown distribution"));
    assert_eq!(refused("lat 2ms").nearest.as_deref(), Some("late"));
    let parsed = host::Params::parse("grain 4ms late exp(20us)").unwrap();
    assert_eq!(parsed.check(), Ok(()));
    assert!(!parsed.is_punctual());
    let (key, why) = host::Params::parse("stall 2ms every 1ms").unwrap().check().unwrap_err();
    assert_eq!(key, "stall", "{why}");
    let file = host::Params::parse("late measured(a.txt)").unwrap();
    assert_eq!(file.check().unwrap_err().0, "late");
}
