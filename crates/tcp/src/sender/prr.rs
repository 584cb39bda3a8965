//! Proportional rate reduction.
//!
//! Source: RFC 6937 with RFC 9937's safe acknowledgements (PRR-SSRB). The variant that counts whole
//! segments is Linux's `tcp_cwnd_reduction`; it uses cwnd at the beginning instead of the flight.
//! Idea: the ratio of sent to delivered data is that of ssthresh to the flight at the beginning, so
//! cwnd reaches ssthresh at the end of the round. If less than ssthresh is in flight, as much
//! leaves as was delivered, plus one segment if the acknowledgement is safe.
//! Invariant: the first retransmission always leaves.

use crate::rare::Initial;
use sojourn_congestion::Window;

/// The state of one reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    /// RFC 6937's `prr_delivered`, in units.
    delivered: u64,
    /// RFC 6937's `prr_out`, in units.
    sent: u64,
    /// RFC 6937's `RecoverFS`, in units; 1 at least.
    flight: u64,
    /// Bytes of a unit: 1, or those of a full segment.
    unit: u64,
}

impl Initial for Prr {
    const INITIAL: &'static Self = &Self { delivered: 0, sent: 0, flight: 0, unit: 0 };
}

impl Prr {
    /// Returns the state of a reduction that begins with `flight` bytes outstanding.
    pub(crate) fn start(flight: u64) -> Self {
        Self { delivered: 0, sent: 0, flight: flight.max(1), unit: 1 }
    }

    /// Returns the state of a reduction in whole segments, which begins with `window`.
    pub(crate) fn start_whole(window: &Window) -> Self {
        let flight = window.segments().max(1);
        Self { delivered: 0, sent: 0, flight, unit: window.mss }
    }

    /// Counts `bytes` bytes that left.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes.div_ceil(self.unit.max(1));
    }

    /// Sets cwnd on an acknowledgement in recovery that delivered `delivered` bytes, with `pipe`
    /// bytes in flight after it. `safe`: it moved SND.UNA and showed no loss.
    pub(crate) fn on_ack(&mut self, window: &mut Window, delivered: u64, pipe: u64, safe: bool) {
        let unit = self.unit.max(1);
        let (delivered, pipe) = (delivered.div_ceil(unit), pipe.div_ceil(unit));
        let (ssthresh, segment) = (window.ssthresh / unit, window.mss / unit);
        if unit > 1 && delivered == 0 {
            // Linux leaves cwnd unchanged if nothing was delivered.
            return;
        }
        self.delivered += delivered;
        let mut allowed = if pipe > ssthresh {
            // Section 3: ceil(prr_delivered * ssthresh / RecoverFS) - prr_out.
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            (share.div_ceil(u128::from(self.flight)) as u64).saturating_sub(self.sent)
        } else {
            // PRR-SSRB: packet conservation, and one segment more if the acknowledgement is safe.
            let mut limit = self.delivered.saturating_sub(self.sent).max(delivered);
            if safe {
                limit += segment;
            }
            limit.min(ssthresh - pipe)
        };
        if self.sent == 0 {
            // The fast retransmission always leaves.
            allowed = allowed.max(segment);
        }
        window.set_cwnd((pipe + allowed) * unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 1000;

    /// RFC 6937, section 4.2's figure: 20 segments, one lost, ssthresh 10: one leaves for each two
    /// delivered.
    #[test]
    fn sends_half_of_what_is_delivered() {
        let mut window = Window { cwnd: 20_000, ssthresh: 10_000, mss: MSS };
        let mut prr = Prr::start(20_000);
        let mut pipe: u64 = 17_000;
        let mut sent = 0;
        for _ in 0..16 {
            pipe -= MSS;
            prr.on_ack(&mut window, MSS, pipe, false);
            while pipe + MSS <= window.cwnd {
                pipe += MSS;
                prr.on_sent(MSS);
                sent += 1;
            }
        }
        assert_eq!(sent, 8 + 1);
    }

    /// Section 4.2's second figure: most of the window is lost, so the flight is below ssthresh.
    #[test]
    fn below_ssthresh_it_sends_what_was_delivered_and_one_more_if_that_is_safe() {
        let mut window = Window { cwnd: 20_000, ssthresh: 10_000, mss: MSS };
        let mut prr = Prr::start(20_000);
        prr.on_ack(&mut window, MSS, 4000, false);
        assert_eq!(window.cwnd, 5000);
        prr.on_sent(MSS);
        prr.on_ack(&mut window, MSS, 4000, true);
        assert_eq!(window.cwnd, 6000);
        prr.on_ack(&mut window, MSS, 9500, true);
        assert_eq!(window.cwnd, 10_000, "never above ssthresh");
    }

    #[test]
    fn the_first_retransmission_leaves_for_any_flight() {
        let mut window = Window { cwnd: 20_000, ssthresh: 10_000, mss: MSS };
        let mut prr = Prr::start(20_000);
        prr.on_ack(&mut window, 0, 19_000, false);
        assert_eq!(window.cwnd, 20_000);
        prr.on_sent(MSS);
        prr.on_ack(&mut window, 0, 19_000, false);
        assert_eq!(window.cwnd, 19_000);
    }

    /// cwnd 7 and ssthresh 4 segments: 1 for the retransmission, then ceil(4 d / 7) less the
    /// segments sent.
    #[test]
    fn in_whole_segments_all_is_rounded_up_to_the_next_segment() {
        let mut window = Window { cwnd: 7 * MSS, ssthresh: 4 * MSS, mss: MSS };
        let mut prr = Prr::start_whole(&window);
        // The fourth of seven is delivered; three are out of order, one is lost.
        prr.on_ack(&mut window, MSS, 5 * MSS, false);
        assert_eq!(window.cwnd, 6 * MSS);
        prr.on_sent(900);
        prr.on_ack(&mut window, MSS, 5 * MSS + 1, false);
        assert_eq!(window.cwnd, 7 * MSS, "a part of a segment in flight is one");
        prr.on_ack(&mut window, 0, 5 * MSS, false);
        assert_eq!(window.cwnd, 7 * MSS, "without a delivery nothing moves");
        prr.on_ack(&mut window, 100, 4 * MSS, true);
        assert_eq!(window.cwnd, 4 * MSS, "at ssthresh nothing is added");
        prr.on_ack(&mut window, MSS, 2 * MSS, true);
        assert_eq!(window.cwnd, 4 * MSS, "below it, what brings the flight there");
    }

    proptest! {
        /// Without new losses a whole round brings the flight from RecoverFS to ssthresh.
        #[test]
        fn the_flight_reaches_ssthresh_at_the_end_of_the_round(
            segments in 4u64..500,
            percent in 10u64..95,
            batch in 1u64..4,
        ) {
            let flight = segments * MSS;
            let ssthresh = (flight * percent / 100).max(2 * MSS);
            let mut window = Window { cwnd: flight, ssthresh, mss: MSS };
            let mut prr = Prr::start(flight);
            let mut pipe = flight;
            let mut left = segments;
            while left > 0 {
                let delivered = batch.min(left);
                left -= delivered;
                pipe -= delivered * MSS;
                prr.on_ack(&mut window, delivered * MSS, pipe, false);
                while pipe + MSS <= window.cwnd {
                    pipe += MSS;
                    prr.on_sent(MSS);
                }
            }
            prop_assert!(pipe.abs_diff(ssthresh) <= (batch + 1) * MSS, "{} of {}", pipe, ssthresh);
        }
    }
}
