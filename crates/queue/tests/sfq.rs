//! Tests of SFQ against its paper and `tc-sfq(8)`; the recorded decisions are tested elsewhere.

use crate::common::{Bench, Frame};
use sojourn_queue::{Device, Discipline, Ecn, Params, Return, View};

fn of_flow(flow: u32, len: u32) -> Frame {
    // Each flow names its own class, which is a bucket, so that flows never share a bucket.
    Frame { flow, class: Some(flow as u16 + 1), ..Frame::new(0, len) }
}

/// Returns the packets of each of `flows` that leave in `count` departures.
fn served(bench: &mut Bench, flows: usize, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; flows];
    for _ in 0..count {
        let frame = bench.take().expect("a backlog");
        bytes[frame.flow as usize] += u64::from(frame.len);
    }
    bytes
}

#[test]
fn backlogged_flows_share_the_bytes() {
    let mut bench = Bench::new("sfq limit 3000 quantum 1500");
    for _ in 0..100 {
        for (flow, len) in [(0, 1500), (1, 500), (2, 100)] {
            bench.offer(of_flow(flow, len));
        }
    }
    let bytes = served(&mut bench, 3, 80);
    let (least, most) = (bytes.iter().min().expect("3"), bytes.iter().max().expect("3"));
    assert!(most - least <= 2 * 1500, "{bytes:?}");
}

#[test]
fn the_longest_flow_pays_for_a_full_queue() {
    let mut bench = Bench::new("sfq limit 10");
    assert_eq!(bench.offer(of_flow(1, 100)), Return::Success);
    for _ in 0..9 {
        assert_eq!(bench.offer(of_flow(0, 100)), Return::Success);
    }
    assert_eq!(bench.offer(of_flow(2, 100)), Return::Success);
    assert_eq!(bench.offer(of_flow(0, 100)), Return::Congestion);
    let lost: Vec<(u64, u32)> = bench.kept.dropped.iter().map(|(f, ..)| (f.id, f.flow)).collect();
    // The newest packet of the longest bucket is dropped, both times of flow 0.
    assert_eq!(lost, [(9, 0), (11, 0)]);
}

#[test]
fn depth_bounds_a_flow_and_headdrop_keeps_the_newest() {
    for (text, given, kept) in [
        ("sfq depth 3", Return::Drop, [0, 1, 2]),
        ("sfq depth 3 headdrop", Return::Congestion, [1, 2, 3]),
    ] {
        let mut bench = Bench::new(text);
        for _ in 0..3 {
            bench.offer(of_flow(0, 100));
        }
        assert_eq!(bench.offer(of_flow(0, 100)), given, "{text}");
        let left: Vec<u64> = std::iter::from_fn(|| bench.take()).map(|f| f.id).collect();
        assert_eq!(left, kept, "{text}");
    }
}

#[test]
fn a_flow_beyond_flows_finds_no_bucket() {
    let mut bench = Bench::new("sfq flows 2");
    assert_eq!(bench.offer(of_flow(0, 100)), Return::Success);
    assert_eq!(bench.offer(of_flow(1, 100)), Return::Success);
    assert_eq!(bench.offer(of_flow(2, 100)), Return::Drop);
    bench.take();
    assert_eq!(bench.offer(of_flow(2, 100)), Return::Success);
}

/// Without `perturb` two flows with equal buckets always share one; with `perturb` a new hash
/// separates them after some periods.
#[test]
fn a_new_hash_parts_flows_that_share_a_bucket() {
    let shares = |bench: &Bench| {
        let mut buckets = 0;
        bench.queue.lists(&mut |_, _| buckets += 1);
        buckets == 1
    };
    for (text, parts) in [("sfq divisor 2", false), ("sfq divisor 2 perturb 1", true)] {
        let mut bench = Bench::new(text);
        for flow in [0, 2, 0, 2, 2] {
            bench.offer(Frame { flow, ..Frame::new(0, 100) });
        }
        assert!(shares(&bench), "{text}");
        let mut apart = false;
        for _ in 0..40 {
            bench.wait(1_100_000_000);
            bench.offer(Frame { flow: 0, ..Frame::new(0, 100) });
            apart |= !shares(&bench);
        }
        assert_eq!(apart, parts, "{text}");
        assert!(bench.kept.dropped.is_empty());
        assert_eq!(bench.queue.packets(), 45);
        // A new hash keeps the order of each flow's packets.
        let left: Vec<Frame> = std::iter::from_fn(|| bench.take()).collect();
        for flow in [0, 2] {
            let ids: Vec<u64> = left.iter().filter(|f| f.flow == flow).map(|f| f.id).collect();
            assert!(ids.is_sorted(), "{text}: {ids:?}");
        }
    }
}

#[test]
fn red_marks_the_head_where_the_oldest_packets_go() {
    let red = "redflowlimit 20000 min 2000 max 4000 avpkt 500 burst 6 probability 0.5 ecn";
    let mut bench = Bench::new(&format!("sfq limit 300 headdrop {red}"));
    for _ in 0..120 {
        bench.offer(Frame { ecn: Ecn::Ect0, ..of_flow(0, 500) });
    }
    assert_eq!(bench.kept.marked[0].0, 0);
    assert!(bench.counter("forced_mark_head") > 0);
    assert_eq!(bench.counter("forced_mark"), 0);
}

#[test]
fn limits_follow_from_each_other() {
    let parse = |text| match Params::parse(text, &Device::default()) {
        Ok(Params::Sfq(params)) => (params.max_packets(), params.max_flows()),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(parse("sfq"), (127, 128));
    assert_eq!(parse("sfq limit 120"), (120, 120));
    assert_eq!(parse("sfq limit 300 divisor 128"), (300, 128));
    assert_eq!(parse("sfq limit 300 depth 2 flows 10"), (20, 10));
    for text in
        ["sfq limit 1", "sfq divisor 100", "sfq depth 128", "sfq redflowlimit 9kb min 8kb max 4kb"]
    {
        assert!(Params::parse(text, &Device::default()).is_err(), "{text}");
    }
}
