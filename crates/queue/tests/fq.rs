//! Tests of FQ against `tc-fq(8)`; the recorded decisions are tested elsewhere.

use crate::common::{Bench, Dice, Frame, Kept};
use sojourn_queue::{
    Call, Dequeue, Device, Discipline, DropReason, Headers, MarkReason, Params, Return, Sender,
    Sink, Socket, SocketKind, TcpView, View,
};
use sojourn_units::{EPOCH, MILLISECOND, Nanos, SECOND};

fn of_flow(flow: u32, len: u32) -> Frame {
    Frame { flow, ..Frame::new(0, len) }
}

/// Returns the bytes of each flow that leave in `span`, if packets may leave at any time.
fn sent(bench: &mut Bench, flows: usize, span: Nanos) -> Vec<u64> {
    let mut bytes = vec![0; flows];
    let end = bench.now + span;
    while bench.now < end {
        if let Some(frame) = bench.take() {
            bytes[frame.flow as usize] += u64::from(frame.len);
        } else {
            let time = bench.not_before.expect("packets are left");
            bench.wait(time.min(end) - bench.now);
        }
    }
    bytes
}

#[test]
fn maxrate_paces_each_flow() {
    let mut bench =
        Bench::new("fq maxrate 8mbit flow_limit 3000 quantum 3000 initial_quantum 3000");
    for _ in 0..1200 {
        bench.offer(of_flow(0, 1500));
        bench.offer(of_flow(1, 500));
    }
    // In half a second each flow may send a megabyte per second, plus a quantum at the start; flow
    // 1 has only 600 kB.
    let bytes = sent(&mut bench, 2, SECOND / 2);
    for flow in &bytes {
        assert!((500_000..=500_000 + 2 * 3000).contains(flow), "{bytes:?}");
    }
    // A paced flow does not delay the other flows.
    bench.offer(of_flow(2, 1500));
    assert_eq!(bench.take().map(|frame| frame.flow), Some(2));
}

#[test]
fn slow_flows_are_paced_packet_by_packet() {
    let mut bench = Bench::new("fq maxrate 80kbit quantum 3000 initial_quantum 3000");
    for _ in 0..5 {
        bench.arrive(100);
    }
    let mut times = Vec::new();
    while bench.queue.packets() > 0 {
        match bench.take() {
            Some(_) => times.push(bench.now - EPOCH),
            None => bench.wait(bench.not_before.expect("it waits") - bench.now),
        }
    }
    // 100 bytes take 10 ms at 10 kB/s.
    assert_eq!(times, [0, 1, 2, 3, 4].map(|n| n * 10 * MILLISECOND));
}

#[test]
fn backlogged_flows_share_the_bytes() {
    let mut bench = Bench::new("fq quantum 1500 initial_quantum 1500 flow_limit 1000");
    for _ in 0..1000 {
        for (flow, len) in [(0, 1500), (1, 500), (2, 100)] {
            bench.offer(of_flow(flow, len));
        }
    }
    let mut bytes = [0u64; 3];
    for _ in 0..800 {
        let frame = bench.take().expect("a backlog");
        bytes[frame.flow as usize] += u64::from(frame.len);
    }
    let (least, most) = (bytes.iter().min().expect("3"), bytes.iter().max().expect("3"));
    assert!(most - least <= 3 * 1500, "{bytes:?}");
}

#[test]
fn a_flow_that_returns_comes_before_old_ones() {
    let mut bench = Bench::new("fq quantum 1500 initial_quantum 1500");
    for _ in 0..40 {
        bench.offer(of_flow(0, 1500));
    }
    bench.offer(of_flow(1, 1500));
    let first: Vec<u32> = (0..20).map(|_| bench.take().expect("a backlog").flow).collect();
    assert!(first.contains(&1), "{first:?}");
    bench.wait(50 * MILLISECOND);
    for _ in 0..3 {
        bench.offer(of_flow(1, 1500));
    }
    let next: Vec<u32> = (0..5).map(|_| bench.take().expect("a backlog").flow).collect();
    assert_eq!(next[0], 1, "{next:?}");
    assert_eq!(next.iter().filter(|flow| **flow == 1).count(), 3, "{next:?}");
}

