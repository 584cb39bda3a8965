//! Tests of CAKE's parts: shaper, hosts and flows, tins, overflow, acknowledgement filter.

use crate::common::{self, Bench, Frame, Kept};
use proptest::prelude::*;
use sojourn_queue::{
    Call, Dequeue, Device, Discipline, Draws, DropReason, Ecn, Params, Queue, Return, TcpView, View,
};
use sojourn_units::{EPOCH, MILLISECOND, Nanos, SECOND};
use std::collections::BTreeMap;

const MS: Nanos = MILLISECOND;

fn of(flow: u32, len: u32) -> Frame {
    Frame { flow, ..Frame::new(0, len) }
}

/// Offers `frames` so that packets of each of them always wait. Takes a packet whenever the shaper
/// allows it or, without a shaper, every `service`. Returns the bytes delivered of each flow.
fn saturate(
    bench: &mut Bench,
    frames: &[Frame],
    service: Nanos,
    span: Nanos,
) -> BTreeMap<u32, u64> {
    let end = bench.now + span;
    let mut waiting = BTreeMap::<u32, i64>::new();
    let mut delivered = BTreeMap::new();
    while bench.now < end {
        let lost = bench.kept.dropped.len();
        for frame in frames {
            let waits = waiting.entry(frame.flow).or_default();
            while *waits < 10 {
                bench.offer(frame.clone());
                *waits += 1;
            }
        }
        if let Some(frame) = bench.take() {
            *waiting.entry(frame.flow).or_default() -= 1;
            *delivered.entry(frame.flow).or_default() += u64::from(frame.len);
            bench.wait(service);
        } else {
            let until = bench.not_before.expect("there is always a packet");
            bench.wait(until - bench.now);
        }
        for (frame, ..) in &bench.kept.dropped[lost..] {
            *waiting.entry(frame.flow).or_default() -= 1;
        }
    }
    delivered
}

/// Returns the share of `flow` in all delivered bytes.
fn share(delivered: &BTreeMap<u32, u64>, flow: u32) -> f64 {
    delivered[&flow] as f64 / delivered.values().sum::<u64>() as f64
}

fn near(found: f64, expected: f64, margin: f64) {
    assert!((found / expected - 1.0).abs() <= margin, "{found}, expected {expected}");
}

mod shaper {
    use super::*;

    #[test]
    fn the_rate_is_what_was_asked_for() {
        for (rate, text) in [
            (5e6, "bandwidth 5mbit besteffort flows"),
            (18e6, "bandwidth 18mbit"),
            (700e3, "bandwidth 700kbit diffserv8"),
            (1e9, "bandwidth 1gbit flowblind besteffort"),
        ] {
            let mut bench = Bench::new(&format!("cake {text} memlimit 1mb"));
            let frames = [of(1, 1514), of(2, 100), of(3, 777)];
            let span = (SECOND as f64 * 2e8 / rate) as Nanos;
            let delivered = saturate(&mut bench, &frames, 0, span);
            let bits = delivered.values().sum::<u64>() as f64 * 8.0;
            near(bits / (span as f64 / 1e9), rate, 1e-4);
        }
    }

    /// The shaper's rate includes the framing of the line.
    #[test]
    fn cells_are_paid_for() {
        let mut bench =
            Bench::new("cake bandwidth 3mbit besteffort flows pppoe-llcsnap memlimit 1mb");
        let delivered = saturate(&mut bench, &[of(1, 1514)], 0, 100 * SECOND);
        let frames = delivered[&1] as f64 / 1514.0;
        near(frames / 100.0, 3e6 / 8.0 / f64::from(33 * 53), 1e-3);
    }

    /// An idle shaper accumulates no credit: after a pause packets leave at the same distances as
    /// before.
    #[test]
    fn there_are_no_bursts() {
        let mut bench = Bench::new("cake bandwidth 8mbit besteffort");
        for _ in 0..5 {
            bench.wait(SECOND);
            (0..4).for_each(|_| _ = bench.arrive(1000));
            assert!(bench.take().is_some());
            for _ in 0..3 {
                assert!(bench.take().is_none());
                let until = bench.not_before.expect("a wait");
                near((until - bench.now) as f64, MS as f64, 1e-6);
                bench.wait(until - bench.now - 1);
                assert!(bench.take().is_none(), "not a nanosecond earlier");
                bench.wait(1);
                assert!(bench.take().is_some());
            }
        }
    }

