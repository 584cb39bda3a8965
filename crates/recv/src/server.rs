//! The server's side: who may send, what has come, what goes into the buffer.
//!
//! No clock and no I/O: datagrams go in with their time, datagrams to be sent come out. Until a client
//! has said its cookie nothing is kept of it. The first fragment of a message sets room aside for all
//! of it in the one buffer of all clients; if there is none, the fragment is not acknowledged, and its
//! sender takes it for lost. What has been acknowledged is never thrown away.
//!
//! # Invariants
//! Memory is bounded: connections, bytes of one client and of all, messages ahead, ranges told.

use crate::cookie::Baker;
use crate::packet::{self, Code, DIGEST, Id, Packet};
use crate::ranges::Ranges;
use sojourn_control::buffer::{self, Store};
use sojourn_units::{Bytes, Nanos, SECOND};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Bytes that the buffer charges a message besides its own: what it takes to keep count of it.
pub const CHARGE: Bytes = 256;
/// How far a client may be ahead of the oldest message that has not come.
const AHEAD: u64 = 4096;
/// Shortest and longest payload of a fragment.
const CHUNKS: std::ops::RangeInclusive<u16> = 512..=65_000;

/// Limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Bytes of one client in the buffer.
    pub client: Bytes,
    /// Bytes of a message.
    pub message: u32,
    /// A connection is forgotten after this silence.
    pub idle: Nanos,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 1024, client: 64 << 20, message: 4 << 20, idle: 30 * SECOND }
    }
}

/// A whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The connection it came by.
    pub connection: Id,
    /// Its number, from 0.
    pub number: u64,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// What a handler is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// A message that waited since `arrived`. It is no longer in the buffer, but counts as its
    /// client's until [`Server::processed`].
    Message {
        /// The message.
        message: Message,
        /// When it was complete.
        arrived: Nanos,
    },
    /// All messages of this connection have been processed: what became of them?
    Finish(Id),
    /// This connection will send no more: what is unfinished may be removed.
    Gone(Id),
}

/// What a server has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that came.
    pub datagrams: u64,
    /// Of these, not ours, of unknown connections or from a wrong address.
    pub strange: u64,
    /// Of these, of what was there.
    pub repeated: u64,
    /// Connections opened.
    pub opened: u64,
    /// Connections forgotten after silence.
    pub timed_out: u64,
    /// Connections refused.
    pub refused: u64,
}

struct Partial {
    data: Vec<u8>,
    have: Vec<u64>,
    missing: u32,
}

struct Connection {
    address: SocketAddr,
    chunk: u16,
    heard: Nanos,
    numbers: Ranges,
    partial: BTreeMap<u64, Partial>,
    /// All messages below have come; and these above.
    below: u64,
    above: BTreeSet<u64>,
    processed: u64,
    /// Bytes in the buffer, set aside or complete, with their charge.
    held: Bytes,
    /// Bytes that room was set aside for so far, with their charge.
    charged: u64,
    total: Option<u64>,
    asked: bool,
    result: Option<(Code, [u8; DIGEST])>,
    /// Whether an acknowledgement is due.
    due: bool,
    /// Whether the last limit left no room to send.
    blocked: bool,
}

/// A server without its socket and clock.
pub struct Server {
    limits: Limits,
    baker: Baker,
    store: Store<Message>,
    connections: BTreeMap<Id, Connection>,
    due: Vec<Id>,
    finish: VecDeque<Job>,
    counters: Counters,
    swept: Nanos,
}

/// Datagrams to be sent: where to, and their bytes.
pub type Out = Vec<(SocketAddr, Vec<u8>)>;

impl Server {
    /// A server; `key` must be random and secret.
    pub fn new(limits: Limits, policy: buffer::Params, key: [u8; 16]) -> Self {
        Self {
            limits,
            baker: Baker::new(key),
            store: Store::new(policy, true),
            connections: BTreeMap::new(),
            due: Vec::new(),
            finish: VecDeque::new(),
            counters: Counters::default(),
            swept: 0,
        }
    }

    /// The buffer, to be read.
    pub fn store(&self) -> &Store<Message> {
        &self.store
    }

    /// The buffer, to be given another policy or knowledge of the memory.
    pub fn store_mut(&mut self) -> &mut Store<Message> {
        &mut self.store
    }

