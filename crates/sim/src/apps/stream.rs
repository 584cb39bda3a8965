//! Packet sources over TCP: each emission is a write into the stream of one connection.
//!
//! The connection opens when the flow starts and closes after the last write. A write goes into the
//! send buffer whole, which holds what is written and not yet acknowledged. One that finds no room
//! is refused and counted, as by a non-blocking socket and in effect by ns-3's `OnOffApplication`;
//! if the socket is `blocking`, the application waits instead, and then makes up for the writes that
//! were due meanwhile. An empty buffer takes a write of any length. The delay of a write ends with
//! the delivery of its last byte in order, and begins when the source wanted to make it, also if it
//! had to wait.

use crate::app::{App, Declared, Event, Report};
use crate::emitter::Emitter;
use crate::world::{Access, Change, World};
use sojourn_measure::{Count, Imbalance, ledger::balance};
use sojourn_plan::{PlanError, Transport};
use sojourn_units::{EPOCH, Nanos};
use std::collections::VecDeque;

/// A write in the send buffer or on its way.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// When the source wanted to make it.
    emitted: Nanos,
    /// Its number in its flow, refused ones counted.
    seq: u64,
    /// Bytes written up to its end.
    end: u64,
}

/// A flow's writes.
#[derive(Clone, Debug)]
pub struct Stream {
    emitter: Emitter,
    /// Writes that have not been delivered, in order.
    writes: VecDeque<Write>,
    /// All that were made.
    written: Count,
    /// Those that were lost with their connection.
    abandoned: Count,
    /// Whether the application waits for room in the send buffer.
    waiting: bool,
    /// Whether the application has made its last write.
    closed: bool,
    /// When the last write so far was delivered.
    delivered_at: Nanos,
    /// All writes and the refused ones at the end of the warm-up.
    before: (u64, u64),
}

impl Stream {
    fn write(&mut self, emitted: Nanos, seq: u64, payload: u32) {
        self.written.count(payload);
        self.writes.push_back(Write { emitted, seq, end: self.written.bytes });
    }

    /// All writes so far, and the refused ones among them.
    fn attempts(&self) -> (u64, u64) {
        (self.emitter.seq, self.emitter.seq - self.written.packets)
    }

    /// Takes the next write, if it ends within the first `delivered` bytes: its payload too.
    fn take(&mut self, delivered: u64) -> Option<(Write, u32)> {
        let write = *self.writes.front().filter(|write| write.end <= delivered)?;
        self.writes.pop_front();
        Some((write, (write.end - self.emitter.receiver.received.bytes) as u32))
    }

    /// The first `delivered` bytes of the stream have come.
    fn deliver(&mut self, world: &mut World, id: u32, delivered: u64) {
        let flow = &mut world.flows[id as usize];
        let group = &mut world.groups[flow.group as usize];
        while let Some((write, payload)) = self.take(delivered) {
            let delay = world.now - write.emitted;
            self.emitter.receiver.receive(world.now, write.seq, payload, delay);
            group.delay.record(delay);
            self.delivered_at = world.now;
            if let Some(histogram) = &mut flow.delay {
                histogram.record(delay);
            }
        }
        if self.closed {
            self.complete(world, id);
        }
    }

    /// Counts the flow as finished if its application has closed and all it wrote has been delivered.
    fn complete(&self, world: &mut World, id: u32) {
        let flow = &mut world.flows[id as usize];
        if self.writes.is_empty() && self.written.packets > 0 && flow.finished == 0 {
            world.groups[flow.group as usize].fct.record(self.delivered_at - flow.start);
            flow.finished = 1;
        }
    }

