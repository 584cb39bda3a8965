//! One end of a TCP connection: the state machine of RFC 9293 around a sender and a receiver.
//!
//! Source: RFC 9293 (states, handshake, close), RFC 6298 and RFC 6928 (lost SYNs), RFC 7323 and
//! RFC 2018 (what a SYN negotiates), RFC 3168 section 6.1.1 and RFC 9768 section 3.1 (ECN in the
//! handshake).
//! Idea: the caller passes the time and gets deadlines. After each call with a time, call
//! [`Connection::poll_transmit`] until it returns `None`, then read [`Connection::deadline`].
//! Invariants: while data is in flight or waits for a closed window, the connection has a deadline;
//! after a call at time `now`, the deadline is not before `now`.
//!
//! Sequence numbers start at 0 with the SYN and do not wrap. A probe of a closed window is an empty
//! segment with the last number sent, as in Linux. Data segments carry SACK blocks only if the
//! payload leaves space for all options in a full frame; every hole is also reported by a pure ACK.

use crate::accecn;
use crate::params::{Ecn, Params, RtoRule};
use crate::receiver::{NEVER, Receiver, Times};
use crate::segment::{Flags, HEADERS, MAX_OPTIONS, Segment, SynOptions};
use crate::sender::agreed::Agreed;
use crate::sender::half::{Half, RoundTrip};
use crate::sender::host_queue::HostQueue;
use crate::sender::limits::Limited;
use crate::sender::recovery::Phase;
use crate::sender::{Counters, Output, timestamp};
use sojourn_congestion::Control;
use sojourn_units::{MILLISECOND, Nanos, SECOND};
use std::sync::Arc;

/// Which end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the SYN.
    Active,
    /// Waits for the peer's SYN.
    Passive,
}

/// The states of RFC 9293.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "RFC 9293 defines the states")]
pub enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    state: State,
    sender: Half,
    receiver: Receiver,
    params: Arc<Params>,
    /// Whether both ends send timestamps.
    timestamps: bool,
    /// The kind of ECN that the handshake has agreed on so far.
    ecn: Ecn,
    /// The options of the peer's SYN.
    offer: SynOptions,
    offered_timestamps: bool,
    /// AccECN: flags of our SYN-ACK that report the ECN codepoint of the peer's SYN.
    reflection: Flags,
    syn_due: bool,
    syn_at: Nanos,
    /// When the first SYN left; 0 before.
    syn_sent: Nanos,
    /// SYNs sent, and those of them that the timer sent.
    syn_tries: u32,
    syn_timeouts: u32,
    close_at: Nanos,
    rst_due: bool,
    reset: bool,
}

impl Connection {
    /// Returns a new end. An active end has its SYN to send at once.
    pub fn new(params: &Arc<Params>, role: Role, _now: Nanos) -> Self {
        Self {
            state: if role == Role::Active { State::SynSent } else { State::Listen },
            sender: Half::new(params),
            receiver: Receiver::new(params),
            params: Arc::clone(params),
            timestamps: false,
            ecn: Ecn::Off,
            offer: SynOptions::default(),
            offered_timestamps: false,
            reflection: Flags::NONE,
            syn_due: role == Role::Active,
            syn_at: NEVER,
            syn_sent: 0,
            syn_tries: 0,
            syn_timeouts: 0,
            close_at: NEVER,
            rst_due: false,
            reset: false,
        }
    }

    // Calls of the application.

    /// The application writes `bytes` bytes. [`Connection::poll_transmit`] returns their segments.
    pub fn write(&mut self, bytes: u64) {
        self.sender.wake(&self.params).stream.write(bytes);
    }

    /// From now on the application always has more data to send.
    pub fn write_unlimited(&mut self) {
        self.sender.wake(&self.params).stream.write_unlimited();
    }

