//! The effects of an acknowledgement: delivery, round-trip times, losses, phases, the window.

use super::recovery::Phase;
use super::{Sender, timestamp};
use crate::receiver::NEVER;
use crate::scoreboard::Tally;
use crate::segment::{Flags, Segment};
use sojourn_congestion::{Ack, Cause};
use sojourn_units::{MILLISECOND, Nanos};

/// The sender's state before an acknowledgement.
#[derive(Clone, Copy)]
struct Before {
    una: u64,
    pipe: u64,
    phase: Phase,
    /// Sequence numbers sent and not acknowledged cumulatively.
    flight: u64,
}

/// Data that an acknowledgement newly reports.
#[derive(Clone, Copy)]
struct News {
    /// Bytes newly acknowledged cumulatively.
    acked: u64,
    /// Whether the segment is a duplicate acknowledgement (RFC 5681, section 2; with SACK, RFC
    /// 6675, section 2).
    dup: bool,
    /// Whether the first SACK block reports a duplicate segment (RFC 2883).
    dsack: bool,
    /// The timestamp that the acknowledgement echoes.
    echo: Option<u32>,
}

impl Sender {
    /// Takes an acknowledgement, with `ack <= nxt`.
    pub(crate) fn on_ack(&mut self, now: Nanos, segment: &Segment, echo: Option<u32>) {
        if segment.ack < self.space.una {
            return;
        }
        let counts = self.ecn.counts();
        if self.board.is_empty()
            && !segment.has_sack()
            && (counts || !segment.flags.has(Flags::ECE))
        {
            self.ecn.count(segment, 0, self.window.mss);
            return self.on_window(segment);
        }
        let before = Before {
            una: self.space.una,
            pipe: self.pipe(),
            phase: self.recovery.phase,
            flight: self.space.outstanding(),
        };
        let mut tally = Tally {
            orig_bound: self.recovery.point,
            highest: self.board.highest(),
            believable: now - self.rtt.min(),
            ..Tally::default()
        };
        let news = self.update_scoreboard(now, segment, echo, &mut tally);
        let rtt = self.on_round_trip(now, &news, &tally);
        let mut rate = self.rate.on_ack(now, tally.delivered, tally.snapshot, self.rtt.min());
        self.rack.on_delivery(now, &tally);
        self.on_probe_answer(now, segment, &news, before.flight);

        let (is_echo, marks) = self.read_marks(segment, &news, tally.delivered);
        if self.ecn.is_enabled() {
            let report = Ack {
                now,
                acked: news.acked,
                delivered: tally.delivered,
                marked: marks.min(tally.delivered),
                una: self.space.una,
                nxt: self.space.nxt,
                ..Ack::default()
            };
            self.control.before_reduction(&self.window, &report);
        }
        let marked = if counts || !is_echo { marks } else { news.acked };
        self.detect_mistakes(&news, tally.original);
        if self.recovery.is_over(self.space.una) {
            self.leave_phase();
        }
        let repairs = self.board.repair_bytes();
        let lost = self.find_losses(now, news.acked);
        let again = self.board.repair_bytes() < repairs;
        self.tell_losses(now);
        if let Some((snapshot, _)) = &tally.snapshot {
            rate.lost = self.rate.lost_since(snapshot);
        }
        if self.board.lost_bytes() > 0 && self.recovery.may_enter(again) {
            self.enter_recovery(now, before.flight);
        }
        // An echo on the acknowledgement that ends a reduction begins the next one in Linux
        // (`tcp_try_to_open`).
        let may_reduce = before.phase == Phase::Open || self.recovery.is_whole();
        self.on_echo(now, is_echo, before.flight, may_reduce);

        let acked = self.counted(news.acked.min(tally.delivered), before.phase);
        let pipe = self.pipe();
        // Linux grows the window also on the acknowledgement that ends a reduction.
        let was_reducing = before.phase.is_reducing() && !self.recovery.is_whole();
        let may_grow = !was_reducing && !self.recovery.is_reducing();
        self.tell_control(&Ack {
            now,
            acked,
            delivered: tally.delivered,
            lost,
            marked: marked.min(acked),
            una: self.space.una,
            nxt: self.space.nxt,
            prior_in_flight: before.pipe,
            in_flight: pipe,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
            may_grow: news.acked > 0 && may_grow,
            cwnd_limited: self.is_cwnd_limited(&before),
            in_recovery: self.recovery.is_repairing(),
            app_limited: self.rate.is_app_limited(),
            departure: self.pacer.next().unwrap_or(0),
            paced: self.pacer.is_enabled(),
            rate,
        });
        let safe = news.acked > 0 && lost == 0;
        self.recovery.on_ack(&mut self.window, tally.delivered, pipe, safe);
        let renews = news.acked > 0 || self.is_sacked_after_repair(&tally);
        self.rearm(now, renews);
    }

