//! Packets, draws and a sink for tests.
#![allow(dead_code)]

use sojourn_queue::{
    Call, Dequeue, Device, Discipline, Draws, DropReason, Ecn, Headers, MarkReason, Packet, Params,
    Queue, Return, Sink, TcpView, View,
};
use sojourn_units::{EPOCH, Nanos};
use std::collections::BTreeSet;

/// A test packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub id: u64,
    pub len: u32,
    pub flow: u32,
    pub ecn: Ecn,
    pub class: Option<u16>,
    pub dscp: u8,
    /// Numbers of source and destination host; `None` for the number of the flow and 0.
    pub hosts: Option<(u32, u32)>,
    pub tcp: Option<TcpView>,
    pub headers: Headers,
    /// Priority; `None` for the priority of the code point.
    pub priority: Option<u32>,
}

impl Frame {
    pub fn new(id: u64, len: u32) -> Self {
        Self {
            id,
            len,
            flow: 0,
            ecn: Ecn::NotEct,
            class: None,
            dscp: 0,
            hosts: None,
            tcp: None,
            headers: Headers::default(),
            priority: None,
        }
    }
}

impl Packet for Frame {
    fn len(&self) -> u32 {
        self.len
    }

    fn truesize(&self) -> u32 {
        self.len + 512
    }

    fn flow_hash(&self) -> u32 {
        self.flow.wrapping_mul(0x9e37_79b1)
    }

    fn hosts(&self) -> (u32, u32) {
        self.hosts.unwrap_or((self.flow, 0))
    }

    fn class(&self) -> Option<u16> {
        self.class
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn priority(&self) -> u32 {
        self.priority.unwrap_or([0, 2, 6, 4][usize::from(self.dscp >> 1 & 3)])
    }

    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) -> bool {
        self.ecn.mark()
    }
}

/// Random draws that count the calls.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
    pub calls: usize,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self { state: seed, calls: 0 }
    }
}

impl Draws for Dice {
    fn draw_u16(&mut self) -> u16 {
        self.draw_u64() as u16
    }

    fn draw_u32(&mut self) -> u32 {
        (self.draw_u64() >> 32) as u32
    }

    fn draw_u64(&mut self) -> u64 {
        self.calls += 1;
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// A sink that stores dropped packets and marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub dropped: Vec<(Frame, DropReason, bool)>,
    pub marked: Vec<(u64, MarkReason)>,
}

impl Sink<Frame> for Kept {
    fn dropped(&mut self, packet: Frame, reason: DropReason, queued: bool) {
        self.dropped.push((packet, reason, queued));
    }

    fn marked(&mut self, packet: &Frame, reason: MarkReason) {
        self.marked.push((packet.id, reason));
    }

    fn tcp(&self, packet: &Frame) -> Option<TcpView> {
        packet.tcp
    }

    fn headers(&self, packet: &Frame) -> Headers {
        packet.headers
    }
}

/// A queue with its draws, sink and clock.
pub struct Bench {
    pub queue: Queue<Frame>,
    pub params: Params,
    pub dice: Dice,
    pub kept: Kept,
    pub now: Nanos,
    pub next_id: u64,
    /// Time until which the last `dequeue` asked to wait; `None` if it did not.
    pub not_before: Option<Nanos>,
}

impl Bench {
    pub fn new(text: &str) -> Self {
        let params = Params::parse(text, &Device::default()).unwrap_or_else(|e| panic!("{e}"));
        Self {
            queue: params.build(EPOCH),
            params,
            dice: Dice::new(1),
            kept: Kept::default(),
            now: EPOCH,
            next_id: 0,
            not_before: None,
        }
    }

    /// Advances the clock, and runs the periodic task whenever it is due.
    pub fn wait(&mut self, span: Nanos) {
        let until = self.now + span;
        while let Some(due) = self.queue.next_timer().filter(|due| *due <= until) {
            self.queue.on_timer(due);
        }
        self.now = until;
    }

    pub fn offer(&mut self, mut frame: Frame) -> Return {
        frame.id = self.next_id;
        self.next_id += 1;
        let Self { queue, now, dice, kept, .. } = self;
        queue.enqueue(frame, &mut Call { now: *now, draws: dice, sink: kept })
    }