    /// Makes the writes that are due, and sets the time of the next one.
    fn write_due(&mut self, world: &mut World, id: u32, slot: u32) {
        let flow = &world.flows[id as usize];
        let stop = flow.stop;
        let params = world.connections.params(flow.group);
        let (buffer, blocking) = (params.send_buffer, params.blocking);
        self.waiting = false;
        loop {
            let next = self.emitter.next;
            if next.at.max(world.now) >= stop {
                world.connections.end(slot).close();
                self.closed = true;
                self.complete(world, id);
                world.clear_timer(id);
                return;
            }
            if next.at > world.now {
                world.set_timer(id, next.at);
                return;
            }
            let tcp = world.connections.end(slot);
            let held = tcp.bytes_buffered();
            let fits = held == 0 || held + u64::from(next.payload) <= buffer;
            if !fits && blocking {
                self.waiting = true;
                world.clear_timer(id);
                return;
            }
            let (_, seq) = self.emitter.take();
            if fits {
                tcp.write(u64::from(next.payload));
                self.write(next.at, seq, next.payload);
            }
        }
    }

    /// The connection is gone, and with it what has not been delivered.
    fn finish(&mut self, world: &mut World, id: u32) {
        if !world.serve(id) {
            return;
        }
        world.release(id);
        self.writes.clear();
        self.waiting = false;
        self.abandoned = self.written - self.emitter.receiver.received;
        world.clear_timer(id);
        world.end_flow(id);
    }
}

impl App for Stream {
    fn try_new(declared: Declared, world: &mut World, id: u32) -> Result<Option<Self>, PlanError> {
        let Declared::Flow(group, planned) = declared else { return Ok(None) };
        let Transport::Tcp(_) = group.transport else { return Ok(None) };
        let Some(emitter) = Emitter::new(group, planned, world.plan.duration) else {
            return Ok(None);
        };
        // The connection opens before the first write, if there is to be one.
        let flow = &world.flows[id as usize];
        if emitter.next.at < flow.stop.min(EPOCH + world.plan.duration) {
            world.start_timer(id, flow.start);
        } else {
            world.start_timer(id, emitter.next.at);
        }
        Ok(Some(Self {
            emitter,
            writes: VecDeque::new(),
            written: Count::default(),
            abandoned: Count::default(),
            waiting: false,
            closed: false,
            delivered_at: 0,
            before: (0, 0),
        }))
    }

    /// The flow begins, or the next write is due.
    fn on_timer(&mut self, world: &mut World, id: u32) {
        world.clear_timer(id);
        match world.access(id) {
            Access::Granted => {}
            Access::Pending => return,
            Access::Refused => return world.retry(id),
            Access::Served => return self.finish(world, id),
        }
        let slot = match world.flows[id as usize].current {
            Some(slot) => slot,
            None => world.connect(id, true),
        };
        self.write_due(world, id, slot);
        if world.flush(slot).is_some() {
            self.finish(world, id);
        }
    }

    #[inline]
    fn on_event(&mut self, world: &mut World, id: u32, event: Event) {
        let Event::Connection(connection, change) = event else { return };
        match change {
            Change::Progress { delivered, room } => {
                self.deliver(world, id, delivered);
                if room && self.waiting {
                    self.write_due(world, id, connection.slot);
                }
            }
            Change::Closed => self.finish(world, id),
            Change::Complete | Change::Lost | Change::Settled => {}
        }
    }

    fn restart(&mut self) {
        self.before = self.attempts();
        self.emitter.restart();
    }

    /// Compares the ledger with the writes at hand.
    fn audit(&self, world: &World, id: u32) -> Result<(), Imbalance> {
        let received = self.emitter.receiver.received;
        let booked = self.written - received - self.abandoned;
        let mut found = Count { packets: self.writes.len() as u64, bytes: 0 };
        if let Some(last) = self.writes.back() {
            found.bytes = last.end - received.bytes;
        }
        let flow = &world.flows[id as usize];
        let group = &world.plan.groups[flow.group as usize].name;
        balance(|| format!("writes of {group}.{}", flow.number), booked, found)
    }

    fn report(&self, world: &World, id: u32) -> Report {
        let group = world.flows[id as usize].group;
        let (writes, refused) = self.attempts();
        Report {
            writes: writes - self.before.0,
            refused: refused - self.before.1,
            jitter: self.emitter.receiver.jitter(),
            mos: self.emitter.mos(&world.plan.groups[group as usize].app, self.writes.len() as u64),
            delays: self.emitter.receiver.delays,
            ..Report::default()
        }
    }
}
