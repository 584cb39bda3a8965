//! Tests of external policies: every packet is sent, dropped or queued for any policy, and faults
//! of policies.

use crate::common::{Dice, Frame};
use proptest::prelude::*;
use sojourn_queue::external::{Backlog, Draws, Factory, Fault, Id, Next, Params, Policy, Verdict};
use sojourn_queue::{
    Call, Dequeue, Discipline, Draws as _, DropReason, Ecn, Headers, MarkReason,
    Params as AnyParams, Peek, Queue, Return, Sink, TcpView, View,
};
use sojourn_units::external::Code;
use sojourn_units::{EPOCH, Nanos};
use std::sync::{Arc, Mutex};

/// Dropped and marked packets.
#[derive(Default)]
struct Books {
    dropped: Vec<u64>,
    marked: Vec<u64>,
}

impl Sink<Frame> for Books {
    fn dropped(&mut self, packet: Frame, _reason: DropReason, _queued: bool) {
        self.dropped.push(packet.id);
    }
    fn marked(&mut self, packet: &Frame, _reason: MarkReason) {
        self.marked.push(packet.id);
    }
    fn tcp(&self, _packet: &Frame) -> Option<TcpView> {
        None
    }
    fn headers(&self, packet: &Frame) -> Headers {
        packet.headers
    }
}

type Faults = Arc<Mutex<Vec<String>>>;

/// A policy that performs random operations, including those that the contract forbids.
#[derive(Clone)]
struct Wild {
    draws: Draws,
    seen: Vec<Id>,
    mischief: bool,
    faults: Faults,
}

impl Wild {
    fn meddle(&mut self, queue: &mut Backlog) -> Result<(), Fault> {
        for _ in 0..self.draws.draw_below(3) {
            let any = match self.seen.len() {
                0 => None,
                n => Some(self.seen[self.draws.draw_below(n as u32) as usize]),
            };
            let known = any.filter(|id| queue.get(*id).is_some());
            let Some(id) = (if self.mischief { any } else { known }) else { continue };
            match self.draws.draw_below(2) {
                0 => queue.drop(id, DropReason::Forced)?,
                _ => _ = queue.mark(id, MarkReason::Forced)?,
            }
        }
        Ok(())
    }
}

impl Policy for Wild {
    fn enqueue(&mut self, _now: Nanos, packet: Id, queue: &mut Backlog) -> Result<Verdict, Fault> {
        self.meddle(queue)?;
        self.seen.push(packet);
        queue.set_class(packet, self.draws.draw_below(5) as u16)?;
        Ok(match self.draws.draw_below(5) {
            0 => Verdict::Drop(DropReason::Early),
            1 => Verdict::Mark(MarkReason::Early),
            _ => Verdict::Accept,
        })
    }

    fn dequeue(&mut self, now: Nanos, queue: &mut Backlog) -> Result<Next, Fault> {
        self.meddle(queue)?;
        if self.mischief && self.draws.draw_below(20) == 0 {
            return Ok(Next::Empty);
        }
        if queue.packets() > 0 && self.draws.draw_below(10) == 0 {
            return Ok(Next::NotBefore(now + 5));
        }
        let class = self.draws.draw_below(5) as u16;
        let next = match queue.class_head(class) {
            Some(id) if self.draws.draw_below(2) == 0 => Some(queue.take(id)?),
            Some(id) => Some(id),
            None => queue.pop()?,
        };
        Ok(next.map_or(Next::Empty, Next::Packet))
    }

    fn next_timer(&self) -> Option<Nanos> {
        None
    }
    fn on_timer(&mut self, _now: Nanos, _queue: &Backlog) -> Result<(), Fault> {
        Ok(())
    }
    fn change(&mut self, _params: &Params) -> Result<(), Fault> {
        Ok(())
    }
    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("seen", self.seen.len() as i128);
    }
    fn copy(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
    fn on_fault(&mut self, _now: Nanos, fault: &Fault) {
        self.faults.lock().unwrap().push(fault.0.clone());
    }
}

struct Wilds {
    mischief: bool,
    faults: Faults,
}

impl Factory for Wilds {
    fn create(&self, _: &Params, _: Nanos, draws: Draws) -> Result<Box<dyn Policy>, Fault> {
        let (seen, mischief, faults) = (Vec::new(), self.mischief, self.faults.clone());
        Ok(Box::new(Wild { draws, seen, mischief, faults }))
    }
    fn on_fault(&self, _now: Nanos, _fault: &Fault) {}
}

fn wild(mischief: bool, limit: u32) -> (Queue<Frame>, Faults) {
    let faults = Faults::default();
    let factory = Arc::new(Wilds { mischief, faults: faults.clone() });
    let params = Params { limit, ..Params::bound("wild", factory) };
    (AnyParams::External(params).build(EPOCH), faults)
}

/// Performs a schedule; returns the packets that left, the drops and marks, and the number of
/// packets offered.
fn play(queue: &mut Queue<Frame>, steps: &[(bool, u64)], seed: u64) -> (Vec<u64>, Books, u64) {
    let (mut dice, mut books) = (Dice::new(seed), Books::default());
    let (mut now, mut id, mut left) = (EPOCH, 0, Vec::new());
    for (arrives, gap) in steps {
        now += gap;
        if *arrives {
            let mut frame = Frame::new(id, 100 + (id % 7) as u32);
            frame.ecn = if id % 3 == 0 { Ecn::NotEct } else { Ecn::Ect0 };
            id += 1;
            let before = books.dropped.len();
            let result =
                queue.enqueue(frame, &mut Call { now, draws: &mut dice, sink: &mut books });
            let refused = books.dropped[before..].contains(&(id - 1));
            assert_eq!(result == Return::Drop, refused);
        } else if let Dequeue::Packet(packet) =
            queue.dequeue(&mut Call { now, draws: &mut dice, sink: &mut books })
        {
            left.push(packet.id);
        }
        assert_eq!(left.len() + books.dropped.len() + queue.packets(), id as usize);
    }
    (left, books, id)
}

