//! Where disciplines keep their packets: a ring of packets with their times of arrival.

use crate::discipline::{Dequeue, DropReason, Sink, Totals, View};
use crate::packet::Packet;
use sojourn_units::Nanos;
use std::collections::VecDeque;

/// A packet in a queue.
#[derive(Clone, Debug)]
pub struct Queued<P, N = ()> {
    /// When it was enqueued.
    pub at: Nanos,
    /// The discipline's data of the packet from its arrival.
    pub note: N,
    /// The packet.
    pub packet: P,
}

/// A first-in first-out ring. It grows to the largest backlog seen and then allocates no more.
#[derive(Clone, Debug)]
pub struct PacketFifo<P, N = ()> {
    ring: VecDeque<Queued<P, N>>,
    bytes: u64,
    /// When the packet taken last was enqueued; 0 is none.
    last: Nanos,
}

impl<P, N> Default for PacketFifo<P, N> {
    fn default() -> Self {
        Self { ring: VecDeque::new(), bytes: 0, last: 0 }
    }
}

impl<P: Packet> PacketFifo<P> {
    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, at: Nanos, packet: P) {
        self.push_noted(at, packet, ());
    }
}

impl<P: Packet, N> PacketFifo<P, N> {
    /// Appends a packet with a note.
    #[inline]
    pub fn push_noted(&mut self, at: Nanos, packet: P, note: N) {
        self.bytes += u64::from(packet.len());
        self.ring.push_back(Queued { at, note, packet });
    }

    /// Takes the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Queued<P, N>> {
        let head = self.ring.pop_front()?;
        self.last = head.at;
        self.bytes -= u64::from(head.packet.len());
        Some(head)
    }

    /// Takes the `n`-th packet out; those behind it move up.
    pub fn remove(&mut self, n: usize) -> Option<Queued<P, N>> {
        let queued = self.ring.remove(n)?;
        self.bytes -= u64::from(queued.packet.len());
        Some(queued)
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

    /// Returns whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Bytes stored.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the oldest packet, which leaves next, where nothing is decided when it does.
    #[inline]
    pub(crate) fn head(&self) -> Dequeue<&P> {
        self.ring.front().map_or(Dequeue::Empty, |queued| Dequeue::Packet(&queued.packet))
    }

    /// Returns the oldest packet, to mark it.
    #[inline]
    pub(crate) fn head_mut(&mut self) -> Option<&mut P> {
        self.ring.front_mut().map(|queued| &mut queued.packet)
    }

    /// Returns when the `n`-th packet was enqueued.
    #[inline]
    pub fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        self.ring.get(n).map(|queued| queued.at)
    }

    /// Says that the packet that leaves was enqueued at `at`, where others have been taken since.
    #[inline]
    pub(crate) fn leaves(&mut self, at: Nanos) {
        self.last = at;
    }

    /// Returns when the packet taken last was enqueued.
    #[inline]
    pub fn left_at(&self) -> Option<Nanos> {
        (self.last != 0).then_some(self.last)
    }

    /// Returns the packets, oldest first.
    pub fn packets(&self) -> impl ExactSizeIterator<Item = &P> + DoubleEndedIterator + '_ {
        self.ring.iter().map(|queued| &queued.packet)
    }

    /// Returns the times of arrival, oldest first.
    pub fn times(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.ring.iter().map(|queued| queued.at)
    }
}

impl<P: Packet> View for PacketFifo<P> {
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

    #[inline]
    fn left_at(&self) -> Option<Nanos> {
        self.left_at()
    }
}

/// Where a policy that judges packets as they leave takes them from.
pub trait Source<P> {
    /// Takes the head.
    fn take(&mut self) -> Option<Queued<P>>;
    /// Returns whether it is empty.
    fn is_empty(&self) -> bool;
    /// Bytes left in the whole discipline, of which this may be one queue.
    fn backlog(&self) -> u64;
}

impl<P: Packet> Source<P> for PacketFifo<P> {
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

/// Declares the field in which a discipline keeps all its packets: its view is the field's.
macro_rules! viewed {
    ($Queue:ident $(<$D:ident: $Bound:ident>)? in $($field:ident).+) => {
        impl<P: $crate::packet::Packet $(, $D: $Bound)?> $crate::discipline::View for $Queue<P $(, $D)?> {
            #[inline]
            fn packets(&self) -> usize {
                $crate::discipline::View::packets(&self.$($field).+)
            }

            #[inline]
            fn bytes(&self) -> u64 {
                $crate::discipline::View::bytes(&self.$($field).+)
            }

            #[inline]
            fn enqueued_at(&self, n: usize) -> Option<sojourn_units::Nanos> {
                $crate::discipline::View::enqueued_at(&self.$($field).+, n)
            }

            #[inline]
            fn left_at(&self) -> Option<sojourn_units::Nanos> {
                $crate::discipline::View::left_at(&self.$($field).+)
            }
        }
    };
}
pub(crate) use viewed;
