//! Departures: lost segments, new ones, probes.

use super::burst::{Offer, ack_is_near, full_size};
use super::host_queue::allowance;
use super::limits::Limit;
use super::pacer::pacing_rate;
use super::recovery::Phase;
use super::{Output, Sender, timestamp};
use sojourn_units::Nanos;

impl Sender {
    /// Returns the next segment to send, if any.
    #[inline]
    pub(crate) fn poll(&mut self, now: Nanos) -> Option<Output> {
        self.pacer.reset();
        if self.board.is_empty() && self.stream.is_sent(&self.space) {
            return None;
        }
        if self.persist.take_due() {
            return Some(self.probe_window(now));
        }
        if self.probe.take_due()
            && let Some(output) = self.probe_tail(now)
        {
            return Some(output);
        }
        let (mss, cwnd) = (self.window.mss, self.window.cwnd);
        self.stream.fill(&self.space, mss, self.burst.mean(), cwnd / mss);
        let pipe = self.pipe();
        // RFC 6675, NextSeg, rule 1: lost segments go first, unless F-RTO asks for new data.
        if self.board.lost_bytes() > 0
            && !self.frto.sends_new_data()
            && let Some(index) = self.board.next_repair()
        {
            return self.poll_lost(now, pipe, index);
        }
        // Rule 2: new data.
        if let Some(output) = self.poll_new(now, pipe) {
            return Some(output);
        }
        if self.frto.sends_new_data()
            && self.board.lost_bytes() > 0
            && self.next_segment(false).is_none()
        {
            // RFC 5682, section 3.1, step 2a: without new data F-RTO cannot decide.
            self.frto.stop();
            return self.poll(now);
        }
        if self.recovery.sends_unsure() {
            return self.poll_unsure(now, pipe);
        }
        None
    }

    #[inline]
    fn poll_lost(&mut self, now: Nanos, pipe: u64, index: u64) -> Option<Output> {
        let is_forced = self.recovery.is_forced();
        // The retransmission of a timeout waits for nothing.
        if is_forced && self.recovery.phase == Phase::Loss {
            return Some(self.repeat(now, index));
        }
        let len = u64::from(self.board.entry(index).len);
        if !is_forced && pipe + len > self.window.cwnd {
            self.limited_end = self.space.nxt;
            return None;
        }
        if self.pacer.must_wait(now) {
            return None;
        }
        if self.host_queue.is_some() && self.is_queue_full(len, true) {
            return None;
        }
        Some(self.repeat(now, index))
    }

    /// Returns the next new segment's payload and FIN, regardless of cwnd.
    #[inline]
    fn next_segment(&self, probe: bool) -> Option<(u64, bool)> {
        let joins = !self.burst.is_over();
        self.stream.next(&self.space, self.window.mss, !probe && !self.board.is_empty(), joins)
    }

    #[inline]
    fn poll_new(&mut self, now: Nanos, pipe: u64) -> Option<Output> {
        let Some((len, fin)) = self.next_segment(false) else {
            self.burst.end();
            self.on_nothing(now, pipe);
            return None;
        };
        if self.board.is_empty() {
            self.on_restart(now);
        }
        // With RFC 3042, data that arrived beyond a hole is no longer in flight. Without it, such
        // data counts as in flight until a recovery begins.
        let early = !self.limited_transmit && self.recovery.is_open();
        let flight = if early { self.space.outstanding() } else { pipe };
        if let Some(limits) = self.limits.changed() {
            limits.end(now);
        }
        if flight + len > self.window.cwnd {
            self.limited_end = self.space.nxt;
            self.burst.end();
            return None;
        }
        let continues = !self.burst.is_over();
        if !continues {
            if self.pacer.must_wait(now) {
                return None;
            }
            let segments = if self.burst.is_enabled() { self.next_burst(now, flight) } else { 1 };
            if self.host_queue.is_some() && self.is_queue_full_for(segments) {
                return None;
            }
            if self.burst.is_enabled() {
                self.burst.begin(segments);
                if self.burst.is_over() {
                    self.limited_end = self.space.nxt;
                    return None;
                }
            }
        }
        self.burst.on_sent();
        let is_marked = len < self.window.mss
            || self.unsent() == len
            || self.burst.is_over() && self.stream.pushes(self.space.nxt + len);
        let push = self.burst.is_complete() || is_marked;
        let output = self.send(now, len, fin, continues);
        if is_marked {
            self.board.mark_pushed();
        }
        Some(Output { push, ..output })
    }