proptest! {
    #[test]
    fn no_packet_is_lost_or_made(
        steps in proptest::collection::vec((any::<bool>(), 0u64..1000), 1..200),
        mischief: bool, seed: u64, limit in 1u32..50,
    ) {
        let (mut queue, faults) = wild(mischief, limit);
        let (left, books, arrived) = play(&mut queue, &steps, seed);
        prop_assert!(queue.packets() <= limit as usize);
        let (mut dice, mut rest) = (Dice::new(seed), Books::default());
        let (mut all, mut now) = ([left, books.dropped].concat(), EPOCH + 1_000_000);
        for _ in 0..10_000 {
            match queue.dequeue(&mut Call { now, draws: &mut dice, sink: &mut rest }) {
                Dequeue::Packet(packet) => all.push(packet.id),
                Dequeue::NotBefore(time) => now = time,
                Dequeue::Empty => break,
            }
        }
        all.extend(rest.dropped);
        all.sort_unstable();
        prop_assert_eq!(all, (0..arrived).collect::<Vec<_>>());
        prop_assert_eq!((queue.packets(), queue.bytes()), (0, 0));
        prop_assert!(faults.lock().unwrap().len() <= 1, "a fault is reported once");
        prop_assert!(mischief || faults.lock().unwrap().is_empty());
    }

    #[test]
    fn a_copy_decides_as_the_original(
        steps in proptest::collection::vec((any::<bool>(), 0u64..1000), 1..100), seed: u64,
    ) {
        let (mut queue, _) = wild(false, 50);
        play(&mut queue, &steps, seed);
        let mut copy = queue.clone();
        let drain = |queue: &mut Queue<Frame>| {
            let (mut dice, mut books, mut now) = (Dice::new(1), Books::default(), EPOCH + 1_000_000);
            let mut left = Vec::new();
            for _ in 0..200 {
                match queue.dequeue(&mut Call { now, draws: &mut dice, sink: &mut books }) {
                    Dequeue::Packet(packet) => left.push(packet.id),
                    Dequeue::NotBefore(time) => now = time,
                    Dequeue::Empty => break,
                }
            }
            (left, books.dropped, books.marked)
        };
        prop_assert_eq!(drain(&mut copy), drain(&mut queue));
    }
}

#[test]
fn peek_shows_the_packet_that_leaves_next() {
    let queue = AnyParams::parse("fq_codel", &sojourn_queue::Device::default()).unwrap();
    let mut queue = Peek::new(queue.build::<Frame>(EPOCH));
    let (mut dice, mut books) = (Dice::new(1), Books::default());
    for id in 0..9 {
        let frame = Frame { flow: id as u32 % 3, ..Frame::new(id, 1000) };
        queue.enqueue(frame, &mut Call { now: EPOCH + id, draws: &mut dice, sink: &mut books });
    }
    let mut arrivals: Vec<_> = (0..9).map(|id| EPOCH + id).collect();
    for left in (0..9).rev() {
        let Dequeue::Packet(seen) =
            queue.peek(&mut Call { now: EPOCH + 9, draws: &mut dice, sink: &mut books })
        else {
            panic!()
        };
        let seen = seen.id;
        let times: Vec<_> = (0..=left).map(|n| queue.enqueued_at(n).unwrap()).collect();
        assert_eq!((times, queue.enqueued_at(left + 1)), (arrivals.clone(), None));
        assert_eq!((queue.packets(), queue.bytes()), (left + 1, 1000 * (left as u64 + 1)));
        let mut qlen = 0;
        queue.counters(&mut |name, value| {
            if name == "qlen" {
                qlen = value;
            }
        });
        assert_eq!(qlen, left as u64 + 1);
        let Dequeue::Packet(packet) =
            queue.dequeue(&mut Call { now: EPOCH + 10, draws: &mut dice, sink: &mut books })
        else {
            panic!()
        };
        assert_eq!(packet.id, seen);
        assert_eq!(queue.left_at(), Some(EPOCH + seen));
        arrivals.retain(|at| *at != EPOCH + seen);
    }
    assert_eq!(
        queue.peek(&mut Call { now: EPOCH + 11, draws: &mut dice, sink: &mut books }),
        Dequeue::Empty
    );
}

#[test]
fn an_unbound_policy_is_data_alone() {
    let text = r#"{"name":"external","spec":{"policy":"mine.py:Mine","source":"ab","params":{"a":1,
        "b":2.5,"c":true,"d":"x"}},"limit":9,"unit":"packets","mtu":1514}"#;
    let params: AnyParams = serde_json::from_str(text).unwrap();
    assert_eq!(params.limit(), Some((sojourn_queue::Unit::Packets, 9)));
    let again: AnyParams = serde_json::from_str(&serde_json::to_string(&params).unwrap()).unwrap();
    assert_eq!(params, again);
    assert!(params.to_tc().is_err());
}

#[test]
#[should_panic(expected = "`mine` is not bound to its code")]
fn an_unbound_policy_does_not_run() {
    let faults = Faults::default();
    let mut params = Params::bound("mine", Arc::new(Wilds { mischief: false, faults }));
    params.code = Code::default();
    AnyParams::External(params).build::<Frame>(EPOCH);
}
