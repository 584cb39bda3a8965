//! The phases of congestion: how they begin and end, and how a mistake is taken back.

use super::Sender;
use super::frto::Verdict;
use crate::params::Recovery;
use crate::receiver::NEVER;
use crate::recovery::{Phase, Prr, Undo};
use crate::scoreboard::Tally;
use sojourn_congestion::{Cause, Control};
use sojourn_units::Nanos;

impl Sender {
    pub(super) fn enter_recovery(&mut self, now: Nanos) {
        self.counters.recoveries += 1;
        self.event();
        self.probe_at = NEVER;
        self.force = true;
        self.rescue = 0;
        if self.phase == Phase::Reduced {
            self.phase = Phase::Recovery;
            self.recovery_point = self.nxt;
            self.recover = self.nxt;
            return;
        }
        self.undo =
            Undo::save(self.una, &self.window, self.board.repair_bytes().div_ceil(self.mss));
        let flight = self.flight;
        self.window.ssthresh = self.control.reduce(&self.window, flight, Cause::Loss, now);
        self.prr = Prr::start(flight);
        self.phase = Phase::Recovery;
        self.recovery_point = self.nxt;
        self.recover = self.nxt;
        if self.recovery != Recovery::Prr && !self.owns_window {
            self.window.set_cwnd(self.window.cwnd.min(self.window.ssthresh));
        }
    }

    /// A reduction without a loss to repair.
    pub(super) fn reduce(&mut self, now: Nanos, cause: Cause) {
        self.event();
        self.undo = Undo::default();
        let flight = self.flight;
        self.window.ssthresh = self.control.reduce(&self.window, flight, cause, now);
        self.prr = Prr::start(flight);
        self.phase = Phase::Reduced;
        self.recovery_point = self.nxt;
        if self.recovery != Recovery::Prr && !self.owns_window {
            self.window.set_cwnd(self.window.cwnd.min(self.window.ssthresh));
        }
    }

    pub(super) fn leave_phase(&mut self) {
        self.event();
        let left = self.phase;
        self.phase = Phase::Open;
        self.frto.stop();
        self.force = false;
        self.dup_bytes = 0;
        self.dup_acks = 0;
        if self.owns_window {
            self.control.on_recovery_exit(&mut self.window);
        } else if left != Phase::Loss {
            let mut cwnd = self.window.ssthresh;
            if self.recovery == Recovery::NewReno && left == Phase::Recovery {
                // RFC 6582, section 3.2, step 3, option 1: no burst.
                cwnd = cwnd.min(self.pipe().max(self.mss) + self.mss);
            }
            self.window.set_cwnd(cwnd.min(self.window.cwnd.max(self.window.ssthresh)));
            self.control.on_recovery_exit(&mut self.window);
        }
        if left == Phase::Recovery {
            self.rack.on_recovery_exit();
        }
    }

    /// The last reduction was a mistake: cwnd and ssthresh as before, nothing lost.
    pub(super) fn take_back(&mut self) {
        self.counters.spurious += 1;
        self.event();
        self.window.set_cwnd(self.window.cwnd.max(self.undo.cwnd));
        self.window.ssthresh = self.window.ssthresh.max(self.undo.ssthresh);
        self.undo = Undo::default();
        self.control.on_undo();
        if self.owns_window {
            self.control.on_recovery_exit(&mut self.window);
        }
        self.board.unmark();
        self.phase = Phase::Open;
        self.frto.stop();
        self.force = false;
        self.dup_bytes = 0;
    }

    /// RFC 5682, section 3.1: whether the timeout was spurious.
    pub(super) fn on_frto(&mut self, acked: u64, tally: &Tally) {
        let advanced = acked > 0 && self.una < self.recovery_point;
        match self.frto.on_ack(tally.original, advanced) {
            Verdict::Spurious if self.undo.marker > 0 => self.take_back(),
            Verdict::SendNew => self.recovery_point = self.nxt,
            _ => {}
        }
    }
}