    /// Takes an acknowledgement while nothing is outstanding, as at the receiver of a one-way
    /// transfer: only the window can have changed.
    #[inline]
    fn on_window(&mut self, segment: &Segment) {
        self.space.on_window(segment.ack, segment.window);
        self.release_persist();
    }

    #[inline]
    fn release_persist(&mut self) {
        if self.space.usable() > 0 {
            self.persist.on_open();
        }
    }

    /// Updates the scoreboard (RFC 6675's `Update()`), SND.UNA and SND.WND by the segment.
    #[inline]
    fn update_scoreboard(
        &mut self,
        now: Nanos,
        segment: &Segment,
        echo: Option<u32>,
        tally: &mut Tally,
    ) -> News {
        let ack = segment.ack;
        let acked = ack - self.space.una;
        let mut dsack = false;
        if self.recovery.uses_sack() && segment.has_sack() {
            dsack = self.on_blocks(segment, tally);
        }
        if acked > 0 {
            self.space.una = ack;
            self.rto.on_progress();
            tally.last.0 = 0;
            tally.believable = tally.believable.min(latest_echoed(now, echo));
            self.board.on_ack(ack, tally);
        }
        // Duplicate ACKs are defined in RFC 5681, section 2, and with SACK in RFC 6675, section 2.
        let same_window = segment.window == self.space.window && !segment.has_sack();
        let dup = acked == 0
            && segment.is_pure_ack()
            && self.space.outstanding() > 0
            && (tally.sacked > 0 || same_window);
        self.space.on_window(ack, segment.window);
        if dup {
            self.others.dup_acks += 1;
        }
        if !self.recovery.uses_sack() {
            self.count_duplicates(acked, dup, tally);
        }
        News { acked, dup, dsack, echo }
    }

    /// Takes the SACK blocks. Returns whether the first one reports a duplicate (RFC 2883, section
    /// 4).
    fn on_blocks(&mut self, segment: &Segment, tally: &mut Tally) -> bool {
        let (ack, nxt) = (segment.ack, self.space.nxt);
        let mut blocks = segment.sack();
        let Some(first) = blocks.next() else {
            return false;
        };
        let second = blocks.clone().next();
        let duplicate = first.1 <= ack || second.is_some_and(|s| s.0 <= first.0 && first.1 <= s.1);
        if duplicate {
            self.others.dsacks += 1;
            self.undo.on_duplicate(first.1);
            self.rack.on_duplicate(self.space.una, nxt);
        } else if first.0 < first.1 && first.1 <= nxt {
            self.board.on_sack(first.0.max(ack), first.1, tally);
        }
        for (start, end) in blocks {
            if start < end && end > ack && end <= nxt {
                self.board.on_sack(start.max(ack), end, tally);
            }
        }
        duplicate
    }

    /// Without SACK, a duplicate ACK counts as a segment delivered beyond the hole (RFC 6582).
    fn count_duplicates(&mut self, acked: u64, dup: bool, tally: &mut Tally) {
        let mss = self.window.mss;
        if acked > 0 {
            tally.delivered = self.duplicates.on_advance(acked, tally.delivered, mss);
            if tally.repeated {
                tally.original = false;
            }
            if self.recovery.is_open() || self.space.una >= self.recovery.point {
                self.duplicates.forget_bytes();
            }
        } else if dup {
            let gone = self.duplicates.bytes() + self.board.lost_bytes();
            let room = self.space.outstanding().saturating_sub(gone);
            tally.delivered += self.duplicates.on_duplicate(mss, room);
        }
    }

