//! The client's side of the protocol: scheduling, loss detection and retransmission.
//!
//! This module has no clock, I/O or randomness. Each datagram has a new number, even if it carries
//! a retransmitted fragment. Loss detection follows RFC 9002: a datagram counts as lost if a
//! datagram whose number is at least three higher was acknowledged, or if any later datagram was
//! acknowledged and 9/8 of the round-trip time have passed. At a timeout the oldest fragment in
//! flight is sent again; the third consecutive timeout sets the window to one datagram. The
//! congestion controls are those of `sojourn_congestion`, which the simulator uses too; datagrams
//! are paced in bursts of up to a millisecond. A datagram requests an acknowledgement if an eighth
//! of the window has been sent since the last request, or if no datagram can follow. The server may
//! delay other acknowledgements. With [`Mode::StopAndWait`], one message is in flight at a time, as
//! in the RRDA paper.

use crate::outgoing::Outgoing;
use crate::packet::{self, CHARGE, Code, Cookie, DATA_HEADER, DIGEST, Data, Id, Packet};
use crate::rtt::Rtt;
use crate::server::{fragment, fragments};
use sojourn_congestion::{self, Ack, Cause, Congestion, RateSample, Window, hystart};
use sojourn_units::{Bytes, MILLISECOND, Nanos, SECOND};
use std::collections::VecDeque;

/// Returns the bytes that count for a message: its length plus [`CHARGE`].
fn charge(data: &[u8]) -> u64 {
    data.len() as u64 + CHARGE
}

/// Parameters of slow start: HyStart++ (RFC 9406), counting bytes.
const SLOW_START: hystart::Params = hystart::Params {
    kind: hystart::Kind::PlusPlus,
    limit: 8,
    byte_counting: true,
    count: hystart::Count::Bytes,
};
/// Maximum number of messages in flight. It is below the limit of the server.
const UNDER_WAY: u64 = 4000;
/// Maximum burst in bytes.
const BURST: f64 = 65_536.0;
/// Maximum number of bytes in messages beyond 5/4 of the congestion window. More would not
/// increase the throughput.
const AHEAD: Bytes = 256 << 10;

/// Rule for the order in which messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A message is sent after the acknowledgement of the previous one.
    StopAndWait {
        /// Whether to wait until the handler has processed the message. If false, the client waits
        /// only until the message is in the buffer.
        processed: bool,
    },
    /// Messages are sent as far as the congestion window and the receiver's limit allow.
    Windowed,
}

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Payload of each fragment of a message except the last, in bytes.
    pub chunk: u16,
    /// Rule for the order in which messages are sent.
    pub mode: Mode,
    /// Congestion control.
    pub congestion: sojourn_congestion::Params,
    /// Maximum number of bytes that wait or are in flight. The sender uses less if the congestion
    /// window is small. A single message is always accepted.
    pub queue: Bytes,
    /// Maximum rate in bytes/s in addition to congestion control; `None` for no limit.
    pub rate: Option<u64>,
    /// Minimum retransmission timeout in nanoseconds.
    pub timeout: Nanos,
    /// Time without an answer, in nanoseconds, after which the connection ends.
    pub patience: Nanos,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            // 1500 bytes minus the headers of IPv6, UDP and this protocol.
            chunk: (1500 - 48 - DATA_HEADER) as u16,
            mode: Mode::Windowed,
            congestion: sojourn_congestion::Params::Cubic(
                sojourn_congestion::cubic::Params::default(),
            ),
            queue: 64 << 20,
            rate: None,
            timeout: 25 * MILLISECOND,
            patience: 10 * SECOND,
        }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The server ended the connection, with this reason and checksum.
    Server(Code, [u8; DIGEST]),
    /// The server did not answer.
    Silence,
    /// The caller stopped the transfer.
    Abandoned,
    /// A message is longer than the server accepts; the value is the maximum length in bytes.
    TooLong(u32),
}

/// Counters of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of datagrams sent.
    pub sent: u64,
    /// Number of retransmitted fragments.
    pub repeated: u64,
    /// Number of datagrams that were declared lost.
    pub lost: u64,
    /// Number of timeouts.
    pub timeouts: u64,
    /// Bytes of acknowledged messages.
    pub acknowledged: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hello,
    Opening(Cookie),
    Open,
    Ended(End),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Flying,
    Settled,
}

