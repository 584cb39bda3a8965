//! The retransmission timer.
//!
//! Source: RFC 6298, section 5. [`Rtt`] computes the timeout (section 2).
//! Invariants: the timer runs whenever data is outstanding; each expiry without an answer doubles
//! the timeout up to its maximum.

use crate::receiver::NEVER;
use crate::rtt::Rtt;
use sojourn_units::{MICROSECOND, Nanos};

/// The timer and its backoff.
#[derive(Clone, Debug)]
pub(crate) struct RetransmissionTimer {
    at: Nanos,
    /// Expiries since the last valid answer of the peer.
    backoff: u32,
    /// Expiries since SND.UNA last moved (`icsk_retransmits`).
    repeats: u32,
    /// Expiries after which the connection is given up (RFC 1122, 4.2.3.5's R2).
    retries: u32,
    /// Whether the timer is used for a tail loss probe or for reordering, since Linux has one timer
    /// for all three (`icsk_pending`).
    lent: bool,
}

impl RetransmissionTimer {
    pub(crate) fn new(retries: u32) -> Self {
        Self { at: NEVER, backoff: 0, repeats: 0, retries, lent: false }
    }

    /// Returns when the timer expires; [`NEVER`] if it does not run.
    pub(crate) fn deadline(&self) -> Nanos {
        self.at
    }

    /// (5.1): data is sent; starts the timer if it is not running.
    #[inline]
    pub(crate) fn start(&mut self, now: Nanos, rtt: &Rtt) {
        if self.at == NEVER && !self.lent {
            self.restart(now, rtt);
        }
    }

    /// (5.2): all data is acknowledged; stops the timer.
    pub(crate) fn stop(&mut self) {
        self.at = NEVER;
        self.lent = false;
    }

    /// Stops the timer, which is used for a tail loss probe or for reordering.
    pub(crate) fn lend(&mut self) {
        self.at = NEVER;
        self.lent = true;
    }

    /// Returns whether the timer is used for a tail loss probe or for reordering.
    pub(crate) fn is_lent(&self) -> bool {
        self.lent
    }

    /// (5.3): new data is acknowledged; the timer starts again.
    pub(crate) fn restart(&mut self, now: Nanos, rtt: &Rtt) {
        self.restart_paced(now, rtt, 0);
    }

    /// Starts the timer again, while pacing holds the next segment for `gap`.
    pub(crate) fn restart_paced(&mut self, now: Nanos, rtt: &Rtt, gap: Nanos) {
        self.at = rtt.later(now, self.timeout(rtt) + gap);
        self.lent = false;
    }

    /// Returns the timeout with the backoff.
    pub(crate) fn timeout(&self, rtt: &Rtt) -> Nanos {
        rtt.backed_off(self.backoff)
    }

    /// Starts the timer again after it was lent: it counts from `sent`, when the oldest segment left
    /// (`tcp_rearm_rto`). Pacing holds the next segment for `gap`.
    pub(crate) fn resume(&mut self, now: Nanos, sent: Nanos, rtt: &Rtt, gap: Nanos) {
        self.at = rtt.later(now, self.left(now, sent, rtt).max(MICROSECOND) + gap);
        self.lent = false;
    }

    /// Returns the time from `now` to a timeout that counts from `sent`, or 0 if it has passed.
    pub(crate) fn left(&self, now: Nanos, sent: Nanos, rtt: &Rtt) -> Nanos {
        (sent + self.timeout(rtt)).saturating_sub(now)
    }

    /// RFC 8985, section 7.3: a tail loss probe is due; the timer expires a whole timeout from now,
    /// or later.
    pub(crate) fn postpone(&mut self, now: Nanos, rtt: &Rtt) {
        self.at = self.at.max(rtt.later(now, self.timeout(rtt)));
    }

    /// Ends the backoff, after a valid answer (section 5, last paragraph).
    pub(crate) fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Notes that SND.UNA moved, or that a timeout was spurious.
    #[inline]
    pub(crate) fn on_progress(&mut self) {
        self.repeats = 0;
    }

    /// Returns whether the next expiry is the first for the oldest segment.
    pub(crate) fn is_first(&self) -> bool {
        self.repeats == 0
    }

