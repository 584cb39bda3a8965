//! Super-packets: how many segments leave at once, and when the sender waits to fill one.
//!
//! Source: Linux's `tcp_tso_autosize`, `tcp_tso_should_defer` and `tcp_cwnd_test`. A kernel hands
//! its device about a millisecond of data at the pacing rate in one piece, or more on a short path.
//! The least is two segments unless the control sets another. The segments of a piece leave back to
//! back. If cwnd allows less, the sender may wait for another acknowledgement that is expected
//! soon.

use sojourn_congestion::SuperPacket;
use sojourn_units::{MILLISECOND, Nanos};

/// The largest super-packet (`GSO_MAX_SIZE`).
const MAX_BYTES: u64 = 1 << 16;
/// Unit of round-trip time for larger super-packets (2^`tcp_tso_rtt_log` us): they are used on
/// paths shorter than 32 units.
const NEAR: Nanos = 512_000;
/// The sender does not wait for a fuller super-packet if it may send 1/`WINDOW_DIVISOR` of the
/// window (`net.ipv4.tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;

/// The super-packet that is leaving.
#[derive(Clone, Debug)]
pub(crate) struct Burst {
    enabled: bool,
    /// Number of its segments that have not left.
    left: u32,
    /// Number of its segments that have left.
    sent: u32,
    /// Smoothed size of super-packets, in sixteenths of a segment.
    mean: u32,
}

impl Burst {
    pub(crate) fn new(enabled: bool) -> Self {
        Self { enabled, left: 0, sent: 0, mean: 16 }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns whether the next segment begins a super-packet.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Returns how many segments of the newest super-packet have left; 1 if super-packets are off.
    pub(crate) fn last(&self) -> u64 {
        if self.enabled { u64::from(self.sent) } else { 1 }
    }

    /// Begins a super-packet of `segments` segments; 0 if the sender waits.
    #[inline]
    pub(crate) fn begin(&mut self, segments: u64) {
        let segments = segments as u32;
        self.left = segments;
        self.sent = 0;
        self.mean = self.mean - self.mean / 8 + 2 * segments;
    }

    /// Returns the smoothed size of super-packets in sixteenths of a segment.
    pub(crate) fn mean(&self) -> u64 {
        u64::from(self.mean)
    }

    /// Counts a segment that left.
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.sent = self.sent.saturating_add(1);
    }

    /// Returns whether the segment that left last ends a super-packet of several segments.
    pub(crate) fn is_complete(&self) -> bool {
        self.enabled && self.left == 0 && self.sent > 1
    }

    /// Ends the super-packet, since no further segment can leave now.
    pub(crate) fn end(&mut self) {
        self.left = 0;
    }
}

/// Returns the number of segments of a full super-packet at `rate` bytes/s (`tcp_tso_autosize`).
pub(crate) fn full_size(size: SuperPacket, rate: u64, min_rtt: Nanos, mss: u64) -> u64 {
    let mut bytes = rate >> size.shift;
    let distance = min_rtt / NEAR;
    if size.larger_nearby && min_rtt > 0 && distance < 32 {
        bytes += MAX_BYTES >> distance;
    }
    (bytes.min(MAX_BYTES) / mss).max(size.least)
}

/// The limits of a super-packet that could begin now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) mss: u64,
    pub(crate) cwnd: u64,
    /// Bytes in flight.
    pub(crate) flight: u64,
    /// Bytes that the peer's window still admits.
    pub(crate) peer_room: u64,
    /// The window that the peer announced last.
    pub(crate) peer_window: u64,
    /// Bytes written and not yet sent.
    pub(crate) waiting: u64,
    /// Bytes to the end of the super-packet that the writer made.
    pub(crate) rest: u64,
    /// Whether the stream ends with the waiting bytes.
    pub(crate) fin: bool,
    /// Number of segments of a full super-packet.
    pub(crate) full: u64,
}

impl Offer {
    /// Returns how many segments leave at once: 1 at least, half of cwnd at most (`tcp_cwnd_test`,
    /// `tcp_mss_split_point`).
    #[inline]
    pub(crate) fn segments(&self) -> u64 {
        let room = self.cwnd.saturating_sub(self.flight);
        let half = (self.cwnd / self.mss / 2).max(1);
        let quota = (room / self.mss).clamp(1, half).min(self.full);
        quota.min(self.waiting.div_ceil(self.mss).max(1))
    }

