//! A queue discipline in Rust, and a queue that uses it.
//!
//! The policy drops an arriving packet with a probability that grows with the number of packets in
//! the queue.

use sojourn_queue::external::{Backlog, Draws, Factory, Fault, Id, Next, Params, Policy, Verdict};
use sojourn_queue::{
    Call, Dequeue, Discipline, Draws as _, DropReason, Ecn, Headers, MarkReason, Packet,
    Params as AnyParams, Sink, TcpView, View,
};
use sojourn_units::{EPOCH, Nanos};
use std::sync::Arc;

/// The policy: the probability of a drop is the number of packets in the queue, divided by `room`.
#[derive(Clone)]
struct Ramp {
    room: u32,
    draws: Draws,
}

impl Policy for Ramp {
    fn enqueue(&mut self, _now: Nanos, _packet: Id, queue: &mut Backlog) -> Result<Verdict, Fault> {
        let drawn = self.draws.draw_below(self.room);
        let full = (drawn as usize) < queue.packets();
        Ok(if full { Verdict::Drop(DropReason::Early) } else { Verdict::Accept })
    }

    fn dequeue(&mut self, _now: Nanos, queue: &mut Backlog) -> Result<Next, Fault> {
        Ok(queue.pop()?.map_or(Next::Empty, Next::Packet))
    }

    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    fn on_timer(&mut self, _now: Nanos, _queue: &Backlog) -> Result<(), Fault> {
        Ok(())
    }

    fn change(&mut self, _params: &Params) -> Result<(), Fault> {
        Err(Fault("the parameters of `ramp` cannot be changed".to_owned()))
    }

    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("room", self.room.into());
    }

    fn copy(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn on_fault(&mut self, now: Nanos, fault: &Fault) {
        eprintln!("at {now} ns: {}", fault.0);
    }
}

struct Ramps {
    room: u32,
}

impl Factory for Ramps {
    fn create(&self, _: &Params, _now: Nanos, draws: Draws) -> Result<Box<dyn Policy>, Fault> {
        Ok(Box::new(Ramp { room: self.room, draws }))
    }

    fn on_fault(&self, now: Nanos, fault: &Fault) {
        eprintln!("at {now} ns: {}", fault.0);
    }
}

/// A packet of 1000 bytes without ECN.
#[derive(Clone, Copy, Debug)]
struct Plain;

impl Packet for Plain {
    fn len(&self) -> u32 {
        1000
    }
    fn truesize(&self) -> u32 {
        2304
    }
    fn flow_hash(&self) -> u32 {
        0
    }
    fn hosts(&self) -> (u32, u32) {
        (0, 1)
    }
    fn dscp(&self) -> u8 {
        0
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_dscp(&mut self, _dscp: u8) {}
    fn set_ce(&mut self) -> bool {
        false
    }
}

/// Counts the drops of the queue.
#[derive(Default)]
struct Drops(usize);

impl Sink<Plain> for Drops {
    fn dropped(&mut self, _packet: Plain, _reason: DropReason, _queued: bool) {
        self.0 += 1;
    }
    fn marked(&mut self, _packet: &Plain, _reason: MarkReason) {}
    fn tcp(&self, _packet: &Plain) -> Option<TcpView> {
        None
    }
    fn headers(&self, _packet: &Plain) -> Headers {
        Headers::default()
    }
}

/// Source of random draws for the code around the policy. In a simulation the draws depend on the
/// seed of the run.
struct Seed(u64);

impl sojourn_queue::Draws for Seed {
    fn draw_u16(&mut self) -> u16 {
        self.draw_u64() as u16
    }
    fn draw_u32(&mut self) -> u32 {
        self.draw_u64() as u32
    }
    fn draw_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0
    }
}

/// Enqueues two packets for each packet that is dequeued.
pub fn run() {
    let params = Params::bound("ramp", Arc::new(Ramps { room: 50 }));
    let mut queue = AnyParams::External(params).build::<Plain>(EPOCH);
    let (mut draws, mut drops, mut sent) = (Seed(1), Drops::default(), 0);
    for n in 0..1000u32 {
        let now = EPOCH + 1000 * Nanos::from(n);
        let mut call = Call { now, draws: &mut draws, sink: &mut drops };
        queue.enqueue(Plain, &mut call);
        if n % 2 == 0 && matches!(queue.dequeue(&mut call), Dequeue::Packet(_)) {
            sent += 1;
        }
    }
    println!("queue: sent {sent}, dropped {}, queued {}", drops.0, queue.packets());
    assert_eq!(sent + drops.0 + queue.packets(), 1000);
}
