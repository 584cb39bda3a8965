//! What an acknowledgement means: delivery, round-trip times, losses, phases, the window.

use super::{Sender, timestamp};
use crate::params::Recovery;
use crate::rack::probe_timeout;
use crate::receiver::NEVER;
use crate::recovery::Phase;
use crate::scoreboard::{DUP_THRESH, Tally};
use crate::segment::{Flags, Segment};
use sojourn_congestion::{Ack, Cause, Control};
use sojourn_units::{MILLISECOND, Nanos};

impl Sender {
    /// An acceptable acknowledgement: `ack <= nxt`.
    pub(crate) fn on_ack(&mut self, now: Nanos, segment: &Segment, echo: Option<u32>) {
        let ack = segment.ack;
        if ack < self.una {
            return;
        }
        if self.board.is_empty() && !segment.has_sack() && !segment.flags.has(Flags::ECE) {
            self.on_window(ack, segment.window);
            return;
        }
        let prior_una = self.una;
        let prior_pipe = self.pipe();
        let prior_phase = self.phase;
        let acked = ack - prior_una;
        self.flight = self.outstanding();
        let mut tally = self.tally(now);
        let mut dsack = false;
        if self.sack && segment.has_sack() {
            dsack = self.on_blocks(segment, &mut tally);
        }
        if acked > 0 {
            self.una = ack;
            self.board.on_ack(ack, &mut tally);
        }
        let dup = acked == 0
            && segment.is_pure_ack()
            && self.outstanding() > 0
            && (tally.sacked > 0 || (segment.window == self.last_window && !segment.has_sack()));
        self.set_edge(ack, segment.window);
        if dup {
            self.counters.dup_acks += 1;
        }
        if !self.sack {
            self.count_duplicates(acked, dup, &mut tally);
        }
        let rtt = self.on_round_trip(now, acked, &tally, echo);
        let rate = self.rate.on_ack(now, tally.delivered, tally.snapshot, self.rtt.min());
        if self.rack_enabled {
            self.rack.update(now, tally.newest, tally.reordered);
        }
        self.on_probe_answer(now, ack, acked, dup && !segment.has_sack(), dsack);

        // What the acknowledgement means for the phase.
        let marked = self.on_echo(now, segment, acked);
        let fresh_echo = if acked > 0 { echo } else { None };
        if self.undo_enabled
            && (acked > 0 || dsack)
            && self.undo.is_mistake(self.repair_stamp, fresh_echo)
        {
            self.take_back();
        }
        if self.board.repair_bytes() == 0 {
            self.repair_stamp = None;
        }
        if self.phase == Phase::Loss {
            self.on_frto(acked, &tally);
        }
        if self.phase != Phase::Open && self.una >= self.recovery_point {
            self.leave_phase();
        }
        let lost = self.find_losses(now, acked);
        if self.board.lost_bytes() > 0 && matches!(self.phase, Phase::Open | Phase::Reduced) {
            self.enter_recovery(now);
        }

        // What it means for the window.
        let in_recovery = matches!(self.phase, Phase::Recovery | Phase::Reduced);
        let pipe = self.pipe();
        let slow = self.window.in_slow_start();
        // What had been acknowledged selectively has been counted, or came during a recovery. RFC
        // 3465, section 2.3: one segment an ACK after a timeout.
        let mut counted = acked.min(tally.delivered);
        if prior_phase == Phase::Loss && self.careful {
            counted = counted.min(self.mss);
        }
        let repairing = matches!(prior_phase, Phase::Recovery | Phase::Reduced);
        let report = Ack {
            now,
            acked: counted,
            delivered: tally.delivered,
            lost,
            marked: marked.min(counted),
            una: self.una,
            nxt: self.nxt,
            prior_in_flight: prior_pipe,
            in_flight: pipe,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
            may_grow: !in_recovery && !repairing && acked > 0,
            cwnd_limited: prior_una <= self.limited_end
                || (slow && self.window.cwnd < 2 * prior_pipe),
            in_recovery: self.phase != Phase::Open && self.phase != Phase::Reduced,
            app_limited: self.rate.is_app_limited(),
            rate,
        };
        self.tell_control(&report);
        if in_recovery && !self.owns_window && self.recovery == Recovery::Prr {
            let safe = acked > 0 && lost == 0;
            self.prr.on_ack(&mut self.window, tally.delivered, pipe, safe);
        }
        self.rearm(now, acked);
    }

