//! The server's side of the protocol: address validation, reassembly, and delivery into the buffer.
//!
//! This module has no clock or I/O: received datagrams and times are arguments, and datagrams to
//! send are results. The server stores nothing about a client that has not returned its cookie. The
//! first fragment of a message reserves space for the whole message in the buffer, which all
//! clients share. If there is no space, the fragment is not acknowledged, so that the client
//! declares it lost. The message counts as discarded once per attempt. Acknowledged data are
//! discarded only with their connection. So that slow or dead clients do not keep the memory from
//! others, a client may have few incomplete messages unless it completes messages, and clients
//! whose incomplete messages would take too long are removed if memory is short.
//!
//! An acknowledgement is sent immediately on request, for repeated data or after reordering,
//! otherwise after at most [`DELAY`].
//!
//! # Invariants
//! Memory is bounded: the number of connections, the bytes of one client and of all clients, the
//! messages ahead of a missing message, and the ranges of datagram numbers. Memory of processed
//! messages is kept for reuse; this memory and the buffer's content together never exceed the
//! buffer's size.

use crate::cookie::Baker;
use crate::fragments::{Fragments, fragment, fragments};
use crate::packet::{self, CHARGE, Code, DIGEST, Data, Id, Packet};
use crate::ranges::Ranges;
use crate::spare::Spare;
use sojourn_buffer::ReceiveBuffer;
use sojourn_units::{Bytes, MILLISECOND, Nanos, SECOND};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::Peekable;
use std::net::{IpAddr, SocketAddr};

/// Maximum number of messages by which a client may be ahead of its oldest incomplete message.
const AHEAD: u64 = 4096;
/// Maximum delay of an acknowledgement that was not requested, in nanoseconds.
pub const DELAY: Nanos = 5 * MILLISECOND;
/// Number of datagrams after a gap that are acknowledged at once. The client declares a datagram
/// lost when one that was sent three later is acknowledged.
const URGENT: u8 = 3;
/// Time in nanoseconds without progress after which a client with incomplete messages is removed,
/// if messages do not fit into the buffer.
const STALLED: Nanos = 5 * SECOND;
/// Number of incomplete messages that each client may have. Further ones must not exceed the bytes
/// of the messages that the client has recently completed.
const INCOMPLETE: usize = 2;
/// Bytes of incomplete messages up to which a slow client is not removed.
const SMALL: Bytes = 160 << 10;
/// Time in nanoseconds that the incomplete messages of a client may need at its recent rate. A
/// slower client is removed if memory is short.
const SLOW: Nanos = 60 * SECOND;
/// Memory is short if less than this share of the buffer's potential size is free: 1/4.
const SHORT: Bytes = 4;
/// Time in nanoseconds without new data after which a connection may be replaced by a new one, if
/// all connections are in use.
const UNUSED: Nanos = SECOND;
/// Allowed payloads of a fragment in bytes.
const CHUNKS: std::ops::RangeInclusive<u16> = 512..=65_000;

/// Limits on connections and messages.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of bytes of one client in the buffer.
    pub client: Bytes,
    /// Maximum length of a message in bytes.
    pub message: u32,
    /// Idle time in nanoseconds after which a connection is removed.
    pub idle: Nanos,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 1024, client: 64 << 20, message: 4 << 20, idle: 30 * SECOND }
    }
}

/// A complete message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the message's connection.
    pub connection: Id,
    /// Number of the message, from 0.
    pub number: u64,
    /// Content of the message.
    pub data: Vec<u8>,
}

/// Next task of the handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// Process a message. The message is no longer in the buffer, but counts towards its client's
    /// limit until [`Server::processed`].
    Message {
        /// The message.
        message: Message,
        /// Time at which the message was complete, in nanoseconds.
        arrived: Nanos,
    },
    /// Finish a connection whose messages have all been processed, and return the outcome.
    Finish(Id),
    /// Forget a connection that has ended. Its incomplete objects may be removed.
    Gone(Id),
}

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of received datagrams.
    pub datagrams: u64,
    /// Received datagrams that are invalid, or have an unknown connection or a wrong address.
    pub strange: u64,
    /// Received fragments that had been received before.
    pub repeated: u64,
    /// Number of opened connections.
    pub opened: u64,
    /// Number of connections removed because they were idle.
    pub timed_out: u64,
    /// Number of connections removed because their incomplete messages occupied space, or they
    /// occupied places, that others needed.
    pub stalled: u64,
    /// Number of refused connections.
    pub refused: u64,
}

