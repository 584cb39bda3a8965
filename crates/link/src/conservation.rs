//! What a link counts, and the identities that must hold at every instant:
//!
//! - offered = departed + dropped + queued,
//! - departed + duplicated = delivered + lost + abandoned + in flight,
//!
//! in packets and in bytes.

use std::fmt;

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

impl std::ops::Add for Count {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets, {} bytes", self.packets, self.bytes)
    }
}

/// What happened on a link since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Came to the queue.
    pub offered: Count,
    /// Dropped by the queue on arrival.
    pub refused: Count,
    /// Dropped by the queue after they had been queued.
    pub dropped: Count,
    /// Left the queue for the wire, or for the transmit ring.
    pub departed: Count,
    /// Given up by the transmitter, which found the shared medium busy too often.
    pub abandoned: Count,
    /// Lost by the wire.
    pub lost: Count,
    /// Copies that the wire made.
    pub duplicated: Count,
    /// Arrived at the far end.
    pub delivered: Count,
    /// Marked by the queue.
    pub marked: Count,
    /// Corrupted by the wire.
    pub corrupted: Count,
    /// Sent ahead of those in flight by the wire.
    pub reordered: Count,
}

impl Counters {
    /// # Panics
    /// If an identity does not hold.
    pub(crate) fn assert(&self, queued: Count, in_flight: Count) {
        let out = self.departed + self.refused + self.dropped + queued;
        assert!(
            self.offered == out,
            "queue: offered {} but departed + dropped + queued = {out}",
            self.offered
        );
        let (sent, arrived) = (
            self.departed + self.duplicated,
            self.delivered + self.lost + self.abandoned + in_flight,
        );
        assert!(
            sent == arrived,
            "wire: departed + duplicated = {sent} but delivered + lost + abandoned + in flight = \
             {arrived}"
        );
    }
}
