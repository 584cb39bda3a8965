//! CHOKe's ring: packets in the order of arrival, with holes left by removed packets.

use crate::discipline::{Dequeue, Draws, View, counted};
use crate::packet::Packet;
use crate::packet_fifo::Queued;
use sojourn_units::Nanos;
use std::collections::VecDeque;

/// A ring of 2^k slots. The first used slot always holds a packet.
#[derive(Clone, Debug)]
pub(crate) struct Ring<P> {
    /// Used slots from the head on, including holes; at most `mask`.
    slots: VecDeque<Option<Queued<P>>>,
    /// Number of the first used slot.
    head: u32,
    /// Number of slots, minus 1.
    mask: u32,
    packets: usize,
    bytes: u64,
    /// Time at which the packet that left last was enqueued; `None` before the first.
    left_at: Option<Nanos>,
}

impl<P: Packet> Ring<P> {
    /// Returns an empty ring for `limit` packets.
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

    /// Returns the number of the first used slot.
    pub(super) fn head(&self) -> u32 {
        self.head
    }

    /// Returns the number of the slot after the last used one.
    pub(super) fn tail(&self) -> u32 {
        (self.head + self.slots.len() as u32) & self.mask
    }

    /// Appends a packet; the ring must have fewer than `limit` packets.
    ///
    /// If holes have used up the slots, they are removed. Linux instead lets the tail reach the
    /// head, treats the ring as empty and overwrites its packets.
    #[inline]
    pub(super) fn push(&mut self, at: Nanos, packet: P) {
        if self.slots.len() == self.mask as usize {
            self.slots.retain(Option::is_some);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.len());
        self.slots.push_back(Some(Queued { at, note: (), packet }));
    }

    /// Removes and returns the oldest packet.
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

    /// Returns a random packet and its slot, counted from the head. Up to three slots are drawn; if
    /// all three are holes, the oldest packet is returned.
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

    /// Removes and returns the packet in a slot, counted from the head; `None` for a hole.
    #[inline]
    pub(super) fn take(&mut self, slot: usize) -> Option<Queued<P>> {
        let queued = self.slots[slot].take()?;
        self.packets -= 1;
        self.bytes -= u64::from(queued.packet.len());
        // The head moves past holes; the tail does not move back.
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.head = (self.head + 1) & self.mask;
        }
        Some(queued)
    }

    /// Changes the ring to one for `limit` packets. As in the kernel, a ring of another size is
    /// refilled from the oldest packet on, and `lost` receives the packets without a slot.
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
    counted!();

    /// Returns the time of the `n`-th packet; this takes time proportional to `n`.
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        self.slots.iter().flatten().nth(n).map(|queued| queued.at)
    }
}

/// Returns the number of slots of a ring for `limit` packets, minus 1.
fn mask(limit: u32) -> u32 {
    (limit + 1).next_power_of_two() - 1
}
