//! Losses without SACK: duplicate acknowledgements count as delivered segments.
//!
//! Source: RFC 5681, section 3.2 (fast retransmit), RFC 6582 (NewReno).
//! Idea: each duplicate ACK reports one segment that arrived beyond the hole. Its bytes leave the
//! flight, which reproduces the inflated window of RFC 5681 and the deflation at a partial ACK.
//! Invariant: never more bytes are taken for delivered than are outstanding.

use crate::rare::Initial;
use crate::scoreboard::DUP_THRESH;

/// The reports of duplicate acknowledgements.
#[derive(Clone, Debug)]
pub(crate) struct DuplicateAcks {
    /// Bytes taken for delivered beyond the hole.
    bytes: u64,
    /// Number of consecutive duplicate ACKs.
    count: u64,
    /// RFC 6582's `recover`: SND.NXT at the last recovery or timeout.
    recover: u64,
}

impl Initial for DuplicateAcks {
    const INITIAL: &'static Self = &Self { bytes: 0, count: 0, recover: 0 };
}

impl DuplicateAcks {
    /// Returns the bytes taken for delivered beyond the hole.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// SND.UNA moved by `acked` bytes, of which the scoreboard counts `delivered` as newly
    /// delivered. Returns the bytes that no duplicate ACK had reported, at least those of the
    /// first segment, which filled the hole.
    pub(crate) fn on_advance(&mut self, acked: u64, delivered: u64, mss: u64) -> u64 {
        let counted = self.bytes.min(acked.saturating_sub(mss));
        self.bytes -= counted;
        self.count = 0;
        delivered.saturating_sub(counted).max(acked.min(mss))
    }

    /// Takes a duplicate ACK; at most `room` further bytes can be delivered beyond the hole.
    /// Returns the number of bytes that count as delivered by this ACK.
    pub(crate) fn on_duplicate(&mut self, mss: u64, room: u64) -> u64 {
        self.count += 1;
        let bytes = mss.min(room);
        self.bytes += bytes;
        bytes
    }

    /// Returns whether the first segment is lost: three duplicates (RFC 5681), and everything sent
    /// before the last reduction is acknowledged (RFC 6582, section 3.2, step 2).
    pub(crate) fn show_loss(&self, una: u64) -> bool {
        self.count >= DUP_THRESH && una > self.recover
    }

    /// Notes a recovery or a timeout at SND.NXT `nxt` (RFC 6582, section 3.2, steps 2 and 4).
    pub(crate) fn on_reduction(&mut self, nxt: u64) {
        self.recover = nxt;
    }

    /// Counts no bytes beyond the hole as delivered any more.
    pub(crate) fn forget_bytes(&mut self) {
        self.bytes = 0;
    }

    /// Forgets all duplicate ACKs.
    pub(crate) fn reset(&mut self) {
        self.bytes = 0;
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_third_duplicate_shows_a_loss() {
        let mut duplicates = DuplicateAcks::INITIAL.clone();
        for expected in [false, false, true] {
            assert_eq!(duplicates.on_duplicate(1000, 10_000), 1000);
            assert_eq!(duplicates.show_loss(1), expected);
        }
        assert_eq!(duplicates.bytes(), 3000);
    }

    #[test]
    fn no_second_reduction_for_what_was_sent_before_the_first() {
        let mut duplicates = DuplicateAcks::INITIAL.clone();
        duplicates.on_reduction(5000);
        for _ in 0..3 {
            duplicates.on_duplicate(1000, 10_000);
        }
        assert!(!duplicates.show_loss(5000));
        assert!(duplicates.show_loss(5001));
    }

    #[test]
    fn an_advance_ends_the_row_and_takes_back_what_it_covers() {
        let mut duplicates = DuplicateAcks::INITIAL.clone();
        for _ in 0..3 {
            duplicates.on_duplicate(1000, 10_000);
        }
        // A partial ACK of three segments: the hole and two that had been reported.
        assert_eq!(duplicates.on_advance(3000, 3000, 1000), 1000);
        assert_eq!(duplicates.bytes(), 1000);
        assert!(!duplicates.show_loss(1));
    }

    proptest! {
        /// Delivered bytes are those acknowledged and those reported by duplicates, each counted
        /// once.
        #[test]
        fn each_byte_is_delivered_once(steps in prop::collection::vec(0u64..6, 1..100)) {
            const MSS: u64 = 1000;
            let mut duplicates = DuplicateAcks::INITIAL.clone();
            let (mut una, mut delivered) = (0, 0);
            for step in steps {
                if step == 0 {
                    delivered += duplicates.on_duplicate(MSS, 100 * MSS - duplicates.bytes());
                } else {
                    una += step * MSS;
                    delivered += duplicates.on_advance(step * MSS, step * MSS, MSS);
                }
                prop_assert_eq!(delivered, una + duplicates.bytes());
            }
        }
    }
}