    /// Tells the control, which may itself answer marks by a smaller window.
    fn tell_control(&mut self, report: &Ack) {
        let before = self.window.cwnd;
        self.control.on_ack(&mut self.window, report);
        if self.answers_marks && self.window.cwnd < before {
            self.on_ecn_reduction();
            self.event();
        }
    }

    fn tally(&self, now: Nanos) -> Tally {
        Tally {
            orig_bound: self.recovery_point,
            highest: self.board.highest(),
            believable: now - self.rtt.min(),
            ..Tally::default()
        }
    }

    /// Nothing is outstanding, as at the receiver of a one-way transfer: only the window can have
    /// changed.
    #[inline]
    fn on_window(&mut self, ack: u64, window: u32) {
        self.set_edge(ack, window);
        self.release_persist();
    }

    fn release_persist(&mut self) {
        if self.edge > self.nxt {
            self.persist_at = NEVER;
            self.persist_backoff = 0;
        }
    }

    /// SACK blocks; whether the first reports a duplicate.
    fn on_blocks(&mut self, segment: &Segment, tally: &mut Tally) -> bool {
        let ack = segment.ack;
        let mut blocks = segment.sack();
        let Some(first) = blocks.next() else {
            return false;
        };
        let second = blocks.clone().next();
        let duplicate = first.1 <= ack || second.is_some_and(|s| s.0 <= first.0 && first.1 <= s.1);
        if duplicate {
            self.counters.dsacks += 1;
            if self.undo.marker > 0 && first.1 > self.undo.marker {
                self.undo.pending = self.undo.pending.saturating_sub(1);
            }
            if self.rack_enabled {
                self.rack.on_duplicate(self.una, self.nxt);
            }
        } else if first.0 < first.1 && first.1 <= self.nxt {
            self.board.on_sack(first.0.max(ack), first.1, tally);
        }
        for (start, end) in blocks {
            if start < end && end > ack && end <= self.nxt {
                self.board.on_sack(start.max(ack), end, tally);
            }
        }
        duplicate
    }

    /// Without SACK, a duplicate ACK stands for a segment delivered beyond the hole.
    fn count_duplicates(&mut self, acked: u64, dup: bool, tally: &mut Tally) {
        if acked > 0 {
            // The first segment acknowledged filled the hole; the others had been counted.
            let counted = self.dup_bytes.min(acked.saturating_sub(self.mss));
            self.dup_bytes -= counted;
            tally.delivered = tally.delivered.saturating_sub(counted).max(acked.min(self.mss));
            if tally.repeated {
                tally.original = false;
            }
            if self.phase == Phase::Open || self.una >= self.recovery_point {
                self.dup_bytes = 0;
            }
            self.dup_acks = 0;
        } else if dup {
            self.dup_acks += 1;
            let room = self.outstanding().saturating_sub(self.dup_bytes + self.board.lost_bytes());
            let bytes = self.mss.min(room);
            self.dup_bytes += bytes;
            tally.delivered += bytes;
        }
    }

