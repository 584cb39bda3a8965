//! Tests of CHOKe against its paper, and of the differences from Linux.
#![allow(clippy::doc_markdown, reason = "CHOKe is a name, not code")]

use crate::common::{Bench, Frame, drops};
use sojourn_queue::{DropReason, Ecn, Return, View};
use std::collections::BTreeMap;

/// Number of fraction bits of the average with `min 20` and a burst of about 30: the weight is
/// 1/16.
const WLOG: u8 = 4;

/// Number of queued packets of each flow.
#[derive(Default)]
struct Queued(BTreeMap<u32, usize>);

impl Queued {
    fn of(&self, flow: u32) -> usize {
        self.0.get(&flow).copied().unwrap_or(0)
    }

    /// Offers a packet, and returns whether it matched.
    fn offer(&mut self, bench: &mut Bench, frame: Frame) -> bool {
        let matched = bench.counter("matched");
        let drops = bench.kept.dropped.len();
        *self.0.entry(frame.flow).or_default() += 1;
        bench.offer(frame);
        for (frame, ..) in &bench.kept.dropped[drops..] {
            *self.0.get_mut(&frame.flow).expect("it was queued") -= 1;
        }
        bench.counter("matched") > matched
    }

    fn take(&mut self, bench: &mut Bench) {
        if let Some(frame) = bench.take() {
            *self.0.get_mut(&frame.flow).expect("it was queued") -= 1;
        }
    }
}

#[test]
fn nothing_is_compared_up_to_min() {
    let mut bench = Bench::new("choke limit 200 min 20 max 60 burst 30 probability 1");
    for _ in 0..5000 {
        if bench.queue.packets() == 20 {
            bench.take();
        }
        bench.arrive(1000);
    }
    assert!(bench.state("qavg") >> WLOG <= 20);
    assert_eq!((bench.dice.calls, bench.kept.dropped.len()), (0, 0));
    assert_eq!(bench.state("qcount"), -1);
}

/// The average counts packets, regardless of their lengths.
#[test]
fn bytes_do_not_matter() {
    let decide = |len: u32| {
        let mut bench = Bench::new("choke limit 100 min 5 max 20 burst 9 probability 0.2");
        for i in 0..4000u32 {
            bench.offer(Frame { flow: i % 7, ..Frame::new(0, len) });
            if i % 3 == 0 {
                bench.take();
            }
        }
        (bench.dropped_ids(), bench.state("qavg"))
    };
    assert_eq!(decide(64), decide(1514));
}

/// If only one flow sends, every arrival matches.
#[test]
fn a_flow_by_itself_always_matches() {
    let mut bench = Bench::new("choke limit 200 min 20 max 60 burst 30");
    while bench.state("qavg") <= 20 << WLOG {
        bench.arrive(1000);
    }
    let queued = bench.queue.packets();
    let matched = bench.counter("matched");
    for i in 1..=10 {
        assert_eq!(bench.arrive(1000), Return::Congestion);
        assert_eq!(bench.counter("matched"), matched + i);
        assert_eq!(bench.queue.packets(), queued - i as usize);
    }
    let pair = &bench.kept.dropped[bench.kept.dropped.len() - 2..];
    assert_eq!((pair[0].1, pair[0].2), (DropReason::Early, true));
    assert_eq!((pair[1].1, pair[1].2), (DropReason::Early, false));
    assert_eq!(pair[1].0.id, bench.next_id - 1);
}

/// An arrival matches with a probability equal to its flow's share of the queue.
#[test]
fn matches_follow_the_share_of_the_queue() {
    let mut bench = Bench::new("choke limit 2000 min 20 max 1900 burst 30 probability 0.001");
    let mut queued = Queued::default();
    let (mut matched, mut expected) = ([0.0; 3], [0.0; 3]);
    for i in 0..60_000u32 {
        // The flows send packets in the ratio 5 : 2 : 1.
        let flow = [0, 0, 1, 0, 0, 1, 0, 2][i as usize % 8];
        let before = (queued.of(flow), bench.queue.packets());
        let hit = queued.offer(&mut bench, Frame { flow, ..Frame::new(0, 1000) });
        if bench.state("qavg") > 20 << WLOG && before.1 > 0 {
            expected[flow as usize] += before.0 as f64 / before.1 as f64;
            matched[flow as usize] += f64::from(u8::from(hit));
        }
        while bench.queue.packets() > 60 {
            queued.take(&mut bench);
        }
    }
    for (found, ideal) in matched.iter().zip(expected) {
        assert!(ideal > 100.0);
        // The tolerance is four standard deviations, plus 2 % because the oldest packet is chosen
        // if three draws hit holes.
        let slack = 4.0 * f64::sqrt(ideal) + 0.02 * ideal;
        assert!((found - ideal).abs() < slack, "{matched:?}, shares give {expected:?}");
    }
}