    /// In ingress mode dropped packets are charged too, so fewer packets leave. The limit of the
    /// charges ensures that packets still leave, at 2/3 of the rate or more.
    #[test]
    fn ingress_counts_what_it_drops() {
        let rates = |mode: &str| {
            let text = format!("cake bandwidth 8mbit besteffort flows rtt 20ms {mode}");
            let mut bench = Bench::new(&text);
            let (mut sent, mut came) = (0u64, 0u64);
            let mut next = bench.now;
            for _ in 0..200_000 {
                // Packets arrive at 1.2 times the rate.
                if next <= bench.now {
                    bench.arrive(1000);
                    came += 1000;
                    next += MS * 5 / 6;
                }
                let due = match bench.take() {
                    Some(frame) => {
                        sent += u64::from(frame.len);
                        bench.now
                    }
                    None => bench.not_before.unwrap_or(next).min(next),
                };
                bench.wait(due - bench.now);
            }
            let span = (bench.now - EPOCH) as f64 / 1e9;
            (sent as f64 * 8.0 / span, came as f64 * 8.0 / span)
        };
        let (egress, came) = rates("egress");
        near(egress, 8e6, 1e-3);
        near(came, 9.6e6, 1e-3);
        let (ingress, _) = rates("ingress");
        assert!(ingress < 0.99 * egress && ingress > egress / 1.5, "{ingress} against {egress}");
    }

    #[test]
    fn a_change_of_rate_takes_effect() {
        let mut bench = Bench::new("cake bandwidth 5mbit");
        let frames = [of(1, 1000), of(2, 1000)];
        saturate(&mut bench, &frames, 0, SECOND);
        bench.change("cake bandwidth 15mbit");
        while bench.queue.packets() > 0 {
            if bench.take().is_none() {
                let until = bench.not_before.expect("a wait");
                bench.wait(until - bench.now);
            }
        }
        let delivered = saturate(&mut bench, &frames, 0, 10 * SECOND);
        near(delivered.values().sum::<u64>() as f64 * 0.8, 15e6, 1e-3);
    }
}

mod flows {
    use super::*;

    fn frames(hosts: &[(u32, u32)]) -> Vec<Frame> {
        let frame = |(flow, hosts): (usize, &(u32, u32))| Frame {
            hosts: Some(*hosts),
            ..of(flow as u32, 1200)
        };
        hosts.iter().enumerate().map(frame).collect()
    }

    /// Host 1 has seven flows, and host 2 has one flow.
    const SOURCES: [(u32, u32); 8] =
        [(1, 10), (1, 11), (1, 12), (1, 13), (1, 14), (1, 15), (1, 16), (2, 17)];

    #[test]
    fn turns_are_shared_between_flows_or_hosts() {
        let reversed = SOURCES.map(|(one, other)| (other, one));
        for (mode, hosts, expected) in [
            ("flows", SOURCES, 1.0 / 8.0),
            ("dual-srchost", SOURCES, 1.0 / 2.0),
            ("dual-dsthost", SOURCES, 1.0 / 8.0),
            ("triple-isolate", SOURCES, 1.0 / 2.0),
            ("dual-dsthost", reversed, 1.0 / 2.0),
            ("triple-isolate", reversed, 1.0 / 2.0),
            ("srchost", SOURCES, 1.0 / 2.0),
            ("srchost", reversed, 1.0 / 8.0),
            ("dsthost", reversed, 1.0 / 2.0),
            ("hosts", SOURCES, 1.0 / 8.0),
        ] {
            let mut bench = Bench::new(&format!("cake bandwidth 50mbit besteffort {mode} rtt 1s"));
            let delivered = saturate(&mut bench, &frames(&hosts), 0, 5 * SECOND);
            near(share(&delivered, 7), expected, 0.03);
        }
    }

