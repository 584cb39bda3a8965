//! Exact times: a fraction of a nanosecond is carried from one transmission to the next.

use crate::common::{Drive, Frame, Log, drain, link, params, run, station};
use proptest::prelude::*;
use sojourn_link::{Link, Stamped};
use sojourn_units::{EPOCH, Nanos, Rate, SECOND};

const GBIT: u64 = 1_000_000_000;
const QUEUE: &str = "pfifo limit 100000";

/// Rates from 1 kbit/s to 1.6 Tbit/s, most of which divide nothing.
fn rates() -> impl Strategy<Value = u64> {
    prop_oneof![
        (10u32..41, any::<u64>()).prop_map(|(size, bits)| (bits >> (64 - size)).max(1000)),
        prop::sample::select(vec![
            10 * GBIT,
            100 * GBIT,
            400 * GBIT,
            1600 * GBIT,
            1_599_999_999_989
        ]),
    ]
}

/// Lengths of frames: all equal, or mixed.
fn sizes() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        (1u32..10_000, 1usize..400).prop_map(|(bytes, count)| vec![bytes; count]),
        prop::collection::vec(prop_oneof![Just(64u32), Just(1514), 1u32..10_000], 1..400),
    ]
}

fn offer(link: &mut (impl Drive + ?Sized), sizes: &[u32], log: &mut Log) {
    for (i, &bytes) in sizes.iter().enumerate() {
        link.send(EPOCH, Frame::new(i as u32, bytes), log);
    }
}

/// Bits times nanoseconds per second, exactly.
fn work(bytes: u32) -> u128 {
    u128::from(bytes) * u128::from(8 * SECOND)
}

/// The exact ends of transmissions that follow each other, rounded up.
fn ends(rate: u64, sizes: &[u32]) -> Vec<(u32, Nanos)> {
    let mut sum = 0;
    let end = |(i, &bytes): (usize, &u32)| {
        sum += work(bytes);
        (i as u32, EPOCH + sum.div_ceil(rate.into()) as Nanos)
    };
    sizes.iter().enumerate().map(end).collect()
}

fn delivered(mut link: impl Drive, sizes: &[u32]) -> Vec<(u32, Nanos)> {
    let mut log = Log::default();
    offer(&mut link, sizes, &mut log);
    drain(&mut link, &mut log);
    log.delivered()
}

#[test]
fn several_frames_leave_in_one_nanosecond_and_in_order() {
    // 64 bytes take 0.32 ns.
    let times = delivered(link(&params(1600 * GBIT, "", QUEUE), 1), &[64; 25]);
    let offsets: Vec<_> = times.iter().map(|(_, at)| at - EPOCH).collect();
    assert_eq!(offsets[..10], [1, 1, 1, 2, 2, 2, 3, 3, 3, 4]);
    assert_eq!(offsets[24], 8);
    assert!(times.iter().map(|(number, _)| *number).eq(0..25));
}

#[test]
fn short_frames_fill_fast_links() {
    for gbit in [10, 25, 100, 400, 800, 1600] {
        let times = delivered(link(&params(gbit * GBIT, "", QUEUE), 1), &vec![64; 100_000]);
        let lasts = times[99_999].1 - EPOCH;
        assert_eq!(lasts, 51_200_000 / gbit, "{gbit} Gbit/s");
    }
}