    /// What has been counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Open connections.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Takes a datagram. Answers are put into `out`, except acknowledgements: see [`Server::acks`].
    pub fn handle(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8], out: &mut Out) {
        self.counters.datagrams += 1;
        let Some((id, packet)) = packet::read(datagram) else {
            self.counters.strange += 1;
            return;
        };
        let mut answer = |packet: Packet| {
            let mut bytes = Vec::new();
            packet.write(id, &mut bytes);
            out.push((from, bytes));
        };
        match packet {
            Packet::Hello => answer(Packet::Retry(self.baker.bake(now, from, id))),
            Packet::Open { cookie, chunk } => {
                if !self.baker.is_fresh(now, from, id, cookie) {
                    return answer(Packet::Retry(self.baker.bake(now, from, id)));
                }
                match self.open(now, from, id, chunk) {
                    Ok(limit) => answer(Packet::Accept { most: self.limits.message, limit }),
                    Err(code) => answer(Packet::Close { code }),
                }
            }
            Packet::Data { .. } | Packet::Ping { .. } | Packet::Finish { .. } => {
                let Some(c) = self.connections.get_mut(&id).filter(|c| c.address == from) else {
                    self.counters.strange += 1;
                    // 11 bytes for at least 18.
                    return answer(Packet::Close { code: Code::Unknown });
                };
                c.heard = now;
                match packet {
                    Packet::Data { number, message, length, index, payload } => {
                        self.data(now, id, number, (message, length, index), payload);
                    }
                    Packet::Ping { number } => {
                        c.numbers.insert(number);
                        self.set_due(id);
                    }
                    Packet::Finish { messages } => {
                        c.total.get_or_insert(messages);
                        if let Some((code, digest)) = c.result {
                            return answer(Packet::Finished { code, digest });
                        }
                        self.set_due(id);
                        self.ask_finish(id);
                    }
                    _ => {}
                }
            }
            Packet::Close { .. } => {
                if self.connections.get(&id).is_some_and(|c| c.address == from) {
                    self.forget(id);
                }
            }
            Packet::Retry(_)
            | Packet::Accept { .. }
            | Packet::Ack { .. }
            | Packet::Finished { .. } => {
                self.counters.strange += 1;
            }
        }
    }

    fn open(&mut self, now: Nanos, from: SocketAddr, id: Id, chunk: u16) -> Result<u64, Code> {
        if !CHUNKS.contains(&chunk) {
            self.counters.refused += 1;
            return Err(Code::Chunk);
        }
        if let Some(c) = self.connections.get(&id) {
            // Said twice by the same client, or a number that somebody else has.
            return if c.address == from && c.chunk == chunk {
                Ok(self.limit(id))
            } else {
                Err(Code::Busy)
            };
        }
        if self.connections.len() >= self.limits.connections {
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
                numbers: Ranges::default(),
                partial: BTreeMap::new(),
                below: 0,
                above: BTreeSet::new(),
                processed: 0,
                held: 0,
                charged: 0,
                total: None,
                asked: false,
                result: None,
                due: false,
                blocked: false,
            },
        );
        Ok(self.limit(id))
    }

    /// Bytes of messages, each with its [`CHARGE`], that a client may begin to send in all.
    fn limit(&self, id: Id) -> u64 {
        let Some(c) = self.connections.get(&id) else { return 0 };
        let room = self.store.potential().saturating_sub(self.store.occupied());
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

    fn data(
        &mut self,
        now: Nanos,
        id: Id,
        number: u64,
        (message, length, index): (u64, u32, u32),
        payload: &[u8],
    ) {
        let Some(c) = self.connections.get_mut(&id) else { return };
        let fits = fragment(length, c.chunk, index).is_some_and(|(_, n)| n == payload.len());
        let known = c.total.is_none_or(|total| message < total);
        if !fits || !known || length > self.limits.message || message >= c.below + AHEAD {
            self.counters.strange += 1;
            return;
        }
        let Some((at, n)) = fragment(length, c.chunk, index) else { return };
        if message < c.below || c.above.contains(&message) {
            self.counters.repeated += 1;
            c.numbers.insert(number);
            return self.set_due(id);
        }
        let charge = Bytes::from(length) + CHARGE;
        if charge > self.store.params().bounds().1.min(self.limits.client) {
            // It never fits.
            c.asked = true;
            c.result.get_or_insert((Code::Refused, [0; DIGEST]));
            return self.set_due(id);
        }
        if !c.partial.contains_key(&message) {
            let full = c.held.saturating_add(charge) > self.limits.client;
            if full || !self.store.reserve(now, charge) {
                // Not acknowledged; but the sender is told how much there is room for.
                return self.set_due(id);
            }
            c.held += charge;
            c.charged += charge;
            let fragments = fragments(length, c.chunk);
            c.partial.insert(
                message,
                Partial {
                    data: vec![0; length as usize],
                    have: vec![0; fragments.div_ceil(64) as usize],
                    missing: fragments,
                },
            );
        }
        let Some(partial) = c.partial.get_mut(&message) else { return };
        // A message whose length changes is none.
        if partial.data.len() != length as usize {
            self.counters.strange += 1;
            return;
        }
        c.numbers.insert(number);
        let (word, bit) = ((index / 64) as usize, 1u64 << (index % 64));
        if partial.have[word] & bit != 0 {
            self.counters.repeated += 1;
            return self.set_due(id);
        }
        partial.have[word] |= bit;
        partial.missing -= 1;
        partial.data[at..at + n].copy_from_slice(payload);
        if partial.missing == 0 {
            let data = c.partial.remove(&message).map_or(Vec::new(), |p| p.data);
            c.above.insert(message);
            while c.above.remove(&c.below) {
                c.below += 1;
            }
            self.store.complete(now, charge, Message { connection: id, number: message, data });
        }
        self.set_due(id);
    }

    /// Acknowledgements of all that came since the last call.
    pub fn acks(&mut self, out: &mut Out) {
        for id in std::mem::take(&mut self.due) {
            self.ack(id, out);
        }
    }

    fn ack(&mut self, id: Id, out: &mut Out) {
        let limit = self.limit(id);
        let Some(c) = self.connections.get_mut(&id) else { return };
        c.due = false;
        c.blocked = limit - c.charged < self.limits.client / 4;
        let ranges = c.numbers.as_slice().to_vec();
        let mut bytes = Vec::new();
        Packet::Ack { limit, processed: c.processed, ranges }.write(id, &mut bytes);
        out.push((c.address, bytes));
        if let Some((code, digest)) = c.result {
            let mut bytes = Vec::new();
            Packet::Finished { code, digest }.write(id, &mut bytes);
            out.push((c.address, bytes));
        }
    }

    /// What the handler is to do next.
    pub fn next_job(&mut self) -> Option<Job> {
        if let Some(job) = self.finish.pop_front() {
            return Some(job);
        }
        loop {
            let taken = self.store.take()?;
            // Nobody waits for what an ended connection had sent before.
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

    /// The handler is done with a message of `length` bytes of this connection.
    pub fn processed(&mut self, id: Id, length: usize) {
        let Some(c) = self.connections.get_mut(&id) else { return };
        c.held = c.held.saturating_sub(length as Bytes + CHARGE);
        c.processed += 1;
        let tell = c.blocked || c.partial.is_empty();
        self.ask_finish(id);
        if tell {
            self.set_due(id);
        }
    }

    /// Lets the handler finish a connection whose messages have all been processed.
    fn ask_finish(&mut self, id: Id) {
        let Some(c) = self.connections.get_mut(&id) else { return };
        if !c.asked && c.total == Some(c.processed) {
            c.asked = true;
            self.finish.push_back(Job::Finish(id));
        }
    }

    /// What became of a connection's messages; before its end only to refuse the rest.
    pub fn finished(&mut self, id: Id, code: Code, digest: [u8; DIGEST], out: &mut Out) {
        let Some(c) = self.connections.get_mut(&id) else { return };
        if c.result.is_none() {
            c.asked = true;
            c.result = Some((code, digest));
            let mut bytes = Vec::new();
            Packet::Finished { code, digest }.write(id, &mut bytes);
            out.push((c.address, bytes));
        }
    }

    fn forget(&mut self, id: Id) {
        let Some(c) = self.connections.remove(&id) else { return };
        for partial in c.partial.values() {
            self.store.release(partial.data.len() as Bytes + CHARGE);
        }
        self.finish.push_back(Job::Gone(id));
    }

    /// Forgets connections that are silent for too long; to be called now and then.
    pub fn sweep(&mut self, now: Nanos) {
        if now.saturating_sub(self.swept) < SECOND / 4 {
            return;
        }
        self.swept = now;
        let old = |c: &Connection| now.saturating_sub(c.heard) > self.limits.idle;
        let silent: Vec<Id> =
            self.connections.iter().filter(|(_, c)| old(c)).map(|(&id, _)| id).collect();
        for id in silent {
            self.counters.timed_out += 1;
            self.forget(id);
        }
    }
}

/// Fragments of a message; an empty one has one.
pub(crate) fn fragments(length: u32, chunk: u16) -> u32 {
    length.div_ceil(u32::from(chunk)).max(1)
}

/// Place and length of a fragment.
pub(crate) fn fragment(length: u32, chunk: u16, index: u32) -> Option<(usize, usize)> {
    if chunk == 0 || index >= fragments(length, chunk) {
        return None;
    }
    let at = index as usize * usize::from(chunk);
    Some((at, (length as usize - at).min(usize::from(chunk))))
}