    pub fn arrive(&mut self, len: u32) -> Return {
        self.offer(Frame::new(0, len))
    }

    /// Takes a packet after each `step` until `count` packets are dropped; returns the times of the
    /// drops, counted from now.
    pub fn drop_times(&mut self, count: usize, step: Nanos) -> Vec<Nanos> {
        let start = self.now;
        let mut times = Vec::new();
        while times.len() < count {
            self.wait(step);
            let before = self.kept.dropped.len();
            self.take();
            times.extend((before..self.kept.dropped.len()).map(|_| self.now - start));
        }
        times
    }

    pub fn take(&mut self) -> Option<Frame> {
        self.not_before = None;
        let Self { queue, now, dice, kept, .. } = self;
        match queue.dequeue(&mut Call { now: *now, draws: dice, sink: kept }) {
            Dequeue::Packet(frame) => Some(frame),
            Dequeue::Empty => None,
            Dequeue::NotBefore(time) => {
                assert!(time > self.now, "must wait until {time} at {}", self.now);
                self.not_before = Some(time);
                None
            }
        }
    }

    pub fn change(&mut self, text: &str) {
        self.params = self.params.change(text, &Device::default()).expect("a valid change");
        self.queue.change(&self.params, self.now, &mut self.kept).expect("the same discipline");
    }

    pub fn state(&self, name: &str) -> i128 {
        let mut value = None;
        self.queue.state(&mut |field, v| {
            if field == name {
                value = Some(v);
            }
        });
        value.unwrap_or_else(|| panic!("no state `{name}`"))
    }

    pub fn flow(&self, flow: usize, name: &str) -> i128 {
        let mut value = None;
        self.queue.flow_state(flow, &mut |field, v| {
            if field == name {
                value = Some(v);
            }
        });
        value.unwrap_or_else(|| panic!("no state `{name}` of flow {flow}"))
    }

    pub fn counter(&self, name: &str) -> u64 {
        let mut value = None;
        self.queue.counters(&mut |field, v| {
            if field == name {
                value = Some(v);
            }
        });
        value.unwrap_or_else(|| panic!("no counter `{name}`"))
    }

    /// Returns all values that can be read, for comparisons.
    pub fn picture(&self) -> Vec<(String, i128)> {
        let mut all = Vec::new();
        self.queue.state(&mut |name, value| all.push((name.to_owned(), value)));
        let mut flows: BTreeSet<usize> = (0..8).collect();
        self.queue.lists(&mut |list, flow| {
            flows.insert(flow);
            all.push((format!("list {list}"), flow as i128));
        });
        for flow in flows {
            self.queue.flow_state(flow, &mut |name, v| all.push((format!("{flow}.{name}"), v)));
        }
        self.queue.counters(&mut |name, value| all.push((name.to_owned(), value.into())));
        for n in 0..=self.queue.packets() {
            all.push((format!("at {n}"), self.queue.enqueued_at(n).map_or(-1, i128::from)));
        }
        all
    }

    pub fn dropped_ids(&self) -> Vec<u64> {
        self.kept.dropped.iter().map(|(frame, ..)| frame.id).collect()
    }
}

/// Returns the number of packets dropped for `reason`.
pub fn drops(bench: &Bench, reason: DropReason) -> usize {
    bench.kept.dropped.iter().filter(|(_, r, _)| *r == reason).count()
}

/// Offers a packet every `gap` and takes one every `service`, for `span`; returns the sojourn times
/// of the delivered packets.
pub fn open_loop(
    bench: &mut Bench,
    len: u32,
    gap: Nanos,
    service: Nanos,
    span: Nanos,
) -> Vec<Nanos> {
    let end = bench.now + span;
    let (mut arrival, mut departure) = (bench.now + gap, bench.now + service);
    let mut sojourns = Vec::new();
    while arrival.min(departure) < end {
        let next = arrival.min(departure);
        bench.wait(next - bench.now);
        if arrival <= departure {
            bench.arrive(len);
            arrival += gap;
        } else {
            let at = bench.queue.enqueued_at(0);
            let before = bench.kept.dropped.len();
            if bench.take().is_some() && bench.kept.dropped.len() == before {
                sojourns.push(bench.now - at.expect("one was there"));
            }
            departure += service;
        }
    }
    sojourns
}
