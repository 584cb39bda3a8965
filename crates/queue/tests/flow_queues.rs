//! Tests of flow queues with each policy of the buckets, and of the policies' effects.

use crate::common::{Bench, Frame};
use proptest::prelude::*;
use sojourn_queue::{Discipline, DropReason, Ecn, Packet, Return, View};
use sojourn_units::{MILLISECOND, Nanos, SECOND};

const MS: Nanos = MILLISECOND;

/// Every discipline with flow queues, and a time between departures at which its policy drops
/// packets under the load of these tests. PIE needs a longer time, since its probability grows
/// slowly at short delays.
const BUSY: [(&str, Nanos); 3] = [
    ("fq_codel target 5ms interval 20ms", 200_000),
    ("fq_pie target 5ms", 500_000),
    ("fq_cobalt target 5ms interval 20ms blue_threshold 10ms", 200_000),
];

const ALL: [&str; 3] = ["fq_codel", "fq_pie", "fq_cobalt"];

fn offer(bench: &mut Bench, flow: u32, len: u32) -> Return {
    bench.offer(Frame { flow, ..Frame::new(0, len) })
}

/// Returns the bucket, of 1024, that the hash of test frames gives a flow.
fn bucket(flow: u32) -> usize {
    let hash = Frame { flow, ..Frame::new(0, 1) }.flow_hash();
    ((u64::from(hash) * 1024) >> 32) as usize
}

/// Backlogged flows: each step offers packets until each flow has `held` of them in the queue, and
/// takes one packet.
struct Backlogged {
    bench: Bench,
    sizes: Vec<u32>,
    held: u32,
    queued: Vec<u32>,
    sent: Vec<u64>,
    seen: usize,
}

impl Backlogged {
    fn new(text: &str, sizes: &[u32], held: u32) -> Self {
        let count = sizes.len();
        Self {
            bench: Bench::new(text),
            sizes: sizes.to_vec(),
            held,
            queued: vec![0; count],
            sent: vec![0; count],
            seen: 0,
        }
    }

    fn forget_dropped(&mut self) {
        for (frame, _, queued) in &self.bench.kept.dropped[self.seen..] {
            if let (true, Some(count)) = (*queued, self.queued.get_mut(frame.flow as usize)) {
                *count -= 1;
            }
        }
        self.seen = self.bench.kept.dropped.len();
    }

    fn fill(&mut self) {
        for flow in 0..self.sizes.len() {
            // Each step offers at most four packets of a flow, since a policy may drop all of them.
            for _ in 0..4 {
                if self.queued[flow] < self.held {
                    let before = self.bench.kept.dropped.len();
                    offer(&mut self.bench, flow as u32, self.sizes[flow]);
                    let refused =
                        self.bench.kept.dropped[before..].iter().any(|(_, _, queued)| !queued);
                    self.queued[flow] += u32::from(!refused);
                }
            }
        }
        self.forget_dropped();
    }

    fn take(&mut self) -> Frame {
        let frame = self.bench.take().expect("backlogged");
        self.forget_dropped();
        if let Some(sent) = self.sent.get_mut(frame.flow as usize) {
            *sent += u64::from(frame.len);
            self.queued[frame.flow as usize] -= 1;
        }
        frame
    }
}

fn quantum() -> impl Strategy<Value = u32> {
    prop_oneof![Just(256), Just(300), Just(1514), 256u32..6000]
}