#[test]
fn an_idle_link_begins_anew_and_is_busy_for_the_exact_time() {
    // 1000 bytes take 0.088... ns, one frame every 8 us: a share of 1/90 000.
    let mut link = link(&params(90_000 * GBIT, "", QUEUE), 1);
    let (mut log, start) = (Log::default(), link.capacity(EPOCH));
    for number in 0..9000u32 {
        let now = EPOCH + u64::from(number) * 8000;
        run(&mut link, now, &mut log);
        link.send(now, Frame::new(number, 1000), &mut log);
    }
    drain(&mut link, &mut log);
    assert!(log.delivered().iter().all(|(number, at)| at - EPOCH == u64::from(*number) * 8000 + 1));
    let end = EPOCH + 9000 * 8000;
    let busy = link.busy(end) as f64 - link.rounding(end);
    assert!((busy / 72e6 - 1.0 / 90_000.0).abs() < 1e-15, "{busy}");
    assert_eq!((link.capacity(end) - start).used, 9000 * work(1000));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_nth_frame_ends_at_the_exact_sum(rate in rates(), sizes in sizes(), ring in 0u32..4) {
        let (params, expected) = (params(rate, "", QUEUE), ends(rate, &sizes));
        prop_assert_eq!(&delivered(link(&params, 1), &sizes), &expected);
        prop_assert_eq!(&delivered(station(&params, ring, 1), &sizes), &expected);
    }

    #[test]
    fn overhead_and_cells_are_exact(rate in rates(), sizes in sizes(), overhead in 0i32..60) {
        let mut params = params(rate, "", QUEUE);
        params.overhead = overhead;
        let longer: Vec<_> = sizes.iter().map(|bytes| bytes + overhead as u32).collect();
        prop_assert_eq!(delivered(link(&params, 1), &sizes), ends(rate, &longer));
    }

    #[test]
    fn a_chain_of_equal_links_loses_no_time(rate in rates(), sizes in sizes()) {
        let params = params(rate, "", QUEUE);
        // Frames of one length leave each further link a frame later.
        let sizes = vec![sizes[0]; sizes.len()];
        let mut expected = delivered(link(&params, 1), &sizes);
        for hops in 2..5u32 {
            let (mut link, mut log) = (link(&params, 1), Log::default());
            for (number, at) in expected {
                run(&mut link, at, &mut log);
                link.send(at, Frame::new(number, sizes[0]), &mut log);
            }
            drain(&mut link, &mut log);
            expected = log.delivered();
            let exact = (work(sizes[0]) * (sizes.len() as u128 + u128::from(hops) - 1)).div_ceil(rate.into());
            let last = u128::from(expected[expected.len() - 1].1 - EPOCH);
            prop_assert!(last >= exact - 1 && last < exact + u128::from(hops), "{last}, {exact}");
        }
    }

    /// A frame in transmission ends at the old rate, and the next one follows exactly.
    #[test]
    fn changes_in_mid_packet_are_exact(
        sizes in sizes(),
        steps in prop::collection::vec((rates(), 0u64..2000), 1..20),
        first in rates(),
    ) {
        let mut config = params(first, "", QUEUE);
        let (mut link, mut log) = (link(&config, 1), Log::default());
        offer(&mut link, &sizes, &mut log);
        let (mut now, mut rates) = (EPOCH, vec![(EPOCH, first)]);
        let start = link.capacity(EPOCH);
        for (rate, gap) in steps {
            now += gap + 1;
            config.rate = Rate::new(rate);
            run(&mut link, now - 1, &mut log);
            link.set_wire(now, &config, &mut log);
            rates.push((now, rate));
        }
        drain(&mut link, &mut log);
        let mut sum = 0.0;
        for (&(_, begin), (&(_, end), bytes)) in
            log.departed().iter().zip(log.delivered().iter().zip(&sizes))
        {
            prop_assert!((begin - EPOCH) as f64 - sum >= -2e-2 - sum * 1e-12);
            prop_assert!((begin - EPOCH) as f64 - sum < 1.0 + 2e-2 + sum * 1e-12);
            let rate = rates.iter().rev().find(|(at, _)| *at <= begin).unwrap().1;
            sum += work(*bytes) as f64 / rate as f64;
            let late = (end - EPOCH) as f64 - sum;
            prop_assert!(late > -2e-2 - sum * 1e-12 && late < 1.0 + 2e-2 + sum * 1e-12, "{late}");
        }
        let end = log.delivered().last().unwrap().1.max(now);
        let since = link.capacity(end) - start;
        prop_assert_eq!(since.used, sizes.iter().map(|bytes| work(*bytes)).sum::<u128>());
        prop_assert!(since.used <= since.offered);
    }

    /// The closed form has the same events, at any load.
    #[test]
    fn the_closed_form_is_exact(
        rate in rates(), delay in 0u64..3, sizes in sizes(), load in 1u64..20, ahead in 0usize..30,
    ) {
        let mut config = params(rate, "", QUEUE);
        config.delay = delay;
        let mut sum = 0u128;
        let frames: Vec<_> = sizes.iter().enumerate().map(|(i, &bytes)| {
            sum += work(bytes) * u128::from(load) / 10;
            Frame { at: EPOCH + (sum / u128::from(rate)) as Nanos, ..Frame::new(i as u32, bytes) }
        }).collect();
        let (mut events, mut log) = (link(&config, 1), Log::default());
        for frame in &frames {
            run(&mut events, frame.at, &mut log);
            events.send(frame.at, frame.clone(), &mut log);
        }
        let (mut closed, mut seen): (Link<Frame>, _) = (link(&config, 1), Log::default());
        closed.go_direct(None);
        for (i, frame) in frames.iter().enumerate() {
            let announced = if i < ahead { Some(closed.announce(frame.clone())) } else { None };
            let end = announced.or_else(|| closed.bring(frame.comes_at(), frame.clone(), &mut seen));
            prop_assert!(end.unwrap() >= frame.at + delay);
        }
        let now = frames[frames.len() - 1].at;
        closed.book(now, &mut seen);
        while closed.take(now, &mut seen).is_some() {}
        let used = |link: &Link<Frame>| (link.busy(now), link.transmitted(now), link.rounding(now).to_bits());
        run(&mut events, now, &mut log);
        prop_assert_eq!(used(&closed), used(&events));
        closed.leave_direct(now, &mut seen);
        drain(&mut events, &mut log);
        drain(&mut closed, &mut seen);
        prop_assert_eq!(closed.stats(), events.stats());
        prop_assert_eq!(seen.departed(), log.departed());
        prop_assert_eq!(seen.delivered(), log.delivered());
    }
}
