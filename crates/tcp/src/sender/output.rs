//! What leaves: lost segments, new ones, probes; pacing.

use super::burst::{Offer, ack_is_near, full_size};
use super::pacer::pacing_rate;
use super::{Output, Sender, timestamp};
use crate::params::{IdleRestart, Recovery};
use crate::receiver::NEVER;
use crate::recovery::Phase;
use sojourn_congestion::Control;
use sojourn_units::Nanos;

impl Sender {
    /// What leaves now, if anything does.
    #[inline]
    pub(crate) fn poll(&mut self, now: Nanos) -> Option<Output> {
        self.pacer.reset();
        if self.board.is_empty() && self.nxt >= self.end && (!self.fin || self.fin_sent) {
            return None;
        }
        if self.window_probe_due {
            self.window_probe_due = false;
            return Some(self.probe_window(now));
        }
        if self.probe_due {
            self.probe_due = false;
            if let Some(output) = self.probe_tail(now) {
                return Some(output);
            }
        }
        let pipe = self.pipe();
        if self.board.lost_bytes() > 0
            && !self.frto.sends_new_data()
            && let Some(index) = self.board.next_repair()
        {
            let len = u64::from(self.board.entry(index).len);
            if !self.force && pipe + len > self.window.cwnd {
                self.limited_end = self.nxt;
                return None;
            }
            if !self.force && self.pacer.must_wait(now) {
                return None;
            }
            return Some(self.repeat(now, index));
        }
        if let Some(output) = self.poll_new(now, pipe) {
            return Some(output);
        }
        if self.frto.sends_new_data() && self.board.lost_bytes() > 0 && self.fresh(false).is_none()
        {
            // Nothing new to send: F-RTO cannot decide.
            self.frto.stop();
            return self.poll(now);
        }
        if self.phase == Phase::Recovery && self.recovery == Recovery::Rfc6675 {
            return self.poll_unsure(now, pipe);
        }
        None
    }

    /// The next new segment's payload and FIN, whatever cwnd says.
    #[inline]
    fn fresh(&self, probe: bool) -> Option<(u64, bool)> {
        let waiting = self.end.saturating_sub(self.nxt);
        if waiting == 0 {
            return (self.fin && !self.fin_sent).then_some((0, true));
        }
        let buffer = (self.una + self.buffer).saturating_sub(self.nxt);
        let room = self.edge.saturating_sub(self.nxt).min(buffer);
        let len = self.mss.min(waiting).min(room);
        if len == 0 {
            return None;
        }
        if len < self.mss && !self.board.is_empty() && !probe {
            // RFC 1122, 4.2.3.4: wait for more room, or (Nagle) for an acknowledgement.
            if len < waiting && len < self.max_window / 2 {
                return None;
            }
            if len == waiting && self.nagle && !self.fin {
                return None;
            }
        }
        Some((len, len == waiting && self.fin))
    }

    #[inline]
    fn poll_new(&mut self, now: Nanos, pipe: u64) -> Option<Output> {
        let Some((len, fin)) = self.fresh(false) else {
            self.burst.end();
            self.on_nothing(now, pipe);
            return None;
        };
        if self.board.is_empty() {
            self.on_restart(now);
        }
        let early = !self.limited_transmit && self.phase == Phase::Open;
        let flight = if early { self.outstanding() } else { pipe };
        if flight + len > self.window.cwnd {
            self.limited_end = self.nxt;
            self.burst.end();
            return None;
        }
        if self.burst.is_over() {
            if self.pacer.must_wait(now) {
                return None;
            }
            if self.burst.is_enabled() {
                self.burst.begin(self.next_burst(now, flight));
                if self.burst.is_over() {
                    self.limited_end = self.nxt;
                    return None;
                }
            }
        }
        self.burst.on_sent();
        Some(self.send(now, len, fin))
    }

    /// There is nothing that may be sent.
    fn on_nothing(&mut self, now: Nanos, pipe: u64) {
        let waiting = self.end.saturating_sub(self.nxt);
        if waiting == 0 || self.edge <= self.nxt {
            if self.rate.is_enabled() && pipe < self.window.cwnd && self.board.lost_bytes() == 0 {
                self.rate.on_app_limited(pipe);
            }
            if waiting > 0 && self.board.is_empty() && self.persist_at == NEVER {
                self.persist_at = now + self.rtt.backed_off(self.persist_backoff);
            }
        }
    }

    /// Sending begins again after silence.
    fn on_restart(&mut self, now: Nanos) {
        if self.last_sent == 0 || now <= self.last_sent {
            return;
        }
        let idle = now - self.last_sent;
        self.control.on_restart(&self.window, now, idle);
        let rto = self.rtt.rto();
        if self.owns_window || idle <= rto {
            return;
        }
        let restart = self.window.cwnd.min(self.initial_window * self.mss);
        match self.idle_restart {
            IdleRestart::Off => {}
            IdleRestart::Rfc5681 => self.window.set_cwnd(restart),
            IdleRestart::Decay => {
                let kept = self.window.cwnd - self.window.cwnd / 4;
                if self.window.ssthresh < sojourn_congestion::MAX_WINDOW {
                    self.window.ssthresh = self.window.ssthresh.max(kept);
                }
                let halvings = (idle / rto).min(40) as u32;
                self.window.set_cwnd((self.window.cwnd >> halvings).max(restart));
            }
        }
    }

