//! Flows of FQ, and their packets in the order of departure times.

use crate::packet::{Packet, Sender, Socket, SocketKind};
use crate::packet_fifo::Queued;
use sojourn_units::Nanos;
use std::collections::VecDeque;

/// Identifier of a flow: a socket, or a hash for packets without a connected socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Hash(u32),
    Socket(u32),
}

/// First number of a socket's flow in recordings; lower numbers are hashes.
const SOCKETS: u64 = 1_000_000;

impl Key {
    /// Returns the flow of a packet. Only connected sockets are flows of their own.
    pub fn of(packet: &impl Packet, sender: &Sender, mask: u32) -> Self {
        match sender.socket {
            Some(socket) if is_connected(&socket) => Self::Socket(socket.number),
            _ => Self::Hash(packet.flow_hash() & mask),
        }
    }

    /// Returns the flow's number in recordings.
    pub fn number(self) -> u64 {
        match self {
            Self::Hash(hash) => hash.into(),
            Self::Socket(number) => SOCKETS + u64::from(number),
        }
    }

    /// Returns the flow with this number in recordings; `None` if the number is out of range.
    pub fn numbered(number: u64) -> Option<Self> {
        match number.checked_sub(SOCKETS) {
            Some(socket) => u32::try_from(socket).ok().map(Self::Socket),
            None => u32::try_from(number).ok().map(Self::Hash),
        }
    }
}

/// Returns whether the socket is connected to one peer.
pub(super) fn is_connected(socket: &Socket) -> bool {
    matches!(socket.kind, SocketKind::Stream | SocketKind::Datagram)
}

/// Data about a queued packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    /// Earliest departure time.
    pub time: Nanos,
    /// Band in whose limit the packet counts.
    pub band: u8,
    /// Whether the sender requested the departure time.
    pub is_timed: bool,
    /// Whether the packet continues the super-packet of the packet before it.
    pub continues: bool,
}

/// Packets in the order of their departure times.
#[derive(Clone, Debug)]
pub(super) struct Line<P> {
    /// Packets that arrived in the order of their departure times.
    linear: VecDeque<Queued<P, Note>>,
    /// Packets that arrived after a packet with a later departure time, sorted by departure time.
    sorted: VecDeque<Queued<P, Note>>,
    /// Number of packets that continue super-packets.
    continuing: usize,
}

impl<P> Default for Line<P> {
    fn default() -> Self {
        Self { linear: VecDeque::new(), sorted: VecDeque::new(), continuing: 0 }
    }
}

impl<P> Line<P> {
    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.linear.len() + self.sorted.len()
    }

    /// Returns the number of packets, with each super-packet counted as one.
    pub fn supers(&self) -> usize {
        self.len() - self.continuing
    }

    /// Adds a packet after all packets with the same or an earlier departure time.
    pub fn push(&mut self, queued: Queued<P, Note>) {
        let time = queued.note.time;
        self.continuing += usize::from(queued.note.continues);
        if self.linear.back().is_none_or(|last| time >= last.note.time) {
            self.linear.push_back(queued);
        } else {
            let at = self.sorted.partition_point(|other| other.note.time <= time);
            self.sorted.insert(at, queued);
        }
    }

    /// Returns whether the next packet is in `sorted`.
    fn is_sorted_first(&self) -> bool {
        match (self.sorted.front(), self.linear.front()) {
            (Some(sorted), Some(linear)) => sorted.note.time < linear.note.time,
            (sorted, _) => sorted.is_some(),
        }
    }

    /// Returns the packet with the earliest departure time.
    pub fn first(&self) -> Option<&Queued<P, Note>> {
        if self.is_sorted_first() { self.sorted.front() } else { self.linear.front() }
    }

    /// Removes and returns the packet with the earliest departure time.
    pub fn pop(&mut self) -> Option<Queued<P, Note>> {
        let line = if self.is_sorted_first() { &mut self.sorted } else { &mut self.linear };
        let queued = line.pop_front()?;
        self.continuing -= usize::from(queued.note.continues);
        Some(queued)
    }

    /// Returns the times of arrival, in any order.
    pub fn times(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.linear.iter().chain(&self.sorted).map(|queued| queued.at)
    }
}

/// State of a flow; the values are those in recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    Listed = 1,
    Detached = 2,
    Throttled = 3,
}

/// A flow and its packets.
#[derive(Clone, Debug)]
pub(super) struct Flow<P> {
    pub key: Key,
    pub line: Line<P>,
    pub credit: i32,
    pub band: u8,
    /// Time before which no packet may leave.
    pub time_next: Nanos,
    pub state: State,
    /// Time at which the flow was detached, in timer ticks.
    pub age: u64,
    /// Hash of the socket's connection.
    pub hash: u32,
    /// Number of the flow's present entry among the throttled flows; entries with other numbers are
    /// void.
    pub turn: u64,
}

impl<P> Flow<P> {
    /// Returns a flow without packets, on no list.
    pub fn new(key: Key, credit: i32, age: u64, hash: u32) -> Self {
        Self {
            key,
            line: Line::default(),
            credit,
            band: 0,
            time_next: 0,
            state: State::Detached,
            age,
            hash,
            turn: 0,
        }
    }
}
