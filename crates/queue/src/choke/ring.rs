//! CHOKe's ring: packets in the order of arrival, with holes where packets were taken out.

use crate::discipline::{Dequeue, Draws, View};
use crate::packet::Packet;
use crate::packet_fifo::Queued;
use sojourn_units::Nanos;
use std::collections::VecDeque;

/// A ring of 2^k slots. The first slot in use always holds a packet.
#[derive(Clone, Debug)]
pub(crate) struct Ring<P> {
    /// The slots in use, holes included, from the head; at most `mask`.
    slots: VecDeque<Option<Queued<P>>>,
    /// The number of the first slot in use.
    head: u32,
    /// One less than the number of slots.
    mask: u32,
    packets: usize,
    bytes: u64,
    /// When the packet that left last was enqueued.
    left_at: Option<Nanos>,
}

impl<P: Packet> Ring<P> {
    /// Returns a ring in which `limit` packets fit.
    pub(super) fn new(limit: u32) -> Self {
        Self {
            slots: VecDeque::new(),
            head: 0,
            mask: mask(limit),
            packets: 0,
            bytes: 0,
            left_at: None,
        }
    }

    /// Returns the number of the first slot in use.
    pub(super) fn head(&self) -> u32 {
        self.head
    }

    /// Returns the number of the slot behind the last one in use.
    pub(super) fn tail(&self) -> u32 {
        (self.head + self.slots.len() as u32) & self.mask
    }

    /// Appends a packet; fewer than `limit` are in the ring.
    ///
    /// Holes may have used up the slots. Linux then lets the tail run into the head, takes the ring for
    /// empty and overwrites what is in it. Here the packets close ranks.
    #[inline]
    pub(super) fn push(&mut self, at: Nanos, packet: P) {
        if self.slots.len() == self.mask as usize {
            self.slots.retain(Option::is_some);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.len());
        self.slots.push_back(Some(Queued { at, note: (), packet }));
    }

    /// Takes the oldest packet.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Queued<P>> {
        if self.slots.is_empty() {
            return None;
        }
        let queued = self.take(0)?;
        self.left_at = Some(queued.at);
        Some(queued)
    }

    /// Returns the oldest packet.
    pub(super) fn oldest(&self) -> Dequeue<&P> {
        match self.slots.front() {
            Some(Some(queued)) => Dequeue::Packet(&queued.packet),
            _ => Dequeue::Empty,
        }
    }

    /// Returns a packet at random, by its slot counted from the head: of three tries the first that
    /// hits no hole, else the oldest.
    #[inline]
    pub(super) fn pick(&self, draws: &mut impl Draws) -> Option<(usize, &P)> {
        if self.slots.is_empty() {
            return None;
        }
        let slots = self.slots.len() as u32;
        let slot = (0..3)
            .map(|_| draws.draw_below(slots) as usize)
            .find(|&slot| self.slots[slot].is_some())
            .unwrap_or(0);
        self.slots[slot].as_ref().map(|queued| (slot, &queued.packet))
    }

    /// Takes the packet out of a slot counted from the head.
    #[inline]
    pub(super) fn take(&mut self, slot: usize) -> Option<Queued<P>> {
        let queued = self.slots[slot].take()?;
        self.packets -= 1;
        self.bytes -= u64::from(queued.packet.len());
        // The head moves past holes; the tail never moves back.
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.head = (self.head + 1) & self.mask;
        }
        Some(queued)
    }

    /// Makes it a ring for `limit` packets. As in the kernel, a ring of another size is filled anew
    /// from the oldest packet on, and `lost` gets those that find no slot.
    pub(super) fn resize(&mut self, limit: u32, mut lost: impl FnMut(Queued<P>)) {
        if self.mask == mask(limit) {
            return;
        }
        self.mask = mask(limit);
        self.head = 0;
        self.slots.retain(Option::is_some);
        let fit = self.slots.len().min(self.mask as usize);
        for queued in self.slots.drain(fit..).flatten() {
            self.packets -= 1;
            self.bytes -= u64::from(queued.packet.len());
            lost(queued);
        }
    }
}

impl<P: Packet> View for Ring<P> {
    #[inline]
    fn packets(&self) -> usize {
        self.packets
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// For `n > 0` this passes over the slots before it.
    #[inline]
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        self.slots.iter().flatten().nth(n).map(|queued| queued.at)
    }

    fn left_at(&self) -> Option<Nanos> {
        self.left_at
    }
}

/// Returns one less than the number of slots of a ring for `limit` packets.
fn mask(limit: u32) -> u32 {
    (limit + 1).next_power_of_two() - 1
}
