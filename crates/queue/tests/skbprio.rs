//! Tests of SKBPRIO: the order of departure, and the choice of the dropped packets.

use crate::common::{Bench, Frame};
use sojourn_queue::{Return, View};

fn offer(bench: &mut Bench, priority: u32) -> Return {
    bench.offer(Frame { priority: Some(priority), ..Frame::new(0, 100) })
}

fn left(bench: &mut Bench) -> Vec<u64> {
    std::iter::from_fn(|| bench.take()).map(|frame| frame.id).collect()
}

#[test]
fn the_largest_priority_leaves_first() {
    let mut bench = Bench::new("skbprio");
    for priority in [0, 6, 63, 2, 6, 4_000_000_000, 0] {
        assert_eq!(offer(&mut bench, priority), Return::Success);
    }
    assert_eq!(left(&mut bench), [2, 5, 1, 4, 3, 0, 6]);
}

#[test]
fn a_larger_priority_displaces_the_newest_packet_of_the_smallest() {
    let mut bench = Bench::new("skbprio limit 3");
    for priority in [1, 5, 1] {
        offer(&mut bench, priority);
    }
    assert_eq!(offer(&mut bench, 2), Return::Congestion);
    let (dropped, _, queued) = bench.kept.dropped.pop().unwrap();
    assert_eq!((dropped.id, queued), (2, true));
    for priority in [0, 1] {
        assert_eq!(offer(&mut bench, priority), Return::Drop, "{priority}");
    }
    assert_eq!(bench.counter("drops"), 3);
    assert_eq!(left(&mut bench), [1, 3, 0]);
}

#[test]
fn a_smaller_limit_drops_nothing_that_is_queued() {
    let mut bench = Bench::new("skbprio limit 3");
    (0..3).for_each(|priority| _ = offer(&mut bench, priority));
    bench.change("skbprio limit 1");
    assert_eq!((bench.queue.packets(), bench.kept.dropped.len()), (3, 0));
    assert_eq!(offer(&mut bench, 0), Return::Drop);
    assert_eq!(offer(&mut bench, 9), Return::Congestion);
    assert_eq!(left(&mut bench), [4, 2, 1]);
}
