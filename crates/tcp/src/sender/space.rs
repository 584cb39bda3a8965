//! The send sequence space.
//!
//! Source: RFC 9293, section 3.3.1. Invariants: `una <= nxt`; the right edge of the peer's window
//! never moves left (section 3.8.6: a sender copes with a shrinking window).

/// SND.UNA, SND.NXT and SND.WND.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendSpace {
    /// SND.UNA: the lowest number not acknowledged.
    pub(crate) una: u64,
    /// SND.NXT: the next number to send.
    pub(crate) nxt: u64,
    /// SND.WND as last announced.
    pub(crate) window: u32,
    /// The largest window ever announced (RFC 9293, section 3.8.6.2.1: `Max(SND.WND)`).
    pub(crate) max_window: u32,
    /// SND.UNA + SND.WND, the right edge of the window.
    edge: u64,
}

impl SendSpace {
    /// Sets SND.UNA and SND.NXT to the number after the SYN.
    pub(crate) fn establish(&mut self) {
        self.una = 1;
        self.nxt = 1;
    }

    /// Takes the window that the peer announced with the acknowledgement `ack`, in bytes.
    #[inline]
    pub(crate) fn on_window(&mut self, ack: u64, window: u32) {
        self.edge = self.edge.max(ack + u64::from(window));
        self.window = window;
        self.max_window = self.max_window.max(window);
    }

    /// Returns how many numbers were sent and not acknowledged.
    pub(crate) fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// Returns how many further numbers the peer's window admits.
    pub(crate) fn usable(&self) -> u64 {
        self.edge.saturating_sub(self.nxt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usable_window_ends_at_the_greatest_edge() {
        let mut space = SendSpace { una: 100, nxt: 300, ..SendSpace::default() };
        space.on_window(100, 1000);
        assert_eq!((space.outstanding(), space.usable()), (200, 800));
        space.on_window(100, 50);
        assert_eq!((space.usable(), space.window, space.max_window), (800, 50, 1000));
        space.nxt = 2000;
        assert_eq!(space.usable(), 0);
    }
}
