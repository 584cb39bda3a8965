//! The data that the application wrote, and the part of it that a new segment may carry.
//!
//! Source: RFC 9293, sections 3.8.6.2.1 and 3.7.4 (silly window syndrome at the sender, Nagle); the
//! send buffer as memory after Linux's `tcp_sendmsg_locked` and `sk_stream_write_space`: each
//! super-packet takes [`OVERHEAD`] bytes in addition to its payload, and a writer that found the
//! buffer full writes again when a third of it is free.
//! Invariants: no byte beyond the peer's window or the send buffer leaves; nothing is written after
//! the end of the stream.

use super::space::SendSpace;
use std::collections::VecDeque;

/// Greatest sequence number; [`Stream::write_unlimited`] writes up to here. No simulation reaches
/// it.
const UNLIMITED: u64 = 1 << 62;

/// Memory of a super-packet in addition to its payload, in bytes, as measured in Linux
/// (`SKB_TRUESIZE` of its header).
pub(super) const OVERHEAD: u64 = 768;
/// Payload of the largest super-packet, in bytes.
const SUPER_BYTES: u64 = 65_215;

/// Memory for which a send buffer grows with each segment of cwnd (`tcp_sndbuf_expand`): twice the
/// memory of a full frame in a packet of its own.
const EXPANDED: u64 = 2 * 4352;
/// Least number of segments of cwnd for which a send buffer grows (`TCP_INIT_CWND`).
const LEAST: u64 = 10;

/// A super-packet that the writer made and that has not left completely.
#[derive(Clone, Copy, Debug)]
struct SuperPacket {
    /// The number after its last byte.
    end: u64,
    /// Whether its last segment has PSH.
    push: bool,
}

/// The send buffer as memory.
#[derive(Clone, Debug)]
struct SendMemory {
    /// The number after the last byte that is in the buffer.
    filled: u64,
    /// Whether the writer has more data and waits for free memory.
    waits: bool,
    /// Present size in bytes.
    size: u64,
    /// The number after the last byte when a PSH was last set (`pushed_seq`).
    pushed: u64,
    /// The super-packets that have not left completely.
    packets: VecDeque<SuperPacket>,
}

impl SendMemory {
    fn new() -> Self {
        Self { filled: 1, waits: false, size: 0, pushed: 1, packets: VecDeque::new() }
    }

    /// Forgets the super-packets that have left.
    fn drop_until(&mut self, nxt: u64) {
        while self.packets.front().is_some_and(|packet| packet.end <= nxt) {
            self.packets.pop_front();
        }
    }

    /// Returns the number of bytes of the last super-packet that have not left; 0 if all have.
    fn tail(&self, nxt: u64) -> u64 {
        let count = self.packets.len();
        let Some(last) = self.packets.back() else { return 0 };
        let start = if count > 1 { self.packets[count - 2].end } else { 0 };
        last.end - start.max(nxt)
    }

    /// Adds data up to `end` to the last super-packet, or to a `new` one.
    fn extend(&mut self, end: u64, new: bool) {
        match self.packets.back_mut() {
            Some(last) if !new => last.end = end,
            _ => self.packets.push_back(SuperPacket { end, push: false }),
        }
        self.filled = end;
    }

    /// Sets PSH in the last super-packet.
    fn mark(&mut self) {
        if let Some(last) = self.packets.back_mut() {
            last.push = true;
        }
        self.pushed = self.filled;
    }
}

/// The written stream.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// The number after the last byte written.
    end: u64,
    /// Whether the application writes no more.
    fin: bool,
    /// Whether the FIN has left.
    fin_sent: bool,
    /// Size of the send buffer in bytes: of unacknowledged payload, or of memory if `memory` is
    /// set.
    buffer: u64,
    nagle: bool,
    memory: Option<SendMemory>,
}

impl Stream {
    pub(crate) fn new(buffer: u64, nagle: bool) -> Self {
        Self { end: 1, fin: false, fin_sent: false, buffer, nagle, memory: None }
    }

    /// Counts the buffer as memory, if `truesize`.
    #[must_use]
    pub(crate) fn counting(mut self, truesize: bool) -> Self {
        self.memory = truesize.then(SendMemory::new);
        self
    }

