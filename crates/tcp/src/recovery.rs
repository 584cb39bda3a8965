//! How the window moves while losses are repaired, and how a mistake is taken back.
//!
//! Source: RFC 5681 and RFC 6582 (NewReno), RFC 6675 (pipe), RFC 6937 with RFC 9937's safe
//! acknowledgements (proportional rate reduction), RFC 3168 (window reduction on ECN), RFC 5682 and
//! RFC 4015 (spurious timeouts, response).
//! Idea: a congestion event sets ssthresh; without PRR cwnd follows at once and data leaves when
//! enough of the flight has been delivered; with PRR one segment leaves for each `1/beta` delivered,
//! so that cwnd arrives at ssthresh at the end of the round.
//! Invariants: in recovery PRR sends no more than was delivered unless the flight is below ssthresh;
//! what undo restores is never above what was held before.

use sojourn_congestion::Window;

/// What the sender is doing about congestion (Linux's `tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing unusual.
    Open,
    /// The window was reduced for an ECN echo or a probed tail; ends when the round does.
    Reduced,
    /// Losses found by acknowledgements are being repaired.
    Recovery,
    /// The retransmission timer has expired.
    Loss,
}

/// Proportional rate reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    delivered: u64,
    sent: u64,
    flight: u64,
}

impl Prr {
    /// A reduction begins with `flight` bytes outstanding.
    pub(crate) fn start(flight: u64) -> Self {
        Self { delivered: 0, sent: 0, flight: flight.max(1) }
    }

    /// Data left.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// An acknowledgement in recovery: the new cwnd. `safe` if it moved forward and found no loss.
    pub(crate) fn on_ack(&mut self, window: &mut Window, delivered: u64, pipe: u64, safe: bool) {
        self.delivered += delivered;
        let ssthresh = window.ssthresh;
        let mut allowed = if pipe > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            (share.div_ceil(u128::from(self.flight)) as u64).saturating_sub(self.sent)
        } else {
            let mut limit = self.delivered.saturating_sub(self.sent).max(delivered);
            if safe {
                limit += window.mss;
            }
            limit.min(ssthresh - pipe)
        };
        if self.sent == 0 {
            // The fast retransmission always leaves.
            allowed = allowed.max(window.mss);
        }
        window.set_cwnd(pipe + allowed);
    }
}

/// What is needed to take a reduction back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// The first number outstanding at the reduction; 0 if there is nothing to undo.
    pub(crate) marker: u64,
    pub(crate) cwnd: u64,
    pub(crate) ssthresh: u64,
    /// Retransmissions not yet reported as duplicates.
    pub(crate) pending: u64,
    /// Any retransmission since.
    pub(crate) any: bool,
}

impl Undo {
    /// `repairs` retransmissions are in flight already.
    pub(crate) fn save(una: u64, window: &Window, repairs: u64) -> Self {
        Self {
            marker: una,
            cwnd: window.cwnd,
            ssthresh: window.ssthresh,
            pending: repairs,
            any: repairs > 0,
        }
    }

    /// Whether all retransmissions are known to have been unnecessary: they came back as
    /// duplicates, or the acknowledgement of new data echoes a timestamp (`echo`) from before the
    /// first of them (`stamp`).
    pub(crate) fn is_mistake(&self, stamp: Option<u32>, echo: Option<u32>) -> bool {
        if self.marker == 0 {
            return false;
        }
        let before_repair = match (stamp, echo) {
            (Some(stamp), Some(echo)) => (echo.wrapping_sub(stamp) as i32) < 0,
            _ => false,
        };
        (self.any && self.pending == 0) || before_repair
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937, section 4.2's figure: 20 segments, one lost, ssthresh 10: one leaves for each two
    /// delivered.
    #[test]
    fn sends_half_of_what_is_delivered() {
        let mut window = Window { cwnd: 20_000, ssthresh: 10_000, mss: 1000 };
        let mut prr = Prr::start(20_000);
        let mut pipe: u64 = 17_000;
        let mut sent = 0;
        for _ in 0..16 {
            pipe -= 1000;
            prr.on_ack(&mut window, 1000, pipe, false);
            while pipe + 1000 <= window.cwnd {
                pipe += 1000;
                prr.on_sent(1000);
                sent += 1;
            }
        }
        assert_eq!(sent, 8 + 1);
    }

    #[test]
    fn a_mistake_needs_proof() {
        let window = Window::new(1000, 10);
        let mut undo = Undo::save(7, &window, 0);
        assert!(!undo.is_mistake(None, Some(5)));
        undo.any = true;
        undo.pending = 1;
        assert!(!undo.is_mistake(Some(100), Some(100)));
        assert!(undo.is_mistake(Some(100), Some(99)));
        undo.pending = 0;
        assert!(undo.is_mistake(None, None));
    }
}