    #[test]
    fn flows_of_one_host_share_equally() {
        let mut bench = Bench::new("cake bandwidth 50mbit besteffort rtt 1s");
        let delivered = saturate(&mut bench, &frames(&SOURCES), 0, 5 * SECOND);
        for flow in 0..7 {
            near(share(&delivered, flow), 1.0 / 14.0, 0.05);
        }
    }

    #[test]
    fn a_new_flow_goes_first() {
        let mut bench = Bench::new("cake unlimited besteffort flows");
        for flow in 0..4 {
            (0..20).for_each(|_| _ = bench.offer(of(flow, 1514)));
        }
        (0..12).for_each(|_| _ = bench.take());
        bench.offer(of(9, 100));
        assert_eq!(bench.take().map(|frame| frame.flow), Some(9));
    }

    /// Flows whose hashes are equal modulo the number of queues use different queues of one set,
    /// until all queues of the set are in use.
    #[test]
    fn a_set_has_eight_ways() {
        let mut bench = Bench::new("cake unlimited besteffort flows");
        // The hash of a test frame is a multiple of its flow's number: find flows of one set.
        let set = |flow: u32| flow.wrapping_mul(0x9e37_79b1) % 1024 / 8;
        let alike: Vec<u32> = (1..).filter(|&flow| set(flow) == set(1)).take(9).collect();
        for &flow in &alike[..8] {
            bench.offer(of(flow, 1000));
        }
        assert_eq!((bench.counter("way_misses"), bench.counter("way_collisions")), (8, 0));
        let mut order = Vec::new();
        (0..8).for_each(|_| order.extend(bench.take().map(|frame| frame.flow)));
        assert_eq!(order, alike[..8]);
        for flow in alike {
            bench.offer(of(flow, 1000));
        }
        assert_eq!(bench.counter("way_collisions"), 1);
    }

    /// After an overload COBALT's count decays step by step; then the queue is free again.
    #[test]
    fn queues_decay_and_are_forgotten() {
        let mut bench = Bench::new("cake unlimited besteffort flows rtt 20ms");
        for _ in 0..400 {
            (0..2).for_each(|_| _ = bench.offer(of(1, 1000)));
            bench.wait(MS);
            bench.take();
        }
        while bench.take().is_some() {}
        assert!(bench.kept.dropped.len() > 30);
        let queue = (1u32.wrapping_mul(0x9e37_79b1) % 1024) as usize;
        assert!(bench.flow(queue, "count") > 10);
        // A queue's state decays only while packets of other queues arrive.
        let mut sets = Vec::new();
        for _ in 0..400 {
            bench.wait(5 * MS);
            bench.offer(of(2, 100));
            bench.take();
            sets.push(bench.flow(queue, "set"));
        }
        sets.dedup();
        assert_eq!(sets, [3, 4, 0], "bulk, decaying, none");
        assert_eq!((bench.flow(queue, "count"), bench.state("t0.decaying")), (0, 0));
    }
}

mod tins {
    use super::*;

    fn marked(flow: u32, dscp: u8, len: u32) -> Frame {
        Frame { dscp, ..of(flow, len) }
    }

    /// With a shaper each tin has precedence up to its rate; the lower tins get the remaining rate.
    #[test]
    fn tins_have_their_rates_under_a_shaper() {
        let mut bench = Bench::new("cake bandwidth 16mbit diffserv3 rtt 1s");
        // The frames are in the tins for bulk, best effort and voice.
        let frames = [marked(1, 8, 1000), marked(2, 0, 1000), marked(3, 46, 1000)];
        let delivered = saturate(&mut bench, &frames, 0, 20 * SECOND);
        near(share(&delivered, 3), 1.0 / 4.0, 0.02);
        near(share(&delivered, 1), 1.0 / 16.0, 0.02);
        near(share(&delivered, 2), 11.0 / 16.0, 0.02);
    }