    /// Takes round-trip times; returns the newest, 0 for none. Karn's rule (RFC 6298, section 3):
    /// a retransmitted segment gives no sample without a timestamp (RFC 7323, section 4).
    fn on_round_trip(&mut self, now: Nanos, news: &News, tally: &Tally) -> Nanos {
        // The departure times may be in the future: `fq` with a short `horizon` or an
        // `offload_horizon` sends packets early.
        let since = |sent| now.saturating_sub(sent);
        let is_linux = self.rtt.is_linux();
        let (sample, newest) = if tally.first_sent > 0 && !tally.repeated {
            let last =
                if is_linux { tally.last_sent.max(tally.sack_sent) } else { tally.last_sent };
            (since(tally.first_sent), since(last))
        } else if tally.sack_sent > 0 && is_linux {
            (since(tally.sack_first), since(tally.sack_sent))
        } else if tally.sack_sent > 0 && !tally.repeated {
            (since(tally.sack_sent), since(tally.sack_sent))
        } else if let (Some(echo), true) = (news.echo, news.acked > 0) {
            let elapsed = timestamp(now).wrapping_sub(echo);
            if elapsed >= 1 << 31 {
                return 0;
            }
            let rtt = u64::from(elapsed.max(1)) * MILLISECOND;
            (rtt, if is_linux { rtt } else { 0 })
        } else {
            (0, 0)
        };
        self.rtt.note_min(now, newest);
        if sample > 0 {
            self.rtt.sample(sample, self.space.una, self.space.nxt);
            self.rto.end_backoff();
        } else if news.acked > 0 && is_linux {
            self.rto.end_backoff();
        }
        newest
    }

    /// RFC 8985, section 7.4: a loss that a tail loss probe repaired reduces the window.
    #[inline]
    fn on_probe_answer(&mut self, now: Nanos, segment: &Segment, news: &News, flight: u64) {
        let plain_dup = news.dup && !segment.has_sack();
        let repaired = self.probe.on_ack(segment.ack, news.acked, plain_dup, news.dsack);
        if repaired && self.recovery.is_open() {
            self.reduce(now, flight, Cause::Loss);
        }
    }

    /// Returns whether an acknowledgement echoes a mark, and the bytes that were delivered marked:
    /// with ECE all delivered bytes, with AccECN the bytes that the peer counted.
    #[inline]
    fn read_marks(&mut self, segment: &Segment, news: &News, delivered: u64) -> (bool, u64) {
        if !self.ecn.counts() {
            let is_echo = self.ecn.is_echo(segment);
            return (is_echo, if is_echo { delivered } else { 0 });
        }
        if news.acked == 0 && delivered == 0 {
            return (false, 0);
        }
        let marks = self.ecn.count(segment, delivered, self.window.mss).unwrap_or_default();
        (marks.packets > 0 || marks.bytes > 0, marks.bytes)
    }

    /// Responds to an ECN echo (RFC 3168, section 6.1.2), by a reduction if it `may_reduce`.
    #[inline]
    fn on_echo(&mut self, now: Nanos, is_echo: bool, flight: u64, may_reduce: bool) {
        if !is_echo {
            return;
        }
        self.others.ece_acks += 1;
        let transport = !self.recovery.owns_window() && !self.answers_marks;
        if may_reduce && transport && self.recovery.is_open() {
            self.reduce(now, flight, Cause::Ecn);
            self.on_ecn_reduction();
        }
        let models = self.answers_marks && self.recovery.owns_window();
        if models && self.ecn.begins_round(self.space.una, self.space.nxt) {
            self.on_ecn_reduction();
        }
    }

    fn on_ecn_reduction(&mut self) {
        self.others.ecn_reductions += 1;
        self.ecn.on_reduction();
    }

    /// Detects spurious retransmissions (RFC 3522, RFC 3708) and spurious timeouts (RFC 5682).
    #[inline]
    fn detect_mistakes(&mut self, news: &News, original: bool) {
        let fresh_echo = if news.acked > 0 { news.echo } else { None };
        let proves = self.takes_back && (news.acked > 0 || news.dsack);
        if proves && self.undo.is_unnecessary(fresh_echo) {
            self.take_back();
        }
        if self.board.repair_bytes() == 0
            && let Some(undo) = self.undo.changed()
        {
            undo.on_all_delivered();
        }
        if self.recovery.phase == Phase::Loss {
            self.on_frto(news.acked, original);
        }
    }