/// Small packets and a large quantum may give PIE too little to drop.
#[test]
fn the_policies_drop_under_the_load_of_these_tests() {
    for (words, gap) in BUSY {
        let mut load = Backlogged::new(words, &[1000, 1514], 60);
        for _ in 0..6000 {
            load.fill();
            load.bench.wait(gap);
            load.take();
        }
        let dropped = &load.bench.kept.dropped;
        assert!(dropped.iter().any(|(_, reason, _)| *reason == DropReason::Early), "{words}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any drops of the policies, and at any time, the bytes sent by two backlogged flows
    /// differ by less than a quantum and a packet.
    #[test]
    fn backlogged_flows_get_equal_bytes(
        which in 0usize..3,
        quantum in quantum(),
        sizes in prop::collection::vec(64u32..=1514, 2..6),
        ecn in prop::sample::select(vec!["ecn", "noecn"]),
    ) {
        let (words, gap) = BUSY[which];
        let text = format!("{words} quantum {quantum} {ecn}");
        let mut load = Backlogged::new(&text, &sizes, 60);
        let bound = quantum + sizes.iter().max().expect("flows");
        for step in 0..6000 {
            load.fill();
            load.bench.wait(gap);
            load.take();
            prop_assert!(!load.queued.contains(&0), "{}: {:?}", text, load.queued);
            let most = *load.sent.iter().max().expect("flows");
            let least = *load.sent.iter().min().expect("flows");
            prop_assert!(most - least < u64::from(bound), "{}: {:?} after {}", text, load.sent, step);
        }
    }

    /// A flow that has at most one quantum in the queue, and sends again only when this has left,
    /// waits for at most one turn of each other flow.
    #[test]
    fn a_sparse_flow_waits_for_a_round_at_most(
        which in 0usize..3,
        quantum in quantum(),
        sizes in prop::collection::vec(40u32..=1514, 1..6),
        gaps in prop::collection::vec(0usize..40, 30..60),
        part in 1u32..=100,
    ) {
        // Prevent drops by the policy, so that each sparse packet leaves.
        let name = ALL[which];
        let slow = if name == "fq_pie" { "target 100s" } else { "target 100s interval 200s" };
        let mut load = Backlogged::new(&format!("{name} {slow} quantum {quantum}"), &sizes, 20);
        let len = (quantum.min(1514) * part / 100).max(1);
        let largest = *sizes.iter().max().expect("flows");
        let round = sizes.len() as u64 * u64::from(quantum + largest - 1);
        for gap in gaps {
            for _ in 0..gap {
                load.fill();
                load.bench.wait(1000);
                prop_assert!(load.take().flow < 90);
            }
            load.fill();
            offer(&mut load.bench, 90, len);
            let before: u64 = load.sent.iter().sum();
            while load.take().flow != 90 {
                load.fill();
                load.bench.wait(1000);
                let waited = load.sent.iter().sum::<u64>() - before;
                prop_assert!(waited <= round, "{}: {} of {}", load.bench.params.name(), waited, round);
            }
        }
    }
}

#[test]
fn a_new_flow_goes_first() {
    for text in ALL {
        let mut bench = Bench::new(text);
        for flow in 0..4 {
            (0..50).for_each(|_| _ = offer(&mut bench, flow, 1514));
        }
        (0..20).for_each(|_| _ = bench.take());
        offer(&mut bench, 9, 100);
        assert_eq!(bench.take().expect("a packet").flow, 9, "{text}");
    }
}

/// A new bucket that becomes empty waits for a round. Otherwise a flow that sends single packets,
/// each directly after the previous one has left, would get half of the rate.
#[test]
fn coming_back_at_once_wins_nothing() {
    for name in ALL {
        let slow = if name == "fq_pie" { "target 100s" } else { "target 100s interval 200s" };
        let mut load = Backlogged::new(&format!("{name} {slow}"), &[1514; 5], 20);
        let mut back = 0u64;
        let mut is_away = true;
        for _ in 0..3000 {
            load.fill();
            if is_away {
                offer(&mut load.bench, 90, 1000);
            }
            load.bench.wait(1000);
            // The flow sends again one departure after its last packet left.
            let left = load.take().flow == 90;
            back += u64::from(left) * 1000;
            is_away = !left && load.bench.flow(bucket(90), "qlen") == 0;
        }
        let least = *load.sent.iter().min().expect("flows");
        assert!(back > 0 && back < least + 2 * 1514, "{name}: {back} of {least} bytes");
    }
}

#[test]
fn overflow_takes_half_of_the_fattest_from_its_head() {
    for text in ["fq_codel limit 30", "fq_cobalt limit 30"] {
        let mut bench = Bench::new(text);
        for flow in [0, 1] {
            (0..5).for_each(|_| _ = offer(&mut bench, flow, 100));
        }
        let fat: Vec<u64> = (10..31).collect();
        let given: Vec<_> = fat.iter().map(|_| offer(&mut bench, 2, 1000)).collect();
        assert_eq!(given[..20], [Return::Success; 20]);
        assert_eq!(given[20], Return::Congestion);
        // The backlog is 21 kB: the eleventh dropped packet exceeds half of it.
        assert_eq!(bench.dropped_ids(), fat[..11]);
        assert_eq!(bench.counter("drop_overlimit"), 11);
        // The sender of an arriving packet is not notified if only other flows lose packets.
        while bench.queue.packets() < 30 {
            offer(&mut bench, 2, 1000);
        }
        assert_eq!(offer(&mut bench, 0, 100), Return::Success);
        assert_eq!(bench.counter("drop_overlimit"), 21);
        assert_eq!(bench.counter("drop_overmemory"), 0);
    }
}

#[test]
fn memory_is_charged_by_true_size() {
    for text in ["fq_codel memory_limit 10kb", "fq_cobalt memory_limit 10kb"] {
        let mut bench = Bench::new(text);
        // A packet of 100 bytes occupies 612 bytes of memory, so that 16 packets fit.
        (0..16).for_each(|_| _ = offer(&mut bench, 1, 100));
        assert!(bench.kept.dropped.is_empty());
        assert_eq!(bench.state("memory_usage"), 16 * 612);
        assert_eq!(offer(&mut bench, 1, 100), Return::Congestion);
        assert_eq!(bench.counter("drop_overmemory"), bench.kept.dropped.len() as u64, "{text}");
        assert_eq!(bench.kept.dropped.len(), 9, "half of 1700 bytes");
    }
}

#[test]
fn of_equal_backlogs_the_first_bucket_loses() {
    for text in ["fq_codel limit 8", "fq_cobalt limit 8"] {
        let mut bench = Bench::new(text);
        // The bucket of flow 2 precedes the bucket of flow 1.
        for flow in [1, 1, 1, 1, 2, 2, 2, 2] {
            offer(&mut bench, flow, 500);
        }
        offer(&mut bench, 7, 100);
        let flows: Vec<u32> = bench.kept.dropped.iter().map(|(f, ..)| f.flow).collect();
        assert_eq!(flows, [2, 2]);
    }
}

#[test]
fn a_change_dequeues_what_no_longer_fits() {
    for text in ["fq_codel quantum 300", "fq_pie quantum 300"] {
        let mut bench = Bench::new(text);
        for flow in [0, 1, 2] {
            (0..4).for_each(|_| _ = offer(&mut bench, flow, 300));
        }
        let name = bench.params.name();
        bench.change(&format!("{name} limit 9"));
        // One packet of each flow is dropped in turn.
        let flows: Vec<u32> = bench.kept.dropped.iter().map(|(f, ..)| f.flow).collect();
        assert_eq!(flows, [0, 1, 2], "{text}");
        assert_eq!(bench.queue.packets(), 9);
    }
}

mod fq_pie {
    use super::*;

    /// Returns the numbers of packets offered and dropped, of a flow that sends too much and of a
    /// flow that does not.
    fn greedy_and_modest(text: &str) -> [(u64, usize); 2] {
        let mut bench = Bench::new(text);
        let mut offered = [0u64; 2];
        // One packet leaves each millisecond; 1.5 packets of flow 0 and 0.25 packets of flow 1
        // arrive.
        for step in 0..40_000u64 {
            for (flow, due) in [(0u32, true), (0, step % 2 == 0), (1, step % 4 == 0)] {
                if due {
                    offer(&mut bench, flow, 1000);
                    offered[flow as usize] += 1;
                }
            }
            bench.wait(MS);
            bench.take();
        }
        let dropped = |flow| bench.kept.dropped.iter().filter(|(f, ..)| f.flow == flow).count();
        [(offered[0], dropped(0)), (offered[1], dropped(1))]
    }

    #[test]
    fn only_the_greedy_flow_loses_packets() {
        for text in ["fq_pie", "fq_pie dq_rate_estimator", "fq_pie bytemode"] {
            let [(offered, dropped), (_, modest)] = greedy_and_modest(text);
            assert_eq!(modest, 0, "{text}");
            // 0.75 of the 1.5 packets of flow 0 are sent.
            let share = dropped as f64 / offered as f64;
            assert!((0.46..0.52).contains(&share), "{text}: {share}");
        }
    }

    #[test]
    fn each_bucket_holds_its_delay_at_target() {
        let mut bench = Bench::new("fq_pie target 20ms");
        let mut sojourns = Vec::new();
        for step in 0..120_000u64 {
            // Each of two flows gets half of the link, and offers 1.1 times this rate.
            for flow in 0..2u32 {
                if step % 2 == u64::from(flow) || step % 20 == u64::from(1 - flow) {
                    offer(&mut bench, flow, 1000);
                }
            }
            bench.wait(MS);
            let delay = bench.flow(bucket(1), "qdelay") * 64;
            bench.take();
            if step > 60_000 {
                sojourns.push(delay as f64 / MS as f64);
            }
        }
        let mean = sojourns.iter().sum::<f64>() / sojourns.len() as f64;
        assert!((17.0..23.0).contains(&mean), "{mean} ms");
    }

    #[test]
    fn the_limit_turns_arrivals_away() {
        let mut bench = Bench::new("fq_pie limit 10");
        (0..10).for_each(|_| assert_eq!(offer(&mut bench, 0, 1500), Return::Success));
        // A packet of a flow without a backlog is dropped too.
        assert_eq!(offer(&mut bench, 1, 100), Return::Congestion);
        assert_eq!(bench.dropped_ids(), [10]);
        assert_eq!(bench.kept.dropped[0].1, DropReason::Overflow);
        assert_eq!((bench.counter("overlimit"), bench.counter("overmemory")), (1, 0));
    }

    #[test]
    fn memory_is_counted_but_nothing_goes_for_it() {
        let mut bench = Bench::new("fq_pie memory_limit 10kb");
        for _ in 0..100 {
            assert_eq!(offer(&mut bench, 0, 100), Return::Success);
        }
        // From the 19th packet on, the memory used is more than 10240 bytes plus 612 bytes for one
        // packet.
        assert_eq!(bench.counter("overmemory"), 100 - 18);
        assert!(bench.kept.dropped.is_empty());
    }

    #[test]
    fn ecn_marks_up_to_its_probability() {
        for percent in [3u64, 40] {
            let mut bench = Bench::new(&format!("fq_pie ecn ecn_prob {percent}"));
            let limit = i128::from((u64::MAX >> 8) / 100 * percent);
            let (mut marked_below, mut dropped_above) = (false, false);
            for i in 0..40_000u32 {
                // The load is 1.03 times the rate of the link at first, and then three times the
                // rate.
                bench.wait(if i < 20_000 { 970_000 } else { 333_333 });
                let (drops, marks) = (bench.kept.dropped.len(), bench.kept.marked.len());
                bench.offer(Frame { ecn: Ecn::Ect0, ..Frame::new(0, 1000) });
                let prob = bench.flow(0, "prob");
                if bench.kept.marked.len() > marks {
                    assert!(prob <= limit);
                    marked_below = true;
                }
                if bench.kept.dropped.len() > drops {
                    assert!(prob > limit);
                    dropped_above = true;
                }
                if if i < 20_000 { i % 33 != 0 } else { i % 3 == 0 } {
                    bench.take();
                }
            }
            assert!(marked_below && dropped_above, "{percent}");
        }
    }

    /// One call updates at most 2048 buckets; the next call is due at the next tick.
    #[test]
    fn many_buckets_are_updated_in_several_ticks() {
        let mut bench = Bench::new("fq_pie flows 5000 tupdate 7ms target 1ms");
        for flow in 0..3000 {
            (0..8).for_each(|_| _ = offer(&mut bench, flow, 1000));
        }
        let updated = |bench: &Bench| -> usize {
            (0..5000).filter(|&flow| bench.flow(flow, "backlog_old") > 0).count()
        };
        let busy = |bench: &Bench, below: usize| -> usize {
            (0..below).filter(|&flow| bench.flow(flow, "qlen") > 0).count()
        };
        let start = bench.now;
        let mut due = Vec::new();
        for below in [2048, 4096, 5000] {
            let next = bench.queue.next_timer().expect("it has a timer");
            due.push(next - start);
            bench.wait(next - bench.now);
            assert_eq!(updated(&bench), busy(&bench, below));
        }
        assert_eq!(due, [8 * MS, 9 * MS, 10 * MS]);
        assert_eq!(bench.queue.next_timer(), Some(start + 18 * MS));
    }
}

mod fq_cobalt {
    use super::*;

    /// Offers a flood (flow 0) and a call (flow 1) to a link of one packet per millisecond.
    fn flood_and_call(bench: &mut Bench, span: Nanos) {
        let end = bench.now + span;
        for step in 0u64.. {
            if bench.now >= end {
                break;
            }
            (0..3).for_each(|_| _ = offer(bench, 0, 1000));
            if step % 10 == 0 {
                offer(bench, 1, 200);
            }
            bench.wait(MS);
            bench.take();
        }
    }

    #[test]
    fn blue_finds_the_flood_and_lets_it_go() {
        let mut bench = Bench::new("fq_cobalt limit 100 flows 2 drop_batch 1 decrement 0.01");
        flood_and_call(&mut bench, 60 * SECOND);
        assert!(bench.kept.dropped.iter().all(|(frame, ..)| frame.flow == 0));
        assert_eq!(bench.state("unresponsive"), 1);
        // The flood gets about 0.9 of the link and sends three times the link's rate: about 0.7 of
        // its packets must be dropped.
        let p = bench.flow(0, "p_drop") as f64 / 4_294_967_296.0;
        assert!((0.6..0.75).contains(&p), "{p}");
        assert_eq!(bench.flow(1, "p_drop"), 0);
        // Afterwards the bucket is often found empty, and BLUE's probability falls to 0.
        for _ in 0..200 {
            bench.wait(10 * MS);
            offer(&mut bench, 0, 1000);
            while bench.take().is_some() {}
        }
        assert_eq!(bench.flow(0, "p_drop"), 0);
        assert_eq!(bench.state("unresponsive"), 0);
    }

    #[test]
    fn without_overflow_blue_asks_for_no_draws() {
        let mut bench = Bench::new("fq_cobalt");
        flood_and_call(&mut bench, 3 * SECOND);
        assert!(bench.kept.dropped.len() > 10);
        assert_eq!(bench.dice.calls, 0);
    }

    #[test]
    fn the_last_packet_of_a_bucket_is_never_dropped() {
        let mut bench = Bench::new("fq_cobalt interval 1ms target 100us");
        for _ in 0..300 {
            for flow in 0..5 {
                offer(&mut bench, flow, 1000);
            }
            bench.wait(20 * MS);
            (0..5).for_each(|_| assert!(bench.take().is_some()));
        }
        assert!(bench.kept.dropped.is_empty());
    }

    #[test]
    fn a_change_drops_batches_until_it_fits() {
        let mut bench = Bench::new("fq_cobalt");
        for flow in [0, 1] {
            (0..20).for_each(|_| _ = offer(&mut bench, flow, 500 + 100 * flow));
        }
        bench.change("fq_cobalt limit 21");
        // First half of flow 1 is dropped, which has 12 kB (flow 0 has 10 kB), then half of flow 0.
        let flows: Vec<u32> = bench.kept.dropped.iter().map(|(f, ..)| f.flow).collect();
        assert_eq!(flows, [[1; 10], [0; 10]].concat());
        assert_eq!(bench.counter("drops"), 20);
    }
}