    /// RFC 6675's rules 3 and 4 of `NextSeg`.
    fn poll_unsure(&mut self, now: Nanos, pipe: u64) -> Option<Output> {
        if pipe + self.mss > self.window.cwnd {
            return None;
        }
        if let Some(index) = self.board.next_unsure() {
            if self.pacer.must_wait(now) {
                return None;
            }
            return Some(self.repeat(now, index));
        }
        if self.rescue == 0
            && self.board.sacked_count() > 0
            && let Some(index) = self.board.last_unacked()
            && !self.board.entry(index).is_repeated()
        {
            if self.pacer.must_wait(now) {
                return None;
            }
            self.rescue = self.recovery_point;
            return Some(self.repeat(now, index));
        }
        None
    }

    fn send(&mut self, now: Nanos, len: u64, fin: bool) -> Output {
        let snapshot = self.rate.on_sent(now, self.board.is_empty());
        let seq = self.nxt;
        self.board.push(seq, (len + u64::from(fin)) as u32, fin, now, snapshot);
        self.nxt += len + u64::from(fin);
        self.fin_sent |= fin;
        self.last_sent = now;
        self.counters.segments += 1;
        self.counters.bytes += len;
        if self.phase != Phase::Open {
            self.prr.on_sent(len);
        }
        self.pace(now, len);
        if self.rto_at == NEVER {
            self.rto_at = now + self.rtt.backed_off(self.backoff);
        }
        if self.rack_enabled {
            self.schedule_probe(now);
        }
        self.persist_at = NEVER;
        let cwr = self.cwr_due && len > 0;
        self.cwr_due &= !cwr;
        Output { seq, len: len as u32, fin, cwr, repeat: false }
    }

    fn repeat(&mut self, now: Nanos, index: u64) -> Output {
        let snapshot = self.rate.on_sent(now, false);
        let entry = *self.board.entry(index);
        self.board.on_repair(index, now, snapshot, self.rack_enabled);
        self.force = false;
        self.last_sent = now;
        let len = entry.len - u32::from(entry.fin);
        self.counters.segments += 1;
        self.counters.bytes += u64::from(len);
        self.counters.retransmits += 1;
        self.counters.retransmitted_bytes += u64::from(len);
        self.event();
        if self.phase != Phase::Open {
            self.prr.on_sent(u64::from(entry.len));
        }
        if self.undo.marker > 0 {
            self.undo.pending += 1;
            self.undo.any = true;
        }
        self.repair_stamp.get_or_insert(timestamp(now));
        self.pace(now, u64::from(len));
        if self.rto_at == NEVER || entry.seq == self.una {
            self.rto_at = now + self.rtt.backed_off(self.backoff);
        }
        Output { seq: entry.seq, len, fin: entry.fin, cwr: false, repeat: true }
    }

    fn probe_tail(&mut self, now: Nanos) -> Option<Output> {
        if self.board.is_empty() || self.phase != Phase::Open || self.probe_end != 0 {
            return None;
        }
        self.counters.probes += 1;
        self.event();
        let output = if let Some((len, fin)) = self.fresh(true) {
            self.probe_repeat = false;
            self.send(now, len, fin)
        } else {
            let index = self.board.last_unacked()?;
            self.probe_repeat = true;
            self.repeat(now, index)
        };
        self.probe_end = self.nxt;
        self.probe_at = NEVER;
        self.rto_at = now + self.rtt.backed_off(self.backoff);
        Some(output)
    }

    /// Repeats the last number without data; the answer tells the window.
    fn probe_window(&mut self, now: Nanos) -> Output {
        self.counters.window_probes += 1;
        self.persist_backoff = (self.persist_backoff + 1).min(32);
        self.persist_at = now + self.rtt.backed_off(self.persist_backoff);
        Output { seq: self.nxt - 1, len: 0, fin: false, cwr: false, repeat: false }
    }

    fn pace(&mut self, now: Nanos, bytes: u64) {
        self.pacer.on_sent(now, bytes, || {
            pacing_rate(&self.control, &self.window, self.nxt - self.una, self.rtt.srtt())
        });
    }

    /// Segments that leave at once now that at least one may, with `flight` bytes in flight; 0 to
    /// wait for an acknowledgement.
    fn next_burst(&self, now: Nanos, flight: u64) -> u64 {
        let srtt = self.rtt.srtt();
        let rate = pacing_rate(&self.control, &self.window, self.outstanding(), srtt);
        let offer = Offer {
            mss: self.mss,
            cwnd: self.window.cwnd,
            flight,
            peer_room: self.edge.saturating_sub(self.nxt),
            peer_window: u64::from(self.last_window),
            waiting: self.end.saturating_sub(self.nxt),
            fin: self.fin,
            full: full_size(self.control.super_packet(), rate, self.rtt.min(), self.mss),
        };
        let segments = offer.segments();
        if matches!(self.phase, Phase::Recovery | Phase::Loss) || !offer.may_wait() {
            return segments;
        }
        let Some(oldest) = self.board.first() else { return segments };
        let last = self.pacer.next().unwrap_or(self.last_sent);
        let is_near = ack_is_near(now, last, self.board.entry(oldest).sent_at, srtt);
        if is_near { 0 } else { segments }
    }
}
