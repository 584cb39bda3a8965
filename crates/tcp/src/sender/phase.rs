//! The beginning and end of the phases of congestion control, and the undo of an unnecessary
//! reduction.

use super::Sender;
use super::frto::Verdict;
use super::recovery::Phase;
use sojourn_congestion::Cause;
use sojourn_units::Nanos;

impl Sender {
    /// Begins a recovery: acknowledgements showed a loss, with `flight` bytes outstanding (RFC
    /// 5681, section 3.2; RFC 6675, section 5, step 4).
    pub(super) fn enter_recovery(&mut self, now: Nanos, flight: u64) {
        self.others.recoveries += 1;
        self.event();
        if !self.rtt.has_one_timer() {
            self.probe.stop();
        }
        if self.recovery.phase != Phase::Reduced {
            let repairs = self.retransmitted_segments();
            self.undo.save(self.space.una, &self.window, repairs);
            self.lower_window(now, flight, Cause::Loss);
        }
        self.recovery.enter(Phase::Recovery, self.space.nxt);
        self.duplicates.on_reduction(self.space.nxt);
    }

    /// Reduces the window without a loss to repair.
    pub(super) fn reduce(&mut self, now: Nanos, flight: u64, cause: Cause) {
        self.event();
        self.undo.forget();
        self.lower_window(now, flight, cause);
        self.recovery.enter(Phase::Reduced, self.space.nxt);
    }

    fn lower_window(&mut self, now: Nanos, flight: u64, cause: Cause) {
        let ssthresh = self.control.reduce(&self.window, flight, cause, now);
        self.recovery.reduce(&mut self.window, ssthresh, flight);
        self.ecn.on_reduction();
    }

    /// Returns the retransmissions in flight, in segments.
    fn retransmitted_segments(&self) -> u64 {
        self.board.repair_bytes().div_ceil(self.window.mss)
    }

    /// Responds to an expiry of the retransmission timer (RFC 5681, section 3.1; RFC 6298, (5.4) to
    /// (5.6)).
    pub(super) fn on_timeout(&mut self, now: Nanos) {
        self.others.rtos += 1;
        self.event();
        self.rto.stop();
        self.probe.reset();
        self.rack.stop();
        if self.board.is_empty() {
            return;
        }
        if self.rto.is_exhausted() {
            self.gave_up = true;
            return;
        }
        self.duplicates.reset();
        self.board.mark_until(self.rack.recent(now));
        self.tell_losses(now);
        let (phase, is_first) = (self.recovery.phase, self.rto.is_first());
        // ssthresh is not reduced again if a timeout sent the segment before (RFC 5681, section
        // 3.1).
        if phase != Phase::Loss || is_first {
            let flight = self.space.outstanding();
            let ssthresh = self.control.reduce(&self.window, flight, Cause::Timeout, now);
            // Linux reduces it once for each window of data (`tcp_enter_loss`).
            let was_reduced = phase.is_reducing() && self.space.una < self.recovery.point;
            if !(self.rtt.is_linux() && was_reduced) {
                let repairs = self.retransmitted_segments();
                self.undo.save(self.space.una, &self.window, repairs);
                self.window.ssthresh = ssthresh;
            }
        }
        // The oldest segment, and those that left within the last round-trip time.
        self.window.set_cwnd(self.pipe() + self.window.mss);
        self.ecn.on_reduction();
        self.recovery.enter(Phase::Loss, self.space.nxt);
        self.duplicates.on_reduction(self.space.nxt);
        self.frto.on_timeout(matches!(phase, Phase::Open | Phase::Reduced) || !is_first);
        self.rto.back_off(now, &self.rtt);
    }

    /// Ends the phase: all data below the recovery point is acknowledged.
    pub(super) fn leave_phase(&mut self) {
        self.event();
        let left = self.recovery.leave();
        self.frto.stop();
        self.duplicates.reset();
        if self.recovery.owns_window() {
            self.control.on_recovery_exit(&mut self.window);
        } else if left != Phase::Loss {
            let pipe = self.pipe();
            self.recovery.deflate(left, &mut self.window, pipe);
            self.control.on_recovery_exit(&mut self.window);
        }
        if left == Phase::Recovery {
            self.rack.on_recovery_exit();
        }
    }

    /// Takes back the last reduction: restores cwnd and ssthresh, and withdraws all losses (RFC
    /// 4015).
    pub(super) fn take_back(&mut self) {
        self.others.spurious += 1;
        self.event();
        self.undo.restore(&mut self.window);
        self.rto.on_progress();
        self.control.on_undo();
        if self.recovery.owns_window() {
            self.control.on_recovery_exit(&mut self.window);
        }
        self.board.unmark();
        self.recovery.leave();
        self.frto.stop();
        self.duplicates.forget_bytes();
    }

    /// Takes back a timeout that proves spurious (RFC 5682, section 3.1). `original`: a segment
    /// that was sent only once is acknowledged.
    pub(super) fn on_frto(&mut self, acked: u64, original: bool) {
        let advanced = acked > 0 && self.space.una < self.recovery.point;
        match self.frto.on_ack(original, advanced) {
            Verdict::Spurious if self.undo.is_armed() => self.take_back(),
            Verdict::SendNew => self.recovery.point = self.space.nxt,
            _ => {}
        }
    }
}
