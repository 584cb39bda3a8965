//! The ledger of a link, and the identities that must hold at every instant:
//!
//! - offered = departed + dropped + queued,
//! - departed + duplicated = delivered + lost + abandoned + on the line,
//!
//! in packets and in bytes. The ledger counts events; the packets queued and on the line are also
//! counted in the queue, the transmit ring and the delay line.

use crate::observer::{Event, Observer};
use sojourn_measure::Count;
use sojourn_queue::{DropReason, Packet};
use sojourn_units::Nanos;
use std::ops::{Add, Sub};

/// A queue's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets queued.
    pub packets: u32,
    /// Bytes queued.
    pub bytes: u64,
}

impl Backlog {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    #[inline]
    pub(crate) fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

impl From<Backlog> for Count {
    fn from(backlog: Backlog) -> Self {
        Self { packets: u64::from(backlog.packets), bytes: backlog.bytes }
    }
}

/// The events on a link since its creation. Nothing is ever reset: the events since a time are the
/// difference of two copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets that came to the queue.
    pub offered: Count,
    /// Packets dropped by the queue, by reason.
    pub dropped: [Count; DropReason::ALL.len()],
    /// Packets marked by the queue, or on the wire in place of a loss.
    pub marked: Count,
    /// Packets that left the queue for the wire or the transmit ring.
    pub departed: Count,
    /// Packets given up by the transmitter, which found the shared medium busy too often.
    pub abandoned: Count,
    /// Copies that the wire made.
    pub duplicated: Count,
    /// Packets lost by the wire.
    pub lost: Count,
    /// Packets that arrived at the far end.
    pub delivered: Count,
}

impl Ledger {
    /// Counts an event of `packet` and passes the event to the observer.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "each caller passes one event, so only its branch remains"
    )]
    pub(crate) fn record<P: Packet>(
        &mut self,
        at: Nanos,
        packet: &P,
        event: Event,
        observer: &mut (impl Observer<P> + ?Sized),
    ) {
        let counted = match event {
            Event::Offered => Some(&mut self.offered),
            Event::Dropped { reason, .. } => Some(&mut self.dropped[reason as usize]),
            Event::Marked(_) => Some(&mut self.marked),
            Event::Departed => Some(&mut self.departed),
            Event::Abandoned => Some(&mut self.abandoned),
            Event::Duplicated => Some(&mut self.duplicated),
            Event::Lost => Some(&mut self.lost),
            Event::Delivered => Some(&mut self.delivered),
            Event::Corrupted(_) => None,
        };
        if let Some(count) = counted {
            count.count(packet.len());
        }
        observer.on_event(at, packet, event);
    }

    /// Returns the packets dropped for any reason.
    pub fn drops(&self) -> Count {
        self.dropped.iter().copied().sum()
    }

    /// Returns the packets that must be in the queue.
    pub fn queued(&self) -> Count {
        self.offered - self.drops() - self.departed
    }

    /// Returns the packets that must be on the line or in the transmit ring.
    pub fn on_line(&self) -> Count {
        self.departed + self.duplicated - self.abandoned - self.lost - self.delivered
    }

    /// Combines two ledgers field by field.
    fn zip(self, other: Self, combine: impl Fn(Count, Count) -> Count) -> Self {
        let mut dropped = self.dropped;
        for (drops, others) in dropped.iter_mut().zip(other.dropped) {
            *drops = combine(*drops, others);
        }
        Self {
            offered: combine(self.offered, other.offered),
            dropped,
            marked: combine(self.marked, other.marked),
            departed: combine(self.departed, other.departed),
            abandoned: combine(self.abandoned, other.abandoned),
            duplicated: combine(self.duplicated, other.duplicated),
            lost: combine(self.lost, other.lost),
            delivered: combine(self.delivered, other.delivered),
        }
    }
}

impl Add for Ledger {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.zip(other, Add::add)
    }
}

impl Sub for Ledger {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.zip(other, Sub::sub)
    }
}

impl std::iter::Sum for Ledger {
    fn sum<I: Iterator<Item = Self>>(ledgers: I) -> Self {
        ledgers.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_came_are_somewhere() {
        let mut ledger = Ledger::default();
        (0..5).for_each(|_| ledger.offered.count(100_u32));
        ledger.dropped[DropReason::Overflow as usize].count(100_u32);
        (0..2).for_each(|_| ledger.departed.count(100_u32));
        ledger.lost.count(100_u32);
        assert_eq!(ledger.queued(), Count { packets: 2, bytes: 200 });
        assert_eq!(ledger.on_line(), Count { packets: 1, bytes: 100 });
        let before = ledger;
        ledger.delivered.count(100_u32);
        assert_eq!((ledger - before).delivered, Count { packets: 1, bytes: 100 });
        assert_eq!(ledger - before + before, ledger);
        assert_eq!(ledger.on_line(), Count::default());
    }
}