    /// Round-trip times; returns the newest, 0 for none.
    fn on_round_trip(&mut self, now: Nanos, acked: u64, tally: &Tally, echo: Option<u32>) -> Nanos {
        let (sample, newest) = if tally.first_sent > 0 && !tally.repeated {
            (now - tally.first_sent, now - tally.last_sent)
        } else if tally.sack_sent > 0 && !tally.repeated {
            (now - tally.sack_sent, now - tally.sack_sent)
        } else if let (Some(echo), true) = (echo, acked > 0) {
            let elapsed = timestamp(now).wrapping_sub(echo);
            if elapsed >= 1 << 31 {
                return 0;
            }
            (u64::from(elapsed.max(1)) * MILLISECOND, 0)
        } else {
            (0, 0)
        };
        self.rtt.note_min(now, newest);
        if sample > 0 {
            self.rtt.sample(sample, self.una, self.nxt);
            self.backoff = 0;
        } else if acked > 0 && self.rtt.is_linux() {
            self.backoff = 0;
        }
        newest
    }

    fn on_probe_answer(&mut self, now: Nanos, ack: u64, acked: u64, dup: bool, dsack: bool) {
        if self.probe_end == 0 || ack < self.probe_end {
            return;
        }
        if !self.probe_repeat || dsack || (ack == self.probe_end && acked == 0 && dup) {
            self.probe_end = 0;
        } else if ack > self.probe_end {
            // The probe repaired a loss that nothing else would have shown.
            self.probe_end = 0;
            if self.phase == Phase::Open {
                self.reduce(now, Cause::Loss);
            }
        }
    }

    /// An ECN echo; returns the bytes acknowledged under it.
    fn on_echo(&mut self, now: Nanos, segment: &Segment, acked: u64) -> u64 {
        if !self.ecn || !segment.flags.has(Flags::ECE) || segment.flags.has(Flags::SYN) {
            return 0;
        }
        self.counters.ece_acks += 1;
        if self.phase == Phase::Open && !self.owns_window && !self.answers_marks {
            self.reduce(now, Cause::Ecn);
            self.on_ecn_reduction();
        }
        acked
    }

    fn on_ecn_reduction(&mut self) {
        self.counters.ecn_reductions += 1;
        self.cwr_due = true;
    }

    /// Losses by the rules in force; the bytes newly lost.
    fn find_losses(&mut self, now: Nanos, acked: u64) -> u64 {
        if self.rack_enabled {
            self.find_late(now)
        } else if self.sack {
            self.board.mark_by_count()
        } else if self.phase == Phase::Recovery {
            // RFC 6582: a partial acknowledgement shows the next hole.
            if acked > 0 { self.board.mark_first() } else { 0 }
        } else if self.phase != Phase::Loss
            && self.dup_acks >= DUP_THRESH
            && self.una > self.recover
        {
            self.board.mark_first()
        } else {
            0
        }
    }

    pub(super) fn find_late(&mut self, now: Nanos) -> u64 {
        if self.rack.newest.0 == 0 {
            return 0;
        }
        let in_recovery = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let sacked = self.board.sacked_count();
        let delay = self.rack.delay(in_recovery, sacked, self.rtt.min(), self.rtt.srtt());
        let (lost, waiting) = self.board.mark_by_time(now, self.rack.newest, delay);
        self.reorder_at = if waiting { (self.rack.newest.0 + delay).max(now + 1) } else { NEVER };
        lost
    }

    fn rearm(&mut self, now: Nanos, acked: u64) {
        if self.board.is_empty() {
            self.rto_at = NEVER;
            self.probe_at = NEVER;
            self.reorder_at = NEVER;
            self.probe_due = false;
        } else if acked > 0 {
            self.rto_at = now + self.rtt.backed_off(self.backoff);
            self.schedule_probe(now);
        }
        self.release_persist();
    }

    pub(super) fn schedule_probe(&mut self, now: Nanos) {
        self.probe_at = NEVER;
        if self.rack_enabled
            && self.phase == Phase::Open
            && self.probe_end == 0
            && self.board.sacked_count() == 0
        {
            let timeout = probe_timeout(self.rtt.srtt(), self.board.len() == 1, None);
            self.probe_at = (now + timeout).min(self.rto_at);
        }
    }
}