    /// Returns whether the sender may wait for a fuller super-packet (`tcp_tso_should_defer`). It
    /// does not if the rest of the writer's may leave, which then takes bytes of the next one
    /// (`tcp_grow_skb`).
    #[inline]
    pub(crate) fn may_wait(&self) -> bool {
        let limit = self.cwnd.saturating_sub(self.flight).min(self.peer_room);
        self.waiting > self.mss
            && self.rest > limit
            && !(self.fin && self.waiting <= limit)
            && limit < self.full * self.mss
            && limit < self.cwnd.min(self.peer_window) / WINDOW_DIVISOR
    }
}

/// Returns whether an acknowledgement is expected soon. The last segment, sent at `last`, departed
/// at most a millisecond ago. The acknowledgement of the oldest segment, sent at `oldest`, is due
/// within the shorter of a millisecond and half a round-trip time.
pub(crate) fn ack_is_near(now: Nanos, last: Nanos, oldest: Nanos, srtt: Nanos) -> bool {
    now <= last + MILLISECOND && oldest + srtt <= now + MILLISECOND.min(srtt / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sojourn_units::EPOCH;

    const OFFER: Offer = Offer {
        mss: 1000,
        cwnd: 20_000,
        flight: 19_000,
        peer_room: 1 << 20,
        peer_window: 1 << 20,
        waiting: 1 << 20,
        rest: u64::MAX,
        fin: false,
        full: 10,
    };

    #[test]
    fn a_full_one_lasts_a_millisecond_and_has_two_segments_at_least() {
        let size = SuperPacket { larger_nearby: false, ..SuperPacket::default() };
        assert_eq!(full_size(size, 20_480_000, 0, 1000), 20);
        assert_eq!(full_size(size, 1000, 0, 1000), 2);
        assert_eq!(full_size(size, u64::MAX, 0, 1000), 65);
    }

    #[test]
    fn it_is_larger_on_short_paths() {
        let size = SuperPacket::default();
        assert_eq!(full_size(size, 1000, 100_000, 1000), 65);
        assert_eq!(full_size(size, 1000, 2 * NEAR, 1000), 16);
        assert_eq!(full_size(size, 1000, 32 * NEAR, 1000), 2);
    }

    #[test]
    fn it_ends_after_its_segments() {
        let mut burst = Burst::new(true);
        burst.begin(2);
        burst.on_sent();
        assert!(!burst.is_over());
        burst.on_sent();
        assert!(burst.is_over());
        burst.on_sent();
        assert!(burst.is_over());
    }

    #[test]
    fn the_sender_waits_only_for_a_small_rest_of_a_long_stream() {
        assert!(OFFER.may_wait());
        assert!(!Offer { flight: 10_000, ..OFFER }.may_wait(), "a full super-packet fits");
        assert!(!Offer { flight: 12_000, ..OFFER }.may_wait(), "more than a third fits");
        assert!(!Offer { waiting: 1000, ..OFFER }.may_wait(), "one segment is all there is");
        assert!(!Offer { waiting: 1001, flight: 18_000, fin: true, ..OFFER }.may_wait(), "the end");
    }

    #[test]
    fn an_acknowledgement_is_near_within_a_millisecond_or_half_a_round_trip() {
        let (oldest, srtt) = (EPOCH, 10 * MILLISECOND);
        let due = oldest + srtt;
        assert!(ack_is_near(due - MILLISECOND, due - MILLISECOND, oldest, srtt));
        assert!(!ack_is_near(due - MILLISECOND - 1, due - MILLISECOND, oldest, srtt));
        assert!(!ack_is_near(due, due - MILLISECOND - 1, oldest, srtt), "silent for too long");
    }

    proptest! {
        /// At least one segment, at most a full super-packet and half the window.
        #[test]
        fn the_size_is_within_its_limits(
            mss in 1u64..10_000,
            cwnd in 1u64..1 << 30,
            flight in 0u64..1 << 30,
            waiting in 0u64..1 << 30,
            full in 1u64..100,
        ) {
            let offer = Offer { mss, cwnd: cwnd.max(mss), flight, waiting, full, ..OFFER };
            let segments = offer.segments();
            prop_assert!((1..=full).contains(&segments));
            prop_assert!(segments == 1 || segments * mss <= offer.cwnd / 2);
            prop_assert!(segments == 1 || flight + segments * mss <= offer.cwnd);
            prop_assert!(segments == 1 || (segments - 1) * mss < waiting);
        }
    }
}
