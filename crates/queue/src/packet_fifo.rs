//! The FIFO ring in which disciplines keep packets with their times of arrival.

use crate::discipline::{Dequeue, DropReason, Sink, Totals, View};
use crate::packet::Packet;
use sojourn_units::Nanos;
use std::collections::VecDeque;

/// A queued packet with its time of arrival.
#[derive(Clone, Debug)]
pub struct Queued<P, N = ()> {
    /// Time at which the packet was enqueued.
    pub at: Nanos,
    /// Data that the discipline attached to the packet on arrival.
    pub note: N,
    /// The queued packet.
    pub packet: P,
}

/// A first-in first-out ring of packets. It grows to the largest backlog and then allocates no more
/// memory.
#[derive(Clone, Debug)]
pub struct PacketFifo<P, N = ()> {
    ring: VecDeque<Queued<P, N>>,
    bytes: u64,
    /// Time at which the packet that left last was enqueued; 0 if none has left.
    last: Nanos,
}

impl<P, N> Default for PacketFifo<P, N> {
    fn default() -> Self {
        Self { ring: VecDeque::new(), bytes: 0, last: 0 }
    }
}

impl<P: Packet> PacketFifo<P> {
    /// Appends a packet that arrives at time `at`.
    pub fn push(&mut self, at: Nanos, packet: P) {
        self.push_noted(at, packet, ());
    }
}

impl<P: Packet, N> PacketFifo<P, N> {
    /// Appends a packet that arrives at time `at`, and attaches `note` to it.
    #[inline]
    pub fn push_noted(&mut self, at: Nanos, packet: P, note: N) {
        self.bytes += u64::from(packet.len());
        self.ring.push_back(Queued { at, note, packet });
    }

    /// Removes and returns the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Queued<P, N>> {
        let head = self.ring.pop_front()?;
        self.last = head.at;
        self.bytes -= u64::from(head.packet.len());
        Some(head)
    }

    /// Removes and returns the packet at position `n`; the oldest packet has position 0.
    pub fn remove(&mut self, n: usize) -> Option<Queued<P, N>> {
        let queued = self.ring.remove(n)?;
        self.bytes -= u64::from(queued.packet.len());
        Some(queued)
    }

    /// Drops the oldest packets until at most `limit` remain, and counts the drops in `totals`.
    pub(crate) fn cut(&mut self, limit: usize, totals: &mut Totals, sink: &mut impl Sink<P>) {
        while self.len() > limit {
            let Some(queued) = self.pop() else { break };
            totals.drops += 1;
            sink.dropped(queued.packet, DropReason::Overflow, true);
        }
    }

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Returns whether there are no packets.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Returns the sum of the packets' lengths, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the oldest packet as the result of the next `dequeue`, for a discipline that drops
    /// and marks only on arrival.
    pub(crate) fn head(&self) -> Dequeue<&P> {
        self.ring.front().map_or(Dequeue::Empty, |queued| Dequeue::Packet(&queued.packet))
    }

    /// Returns the oldest packet, mutable for marking.
    pub(crate) fn head_mut(&mut self) -> Option<&mut P> {
        self.ring.front_mut().map(|queued| &mut queued.packet)
    }

    /// Returns the time at which the `n`-th packet was enqueued; `None` if there are fewer packets.
    pub fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        self.ring.get(n).map(|queued| queued.at)
    }

    /// Records `at` as the enqueue time of the packet that left last. Necessary if this packet
    /// bypassed the ring, or other packets were removed after it.
    pub(crate) fn leaves(&mut self, at: Nanos) {
        self.last = at;
    }

    /// Returns the time at which the last packet taken out was enqueued; `None` if none was taken
    /// out.
    pub fn left_at(&self) -> Option<Nanos> {
        (self.last != 0).then_some(self.last)
    }

    /// Returns the packets, oldest first.
    pub fn packets(&self) -> impl ExactSizeIterator<Item = &P> + DoubleEndedIterator + '_ {
        self.ring.iter().map(|queued| &queued.packet)
    }

    /// Returns the packets' times of arrival, oldest first.
    pub fn times(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.ring.iter().map(|queued| queued.at)
    }
}

impl<P: Packet> View for PacketFifo<P> {
    fn packets(&self) -> usize {
        self.len()
    }

    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        self.enqueued_at(n)
    }

    fn left_at(&self) -> Option<Nanos> {
        self.left_at()
    }
}

/// The queue from which a policy takes packets on departure.
pub trait Source<P> {
    /// Removes and returns the oldest packet.
    fn take(&mut self) -> Option<Queued<P>>;
    /// Returns whether this queue has no packets.
    fn is_empty(&self) -> bool;
    /// Returns the backlog of this queue in bytes.
    fn bytes(&self) -> u64;
    /// Returns the backlog of the whole discipline in bytes, of which this queue may be a part.
    fn backlog(&self) -> u64;
}

impl<P: Packet> Source<P> for PacketFifo<P> {
    fn take(&mut self) -> Option<Queued<P>> {
        self.pop()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn backlog(&self) -> u64 {
        self.bytes
    }
}

/// Implements `View` for a discipline that keeps all its packets in one field: the methods are
/// those of the field.
macro_rules! viewed {
    ($Queue:ident $(<$D:ident: $Bound:ident>)? in $($field:ident).+) => {
        impl<P: $crate::packet::Packet $(, $D: $Bound)?> $crate::discipline::View for $Queue<P $(, $D)?> {
            fn packets(&self) -> usize {
                $crate::discipline::View::packets(&self.$($field).+)
            }

            fn bytes(&self) -> u64 {
                $crate::discipline::View::bytes(&self.$($field).+)
            }

            fn enqueued_at(&self, n: usize) -> Option<sojourn_units::Nanos> {
                $crate::discipline::View::enqueued_at(&self.$($field).+, n)
            }

            fn left_at(&self) -> Option<sojourn_units::Nanos> {
                $crate::discipline::View::left_at(&self.$($field).+)
            }
        }
    };
}
pub(crate) use viewed;
