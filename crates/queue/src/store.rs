//! Where disciplines keep their packets: a ring of packets with their times of arrival.

use crate::discipline::{DropReason, Sink, Totals, View};
use crate::packet::Packet;
use sojourn_units::Nanos;
use std::collections::VecDeque;

/// A packet in a queue.
#[derive(Clone, Debug)]
pub struct Queued<P> {
    /// When it was enqueued.
    pub at: Nanos,
    /// The packet.
    pub packet: P,
}

/// A first-in first-out ring. It grows to the largest backlog seen and then allocates no more.
#[derive(Clone, Debug)]
pub struct Store<P> {
    ring: VecDeque<Queued<P>>,
    bytes: u64,
}

impl<P> Default for Store<P> {
    fn default() -> Self {
        Self { ring: VecDeque::new(), bytes: 0 }
    }
}

impl<P: Packet> Store<P> {
    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, at: Nanos, packet: P) {
        self.bytes += u64::from(packet.len());
        self.ring.push_back(Queued { at, packet });
    }

    /// Takes the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Queued<P>> {
        let head = self.ring.pop_front()?;
        self.bytes -= u64::from(head.packet.len());
        Some(head)
    }

    /// Drops from the head until at most `limit` packets are left.
    pub(crate) fn cut(&mut self, limit: usize, totals: &mut Totals, sink: &mut impl Sink<P>) {
        while self.len() > limit {
            let Some(queued) = self.pop() else { break };
            totals.drops += 1;
            sink.dropped(queued.packet, DropReason::Overflow, true);
        }
    }

    /// Packets stored.
    #[inline]
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Bytes stored.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When the `n`-th packet was enqueued.
    #[inline]
    pub fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        self.ring.get(n).map(|queued| queued.at)
    }

    /// The times of arrival, oldest first.
    pub fn times(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.ring.iter().map(|queued| queued.at)
    }
}

impl<P: Packet> View for Store<P> {
    #[inline]
    fn packets(&self) -> usize {
        self.len()
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes()
    }

    #[inline]
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        self.enqueued_at(n)
    }
}

/// Where a policy that judges packets as they leave takes them from.
pub trait Source<P> {
    /// Takes the head.
    fn take(&mut self) -> Option<Queued<P>>;
    /// Whether there is none.
    fn is_empty(&self) -> bool;
    /// Bytes left in the whole discipline, of which this may be one queue.
    fn backlog(&self) -> u64;
}

impl<P: Packet> Source<P> for Store<P> {
    #[inline]
    fn take(&mut self) -> Option<Queued<P>> {
        self.pop()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn backlog(&self) -> u64 {
        self.bytes()
    }
}

/// A discipline that keeps all its packets in one place. What may be read of it is read there.
pub(crate) trait Stored {
    /// What keeps them.
    type Store: View;

    /// The place.
    fn store(&self) -> &Self::Store;
}

impl<D: Stored> View for D {
    #[inline]
    fn packets(&self) -> usize {
        self.store().packets()
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.store().bytes()
    }

    #[inline]
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        self.store().enqueued_at(n)
    }
}
