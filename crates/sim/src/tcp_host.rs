//! TCP connections: both ends of each, in slots that are used again.
//!
//! The opener's end stands at an even slot, the other next to it. A connection is gone when both
//! ends have closed; packets of it that are still on their way then find another number in their
//! slot, or none, and are thrown away. An end in TIME-WAIT does not hold its slot: the simulator
//! knows that its peer has heard the last word.

use crate::engine::{Engine, NEVER, hash};
use crate::flow::Driver;
use crate::load::Cargo;
use crate::stream;
use sojourn_network::Place;
use sojourn_network::{Body, Class, Copies, Node, Packet, Tally};
use sojourn_plan::{Group, Plan, Transport};
use sojourn_queue::Ecn;
use sojourn_random::Key;
use sojourn_tcp::connection::Role;
use sojourn_tcp::{Connection, Flags, Params, Segment};
use sojourn_traffic::App;
use sojourn_units::{Nanos, SECOND};
use std::sync::Arc;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Data of a flow that has one connection: bulk, writes, or one transfer.
    Data,
    /// A Web client's request for the object in this slot.
    Request(u32),
    /// A Web server's answer.
    Answer(u32),
    /// Messages, in both directions, of a channel instead of a flow.
    Channel,
}

impl Purpose {
    /// Whether it carries data from the flow's sender to its receiver.
    fn is_forward(self) -> bool {
        !matches!(self, Self::Request(_))
    }
}

/// One end of a connection.
#[derive(Clone, Debug)]
struct End {
    tcp: Connection,
    /// Index of its flow, or of its channel.
    flow: u32,
    /// Number of the connection in the run; 0 if the slot is free.
    number: u32,
    purpose: Purpose,
    /// The books of the packets that leave here.
    account: u32,
    nodes: (Node, Node),
    place: Place,
    hash: u32,
    tos: u8,
    /// When the timer is set; it may be set earlier than needed, see [`Engine::arm`].
    armed: Nanos,
    /// Payload after which what is received is complete.
    expected: u64,
    /// Payload acknowledged so far, and delivered here.
    acked: u64,
    delivered: u64,
    /// Window over time, up to when, and the window since then.
    window: u128,
    window_since: Nanos,
    cwnd: u64,
    opened: Nanos,
}

impl End {
    fn tally(&self, now: Nanos, sends: bool) -> Tally {
        let counters = self.tcp.counters();
        let receives = !sends && self.purpose.is_forward();
        let open = sends && self.purpose.is_forward();
        let last = u128::from(self.cwnd) * u128::from(now - self.window_since);
        Tally {
            bytes: if receives { self.tcp.bytes_delivered() } else { 0 },
            retransmissions: counters.retransmits,
            timeouts: counters.rtos,
            recoveries: counters.recoveries,
            window: if open { self.window + last } else { 0 },
            time: if open { now - self.opened } else { 0 },
            ..Tally::default()
        }
    }

    #[inline]
    fn follow_window(&mut self, now: Nanos) {
        let cwnd = self.tcp.cwnd();
        if cwnd != self.cwnd {
            self.window += u128::from(self.cwnd) * u128::from(now - self.window_since);
            self.window_since = now;
            self.cwnd = cwnd;
        }
    }
}

/// What a connection is opened with; of pairs, the opener's comes first.
pub(crate) struct Opening<'a> {
    pub(crate) params: &'a Arc<Params>,
    /// Index of the flow or channel.
    pub(crate) owner: u32,
    pub(crate) purpose: Purpose,
    /// The opener's node, the other's, the path and the way back.
    pub(crate) ends: (Node, Node, Place, Place),
    pub(crate) accounts: [u32; 2],
    pub(crate) hashes: [u32; 2],
    pub(crate) phase: u32,
    pub(crate) tos: u8,
}

/// All connections.
#[derive(Clone, Debug)]
pub struct Connections {
    ends: Vec<End>,
    free: Vec<u32>,
    opened: u32,
    /// Parameters by group.
    params: Vec<Option<Arc<Params>>>,
    /// Number of the first end's timer.
    first_timer: u32,
}

impl Connections {
    /// None yet; their timers begin at number `first_timer`.
    pub fn new(plan: &Plan, first_timer: u32) -> Self {
        let is_tcp = |group: &Group| matches!(group.transport, Transport::Tcp(_));
        let params = plan.groups.iter().map(|group| match &group.transport {
            Transport::Tcp(params) => Some(Arc::new(params.clone())),
            Transport::Udp => None,
        });
        // Flows with one connection at a time: their number is known, and room for it is not to be
        // found by doubling.
        let single = plan.groups.iter().filter(|g| is_tcp(g) && !matches!(g.app, App::Web(_)));
        let pairs: usize = single.map(|g| g.count as usize).sum();
        Self {
            ends: Vec::with_capacity(2 * pairs),
            free: Vec::new(),
            opened: 0,
            params: params.collect(),
            first_timer,
        }
    }

