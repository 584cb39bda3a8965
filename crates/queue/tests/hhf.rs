//! Tests of HHF: turns of heavy hitters and of other flows, and choice of the dropped packets.

use crate::common::{Bench, Frame};
use sojourn_queue::Return;
use sojourn_units::{MILLISECOND, SECOND};

fn offer(bench: &mut Bench, flow: u32, len: u32) -> Return {
    bench.offer(Frame { flow, ..Frame::new(0, len) })
}

/// Returns a queue in which flow 0 is a heavy hitter.
fn with_hitter(words: &str) -> Bench {
    let mut bench = Bench::new(&format!("hhf admit_bytes 2000 {words}"));
    for _ in 0..3 {
        offer(&mut bench, 0, 1000);
        bench.take();
    }
    assert_eq!(bench.counter("tot_hh"), 1);
    bench
}

#[test]
fn others_get_their_weight_in_bytes() {
    let mut bench = with_hitter("quantum 1000 non_hh_weight 3 reset_timeout 1us");
    for flow in 1..400 {
        // The counters are reset at the next tick, so that no other flow becomes a heavy hitter.
        bench.wait(2 * MILLISECOND);
        offer(&mut bench, 0, 1000);
        offer(&mut bench, flow, 500);
    }
    let sent: Vec<_> = (0..200).map(|_| bench.take().unwrap()).collect();
    let heavy: u32 = sent.iter().filter(|frame| frame.flow == 0).map(|frame| frame.len).sum();
    let others: u32 = sent.iter().filter(|frame| frame.flow != 0).map(|frame| frame.len).sum();
    assert!(others.abs_diff(3 * heavy) <= 6000, "{others} {heavy}");
}

/// Other flows that become active are served first, like new flows in FQ-CoDel.
#[test]
fn others_that_become_busy_are_served_at_once() {
    let mut bench = with_hitter("");
    (0..5).for_each(|_| _ = offer(&mut bench, 0, 1000));
    assert_eq!(bench.take().unwrap().flow, 0);
    offer(&mut bench, 7, 100);
    assert_eq!(bench.take().unwrap().flow, 7);
}

#[test]
fn heavy_hitters_are_dropped_first_and_their_oldest_packet() {
    let mut bench = with_hitter("limit 3");
    offer(&mut bench, 1, 100);
    let first = bench.next_id;
    offer(&mut bench, 0, 1000);
    offer(&mut bench, 0, 1000);
    assert_eq!(offer(&mut bench, 2, 100), Return::Success, "another flow's packet was dropped");
    assert_eq!(bench.kept.dropped.last().unwrap().0.id, first);
    assert_eq!(offer(&mut bench, 0, 1000), Return::Congestion);
    assert_eq!(offer(&mut bench, 3, 100), Return::Success);
    // The heavy hitters have no more packets.
    assert_eq!(offer(&mut bench, 4, 100), Return::Congestion);
    assert_eq!(bench.kept.dropped.last().unwrap().0.flow, 1);
    assert_eq!((bench.counter("drops"), bench.counter("drop_overlimit")), (4, 4));
}

#[test]
fn a_full_table_admits_no_other_flow() {
    let mut bench = with_hitter("hh_limit 1");
    for _ in 0..5 {
        offer(&mut bench, 5, 1000);
    }
    assert_eq!((bench.counter("tot_hh"), bench.counter("hh_overlimit")), (1, 3));
    bench.wait(2 * SECOND);
    assert_eq!(bench.state("hh_flows_current_cnt"), 1);
}
