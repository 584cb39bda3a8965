//! The delay line: packets on the wire, by their time of arrival.

use crate::slots::Slots;
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
    slots: Option<Box<Slots>>,
}

#[derive(Clone, Debug)]
struct Heap<P> {
    next_number: u64,
    packets: BinaryHeap<Reverse<InFlight<P>>>,
}

impl<P> DelayLine<P> {
    pub fn new(reorders: bool) -> Self {
        let mut line =
            Self { head: NEVER, tail: 0, ring: VecDeque::new(), heap: None, slots: None };
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

    /// Starts or ends arrivals in slots. Packets that wait for a slot arrive at `now` when slots
    /// end.
    pub fn set_slots(&mut self, slots: Option<Slots>, now: Nanos) {
        self.slots = slots.map(Box::new);
        if self.slots.is_none() {
            self.ring.iter_mut().for_each(|(at, _)| *at = (*at).max(now));
            if let Some(heap) = &mut self.heap {
                let late = std::mem::take(&mut heap.packets).into_iter();
                let raised =
                    late.map(|Reverse(one)| Reverse(InFlight { at: one.at.max(now), ..one }));
                heap.packets = raised.collect();
            }
        }
        self.head = self.first();
    }

    /// Returns the slots in which packets arrive; `None` without slots.
    pub fn slots(&self) -> Option<&Slots> {
        self.slots.as_deref()
    }

    /// With slots: records that a packet enters the wire at `at`; the next arrival is then
    /// determined again.
    pub fn entered(&mut self, at: Nanos) {
        if let Some(slots) = &mut self.slots {
            slots.look_at(at);
            self.head = self.first();
        }
    }

    /// Returns when the first packet is due, regardless of slots; [`NEVER`] without packets.
    fn earliest(&self) -> Nanos {
        match &self.heap {
            Some(heap) => heap.packets.peek().map_or(NEVER, |Reverse(next)| next.at),
            None => self.ring.front().map_or(NEVER, |(at, _)| *at),
        }
    }

    /// Computes the value of [`DelayLine::head`].
    fn first(&self) -> Nanos {
        let earliest = self.earliest();
        self.slots.as_ref().map_or(earliest, |slots| slots.next(earliest))
    }

    /// Returns how many of the present packets are still on the wire at `at`.
    pub fn len_at(&self, at: Nanos, length: impl Fn(&P) -> u32) -> usize {
        if let Some(slots) = &self.slots {
            return self.left_by(at, Slots::clone(slots), length);
        }
        match &self.heap {
            Some(heap) => heap.packets.iter().filter(|Reverse(packet)| packet.at > at).count(),
            None => self.ring.len() - self.ring.partition_point(|(due, _)| *due <= at),
        }
    }

    /// Returns how many packets are on the wire after the `slots` up to `at`.
    fn left_by(&self, at: Nanos, mut slots: Slots, length: impl Fn(&P) -> u32) -> usize {
        let mut waiting: Vec<_> = match &self.heap {
            Some(heap) => heap.packets.iter().map(|Reverse(p)| (p.key(), &p.packet)).collect(),
            None => (0..).zip(&self.ring).map(|(i, (due, packet))| ((*due, i), packet)).collect(),
        };
        waiting.sort_unstable_by_key(|(key, _)| Reverse(*key));
        loop {
            let earliest = waiting.last().map_or(NEVER, |((due, _), _)| *due);
            let now = slots.next(earliest);
            if now > at || now == NEVER {
                return waiting.len();
            }
            if slots.open(now, earliest)
                && let Some((_, packet)) = waiting.pop()
            {
                slots.used(now, length(packet), !waiting.is_empty());
            }
        }
    }

    /// Returns when the next packet arrives, or [`NEVER`]; with slots, when to call
    /// [`DelayLine::pop`] next.
    pub fn head(&self) -> Nanos {
        self.head
    }

    /// Puts `packet` on the wire, to arrive at `at`; if packets keep their order, not before the
    /// packets ahead (the delay may have become shorter).
    #[inline]
    pub fn push(&mut self, at: Nanos, packet: P) {
        if self.heap.is_some() {
            self.push_unordered(at, packet);
        } else {
            let at = at.max(self.tail);
            self.tail = at;
            if self.slots.is_none() {
                self.head = self.head.min(at);
            }
            self.ring.push_back((at, packet));
        }
    }

    // This function is separate from `push`, so that `push` stays small enough to be inlined.
    #[inline(never)]
    fn push_unordered(&mut self, at: Nanos, packet: P) {
        if let Some(heap) = &mut self.heap {
            heap.push(at, packet);
            if self.slots.is_none() {
                self.head = self.head.min(at);
            }
        }
    }

    /// Removes and returns the packet that arrives at [`DelayLine::head`]; with slots, `None` if no
    /// packet arrives then.
    #[inline]
    pub fn pop(&mut self, length: impl FnOnce(&P) -> u32) -> Option<P> {
        if self.heap.is_some() || self.slots.is_some() {
            self.pop_unordered(length)
        } else {
            let next = self.ring.pop_front().map(|(_, packet)| packet);
            self.head = self.ring.front().map_or(NEVER, |(at, _)| *at);
            next
        }
    }

    #[inline(never)]
    fn pop_unordered(&mut self, length: impl FnOnce(&P) -> u32) -> Option<P> {
        let (now, earliest) = (self.head, self.earliest());
        let open = self.slots.as_mut().is_none_or(|slots| slots.open(now, earliest));
        let next = if open { self.take() } else { None };
        let more = self.earliest() != NEVER;
        if let (Some(slots), Some(packet)) = (&mut self.slots, &next) {
            slots.used(now, length(packet), more);
        }
        self.head = self.first();
        next
    }

    fn take(&mut self) -> Option<P> {
        match &mut self.heap {
            Some(heap) => heap.packets.pop().map(|Reverse(next)| next.packet),
            None => self.ring.pop_front().map(|(_, packet)| packet),
        }
    }

    /// Returns the packet before the last `later` packets, with its time of arrival. Only if
    /// packets keep their order.
    #[inline]
    pub fn last_but(&self, later: usize) -> Option<(Nanos, &P)> {
        let index = self.ring.len().checked_sub(later + 1)?;
        self.ring.get(index).map(|(at, packet)| (*at, packet))
    }

    /// Returns the first of the last `count` packets; packets must keep their order.
    pub fn behind(&self, count: usize) -> &P {
        &self.ring[self.ring.len() - count].1
    }

    /// Removes the last `count` packets, and returns them in their order. Only if packets keep
    /// their order.
    pub fn cut(&mut self, count: usize) -> Vec<P> {
        let kept = self.ring.len() - count;
        let cut = self.ring.split_off(kept).into_iter().map(|(_, packet)| packet).collect();
        self.tail = self.ring.back().map_or(0, |(at, _)| *at);
        self.head = self.first();
        cut
    }

    /// Returns the number of packets on the wire.
    pub fn len(&self) -> usize {
        self.heap.as_ref().map_or(self.ring.len(), |heap| heap.packets.len())
    }

    /// Returns the packets on the wire, in no particular order.
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
