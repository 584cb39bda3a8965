//! Tests of `pfifo_fast` and `pfifo_head_drop`.

use crate::common::{Bench, Frame};
use sojourn_queue::{Packet, Return};

/// The table of `tc-prio(8)`: priority and band of each value of bits 1 to 4 of the TOS byte.
const TOS: [(u8, u32, usize); 16] = [
    (0x00, 0, 1),
    (0x02, 0, 1),
    (0x04, 0, 1),
    (0x06, 0, 1),
    (0x08, 2, 2),
    (0x0a, 2, 2),
    (0x0c, 2, 2),
    (0x0e, 2, 2),
    (0x10, 6, 0),
    (0x12, 6, 0),
    (0x14, 6, 0),
    (0x16, 6, 0),
    (0x18, 4, 1),
    (0x1a, 4, 1),
    (0x1c, 4, 1),
    (0x1e, 4, 1),
];

fn with_tos(tos: u8) -> Frame {
    Frame { dscp: tos >> 2, ..Frame::new(0, 100) }
}

#[test]
fn the_tos_byte_names_priority_and_band() {
    for (tos, priority, band) in TOS {
        let mut bench = Bench::new("pfifo_fast");
        assert_eq!(with_tos(tos).priority(), priority, "{tos:#x}");
        bench.offer(with_tos(tos));
        let held: Vec<i128> = (0..3).map(|band| bench.flow(band, "qlen")).collect();
        assert_eq!((held[band], held.iter().sum::<i128>()), (1, 1), "{tos:#x}");
    }
}

#[test]
fn bands_leave_in_their_order() {
    let mut bench = Bench::new("pfifo_fast");
    for tos in [0x08, 0x00, 0x10, 0x08, 0x18, 0x10] {
        bench.offer(with_tos(tos));
    }
    let left: Vec<u64> = std::iter::from_fn(|| bench.take()).map(|frame| frame.id).collect();
    assert_eq!(left, [2, 5, 1, 4, 0, 3]);
}

#[test]
fn each_band_has_its_own_limit() {
    let mut bench = Bench::new("pfifo_fast limit 2");
    for tos in [0x08, 0x08] {
        assert_eq!(bench.offer(with_tos(tos)), Return::Success);
    }
    assert_eq!(bench.offer(with_tos(0x08)), Return::Drop);
    assert_eq!(bench.offer(with_tos(0x10)), Return::Success);
    assert_eq!(bench.counter("drops"), 1);
}

#[test]
fn a_full_queue_drops_its_oldest_packet() {
    let mut bench = Bench::new("pfifo_head_drop limit 2");
    assert_eq!(bench.arrive(100), Return::Success);
    assert_eq!(bench.arrive(200), Return::Success);
    assert_eq!(bench.arrive(300), Return::Congestion);
    let (dropped, _, queued) = &bench.kept.dropped[0];
    assert_eq!((dropped.id, *queued), (0, true));
    let left: Vec<u64> = std::iter::from_fn(|| bench.take()).map(|frame| frame.id).collect();
    assert_eq!(left, [1, 2]);
}
