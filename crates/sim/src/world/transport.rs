//! The world's TCP: opens connections, sends and receives segments, and closes connections.

use super::World;
use super::connections::{Change, Handle, Opening, Owner};
use super::hash::hash;
use super::timers::{NEVER, Timer};
use crate::load::Cargo;
use crate::observers::Observers;
use crate::qlog::Qlog;
use sojourn_network::{Body, Class, Copies, Network, Node, Packet, Place};
use sojourn_queue::Ecn;
use sojourn_random::Key;
use sojourn_tcp::{Flags, Segment};
use sojourn_units::Nanos;

/// The result of a segment's arrival at an end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// The application that owns the connection.
    pub app: u32,
    /// The connection.
    pub connection: Handle,
    /// Bytes of payload delivered at this end so far.
    pub delivered: u64,
    /// Whether the segment newly acknowledged data; false if no flow owns the connection.
    pub room: bool,
    /// Whether the owner is notified of [`Change::Progress`].
    pub followed: bool,
    /// A change of which the owner is notified after the answer has been sent.
    pub after: Option<Change>,
}

/// Segments that may become a super-packet.
#[derive(Default)]
struct Held {
    /// The packet of the first segment.
    packet: Option<Packet>,
    /// Lengths and bodies of the frames.
    frames: Vec<(u32, Body<Cargo>)>,
}

impl Held {
    /// Adds a segment, which `continues` the super-packet or begins the next one.
    #[cold]
    fn add(
        &mut self,
        now: Nanos,
        continues: bool,
        packet: Packet,
        body: Body<Cargo>,
        net: &mut Network<Cargo, Observers>,
    ) {
        if !continues {
            self.send(now, net);
        }
        self.packet.get_or_insert(packet);
        self.frames.push((packet.len, body));
    }

    /// Sends the segments as one packet.
    #[cold]
    fn send(&mut self, now: Nanos, net: &mut Network<Cargo, Observers>) {
        if let Some(packet) = self.packet.take() {
            match self.frames[..] {
                [(_, body)] => net.send(now, packet, body),
                ref frames => net.send_super(now, packet, frames),
            }
            self.frames.clear();
        }
    }
}

