//! The timers of data: reordering, tail loss probe, retransmission, closed window, pacing.

use super::Sender;
use sojourn_units::Nanos;

impl Sender {
    /// Returns when the sender's next timer expires.
    #[inline]
    pub(crate) fn deadline(&self) -> Nanos {
        self.rto
            .deadline()
            .min(self.probe.deadline())
            .min(self.rack.deadline())
            .min(self.persist.deadline())
            .min(self.pacer.deadline())
    }

    pub(crate) fn on_timer(&mut self, now: Nanos) {
        let flight = self.space.outstanding();
        if now >= self.rack.deadline() {
            self.rack.stop();
            let found = self.find_late(now) > 0;
            self.tell_losses(now);
            if self.board.lost_bytes() > 0 && self.recovery.may_enter(found) {
                self.enter_recovery(now, flight);
                let pipe = self.pipe();
                // Linux counts one segment as delivered.
                let delivered = if self.recovery.is_whole() { self.window.mss } else { 0 };
                self.recovery.on_ack(&mut self.window, delivered, pipe, false);
            }
        }
        if self.probe.expire(now) {
            self.rto.postpone(now, &self.rtt);
        }
        if now >= self.rto.deadline() {
            self.on_timeout(now);
        }
        self.persist.expire(now);
    }

    /// Starts the timer of the tail loss probe after a transmission or an acknowledgement.
    #[inline]
    pub(super) fn schedule_probe(&mut self, now: Nanos) {
        if self.probe.is_enabled() {
            let is_quiet = self.recovery.is_open() && self.board.sacked_count() == 0;
            let one_in_flight = self.board.len() == 1;
            self.probe.schedule(now, is_quiet, &self.rtt, one_in_flight, self.rto.deadline());
        }
    }
}
