//! The data that the application wrote, and which of it a new segment may carry.
//!
//! Source: RFC 9293, sections 3.8.6.2.1 and 3.7.4 (silly window syndrome at the sender, Nagle).
//! Invariants: no byte beyond the peer's window or the send buffer leaves; nothing is written after
//! the end of the stream.

use super::space::SendSpace;

/// No more than this may ever be written: far from overflow, out of reach.
const UNLIMITED: u64 = 1 << 62;

/// The written stream.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// The number after the last byte written.
    end: u64,
    /// The application writes no more.
    fin: bool,
    /// The FIN has left.
    fin_sent: bool,
    /// Bytes that may be sent and not acknowledged.
    buffer: u64,
    nagle: bool,
}

impl Stream {
    pub(crate) fn new(buffer: u64, nagle: bool) -> Self {
        Self { end: 1, fin: false, fin_sent: false, buffer, nagle }
    }

    /// The application writes `bytes`.
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

    /// The application writes no more. Of an unlimited stream, what was not sent is dropped.
    pub(crate) fn finish(&mut self, space: &SendSpace) {
        if self.end == UNLIMITED {
            self.end = space.nxt.max(1);
        }
        self.fin = true;
    }

    /// Whether [`Stream::finish`] was called.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.fin
    }

    /// Whether the application always has more to write.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.end == UNLIMITED
    }

    /// Whether everything has left, the FIN too.
    #[inline]
    pub(crate) fn is_sent(&self, space: &SendSpace) -> bool {
        space.nxt >= self.end && (!self.fin || self.fin_sent)
    }

    /// Whether the FIN is acknowledged.
    #[inline]
    pub(crate) fn fin_acked(&self, space: &SendSpace) -> bool {
        self.fin_sent && space.una > self.end
    }

    /// Bytes written and not yet sent.
    #[inline]
    pub(crate) fn unsent(&self, space: &SendSpace) -> u64 {
        self.end.saturating_sub(space.nxt.max(1))
    }

    /// Bytes written and not yet acknowledged.
    #[inline]
    pub(crate) fn buffered(&self, space: &SendSpace) -> u64 {
        self.end.saturating_sub(space.una.max(1))
    }

    /// A new segment left, with the FIN or without.
    #[inline]
    pub(crate) fn on_sent(&mut self, fin: bool) {
        self.fin_sent |= fin;
    }

    /// The payload and FIN of the next new segment, whatever cwnd says. `must_fill`: something is
    /// outstanding, so a small segment may have to wait.
    #[inline]
    pub(crate) fn next(&self, space: &SendSpace, mss: u64, must_fill: bool) -> Option<(u64, bool)> {
        let waiting = self.end.saturating_sub(space.nxt);
        if waiting == 0 {
            return (self.fin && !self.fin_sent).then_some((0, true));
        }
        let buffer = (space.una + self.buffer).saturating_sub(space.nxt);
        let room = space.usable().min(buffer);
        let len = mss.min(waiting).min(room);
        if len == 0 {
            return None;
        }
        if len < mss && must_fill {
            // RFC 9293, 3.8.6.2.1, (3): less than half the largest window waits for more room.
            if len < waiting && len < u64::from(space.max_window) / 2 {
                return None;
            }
            // RFC 9293, 3.7.4: the last small segment waits for an acknowledgement.
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
        assert_eq!(stream.next(&space, MSS, false), None);
        stream.write(1500);
        stream.finish(&space);
        assert_eq!(stream.next(&space, MSS, true), Some((1000, false)));
        space.nxt += 1000;
        assert_eq!(stream.next(&space, MSS, true), Some((500, true)));
        space.nxt += 500;
        assert_eq!(stream.next(&space, MSS, true), Some((0, true)));
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
            assert_eq!(stream.next(&space, MSS, must_fill), expected);
        }
    }

    #[test]
    fn a_small_rest_of_the_window_waits_unless_it_is_half_the_largest_window() {
        let mut stream = Stream::new(1 << 20, false);
        stream.write_unlimited();
        let mut small = space(10_000);
        small.nxt += 9500;
        assert_eq!(stream.next(&small, MSS, true), None);
        assert_eq!(stream.next(&small, MSS, false), Some((500, false)));
        assert_eq!(stream.next(&space(900), MSS, true), Some((900, false)));
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
            if let Some((len, fin)) = stream.next(&space, MSS, must_fill) {
                prop_assert!(!fin && len > 0 && len <= MSS);
                prop_assert!(len <= stream.unsent(&space));
                prop_assert!(space.nxt + len <= 1 + u64::from(window));
                prop_assert!(space.outstanding() + len <= buffer);
            }
        }
    }
}