struct Sent {
    fate: Fate,
    /// Numbers of the message and of the fragment in the datagram; `None` for a ping.
    fragment: Option<(u64, u32)>,
    bytes: u32,
    at: Nanos,
    /// Total bytes sent before this datagram.
    offset: u64,
    delivered: u64,
    delivered_at: Nanos,
}

/// The payload of a datagram, as a part of one of the sender's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    message: u64,
    at: usize,
    length: usize,
}

impl Part {
    /// The payload of a datagram that has none.
    const NONE: Self = Self { message: 0, at: 0, length: 0 };

    /// Returns the length of the payload in bytes.
    pub(crate) fn length(self) -> usize {
        self.length
    }
}

/// The connection of a client, without socket and clock.
pub struct Sender {
    id: Id,
    settings: Settings,
    state: State,
    rtt: Rtt,
    window: Window,
    control: Congestion,
    /// Datagrams from number `base` on: those in flight, and acknowledged or lost datagrams between
    /// them.
    sent: VecDeque<Sent>,
    base: u64,
    flight: Bytes,
    offset: u64,
    delivered: u64,
    delivered_at: Nanos,
    /// Number of the first datagram after the last reduction of the window.
    recovery: u64,
    messages: Outgoing,
    /// Number of the message whose fragments are sent next.
    cursor: u64,
    again: VecDeque<(u64, u32)>,
    processed: u64,
    limit: u64,
    most: u32,
    /// Total bytes of messages whose transmission has begun, including [`CHARGE`] for each message.
    fresh: u64,
    /// Whether the next message may be begun although it exceeds the receiver's limit. The attempt
    /// shows the demand to the receiver's policy.
    force: bool,
    closed: bool,
    total: Option<u64>,
    asked_finish: bool,
    probes: u32,
    /// Whether a probe must be sent: the oldest fragment in flight, or a ping if there is no such
    /// fragment.
    probe: bool,
    /// Greatest acknowledged datagram number.
    largest: u64,
    /// Earliest time at which an unacknowledged datagram below the highest acknowledged number is
    /// overdue; `None` without such a datagram.
    overdue: Option<Nanos>,
    /// Bytes declared lost that have not been reported to congestion control.
    unreported: Bytes,
    /// Time at which the retransmission timer expires.
    timer: Nanos,
    attempts: u32,
    heard: Option<Nanos>,
    /// Bytes that the pacer allows to send; the value is valid for the time `refilled`.
    tokens: f64,
    refilled: Nanos,
    /// Whether the sender waits until a whole burst may be sent.
    resting: bool,
    /// Bytes sent since the last request for an acknowledgement.
    unasked: Bytes,
    counters: Counters,
}