impl World<'_> {
    /// Opens a connection for a flow, and returns the slot of the opener's end. `ends` are the
    /// opener's node, the other node, the path from the opener, and the path to the opener.
    pub fn open(
        &mut self,
        id: u32,
        (tag, forward, followed): (u32, bool, bool),
        ends: (Node, Node, Place, Place),
    ) -> u32 {
        let flow = &mut self.flows[id as usize];
        let group = &self.plan.groups[flow.group as usize];
        let count = flow.connections;
        flow.connections += 1;
        let params = self.connections.params(flow.group).clone();
        let ways = if forward { [0, 1] } else { [1, 0] };
        let key =
            Key::new(self.seed, &group.name).child(u64::from(flow.number)).child(u64::from(count));
        let (accounts, tos) = (ways.map(|way| flow.account + way), group.dscp << 2);
        let qlog = self.plan.observe.qlog.contains(&(flow.group as usize));
        let qlog = qlog.then(|| Box::new(Qlog::new(&group.name, flow.number, count)));
        let slot = self.install(&Opening {
            params: &params,
            owner: Owner::Flow(id),
            tag,
            forward,
            followed,
            ends,
            accounts,
            hashes: ways.map(|way| hash(self.seed, id, count, way)),
            draw: key.stream("tcp").next_u32(),
            tos,
            cut: false,
        });
        self.connections.ends[slot as usize + usize::from(!forward)].qlog = qlog;
        slot
    }

    /// Opens a connection, and returns the slot of the opener's end.
    pub fn install(&mut self, opening: &Opening) -> u32 {
        let slot = self.connections.insert(self.now, opening);
        self.timers.grow(self.connections.slots());
        for end in &mut self.connections.ends[slot as usize..][..2] {
            let link = self.net.routes.link(end.place);
            if let Some(queue) = self.net.observer.host_queue(link) {
                end.tcp.leave_by_host_queue(queue.paces, queue.offload);
                end.offload = queue.offload;
            }
        }
        slot
    }

    /// Notifies connections, in order, of segments that have left their hosts' queues, up to the
    /// first connection that waited for this. That connection sends more. Returns its application
    /// and handle, and its change if sending ended it; `None` if no connection waited.
    #[cold]
    pub(crate) fn wake_sender(&mut self) -> Option<(u32, Handle, Option<Change>)> {
        while let Some(left) = self.net.observer.next_left() {
            let end = &mut self.connections.ends[left.slot as usize];
            if end.number == left.connection && end.tcp.on_left(&left.segment) {
                let (app, handle) = (end.owner.app(), end.handle(left.slot));
                return Some((app, handle, self.flush(left.slot)));
            }
        }
        None
    }

    /// Opens a flow's connection from its sender to its receiver, at the start of the flow or of
    /// its next transfer. `followed` is whether the application is notified of progress.
    pub fn connect(&mut self, id: u32, followed: bool) -> u32 {
        let flow = &self.flows[id as usize];
        let ends = (flow.nodes.0, flow.nodes.1, flow.places.0, flow.places.1);
        self.groups[flow.group as usize].begin(self.now);
        let slot = self.open(id, (0, true, followed), ends);
        self.flows[id as usize].current = Some(slot);
        slot
    }

    /// Writes the opener's data, all `bytes` at once, and closes the opener's end.
    pub fn offer(&mut self, slot: u32, bytes: u64) {
        self.connections.ends[slot as usize + 1].expected = bytes;
        let tcp = self.connections.end(slot);
        tcp.write(bytes);
        tcp.close();
        let gone = self.flush(slot);
        assert!(gone.is_none(), "a new connection waits for an answer");
    }

    /// Handles a due timer of a connection's end. Returns the change if the connection has ended.
    pub(crate) fn end_due(&mut self, slot: u32) -> Option<(u32, Handle, Change)> {
        let now = self.now;
        let end = &mut self.connections.ends[slot as usize];
        match end.tcp.deadline() {
            Some(at) if at <= now => {
                end.armed = NEVER;
                end.tcp.on_deadline(now);
                if let Some(qlog) = &mut end.qlog {
                    qlog.update(now, &end.tcp);
                }
                end.follow_window(now, slot, &mut self.connections.courses);
                let (app, handle) = (end.owner.app(), end.handle(slot));
                let gone = self.flush(slot);
                if self.connections.ends[slot as usize].armed == NEVER {
                    self.timers.clear(Timer::End(slot));
                }
                gone.map(|change| (app, handle, change))
            }
            Some(at) => {
                end.armed = at;
                self.timers.set(Timer::End(slot), at);
                None
            }
            None => {
                end.armed = NEVER;
                self.timers.clear(Timer::End(slot));
                None
            }
        }
    }

    /// Sends all segments that an end may send now, and sets the end's timer. Returns the
    /// connection's change, if that ended the connection.
    #[must_use]
    pub(crate) fn flush(&mut self, slot: u32) -> Option<Change> {
        let now = self.now;
        let end = &mut self.connections.ends[slot as usize];
        let mut held = end.offload.then(Held::default);
        while let Some(segment) = end.tcp.poll_transmit(now) {
            if let Some(qlog) = &mut end.qlog {
                qlog.on_sent(now, &segment, &end.tcp);
            }
            let ecn = if segment.flags.has(Flags::ECT0) {
                Ecn::Ect0
            } else if segment.flags.has(Flags::ECT1) {
                Ecn::Ect1
            } else {
                Ecn::NotEct
            };
            let tos = end.tos | ecn as u8;
            let len = segment.wire_len();
            let packet = Packet::new(Class::Tcp, end.nodes, end.place, end.hash, len, tos);
            let body = Body {
                number: 0,
                sent_at: end.tcp.departure(now),
                endpoint: slot ^ 1,
                connection: end.number,
                flow: end.account,
                copies: Copies::ONE,
                load: Cargo::Segment(segment),
            };
            if let Some(held) = &mut held {
                held.add(now, segment.flags.has(Flags::CONTINUES), packet, body, &mut self.net);
            } else {
                self.net.send(now, packet, body);
            }
        }
        if let Some(held) = &mut held {
            held.send(now, &mut self.net);
        }
        if let Some(qlog) = &mut end.qlog {
            qlog.update(now, &end.tcp);
        }
        // Most deadlines only become later: the timer stays, and is set again if it fires too
        // early. Only an earlier deadline must be set at once.
        if let Some(at) = end.tcp.deadline()
            && at < end.armed
        {
            end.armed = at;
            self.timers.set(Timer::End(slot), at.max(now));
        }
        if end.tcp.is_closed() { self.part(slot) } else { None }
    }

    /// Passes a segment that has reached its host to the end of its connection; returns `None` if
    /// the segment belongs to a connection that no longer exists, or if the host discards it.
    #[inline]
    pub(crate) fn take_segment(
        &mut self,
        packet: &Packet,
        body: &Body<Cargo>,
        segment: &Segment,
    ) -> Option<Taken> {
        let now = self.now;
        let slot = body.endpoint;
        let end = &mut self.connections.ends[slot as usize];
        if end.number != body.connection || end.cut {
            return None;
        }
        end.tcp.on_segment(now, segment, packet.is_ce());
        if let Some(qlog) = &mut end.qlog {
            qlog.on_received(now, segment);
            qlog.update(now, &end.tcp);
        }
        let (app, connection, followed) = (end.owner.app(), end.handle(slot), end.followed);
        let delivered = end.tcp.bytes_delivered();
        if let Owner::App(_) = end.owner {
            let after = Some(Change::Settled);
            return Some(Taken { app, connection, delivered, room: false, followed, after });
        }
        end.follow_window(now, slot, &mut self.connections.courses);
        let flow = &mut self.flows[app as usize];
        let group = &mut self.groups[flow.group as usize];
        // Only data from the flow's sender to its receiver count as the flow's.
        let data = end.forward && !slot.is_multiple_of(2);
        if segment.len > 0 && data {
            let delay = now.saturating_sub(body.sent_at);
            if let Some(histogram) = &mut group.packet_delay {
                histogram.record(delay);
                if let Some(delays) = &mut flow.packet_delays {
                    delays.add(delay);
                }
            } else {
                group.delay.record(delay);
                if let Some(histogram) = &mut flow.delay {
                    histogram.record(delay);
                }
            }
        }
        let acked = end.tcp.bytes_acked();
        let room = acked > end.acked;
        if room {
            end.acked = acked;
            if let Some(rtt) = end.tcp.latest_rtt() {
                group.rtt.record(rtt);
            }
            if let Some(srtt) = end.tcp.srtt() {
                group.srtt.record(srtt);
            }
        }
        if data {
            let arrived = end.tcp.bytes_arrived();
            group.bytes += arrived - end.arrived;
            end.arrived = arrived;
        }
        let complete = delivered >= end.expected;
        if complete {
            end.expected = u64::MAX;
        }
        if end.tcp.peer_finished() {
            end.tcp.close();
        }
        let after = complete.then_some(Change::Complete);
        Some(Taken { app, connection, delivered, room, followed, after })
    }

    /// Removes the connection of a closed end if the other end is closed too or if this end was
    /// reset. Returns the connection's change in that case.
    fn part(&mut self, slot: u32) -> Option<Change> {
        let ends = &self.connections.ends;
        let (this, other) = (&ends[slot as usize], &ends[slot as usize ^ 1]);
        if this.number == 0 || !this.tcp.was_reset() && !other.tcp.is_closed() {
            return None;
        }
        // Data that were expected and have not arrived are lost with the connection.
        let unfinished = ends[(slot | 1) as usize].expected != u64::MAX;
        self.remove(slot);
        Some(if unfinished { Change::Lost } else { Change::Closed })
    }

    /// Closes an end without sending a segment, because its host has stopped.
    pub fn abort(&mut self, slot: u32) {
        self.connections.end(slot).abort();
        self.timers.clear(Timer::End(slot));
    }

    /// Frees the slots of a connection at once. Its owner is not notified.
    pub fn remove(&mut self, slot: u32) {
        let pair = slot & !1;
        self.connections.remove(self.now, pair);
        self.timers.clear(Timer::End(pair));
        self.timers.clear(Timer::End(pair + 1));
    }
}