/// If no flow has two packets in the queue, CHOKe decides as RED: the gaps between early drops are
/// uniform.
#[test]
fn without_matches_it_is_red() {
    let mut bench = Bench::new("choke limit 200 min 10 max 30 burst 20 probability 0.1");
    let mut ids = Vec::new();
    for flow in 0..60_000u32 {
        while bench.queue.packets() > 20 {
            bench.take();
        }
        let before = bench.counter("prob_drop");
        bench.offer(Frame { flow, ..Frame::new(0, 1000) });
        if flow > 3000 && bench.counter("prob_drop") > before {
            ids.push(flow);
        }
    }
    assert_eq!(bench.counter("matched"), 0);
    let gaps: Vec<u32> = ids.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // In the middle of the ramp, p is half of 10 %.
    let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
    assert!((9.8..11.2).contains(&mean), "mean gap {mean}");
    assert!((18..=21).contains(gaps.iter().max().expect("drops")));
}

#[test]
fn ecn_and_harddrop() {
    let fill = |flags: &str, ecn, flows: u32| {
        let text = format!("choke limit 40 min 5 max 10 burst 7 probability 0.5 {flags}");
        let mut bench = Bench::new(&text);
        for i in 0..400u32 {
            bench.offer(Frame { ecn, flow: i % flows, ..Frame::new(0, 1000) });
        }
        let reasons = [DropReason::Early, DropReason::Forced, DropReason::Overflow];
        (
            reasons.map(|r| drops(&bench, r) > 0),
            bench.counter("prob_mark") > 0,
            bench.counter("forced_mark") > 0,
        )
    };
    let none_alike = 1 << 20;
    assert_eq!(fill("", Ecn::Ect0, none_alike), ([true, true, false], false, false));
    assert_eq!(fill("ecn", Ecn::Ect0, none_alike), ([false, false, true], true, true));
    assert_eq!(fill("ecn", Ecn::NotEct, none_alike), ([true, true, false], false, false));
    assert_eq!(fill("ecn harddrop", Ecn::Ect0, none_alike), ([false, true, false], true, false));
    // A match drops both packets, also ECN-capable ones.
    let ([early, ..], ..) = fill("ecn", Ecn::Ect0, 1);
    assert!(early);
}

/// As in Linux, a new CHOKe queue is not idle, while a new RED queue is.
#[test]
fn it_is_not_born_idle() {
    let mut bench = Bench::new("choke limit 40 min 5 max 10 burst 7");
    assert_eq!(bench.state("qidlestart"), 0);
    assert_eq!(bench.take(), None);
    assert_eq!(bench.state("qidlestart"), bench.now.into());
}

/// In Linux the packets of a ring are lost when holes have used up the slots: the tail reaches the
/// head, and the ring counts as empty. This model removes the holes.
#[test]
fn a_ring_full_of_holes_loses_nothing() {
    // Both rings have eight slots. One hole uses up the slots with limit 7, and two holes with
    // limit 6.
    for limit in [7, 6] {
        let text = format!("choke limit {limit} min 2 max 5 burst 4 probability 0.00001 ecn");
        let mut bench = Bench::new(&text);
        let mut queued = Queued::default();
        let mut used_up = 0;
        for i in 0..20_000u32 {
            // Packets that are marked above max fill the ring.
            let flow = i.wrapping_mul(2_654_435_761) >> 29;
            let slots = |bench: &Bench| (bench.state("tail") - bench.state("head")) & 7;
            let (before, packets) = (slots(&bench), bench.queue.packets());
            queued.offer(&mut bench, Frame { flow, ecn: Ecn::Ect0, ..Frame::new(0, 1000) });
            if before == 7 && bench.queue.packets() == packets + 1 {
                used_up += 1;
                assert_eq!(slots(&bench), packets as i128 + 1, "no hole is left");
            }
            assert_eq!(queued.0.values().sum::<usize>(), bench.queue.packets());
            if i % 5 == 0 {
                queued.take(&mut bench);
            }
        }
        assert!(used_up > 20, "limit {limit}: the slots were used up {used_up} times");
        let left = bench.queue.packets();
        (0..left).for_each(|_| queued.take(&mut bench));
        assert_eq!(bench.take(), None);
        assert!(queued.0.values().all(|packets| *packets == 0));
    }
}

/// A lower limit drops only the newest packets for which the smaller ring has no slot.
#[test]
fn a_change_keeps_what_the_ring_holds() {
    let mut bench = Bench::new("choke limit 20 min 5 max 15 burst 9");
    (0..5).for_each(|flow| _ = bench.offer(Frame { flow, ..Frame::new(0, 500) }));
    bench.take();
    assert_eq!(bench.state("head"), 1);
    // The ring still has 32 slots.
    bench.change("choke limit 16 min 5 max 15 burst 9");
    assert_eq!((bench.queue.packets(), bench.state("head")), (4, 1));
    // A ring of four slots holds three packets.
    bench.change("choke limit 3 min 2 max 3 burst 4");
    assert_eq!(bench.dropped_ids(), [4]);
    assert_eq!((bench.state("head"), bench.state("tail")), (0, 3));
    assert_eq!((bench.state("qavg"), bench.state("qcount")), (0, -1));
    assert_eq!(bench.counter("drops"), 1);
    let ids: Vec<u64> = (0..3).filter_map(|_| bench.take()).map(|frame| frame.id).collect();
    assert_eq!(ids, [1, 2, 3]);
}