    /// Without a shaper the tins take turns, with turns in proportion to their weights.
    #[test]
    fn tins_have_their_weights_without_a_shaper() {
        let mut bench = Bench::new("cake unlimited diffserv4 rtt 1s");
        let frames =
            [marked(0, 0, 1000), marked(1, 8, 1000), marked(2, 34, 1000), marked(3, 46, 1000)];
        let delivered = saturate(&mut bench, &frames, MS, 200 * SECOND);
        for (flow, weight) in [(0, 1024.0), (1, 64.0), (2, 512.0), (3, 256.0)] {
            near(share(&delivered, flow), weight / 1856.0, 0.02);
        }
    }

    /// Packets of a call within the voice tin's quarter of the rate do not wait for other packets.
    #[test]
    fn a_call_passes() {
        let mut bench = Bench::new("cake bandwidth 8mbit diffserv3");
        let mut waited = Vec::new();
        let mut next = bench.now;
        while bench.now < EPOCH + 10 * SECOND {
            if bench.now >= next {
                bench.offer(marked(1, 46, 200));
                next += 20 * MS;
            }
            while bench.queue.packets() < 30 {
                (2..12).for_each(|flow| _ = bench.offer(marked(flow, 0, 1500)));
            }
            match bench.take() {
                Some(frame) if frame.flow == 1 => waited.push(bench.now - (next - 20 * MS)),
                Some(_) => {}
                None => {
                    let until = bench.not_before.expect("there is always a packet").min(next);
                    bench.wait(until - bench.now);
                }
            }
        }
        assert!(waited.len() > 490, "{}", waited.len());
        // A packet of the call waits at most for the packet that is being sent.
        assert!(waited.iter().all(|wait| *wait <= 1_500_001), "{:?}", waited.iter().max());
    }

    #[test]
    fn wash_clears_the_code_point_after_it_was_used() {
        let mut bench = Bench::new("cake unlimited diffserv4 wash");
        bench.offer(Frame { ecn: Ecn::Ect0, ..marked(1, 46, 100) });
        assert_eq!(bench.state("t3.backlog"), 100);
        let frame = bench.take().expect("it was queued");
        assert_eq!((frame.dscp, frame.ecn), (0, Ecn::Ect0));
    }

    #[test]
    fn packets_of_a_tin_that_is_no_more_are_thrown_away() {
        let mut bench = Bench::new("cake unlimited diffserv4");
        (0..3).for_each(|_| _ = bench.offer(marked(1, 46, 100)));
        (0..2).for_each(|_| _ = bench.offer(marked(2, 0, 100)));
        bench.change("cake besteffort");
        assert_eq!(bench.dropped_ids(), [0, 1, 2]);
        assert_eq!((bench.queue.packets(), bench.queue.bytes()), (2, 200));
        assert_eq!(bench.state("buffer_used"), 2 * 612);
        assert!(bench.take().is_some() && bench.take().is_some() && bench.take().is_none());
    }
}

mod overflow {
    use super::*;

    /// The longest queue loses packets, and the sender of the arriving packet is notified only if
    /// it belongs to this queue.
    #[test]
    fn the_longest_queue_loses_its_head() {
        let mut bench = Bench::new("cake unlimited besteffort flows memlimit 20kb");
        (0..5).for_each(|_| _ = bench.offer(of(1, 500)));
        (0..7).for_each(|_| _ = bench.offer(of(2, 1500)));
        assert_eq!(bench.dropped_ids(), Vec::<u64>::new());
        assert_eq!(bench.offer(of(2, 1500)), Return::Congestion);
        assert_eq!(bench.dropped_ids(), [5]);
        (0..2).for_each(|_| assert_eq!(bench.offer(of(1, 500)), Return::Success));
        assert_eq!(bench.dropped_ids(), [5, 6]);
        assert!(bench.kept.dropped.iter().all(|(_, reason, _)| *reason == DropReason::Overflow));
        assert_eq!(bench.counter("drop_overlimit"), 2);
    }

