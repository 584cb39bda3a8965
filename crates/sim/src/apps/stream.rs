//! Packet sources over TCP: each emission is a write into the stream of one connection.
//!
//! The connection opens when the flow starts and closes after the last write. The send buffer holds
//! the data that were written and not yet acknowledged. A write that does not fit into it
//! completely is refused and counted, as by a non-blocking socket, with the same effect as in
//! ns-3's `OnOffApplication`. If the socket is `blocking`, the application waits for free space
//! instead, and then makes all writes that became due meanwhile. An empty buffer accepts a write of
//! any length. The delay of a write begins at its due time, even if the write had to wait, and ends
//! with the in-order delivery of its last byte.

use crate::app::{App, Declared, Event, Report};
use crate::emitter::Emitter;
use crate::world::{Access, Change, World};
use sojourn_measure::{Count, Imbalance, ledger::balance};
use sojourn_plan::{PlanError, Transport};
use sojourn_units::{EPOCH, Nanos};
use std::collections::VecDeque;

/// A write whose last byte has not been delivered.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// When the write was due.
    emitted: Nanos,
    /// Number of the write in its flow; refused writes have numbers too.
    seq: u64,
    /// Bytes of the stream up to the end of this write.
    end: u64,
}

/// The packet source of a TCP flow.
#[derive(Clone, Debug)]
pub struct Stream {
    emitter: Emitter,
    /// Writes that have not been delivered, in order.
    writes: VecDeque<Write>,
    /// All writes that were accepted.
    written: Count,
    /// Accepted writes that were not delivered when their connection ended.
    abandoned: Count,
    /// Whether the application waits for free space in the send buffer.
    waiting: bool,
    /// Whether the application has made its last write.
    closed: bool,
    /// Time of the last delivery of a write; 0 before the first.
    delivered_at: Nanos,
    /// Number of writes, and of refused writes, at the end of the warm-up.
    before: (u64, u64),
}

impl Stream {
    fn write(&mut self, emitted: Nanos, seq: u64, payload: u32) {
        self.written.count(payload);
        self.writes.push_back(Write { emitted, seq, end: self.written.bytes });
    }

    /// Returns the number of writes so far, and the number of refused writes among them.
    fn attempts(&self) -> (u64, u64) {
        (self.emitter.seq, self.emitter.seq - self.written.packets)
    }

    /// Removes and returns the oldest write and its payload in bytes, if the write ends within the
    /// first `delivered` bytes of the stream.
    fn take(&mut self, delivered: u64) -> Option<(Write, u32)> {
        let write = *self.writes.front().filter(|write| write.end <= delivered)?;
        self.writes.pop_front();
        Some((write, (write.end - self.emitter.receiver.received.bytes) as u32))
    }

    /// Records the delivery of the first `delivered` bytes of the stream.
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

    /// Counts the flow as finished once all its writes have been delivered. Called after the last
    /// write.
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

    /// Ends the flow when its connection has ended. Writes that were not delivered count as
    /// abandoned.
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
        // The connection opens at the flow's start if a write is due before the flow's stop.
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

    /// Opens the connection at the flow's start, and makes the writes that are due.
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

    /// Compares the counts of writes with the writes that have not been delivered.
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
        let flow = &world.flows[id as usize];
        let group = flow.group;
        let (writes, refused) = self.attempts();
        let begun = self.written.packets > 0 && flow.current.is_some();
        let open = begun && !(self.closed && self.writes.is_empty());
        Report {
            open: [open.then_some(flow.start).into_iter().collect(), vec![]],
            writes: writes - self.before.0,
            refused: refused - self.before.1,
            jitter: self.emitter.receiver.jitter(),
            mos: self.emitter.mos(&world.plan.groups[group as usize].app, self.writes.len() as u64),
            delays: self.emitter.receiver.delays,
            ..Report::default()
        }
    }
}