    /// The application writes no more; a FIN follows the written data. After
    /// [`Connection::write_unlimited`] the FIN follows the data sent so far.
    pub fn close(&mut self) {
        match self.state {
            State::Listen => self.set_state(State::Closed),
            State::SynSent if self.sender.unsent() == 0 => self.set_state(State::Closed),
            State::Established | State::SynReceived | State::SynSent | State::CloseWait => {
                let sender = self.sender.wake(&self.params);
                sender.stream.finish(&sender.space);
            }
            _ => {}
        }
    }

    /// Closes the connection at once. The next segment is a RST, except before the peer's SYN and
    /// in TIME-WAIT.
    pub fn abort(&mut self) {
        self.rst_due =
            !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::TimeWait);
        self.reset = true;
        self.set_state(State::Closed);
    }

    /// The application stops reading: arriving data fills the receive buffer.
    pub fn pause_reading(&mut self) {
        self.receiver.pause();
    }

    /// The application reads all data in the receive buffer, and from now on data as it arrives.
    pub fn resume_reading(&mut self) {
        self.receiver.resume();
    }

    /// The paused application reads `bytes` bytes and stays paused.
    pub fn read(&mut self, bytes: u64) {
        self.receiver.read(bytes);
    }

    /// Sets the random number of the congestion control (BBR's gain cycle begins at a random
    /// phase).
    pub fn set_draw(&mut self, draw: u32) {
        self.sender.set_draw(draw);
    }

    /// Makes segments leave through a queue of the host, in which the connection has a limited
    /// number of bytes. If the queue `paces`, it holds packets until their departure times, and no
    /// timer of the connection paces. `supers` is whether the queue holds super-packets as wholes.
    /// Call this before the connection is established.
    pub fn leave_by_host_queue(&mut self, paces: bool, supers: bool) {
        self.sender.leave_by_host_queue(paces, supers);
    }

    /// Returns when the segment that [`Connection::poll_transmit`] returned at `now` is to depart.
    pub fn departure(&self, now: Nanos) -> Nanos {
        self.host_queue().map_or(now, |queue| queue.departure(now))
    }

    fn host_queue(&self) -> Option<&HostQueue> {
        self.sender.sender()?.host_queue.as_deref()
    }

    /// Takes a segment that has left its host's queue or was dropped there. Returns whether the
    /// connection waited for this, and may have more to send now.
    pub fn on_left(&mut self, segment: &Segment) -> bool {
        if segment.len == 0 && !segment.flags.has(Flags::FIN) {
            return false;
        }
        let continues = segment.flags.has(Flags::CONTINUES);
        let queue = self.sender.sender_mut().and_then(|sender| sender.host_queue.as_mut());
        queue.is_some_and(|queue| queue.on_left(segment.len, continues))
    }

    // Arriving segments.

    /// Takes an arriving segment; `ce` says whether its IP header carries Congestion Experienced.
    pub fn on_segment(&mut self, now: Nanos, segment: &Segment, ce: bool) {
        match self.state {
            State::Closed => {
                if !segment.flags.has(Flags::RST) {
                    self.rst_due = true;
                }
            }
            State::Listen => self.on_listen(segment, ce),
            State::SynSent => self.on_syn_sent(now, segment, ce),
            _ => self.on_synchronized(now, segment, ce),
        }
    }

    fn on_listen(&mut self, segment: &Segment, ce: bool) {
        if segment.flags.any(Flags::RST | Flags::ACK) || !segment.flags.has(Flags::SYN) {
            return;
        }
        self.take_offer(segment);
        self.on_syn_flags(segment, ce);
        self.syn_due = true;
        self.set_state(State::SynReceived);
    }

    fn on_syn_flags(&mut self, segment: &Segment, ce: bool) {
        self.ecn = self.params.ecn.on_syn(segment.flags);
        if self.ecn == Ecn::Accecn {
            self.reflection = accecn::reflection(segment.flags, ce);
        }
    }

    fn take_offer(&mut self, segment: &Segment) {
        self.offer = *segment.syn_options();
        self.offered_timestamps = segment.timestamps().is_some();
        self.receiver.on_syn(segment.seq);
        self.sender.space_mut().on_window(0, segment.window);
        if let Some(timestamps) = segment.timestamps() {
            self.receiver.note_timestamp(segment.seq, timestamps.value);
        }
    }

    fn on_syn_sent(&mut self, now: Nanos, segment: &Segment, ce: bool) {
        let acked = segment.flags.has(Flags::ACK) && segment.ack == 1;
        if segment.flags.has(Flags::RST) {
            if acked {
                self.reset = true;
                self.set_state(State::Closed);
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.take_offer(segment);
        if acked {
            self.ecn = self.params.ecn.on_syn_ack(segment.flags);
            if self.ecn == Ecn::Accecn {
                self.receiver.marks().on_syn_ack(segment.flags, ce);
            }
            self.receiver.on_syn_ack();
            self.establish(now, segment);
        } else {
            // Simultaneous open: both ends have sent a SYN.
            self.on_syn_flags(segment, ce);
            self.syn_due = true;
            self.set_state(State::SynReceived);
        }
    }

    /// Ends the handshake: both SYNs are known, and ours is acknowledged.
    fn establish(&mut self, now: Nanos, segment: &Segment) {
        let params = Arc::clone(&self.params);
        self.timestamps = params.timestamps && self.offered_timestamps;
        let theirs = if self.offer.mss == 0 { 536 } else { u32::from(self.offer.mss) };
        let mut options = if self.timestamps { 12 } else { 0 };
        if self.ecn == Ecn::Accecn {
            options += 12;
        }
        let mss = params.mss.min(theirs).saturating_sub(options).max(1);
        let sack = params.sack && self.offer.sack_permitted;
        let scaled = params.window_scaling && self.offer.window_scale.is_some();
        let scale = scaled.then(|| window_scale(&params));
        self.receiver.establish(now, u64::from(mss), sack, params.dsack, self.ecn, scale);
        let echo = segment.timestamps().filter(|_| self.timestamps).map(|stamps| stamps.echo);
        let (lost_syns, rtt) = self.judge_syns(now, echo);
        let agreed = Agreed { at: now, mss: u64::from(mss), sack, ecn: self.ecn, lost_syns, rtt };
        self.sender.establish(&params, agreed);
        self.sender.space_mut().on_window(1, segment.window);
        self.syn_due = false;
        self.syn_at = NEVER;
        self.set_state(State::Established);
    }

    /// Returns the number of lost SYNs and the handshake's round-trip time, if it is known. In Linux,
    /// the `echo` of the timestamp shows which of several SYNs was answered: if it was the first,
    /// none was lost (`tcp_try_undo_spurious_syn`).
    fn judge_syns(&self, now: Nanos, echo: Option<u32>) -> (u32, Option<Nanos>) {
        let lost = if self.syn_timeouts > 0 { self.syn_tries.saturating_sub(1) } else { 0 };
        if self.syn_tries <= 1 {
            return (lost, (self.syn_sent > 0).then(|| now - self.syn_sent));
        }
        let is_linux = self.params.rto_rule == RtoRule::Linux;
        let Some(echo) = echo.filter(|&echo| is_linux && echo > 0) else { return (lost, None) };
        let elapsed = timestamp(now).wrapping_sub(echo);
        let rtt = (elapsed < 1 << 31).then(|| u64::from(elapsed.max(1)) * MILLISECOND);
        (if echo == timestamp(self.syn_sent) { 0 } else { lost }, rtt)
    }

    fn on_synchronized(&mut self, now: Nanos, segment: &Segment, ce: bool) {
        if segment.flags.any(Flags::RST | Flags::SYN) {
            self.on_control(segment);
            return;
        }
        if !segment.flags.has(Flags::ACK) || !self.receiver.accepts(segment) {
            self.receiver.acks.now = true;
            return;
        }
        if self.state == State::SynReceived {
            if segment.ack != 1 {
                self.rst_due = true;
                return;
            }
            self.on_third_ack(now, segment);
        }
        let mut echo = None;
        if self.timestamps
            && let Some(timestamps) = segment.timestamps()
        {
            self.receiver.note_timestamp(segment.seq, timestamps.value);
            echo = Some(timestamps.echo);
            if segment.len > 0 && timestamps.echo > 0 {
                let elapsed = timestamp(now).wrapping_sub(timestamps.echo);
                if elapsed < 1 << 31 {
                    let rtt = u64::from(elapsed.max(1)) * MILLISECOND;
                    self.receiver.note_rtt(rtt, timestamps.echo, u64::from(segment.len));
                }
            }
        }
        if segment.ack > self.sender.space().nxt {
            self.receiver.acks.now = true;
            return;
        }
        self.sender.on_ack(now, segment, echo, &self.params);
        let RoundTrip { timeout, smoothed, .. } = self.sender.round_trip();
        let times = Times {
            rto: timeout,
            srtt: smoothed,
            answers: self.sender.sender().is_some_and(|sender| sender.frequent.bytes > 0),
        };
        self.receiver.on_segment(now, segment, ce, times);
        if self.sender.is_closing() || self.receiver.fin_received() {
            self.advance(now, segment);
        }
    }

    /// Takes the handshake's last acknowledgement. With AccECN its ACE field reports the codepoint
    /// with which our SYN-ACK arrived; a field of 0 turns ECN off (RFC 9768, section 3.2.2.4).
    fn on_third_ack(&mut self, now: Nanos, segment: &Segment) {
        let field = accecn::field(segment.flags);
        let counts = self.ecn == Ecn::Accecn && segment.is_pure_ack();
        if counts && field == 0 {
            self.ecn = Ecn::Off;
        }
        self.establish(now, segment);
        if counts && field != 0 {
            self.sender.ecn_mut().on_handshake(field);
        }
    }

    /// Takes a segment with RST or SYN after the peer's first SYN.
    fn on_control(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            if segment.seq >= self.receiver.nxt && self.receiver.accepts(segment) {
                // In these states both ends have sent a FIN, so the connection counts as closed
                // normally.
                self.reset =
                    !matches!(self.state, State::Closing | State::LastAck | State::TimeWait);
                self.set_state(State::Closed);
            }
        } else if self.state == State::SynReceived {
            self.syn_due = true;
        } else {
            // A SYN-ACK that the peer repeats after a lost ACK, or a stray SYN: both are
            // acknowledged (RFC 5961).
            self.receiver.acks.now = true;
        }
    }

    /// Changes the state if a FIN was received or ours was acknowledged.
    fn advance(&mut self, now: Nanos, segment: &Segment) {
        let ours = self.sender.fin_acked();
        let theirs = self.receiver.fin_received();
        let next = match self.state {
            State::Established if theirs => State::CloseWait,
            State::FinWait1 if ours && theirs => State::TimeWait,
            State::FinWait1 if ours => State::FinWait2,
            State::FinWait1 if theirs => State::Closing,
            State::FinWait2 if theirs => State::TimeWait,
            State::Closing if ours => State::TimeWait,
            State::LastAck if ours => State::Closed,
            state => state,
        };
        let again = self.state == State::TimeWait && segment.flags.has(Flags::FIN);
        if next == State::TimeWait && (self.state != next || again) {
            self.close_at = now + self.params.time_wait.max(1);
        }
        if next != self.state {
            self.set_state(next);
        }
    }

    fn set_state(&mut self, state: State) {
        self.state = state;
        self.sender.count_event();
        if state == State::Closed {
            self.syn_due = false;
            self.syn_at = NEVER;
            self.close_at = NEVER;
        }
    }

    // Departing segments.

    /// Returns the next segment to send at `now`. Call this until it returns `None`.
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        match self.state {
            State::Closed | State::Listen => return self.poll_reset(),
            State::SynSent | State::SynReceived => {
                if self.rst_due {
                    return self.poll_reset();
                }
                return self.syn_due.then(|| self.build_syn(now));
            }
            _ => {}
        }
        if let Some((ack, echo)) = self.receiver.take_owed() {
            return Some(self.build_owed(now, ack, echo));
        }
        if self.receiver.acks.now && self.receiver.acks_alone() {
            return Some(self.build_ack(now));
        }
        if let Some(output) = self.sender.poll(now) {
            return Some(self.build_data(now, output));
        }
        if self.receiver.acks.now {
            return Some(self.build_ack(now));
        }
        None
    }

    fn poll_reset(&mut self) -> Option<Segment> {
        if !std::mem::take(&mut self.rst_due) {
            return None;
        }
        Some(Segment::new(self.sender.space().nxt, self.receiver.nxt, Flags::RST | Flags::ACK))
    }

    fn build_syn(&mut self, now: Nanos) -> Segment {
        let passive = self.state == State::SynReceived;
        let params = &self.params;
        let mut flags = Flags::SYN;
        if passive {
            flags |= Flags::ACK;
            flags |= match self.ecn {
                Ecn::Off => Flags::NONE,
                Ecn::Accecn if self.falls_back() => Flags::NONE,
                Ecn::Accecn => self.reflection,
                Ecn::Classic | Ecn::Accurate | Ecn::L4s => Flags::ECE,
            };
        } else if !self.falls_back() {
            flags |= params.ecn.request();
        }
        let ecn = if passive { self.ecn } else { params.ecn };
        // RFC 9768, section 3.1.4: a SYN that does not ask for ECN is not ECN-capable.
        let bare = ecn == Ecn::Accecn && self.falls_back();
        if ecn.marks_syns(params.congestion.ecn()) && !bare {
            flags |= ecn.codepoint(params.congestion.ecn());
        }
        let mut segment = Segment::new(0, self.receiver.nxt, flags);
        let offer = self.offer;
        segment.set_syn_options(SynOptions {
            mss: params.mss as u16,
            sack_permitted: params.sack && (!passive || offer.sack_permitted),
            window_scale: (params.window_scaling && (!passive || offer.window_scale.is_some()))
                .then(|| window_scale(params)),
        });
        if params.timestamps && (!passive || self.offered_timestamps) {
            segment.set_timestamps(timestamp(now), self.receiver.ts_recent());
        }
        // An active end does not know yet whether segments will have timestamps.
        let options = if passive && segment.timestamps().is_some() { 12 } else { 0 };
        self.receiver.stamp_syn(&mut segment, u64::from(params.mss.saturating_sub(options).max(1)));
        let doublings = self.syn_timeouts.saturating_sub(self.linear_timeouts()).min(32);
        let timeout = self.params.initial_rto.saturating_mul(1 << doublings);
        self.syn_at = now + timeout.min(self.params.max_rto);
        if self.syn_tries == 0 {
            self.syn_sent = now;
        }
        self.syn_tries += 1;
        self.syn_due = false;
        // The SYN has sequence number 0.
        self.sender.space_mut().nxt = 1;
        segment
    }

    /// Returns after how many timeouts of a SYN the timeout begins to double; a SYN-ACK's doubles
    /// from the first on.
    fn linear_timeouts(&self) -> u32 {
        if self.state == State::SynSent { self.params.syn_linear_timeouts } else { 0 }
    }

    /// Returns whether a SYN, or with AccECN a SYN-ACK, does not ask for ECN because earlier ones
    /// were lost: one, or two with AccECN (RFC 9768, section 3.1.4).
    fn falls_back(&self) -> bool {
        let attempts = if self.params.ecn == Ecn::Accecn { 2 } else { 1 };
        self.params.ecn_fallback && self.syn_tries >= attempts
    }

    #[inline]
    fn build_data(&mut self, now: Nanos, output: Output) -> Segment {
        let mut flags = Flags::NONE;
        if output.fin {
            flags |= Flags::FIN;
        }
        if output.push {
            flags |= Flags::PSH;
        }
        if self.host_queue().is_some_and(HostQueue::continues) {
            flags |= Flags::CONTINUES;
        }
        if self.ecn != Ecn::Off {
            // Retransmissions are not ECN-capable (RFC 3168, section 6.1.5), unless the echo is
            // exact.
            if !output.repeat || self.ecn.is_exact() {
                flags |= self.ecn.codepoint(self.params.congestion.ecn());
            }
            if output.cwr {
                flags |= Flags::CWR;
            }
        }
        let mut segment = Segment::new(output.seq, 0, flags);
        segment.len = output.len;
        self.receiver.stamp(&mut segment);
        if self.timestamps {
            let departure = self.departure(now);
            segment.set_timestamps(timestamp(departure), self.receiver.ts_recent());
        }
        if self.receiver.has_sack() {
            let full = self.params.mss + HEADERS;
            if segment.wire_len() + MAX_OPTIONS <= full {
                self.receiver.add_sack(&mut segment);
            }
        }
        self.count_marks(&mut segment);
        if output.fin {
            match self.state {
                State::Established => self.set_state(State::FinWait1),
                State::CloseWait => self.set_state(State::LastAck),
                _ => {}
            }
        }
        segment
    }

    /// Returns the ECN field of a bare acknowledgement.
    fn ack_codepoint(&self) -> Flags {
        if self.ecn.marks_acks() {
            self.ecn.codepoint(self.params.congestion.ecn())
        } else {
            Flags::NONE
        }
    }

    #[inline]
    fn build_ack(&mut self, now: Nanos) -> Segment {
        let mut segment = Segment::new(self.sender.space().nxt, 0, self.ack_codepoint());
        self.receiver.stamp(&mut segment);
        if self.timestamps {
            segment.set_timestamps(timestamp(now), self.receiver.ts_recent());
        }
        if self.receiver.has_sack() {
            self.receiver.add_sack(&mut segment);
        }
        self.count_marks(&mut segment);
        segment
    }

    /// Adds AccECN's option.
    #[inline]
    fn count_marks(&mut self, segment: &mut Segment) {
        if self.ecn == Ecn::Accecn {
            segment.set_marked_bytes(self.receiver.marks().option());
        }
    }

    /// Builds the ACK of the segments that arrived before a change of marks (RFC 8257, section
    /// 3.2).
    fn build_owed(&mut self, now: Nanos, ack: u64, echo: bool) -> Segment {
        let mut segment =
            Segment::new(self.sender.space().nxt, ack, Flags::ACK | self.ack_codepoint());
        if echo {
            segment.flags |= Flags::ECE;
        }
        segment.window = self.receiver.window_from(ack);
        if self.timestamps {
            segment.set_timestamps(timestamp(now), self.receiver.ts_recent());
        }
        segment
    }

    // Timers.

    /// Returns when [`Connection::on_deadline`] is due; `None` for never. The time may change with
    /// every call; an earlier call is harmless.
    #[inline]
    pub fn deadline(&self) -> Option<Nanos> {
        let at = match self.state {
            State::Closed | State::Listen => NEVER,
            State::SynSent | State::SynReceived => self.syn_at,
            State::TimeWait => self.close_at.min(self.receiver.acks.at),
            _ => self.sender.deadline().min(self.receiver.acks.at),
        };
        (at != NEVER).then_some(at)
    }

    /// Runs the timers that are due at `now`.
    pub fn on_deadline(&mut self, now: Nanos) {
        self.receiver.on_timer(now);
        match self.state {
            State::Closed | State::Listen => {}
            State::SynSent | State::SynReceived => {
                if now >= self.syn_at {
                    self.on_syn_timeout();
                }
            }
            State::TimeWait => {
                if now >= self.close_at {
                    self.set_state(State::Closed);
                }
            }
            _ => {
                if let Some(sender) = self.sender.sender_mut() {
                    sender.on_timer(now);
                    if sender.gave_up {
                        self.abort();
                    }
                }
            }
        }
    }

    fn on_syn_timeout(&mut self) {
        self.syn_at = NEVER;
        let retries = match self.state {
            State::SynSent => self.params.syn_retries + self.linear_timeouts(),
            _ => self.params.synack_retries,
        };
        if self.syn_timeouts >= retries {
            self.reset = true;
            self.set_state(State::Closed);
            return;
        }
        self.syn_timeouts += 1;
        self.sender.count_timeout();
        self.syn_due = true;
    }

    // State for observers.

    /// Returns the connection's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the sender's phase of congestion control.
    pub fn phase(&self) -> Phase {
        self.sender.phase()
    }

    /// Returns whether the connection is closed or in TIME-WAIT.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed | State::TimeWait)
    }

    /// Returns whether the connection ended by a RST before both FINs, by giving up or by an abort.
    pub fn was_reset(&self) -> bool {
        self.reset
    }

    /// Returns whether all written data and, after a close, the FIN are acknowledged.
    pub fn is_finished(&self) -> bool {
        self.sender.is_finished()
    }

    /// Returns whether the peer's FIN and all data before it have arrived.
    pub fn peer_finished(&self) -> bool {
        self.receiver.fin_received()
    }

    /// Payload bytes that the peer has acknowledged.
    pub fn bytes_acked(&self) -> u64 {
        self.sender.space().una.saturating_sub(1 + u64::from(self.sender.fin_acked()))
    }

    /// Payload bytes delivered to the application, once and in order (read or ready to be read).
    pub fn bytes_delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Payload bytes that have arrived from the peer, in order or not, each once.
    pub fn bytes_arrived(&self) -> u64 {
        self.receiver.arrived()
    }

    /// Returns the payload bytes written and not yet acknowledged.
    pub fn bytes_buffered(&self) -> u64 {
        self.sender.sender().map_or(0, |sender| sender.stream.buffered(&sender.space))
    }

    /// Returns how many sequence numbers were sent and not yet acknowledged cumulatively.
    pub fn bytes_outstanding(&self) -> u64 {
        self.sender.space().outstanding()
    }

    /// Returns the bytes in flight by the sender's estimate.
    pub fn pipe(&self) -> u64 {
        self.sender.pipe()
    }

    /// The congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        self.sender.window().cwnd
    }

    /// The slow-start threshold in bytes.
    pub fn ssthresh(&self) -> u64 {
        self.sender.window().ssthresh
    }

    /// Payload of a full segment on this connection.
    pub fn mss(&self) -> u32 {
        self.sender.window().mss as u32
    }

    /// The smoothed round-trip time, if there is a sample.
    pub fn srtt(&self) -> Option<Nanos> {
        Some(self.sender.round_trip().smoothed).filter(|&rtt| rtt > 0)
    }

    /// The least round-trip time, if there is a sample.
    pub fn min_rtt(&self) -> Option<Nanos> {
        Some(self.sender.round_trip().least).filter(|&rtt| rtt > 0)
    }

    /// The newest round-trip time, if there is a sample.
    pub fn latest_rtt(&self) -> Option<Nanos> {
        Some(self.sender.round_trip().latest).filter(|&rtt| rtt > 0)
    }

    /// Returns the congestion control of an end that has sent data or received an acknowledgement.
    pub fn control(&self) -> Option<&dyn Control> {
        self.sender.sender().map(|sender| &*sender.control)
    }

    /// Returns the first sequence number of each segment that is taken for lost and not yet sent
    /// again.
    pub fn lost(&self) -> impl Iterator<Item = u64> {
        self.sender.sender().into_iter().flat_map(|sender| sender.board.unrepaired())
    }

    /// The retransmission timeout without backoff.
    pub fn rto(&self) -> Nanos {
        self.sender.round_trip().timeout.min(3600 * SECOND)
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> Counters {
        self.sender.counters()
    }

    /// Returns the times until `now` in which the peer's window or the send buffer kept this end from
    /// sending new data.
    pub fn limited(&self, now: Nanos) -> Limited {
        self.sender.sender().map_or_else(Limited::default, |sender| sender.limited(now))
    }

    /// Returns [`Counters::events`], the number of changes that a trace would show.
    pub fn events(&self) -> u64 {
        self.sender.events()
    }
}

/// Returns the number of bits by which windows are shifted so that the greatest fits 16 bits, at
/// most 14 (RFC 7323).
fn window_scale(params: &Params) -> u8 {
    (0..14).find(|shift| params.receive_window >> shift <= 65_535).unwrap_or(14)
}
