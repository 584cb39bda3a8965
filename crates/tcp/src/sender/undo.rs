//! The undo of reductions that prove unnecessary.
//!
//! Source: RFC 3522 (Eifel detection by timestamps), RFC 3708 (detection by D-SACK), RFC 4015 (the
//! response), after Linux's `tcp_may_undo` and `tcp_undo_cwnd_reduction`.
//! Idea: a reduction saves the window. The reduction was unnecessary if all retransmissions since
//! then are reported as duplicates, or if an acknowledgement of new data echoes a timestamp from
//! before the first retransmission.
//! Invariant: the restored window is the larger of the saved and the present one.

use crate::rare::Initial;
use sojourn_congestion::Window;

/// The saved window, and the state of the retransmissions since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undo {
    /// SND.UNA at the reduction; 0 if there is nothing to undo.
    marker: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Retransmissions not yet reported as duplicates.
    pending: u64,
    /// Whether a segment was retransmitted since the reduction.
    any: bool,
    /// Timestamp of the first retransmission in flight; `None` if none is.
    stamp: Option<u32>,
}

impl Initial for Undo {
    const INITIAL: &'static Self =
        &Self { marker: 0, cwnd: 0, ssthresh: 0, pending: 0, any: false, stamp: None };
}

impl Undo {
    /// Returns whether a reduction can be taken back.
    pub(crate) fn is_armed(&self) -> bool {
        self.marker > 0
    }

    /// Saves the window at the beginning of a reduction, with `repairs` retransmissions in flight.
    pub(crate) fn save(&mut self, una: u64, window: &Window, repairs: u64) {
        self.marker = una;
        self.cwnd = window.cwnd;
        self.ssthresh = window.ssthresh;
        self.pending = repairs;
        self.any = repairs > 0;
    }

    /// Forgets the saved window.
    pub(crate) fn forget(&mut self) {
        *self = Self { stamp: self.stamp, ..*Self::INITIAL };
    }

    /// Notes that a segment was retransmitted with the timestamp `stamp`.
    #[inline]
    pub(crate) fn on_retransmit(&mut self, stamp: u32) {
        if self.is_armed() {
            self.pending += 1;
            self.any = true;
        }
        self.stamp.get_or_insert(stamp);
    }

    /// Notes that no retransmission is in flight.
    pub(crate) fn on_all_delivered(&mut self) {
        self.stamp = None;
    }

    /// Takes a D-SACK block that ends at `end`.
    pub(crate) fn on_duplicate(&mut self, end: u64) {
        if self.is_armed() && end > self.marker {
            self.pending = self.pending.saturating_sub(1);
        }
    }

    /// Returns whether the reduction is known to be unnecessary; `echo` is the timestamp that an
    /// acknowledgement of new data echoes.
    #[inline]
    pub(crate) fn is_unnecessary(&self, echo: Option<u32>) -> bool {
        if !self.is_armed() {
            return false;
        }
        // RFC 3522, section 3.2, step 5.
        let before_retransmit = match (self.stamp, echo) {
            (Some(stamp), Some(echo)) => (echo.wrapping_sub(stamp) as i32) < 0,
            _ => false,
        };
        (self.any && self.pending == 0) || before_retransmit
    }

    /// Restores the window (RFC 4015, section 3.2) and forgets the reduction.
    pub(crate) fn restore(&mut self, window: &mut Window) {
        window.set_cwnd(window.cwnd.max(self.cwnd));
        window.ssthresh = window.ssthresh.max(self.ssthresh);
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Window = Window { cwnd: 10_000, ssthresh: 20_000, mss: 1000 };
    const REDUCED: Window = Window { cwnd: 5000, ssthresh: 5000, mss: 1000 };

    fn armed() -> Undo {
        let mut undo = *Undo::INITIAL;
        undo.save(7, &BEFORE, 0);
        undo
    }

    #[test]
    fn an_echo_from_before_the_retransmission_is_proof() {
        let mut undo = armed();
        assert!(!undo.is_unnecessary(Some(5)), "nothing was retransmitted");
        undo.on_retransmit(100);
        undo.on_retransmit(110);
        assert!(!undo.is_unnecessary(Some(100)));
        assert!(!undo.is_unnecessary(None));
        assert!(undo.is_unnecessary(Some(99)));
        undo.on_all_delivered();
        assert!(!undo.is_unnecessary(Some(99)));
    }

    #[test]
    fn timestamps_may_wrap() {
        let mut undo = armed();
        undo.on_retransmit(2);
        assert!(undo.is_unnecessary(Some(u32::MAX)));
        assert!(!undo.is_unnecessary(Some(3)));
    }

    #[test]
    fn duplicates_of_all_retransmissions_are_proof() {
        let mut undo = armed();
        undo.on_retransmit(100);
        undo.on_retransmit(100);
        undo.on_duplicate(8);
        assert!(!undo.is_unnecessary(None));
        undo.on_duplicate(7);
        assert!(!undo.is_unnecessary(None), "a duplicate of older data");
        undo.on_duplicate(8);
        assert!(undo.is_unnecessary(None));
    }

    #[test]
    fn restores_the_window_once() {
        let mut undo = armed();
        let mut window = REDUCED;
        undo.restore(&mut window);
        assert_eq!(window, BEFORE);
        assert!(!undo.is_armed());
        let mut window = REDUCED;
        undo.restore(&mut window);
        assert_eq!(window, REDUCED);
    }
}
