//! Windows in whole segments, as in Linux.
//!
//! Source: Linux's `tcp_slow_start` and `tcp_cong_avoid_ai`. Idea: congestion avoidance counts the
//! delivered segments. The window grows by one segment whenever the count reaches a number that the
//! control gives. Invariant: a window that is a multiple of the segment size stays a multiple.

use crate::window::{Ack, Window};

/// Returns the number of segments that `bytes` occupy.
pub(crate) fn segments(bytes: u64, mss: u64) -> u64 {
    bytes.div_ceil(mss)
}

/// Returns the number of segments that an acknowledgement delivered.
pub(crate) fn delivered(ack: &Ack, mss: u64) -> u64 {
    segments(ack.delivered, mss)
}

/// Returns half of cwnd in bytes, at least two segments (`tcp_reno_ssthresh`).
pub(crate) fn half(window: &Window) -> u64 {
    (window.segments() / 2).max(2) * window.mss
}

/// Counter of congestion avoidance (`snd_cwnd_cnt`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count(u64);

impl Count {
    /// Resets the counter after a reduction of the window.
    pub(crate) fn reset(&mut self) {
        self.0 = 0;
    }

    /// Counts `acked` delivered segments; adds one segment to the window for every `per` counted
    /// segments.
    #[inline]
    pub(crate) fn avoid(&mut self, window: &mut Window, per: u64, acked: u64) {
        let per = per.max(1);
        // A count that was collected with a larger `per` adds only one segment.
        let mut added = u64::from(self.0 >= per);
        if added > 0 {
            self.0 = 0;
        }
        self.0 = self.0.saturating_add(acked);
        added += self.0 / per;
        self.0 %= per;
        window.grow(added.saturating_mul(window.mss));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_added_for_each_window_delivered() {
        let mut window = Window { cwnd: 3000, ssthresh: 3000, mss: 1000 };
        let mut count = Count::default();
        for (acked, cwnd) in [(2, 3000), (2, 4000), (2, 4000), (1, 5000)] {
            let per = window.segments();
            count.avoid(&mut window, per, acked);
            assert_eq!(window.cwnd, cwnd);
        }
    }

    #[test]
    fn counted_acknowledgements_add_one_segment() {
        let mut window = Window { cwnd: 10_000, ssthresh: 3000, mss: 1000 };
        let mut count = Count::default();
        count.avoid(&mut window, 1000, 50);
        count.avoid(&mut window, 2, 1);
        assert_eq!(window.cwnd, 11_000);
        count.avoid(&mut window, 2, 3);
        assert_eq!(window.cwnd, 13_000);
    }
}
