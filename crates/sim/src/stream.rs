//! Packet sources over TCP: each emission is a write into the stream of one connection.
//!
//! The connection opens when the flow starts and closes after the last write. A write goes into the
//! send buffer whole, which holds what is written and not yet acknowledged. One that finds no room
//! is refused and counted, as by a non-blocking socket and in effect by ns-3's `OnOffApplication`;
//! if the socket is `blocking`, the application waits instead, and then makes up for the writes that
//! were due meanwhile. An empty buffer takes a write of any length. The delay of a write ends with
//! the delivery of its last byte in order, and begins when the source wanted to make it, also if it
//! had to wait.

use crate::engine::Engine;
use crate::flow::{Driver, Flow};
use sojourn_measure::{Count, Imbalance, Moments, ledger::balance};
use sojourn_network::GroupProbe;
use sojourn_traffic::Receiver;
use sojourn_units::Nanos;
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

/// What a packet source over TCP has written.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Writes that have not been delivered, in order.
    writes: VecDeque<Write>,
    /// All that were made.
    written: Count,
    /// Those that were lost with their connection.
    abandoned: Count,
    /// Whether the application waits for room.
    waiting: bool,
    /// Whether the application has made its last write.
    closed: bool,
    /// When the last write so far was delivered.
    delivered_at: Nanos,
    /// Times of packets with data from host to host, since the end of the warm-up.
    pub packet_delays: Moments,
}

impl Stream {
    /// Writes neither delivered nor lost.
    pub fn pending(&self) -> u64 {
        self.writes.len() as u64
    }

    fn write(&mut self, emitted: Nanos, seq: u64, payload: u32) {
        self.written.count(payload);
        self.writes.push_back(Write { emitted, seq, end: self.written.bytes });
    }

    /// Takes the next write, if it ends within the first `delivered` bytes: its payload too.
    fn take(&mut self, delivered: u64, received: u64) -> Option<(Write, u32)> {
        let write = *self.writes.front().filter(|write| write.end <= delivered)?;
        self.writes.pop_front();
        Some((write, (write.end - received) as u32))
    }

    /// The connection is gone, and with it what has not been delivered.
    pub fn abandon(&mut self, receiver: &Receiver) {
        self.writes.clear();
        self.waiting = false;
        self.abandoned = self.written - receiver.received;
    }

    /// Compares the books with the writes at hand.
    ///
    /// # Errors
    /// The imbalance, if there is one.
    pub fn audit(
        &self,
        receiver: &Receiver,
        account: impl FnOnce() -> String,
    ) -> Result<(), Imbalance> {
        let booked = self.written - receiver.received - self.abandoned;
        let mut found = Count { packets: self.pending(), bytes: 0 };
        if let Some(last) = self.writes.back() {
            found.bytes = last.end - receiver.received.bytes;
        }
        balance(account, booked, found)
    }
}

/// The first `delivered` bytes of a flow's stream have come.
pub fn deliver(flow: &mut Flow, group: &mut GroupProbe, now: Nanos, delivered: u64) {
    let Driver::Packets(packets) = &mut flow.driver else { return };
    let Some(stream) = &mut packets.stream else { return };
    let receiver = &mut packets.receiver;
    while let Some((write, payload)) = stream.take(delivered, receiver.received.bytes) {
        let delay = now - write.emitted;
        receiver.receive(write.seq, payload, delay, packets.playout);
        group.delay.record(delay);
        stream.delivered_at = now;
        if let Some(histogram) = &mut flow.delay {
            histogram.record(delay);
        }
    }
    if stream.closed {
        complete(flow, group);
    }
}

/// Counts a flow as finished if its application has closed and all it wrote has been delivered.
fn complete(flow: &mut Flow, group: &mut GroupProbe) {
    let Driver::Packets(packets) = &flow.driver else { return };
    let Some(stream) = &packets.stream else { return };
    if stream.closed && stream.pending() == 0 && stream.written.packets > 0 && flow.finished == 0 {
        group.fct.record(stream.delivered_at - flow.start);
        flow.finished = 1;
    }
}

impl Engine<'_> {
    /// A flow of writes begins, or the next write is due.
    pub(crate) fn stream_due(&mut self, id: u32) {
        let slot = match self.flows[id as usize].current {
            Some(slot) => slot,
            None => self.connect(id),
        };
        self.write_due(id, slot);
        self.pump(slot);
    }

    /// There is room again in the send buffer of a flow, which may have waited for it.
    pub(crate) fn room_made(&mut self, id: u32, slot: u32) {
        if let Driver::Packets(packets) = &self.flows[id as usize].driver
            && packets.stream.as_ref().is_some_and(|stream| stream.waiting)
        {
            self.write_due(id, slot);
        }
    }

    /// Makes the writes that are due, and sets the time of the next one.
    fn write_due(&mut self, id: u32, slot: u32) {
        let flow = &mut self.flows[id as usize];
        let Driver::Packets(packets) = &mut flow.driver else { return };
        let Some(stream) = &mut packets.stream else { return };
        let (tcp, params) = self.connections.socket(slot, flow.group);
        stream.waiting = false;
        loop {
            let next = packets.next;
            if next.at.max(self.now) >= flow.stop {
                tcp.close();
                stream.closed = true;
                complete(flow, &mut self.groups[flow.group as usize]);
                self.timers.clear(id);
                return;
            }
            if next.at > self.now {
                self.timers.set(id, next.at);
                return;
            }
            let held = tcp.bytes_buffered();
            let fits = held == 0 || held + u64::from(next.payload) <= params.send_buffer;
            if !fits && params.blocking {
                stream.waiting = true;
                self.timers.clear(id);
                return;
            }
            flow.closed.writes += 1;
            if fits {
                tcp.write(u64::from(next.payload));
                stream.write(next.at, packets.seq, next.payload);
            } else {
                flow.closed.refused += 1;
            }
            packets.seq += 1;
            packets.next = packets.source.next_packet();
        }
    }
}