struct Partial {
    /// Received data, up to the end of the highest-numbered fragment that has arrived.
    data: Vec<u8>,
    length: u32,
    fragments: Fragments,
}

impl Partial {
    /// Copies a fragment to its offset in the message. Fragments may arrive in any order.
    fn put(&mut self, at: usize, payload: &[u8]) {
        let end = at + payload.len();
        if at == self.data.len() {
            self.data.extend_from_slice(payload);
            return;
        }
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        self.data[at..end].copy_from_slice(payload);
    }
}

/// Numbers of the datagrams that have arrived.
#[derive(Default)]
struct Numbers {
    ranges: Ranges,
    /// Greatest number so far.
    newest: Option<u64>,
    /// Number of further datagrams that are acknowledged immediately.
    urgent: u8,
}

impl Numbers {
    /// Records the number of a datagram. Returns whether it must be acknowledged immediately.
    fn note(&mut self, number: u64) -> bool {
        let is_known = !self.ranges.insert(number);
        let is_next = self.newest.map_or(number == 0, |newest| number == newest.saturating_add(1));
        self.newest = self.newest.max(Some(number));
        if is_known || !is_next {
            self.urgent = URGENT;
        }
        let at_once = self.urgent > 0;
        self.urgent -= u8::from(at_once);
        at_once
    }
}

/// Bytes of the current and of the previous period, each of 5 s.
struct Recent {
    opened: Nanos,
    began: Nanos,
    /// New payload, and messages that were completed.
    now: (Bytes, Bytes),
    before: (Bytes, Bytes),
}

impl Recent {
    const PERIOD: Nanos = 5 * SECOND;

    fn new(now: Nanos) -> Self {
        Self { opened: now, began: now, now: (0, 0), before: (0, 0) }
    }

    fn turn(&mut self, now: Nanos) {
        let passed = (now - self.began) / Self::PERIOD;
        if passed > 0 {
            self.before = if passed == 1 { self.now } else { (0, 0) };
            (self.now, self.began) = ((0, 0), self.began + passed * Self::PERIOD);
        }
    }

    fn completed(&self) -> Bytes {
        self.now.1 + self.before.1
    }

    /// Returns whether `bytes` need more than [`SLOW`] at the rate of new payload.
    fn is_slow(&self, now: Nanos, bytes: Bytes) -> bool {
        let span = now - self.opened.max(self.began.saturating_sub(Self::PERIOD));
        let payload = u128::from(self.now.0 + self.before.0);
        u128::from(bytes) * u128::from(span) > payload * u128::from(SLOW)
    }
}

struct Connection {
    address: SocketAddr,
    chunk: u16,
    heard: Nanos,
    /// Time at which the last new fragment arrived.
    advanced: Nanos,
    numbers: Numbers,
    recent: Recent,
    partial: BTreeMap<u64, Partial>,
    /// Bytes reserved for incomplete messages, including [`CHARGE`] for each message.
    incomplete: Bytes,
    /// All messages below this number have arrived.
    below: u64,
    /// Numbers of messages after `below` that have arrived.
    above: BTreeSet<u64>,
    processed: u64,
    /// Bytes that messages occupy until they are processed, including [`CHARGE`] for each message.
    held: Bytes,
    /// Total bytes reserved so far, including [`CHARGE`] for each message.
    charged: u64,
    total: Option<u64>,
    asked: bool,
    result: Option<(Code, [u8; DIGEST])>,
    /// Whether an acknowledgement must be sent now.
    due: bool,
    /// Whether an acknowledgement must be sent within [`DELAY`].
    late: bool,
    /// Number of the last refused message, and of its last refused fragment. Fragments with higher
    /// numbers belong to the same attempt.
    refused: Option<(u64, u32)>,
    /// Limit in the last acknowledgement, in bytes.
    announced: u64,
}

/// A server without socket and clock.
pub struct Server {
    limits: Limits,
    baker: Baker,
    buffer: ReceiveBuffer<Message>,
    connections: BTreeMap<Id, Connection>,
    due: Vec<Id>,
    /// Pending acknowledgements in order of time: the time since which each waits, and its
    /// connection.
    late: VecDeque<(Nanos, Id)>,
    spare: Spare,
    finish: VecDeque<Job>,
    counters: Counters,
    swept: Nanos,
    /// Time of the last search for slow clients.
    searched: Nanos,
    /// Whether a message did not fit into the buffer since the last [`Server::sweep`].
    short: bool,
}