    /// Returns whether a super-packet of `segments` new segments must wait until other segments
    /// leave the host's queue. With at most one super-packet outstanding, it need not wait.
    #[cold]
    fn is_queue_full_for(&mut self, segments: u64) -> bool {
        segments > 0
            && self.board.len() > self.burst.last()
            && self.is_queue_full(segments * self.window.mss, false)
    }

    #[cold]
    fn is_queue_full(&mut self, payload: u64, repeat: bool) -> bool {
        let Some(queue) = &mut self.host_queue else { return false };
        let flight = self.space.outstanding();
        let rate = pacing_rate(&self.control, &self.window, flight, self.rtt.srtt());
        queue.must_wait(payload, allowance(rate, self.pacer.is_enabled()), repeat)
    }

    /// Returns how many segments leave at once, if at least one may leave and `flight` bytes are in
    /// flight; 0 to wait for an acknowledgement.
    fn next_burst(&self, now: Nanos, flight: u64) -> u64 {
        let (srtt, mss) = (self.rtt.srtt(), self.window.mss);
        let rate = pacing_rate(&self.control, &self.window, self.space.outstanding(), srtt);
        let offer = Offer {
            mss,
            cwnd: self.window.cwnd,
            flight,
            peer_room: self.space.usable(),
            peer_window: u64::from(self.space.window),
            waiting: self.unsent(),
            rest: self.stream.rest(&self.space),
            fin: self.stream.is_finished(),
            full: full_size(self.control.super_packet(), rate, self.rtt.min(), mss),
        };
        let segments = offer.segments();
        if self.recovery.is_repairing() || !offer.may_wait() {
            return segments;
        }
        let Some(oldest) = self.board.first() else { return segments };
        let last = self.pacer.next().unwrap_or(self.last_sent);
        let is_near = ack_is_near(now, last, self.board.entry(oldest).sent_at, srtt);
        if is_near { 0 } else { segments }
    }

    /// Handles that no new segment can be sent: begins an application-limited phase, or the probes
    /// of a closed window.
    fn on_nothing(&mut self, now: Nanos, pipe: u64) {
        let waiting = self.unsent();
        if self.stream.is_full(&self.space) {
            self.limits.begin(now, Limit::Buffer);
        } else if self.space.usable() < waiting.min(self.window.mss) {
            self.limits.begin(now, Limit::Window);
        }
        // A writer that waits for memory or for the peer's window has more to send.
        if self.rate.is_enabled()
            && waiting < self.window.mss
            && pipe < self.window.cwnd
            && self.board.lost_bytes() == 0
            && self.host_queue.as_ref().is_none_or(|queue| !queue.is_filled())
        {
            self.rate.on_app_limited(pipe);
        }
        if waiting > 0 && self.board.is_empty() && self.space.usable() == 0 {
            self.persist.start(now, &self.rtt);
        }
    }

    /// Handles the first new data after all data was acknowledged.
    fn on_restart(&mut self, now: Nanos) {
        if self.last_sent == 0 || now <= self.last_sent {
            return;
        }
        let idle = now - self.last_sent;
        self.control.on_restart(&mut self.window, now, idle);
        if !self.recovery.owns_window() {
            self.restart.apply(&mut self.window, idle, self.rtt.rto());
        }
    }

    /// Returns a segment that is not known to be lost, by RFC 6675, `NextSeg`, rules 3 and 4.
    fn poll_unsure(&mut self, now: Nanos, pipe: u64) -> Option<Output> {
        if pipe + self.window.mss > self.window.cwnd {
            return None;
        }
        if let Some(index) = self.board.next_unsure() {
            return (!self.pacer.must_wait(now)).then(|| self.repeat(now, index));
        }
        if self.recovery.may_rescue()
            && self.board.sacked_count() > 0
            && let Some(index) = self.board.last_unacked()
            && !self.board.entry(index).is_repeated()
            && !self.pacer.must_wait(now)
        {
            self.recovery.on_rescue();
            return Some(self.repeat(now, index));
        }
        None
    }

