//! Tests of FIFO queues.

use crate::common::{Bench, drops};
use sojourn_queue::{DropReason, Return, View};

#[test]
fn limits_are_exact() {
    let mut bench = Bench::new("pfifo limit 3");
    let given: Vec<_> = (0..5).map(|_| bench.arrive(1500)).collect();
    assert_eq!(given, [[Return::Success; 3].as_slice(), &[Return::Drop; 2]].concat());
    assert_eq!(bench.dropped_ids(), [3, 4]);
    assert_eq!(drops(&bench, DropReason::Overflow), 2);
    let mut bench = Bench::new("bfifo limit 3000");
    assert_eq!(bench.arrive(1500), Return::Success);
    assert_eq!(bench.arrive(1501), Return::Drop);
    assert_eq!(bench.arrive(1500), Return::Success);
    assert_eq!(bench.arrive(1), Return::Drop);
}

#[test]
fn a_lower_limit_drops_nothing_that_is_queued() {
    let mut bench = Bench::new("pfifo limit 4");
    (0..4).for_each(|_| _ = bench.arrive(100));
    bench.change("pfifo limit 2");
    assert_eq!(bench.queue.packets(), 4);
    bench.take();
    assert_eq!(bench.arrive(100), Return::Drop);
    bench.take();
    bench.take();
    assert_eq!(bench.arrive(100), Return::Success);
}