/// Datagrams to send: destination address and bytes of each.
pub type Out = Vec<(SocketAddr, Vec<u8>)>;

/// Answer to a datagram of an unknown connection. It has 11 bytes, fewer than the datagram, which
/// has at least 18.
const UNKNOWN: Packet = Packet::Close { code: Code::Unknown };

fn send(out: &mut Out, to: SocketAddr, id: Id, packet: &Packet) {
    let mut bytes = Vec::new();
    packet.write(id, &mut bytes);
    out.push((to, bytes));
}

impl Server {
    /// Returns a server without connections. `key` must be random and secret.
    pub fn new(limits: Limits, policy: sojourn_buffer::Params, key: [u8; 16]) -> Self {
        Self {
            limits,
            baker: Baker::new(key),
            buffer: ReceiveBuffer::new(policy, true),
            connections: BTreeMap::new(),
            due: Vec::new(),
            late: VecDeque::new(),
            spare: Spare::default(),
            finish: VecDeque::new(),
            counters: Counters::default(),
            swept: 0,
            searched: 0,
            short: false,
        }
    }

    /// Returns the receive buffer.
    pub fn buffer(&self) -> &ReceiveBuffer<Message> {
        &self.buffer
    }

    /// Returns the receive buffer, for changes of its policy and of the memory that the policy
    /// knows.
    pub fn buffer_mut(&mut self) -> &mut ReceiveBuffer<Message> {
        &mut self.buffer
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Processes datagrams that arrived together. Appends answers to `out`, except
    /// acknowledgements, which [`Server::acks`] appends.
    pub fn handle_all<'a>(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        datagrams: impl Iterator<Item = &'a [u8]>,
        out: &mut Out,
    ) {
        let mut datagrams = datagrams.peekable();
        while let Some(datagram) = datagrams.next() {
            match Data::read(datagram) {
                Some((id, data)) => {
                    self.counters.datagrams += 1;
                    self.fragments(now, from, id, data, &mut datagrams, out);
                }
                None => self.handle(now, from, datagram, out),
            }
        }
    }