    /// Returns the bytes in flight after `len` more, for rate samples; 0 without such samples.
    fn pipe_with(&self, len: u64) -> u64 {
        if self.rate.is_enabled() { self.pipe() + len } else { 0 }
    }

    fn send(&mut self, now: Nanos, len: u64, fin: bool, continues: bool) -> Output {
        let in_flight = self.pipe_with(len);
        let now = self.depart(now, len, continues);
        let is_first = self.board.is_empty();
        let snapshot = self.rate.on_sent(now, is_first, in_flight);
        let seq = self.space.nxt;
        let numbers = len + u64::from(fin);
        self.board.push(seq, numbers as u32, fin, now, snapshot);
        self.space.nxt += numbers;
        self.stream.on_sent(fin);
        self.last_sent = now;
        self.frequent.on_sent(len);
        self.recovery.on_sent(len);
        self.pace(now, len);
        self.arm_after_sending(now, is_first);
        self.persist.stop();
        let cwr = self.ecn.take_cwr(len);
        Output { seq, len: len as u32, fin, cwr, push: false, repeat: false }
    }

    /// Returns when a segment sent at `now` departs: at once, or when the host's queue releases it.
    #[inline]
    fn depart(&mut self, now: Nanos, len: u64, continues: bool) -> Nanos {
        let Some(queue) = &mut self.host_queue else { return now };
        queue.on_sent(now, self.pacer.earliest(), len as u32, continues)
    }

    fn repeat(&mut self, now: Nanos, index: u64) -> Output {
        let entry = *self.board.entry(index);
        let in_flight = self.pipe_with(u64::from(entry.len));
        let now = self.depart(now, u64::from(entry.len - u32::from(entry.fin)), false);
        let snapshot = self.rate.on_sent(now, false, in_flight);
        self.board.on_repair(index, now, snapshot, self.rack.is_enabled());
        self.recovery.on_retransmit();
        self.last_sent = now;
        let len = entry.len - u32::from(entry.fin);
        self.frequent.on_sent(u64::from(len));
        self.others.retransmits += 1;
        self.others.retransmitted_bytes += u64::from(len);
        self.event();
        self.recovery.on_sent(u64::from(entry.len));
        self.undo.on_retransmit(timestamp(now));
        self.pace(now, u64::from(len));
        if entry.seq == self.space.una {
            self.arm_after_repair(now);
        } else {
            self.rto.start(now, &self.rtt);
        }
        let push = entry.is_pushed();
        Output { seq: entry.seq, len, fin: entry.fin, cwr: false, push, repeat: true }
    }

    #[inline]
    fn pace(&mut self, now: Nanos, bytes: u64) {
        self.pacer.on_sent(now, bytes, || {
            let flight = self.space.outstanding();
            pacing_rate(&self.control, &self.window, flight, self.rtt.srtt())
        });
    }

    /// Sends a tail loss probe: new data if there is any, else the last segment again (RFC 8985,
    /// section 7.3).
    fn probe_tail(&mut self, now: Nanos) -> Option<Output> {
        if self.board.is_empty() || !self.phase_allows_probe() || self.probe.is_outstanding() {
            return None;
        }
        self.others.probes += 1;
        self.event();
        let output = if let Some((len, fin)) = self.next_segment(true) {
            self.send(now, len, fin, false)
        } else {
            let index = self.board.last_unacked()?;
            self.repeat(now, index)
        };
        self.probe.on_sent(self.space.nxt, output.repeat);
        self.restart_rto(now);
        Some(output)
    }

    /// Sends an empty segment with the last number sent; the peer's answer reports the window.
    fn probe_window(&mut self, now: Nanos) -> Output {
        self.others.window_probes += 1;
        self.persist.on_probe(now, &self.rtt);
        Output {
            seq: self.space.nxt - 1,
            len: 0,
            fin: false,
            cwr: false,
            push: false,
            repeat: false,
        }
    }
}
