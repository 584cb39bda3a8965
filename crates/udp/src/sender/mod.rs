//! The client's side of the protocol: scheduling, loss detection and retransmission.
//!
//! This module has no clock, I/O or randomness. Each datagram has a new number, even if it carries
//! a retransmitted fragment. At a timeout the oldest fragment in flight is sent again; the third
//! consecutive timeout sets the window to one datagram. The congestion controls are those of
//! `sojourn_congestion`, which the simulator uses too. A datagram requests an acknowledgement if an
//! eighth of the window has been sent since the last request, or if no datagram can follow. The
//! server may delay other acknowledgements. With [`Mode::StopAndWait`], one message is in flight at
//! a time, as in the RRDA paper.
//!
//! The sender is a composition of parts: the datagrams in flight, the pacer, the congestion control
//! with its window, the receiver's limits, and the timer.

mod flight;
mod pacer;

use self::flight::{Flight, Fragment};
use self::pacer::{Pace, Pacer};

use crate::fragments::{fragment, fragments};
use crate::outgoing::Outgoing;
use crate::packet::{self, CHARGE, Code, Cookie, DATA_HEADER, DIGEST, Data, Id, Packet};
use crate::rtt::Rtt;
use sojourn_congestion::{self, Ack, Cause, Congestion, Host, RateSample, Start, Window, hystart};
use sojourn_units::{Bytes, MILLISECOND, Nanos, SECOND};
use std::collections::VecDeque;

/// Returns the bytes that count for a message: its length plus [`CHARGE`].
fn charge(data: &[u8]) -> u64 {
    data.len() as u64 + CHARGE
}

/// Slow start is HyStart++ (RFC 9406), counting bytes.
const HOST: Host = Host {
    slow_start: hystart::Params {
        kind: hystart::Kind::PlusPlus,
        limit: 8,
        byte_counting: true,
        count: hystart::Count::Bytes,
    },
    hz: 0,
};
/// Maximum number of messages in flight. It is below the limit of the server.
const UNDER_WAY: u64 = 4000;
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

/// The congestion control and its window.
struct Controlled {
    window: Window,
    control: Congestion,
    /// Number of the first datagram after the last reduction of the window.
    recovery: u64,
}

impl Controlled {
    /// Reduces the slow start threshold; `flight` is in bytes.
    fn reduce(&mut self, now: Nanos, flight: Bytes, cause: Cause) {
        self.window.ssthresh = self.control.reduce(&self.window, flight, cause, now);
    }
}

/// Limits that the receiver has set.
struct Credit {
    /// Total bytes of messages that may be begun, and those of the messages begun, including
    /// [`CHARGE`] for each message.
    limit: u64,
    begun: u64,
    /// Maximum length of a message in bytes.
    most: u32,
    /// Whether the next message may be begun although it exceeds the limit. The attempt shows the
    /// demand to the receiver's policy.
    is_forced: bool,
}

/// The retransmission timer.
#[derive(Default)]
struct Timer {
    /// Time at which the timer expires.
    at: Nanos,
    /// Number of consecutive expiries: of the open connection, and while it opens.
    expiries: u32,
    attempts: u32,
    /// Whether a probe must be sent: the oldest fragment in flight, or a ping if there is no such
    /// fragment.
    is_probe_due: bool,
}

/// The connection of a client, without socket and clock.
pub struct Sender {
    id: Id,
    settings: Settings,
    state: State,
    rtt: Rtt,
    controlled: Controlled,
    flight: Flight,
    messages: Outgoing,
    /// Number of the message whose fragments are sent next, and lost fragments.
    cursor: u64,
    again: VecDeque<Fragment>,
    /// Number of messages that the handler has processed.
    processed: u64,
    credit: Credit,
    /// Whether the server knows that the connection has ended.
    closed: bool,
    total: Option<u64>,
    asked_finish: bool,
    /// Bytes declared lost that have not been reported to congestion control.
    unreported: Bytes,
    timer: Timer,
    heard: Option<Nanos>,
    pacer: Pacer,
    /// Bytes sent since the last request for an acknowledgement.
    unasked: Bytes,
    counters: Counters,
}