/// As in the recordings, a new flow is in the list of band 0, which gets its turn when band 1 has
/// used up its credit.
#[test]
fn a_flow_s_first_packet_waits_for_the_turn_of_band_0() {
    let mut bench = Bench::new("fq quantum 1000 initial_quantum 1000 flow_limit 500");
    for _ in 0..300 {
        bench.offer(of_flow(0, 1000));
    }
    for _ in 0..20 {
        bench.take();
    }
    bench.offer(of_flow(1, 1000));
    let ahead = std::iter::from_fn(|| bench.take()).take_while(|frame| frame.flow == 0).count();
    // Eight packets used the fast path, and the first packet of flow 0 left in the turn of band 0.
    assert_eq!(ahead, 196_608usize.div_ceil(1000) - 11);
}

/// Code points whose priorities belong to bands 0, 1 and 2 in the default `priomap`.
const CODE_POINTS: [u8; 3] = [4, 0, 2];

#[test]
fn bands_share_by_their_weights() {
    let mut bench = Bench::new("fq weights 40000 20000 20000 limit 3000 flow_limit 3000");
    for _ in 0..2000 {
        for (band, dscp) in (0..).zip(CODE_POINTS) {
            bench.offer(Frame { dscp, ..of_flow(band, 1000) });
        }
    }
    let mut packets = [0; 3];
    for _ in 0..2000 {
        packets[bench.take().expect("a backlog").flow as usize] += 1;
    }
    for (band, share) in [(0, 1000), (1, 500), (2, 500)] {
        assert!((share - 45..=share + 45).contains(&packets[band]), "{packets:?}");
    }
}

#[test]
fn each_band_and_each_flow_has_its_limit() {
    let mut bench = Bench::new("fq limit 5 flow_limit 3 maxrate 1gbit");
    for flow in 0..4 {
        bench.offer(of_flow(flow, 100));
    }
    assert_eq!((0..3).map(|_| bench.offer(of_flow(0, 100))).last(), Some(Return::Drop));
    assert_eq!(bench.offer(Frame { dscp: CODE_POINTS[0], ..of_flow(9, 100) }), Return::Success);
    assert_eq!((bench.counter("band_drops1"), bench.counter("drops")), (2, 2));
    let mut bench = Bench::new("fq limit 50 flow_limit 3 maxrate 1gbit");
    let given: Vec<Return> = (0..4).map(|_| bench.arrive(100)).collect();
    assert_eq!(given.last(), Some(&Return::Drop));
    assert_eq!((bench.counter("flows_plimit"), bench.queue.packets()), (1, 3));
}

#[test]
fn a_lower_limit_sends_and_discards() {
    let mut bench = Bench::new("fq limit 50");
    for flow in 0..20 {
        bench.offer(of_flow(flow % 3, 100));
    }
    bench.change("fq limit 6");
    assert_eq!((bench.queue.packets(), bench.kept.dropped.len()), (6, 14));
    assert_eq!((bench.counter("packets"), bench.counter("drops")), (14, 0));
}

/// A sink with information about the sender of each packet, by the packet's number.
struct Host(Kept, Vec<Sender>);

impl Sink<Frame> for Host {
    fn dropped(&mut self, packet: Frame, reason: DropReason, queued: bool) {
        self.0.dropped(packet, reason, queued);
    }

    fn marked(&mut self, packet: &Frame, reason: MarkReason) {
        self.0.marked(packet, reason);
    }

    fn tcp(&self, _packet: &Frame) -> Option<TcpView> {
        None
    }

    fn headers(&self, packet: &Frame) -> Headers {
        packet.headers
    }

    fn sender(&self, packet: &Frame) -> Sender {
        self.1[packet.id as usize]
    }
}

