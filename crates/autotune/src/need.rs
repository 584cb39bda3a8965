//! Estimate of the buffer size that would have prevented every drop.
//!
//! A server that has not caught up is busy. Without the drops it would have done the same work, and
//! the dropped packets would have stayed in the buffer in addition to its content. Therefore a
//! burst needs the content at its last drop, which is the buffer's size, plus the memory of all
//! packets lost in the burst. The kernel counts dropped packets but not their memory, so a lower
//! and an upper bound are computed.
//!
//! Invariants: both bounds are at least the largest occupancy; without drops they equal it. A burst
//! ends when the server has caught up. The server's later work for the lost packets is ignored, so
//! bursts in quick succession may need more.

use crate::PACKET;
use sojourn_units::{Bytes, Nanos};

/// Memory of the smallest packet in bytes: an `sk_buff` and a head of 512 bytes.
pub const SMALLEST: Bytes = 768;

/// Buffer size that would have prevented all drops of one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Need {
    /// Lower bound in bytes: the need if all lost packets had the smallest size.
    pub least: Bytes,
    /// Upper bound in bytes: the need if all lost packets were full Ethernet frames.
    pub most: Bytes,
    /// Number of bursts in which packets were lost.
    pub bursts: u64,
    /// Number of packets lost in the worst burst.
    pub worst: u64,
    /// Duration of the longest burst in nanoseconds: from the time at which the server had last
    /// caught up, to the last observation of the burst.
    pub longest: Nanos,
}

/// Meter that computes the need of one socket from successive observations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    need: Need,
    /// Number of packets lost up to the previous observation.
    before: u64,
    /// Number of packets lost in the current burst.
    lost: u64,
    /// Last time at which the server had caught up; `None` before the first observation.
    caught_up: Option<Nanos>,
}

impl Meter {
    /// Records an observation at `now`. The buffer has `size` bytes and holds `occupied` bytes;
    /// `dropped` is the number of packets so far that did not fit. If the buffer holds at most
    /// `little` bytes, the server has caught up.
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
            // The losses since the previous observation belong to a burst that has ended.
            (self.lost, self.caught_up) = (0, Some(now));
        }
    }

    /// Returns the need so far.
    pub fn need(&self) -> Need {
        self.need
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sojourn_units::{MILLISECOND, SECOND};

    /// Simulates a server that processes `speed` packets between two observations, with a buffer of
    /// `room` packets of `charge` bytes each. Returns the largest occupancy that an infinite buffer
    /// would have had, and the meter's result.
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
    fn a_burst_ends_when_the_server_catches_up() {
        let mut arrivals = vec![0; 100];
        (arrivals[10], arrivals[60]) = (100, 200);
        let (_, need) = serve(90, 10, PACKET, &arrivals);
        assert_eq!((need.bursts, need.worst, need.most), (2, 110, 200 * PACKET));
    }

    #[test]
    fn a_slow_server_never_catches_up() {
        let (_, need) = serve(90, 10, PACKET, &[20; 600]);
        assert_eq!(need.bursts, 1);
        assert!(need.longest > 5 * SECOND);
    }

    #[test]
    fn rare_observations_distinguish_bursts_too() {
        let mut meter = Meter::default();
        for second in 0..20u64 {
            // In each second a burst loses 800 packets, and the server has caught up before the
            // observation.
            meter.look(second * SECOND, 90 * PACKET, 0, 800 * second, 0);
        }
        let need = meter.need();
        assert_eq!((need.bursts, need.worst, need.longest), (19, 800, SECOND));
        assert_eq!(need.most, 890 * PACKET);
    }

    proptest! {
        #[test]
        fn the_need_of_one_busy_time_is_within_bounds(
            room in 1u64..200, speed in 1u64..20, charge in SMALLEST..=PACKET,
            arrivals in proptest::collection::vec(0u64..100, 1..50),
        ) {
            // The server always has work, from the first to the last arrival.
            let arrivals: Vec<u64> = arrivals.iter().map(|come| come.max(&speed) + 1).collect();
            let (truth, need) = serve(room.max(speed + 2), speed, charge, &arrivals);
            prop_assert!(need.least <= truth, "{} {truth}", need.least);
            prop_assert!(truth <= need.most, "{truth} {}", need.most);
        }
    }
}