    /// With `memory truesize`: writes the data for which the buffer has space, in super-packets of at
    /// most half of the peer's largest window (`tcp_sendmsg_locked`). In flight, super-packets have
    /// `per` sixteenths of a segment on average; cwnd has `segments` segments.
    pub(crate) fn fill(&mut self, space: &SendSpace, mss: u64, per: u64, segments: u64) {
        let Some(memory) = &mut self.memory else { return };
        let nxt = space.nxt.max(1);
        memory.drop_until(nxt);
        if memory.filled >= self.end {
            return;
        }
        let half = u64::from(space.max_window) / 2;
        let goal = (SUPER_BYTES.min(half) / mss).max(1) * mss;
        let flight = space.outstanding();
        // The buffer does not grow while data fills cwnd (`tcp_should_expand_sndbuf`).
        let starved = memory.waits && memory.filled < space.una + segments * mss;
        if memory.size == 0 || starved {
            memory.size = memory.size.max((segments.max(LEAST) * EXPANDED).min(self.buffer));
        }
        let flying = flight + flight.div_ceil(mss) * OVERHEAD * 16 / per.max(16);
        loop {
            let unsent = memory.filled.saturating_sub(nxt);
            let used = flying + unsent + memory.packets.len() as u64 * OVERHEAD;
            if memory.waits && used > memory.size - memory.size / 3 {
                return;
            }
            let room = goal.saturating_sub(memory.tail(nxt));
            // A writer that only a full buffer stops begins a new one each time.
            let is_full_size = memory.size >= self.buffer;
            let is_new = memory.packets.is_empty() || room == 0 || is_full_size;
            if is_new && used >= memory.size {
                memory.waits = true;
                memory.mark();
                return;
            }
            memory.waits = false;
            let end = (memory.filled.max(nxt) + if is_new { goal } else { room }).min(self.end);
            memory.extend(end, is_new);
            if end > memory.pushed + half {
                memory.mark();
            }
            // A super-packet at the head of the queue is sent before more is written.
            if memory.packets.len() == 1 || end >= self.end {
                return;
            }
        }
    }

    /// Returns the number of bytes to the end of the super-packet that leaves next, or the greatest
    /// number if the writer may still add to it.
    pub(crate) fn rest(&self, space: &SendSpace) -> u64 {
        let Some(memory) = &self.memory else { return u64::MAX };
        match memory.packets.front() {
            Some(first) if memory.packets.len() > 1 => first.end.saturating_sub(space.nxt),
            _ => u64::MAX,
        }
    }

    /// Returns whether a segment that ends at `end` ends a super-packet with PSH.
    pub(crate) fn pushes(&self, end: u64) -> bool {
        let first = self.memory.as_ref().and_then(|memory| memory.packets.front());
        first.is_some_and(|first| first.push && first.end == end)
    }

