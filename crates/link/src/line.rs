//! The delay line: packets on the wire, by their time of arrival.

use sojourn_units::{NEVER, Nanos};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

#[derive(Clone, Debug)]
struct InFlight<P> {
    at: Nanos,
    /// Order of departure, which decides between equal times.
    number: u64,
    packet: P,
}

impl<P> InFlight<P> {
    fn key(&self) -> (Nanos, u64) {
        (self.at, self.number)
    }
}

impl<P> PartialEq for InFlight<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<P> Eq for InFlight<P> {}
impl<P> PartialOrd for InFlight<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> Ord for InFlight<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// A ring while packets keep their order, a heap when they may overtake each other.
#[derive(Clone, Debug)]
pub struct DelayLine<P> {
    head: Nanos,
    tail: Nanos,
    ring: VecDeque<(Nanos, P)>,
    heap: Option<Heap<P>>,
}

#[derive(Clone, Debug)]
struct Heap<P> {
    next_number: u64,
    packets: BinaryHeap<Reverse<InFlight<P>>>,
}

impl<P> DelayLine<P> {
    pub fn new(reorders: bool) -> Self {
        let mut line = Self { head: NEVER, tail: 0, ring: VecDeque::new(), heap: None };
        line.set_reorders(reorders);
        line
    }

    /// Lets packets overtake each other from now on, or keeps them in their present order.
    pub fn set_reorders(&mut self, reorders: bool) {
        if reorders && self.heap.is_none() {
            let mut heap = Heap { next_number: 0, packets: BinaryHeap::new() };
            for (at, packet) in self.ring.drain(..) {
                heap.push(at, packet);
            }
            self.heap = Some(heap);
        } else if !reorders && let Some(mut heap) = self.heap.take() {
            while let Some(Reverse(next)) = heap.packets.pop() {
                self.tail = next.at;
                self.ring.push_back((next.at, next.packet));
            }
        }
    }

    /// When the next packet arrives, or [`NEVER`].
    #[inline]
    pub fn head(&self) -> Nanos {
        self.head
    }

    /// Puts `packet` on the wire, to arrive at `at`, but behind its predecessors where the order is
    /// kept (the delay may have been shortened since).
    #[inline]
    pub fn push(&mut self, at: Nanos, packet: P) {
        if self.heap.is_some() {
            self.push_unordered(at, packet);
        } else {
            let at = at.max(self.tail);
            self.tail = at;
            self.head = self.head.min(at);
            self.ring.push_back((at, packet));
        }
    }

    // Apart, so that the usual case stays small enough to be inlined.
    #[inline(never)]
    fn push_unordered(&mut self, at: Nanos, packet: P) {
        if let Some(heap) = &mut self.heap {
            heap.push(at, packet);
            self.head = self.head.min(at);
        }
    }

    /// Takes the packet that arrives next.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        if self.heap.is_some() {
            self.pop_unordered()
        } else {
            let next = self.ring.pop_front().map(|(_, packet)| packet);
            self.head = self.ring.front().map_or(NEVER, |(at, _)| *at);
            next
        }
    }

    #[inline(never)]
    fn pop_unordered(&mut self) -> Option<P> {
        let heap = self.heap.as_mut()?;
        let next = heap.packets.pop().map(|Reverse(next)| next.packet);
        self.head = heap.packets.peek().map_or(NEVER, |Reverse(next)| next.at);
        next
    }

    /// Packets on the wire.
    pub fn len(&self) -> usize {
        self.heap.as_ref().map_or(self.ring.len(), |heap| heap.packets.len())
    }

    /// The packets on the wire, in no particular order.
    pub fn packets(&self) -> impl Iterator<Item = &P> {
        let heap =
            self.heap.iter().flat_map(|heap| &heap.packets).map(|Reverse(next)| &next.packet);
        self.ring.iter().map(|(_, packet)| packet).chain(heap)
    }
}

impl<P> Heap<P> {
    fn push(&mut self, at: Nanos, packet: P) {
        let number = self.next_number;
        self.next_number += 1;
        self.packets.push(Reverse(InFlight { at, number, packet }));
    }
}
