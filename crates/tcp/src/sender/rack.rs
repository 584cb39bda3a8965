//! RACK: losses by time.
//!
//! Source: RFC 8985, section 6. Idea: a segment is lost if a segment sent later was delivered, and
//! its own departure is longer ago than the newest round-trip time plus the reordering window. This
//! window starts as a quarter of the least round-trip time and grows with each round in which a
//! retransmission proved unnecessary. It is 0 in recovery while no reordering was seen.
//! Invariant: the departure of the newest delivered segment never decreases.

use crate::receiver::NEVER;
use crate::rtt::Rtt;
use crate::scoreboard::{DUP_THRESH, Scoreboard, Tally};
use sojourn_units::{MILLISECOND, Nanos};

/// Recoveries for which a wider reordering window is kept (section 6.2, step 4).
const PERSIST: u32 = 16;

/// Time added to the reordering timer if timers run by ticks (`TCP_TIMEOUT_MIN_US`).
const MARGIN: Nanos = 2 * MILLISECOND;

/// RACK's state.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    enabled: bool,
    /// When the reordering timer expires; [`NEVER`] if it does not run.
    at: Nanos,
    /// Whether the timer was started since the last call of `take_started`.
    started: bool,
    /// `RACK.xmit_ts` and `RACK.end_seq`: departure and end of the delivered segment that was sent
    /// last.
    newest: (Nanos, u64),
    /// `RACK.rtt`.
    rtt: Nanos,
    /// `RACK.reordering_seen`.
    reordering: bool,
    /// `RACK.reo_wnd_mult`.
    steps: u32,
    /// `RACK.reo_wnd_persist`.
    persist: u32,
    /// `RACK.dsack_round`: until this number is acknowledged, no further D-SACK widens the
    /// reordering window.
    round_end: u64,
}

