//! The timers of data: reordering, tail loss probe, retransmission, closed window, pacing.

use super::Sender;
use super::probe::probe_timeout;
use super::recovery::Phase;
use crate::receiver::NEVER;
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
            if self.rtt.has_one_timer() {
                self.rack.stop();
                self.renew_rto(now);
            }
        }
        if self.probe.expire(now) {
            if !self.rtt.has_one_timer() {
                self.rto.postpone(now, &self.rtt);
            } else if let Some(sent) = self.oldest_departure() {
                self.rto.resume(now, sent, &self.rtt, self.gap(now));
            }
        }
        if now >= self.rto.deadline() {
            self.on_timeout(now);
        }
        self.persist.expire(now);
    }

    /// Returns when the oldest outstanding segment left last.
    fn oldest_departure(&self) -> Option<Nanos> {
        self.board.first().map(|index| self.board.entry(index).sent_at)
    }

    /// Starts the retransmission timer after new data is acknowledged. If it was lent, it counts from
    /// the departure of the oldest segment.
    fn renew_rto(&mut self, now: Nanos) {
        match self.oldest_departure() {
            Some(sent) if self.rto.is_lent() => {
                self.rto.resume(now, sent, &self.rtt, self.gap(now));
            }
            _ => self.restart_rto(now),
        }
    }

    /// Starts the retransmission timer after a transmission.
    #[inline]
    pub(super) fn restart_rto(&mut self, now: Nanos) {
        self.rto.restart_paced(now, &self.rtt, self.gap(now));
    }

    /// Returns the time for which pacing holds the next segment, in whole ticks. Linux's one timer
    /// runs longer by it (`tcp_pacing_delay`).
    #[inline]
    fn gap(&self, now: Nanos) -> Nanos {
        match self.pacer.next() {
            Some(next) if self.rtt.has_one_timer() => {
                self.rtt.whole_ticks(next.saturating_sub(now))
            }
            _ => 0,
        }
    }

    /// Sets the timers after a segment was sent; `is_first` if none was outstanding.
    #[inline]
    pub(super) fn arm_after_sending(&mut self, now: Nanos, is_first: bool) {
        if !self.rtt.has_one_timer() {
            self.rto.start(now, &self.rtt);
            self.schedule_probe(now);
        } else if self.may_probe() {
            // `tcp_schedule_loss_probe`
            let sent = self.oldest_departure().unwrap_or(now);
            let left = self.rto.left(now, sent, &self.rtt);
            self.lend_to_probe(now, if left > 0 { left } else { NEVER });
        } else if is_first {
            self.restart_rto(now);
        } else if self.probe.deadline() != NEVER {
            // `tcp_event_new_data_sent`
            self.probe.stop();
            self.renew_rto(now);
        }
    }

    /// Sets the timers after the oldest segment was sent again.
    #[inline]
    pub(super) fn arm_after_repair(&mut self, now: Nanos) {
        if self.rtt.has_one_timer() {
            // The timer stays with reordering (`tcp_xmit_retransmit_queue`).
            if self.rack.deadline() != NEVER {
                return;
            }
            self.probe.stop();
        }
        self.restart_rto(now);
    }

    /// Sets the timers after an acknowledgement of new data (RFC 6298, (5.3); RFC 8985, section 7.2).
    #[inline]
    pub(super) fn arm_after_ack(&mut self, now: Nanos) {
        if !self.rtt.has_one_timer() {
            self.rto.restart(now, &self.rtt);
            self.schedule_probe(now);
        } else if self.may_probe() {
            // `tcp_set_xmit_timer`
            self.lend_to_probe(now, self.rto.timeout(&self.rtt));
        } else {
            self.probe.stop();
            self.rack.stop();
            self.renew_rto(now);
        }
    }

    /// Returns whether a tail loss probe may follow (section 7.2; Linux: `CA_Open` or `CA_CWR`).
    #[inline]
    fn may_probe(&self) -> bool {
        let quiet = self.recovery.phase != Phase::Open || self.board.sacked_count() == 0;
        self.probe.is_enabled() && quiet && self.phase_allows_probe()
    }

    #[inline]
    pub(super) fn phase_allows_probe(&self) -> bool {
        match self.recovery.phase {
            Phase::Open => true,
            Phase::Reduced => self.rtt.has_one_timer(),
            Phase::Recovery | Phase::Loss => false,
        }
    }

    /// Starts the timer for a tail loss probe, which is due after at most `most`.
    #[inline]
    fn lend_to_probe(&mut self, now: Nanos, most: Nanos) {
        let delay = probe_timeout(self.rtt.srtt(), self.board.len() == 1).min(most);
        self.probe.start(self.rtt.later(now, delay + self.gap(now)));
        self.rto.lend();
        self.rack.stop();
    }

    /// Starts the probe's own timer, if no probe is outstanding; it expires with the retransmission
    /// timer at the latest.
    #[inline]
    fn schedule_probe(&mut self, now: Nanos) {
        if self.may_probe() && !self.probe.is_outstanding() {
            let delay = probe_timeout(self.rtt.srtt(), self.board.len() == 1);
            self.probe.start(self.rtt.later(now, delay).min(self.rto.deadline()));
        } else {
            self.probe.stop();
        }
    }
}
