//! Packets in the order of their times, and the flows that hold them.

use crate::packet::{Packet, Sender, Socket, SocketKind};
use crate::packet_fifo::Queued;
use sojourn_units::Nanos;
use std::collections::VecDeque;

/// Which flow a packet belongs to: a socket's, or that of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Hash(u32),
    Socket(u32),
}

/// Reports number sockets from here on.
const SOCKETS: u64 = 1_000_000;

impl Key {
    /// Returns the key of a packet. Only connected sockets are flows by themselves.
    pub fn of(packet: &impl Packet, sender: &Sender, mask: u32) -> Self {
        match sender.socket {
            Some(socket) if is_connected(&socket) => Self::Socket(socket.number),
            _ => Self::Hash(packet.flow_hash() & mask),
        }
    }

    /// Returns its number in reports.
    pub fn number(self) -> u64 {
        match self {
            Self::Hash(hash) => hash.into(),
            Self::Socket(number) => SOCKETS + u64::from(number),
        }
    }

    /// Returns the key that reports call `number`.
    pub fn numbered(number: u64) -> Option<Self> {
        match number.checked_sub(SOCKETS) {
            Some(socket) => u32::try_from(socket).ok().map(Self::Socket),
            None => u32::try_from(number).ok().map(Self::Hash),
        }
    }
}

/// Returns whether the socket has one peer.
pub(super) fn is_connected(socket: &Socket) -> bool {
    matches!(socket.kind, SocketKind::Stream | SocketKind::Datagram)
}

/// Data of a queued packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    /// Before this it may not leave.
    pub time: Nanos,
    /// The band that it counts in.
    pub band: u8,
    /// Its sender asked for the time.
    pub is_timed: bool,
    /// It continues the super-packet of the packet before it.
    pub continues: bool,
}

/// Packets in the order of their times.
#[derive(Clone, Debug)]
pub(super) struct Line<P> {
    /// Packets that came in the order of their times.
    linear: VecDeque<Queued<P, Note>>,
    /// Packets that came after a later one, in the order of their times.
    sorted: VecDeque<Queued<P, Note>>,
    /// Packets that continue super-packets.
    continuing: usize,
}

impl<P> Default for Line<P> {
    fn default() -> Self {
        Self { linear: VecDeque::new(), sorted: VecDeque::new(), continuing: 0 }
    }
}

impl<P> Line<P> {
    /// Packets queued.
    pub fn len(&self) -> usize {
        self.linear.len() + self.sorted.len()
    }

    /// Packets queued, where those of a super-packet count as one.
    pub fn supers(&self) -> usize {
        self.len() - self.continuing
    }

    /// Adds a packet behind those of its time.
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

    /// Returns whether the first packet is the sorted ones'.
    fn is_sorted_first(&self) -> bool {
        match (self.sorted.front(), self.linear.front()) {
            (Some(sorted), Some(linear)) => sorted.note.time < linear.note.time,
            (sorted, _) => sorted.is_some(),
        }
    }

    /// Returns the packet that leaves next.
    pub fn first(&self) -> Option<&Queued<P, Note>> {
        if self.is_sorted_first() { self.sorted.front() } else { self.linear.front() }
    }

    /// Takes it.
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

/// The place of a flow, numbered as the kernel's states in recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    Listed = 1,
    Detached = 2,
    Throttled = 3,
}

/// A flow.
#[derive(Clone, Debug)]
pub(super) struct Flow<P> {
    pub key: Key,
    pub line: Line<P>,
    pub credit: i32,
    pub band: u8,
    /// Before this no packet may leave.
    pub time_next: Nanos,
    pub state: State,
    /// When it was detached, in ticks.
    pub age: u64,
    /// The hash of its socket.
    pub hash: u32,
    /// Distinguishes its present place among the throttled flows from earlier ones.
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
