//! Tests of `mq`: the transmit queue of a flow, and the turns of the queues.

use crate::common::{Bench, Frame};
use proptest::prelude::*;
use sojourn_queue::{Device, Discipline, Packet, Params};
use sojourn_units::MILLISECOND;

/// Returns a packet of a flow with this hash.
fn frame(hash: u32, len: u32) -> Frame {
    // Inverse modulo 2^32 of the multiplier in the hash of test frames, by Newton steps, each of
    // which doubles the number of correct bits.
    let inverse =
        (0..5).fold(1u32, |x, _| x.wrapping_mul(2u32.wrapping_sub(x.wrapping_mul(0x9e37_79b1))));
    let frame = Frame { flow: hash.wrapping_mul(inverse), ..Frame::new(0, len) };
    assert_eq!(frame.flow_hash(), hash);
    frame
}

/// Returns the smallest hash of a transmit queue, counted from 0, if there are `of` queues.
fn first_hash(queue: u64, of: u64) -> u32 {
    (queue << 32).div_ceil(of) as u32
}

fn packets(bench: &Bench, class: u64) -> i128 {
    let mut found = 0;
    bench.queue.flow_state(class as usize, &mut |name, value| {
        if name == "qlen" {
            found = value;
        }
    });
    found
}

fn error(text: &str) -> (String, String) {
    let error = Params::parse(text, &Device::default()).expect_err(text);
    (error.to_string(), text[error.at].to_owned())
}

proptest! {
    /// Hashes are divided into equal ranges in the order of the queues, as by the kernel's
    /// `reciprocal_scale`.
    #[test]
    fn a_flow_has_the_queue_of_its_hash(queues in 2u64..300, hash: u32) {
        let mut bench = Bench::new(&format!("mq numtxqueues {queues}"));
        bench.offer(frame(hash, 100));
        let own = (0..queues).rfind(|queue| first_hash(*queue, queues) <= hash).unwrap();
        prop_assert_eq!(packets(&bench, own + 1), 1);
    }
}

/// A queue with one flow gets the same rate as a queue with three flows.
#[test]
fn queues_send_a_packet_each_in_turn() {
    let mut bench = Bench::new("mq numtxqueues 4");
    for n in 0..3 {
        bench.offer(frame(n, 1514));
        bench.offer(frame(first_hash(2, 4) + n, 60));
    }
    bench.offer(frame(first_hash(2, 4), 60));
    bench.offer(frame(first_hash(1, 4), 1514));
    let sent: Vec<_> = std::iter::from_fn(|| bench.take())
        .map(|frame| (u64::from(frame.flow_hash()) * 4) >> 32)
        .collect();
    assert_eq!(sent, [0, 2, 1, 0, 2, 0, 2, 2]);
}

#[test]
fn a_queue_that_holds_packets_back_does_not_stop_others() {
    let mut bench =
        Bench::new("mq numtxqueues 2; qdisc parent 1:1 tbf rate 8mbit burst 1000b limit 9kb");
    (0..2).for_each(|_| _ = bench.offer(frame(0, 1000)));
    (0..2).for_each(|_| _ = bench.offer(frame(u32::MAX, 1000)));
    let sent: Vec<_> = std::iter::from_fn(|| bench.take()).map(|frame| frame.flow_hash()).collect();
    assert_eq!(sent, [0, u32::MAX, u32::MAX]);
    assert_eq!(bench.not_before, Some(bench.now + MILLISECOND));
}

/// After its last packet, a card tries once more to take a packet. RED records this time as the
/// beginning of the idle time.
#[test]
fn a_queue_that_has_become_empty_is_asked_once_more() {
    let drops = |text: &str, idle: bool| {
        let mut bench = Bench::new(text);
        (0..60).for_each(|_| _ = bench.offer(frame(0, 1000)));
        while bench.take().is_some() {}
        if idle {
            bench.wait(400 * MILLISECOND);
        }
        let before = bench.kept.dropped.len();
        (0..20).for_each(|_| _ = bench.offer(frame(0, 1000)));
        bench.kept.dropped.len() - before
    };
    let red = "red limit 90kb min 5kb max 15kb avpkt 1000 burst 9 probability 0.1 bandwidth 10mbit";
    let inside = format!("mq numtxqueues 2; qdisc parent 1:1 {red}");
    assert_eq!(drops(&inside, true), drops(red, true));
    assert!(drops(red, true) < drops(red, false));
}

#[test]
fn the_default_discipline_is_linux_s_or_the_one_named() {
    let child = |text: &str, id: usize| {
        let params = Params::parse(text, &Device::default()).unwrap();
        let commands = params.commands(&sojourn_queue::Place::default()).unwrap().texts("d");
        let parent = format!("parent 1:{id} ");
        let line = commands.iter().find(|line| line.contains(&parent)).unwrap();
        line.split(' ').nth(9).unwrap().to_owned()
    };
    assert_eq!(child("mq", 4), "pfifo_fast");
    assert_eq!(child("mq default_qdisc fq_codel; qdisc parent 1:2 sfq", 1), "fq_codel");
    assert_eq!(child("mq default_qdisc fq_codel; qdisc parent 1:2 sfq", 2), "sfq");
    let (message, at) = error("mq default_qdisc fq_codle");
    assert!(message.contains("fq_codle"), "{message}");
    assert_eq!(at, "fq_codle");
    assert_eq!(error("mq default_qdisc tbf").1, "tbf");
}

#[test]
fn there_are_no_other_classes_and_no_filters() {
    assert_eq!(
        error("mq numtxqueues 8; qdisc parent 1:9 codel; qdisc parent 1:8 codel"),
        (
            "`1:9` is not one of 8 transmit queues: `numtxqueues` sets their number".to_owned(),
            "qdisc parent 1:9 codel".to_owned()
        )
    );
    assert_eq!(
        error("mq; filter dscp EF to 1:1"),
        ("`mq` has no filters".to_owned(), "filter dscp EF to 1:1".to_owned())
    );
    assert!(error("mq numtxqueues 1").0.contains("numtxqueues"));
}
