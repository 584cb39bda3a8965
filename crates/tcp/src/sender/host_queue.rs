//! A connection whose segments leave by a queue of its host: TCP small queues, and departure times if that queue paces.
//!
//! Source: Linux's `tcp_small_queue_check` and `tcp_wfree`. A connection hands its host's queue about a millisecond of
//! data at the pacing rate, at least two super-packets, and goes on when packets have left. It has a pacing rate whether it
//! is paced or not; if not, 4 MiB are the most. A retransmission may find twice as much. Where at most one super-packet is
//! outstanding, the next one leaves whatever the queue holds.
//! Invariant: `queued` is the memory of the segments that were sent and have neither left the queue nor been dropped by
//! it.

use super::stream::OVERHEAD;
use sojourn_units::Nanos;

/// Logarithm of the part of a second of data that may wait (`sk_pacing_shift`).
const SHIFT: u32 = 10;

/// The most that waits of a connection that is not paced, in bytes (`net.ipv4.tcp_limit_output_bytes`).
const UNPACED: u64 = 4 << 20;

/// What a connection has in its host's queue, and the departure of what was sent last.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostQueue {
    /// The queue holds packets until their departure times.
    paces: bool,
    /// The departure of the segment that was handed over last, and whether that continues a super-packet.
    departure: Nanos,
    continues: bool,
    /// Memory of what is queued, in bytes.
    queued: u32,
    /// The sender waits until something leaves.
    waits: bool,
}

/// Bytes that a connection may have in its host's queue, by its pacing rate in bytes per second and whether it is paced.
pub(crate) fn allowance(rate: u64, paced: bool) -> u64 {
    let waiting = rate >> SHIFT;
    if paced { waiting } else { waiting.min(UNPACED) }
}

/// Memory of a segment with so much payload; that of a super-packet's header counts with its first segment.
fn memory(payload: u32, continues: bool) -> u32 {
    payload + if continues { 0 } else { OVERHEAD as u32 }
}

impl HostQueue {
    /// An empty queue of the host, which `paces` or does not.
    pub(crate) fn new(paces: bool) -> Self {
        Self { paces, ..Self::default() }
    }

    /// Whether the queue holds packets until their departure times.
    pub(crate) fn paces(&self) -> bool {
        self.paces
    }

    /// Whether anything is in the host's queue.
    pub(crate) fn is_filled(&self) -> bool {
        self.queued > 0
    }

    /// Whether the segment that was handed over last continues a super-packet.
    pub(crate) fn continues(&self) -> bool {
        self.continues
    }

    /// When a segment without data departs: not before the data that were sent.
    pub(crate) fn departure(&self, now: Nanos) -> Nanos {
        self.departure.max(now)
    }

    /// Whether a super-packet with so much `payload` must wait, where the connection may have `allowance` bytes in the queue.
    pub(crate) fn must_wait(&mut self, payload: u64, allowance: u64, repeat: bool) -> bool {
        let limit = (2 * (payload + OVERHEAD)).max(allowance) << u32::from(repeat);
        let must_wait = u64::from(self.queued) > limit;
        self.waits |= must_wait;
        must_wait
    }

    /// A segment is handed to the queue at `now`, to depart at `next` at the earliest if the queue paces. Returns when it
    /// departs: one that continues a super-packet, with that.
    pub(crate) fn on_sent(
        &mut self,
        now: Nanos,
        next: Nanos,
        payload: u32,
        continues: bool,
    ) -> Nanos {
        self.queued = self.queued.saturating_add(memory(payload, continues));
        self.continues = continues;
        if !continues {
            self.departure = if self.paces { next.max(now) } else { now };
        }
        self.departure
    }

    /// A segment has left the queue. Returns whether the sender waited for that.
    pub(crate) fn on_left(&mut self, payload: u32, continues: bool) -> bool {
        self.queued = self.queued.saturating_sub(memory(payload, continues));
        std::mem::take(&mut self.waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that holds `n` super-packets of a segment of 1000 bytes.
    fn holding(n: usize) -> HostQueue {
        let mut queue = HostQueue::default();
        for _ in 0..n {
            queue.on_sent(0, 0, 1000, false);
        }
        queue
    }

    #[test]
    fn a_slow_sender_has_two_super_packets_and_the_next_in_the_queue() {
        assert!(!holding(2).must_wait(1000, 0, false));
        assert!(holding(3).must_wait(1000, 0, false));
    }

    #[test]
    fn a_fast_sender_has_a_millisecond_of_data_in_the_queue() {
        let allowance = allowance(10_240_000, true);
        assert!(!holding(5).must_wait(1000, allowance, false));
        assert!(holding(6).must_wait(1000, allowance, false));
    }

    #[test]
    fn a_connection_without_pacing_has_four_mebibytes_in_the_queue_at_most() {
        let fast = 10_000_000_000;
        assert_eq!(allowance(fast, true), 9_765_625);
        assert_eq!(allowance(fast, false), 4_194_304);
        assert_eq!(allowance(1_024_000, false), 1_000);
    }

    #[test]
    fn retransmissions_may_find_twice_as_much() {
        assert!(!holding(4).must_wait(1000, 0, true));
        assert!(holding(5).must_wait(1000, 0, true));
    }

    #[test]
    fn what_leaves_wakes_a_sender_that_waits_once() {
        let mut queue = holding(3);
        assert!(!queue.on_left(1000, false), "nobody waits");
        queue.on_sent(0, 0, 1000, false);
        assert!(queue.must_wait(1000, 0, false));
        assert!(queue.on_left(1000, false));
        assert!(!queue.on_left(1000, false));
        assert!(!queue.must_wait(1000, 0, false));
    }

    #[test]
    fn the_header_of_a_super_packet_counts_once() {
        let mut queue = HostQueue::default();
        queue.on_sent(0, 0, 1000, false);
        queue.on_sent(0, 0, 1000, true);
        assert!(!queue.must_wait(650, 0, false), "2768 bytes");
        queue.on_left(1000, false);
        queue.on_left(1000, true);
        assert!(!queue.is_filled());
    }
}