/// Returns number and departure time of each packet, if all arrive at once and leave as early as
/// possible. Dropped packets are missing.
fn departures(text: &str, senders: &[Sender]) -> Vec<(u64, Nanos)> {
    let mut queue = Params::parse(text, &Device::default()).expect("a queue").build(EPOCH);
    let (mut dice, mut host) = (Dice::new(1), Host(Kept::default(), senders.to_vec()));
    let mut call = Call { now: EPOCH, draws: &mut dice, sink: &mut host };
    for id in 0..senders.len() as u64 {
        queue.enqueue(Frame::new(id, 1000), &mut call);
    }
    let mut left = Vec::new();
    loop {
        match queue.dequeue(&mut call) {
            Dequeue::Packet(frame) => left.push((frame.id, call.now - EPOCH)),
            Dequeue::NotBefore(time) => call.now = time,
            Dequeue::Empty => return left,
        }
    }
}

fn leaves_at(time: Nanos) -> Sender {
    Sender { departure: Some(EPOCH + time), ..Sender::default() }
}

#[test]
fn departure_times_are_kept() {
    let ms = MILLISECOND;
    let requested = [9 * ms, 3 * ms, 70 * ms, 5 * ms];
    let senders = requested.map(leaves_at);
    let kept = [(1, 3 * ms), (3, 5 * ms), (0, 9 * ms)];
    assert_eq!(departures("fq horizon 20ms", &senders), kept);
    let capped = [&kept[..], &[(2, 20 * ms)]].concat();
    assert_eq!(departures("fq horizon 20ms horizon_cap", &senders), capped);
    // With `offload_horizon` packets may leave earlier, but the requested time of the next
    // `dequeue` is still the departure time.
    let early = [(1, 0), (3, 5 * ms), (0, 5 * ms)];
    assert_eq!(departures("fq horizon 20ms offload_horizon 4ms", &senders), early);
}

#[test]
fn a_socket_s_rate_paces_its_flow_alone() {
    let socket = |number, rate| Sender {
        socket: Some(Socket { number, kind: SocketKind::Stream, hash: 1, rate }),
        ..Sender::default()
    };
    // The first packet uses the fast path, since the queue is empty. The transmission of 1000 bytes
    // at 50 kB/s takes 20 ms.
    let mut senders = vec![socket(7, None)];
    senders.extend([leaves_at(MILLISECOND)]);
    senders.extend([socket(1, Some(50_000)); 3]);
    senders.extend([socket(2, None); 3]);
    let left = departures("fq low_rate_threshold 1mbit", &senders);
    let of = |ids: std::ops::Range<u64>| -> Vec<Nanos> {
        left.iter().filter(|(id, _)| ids.contains(id)).map(|(_, time)| *time).collect()
    };
    assert_eq!(of(2..5), [0, 1, 2].map(|n| n * 20 * MILLISECOND));
    assert_eq!(of(5..8), [0; 3]);
    let left = departures("fq nopacing", &senders);
    assert!(left.iter().all(|(id, time)| *id == 1 || *time == 0), "{left:?}");
}

#[test]
fn a_super_packet_is_one_to_the_limit_of_its_flow() {
    let socket = Socket { number: 1, kind: SocketKind::Stream, hash: 1, rate: None };
    let of = |continues| Sender {
        socket: Some(socket),
        departure: Some(EPOCH + MILLISECOND),
        continues,
    };
    let left = departures("fq flow_limit 2", &[false, true, true, false, true, false].map(of));
    assert_eq!(left.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_discipline_paces_if_all_that_hold_its_packets_do() {
    for (text, paces) in [
        ("fq", true),
        ("fq nopacing", false),
        ("fq_codel", false),
        ("tbf rate 1mbit burst 10kb child fq", true),
        ("tbf rate 1mbit burst 10kb latency 50ms", false),
        (
            "prio ; qdisc add parent 1:1 fq ; qdisc add parent 1:2 fq ; qdisc add parent 1:3 fq",
            true,
        ),
        ("prio ; qdisc add parent 1:1 fq", false),
        ("htb ; class add parent 1: classid 1:1 rate 1mbit ; qdisc add parent 1:1 fq", true),
        ("htb", false),
    ] {
        let params = Params::parse(text, &Device::default()).expect(text);
        assert_eq!(params.paces(), paces, "{text}");
    }
}