    /// Under a flood BLUE's drops replace the drops by overflow.
    #[test]
    fn blue_answers_a_flood() {
        let mut bench = Bench::new("cake unlimited besteffort flows memlimit 100kb");
        let mut last = 0;
        for second in 0..40 {
            let before = bench.counter("drop_overlimit");
            for _ in 0..1000 {
                (0..3).for_each(|_| _ = bench.offer(of(1, 1000)));
                bench.wait(MS);
                bench.take();
            }
            last = bench.counter("drop_overlimit") - before;
            assert!(second > 0 || last > 500);
        }
        assert!(last < 100, "{last} overflows in the last second");
        assert_eq!(bench.state("t0.unresponsive"), 1);
    }
}

mod ack_filter {
    use super::*;

    fn ack(number: u32) -> Frame {
        let view = TcpView { ack: number, flags: TcpView::ACK, ..TcpView::default() };
        Frame { tcp: Some(view), ..of(1, 66) }
    }

    /// With the filter a queue of acknowledgements has at most two, of which the last is the
    /// newest.
    #[test]
    fn a_standing_queue_is_thinned() {
        for (text, left) in [("ack-filter", 2), ("ack-filter-aggressive", 1), ("no-ack-filter", 50)]
        {
            let mut bench = Bench::new(&format!("cake unlimited besteffort flows {text}"));
            (0..50).for_each(|number| _ = bench.offer(ack(number)));
            assert_eq!(bench.queue.packets(), left, "{text}");
            assert_eq!(bench.counter("ack_drops"), 50 - left as u64);
            assert!(bench.kept.dropped.iter().all(|(_, why, _)| *why == DropReason::AckFilter));
            assert_eq!(bench.state("buffer_used"), left as i128 * (66 + 512));
            let mut last = None;
            while let Some(frame) = bench.take() {
                last = frame.tcp;
            }
            assert_eq!(last.map(|view| view.ack), Some(49));
        }
    }

    #[test]
    fn acknowledgements_with_data_are_kept() {
        let mut bench = Bench::new("cake unlimited besteffort flows ack-filter-aggressive");
        for number in 0..50 {
            let mut frame = ack(number);
            frame.tcp.as_mut().expect("an acknowledgement").payload = 10;
            bench.offer(frame);
            bench.offer(of(1, 66));
        }
        assert_eq!(bench.queue.packets(), 100);
    }
}

/// Draws of each width from separate random streams.
#[derive(Clone)]
struct ByWidth(common::Dice, common::Dice);

impl Draws for ByWidth {
    fn draw_u16(&mut self) -> u16 {
        self.0.draw_u16()
    }
    fn draw_u32(&mut self) -> u32 {
        self.1.draw_u32()
    }
    fn draw_u64(&mut self) -> u64 {
        unreachable!("neither asks for 64 bits")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// `cobalt` decides as a CAKE with one queue, except for the random draws of CAKE's scheduler.
    #[test]
    fn cobalt_decides_as_a_cake_with_one_queue(
        steps in prop::collection::vec((0u64..4, 64u32..1515, any::<bool>(), 0u64..3_000_000), 1..400),
        memory in 5_000u32..60_000,
    ) {
        let device = Device::default();
        let rest = format!("memlimit {memory}");
        let texts = [
            format!("cobalt interval 4ms target 200us {rest}"),
            format!("cake unlimited besteffort flowblind rtt 4ms {rest}"),
        ];
        let all = texts.map(|text| {
            let params = Params::parse(&text, &device).expect("it can be read");
            let mut queue: Queue<Frame> = params.build(EPOCH);
            let mut draws = ByWidth(common::Dice::new(1), common::Dice::new(2));
            let mut kept = Kept::default();
            let mut taken = Vec::new();
            let mut now = EPOCH;
            for (id, &(arrivals, len, capable, wait)) in steps.iter().enumerate() {
                now += wait;
                for copy in 0..arrivals {
                    let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
                    let frame = Frame { ecn, ..Frame::new(id as u64 * 8 + copy, len) };
                    queue.enqueue(frame, &mut Call { now, draws: &mut draws, sink: &mut kept });
                }
                if let Dequeue::Packet(frame) = queue.dequeue(&mut Call { now, draws: &mut draws, sink: &mut kept }) {
                    taken.push(frame);
                }
            }
            (taken, kept, queue.packets(), queue.bytes())
        });
        prop_assert_eq!(&all[0], &all[1]);
    }
}