impl Sender {
    /// Returns a connection that is not open yet. `id` must be random.
    pub fn new(id: Id, settings: Settings) -> Self {
        let mut window = Window::new(u64::from(settings.chunk), 10);
        let mut control = Congestion::new(&settings.congestion, SLOW_START, &window);
        control.on_start(&mut window, 0, id as u32);
        Self {
            id,
            messages: Outgoing::new(settings.queue),
            settings,
            state: State::Hello,
            rtt: Rtt::default(),
            control,
            window,
            sent: VecDeque::new(),
            base: 0,
            flight: 0,
            offset: 0,
            delivered: 0,
            delivered_at: 0,
            recovery: 0,
            cursor: 0,
            again: VecDeque::new(),
            processed: 0,
            limit: 0,
            most: u32::MAX,
            fresh: 0,
            force: false,
            closed: false,
            total: None,
            asked_finish: false,
            probes: 0,
            probe: false,
            largest: 0,
            overdue: None,
            unreported: 0,
            timer: 0,
            attempts: 0,
            heard: None,
            tokens: 0.0,
            refilled: 0,
            resting: false,
            unasked: 0,
            counters: Counters::default(),
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns how the connection ended; `None` if it has not ended.
    pub fn end(&self) -> Option<End> {
        match self.state {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Returns the smoothed round-trip time in nanoseconds; 0 before the first sample.
    pub fn rtt(&self) -> Nanos {
        self.rtt.smoothed
    }

    /// Returns the congestion window in bytes.
    pub fn cwnd(&self) -> Bytes {
        self.window.cwnd
    }

    /// Returns whether the sender currently accepts another message of `length` bytes.
    pub fn has_room(&self, length: usize) -> bool {
        let window = self.window.cwnd;
        let most = self.settings.queue.min(window.saturating_add(window / 4 + AHEAD));
        let queued = self.messages.queued() + length as Bytes;
        self.total.is_none() && (self.messages.is_empty() || queued <= most)
    }

    /// Gives the sender the next message.
    ///
    /// # Errors
    /// The message itself, if it is not accepted now or [`Sender::finish`] was called.
    pub fn push(&mut self, data: Vec<u8>) -> Result<(), Vec<u8>> {
        let Ok(length) = u32::try_from(data.len()) else { return Err(data) };
        if !self.has_room(data.len()) {
            return Err(data);
        }
        self.messages.push(data, length, self.settings.chunk);
        Ok(())
    }

    /// Returns the memory of an acknowledged message, which still holds its content; empty memory
    /// if none is kept.
    pub fn spare(&mut self) -> Vec<u8> {
        self.messages.spare()
    }

    /// Declares that no more messages follow. When all are acknowledged, the server's answer ends
    /// the connection.
    pub fn finish(&mut self) {
        self.total.get_or_insert(self.messages.next());
    }

    /// Stops the transfer.
    pub fn abandon(&mut self) {
        if self.end().is_none() {
            self.state = State::Ended(End::Abandoned);
        }
    }

    /// Processes a received datagram.
    pub fn handle(&mut self, now: Nanos, datagram: &[u8]) {
        let Some((id, packet)) = packet::read(datagram) else { return };
        if id != self.id {
            return;
        }
        match (self.state, packet) {
            (State::Hello | State::Opening(_), Packet::Retry(cookie)) => {
                self.heard = Some(now);
                self.state = State::Opening(cookie);
                (self.attempts, self.timer) = (0, now);
            }
            (State::Opening(_), Packet::Accept { most, limit }) => {
                self.heard = Some(now);
                self.state = State::Open;
                (self.most, self.limit) = (most, limit);
                (self.attempts, self.timer) = (0, now + self.settings.timeout);
                (self.delivered_at, self.refilled) = (now, now);
            }
            (State::Open, Packet::Ack { limit, processed, ranges }) => {
                self.heard = Some(now);
                self.limit = self.limit.max(limit.min(self.fresh.saturating_add(1 << 40)));
                self.processed = self.processed.max(processed.min(self.messages.next()));
                self.on_ack(now, &ranges);
            }
            (State::Open, Packet::Finished { code, digest }) => {
                self.state = State::Ended(End::Server(code, digest));
            }
            (State::Hello | State::Opening(_) | State::Open, Packet::Close { code }) => {
                self.state = State::Ended(End::Server(code, [0; DIGEST]));
            }
            _ => {}
        }
    }

    fn on_ack(&mut self, now: Nanos, ranges: &[(u64, u64)]) {
        let (prior, before) = (self.flight, self.delivered);
        let end = self.base + self.sent.len() as u64;
        let mut newest = None;
        let mut rate = RateSample::default();
        for &(first, last) in ranges {
            if last >= end {
                // The range contains a datagram that was never sent, so it is ignored.
                continue;
            }
            for number in first.max(self.base)..=last {
                let sent = &mut self.sent[(number - self.base) as usize];
                if sent.fate == Fate::Settled {
                    continue;
                }
                sent.fate = Fate::Settled;
                let (bytes, at, part) = (u64::from(sent.bytes), sent.at, sent.fragment);
                let (delivered, delivered_at) = (sent.delivered, sent.delivered_at);
                self.flight -= bytes;
                self.delivered += bytes;
                if newest.is_none_or(|(n, _)| number > n) {
                    newest = Some((number, at));
                    rate.prior_delivered = delivered;
                    rate.interval = now - delivered_at;
                }
                if let Some((message, index)) = part
                    && let Some(length) = self.messages.settle(message, index)
                {
                    self.counters.acknowledged += length;
                }
            }
        }
        let Some((largest, sent_at)) = newest else { return };
        self.rtt.sample(now - sent_at);
        self.probes = 0;
        self.delivered_at = now;
        rate.delivered = self.delivered - rate.prior_delivered;
        rate.total = self.delivered;
        self.largest = self.largest.max(largest);
        let lost = self.find_lost(now) + std::mem::take(&mut self.unreported);
        self.forget_settled();
        let in_recovery = largest < self.recovery;
        let una = self.sent.front().map_or(self.offset, |sent| sent.offset);
        let bytes = self.delivered - before;
        let app_limited = self.again.is_empty() && self.next_fragment().is_none();
        rate.app_limited = app_limited;
        let ack = Ack {
            now,
            acked: bytes,
            delivered: bytes,
            lost,
            una,
            nxt: self.offset,
            prior_in_flight: prior,
            in_flight: self.flight,
            rtt: self.rtt.latest,
            srtt: self.rtt.smoothed,
            min_rtt: self.rtt.least,
            may_grow: !in_recovery && prior + 2 * self.window.mss >= self.window.cwnd,
            cwnd_limited: prior + 2 * self.window.mss >= self.window.cwnd,
            in_recovery,
            app_limited,
            rate,
            ..Ack::default()
        };
        self.control.on_ack(&mut self.window, &ack);
        self.timer = now + self.rtt.timeout(self.settings.timeout);
    }

    /// Declares datagrams lost whose number is at least three below that of an acknowledged
    /// datagram, and datagrams that are overdue. Reduces the window at most once per round trip.
    /// Returns the lost bytes.
    fn find_lost(&mut self, now: Nanos) -> Bytes {
        let (largest, reordering) = (self.largest, self.rtt.reordering());
        let (mut lost, mut newest) = (0, None);
        self.overdue = None;
        let before = self.flight;
        for (i, sent) in self.sent.iter_mut().enumerate() {
            let number = self.base + i as u64;
            if number >= largest {
                break;
            }
            if sent.fate == Fate::Settled {
                continue;
            }
            let due = sent.at + reordering;
            if number + 3 <= largest || due <= now {
                sent.fate = Fate::Settled;
                lost += u64::from(sent.bytes);
                newest = Some(number);
                self.counters.lost += 1;
                self.again.extend(sent.fragment);
            } else {
                self.overdue = Some(self.overdue.map_or(due, |other| other.min(due)));
            }
        }
        self.flight -= lost;
        if newest.is_some_and(|newest| newest >= self.recovery) {
            let ssthresh = self.control.reduce(&self.window, before, Cause::Loss, now);
            self.window.ssthresh = ssthresh;
            if !self.control.owns_window() {
                self.window.set_cwnd(ssthresh);
            }
            self.recovery = self.base + self.sent.len() as u64;
        }
        lost
    }

    fn forget_settled(&mut self) {
        while self.sent.front().is_some_and(|sent| sent.fate == Fate::Settled) {
            self.sent.pop_front();
            self.base += 1;
        }
    }

    /// Returns the time at which [`Sender::poll`] must be called if no datagram arrives before;
    /// `None` if the connection has ended.
    pub fn wake(&self) -> Option<Nanos> {
        if matches!(self.state, State::Ended(_)) {
            return None;
        }
        let paced = (self.state == State::Open && self.resting && self.may_send()).then(|| {
            let pace = self.pace();
            let wait = (self.burst(pace) - self.tokens) / pace * SECOND as f64;
            self.refilled + wait.max(0.0) as Nanos + 1
        });
        [paced, self.overdue, Some(self.timer)].into_iter().flatten().min()
    }

    /// Returns the pacing rate in bytes/s.
    fn pace(&self) -> f64 {
        let least = self.window.mss as f64;
        let pace = if let Some(rate) = self.control.pacing_rate() {
            rate as f64
        } else {
            let gain = if self.window.in_slow_start() { 2.0 } else { 1.25 };
            let rtt = self.rtt.smoothed.max(100_000) as f64 / SECOND as f64;
            gain * self.window.cwnd as f64 / rtt
        };
        pace.min(self.settings.rate.map_or(f64::INFINITY, |rate| rate as f64)).max(least)
    }

    /// Returns the length of a burst in bytes: the data of one millisecond at the rate `pace`, but
    /// at least two segments and at most [`BURST`], as in Linux's TCP.
    fn burst(&self, pace: f64) -> f64 {
        (pace / 1000.0).min(BURST).max(2.0 * self.window.mss as f64)
    }

    fn may_send(&self) -> bool {
        self.flight + self.window.mss <= self.window.cwnd.max(self.window.mss)
            && (!self.again.is_empty() || self.next_fragment().is_some())
    }

    /// Returns the next fragment that has never been sent; `None` if no such fragment is
    /// left, or if the mode or a limit forbids it.
    fn next_fragment(&self) -> Option<(u64, u32)> {
        let m = self.messages.get(self.cursor)?;
        let first = self.messages.first();
        match self.settings.mode {
            Mode::StopAndWait { processed } => {
                let acknowledged = first == self.cursor;
                let handled = !processed || self.processed >= self.cursor;
                (acknowledged && handled).then_some((self.cursor, m.next))
            }
            Mode::Windowed => {
                let fits = m.next > 0 || self.force || self.fresh + charge(&m.data) <= self.limit;
                (fits && self.cursor < first + UNDER_WAY).then_some((self.cursor, m.next))
            }
        }
    }

    /// Appends the next datagram to `out` if one may be sent now. Returns whether a datagram was
    /// appended.
    pub fn poll(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        let Some(part) = self.poll_head(now, out) else { return false };
        out.extend_from_slice(self.payload(part));
        true
    }

    /// Returns the payload of a datagram whose head [`Sender::poll_head`] wrote. It is valid until
    /// the next call of [`Sender::handle`].
    pub fn payload(&self, part: Part) -> &[u8] {
        let message = self.messages.get(part.message).filter(|_| part.length > 0);
        message.map_or(&[], |m| &m.data[part.at..part.at + part.length])
    }

    /// Appends the head of the next datagram to `out` if one may be sent now. Returns the payload
    /// that must follow it; `None` if no datagram may be sent.
    pub fn poll_head(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<Part> {
        if self.heard.is_none() {
            self.heard = Some(now);
        }
        if self.heard.is_some_and(|heard| now.saturating_sub(heard) > self.settings.patience) {
            self.state = State::Ended(End::Silence);
        }
        match self.state {
            State::Ended(_) => {
                // The end is reported to the server once, so that the server need not keep the
                // connection.
                if !std::mem::replace(&mut self.closed, true) {
                    Packet::Close { code: Code::Done }.write(self.id, out);
                    return Some(Part::NONE);
                }
                return None;
            }
            State::Hello | State::Opening(_) => return self.poll_opening(now, out),
            State::Open => {}
        }
        if self.overdue.is_some_and(|at| now >= at) {
            self.unreported += self.find_lost(now);
            self.forget_settled();
        }
        if now >= self.timer {
            self.on_timeout(now);
        }
        if std::mem::take(&mut self.probe) {
            return Some(self.poll_probe(now, out));
        }
        if now > self.refilled {
            let pace = self.pace();
            let most = (10.0 * self.window.mss as f64).max(pace / 1000.0);
            let since = (now - self.refilled) as f64 / SECOND as f64;
            (self.tokens, self.refilled) = ((self.tokens + pace * since).min(most), now);
            self.resting &= self.tokens < self.burst(pace);
        }
        if !self.resting && self.may_send() {
            return self.poll_data(now, out);
        }
        if let Some(messages) = self.total
            && self.messages.is_empty()
            && !self.asked_finish
        {
            self.asked_finish = true;
            self.timer = now + self.rtt.timeout(self.settings.timeout);
            self.counters.sent += 1;
            Packet::Finish { messages }.write(self.id, out);
            return Some(Part::NONE);
        }
        None
    }

    fn poll_opening(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<Part> {
        if now < self.timer {
            return None;
        }
        self.timer = now + ((200 * MILLISECOND) << self.attempts.min(5));
        self.attempts += 1;
        self.counters.sent += 1;
        match self.state {
            State::Opening(cookie) => Packet::Open { cookie, chunk: self.settings.chunk },
            _ => Packet::Hello,
        }
        .write(self.id, out);
        Some(Part::NONE)
    }

    /// Appends the head of the next data datagram to `out`.
    fn poll_data(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<Part> {
        let (message, index) = loop {
            match self.again.pop_front() {
                Some((message, index)) => {
                    if self.messages.get(message).is_some_and(|m| m.is_missing(index)) {
                        self.counters.repeated += 1;
                        break (message, index);
                    }
                }
                None => break self.next_fragment()?,
            }
        };
        let m = self.messages.get_mut(message)?;
        let length = m.data.len() as u32;
        if length > self.most {
            self.state = State::Ended(End::TooLong(self.most));
            return None;
        }
        let (at, n) = fragment(length, self.settings.chunk, index)?;
        if message == self.cursor && index == m.next {
            if m.next == 0 {
                self.fresh += charge(&m.data);
                self.force = false;
            }
            m.next += 1;
            if m.next == fragments(length, self.settings.chunk) {
                self.cursor += 1;
            }
        }
        self.track(now, Some((message, index)), n as u32);
        let number = self.base + self.sent.len() as u64 - 1;
        self.unasked += n as Bytes;
        let ask = self.unasked >= self.window.cwnd / 8 || !self.may_send();
        if ask {
            self.unasked = 0;
        }
        Packet::Data(Data { number, message, length, index, ask, payload: &[] })
            .write(self.id, out);
        self.tokens -= (n + DATA_HEADER) as f64;
        self.resting = self.tokens < 0.0;
        Some(Part { message, at, length: n })
    }

    /// Appends the head of a probe to `out`, regardless of the window. The probe is the oldest
    /// fragment in flight, or a ping if there is no such fragment.
    fn poll_probe(&mut self, now: Nanos, out: &mut Vec<u8>) -> Part {
        let oldest = self.sent.iter().filter(|sent| sent.fate == Fate::Flying);
        let oldest = oldest.filter_map(|sent| sent.fragment).find(|&(message, index)| {
            self.messages.get(message).is_some_and(|m| m.is_missing(index))
        });
        let place = oldest.and_then(|(message, index)| {
            let length = self.messages.get(message)?.data.len() as u32;
            Some((message, index, length, fragment(length, self.settings.chunk, index)?))
        });
        let number = self.base + self.sent.len() as u64;
        let Some((message, index, length, (at, n))) = place else {
            self.track(now, None, 0);
            Packet::Ping { number }.write(self.id, out);
            return Part::NONE;
        };
        self.counters.repeated += 1;
        self.track(now, Some((message, index)), n as u32);
        Packet::Data(Data { number, message, length, index, ask: true, payload: &[] })
            .write(self.id, out);
        Part { message, at, length: n }
    }

    /// Records a datagram that is sent at `now`.
    fn track(&mut self, now: Nanos, fragment: Option<(u64, u32)>, bytes: u32) {
        if self.flight == 0 && bytes > 0 {
            self.delivered_at = now;
            self.timer = now + self.rtt.timeout(self.settings.timeout);
        }
        self.sent.push_back(Sent {
            fate: Fate::Flying,
            fragment,
            bytes,
            at: now,
            offset: self.offset,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
        });
        self.counters.sent += 1;
        self.flight += u64::from(bytes);
        self.offset += u64::from(bytes);
    }

    /// Handles the expiry of the retransmission timer by requesting a probe. After three
    /// consecutive expiries (persistent congestion in RFC 9002), all datagrams in flight count as
    /// lost.
    fn on_timeout(&mut self, now: Nanos) {
        let wait = self.rtt.timeout(self.settings.timeout);
        self.probes = (self.probes + 1).min(8);
        self.timer = now + (wait << (self.probes - 1)).min(SECOND);
        let idle = self.messages.is_empty();
        if idle && self.total.is_some() {
            self.asked_finish = false;
            return;
        }
        if idle || self.flight == 0 {
            // The receiver's buffer is full or there are no data to send. A probe keeps the
            // connection alive.
            self.probe = true;
            // If the handler has processed all earlier messages, none of them will free space in
            // the buffer.
            self.force = !idle && self.processed >= self.messages.first();
            return;
        }
        self.counters.timeouts += 1;
        self.probe = true;
        if self.probes < 3 {
            return;
        }
        let flight = self.flight;
        for sent in &mut self.sent {
            if sent.fate == Fate::Flying {
                sent.fate = Fate::Settled;
                self.counters.lost += 1;
                self.again.extend(sent.fragment);
            }
        }
        self.flight = 0;
        self.forget_settled();
        if self.probes == 3 {
            let ssthresh = self.control.reduce(&self.window, flight, Cause::Timeout, now);
            self.window.ssthresh = ssthresh;
        }
        self.window.set_cwnd(self.window.mss);
        self.recovery = self.base + self.sent.len() as u64;
    }
}