    /// Returns whether data was sent again as often as is allowed.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.backoff >= self.retries
    }

    /// (5.5) and (5.6): doubles the timeout and starts the timer.
    pub(crate) fn back_off(&mut self, now: Nanos, rtt: &Rtt) {
        self.backoff += 1;
        self.repeats += 1;
        self.restart(now, rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;
    use proptest::prelude::*;
    use sojourn_units::{EPOCH, MILLISECOND, SECOND};

    fn rtt() -> Rtt {
        let mut rtt = Rtt::new(&Params::parse("reno profile rfc").unwrap());
        rtt.sample(500 * MILLISECOND, 1, 2);
        assert_eq!(rtt.rto(), 1500 * MILLISECOND);
        rtt
    }

    #[test]
    fn a_lent_timer_counts_from_the_departure_of_the_oldest_segment() {
        let (rtt, mut timer) = (rtt(), RetransmissionTimer::new(15));
        timer.restart(EPOCH, &rtt);
        timer.lend();
        timer.start(EPOCH + SECOND, &rtt);
        assert!(timer.is_lent());
        assert_eq!(timer.deadline(), NEVER);
        timer.resume(EPOCH + SECOND, EPOCH, &rtt, 0);
        assert!(!timer.is_lent());
        assert_eq!(timer.deadline(), EPOCH + rtt.rto());
        timer.resume(EPOCH + 2 * SECOND, EPOCH, &rtt, 0);
        assert_eq!(timer.deadline(), EPOCH + 2 * SECOND + MICROSECOND);
        timer.restart_paced(EPOCH, &rtt, 7 * MILLISECOND);
        assert_eq!(timer.deadline(), EPOCH + rtt.rto() + 7 * MILLISECOND);
    }

    #[test]
    fn a_running_timer_is_not_started_again_by_new_data() {
        let (rtt, mut timer) = (rtt(), RetransmissionTimer::new(15));
        assert_eq!(timer.deadline(), NEVER);
        timer.start(EPOCH, &rtt);
        timer.start(EPOCH + SECOND, &rtt);
        assert_eq!(timer.deadline(), EPOCH + rtt.rto());
        timer.restart(EPOCH + SECOND, &rtt);
        assert_eq!(timer.deadline(), EPOCH + SECOND + rtt.rto());
        timer.stop();
        assert_eq!(timer.deadline(), NEVER);
    }

    #[test]
    fn an_answer_ends_the_backoff() {
        let (rtt, mut timer) = (rtt(), RetransmissionTimer::new(15));
        assert!(timer.is_first());
        timer.back_off(EPOCH, &rtt);
        assert!(!timer.is_first());
        assert_eq!(timer.deadline(), EPOCH + 2 * rtt.rto());
        timer.end_backoff();
        timer.restart(EPOCH, &rtt);
        assert_eq!(timer.deadline(), EPOCH + rtt.rto());
    }

    #[test]
    fn a_probe_postpones_but_never_advances_it() {
        let (rtt, mut timer) = (rtt(), RetransmissionTimer::new(15));
        timer.restart(EPOCH + SECOND, &rtt);
        timer.postpone(EPOCH, &rtt);
        assert_eq!(timer.deadline(), EPOCH + SECOND + rtt.rto());
        timer.postpone(EPOCH + 2 * SECOND, &rtt);
        assert_eq!(timer.deadline(), EPOCH + 2 * SECOND + rtt.rto());
    }

    #[test]
    fn it_is_exhausted_after_its_retries() {
        let (rtt, mut timer) = (rtt(), RetransmissionTimer::new(2));
        for _ in 0..2 {
            assert!(!timer.is_exhausted());
            timer.back_off(EPOCH, &rtt);
        }
        assert!(timer.is_exhausted());
    }

    proptest! {
        /// (5.5): each expiry doubles the timeout, up to 60 s (2.5), and never shortens it.
        #[test]
        fn each_expiry_doubles_the_timeout(sample in 1u64..10 * SECOND, expiries in 1u32..80) {
            let mut rtt = Rtt::new(&Params::parse("reno profile rfc").unwrap());
            rtt.sample(sample, 1, 2);
            let mut timer = RetransmissionTimer::new(255);
            timer.start(EPOCH, &rtt);
            let mut timeout = timer.deadline() - EPOCH;
            for _ in 0..expiries {
                timer.back_off(EPOCH, &rtt);
                prop_assert_eq!(timer.deadline() - EPOCH, (2 * timeout).min(60 * SECOND));
                timeout = timer.deadline() - EPOCH;
            }
        }
    }
}