impl Sender {
    /// Returns a connection that is not open yet. `id` must be random.
    pub fn new(id: Id, settings: Settings) -> Self {
        let mut window = Window::new(u64::from(settings.chunk), 10);
        let mut control = Congestion::new(&settings.congestion, HOST, &window);
        control.on_start(&mut window, &Start { now: 0, srtt: 0, draw: id as u32 });
        Self {
            id,
            messages: Outgoing::new(settings.queue),
            settings,
            state: State::Hello,
            rtt: Rtt::default(),
            controlled: Controlled { window, control, recovery: 0 },
            flight: Flight::default(),
            cursor: 0,
            again: VecDeque::new(),
            processed: 0,
            credit: Credit { limit: 0, begun: 0, most: u32::MAX, is_forced: false },
            closed: false,
            total: None,
            asked_finish: false,
            unreported: 0,
            timer: Timer::default(),
            heard: None,
            pacer: Pacer::default(),
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
        self.controlled.window.cwnd
    }

    /// Returns whether the sender currently accepts another message of `length` bytes.
    pub fn has_room(&self, length: usize) -> bool {
        let window = self.controlled.window.cwnd;
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
                (self.timer.attempts, self.timer.at) = (0, now);
            }
            (State::Opening(_), Packet::Accept { most, limit }) => {
                self.heard = Some(now);
                self.state = State::Open;
                (self.credit.most, self.credit.limit) = (most, limit);
                (self.timer.attempts, self.timer.at) = (0, now + self.settings.timeout);
                self.flight.delivered_at = now;
                self.pacer.start(now);
            }
            (State::Open, Packet::Ack { limit, processed, ranges }) => {
                self.heard = Some(now);
                let limit = limit.min(self.credit.begun.saturating_add(1 << 40));
                self.credit.limit = self.credit.limit.max(limit);
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
        let (prior, before) = (self.flight.bytes, self.flight.delivered);
        let newest = self.flight.acknowledge(now, ranges, |(message, index)| {
            let length = self.messages.settle(message, index);
            self.counters.acknowledged += length.unwrap_or(0);
        });
        let Some(newest) = newest else { return };
        self.rtt.sample(now - newest.sent_at);
        self.timer.expiries = 0;
        let lost = self.find_lost(now) + std::mem::take(&mut self.unreported);
        let in_recovery = newest.number < self.controlled.recovery;
        let bytes = self.flight.delivered - before;
        let app_limited = self.again.is_empty() && self.next_fragment().is_none();
        let Controlled { window, control, .. } = &mut self.controlled;
        let cwnd_limited = prior + 2 * window.mss >= window.cwnd;
        let ack = Ack {
            now,
            acked: bytes,
            delivered: bytes,
            lost,
            una: self.flight.una(),
            nxt: self.flight.offset,
            prior_in_flight: prior,
            in_flight: self.flight.bytes,
            rtt: self.rtt.latest,
            srtt: self.rtt.smoothed,
            min_rtt: self.rtt.least,
            may_grow: !in_recovery && cwnd_limited,
            cwnd_limited,
            in_recovery,
            app_limited,
            rate: RateSample { app_limited, ..newest.rate },
            ..Ack::default()
        };
        control.on_ack(window, &ack);
        self.set_timer(now);
    }

    fn set_timer(&mut self, now: Nanos) {
        self.timer.at = now + self.rtt.timeout(self.settings.timeout);
    }

    /// Finds lost datagrams. Reduces the window at most once per round trip. Returns the lost
    /// bytes.
    fn find_lost(&mut self, now: Nanos) -> Bytes {
        let before = self.flight.bytes;
        let again = &mut self.again;
        let losses = self.flight.find_lost(now, self.rtt.reordering(), |f| again.push_back(f));
        self.counters.lost += losses.count;
        let controlled = &mut self.controlled;
        if losses.newest.is_some_and(|newest| newest >= controlled.recovery) {
            controlled.reduce(now, before, Cause::Loss);
            if !controlled.control.owns_window() {
                controlled.window.set_cwnd(controlled.window.ssthresh);
            }
            controlled.recovery = self.flight.next();
        }
        losses.bytes
    }

    /// Returns the time at which [`Sender::poll`] must be called if no datagram arrives before;
    /// `None` if the connection has ended.
    pub fn wake(&self) -> Option<Nanos> {
        if matches!(self.state, State::Ended(_)) {
            return None;
        }
        let is_paced = self.state == State::Open && self.pacer.is_resting && self.may_send();
        let paced = is_paced.then(|| self.pacer.resumes_at(self.pace()));
        [paced, self.flight.overdue, Some(self.timer.at)].into_iter().flatten().min()
    }

    fn pace(&self) -> Pace {
        let Controlled { window, control, .. } = &self.controlled;
        let mss = window.mss as f64;
        let rate = if let Some(rate) = control.pacing_rate() {
            rate as f64
        } else {
            let gain = if window.in_slow_start() { 2.0 } else { 1.25 };
            let rtt = self.rtt.smoothed.max(100_000) as f64 / SECOND as f64;
            gain * window.cwnd as f64 / rtt
        };
        let most = self.settings.rate.map_or(f64::INFINITY, |rate| rate as f64);
        Pace { rate: rate.min(most).max(mss), mss }
    }

    fn may_send(&self) -> bool {
        let window = &self.controlled.window;
        self.flight.bytes + window.mss <= window.cwnd.max(window.mss)
            && (!self.again.is_empty() || self.next_fragment().is_some())
    }

    /// Returns the next fragment that has never been sent; `None` if no such fragment is
    /// left, or if the mode or a limit forbids it.
    fn next_fragment(&self) -> Option<Fragment> {
        let m = self.messages.get(self.cursor)?;
        let first = self.messages.first();
        match self.settings.mode {
            Mode::StopAndWait { processed } => {
                let acknowledged = first == self.cursor;
                let handled = !processed || self.processed >= self.cursor;
                (acknowledged && handled).then_some((self.cursor, m.next))
            }
            Mode::Windowed => {
                let Credit { limit, begun, is_forced, .. } = self.credit;
                let fits = m.next > 0 || is_forced || begun + charge(&m.data) <= limit;
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
        if self.flight.overdue.is_some_and(|at| now >= at) {
            self.unreported += self.find_lost(now);
        }
        if now >= self.timer.at {
            self.on_timeout(now);
        }
        if std::mem::take(&mut self.timer.is_probe_due) {
            return Some(self.poll_probe(now, out));
        }
        self.pacer.refill(now, self.pace());
        if !self.pacer.is_resting && self.may_send() {
            return self.poll_data(now, out);
        }
        if let Some(messages) = self.total
            && self.messages.is_empty()
            && !self.asked_finish
        {
            self.asked_finish = true;
            self.set_timer(now);
            self.counters.sent += 1;
            Packet::Finish { messages }.write(self.id, out);
            return Some(Part::NONE);
        }
        None
    }

    fn poll_opening(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<Part> {
        if now < self.timer.at {
            return None;
        }
        self.timer.at = now + ((200 * MILLISECOND) << self.timer.attempts.min(5));
        self.timer.attempts += 1;
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
        if length > self.credit.most {
            self.state = State::Ended(End::TooLong(self.credit.most));
            return None;
        }
        let (at, n) = fragment(length, self.settings.chunk, index)?;
        if message == self.cursor && index == m.next {
            if m.next == 0 {
                self.credit.begun += charge(&m.data);
                self.credit.is_forced = false;
            }
            m.next += 1;
            if m.next == fragments(length, self.settings.chunk) {
                self.cursor += 1;
            }
        }
        let number = self.track(now, Some((message, index)), n as u32);
        self.unasked += n as Bytes;
        let ask = self.unasked >= self.controlled.window.cwnd / 8 || !self.may_send();
        if ask {
            self.unasked = 0;
        }
        Packet::Data(Data { number, message, length, index, ask, payload: &[] })
            .write(self.id, out);
        self.pacer.on_sent(n + DATA_HEADER);
        Some(Part { message, at, length: n })
    }

    /// Appends the head of a probe to `out`, regardless of the window. The probe is the oldest
    /// fragment in flight, or a ping if there is no such fragment.
    fn poll_probe(&mut self, now: Nanos, out: &mut Vec<u8>) -> Part {
        let oldest = self.flight.fragments().find(|&(message, index)| {
            self.messages.get(message).is_some_and(|m| m.is_missing(index))
        });
        let place = oldest.and_then(|(message, index)| {
            let length = self.messages.get(message)?.data.len() as u32;
            Some((message, index, length, fragment(length, self.settings.chunk, index)?))
        });
        let Some((message, index, length, (at, n))) = place else {
            let number = self.track(now, None, 0);
            Packet::Ping { number }.write(self.id, out);
            return Part::NONE;
        };
        self.counters.repeated += 1;
        let number = self.track(now, Some((message, index)), n as u32);
        Packet::Data(Data { number, message, length, index, ask: true, payload: &[] })
            .write(self.id, out);
        Part { message, at, length: n }
    }

    /// Records a datagram that is sent at `now`, and returns its number.
    fn track(&mut self, now: Nanos, fragment: Option<Fragment>, bytes: u32) -> u64 {
        if self.flight.bytes == 0 && bytes > 0 {
            self.set_timer(now);
        }
        self.counters.sent += 1;
        self.flight.push(now, fragment, bytes)
    }

    /// Handles the expiry of the retransmission timer by requesting a probe. After three
    /// consecutive expiries (persistent congestion in RFC 9002), all datagrams in flight count as
    /// lost.
    fn on_timeout(&mut self, now: Nanos) {
        let wait = self.rtt.timeout(self.settings.timeout);
        self.timer.expiries = (self.timer.expiries + 1).min(8);
        self.timer.at = now + (wait << (self.timer.expiries - 1)).min(SECOND);
        let idle = self.messages.is_empty();
        if idle && self.total.is_some() {
            self.asked_finish = false;
            return;
        }
        if idle || self.flight.bytes == 0 {
            // The receiver's buffer is full or there are no data to send. A probe keeps the
            // connection alive.
            self.timer.is_probe_due = true;
            // If the handler has processed all earlier messages, none of them will free space in
            // the buffer.
            self.credit.is_forced = !idle && self.processed >= self.messages.first();
            return;
        }
        self.counters.timeouts += 1;
        self.timer.is_probe_due = true;
        if self.timer.expiries < 3 {
            return;
        }
        let flight = self.flight.bytes;
        let again = &mut self.again;
        self.counters.lost += self.flight.lose_all(|f| again.push_back(f)).count;
        if self.timer.expiries == 3 {
            self.controlled.reduce(now, flight, Cause::Timeout);
        }
        self.controlled.window.set_cwnd(self.controlled.window.mss);
        self.controlled.recovery = self.flight.next();
    }
}