    /// The connection in a slot as its application sees it, and its group's parameters.
    pub fn socket(&mut self, slot: u32, group: u32) -> (&mut Connection, &Params) {
        let params = self.params[group as usize].as_deref().expect("the group is of TCP flows");
        (&mut self.ends[slot as usize].tcp, params)
    }

    /// Congestion window in bytes and smoothed round-trip time in seconds of the connection in a
    /// slot.
    pub fn window(&self, slot: u32) -> (f64, f64) {
        let tcp = &self.ends[slot as usize].tcp;
        let srtt = tcp.srtt().map_or(f64::NAN, |rtt| rtt as f64 / SECOND as f64);
        (tcp.cwnd() as f64, srtt)
    }

    /// The end of a channel's connection in a slot.
    pub(crate) fn end(&mut self, slot: u32) -> &mut Connection {
        &mut self.ends[slot as usize].tcp
    }

    /// Number of the first end's timer.
    pub(crate) fn first_timer(&self) -> u32 {
        self.first_timer
    }

    /// Slots in use or free.
    pub fn slots(&self) -> usize {
        self.ends.len()
    }
}

impl Engine<'_> {
    /// Opens a connection for a flow. `ends` are the opener's node, the other's, the path and the
    /// way back.
    pub(crate) fn open(
        &mut self,
        flow: u32,
        purpose: Purpose,
        ends: (Node, Node, Place, Place),
    ) -> u32 {
        let state = &mut self.flows[flow as usize];
        let group = &self.plan.groups[state.group as usize];
        let count = state.connections;
        state.connections += 1;
        let params = self.connections.params[state.group as usize]
            .clone()
            .expect("the group is of TCP flows");
        let ways = if purpose.is_forward() { [0, 1] } else { [1, 0] };
        let key =
            Key::new(self.seed, &group.name).child(u64::from(state.number)).child(u64::from(count));
        let (accounts, tos) = (ways.map(|way| state.account + way), group.dscp << 2);
        self.install(&Opening {
            params: &params,
            owner: flow,
            purpose,
            ends,
            accounts,
            hashes: ways.map(|way| hash(self.seed, flow, count, way)),
            phase: key.stream("tcp").next_u32(),
            tos,
        })
    }

    /// Puts both ends of a connection into slots.
    pub(crate) fn install(&mut self, opening: &Opening) -> u32 {
        let now = self.now;
        let connections = &mut self.connections;
        connections.opened += 1;
        let (near, far, there, back) = opening.ends;
        let end = |role, i: usize, nodes, place| {
            let mut tcp = Connection::new(opening.params, role, now);
            tcp.set_phase(opening.phase);
            End {
                cwnd: tcp.cwnd(),
                tcp,
                flow: opening.owner,
                number: connections.opened,
                purpose: opening.purpose,
                account: opening.accounts[i],
                nodes,
                place,
                hash: opening.hashes[i],
                tos: opening.tos,
                armed: NEVER,
                expected: u64::MAX,
                acked: 0,
                delivered: 0,
                window: 0,
                window_since: now,
                opened: now,
            }
        };
        let pair =
            [end(Role::Active, 0, (near, far), there), end(Role::Passive, 1, (far, near), back)];
        if let Some(slot) = connections.free.pop() {
            for (i, end) in pair.into_iter().enumerate() {
                connections.ends[slot as usize + i] = end;
            }
            slot
        } else {
            let slot = connections.ends.len() as u32;
            connections.ends.extend(pair);
            self.timers.grow(connections.first_timer + slot + 2);
            slot
        }
    }

    /// A flow begins, or begins again, on a connection of its own from its sender to its receiver.
    pub(crate) fn connect(&mut self, id: u32) -> u32 {
        let flow = &self.flows[id as usize];
        let ends = (flow.nodes.0, flow.nodes.1, flow.places.0, flow.places.1);
        self.groups[flow.group as usize].begin(self.now);
        let slot = self.open(id, Purpose::Data, ends);
        self.flows[id as usize].current = Some(slot);
        slot
    }

    /// A flow's application has something to do: it begins, stops, or starts the next transfer.
    pub(crate) fn application_due(&mut self, id: u32) {
        self.timers.clear(id);
        // Of a Web session each object has a server of its own.
        if let Driver::Web(_) = self.flows[id as usize].driver {
            self.browse(id);
            return;
        }
        if !self.is_assigned(id) {
            return;
        }
        let flow = &mut self.flows[id as usize];
        match &mut flow.driver {
            Driver::Packets(_) => self.stream_due(id),
            Driver::Bulk => {
                if let Some(slot) = flow.current {
                    self.connections.ends[slot as usize].tcp.close();
                    self.pump(slot);
                } else {
                    let stop = flow.stop;
                    let slot = self.connect(id);
                    self.connections.ends[slot as usize].tcp.write_unlimited();
                    if stop != NEVER {
                        self.timers.set(id, stop);
                    }
                    self.pump(slot);
                }
            }
            Driver::Transfer(transfers) => {
                // The first job starts with the flow; later ones were fixed when the last ended.
                if flow.job.is_none() {
                    flow.job = transfers.after(flow.start).map(|job| (job.at, job.bytes));
                }
                let Some((_, bytes)) = flow.job else { return };
                let slot = self.connect(id);
                self.offer(slot, bytes);
            }
            Driver::Web(_) => unreachable!("it browses"),
        }
    }

    /// The opener of a connection writes all it has to say.
    pub(crate) fn offer(&mut self, slot: u32, bytes: u64) {
        self.connections.ends[slot as usize + 1].expected = bytes;
        let tcp = &mut self.connections.ends[slot as usize].tcp;
        tcp.write(bytes);
        tcp.close();
        self.pump(slot);
    }

    /// An end's timer is due.
    pub(crate) fn connection_due(&mut self, id: u32) {
        let now = self.now;
        let slot = id - self.connections.first_timer;
        let end = &mut self.connections.ends[slot as usize];
        match end.tcp.deadline() {
            Some(at) if at <= now => {
                end.armed = NEVER;
                end.tcp.on_deadline(now);
                end.follow_window(now);
                self.pump(slot);
                if self.connections.ends[slot as usize].armed == NEVER {
                    self.timers.clear(id);
                }
            }
            Some(at) => {
                end.armed = at;
                self.timers.set(id, at);
            }
            None => {
                end.armed = NEVER;
                self.timers.clear(id);
            }
        }
    }

    /// Sends all that an end has to send, and sets its timer.
    pub(crate) fn pump(&mut self, slot: u32) {
        let now = self.now;
        let end = &mut self.connections.ends[slot as usize];
        while let Some(segment) = end.tcp.poll_transmit(now) {
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
                sent_at: now,
                endpoint: slot ^ 1,
                connection: end.number,
                flow: end.account,
                copies: Copies::ONE,
                load: Cargo::Segment(segment),
            };
            self.net.send(now, packet, body);
        }
        // Deadlines mostly move away: the entry stays where it is, and if it comes too early it is
        // moved then. Only an earlier deadline must be told at once.
        if let Some(at) = end.tcp.deadline()
            && at < end.armed
        {
            end.armed = at;
            self.timers.set(self.connections.first_timer + slot, at.max(now));
        }
        if end.tcp.is_closed() {
            self.part(slot);
        }
    }

    /// A segment reached its host.
    pub(crate) fn receive_segment(
        &mut self,
        packet: &Packet,
        body: &Body<Cargo>,
        segment: &Segment,
    ) {
        let now = self.now;
        let slot = body.endpoint;
        let end = &mut self.connections.ends[slot as usize];
        if end.number != body.connection {
            return;
        }
        let channel = end.purpose == Purpose::Channel;
        if channel && self.channels.is_cut(end.flow) {
            return;
        }
        end.tcp.on_segment(now, segment, packet.is_ce());
        if channel {
            let (channel, delivered) = (end.flow, end.tcp.bytes_delivered());
            self.channels.deliver(channel, slot & 1, delivered);
            self.pump(slot);
            self.serve();
            return;
        }
        end.follow_window(now);
        let flow = &mut self.flows[end.flow as usize];
        let group = &mut self.groups[flow.group as usize];
        if segment.len > 0 && end.purpose.is_forward() {
            let delay = now - body.sent_at;
            if let (Some(stream), Some(histogram)) = (flow.stream(), &mut group.packet_delay) {
                stream.packet_delays.add(delay);
                histogram.record(delay);
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
        }
        let bytes = end.tcp.bytes_delivered();
        if end.purpose.is_forward() {
            group.bytes += bytes - end.delivered;
            stream::deliver(flow, group, now, bytes);
        }
        end.delivered = bytes;
        let delivered = bytes >= end.expected;
        if delivered {
            end.expected = u64::MAX;
        }
        if end.tcp.peer_finished() {
            end.tcp.close();
        }
        let (flow, purpose) = (end.flow, end.purpose);
        if room {
            self.room_made(flow, slot);
        }
        self.pump(slot);
        if delivered {
            self.delivered(flow, purpose, true);
        }
    }

    /// All that a connection was to carry has come (or never will).
    fn delivered(&mut self, id: u32, purpose: Purpose, success: bool) {
        let now = self.now;
        if purpose == Purpose::Data {
            if success && !self.is_served(id) {
                return;
            }
            self.release(id);
        }
        let flow = &mut self.flows[id as usize];
        let group = &mut self.groups[flow.group as usize];
        match (purpose, &mut flow.driver) {
            (Purpose::Data, Driver::Transfer(transfers)) => {
                let Some((start, _)) = flow.job.take() else { return };
                group.end(now);
                flow.current = None;
                if success {
                    group.fct.record(now - start);
                    flow.finished += 1;
                }
                let next = transfers.after(now).filter(|job| job.at < flow.stop);
                flow.job = next.map(|job| (job.at, job.bytes));
                match next {
                    Some(job) => self.timers.set(id, job.at),
                    None => flow.end = Some(now),
                }
            }
            (Purpose::Request(object), Driver::Web(_)) if success => self.requested(id, object),
            (Purpose::Request(object) | Purpose::Answer(object), Driver::Web(_)) => {
                self.fetched(id, object, success);
            }
            (Purpose::Data, driver) => {
                if let Driver::Packets(packets) = driver
                    && let Some(stream) = &mut packets.stream
                {
                    stream.abandon(&packets.receiver);
                    self.timers.clear(id);
                }
                group.end(now);
                flow.current = None;
                flow.end = Some(now);
            }
            _ => unreachable!("only Web flows have requests and answers"),
        }
    }

    /// A server has done its work on a transfer.
    pub(crate) fn served(&mut self, id: u32) {
        self.delivered(id, Purpose::Data, true);
    }

    /// One end of a connection is closed: if the other is too, the connection is gone.
    fn part(&mut self, slot: u32) {
        let ends = &mut self.connections.ends;
        let (this, other) = (slot as usize, (slot ^ 1) as usize);
        if ends[this].number == 0 {
            return;
        }
        let broken = ends[this].tcp.was_reset();
        if !broken && !ends[other].tcp.is_closed() {
            return;
        }
        let now = self.now;
        let (flow, purpose) = (ends[this].flow, ends[this].purpose);
        let pair = slot & !1;
        if purpose == Purpose::Channel {
            self.free_pair(pair);
            self.channels.broke(flow);
            return;
        }
        // What was to come and has not is lost with the connection.
        let unfinished = ends[pair as usize + 1].expected != u64::MAX;
        for (i, sends) in [(pair, true), (pair + 1, false)] {
            let end = &mut ends[i as usize];
            let tally = end.tally(now, sends);
            self.flows[flow as usize].closed.add(&tally);
            end.number = 0;
            end.armed = NEVER;
            self.timers.clear(self.connections.first_timer + i);
        }
        self.connections.free.push(pair);
        let single = matches!(self.flows[flow as usize].driver, Driver::Bulk | Driver::Packets(_));
        if unfinished || single {
            self.delivered(flow, purpose, !unfinished);
        }
    }

    /// Frees the slots of a channel's connection without another word.
    pub(crate) fn free_pair(&mut self, pair: u32) {
        for slot in [pair, pair + 1] {
            let end = &mut self.connections.ends[slot as usize];
            let counters = end.tcp.counters();
            self.channels.tally.retransmissions += counters.retransmits;
            self.channels.tally.timeouts += counters.rtos;
            self.channels.tally.recoveries += counters.recoveries;
            end.number = 0;
            end.armed = NEVER;
            self.timers.clear(self.connections.first_timer + slot);
        }
        self.connections.free.push(pair);
    }

    /// What TCP did for all channels since the start.
    pub(crate) fn channel_tally(&self) -> Tally {
        let mut tally = self.channels.tally;
        let ends = self.connections.ends.iter();
        for end in ends.filter(|end| end.number != 0 && end.purpose == Purpose::Channel) {
            let counters = end.tcp.counters();
            tally.retransmissions += counters.retransmits;
            tally.timeouts += counters.rtos;
            tally.recoveries += counters.recoveries;
        }
        tally
    }

    /// What TCP did for each flow since the start, open connections included.
    pub(crate) fn tallies(&self) -> Vec<Tally> {
        let mut tallies: Vec<_> = self.flows.iter().map(|flow| flow.closed).collect();
        let ends = self.connections.ends.iter().enumerate();
        for (i, end) in ends.filter(|(_, e)| e.number != 0 && e.purpose != Purpose::Channel) {
            tallies[end.flow as usize].add(&end.tally(self.now, i.is_multiple_of(2)));
        }
        tallies
    }
}
