//! Estimate of the buffer size that would have prevented every drop.
//!
//! A server that has not caught up is busy, and would do the same work without the drops: the
//! dropped packets would be in the buffer in addition to its content. So a burst needs the content
//! at its last drop, which is the size, and the memory of all packets lost in the burst. The kernel
//! counts packets, not their memory, so the memory is bounded from both sides.
//!
//! Invariants: the estimate is never below the occupancy; without drops it is exactly the largest
//! occupancy; a burst ends when the server has caught up. The later work for the lost packets is
//! not counted, so bursts in quick succession may need more.

use crate::PACKET;
use sojourn_units::{Bytes, Nanos};

/// Memory of the smallest packet in bytes: `sk_buff` and a head of 512 bytes.
pub const SMALLEST: Bytes = 768;

/// Size that the bursts of one socket needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Need {
    /// Lower bound in bytes: all lost packets had the smallest size.
    pub least: Bytes,
    /// Upper bound in bytes: all lost packets were full Ethernet frames.
    pub most: Bytes,
    /// Number of bursts with losses.
    pub bursts: u64,
    /// Packets lost in the worst burst.
    pub worst: u64,
    /// Longest time without catching up during which packets were lost, in nanoseconds.
    pub longest: Nanos,
}

/// Meter of one socket over successive passes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    need: Need,
    /// Packets lost up to the previous pass.
    before: u64,
    /// Packets lost in the present burst.
    lost: u64,
    /// Last time at which the server had caught up.
    caught_up: Option<Nanos>,
}

impl Meter {
    /// Records the state at `now`: the buffer has this `size` and holds `occupied` bytes, and
    /// `dropped` packets have found no room so far. A server with at most `little` bytes in the
    /// buffer has caught up.
    pub fn look(&mut self, now: Nanos, size: Bytes, occupied: Bytes, dropped: u64, little: Bytes) {
        let more = dropped.saturating_sub(self.before);
        self.before = dropped;
        let mut held = occupied;
        if more > 0 {
            self.need.bursts += u64::from(self.lost == 0);
            self.lost += more;
            self.need.worst = self.need.worst.max(self.lost);
            held = held.max(size);
        }
        let done = occupied <= little;
        if done && more == 0 {
            (self.lost, self.caught_up) = (0, Some(now));
        }
        let caught_up = *self.caught_up.get_or_insert(now);
        if self.lost > 0 {
            self.need.longest = self.need.longest.max(now.saturating_sub(caught_up));
        }
        let with = |packet: Bytes| held.saturating_add(self.lost.saturating_mul(packet));
        self.need.least = self.need.least.max(with(SMALLEST));
        self.need.most = self.need.most.max(with(PACKET));
        if done {
            // Losses since the previous pass, which may be long ago, belong to a burst that has
            // ended.
            (self.lost, self.caught_up) = (0, Some(now));
        }
    }

    /// Returns the estimate so far.
    pub fn need(&self) -> Need {
        self.need
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sojourn_units::{MILLISECOND, SECOND};

    /// A server that takes `speed` packets between two looks, before a buffer of `room` packets of `charge`
    /// bytes; what its buffer would have held had it been without end, and what is found out.
    fn serve(room: u64, speed: u64, charge: Bytes, arrivals: &[u64]) -> (u64, Need) {
        let (mut held, mut all, mut dropped, mut most) = (0u64, 0u64, 0u64, 0u64);
        let mut meter = Meter::default();
        for (step, &come) in arrivals.iter().enumerate() {
            let taken = come.min(room - held);
            dropped += come - taken;
            held += taken;
            all += come;
            most = most.max(all);
            let now = step as Nanos * 10 * MILLISECOND;
            meter.look(now, room * charge, held * charge, dropped, 0);
            held = held.saturating_sub(speed);
            all = all.saturating_sub(speed);
        }
        (most * charge, meter.need())
    }

    #[test]
    fn one_burst_needs_what_it_brings() {
        let (truth, need) = serve(90, 10, PACKET, &[0, 500, 0, 300, 0, 0]);
        assert_eq!((truth, need.most), (780 * PACKET, 780 * PACKET));
        assert_eq!((need.bursts, need.worst, need.longest), (1, 410 + 280, 50 * MILLISECOND));
        assert!(need.least < truth);
        let (truth, need) = serve(90, 10, SMALLEST, &[0, 500, 0, 300, 0, 0]);
        assert_eq!(truth, need.least);
    }

    #[test]
    fn bursts_are_told_apart_by_catching_up() {
        let mut arrivals = vec![0; 100];
        (arrivals[10], arrivals[60]) = (100, 200);
        let (_, need) = serve(90, 10, PACKET, &arrivals);
        assert_eq!((need.bursts, need.worst, need.most), (2, 110, 200 * PACKET));
    }

    #[test]
    fn who_is_too_slow_never_catches_up() {
        let (_, need) = serve(90, 10, PACKET, &[20; 600]);
        assert_eq!(need.bursts, 1);
        assert!(need.longest > 5 * SECOND);
    }

    #[test]
    fn rare_looks_tell_bursts_apart_too() {
        let mut meter = Meter::default();
        for second in 0..20u64 {
            // Each second a burst loses 800 packets, and the server is done with it before the look.
            meter.look(second * SECOND, 90 * PACKET, 0, 800 * second, 0);
        }
        let need = meter.need();
        assert_eq!((need.bursts, need.worst, need.longest), (19, 800, SECOND));
        assert_eq!(need.most, 890 * PACKET);
    }

    proptest! {
        #[test]
        fn what_one_busy_time_needs_lies_between(
            room in 1u64..200, speed in 1u64..20, charge in SMALLEST..=PACKET,
            arrivals in proptest::collection::vec(0u64..100, 1..50),
        ) {
            // Never idle, since it has something to do from the start until the end.
            let arrivals: Vec<u64> = arrivals.iter().map(|come| come.max(&speed) + 1).collect();
            let (truth, need) = serve(room.max(speed + 2), speed, charge, &arrivals);
            prop_assert!(need.least <= truth, "{} {truth}", need.least);
            prop_assert!(truth <= need.most, "{truth} {}", need.most);
        }
    }
}