impl Rack {
    pub(crate) fn new(enabled: bool) -> Self {
        Self {
            enabled,
            at: NEVER,
            started: false,
            newest: (0, 0),
            rtt: 0,
            reordering: false,
            steps: 1,
            persist: 0,
            round_end: 0,
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns when the reordering timer expires.
    pub(crate) fn deadline(&self) -> Nanos {
        self.at
    }

    /// Stops the reordering timer.
    pub(crate) fn stop(&mut self) {
        self.at = NEVER;
        self.started = false;
    }

    /// Returns whether the timer was started since the last call.
    #[inline]
    pub(crate) fn take_started(&mut self) -> bool {
        std::mem::take(&mut self.started)
    }

    /// Takes the delivered segments (section 6.2, steps 2 and 3). As in Linux, the round-trip time
    /// is that of the segment counted last, which may be older than the newest.
    #[inline]
    pub(crate) fn on_delivery(&mut self, now: Nanos, tally: &Tally) {
        if !self.enabled {
            return;
        }
        self.reordering |= tally.reordered;
        if tally.newest.0 > 0 {
            self.rtt = now.saturating_sub(tally.last.1);
            self.newest = self.newest.max(tally.newest);
        }
    }

    /// Returns the latest departure of a segment that counts as lost at a timeout: it is at least a
    /// round-trip time ago (section 6.3).
    pub(crate) fn recent(&self, now: Nanos) -> Nanos {
        if self.enabled { now.saturating_sub(self.rtt) } else { NEVER }
    }

    /// Takes a D-SACK, which shows that the reordering window was too small (section 6.2, step 4).
    pub(crate) fn on_duplicate(&mut self, una: u64, nxt: u64) {
        if !self.enabled {
            return;
        }
        self.reordering = true;
        if una >= self.round_end {
            self.round_end = nxt;
            self.steps = (self.steps + 1).min(255);
            self.persist = PERSIST;
        }
    }

    /// Notes the end of a loss recovery.
    pub(crate) fn on_recovery_exit(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Marks late segments as lost (section 6.2, step 5) and sets the reordering timer for those
    /// that may become late. Returns the bytes newly lost.
    pub(crate) fn detect(
        &mut self,
        now: Nanos,
        board: &mut Scoreboard,
        in_recovery: bool,
        rtt: &Rtt,
    ) -> u64 {
        if self.newest.0 == 0 {
            return 0;
        }
        let delay = self.delay(in_recovery, board.sacked_count(), rtt.min(), rtt.srtt());
        let (lost, waiting) = board.mark_by_time(now, self.newest, delay);
        if let Some(sent) = waiting {
            // Without ticks, the timer counts from the newest delivered segment's departure, as in
            // an earlier model of Linux (profile `linux-6`).
            let from = if rtt.ticks() { sent } else { self.newest.0 };
            self.at = late_at(now, from + delay, rtt);
            self.started = true;
        } else if !rtt.has_one_timer() {
            self.at = NEVER;
        }
        lost
    }

    /// Returns the time after which an unacknowledged segment is lost: `RACK.rtt + RACK.reo_wnd`.
    #[inline]
    fn delay(&self, in_recovery: bool, sacked: u64, min: Nanos, srtt: Nanos) -> Nanos {
        let window = if !self.reordering && (in_recovery || sacked >= DUP_THRESH) {
            0
        } else {
            (u64::from(self.steps) * (min / 4)).min(srtt)
        };
        self.rtt + window
    }
}

/// Returns when the reordering timer fires for a segment that is lost at `due`.
fn late_at(now: Nanos, due: Nanos, rtt: &Rtt) -> Nanos {
    let left = due.saturating_sub(now);
    if rtt.ticks() { rtt.later(now, left + MARGIN) } else { now + left.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;
    use crate::scoreboard::{Snapshot, Tally};
    use sojourn_units::{EPOCH, MILLISECOND};

    const RTT: Nanos = 40 * MILLISECOND;

    /// Returns ten outstanding segments, sent one per millisecond, and an estimator.
    fn ten() -> (Scoreboard, Rtt) {
        let mut board = Scoreboard::new(1000, false);
        for i in 0..10 {
            let sent = EPOCH + i * MILLISECOND;
            board.push(i * 1000, 1000, false, sent, Snapshot::default());
        }
        let mut rtt = Rtt::new(&Params::default());
        rtt.note_min(EPOCH, RTT);
        rtt.sample(RTT, 0, 1);
        (board, rtt)
    }

    /// Acknowledges the segment `index` selectively, one round-trip time after it left. Returns
    /// that time.
    fn sack(rack: &mut Rack, board: &mut Scoreboard, index: u64) -> Nanos {
        let now = EPOCH + index * MILLISECOND + RTT;
        let mut tally = Tally { highest: board.highest(), ..Tally::default() };
        board.on_sack(index * 1000, (index + 1) * 1000, &mut tally);
        rack.on_delivery(now, &tally);
        now
    }

    #[test]
    fn a_segment_is_lost_a_quarter_round_trip_after_a_later_one_arrived() {
        let (mut board, rtt) = ten();
        let mut rack = Rack::new(true);
        let now = sack(&mut rack, &mut board, 1);
        assert_eq!(rack.detect(now, &mut board, false, &rtt), 0);
        let due = EPOCH + RTT + RTT / 4;
        // The margin of two milliseconds, and the next tick.
        assert_eq!(rack.deadline(), due + MARGIN + MILLISECOND);
        assert!(rack.take_started());
        assert_eq!(rack.detect(rack.deadline(), &mut board, false, &rtt), 1000);
        assert!(!rack.take_started());
    }

    #[test]
    fn three_segments_above_show_the_loss_at_once() {
        let (mut board, rtt) = ten();
        let mut rack = Rack::new(true);
        let mut now = 0;
        for index in 1..=3 {
            now = sack(&mut rack, &mut board, index);
        }
        assert_eq!(rack.detect(now, &mut board, false, &rtt), 1000);
    }

    #[test]
    fn reordering_brings_back_the_window() {
        let (mut board, rtt) = ten();
        let mut rack = Rack::new(true);
        for index in [4, 5, 6] {
            sack(&mut rack, &mut board, index);
        }
        let now = sack(&mut rack, &mut board, 3).max(EPOCH + 6 * MILLISECOND + RTT);
        assert_eq!(rack.detect(now, &mut board, false, &rtt), 0);
    }

    #[test]
    fn a_dsack_widens_the_window_once_a_round_for_sixteen_recoveries() {
        let mut rack = Rack::new(true);
        let window = |rack: &Rack| rack.delay(false, 0, RTT, 10 * RTT);
        assert_eq!(window(&rack), RTT / 4);
        rack.on_duplicate(10, 20);
        rack.on_duplicate(15, 30);
        assert_eq!(window(&rack), 2 * (RTT / 4));
        rack.on_duplicate(20, 30);
        assert_eq!(window(&rack), 3 * (RTT / 4));
        assert_eq!(rack.delay(false, 0, RTT, RTT / 2), RTT / 2, "never above SRTT");
        for _ in 0..PERSIST {
            assert_eq!(window(&rack), 3 * (RTT / 4));
            rack.on_recovery_exit();
        }
        assert_eq!(window(&rack), RTT / 4);
    }

    #[test]
    fn without_rack_nothing_is_lost_by_time() {
        let (mut board, rtt) = ten();
        let mut rack = Rack::new(false);
        let now = sack(&mut rack, &mut board, 9);
        assert_eq!(rack.detect(now + RTT, &mut board, false, &rtt), 0);
    }
}