    /// Processes a fragment and the fragments of the same message that follow directly.
    fn fragments<'a>(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        id: Id,
        data: Data<'a>,
        more: &mut Peekable<impl Iterator<Item = &'a [u8]>>,
        out: &mut Out,
    ) {
        if self.known(now, from, id).is_some() {
            self.data(now, id, data, more);
        } else {
            send(out, from, id, &UNKNOWN);
        }
    }

    /// Returns the connection `id` from an address, and records that the client was heard. Counts
    /// the datagram as strange if there is no such connection.
    fn known(&mut self, now: Nanos, from: SocketAddr, id: Id) -> Option<&mut Connection> {
        let mut connection = self.connections.get_mut(&id).filter(|c| c.address == from);
        match &mut connection {
            Some(c) => c.heard = now,
            None => self.counters.strange += 1,
        }
        connection
    }

    /// Processes a datagram. Appends answers to `out`, except acknowledgements, which
    /// [`Server::acks`] appends.
    pub fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8], out: &mut Out) {
        self.counters.datagrams += 1;
        let Some((id, packet)) = packet::read(datagram) else {
            self.counters.strange += 1;
            return;
        };
        let answer = match packet {
            Packet::Hello => Some(Packet::Retry(self.baker.bake(now, from, id))),
            Packet::Open { cookie, .. } if !self.baker.is_fresh(now, from, id, cookie) => {
                Some(Packet::Retry(self.baker.bake(now, from, id)))
            }
            Packet::Open { chunk, .. } => Some(match self.open(now, from, id, chunk) {
                Ok(limit) => Packet::Accept { most: self.limits.message, limit },
                Err(code) => Packet::Close { code },
            }),
            Packet::Data(data) => {
                self.fragments(now, from, id, data, &mut std::iter::empty().peekable(), out);
                None
            }
            Packet::Ping { number } => self.on_ping(now, from, id, number),
            Packet::Finish { messages } => self.on_finish(now, from, id, messages),
            Packet::Close { .. } => {
                if self.connections.get(&id).is_some_and(|c| c.address == from) {
                    self.forget(id);
                }
                None
            }
            Packet::Retry(_)
            | Packet::Accept { .. }
            | Packet::Ack { .. }
            | Packet::Finished { .. } => {
                self.counters.strange += 1;
                None
            }
        };
        if let Some(answer) = answer {
            send(out, from, id, &answer);
        }
    }

    fn on_ping(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        id: Id,
        number: u64,
    ) -> Option<Packet<'static>> {
        let Some(c) = self.known(now, from, id) else { return Some(UNKNOWN) };
        c.numbers.note(number);
        self.set_due(id);
        None
    }

    fn on_finish(
        &mut self,
        now: Nanos,
        from: SocketAddr,
        id: Id,
        messages: u64,
    ) -> Option<Packet<'static>> {
        let Some(c) = self.known(now, from, id) else { return Some(UNKNOWN) };
        c.total.get_or_insert(messages);
        if let Some((code, digest)) = c.result {
            return Some(Packet::Finished { code, digest });
        }
        self.set_due(id);
        self.ask_finish(id);
        None
    }

    fn open(&mut self, now: Nanos, from: SocketAddr, id: Id, chunk: u16) -> Result<u64, Code> {
        if !CHUNKS.contains(&chunk) {
            self.counters.refused += 1;
            return Err(Code::Chunk);
        }
        if let Some(c) = self.connections.get(&id) {
            // Either the client repeats its request, or another connection has the same number.
            return if c.address == from && c.chunk == chunk {
                Ok(self.limit(id))
            } else {
                Err(Code::Busy)
            };
        }
        // The limit also applies to the tasks that report ends of connections to the handler.
        if self.connections.len().max(self.finish.len()) >= self.limits.connections
            && !self.replace_unused(now)
        {
            self.counters.refused += 1;
            return Err(Code::Busy);
        }
        self.counters.opened += 1;
        self.connections.insert(
            id,
            Connection {
                address: from,
                chunk,
                heard: now,
                advanced: now,
                numbers: Numbers::default(),
                recent: Recent::new(now),
                partial: BTreeMap::new(),
                incomplete: 0,
                below: 0,
                above: BTreeSet::new(),
                processed: 0,
                held: 0,
                charged: 0,
                total: None,
                asked: false,
                result: None,
                due: false,
                late: false,
                refused: None,
                announced: 0,
            },
        );
        Ok(self.limit(id))
    }

    /// Removes a connection without new data that waits for none of our work, of the address with
    /// most connections. Returns false if all are used.
    fn replace_unused(&mut self, now: Nanos) -> bool {
        if self.finish.len() >= self.limits.connections {
            return false;
        }
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        for c in self.connections.values() {
            *counts.entry(c.address.ip()).or_default() += 1;
        }
        let unused = self.connections.iter().filter(|(_, c)| {
            let waits = c.held > c.incomplete || c.total.is_some() && c.result.is_none();
            now - c.advanced > UNUSED && !waits
        });
        let worst = unused.max_by_key(|(_, c)| (counts[&c.address.ip()], now - c.advanced));
        let Some((&id, _)) = worst else { return false };
        self.counters.stalled += 1;
        self.forget(id);
        true
    }

    /// If memory is short, removes clients whose incomplete messages would need too long.
    fn relieve(&mut self, now: Nanos) {
        if now.saturating_sub(self.searched) < MILLISECOND {
            return;
        }
        let potential = self.buffer.potential();
        while potential.saturating_sub(self.buffer.occupied()) < potential / SHORT {
            self.searched = now;
            let slow = self.connections.iter_mut().filter_map(|(&id, c)| {
                c.recent.turn(now);
                let is_slow = c.incomplete > SMALL && c.recent.is_slow(now, c.incomplete);
                is_slow.then_some((c.incomplete, id))
            });
            let Some((_, id)) = slow.max() else { return };
            self.counters.stalled += 1;
            self.forget(id);
        }
    }

    /// Returns the client's credit since the start of the connection: the bytes of messages, and
    /// [`CHARGE`] for each message, that it may have begun to send.
    fn limit(&self, id: Id) -> u64 {
        let Some(c) = self.connections.get(&id) else { return 0 };
        let room = self.buffer.potential().saturating_sub(self.buffer.occupied());
        let room = room.min(self.limits.client.saturating_sub(c.held));
        c.charged.saturating_add(room)
    }

    fn set_due(&mut self, id: Id) {
        if let Some(c) = self.connections.get_mut(&id)
            && !c.due
        {
            c.due = true;
            self.due.push(id);
        }
    }

    fn data<'a>(
        &mut self,
        now: Nanos,
        id: Id,
        data: Data<'a>,
        more: &mut Peekable<impl Iterator<Item = &'a [u8]>>,
    ) {
        let Data { number, message, length, index, .. } = data;
        let Some(c) = self.connections.get_mut(&id) else { return };
        let chunk = c.chunk;
        let fits = fragment(length, chunk, index).filter(|(_, n)| *n == data.payload.len());
        let known = c.total.is_none_or(|total| message < total);
        let ahead = message >= c.below.saturating_add(AHEAD);
        let Some(_) = fits.filter(|_| known && !ahead && length <= self.limits.message) else {
            self.counters.strange += 1;
            return;
        };
        if message < c.below || c.above.contains(&message) {
            self.counters.repeated += 1;
            c.numbers.note(number);
            return self.set_due(id);
        }
        if !c.partial.contains_key(&message) && !self.reserve(now, id, &data) {
            return self.set_due(id);
        }
        let Some(c) = self.connections.get_mut(&id) else { return };
        let Some(partial) = c.partial.get_mut(&message) else { return };
        // All fragments of a message must state the same length.
        if partial.length != length {
            self.counters.strange += 1;
            return;
        }
        let mut next = Some(data);
        let mut at_once = false;
        while let Some(data) = next.take() {
            let Some((at, _)) = fragment(length, chunk, data.index) else { break };
            let is_new = partial.fragments.add(data.index);
            if is_new {
                c.advanced = now;
                c.recent.turn(now);
                c.recent.now.0 += data.payload.len() as Bytes;
                partial.put(at, data.payload);
            } else {
                self.counters.repeated += 1;
            }
            at_once |= c.numbers.note(data.number) || data.ask || !is_new;
            // If the next datagram belongs to the same message, the search for the message is
            // skipped.
            next =
                more.peek().and_then(|datagram| Data::read(datagram)).and_then(|(other, data)| {
                    let same = (other, data.message, data.length) == (id, message, length);
                    let fits = fragment(length, chunk, data.index)?.1 == data.payload.len();
                    (same && fits).then_some(data)
                });
            if next.is_some() {
                more.next();
                self.counters.datagrams += 1;
            }
        }
        if partial.fragments.is_complete() {
            let data = c.partial.remove(&message).map_or(Vec::new(), |p| p.data);
            c.above.insert(message);
            while c.above.remove(&c.below) {
                c.below += 1;
            }
            let charge = Bytes::from(length) + CHARGE;
            c.incomplete -= charge;
            c.recent.now.1 += charge;
            self.buffer.complete(now, charge, Message { connection: id, number: message, data });
        }
        if at_once {
            self.set_due(id);
        } else if !c.due && !c.late {
            c.late = true;
            self.late.push_back((now, id));
        }
    }

    /// Reserves space for the message of a fragment. Returns whether it fits; otherwise the fragment
    /// is not acknowledged, but the client receives the current limit.
    fn reserve(&mut self, now: Nanos, id: Id, data: &Data) -> bool {
        let Data { message, length, index, .. } = *data;
        let Some(c) = self.connections.get_mut(&id) else { return false };
        let charge = Bytes::from(length) + CHARGE;
        let client = self.limits.client;
        if charge > self.buffer.params().bounds().1.min(client) {
            // The message is longer than the buffer can become, or exceeds the client's limit.
            c.asked = true;
            c.result.get_or_insert((Code::Refused, [0; DIGEST]));
            return false;
        }
        c.recent.turn(now);
        if c.partial.len() >= INCOMPLETE && c.incomplete + charge > c.recent.completed() {
            return false;
        }
        self.relieve(now);
        let Some(c) = self.connections.get_mut(&id) else { return false };
        let is_same = c.refused.is_some_and(|(m, i)| m == message && i < index);
        let is_full = c.held.saturating_add(charge) > client
            || (is_same && self.buffer.occupied() + charge > self.buffer.size());
        if is_full || !self.buffer.reserve(now, charge) {
            c.refused = Some((message, index));
            self.short |= c.held.saturating_add(charge) <= client;
            return false;
        }
        c.held += charge;
        c.incomplete += charge;
        c.charged += charge;
        let room = self.buffer.size() - self.buffer.occupied();
        let data = self.spare.get(length as usize, room);
        let fragments = Fragments::default().renewed(fragments(length, c.chunk));
        c.partial.insert(message, Partial { data, length, fragments });
        true
    }

    /// Returns the time of the next delayed acknowledgement if no datagram arrives before; `None`
    /// if none is pending.
    pub fn wake(&self) -> Option<Nanos> {
        self.late.front().map(|(since, _)| since + DELAY)
    }

    /// Appends the acknowledgements that are due to `out`.
    pub fn acks(&mut self, now: Nanos, out: &mut Out) {
        while let Some(&(since, id)) = self.late.front()
            && (now >= since + DELAY || !self.connections.get(&id).is_some_and(|c| c.late))
        {
            self.late.pop_front();
            if self.connections.get(&id).is_some_and(|c| c.late) {
                self.set_due(id);
            }
        }
        while let Some(id) = self.due.pop() {
            self.ack(id, out);
        }
    }

    fn ack(&mut self, id: Id, out: &mut Out) {
        let limit = self.limit(id);
        let Some(c) = self.connections.get_mut(&id) else { return };
        (c.due, c.late, c.announced) = (false, false, limit);
        let ranges = c.numbers.ranges.as_slice().to_vec();
        send(out, c.address, id, &Packet::Ack { limit, processed: c.processed, ranges });
        if let Some((code, digest)) = c.result {
            send(out, c.address, id, &Packet::Finished { code, digest });
        }
    }

    /// Returns whether the handler has a task.
    pub fn has_work(&self) -> bool {
        !self.buffer.is_empty() || !self.finish.is_empty()
    }

    /// Returns the next task of the handler; `None` without a task.
    pub fn next_job(&mut self) -> Option<Job> {
        if let Some(job) = self.finish.pop_front() {
            return Some(job);
        }
        loop {
            let taken = self.buffer.take()?;
            // Messages of a connection that has ended are skipped.
            let ended = self.connections.get_mut(&taken.item.connection);
            match ended {
                Some(c) if c.result.is_none() => {
                    return Some(Job::Message { message: taken.item, arrived: taken.arrived });
                }
                Some(c) => c.held = c.held.saturating_sub(taken.bytes),
                None => {}
            }
        }
    }

    /// Records that the handler has processed a message.
    pub fn processed(&mut self, message: Message) {
        let (id, length) = (message.connection, message.data.len());
        let room = self.buffer.size().saturating_sub(self.buffer.occupied());
        self.spare.put(message.data, room);
        let Some(c) = self.connections.get_mut(&id) else { return };
        c.held = c.held.saturating_sub(length as Bytes + CHARGE);
        c.processed += 1;
        let (idle, announced, charged) = (c.held == 0, c.announced, c.charged);
        self.ask_finish(id);
        // Answer if the buffer has no more data of the client, or if the client will soon reach its
        // limit and the limit can be raised considerably.
        let most = self.buffer.potential().min(self.limits.client);
        let short = announced.saturating_sub(charged) < most / 4;
        if idle || short && self.limit(id).saturating_sub(announced) >= most / 8 {
            self.set_due(id);
        }
    }

    /// Adds the task to finish a connection, if all of its messages have been processed.
    fn ask_finish(&mut self, id: Id) {
        let Some(c) = self.connections.get_mut(&id) else { return };
        if !c.asked && c.total == Some(c.processed) {
            c.asked = true;
            self.finish.push_back(Job::Finish(id));
        }
    }

    /// Records the outcome of a connection and sends it to the client. Before all messages are
    /// processed, the outcome can only be a refusal.
    pub fn finished(&mut self, id: Id, code: Code, digest: [u8; DIGEST], out: &mut Out) {
        let Some(c) = self.connections.get_mut(&id) else { return };
        if c.result.is_none() {
            c.asked = true;
            c.result = Some((code, digest));
            send(out, c.address, id, &Packet::Finished { code, digest });
        }
    }

    fn forget(&mut self, id: Id) {
        let Some(c) = self.connections.remove(&id) else { return };
        for partial in c.partial.values() {
            self.buffer.release(Bytes::from(partial.length) + CHARGE);
        }
        self.finish.push_back(Job::Gone(id));
    }

    /// Removes idle connections. If the buffer is full, also removes connections whose incomplete
    /// messages make no progress. Must be called regularly.
    pub fn sweep(&mut self, now: Nanos) {
        if now.saturating_sub(self.swept) < SECOND / 4 {
            return;
        }
        self.swept = now;
        self.relieve(now);
        let short = std::mem::take(&mut self.short);
        let mut over = Vec::new();
        for (&id, c) in &self.connections {
            if now.saturating_sub(c.heard) > self.limits.idle {
                self.counters.timed_out += 1;
            } else if short && !c.partial.is_empty() && now.saturating_sub(c.advanced) > STALLED {
                self.counters.stalled += 1;
            } else {
                continue;
            }
            over.push(id);
        }
        for id in over {
            self.forget(id);
        }
    }
}
