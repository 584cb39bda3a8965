//! Segments that leave through a queue of the host: TCP small queues, and departure times if the
//! queue paces.
//!
//! Source: Linux's `tcp_small_queue_check` and `tcp_wfree`. A connection may have about a
//! millisecond of data at its pacing rate in the queue, or two super-packets if these are longer.
//! It sends more when packets have left. A connection without pacing has a pacing rate too, but at
//! most 4 MiB in the queue. For a retransmission the limit is doubled. If at most one super-packet
//! is outstanding, the next super-packet leaves without a limit.
//! Invariant: `queued` is the memory of the segments that were sent and have neither left the queue
//! nor been dropped by it.

use super::stream::OVERHEAD;
use sojourn_units::Nanos;

/// The data of 1/2^`SHIFT` seconds at the pacing rate may be in the queue (`sk_pacing_shift`).
const SHIFT: u32 = 10;

/// Maximum bytes in the queue if the connection is not paced (`net.ipv4.tcp_limit_output_bytes`).
const UNPACED: u64 = 4 << 20;

/// The memory of a connection's segments in its host's queue, and the departure of the last
/// segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostQueue {
    /// Whether the queue holds packets until their departure times.
    paces: bool,
    /// Departure of the segment that was handed to the queue last.
    departure: Nanos,
    /// Whether this segment continues a super-packet.
    continues: bool,
    /// Memory of the queued segments, in bytes.
    queued: u32,
    /// Whether the sender waits until a segment leaves.
    waits: bool,
    /// Whether the queue holds super-packets as wholes.
    supers: bool,
}

/// Returns the bytes that a connection may have in its host's queue, from its pacing rate in bytes
/// per second and whether it is `paced`.
pub(crate) fn allowance(rate: u64, paced: bool) -> u64 {
    let waiting = rate >> SHIFT;
    if paced { waiting } else { waiting.min(UNPACED) }
}

/// Returns the memory in bytes of a segment with `payload` bytes. The header of a super-packet
/// counts with its first segment.
fn memory(payload: u32, continues: bool) -> u32 {
    payload + if continues { 0 } else { OVERHEAD as u32 }
}

impl HostQueue {
    /// Returns an empty queue of the host, which `paces` or not, and holds super-packets as wholes
    /// (`supers`) or frame by frame.
    pub(crate) fn new(paces: bool, supers: bool) -> Self {
        Self { paces, supers, ..Self::default() }
    }

    /// Returns whether the queue holds packets until their departure times.
    pub(crate) fn paces(&self) -> bool {
        self.paces
    }

    /// Returns whether a segment is in the host's queue.
    pub(crate) fn is_filled(&self) -> bool {
        self.queued > 0
    }

    /// Returns whether the segment that was handed to the queue last continues a super-packet.
    pub(crate) fn continues(&self) -> bool {
        self.continues
    }

    /// Returns when a segment without data departs: not before the data sent so far.
    pub(crate) fn departure(&self, now: Nanos) -> Nanos {
        self.departure.max(now)
    }

    /// Returns whether a super-packet of `payload` bytes must wait: the queue has more bytes than
    /// `allowance` and than two such super-packets. A retransmission (`repeat`) doubles this limit.
    /// Linux counts from 1 (`sk_wmem_alloc`), so two whole super-packets are already too much.
    pub(crate) fn must_wait(&mut self, payload: u64, allowance: u64, repeat: bool) -> bool {
        let limit = (2 * (payload + OVERHEAD)).max(allowance) << u32::from(repeat);
        let must_wait = u64::from(self.queued) + u64::from(self.supers) > limit;
        self.waits |= must_wait;
        must_wait
    }

    /// Hands a segment to the queue at `now`; if the queue paces, the segment departs at `next` at
    /// the earliest. Returns its departure. A segment that continues a super-packet departs with
    /// it.
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

    /// Takes a segment that has left the queue. Returns whether the sender waited for this.
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
    fn of_whole_super_packets_it_has_two() {
        let mut queue = HostQueue { supers: true, ..holding(1) };
        assert!(!queue.must_wait(1000, 0, false));
        queue.on_sent(0, 0, 1000, false);
        assert!(queue.must_wait(1000, 0, false));
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
    fn a_departure_wakes_a_waiting_sender_once() {
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