    /// Finds losses by the rules in force. Returns the bytes newly lost.
    fn find_losses(&mut self, now: Nanos, acked: u64) -> u64 {
        if self.rack.is_enabled() {
            return self.find_late(now);
        }
        if self.recovery.uses_sack() {
            return self.board.mark_by_count();
        }
        let is_lost = match self.recovery.phase {
            // RFC 6582, section 3.2, step 3: a partial acknowledgement shows the next hole.
            Phase::Recovery => acked > 0,
            Phase::Loss => false,
            Phase::Open | Phase::Reduced => self.duplicates.show_loss(self.space.una),
        };
        if is_lost { self.board.mark_first() } else { 0 }
    }

    /// Finds losses by time (RFC 8985, section 6.2, step 5). Returns the bytes newly lost.
    pub(super) fn find_late(&mut self, now: Nanos) -> u64 {
        let in_recovery = self.recovery.is_repairing();
        self.rack.detect(now, &mut self.board, in_recovery, &self.rtt)
    }

    /// Notifies the control of each segment newly taken for lost.
    #[inline]
    pub(super) fn tell_losses(&mut self, now: Nanos) {
        for loss in self.board.take_losses() {
            let lost = self.rate.on_lost(now, &loss, self.recovery.uses_sack());
            self.control.on_lost(&self.window, &lost);
        }
    }

    /// Returns how many of `acked` bytes, newly delivered and acknowledged cumulatively, count for
    /// the growth of cwnd.
    #[inline]
    fn counted(&self, acked: u64, phase: Phase) -> u64 {
        // RFC 3465, section 2.3: after a timeout, at most one segment per ACK counts.
        let one = phase == Phase::Loss && self.slow_after_timeout;
        if one { acked.min(self.window.mss) } else { acked }
    }

    /// Returns whether cwnd was used up, or in slow start more than half of it (RFC 7661).
    #[inline]
    fn is_cwnd_limited(&self, before: &Before) -> bool {
        before.una <= self.limited_end
            || (self.window.in_slow_start() && self.window.cwnd < 2 * before.pipe)
    }

    /// Reports an acknowledgement to the control, which may itself respond to marks by a smaller
    /// window.
    #[inline]
    fn tell_control(&mut self, report: &Ack) {
        let cwnd = self.window.cwnd;
        self.control.on_ack(&mut self.window, report);
        if self.answers_marks && !self.recovery.owns_window() && self.window.cwnd < cwnd {
            self.on_ecn_reduction();
            self.event();
        }
    }

    /// Returns whether SACK blocks report a segment that left before the oldest one was sent last.
    /// Linux then restarts the timer as after new data (`tcp_clean_rtx_queue`): the answer to the
    /// retransmission cannot have come yet.
    #[inline]
    fn is_sacked_after_repair(&self, tally: &Tally) -> bool {
        tally.sack_sent > 0
            && self.rtt.is_linux()
            && (self.rtt.has_one_timer() || self.rack.deadline() == NEVER)
            && self.board.first().is_some_and(|i| tally.sack_first < self.board.entry(i).sent_at)
    }

    /// Sets the timers after an acknowledgement (RFC 6298, (5.2) and (5.3); RFC 8985, section 7.2).
    #[inline]
    fn rearm(&mut self, now: Nanos, renews: bool) {
        if self.board.is_empty() {
            self.rto.stop();
            self.probe.cancel();
            self.rack.stop();
        } else if self.rack.take_started() && self.rtt.has_one_timer() {
            self.probe.stop();
            self.rto.lend();
        } else if renews {
            self.arm_after_ack(now);
        }
        self.release_persist();
    }
}

/// Returns the latest departure of a segment that an acknowledgement with the timestamp `echo` can
/// acknowledge cumulatively (Linux: `tcp_skb_spurious_retrans`).
#[inline]
fn latest_echoed(now: Nanos, echo: Option<u32>) -> Nanos {
    let Some(echo) = echo else { return now };
    let age = timestamp(now).wrapping_sub(echo);
    (now / MILLISECOND + 1).saturating_sub(u64::from(age)) * MILLISECOND - 1
}
