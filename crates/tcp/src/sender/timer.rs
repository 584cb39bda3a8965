//! The timers of data: reordering, tail loss probe, retransmission, closed window.

use super::Sender;
use crate::params::Recovery;
use crate::receiver::NEVER;
use crate::recovery::{Phase, Undo};
use sojourn_congestion::{Cause, Control};
use sojourn_units::Nanos;

impl Sender {
    /// The earliest of its timers.
    #[inline]
    pub(crate) fn deadline(&self) -> Nanos {
        self.rto_at
            .min(self.probe_at)
            .min(self.reorder_at)
            .min(self.persist_at)
            .min(self.pacer.deadline())
    }

    pub(crate) fn on_timer(&mut self, now: Nanos) {
        self.flight = self.outstanding();
        if now >= self.reorder_at {
            self.reorder_at = NEVER;
            self.find_late(now);
            if self.board.lost_bytes() > 0 && matches!(self.phase, Phase::Open | Phase::Reduced) {
                self.enter_recovery(now);
                if self.recovery == Recovery::Prr && !self.owns_window {
                    let pipe = self.pipe();
                    self.prr.on_ack(&mut self.window, 0, pipe, false);
                }
            }
        }
        if now >= self.probe_at {
            self.probe_at = NEVER;
            self.probe_due = true;
            self.rto_at = self.rto_at.max(now + self.rtt.backed_off(self.backoff));
        }
        if now >= self.rto_at {
            self.on_timeout(now);
        }
        if now >= self.persist_at {
            self.persist_at = NEVER;
            self.window_probe_due = true;
        }
    }

    fn on_timeout(&mut self, now: Nanos) {
        self.counters.rtos += 1;
        self.event();
        self.rto_at = NEVER;
        self.probe_at = NEVER;
        self.reorder_at = NEVER;
        self.probe_due = false;
        self.probe_end = 0;
        if self.board.is_empty() {
            return;
        }
        if self.backoff >= self.retries {
            self.gave_up = true;
            return;
        }
        let first = self.phase != Phase::Loss;
        if first || self.backoff == 0 {
            // Not again if the retransmission itself was lost (RFC 5681, section 3.1).
            let saved = if self.phase == Phase::Recovery { self.undo } else { Undo::default() };
            self.undo =
                Undo::save(self.una, &self.window, self.board.repair_bytes().div_ceil(self.mss));
            if saved.marker > 0 {
                self.undo.cwnd = saved.cwnd;
                self.undo.ssthresh = saved.ssthresh;
            }
            let flight = self.outstanding();
            self.window.ssthresh = self.control.reduce(&self.window, flight, Cause::Timeout, now);
        }
        self.window.set_cwnd(self.mss);
        let recovering = self.phase == Phase::Recovery;
        self.phase = Phase::Loss;
        self.recovery_point = self.nxt;
        self.recover = self.nxt;
        self.dup_bytes = 0;
        self.dup_acks = 0;
        self.board.mark_all();
        self.frto.on_timeout(recovering);
        self.backoff += 1;
        self.force = true;
        self.rto_at = now + self.rtt.backed_off(self.backoff);
    }
}
