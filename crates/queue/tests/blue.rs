//! Tests of BLUE against its paper.

use crate::common::{Bench, Frame, open_loop};
use sojourn_queue::{DropReason, Ecn};
use sojourn_units::{MILLISECOND, Nanos, SECOND};

const MS: Nanos = MILLISECOND;

#[test]
fn moves_at_most_once_per_freeze() {
    let mut bench = Bench::new("blue limit 5 freeze 10ms increment 0.01 decrement 0.001");
    let start = bench.now;
    for round in 0..2000u32 {
        bench.wait(MS);
        bench.arrive(1000);
        if round % 400 > 200 {
            bench.take();
            bench.take();
        }
    }
    let most = (bench.now - start) / (10 * MS) + 1;
    assert!(bench.counter("updates") <= most);
    assert!(bench.counter("updates") > most / 2);
}

#[test]
fn rises_by_overflow_and_falls_by_idleness() {
    let mut bench = Bench::new("blue limit 2");
    (0..3).for_each(|_| _ = bench.arrive(100));
    let up = bench.state("p");
    assert_eq!(up, i128::from((0.0025 * 4_294_967_296.0) as u32));
    while bench.take().is_some() {}
    bench.wait(99 * MS);
    bench.arrive(100);
    assert_eq!(bench.state("p"), up, "still frozen");
    let mut exact = Bench::new("blue limit 1");
    exact.arrive(100);
    exact.arrive(100);
    exact.wait(100 * MS - 1);
    exact.arrive(100);
    assert_eq!(exact.state("p"), up);
    exact.wait(1);
    exact.arrive(100);
    assert!(exact.state("p") >= up || exact.counter("early") > 0);
    assert_eq!(exact.counter("updates"), 2);
    bench.take();
    bench.take();
    bench.wait(1000 * MS);
    bench.arrive(100);
    // The probability may not change before 100 ms, and the queue is idle since 99 ms: it falls in
    // ten steps, at 100, 200, ... 1000 ms.
    let down = i128::from((0.000_25 * 4_294_967_296.0) as u32);
    assert_eq!(bench.state("p"), up - 10 * down);
    bench.take();
    bench.take();
    bench.wait(3600 * SECOND);
    bench.arrive(100);
    assert_eq!(bench.state("p"), 0);
}

#[test]
fn holds_unresponsive_overload() {
    let mut bench = Bench::new("blue limit 50 freeze 10ms");
    open_loop(&mut bench, 1000, 500_000, 1_000_000, 60 * SECOND);
    let p = bench.state("p") as f64 / 4_294_967_296.0;
    assert!((0.45..0.56).contains(&p), "{p}");
}

#[test]
fn the_probability_never_exceeds_one() {
    let mut bench = Bench::new("blue limit 1 increment 0.9 freeze 1ms");
    for _ in 0..100 {
        bench.wait(2 * MS);
        bench.arrive(100);
    }
    assert_eq!(bench.state("p"), u32::MAX.into());
    let mut marking = Bench::new("blue limit 1 increment 0.9 freeze 1ms ecn");
    for _ in 0..100 {
        marking.wait(2 * MS);
        marking.offer(Frame { ecn: Ecn::Ect0, ..Frame::new(0, 100) });
        marking.take();
        marking.offer(Frame { ecn: Ecn::Ect0, ..Frame::new(0, 100) });
    }
    assert!(marking.kept.dropped.iter().all(|(_, r, _)| *r == DropReason::Overflow));
}