    /// Returns whether the writer waits for free memory and all data in the buffer has left.
    pub(crate) fn is_starved(&self, space: &SendSpace) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.waits && memory.filled <= space.nxt)
    }

    /// Returns whether all data in the send buffer has left, and the writer waits for space.
    pub(crate) fn is_full(&self, space: &SendSpace) -> bool {
        match self.memory {
            Some(_) => self.is_starved(space),
            None => self.end > space.nxt && space.outstanding() >= self.buffer,
        }
    }

    /// The application writes `bytes` bytes.
    pub(crate) fn write(&mut self, bytes: u64) {
        if !self.fin {
            self.end = self.end.saturating_add(bytes).min(UNLIMITED);
        }
    }

    /// The application always has more to write.
    pub(crate) fn write_unlimited(&mut self) {
        if !self.fin {
            self.end = UNLIMITED;
        }
    }

    /// The application writes no more. An unlimited stream ends with the data sent so far.
    pub(crate) fn finish(&mut self, space: &SendSpace) {
        if self.end == UNLIMITED {
            self.end = space.nxt.max(1);
        }
        self.fin = true;
    }

    /// Returns whether [`Stream::finish`] was called.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin
    }

    /// Returns whether the application always has more to write.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.end == UNLIMITED
    }

    /// Returns whether all written data has left, and the FIN if the application closed.
    pub(crate) fn is_sent(&self, space: &SendSpace) -> bool {
        space.nxt >= self.end && (!self.fin || self.fin_sent)
    }

    /// Returns whether the FIN is acknowledged.
    pub(crate) fn fin_acked(&self, space: &SendSpace) -> bool {
        self.fin_sent && space.una > self.end
    }

    /// Returns the bytes written and not yet sent.
    pub(crate) fn unsent(&self, space: &SendSpace) -> u64 {
        self.end.saturating_sub(space.nxt.max(1))
    }

    /// Returns the bytes written and not yet acknowledged.
    pub(crate) fn buffered(&self, space: &SendSpace) -> u64 {
        self.end.saturating_sub(space.una.max(1))
    }

    /// Notes that a new segment left, with the FIN or without.
    pub(crate) fn on_sent(&mut self, fin: bool) {
        self.fin_sent |= fin;
    }

    /// Returns the payload and FIN of the next new segment, regardless of cwnd. `must_fill`: data
    /// is outstanding, so a small segment may have to wait. `joins`: the segment continues a
    /// super-packet. With `memory truesize` and without Nagle's rule, such a segment may be small
    /// if it ends at the window's edge (`tcp_mss_split_point`).
    #[inline]
    pub(crate) fn next(
        &self,
        space: &SendSpace,
        mss: u64,
        must_fill: bool,
        joins: bool,
    ) -> Option<(u64, bool)> {
        let waiting = self.end.saturating_sub(space.nxt);
        if waiting == 0 {
            return (self.fin && !self.fin_sent).then_some((0, true));
        }
        let buffered = self.memory.as_ref().map_or(space.una + self.buffer, |memory| memory.filled);
        let buffer = buffered.saturating_sub(space.nxt);
        let room = space.usable().min(buffer);
        let len = mss.min(waiting).min(room);
        if len == 0 {
            return None;
        }
        if len < mss && must_fill {
            // RFC 9293, 3.8.6.2.1, (3): a segment that the window limits to less than half of the
            // largest window waits, unless it continues a super-packet to the window's edge.
            let fills = joins && self.memory.is_some() && !self.nagle;
            let is_edge = fills && len == space.usable();
            if len < waiting && !is_edge && len < u64::from(space.max_window) / 2 {
                return None;
            }
            // RFC 9293, 3.7.4: the last data wait for an acknowledgement if they do not fill a
            // segment, unless the segment carries the FIN.
            if len == waiting && self.nagle && !self.fin {
                return None;
            }
        }
        Some((len, len == waiting && self.fin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 1000;

    fn space(window: u32) -> SendSpace {
        let mut space = SendSpace::default();
        (space.una, space.nxt) = (1, 1);
        space.on_window(1, window);
        space
    }

    #[test]
    fn the_fin_leaves_with_the_last_byte_or_alone() {
        let mut stream = Stream::new(1 << 20, true);
        let mut space = space(1 << 20);
        assert_eq!(stream.next(&space, MSS, false, false), None);
        stream.write(1500);
        stream.finish(&space);
        assert_eq!(stream.next(&space, MSS, true, false), Some((1000, false)));
        space.nxt += 1000;
        assert_eq!(stream.next(&space, MSS, true, false), Some((500, true)));
        space.nxt += 500;
        assert_eq!(stream.next(&space, MSS, true, false), Some((0, true)));
        stream.on_sent(true);
        space.nxt += 1;
        assert!(stream.is_sent(&space) && !stream.fin_acked(&space));
        space.una = space.nxt;
        assert!(stream.fin_acked(&space));
    }

    #[test]
    fn nagle_holds_the_last_small_segment_while_data_is_outstanding() {
        let space = space(1 << 20);
        for (nagle, must_fill, expected) in
            [(true, true, None), (true, false, Some((10, false))), (false, true, Some((10, false)))]
        {
            let mut stream = Stream::new(1 << 20, nagle);
            stream.write(10);
            assert_eq!(stream.next(&space, MSS, must_fill, false), expected);
        }
    }

    #[test]
    fn a_small_rest_of_the_window_waits_unless_it_is_half_the_largest_window() {
        let mut stream = Stream::new(1 << 20, false);
        stream.write_unlimited();
        let mut small = space(10_000);
        small.nxt += 9500;
        assert_eq!(stream.next(&small, MSS, true, false), None);
        assert_eq!(stream.next(&small, MSS, false, false), Some((500, false)));
        assert_eq!(stream.next(&space(900), MSS, true, false), Some((900, false)));
    }

    #[test]
    fn the_rest_of_an_unlimited_stream_is_dropped_at_its_end() {
        let mut stream = Stream::new(1 << 20, false);
        let mut space = space(1 << 20);
        stream.write_unlimited();
        space.nxt += 5000;
        stream.finish(&space);
        assert_eq!((stream.unsent(&space), stream.buffered(&space)), (0, 5000));
        stream.write(100);
        assert_eq!(stream.unsent(&space), 0, "nothing is written after the end");
    }

    /// In segments.
    const CWND: u64 = 1000;

    /// Returns the end of the data in the buffer after the writer has gone on as far as it can.
    fn filled(stream: &mut Stream, space: &SendSpace, mss: u64, per: u64) -> u64 {
        // What is complete at the head is sent before more is written.
        stream.fill(space, mss, per, CWND);
        stream.fill(space, mss, per, CWND);
        stream.memory.as_ref().unwrap().filled
    }

    /// 2 MiB of memory: 32 super-packets that wait; in flight four segments a super-packet.
    #[test]
    fn a_writer_goes_on_when_a_third_of_the_memory_is_free() {
        let (mss, per) = (1448, 4 * 16);
        let mut stream = Stream::new(2 << 20, false).counting(true);
        let mut space = space(1 << 30);
        stream.write_unlimited();
        let whole = 32 * 45 * mss;
        assert_eq!(filled(&mut stream, &space, mss, per), 1 + whole);
        space.nxt += whole;
        assert!(stream.is_starved(&space));
        assert_eq!(stream.next(&space, mss, true, false), None);
        // 854 segments and a quarter of 768 bytes for each are two thirds of 2 MiB.
        space.una = space.nxt - 856 * mss;
        filled(&mut stream, &space, mss, per);
        assert!(stream.is_starved(&space));
        space.una += 5 * mss;
        let end = filled(&mut stream, &space, mss, per);
        assert!(!stream.is_starved(&space));
        assert_eq!(stream.next(&space, mss, true, false), Some((mss, false)));
        assert_eq!(end, space.nxt + 11 * 45 * mss);
    }

    proptest! {
        /// However the data leave and are acknowledged, a writer looks at a buffer that is as large
        /// as it may become: it has at most one super-packet more in memory.
        #[test]
        fn a_full_buffer_stops_the_writer(
            buffer in 10_000u64..2_000_000,
            steps in prop::collection::vec((0u64..300, 0u64..30), 1..200),
        ) {
            let mss = 1448;
            let mut stream = Stream::new(buffer, false).counting(true);
            let mut space = space(1 << 30);
            stream.write_unlimited();
            for (sent, acked) in steps {
                for _ in 0..sent {
                    stream.fill(&space, mss, 16, CWND);
                    let Some((len, _)) = stream.next(&space, mss, true, false) else { break };
                    space.nxt += len;
                }
                space.una = space.nxt.min(space.una + acked * mss);
                let held = stream.memory.as_ref().unwrap().filled.max(space.nxt) - space.una;
                prop_assert!(held <= buffer + SUPER_BYTES, "{held} {buffer}");
            }
        }
    }

    /// A window of 65160 bytes: super-packets of 22 segments. Ten segments of the first one leave
    /// before it is complete again, so it ends after 32. A writer that waits sets PSH.
    #[test]
    fn super_packets_end_where_those_of_linux_do() {
        let mss = 1448;
        let mut stream = Stream::new(4 << 20, false).counting(true);
        let mut space = space(65_160);
        stream.write_unlimited();
        for _ in 0..10 {
            stream.fill(&space, mss, 16, 10);
            assert_eq!(stream.next(&space, mss, true, false), Some((mss, false)));
            space.nxt += mss;
        }
        filled(&mut stream, &space, mss, 16);
        let packets = &stream.memory.as_ref().unwrap().packets;
        let ends: Vec<_> = packets.iter().map(|one| ((one.end - 1) / mss, one.push)).collect();
        assert_eq!(ends, [(32, true), (54, true)]);
        assert!(stream.pushes(1 + 32 * mss) && !stream.pushes(1 + 54 * mss));
        assert_eq!(stream.rest(&space), 22 * mss);
    }

    #[test]
    fn memory_does_not_hold_back_what_fits() {
        let mut stream = Stream::new(100_000, false).counting(true);
        let mut space = space(1 << 30);
        for _ in 0..100 {
            stream.write(5500);
            stream.fill(&space, MSS, 16, 1000);
            assert_eq!(stream.next(&space, MSS, false, false), Some((1000, false)));
            space.nxt += 5500;
            space.una = space.nxt;
        }
    }

    proptest! {
        /// No segment exceeds the window, the buffer, the segment size or the written data.
        #[test]
        fn a_segment_fits_everywhere(
            written in 0u64..100_000,
            buffer in 1u64..100_000,
            window in 0u32..100_000,
            sent in 0u64..100_000,
            nagle: bool,
            must_fill: bool,
        ) {
            let mut stream = Stream::new(buffer, nagle);
            stream.write(written);
            let mut space = space(window);
            space.nxt += sent.min(written);
            if let Some((len, fin)) = stream.next(&space, MSS, must_fill, false) {
                prop_assert!(!fin && len > 0 && len <= MSS);
                prop_assert!(len <= stream.unsent(&space));
                prop_assert!(space.nxt + len <= 1 + u64::from(window));
                prop_assert!(space.outstanding() + len <= buffer);
            }
        }
    }
}
