//! The link itself: queue, transmitter, delay line.

pub mod direct;
pub mod station;

use crate::capacity::{Account, Capacity};
use crate::impair::{Impair, Passage};
use crate::ledger::{Backlog, Ledger};
use crate::line::DelayLine;
use crate::observer::{Corrupt, Event, Observer};
use crate::params::Params;
use crate::slots::Slots;
use crate::trace::{Opportunities, Trace};
use crate::transmitter::Transmitter;
use sojourn_measure::Count;
use sojourn_queue::OtherDiscipline;
use sojourn_queue::{
    Call, Dequeue, Discipline, Draws, DropReason, Headers, MarkReason, Packet, Queue, Return,
    Sender, Sink, TcpView,
};
use sojourn_random::{Key, Stream};
use sojourn_units::{NEVER, Nanos};

/// A random stream as a discipline's source of draws.
#[derive(Clone, Debug)]
pub struct StreamDraws(pub Stream);

impl Draws for StreamDraws {
    fn draw_u16(&mut self) -> u16 {
        self.0.next_u16()
    }
    fn draw_u32(&mut self) -> u32 {
        self.0.next_u32()
    }
    fn draw_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// One direction of a link; see the [crate] for its rules.
#[derive(Clone, Debug)]
pub struct Link<P, Q = Queue<P>> {
    /// When the transmitter next asks the queue; `NEVER` if it is idle.
    due: Nanos,
    /// Whether a packet is being transmitted until `due`; otherwise the transmitter is idle, or
    /// waits for a shaper until `due`.
    transmitting: bool,
    /// Time of all transmissions so far; one in progress counts to its end.
    busy: Nanos,
    /// When the queue's next periodic task runs, or `NEVER`.
    timer: Nanos,
    backlog: Backlog,
    line: DelayLine<P>,
    queue: Q,
    transmitter: Transmitter,
    /// The opportunities of a link that follows a trace instead of a rate.
    trace: Option<Box<Opportunities>>,
    delay: Nanos,
    impair: Option<Box<Impair>>,
    /// The account of a link whose rate has changed.
    capacity: Option<Box<Account>>,
    draws: StreamDraws,
    ledger: Ledger,
    /// State of a link in closed form.
    direct: Option<direct::Direct>,
    /// The time of the last call.
    clock: Nanos,
    key: Key,
}

/// Returns the trace that the transmitter follows; `None` if the transmitter has a rate.
fn followed(params: &Params) -> Option<&Trace> {
    params.trace.as_ref().filter(|_| params.rate.is_none())
}

/// Returns the bytes still to be sent of a transmission `(length, duration)` that ends in `left`,
/// rounded up.
fn remainder((bytes, takes): (u32, Nanos), left: Nanos) -> u64 {
    if left == 0 {
        return 0;
    }
    (u128::from(bytes) * u128::from(left)).div_ceil(u128::from(takes)) as u64
}

/// Records a discipline's drops and marks with their time.
struct Tap<'a, O: ?Sized> {
    at: Nanos,
    backlog: &'a mut Backlog,
    ledger: &'a mut Ledger,
    observer: &'a mut O,
}

impl<P: Packet, O: Observer<P> + ?Sized> Sink<P> for Tap<'_, O> {
    #[inline]
    fn dropped(&mut self, packet: P, reason: DropReason, queued: bool) {
        self.backlog.remove(packet.len());
        self.ledger.record(self.at, &packet, Event::Dropped { reason, queued }, self.observer);
    }

    fn marked(&mut self, packet: &P, reason: MarkReason) {
        self.ledger.record(self.at, packet, Event::Marked(reason), self.observer);
    }

    fn split(&mut self, packet: P) -> Vec<P> {
        let frames = self.observer.split(packet);
        let more = frames.len() - 1;
        self.backlog.packets += more as u32;
        self.ledger.offered.packets += more as u64;
        frames
    }

    fn tcp(&self, packet: &P) -> Option<TcpView> {
        self.observer.tcp(packet)
    }

    fn headers(&self, packet: &P) -> Headers {
        self.observer.headers(packet)
    }

    fn sender(&self, packet: &P) -> Sender {
        self.observer.sender(packet)
    }
}

impl<P: Packet + Clone + Corrupt> Link<P> {
    /// Returns a link, idle and empty at `now`; `key` is made from the run's seed and the link's
    /// name.
    pub fn new(params: &Params, key: Key, now: Nanos) -> Self {
        Self::with_queue(params.queue.build(now), params, key, now)
    }

    /// Gives the link new parameters at `now`, after all events due until then. Packets in
    /// transmission and on the wire are treated as in [`Link::set_wire`].
    ///
    /// # Errors
    /// If `params` has another discipline. Then only the events due until `now` have
    /// happened.
    pub fn change(
        &mut self,
        now: Nanos,
        params: &Params,
        observer: &mut (impl Observer<P> + ?Sized),
    ) -> Result<(), OtherDiscipline> {
        self.poll(now, observer);
        self.apply(now, params, observer)
    }

    fn apply(
        &mut self,
        now: Nanos,
        params: &Params,
        observer: &mut (impl Observer<P> + ?Sized),
    ) -> Result<(), OtherDiscipline> {
        let mut tap =
            Tap { at: now, backlog: &mut self.backlog, ledger: &mut self.ledger, observer };
        self.queue.change(&params.queue, now, &mut tap)?;
        self.timer = self.queue.next_timer().unwrap_or(NEVER);
        self.set(now, params);
        Ok(())
    }
}

impl<P: Packet + Clone + Corrupt, Q: Discipline<P>> Link<P, Q> {
    /// Returns a link with the given `queue`; `params.queue` is ignored.
    pub fn with_queue(queue: Q, params: &Params, key: Key, now: Nanos) -> Self {
        let mut link = Self {
            due: NEVER,
            transmitting: false,
            busy: 0,
            timer: queue.next_timer().unwrap_or(NEVER),
            backlog: Backlog::default(),
            line: DelayLine::new(false),
            queue,
            transmitter: Transmitter::new(params),
            trace: followed(params).map(|trace| Box::new(Opportunities::new(trace.clone(), now))),
            delay: 0,
            impair: None,
            capacity: None,
            draws: StreamDraws(key.stream("queue")),
            ledger: Ledger::default(),
            direct: None,
            clock: now,
            key,
        };
        link.set(now, params);
        link
    }

    fn set(&mut self, now: Nanos, params: &Params) {
        let follows = self.trace.as_ref().map(|trace| trace.trace()) != followed(params);
        let before = self.transmitter.rate();
        let more = self.transmitter.turn(params, self.transmitting);
        if before != params.rate || follows {
            let end = if self.transmitting { self.due.max(now) } else { now };
            let account = self.capacity.get_or_insert_with(|| Box::new(Account::new(before)));
            account.turn(end, self.busy, params.rate, more);
            if follows {
                if let Some(trace) = self.trace.take() {
                    account.add(trace.capacity(end + 1));
                }
                let trace = followed(params).cloned();
                self.trace = trace.map(|trace| Box::new(Opportunities::new(trace, now)));
                if !self.transmitting && self.due != NEVER {
                    // The transmitter may be waiting for an opportunity of the old trace.
                    self.due = now;
                }
            }
        }
        self.delay = params.delay;
        match &mut self.impair {
            Some(impair) => impair.set(&params.impairments),
            None if params.impairments.is_none() => {}
            none => *none = Some(Box::new(Impair::new(&params.impairments, self.key))),
        }
        self.line.set_reorders(params.impairments.reorders());
        let slot = params.impairments.slot;
        if self.line.slots().map(|slots| slots.slot) != slot {
            let slots = slot.map(|slot| Slots::new(slot, self.key.stream("slots"), now));
            self.line.set_slots(slots, now);
        }
    }

    /// Changes rate, framing, delay and impairments from `now` on, after all events due before; the
    /// queue is not changed. A packet in transmission ends at the old rate, and packets on the wire
    /// keep their arrival times, except with slots.
    ///
    /// # Panics
    /// If `now` is before an earlier call's.
    pub fn set_wire(
        &mut self,
        now: Nanos,
        params: &Params,
        observer: &mut (impl Observer<P> + ?Sized),
    ) {
        if let Some(before) = self.before(now) {
            self.poll(before, observer);
        }
        self.set(now, params);
    }

    /// Returns `now - 1`, to which the link can be advanced; `None` if its clock is already at `now`.
    fn before(&self, now: Nanos) -> Option<Nanos> {
        assert!(now >= self.clock, "time went back from {} to {now}", self.clock);
        now.checked_sub(1).filter(|before| *before >= self.clock)
    }

    /// Brings `packet` to the queue at `now`, after all events due until then. Returns the queue's
    /// return code to its host.
    ///
    /// # Panics
    /// If `now` is before an earlier call's.
    #[inline]
    pub fn send(
        &mut self,
        now: Nanos,
        packet: P,
        observer: &mut (impl Observer<P> + ?Sized),
    ) -> Return {
        self.poll(now, observer);
        if self.is_open() && !packet.is_super() && self.queue.pass(now, &packet) {
            self.ledger.record(now, &packet, Event::Offered, observer);
            self.ledger.record(now, &packet, Event::Departed, observer);
            self.busy += self.transmit(now, packet, observer);
            return Return::Success;
        }
        self.arrive(now, &packet, observer);
        let verdict = self.tap(now, observer, |queue, call| queue.enqueue(packet, call));
        if !self.transmitting {
            self.transmit_next(now, observer);
        }
        verdict
    }

    /// Returns whether the queue is empty, and the transmitter is free and has a rate.
    fn is_open(&self) -> bool {
        !self.transmitting && self.backlog.packets == 0 && self.transmitter.rate().is_some()
    }

    /// Counts a packet that comes to the queue.
    #[inline]
    fn arrive(&mut self, now: Nanos, packet: &P, observer: &mut (impl Observer<P> + ?Sized)) {
        self.ledger.record(now, packet, Event::Offered, observer);
        self.backlog.add(packet.len());
    }

    /// Runs all events due up to and at `now`, each at its theoretical time.
    ///
    /// # Panics
    /// If `now` is before an earlier call's.
    #[inline]
    pub fn poll(&mut self, now: Nanos, observer: &mut (impl Observer<P> + ?Sized)) {
        debug_assert!(self.direct.is_none(), "`poll` was called for a link in closed form");
        self.set_clock(now);
        if self.due.min(self.line.head()) <= now {
            self.catch_up(now, observer);
        }
        self.run_timers(now);
    }

    #[inline]
    fn catch_up(&mut self, now: Nanos, observer: &mut (impl Observer<P> + ?Sized)) {
        while self.due.min(self.line.head()) <= now {
            if self.line.head() <= self.due {
                self.deliver_next(observer);
                continue;
            }
            let at = self.due;
            self.run_timers(at);
            if self.backlog.packets == 0 && self.transmitter.rate().is_some() && self.queue.rests()
            {
                self.transmitting = false;
                self.due = NEVER;
            } else {
                self.transmit_next(at, observer);
            }
        }
    }

    #[inline]
    fn set_clock(&mut self, now: Nanos) {
        assert!(now >= self.clock, "time went back from {} to {now}", self.clock);
        self.clock = now;
    }

    #[inline]
    fn deliver_next(&mut self, observer: &mut (impl Observer<P> + ?Sized)) {
        let at = self.line.head();
        if let Some(packet) = self.line.pop(Packet::len) {
            self.ledger.record(at, &packet, Event::Delivered, observer);
            observer.landed(at, packet);
        }
    }

    /// Returns when [`Link::poll`] must be called next, if at all; every other call may change
    /// this time. A request to an empty queue and a periodic task need no call: a later one handles
    /// them.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Nanos> {
        let departure = if self.backlog.packets > 0 { self.due } else { NEVER };
        let next = departure.min(self.line.head());
        (next != NEVER).then_some(next)
    }

    /// Returns when the next packet on the wire arrives at the far end, or [`NEVER`].
    pub fn next_arrival(&self) -> Nanos {
        self.line.head()
    }

    /// Returns when the transmitter next asks for a queued packet, or [`NEVER`].
    pub fn next_departure(&self) -> Nanos {
        if self.backlog.packets > 0 { self.due } else { NEVER }
    }

    /// Returns the packet before the last `later` packets on a wire without impairments, with its
    /// time of arrival at the far end.
    pub fn on_wire(&self, later: usize) -> Option<(Nanos, &P)> {
        self.line.last_but(later)
    }

    #[inline]
    fn run_timers(&mut self, until: Nanos) {
        if self.timer <= until {
            self.run_due_timers(until);
        }
    }

    #[inline(never)]
    fn run_due_timers(&mut self, until: Nanos) {
        while self.timer <= until {
            let at = self.timer;
            self.queue.on_timer(at);
            self.timer = self.queue.next_timer().unwrap_or(NEVER);
            assert!(self.timer > at, "the queue's periodic task stays due");
        }
    }

    #[inline]
    fn tap<O: Observer<P> + ?Sized, R>(
        &mut self,
        at: Nanos,
        observer: &mut O,
        act: impl FnOnce(&mut Q, &mut Call<'_, StreamDraws, Tap<'_, O>>) -> R,
    ) -> R {
        let Self { backlog, ledger, draws, .. } = self;
        let mut tap = Tap { at, backlog, ledger, observer };
        let result = act(&mut self.queue, &mut Call { now: at, draws, sink: &mut tap });
        // Most disciplines have no periodic task: do not ask them for its next time.
        if self.timer != NEVER {
            self.timer = self.queue.next_timer().unwrap_or(NEVER);
        }
        debug_assert_eq!(self.queue.next_timer().unwrap_or(NEVER), self.timer);
        result
    }

    /// Returns whether the transmitter may send at `at`. With a trace, it may send only at an
    /// opportunity, and otherwise waits for the next one.
    #[inline(never)]
    fn has_opportunity(&mut self, at: Nanos) -> bool {
        let Some(trace) = &mut self.trace else { return true };
        let waited = self.due == at;
        if waited && trace.is_open(at) {
            return true;
        }
        let next = trace.after(at);
        self.transmitting = false;
        self.due = if waited { next } else { self.due.min(next) };
        false
    }

    /// Asks the queue for a packet and starts its transmission.
    #[inline]
    fn transmit_next(&mut self, at: Nanos, observer: &mut (impl Observer<P> + ?Sized)) {
        if self.transmitter.rate().is_none() && !self.has_opportunity(at) {
            return;
        }
        #[expect(
            clippy::redundant_closure_for_method_calls,
            reason = "a method is not general enough over lifetimes"
        )]
        let next = self.tap(at, observer, |queue, call| queue.dequeue(call));
        match next {
            Dequeue::Packet(packet) if packet.is_super() => {
                self.transmit_frames(at, packet, observer);
            }
            Dequeue::Packet(packet) => {
                self.depart(at, &packet, observer);
                self.busy += self.transmit(at, packet, observer);
            }
            Dequeue::Empty => {
                self.transmitting = false;
                self.due = NEVER;
                debug_assert_eq!(self.backlog.packets, 0, "a queue with packets says it is empty");
            }
            Dequeue::NotBefore(time) => {
                debug_assert!(time > at, "a queue asks to wait until {time} at {at}");
                self.transmitting = false;
                self.due = time.max(at + 1);
            }
        }
    }

    /// Transmits a super-packet, which has left the queue, frame by frame.
    #[inline(never)]
    fn transmit_frames(
        &mut self,
        at: Nanos,
        packet: P,
        observer: &mut (impl Observer<P> + ?Sized),
    ) {
        let frames = self.tap(at, observer, |_, call| call.sink.split(packet));
        let mut begins = at;
        for frame in frames {
            self.depart(at, &frame, observer);
            self.busy += self.transmit(begins, frame, observer);
            begins = self.due;
        }
    }

    /// Counts a packet that has left the queue.
    #[inline]
    fn depart(&mut self, at: Nanos, packet: &P, observer: &mut (impl Observer<P> + ?Sized)) {
        self.backlog.remove(packet.len());
        self.ledger.record(at, packet, Event::Departed, observer);
    }

    /// Starts the transmission of `packet`. Returns its duration.
    #[inline]
    fn transmit(
        &mut self,
        at: Nanos,
        packet: P,
        observer: &mut (impl Observer<P> + ?Sized),
    ) -> Nanos {
        self.transmitting = true;
        let takes = if self.trace.is_some() {
            self.time_to_opportunity(packet.len())
        } else {
            self.transmitter.takes(at, packet.len())
        };
        self.due = at + takes;
        if self.impair.is_some() {
            self.carry_impaired(at, packet, observer);
        } else {
            self.line.push(self.due + self.delay, packet);
        }
        takes
    }

    #[inline(never)]
    fn time_to_opportunity(&mut self, bytes: u32) -> Nanos {
        let Some(trace) = &mut self.trace else { return 0 };
        let takes = trace.transmit(self.transmitter.framing().occupied(bytes)) - self.due;
        self.transmitter.set_time(bytes, takes);
        takes
    }

    /// Puts a packet on a wire that does more than delay it.
    #[inline(never)]
    fn carry_impaired(
        &mut self,
        at: Nanos,
        mut packet: P,
        observer: &mut (impl Observer<P> + ?Sized),
    ) {
        let Some(mut impair) = self.impair.take() else { return };
        let twice = impair.duplicates();
        let lost = self.loses(&mut impair, at, &mut packet, observer);
        if twice {
            self.ledger.record(at, &packet, Event::Duplicated, observer);
        }
        let copy = twice.then(|| packet.clone());
        let copy = match (lost, copy) {
            (true, None) => {
                self.lose(at, &packet, observer);
                self.impair = Some(impair);
                return;
            }
            // Of a packet that is both duplicated and lost, netem carries one copy.
            (true, Some(copy)) => {
                self.lose(at, &copy, observer);
                None
            }
            (false, copy) => copy,
        };
        self.corrupt(&mut impair, at, &mut packet, observer);
        if self.is_full(&impair) {
            if let Some(copy) = copy {
                self.lose(at, &copy, observer);
            }
            self.lose(at, &packet, observer);
        } else {
            if let Some(mut copy) = copy {
                if self.loses(&mut impair, at, &mut copy, observer) {
                    self.lose(at, &copy, observer);
                } else {
                    self.corrupt(&mut impair, at, &mut copy, observer);
                    if self.is_full(&impair) {
                        self.lose(at, &copy, observer);
                    } else {
                        self.carry(&mut impair, copy);
                    }
                }
            }
            self.carry(&mut impair, packet);
        }
        self.impair = Some(impair);
    }

    /// Returns whether `packet` is lost. With `ecn` an ECN-capable packet is marked instead.
    fn loses(
        &mut self,
        impair: &mut Impair,
        at: Nanos,
        packet: &mut P,
        observer: &mut (impl Observer<P> + ?Sized),
    ) -> bool {
        if !impair.loses() {
            return false;
        }
        if impair.ecn && packet.set_ce() {
            self.ledger.record(at, packet, Event::Marked(MarkReason::Early), observer);
            return false;
        }
        true
    }

    /// Returns whether the wire has its maximum of packets when the transmission in progress ends.
    fn is_full(&self, impair: &Impair) -> bool {
        impair.limit.is_some_and(|limit| {
            let limit = limit as usize;
            self.line.len() >= limit && self.line.len_at(self.due, Packet::len) >= limit
        })
    }

    fn lose(&mut self, at: Nanos, packet: &P, observer: &mut (impl Observer<P> + ?Sized)) {
        self.ledger.record(at, packet, Event::Lost, observer);
    }

    fn corrupt(
        &mut self,
        impair: &mut Impair,
        at: Nanos,
        packet: &mut P,
        observer: &mut (impl Observer<P> + ?Sized),
    ) {
        if let Some(entropy) = impair.corrupts() {
            self.ledger.record(at, packet, Event::Corrupted(entropy), observer);
            packet.corrupt(entropy);
        }
    }

    fn carry(&mut self, impair: &mut Impair, packet: P) {
        let at = match impair.passage(self.delay) {
            Passage::Delayed(delay) => impair.arrival(self.due, delay, packet.len()),
            Passage::Overtaking => self.due,
        };
        self.line.push(at, packet);
        self.line.entered(self.due);
    }

    /// Begins the measurements of the queue's classes anew.
    pub fn restart(&mut self) {
        self.queue.restart();
    }

    /// Returns the queue, in its state at the last call's time.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// Returns the queue's length.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Returns the number of packets on the wire, the one in transmission included.
    pub fn in_flight(&self) -> usize {
        self.line.len()
    }

    /// Returns whether a packet is being transmitted at the last call's time.
    pub fn is_transmitting(&self) -> bool {
        self.transmitting
    }

    /// Returns whether the link has a rate or follows a trace, so that transmissions take time.
    pub fn is_timed(&self) -> bool {
        self.transmitter.rate().is_some() || self.trace.is_some()
    }

    /// Returns the bytes transmitted until `now`, which is not before the last call's time. A
    /// transmission in progress counts in proportion to the part of its duration that has passed,
    /// rounded down.
    pub fn transmitted(&self, now: Nanos) -> u64 {
        let left = if self.transmitting { self.due.saturating_sub(now) } else { 0 };
        self.ledger.departed.bytes - remainder(self.transmitter.transmission(), left)
    }

    /// Returns the excess of the rounded times of transmissions until `now`, in bit/s times
    /// nanoseconds.
    fn excess(&self, now: Nanos) -> u128 {
        self.transmitter.excess(!self.transmitting || self.due <= now)
    }

    /// Returns the part of [`Link::busy`], or of a station's, that is due to rounding, in
    /// nanoseconds; for a rate that has not changed.
    pub fn rounding(&self, now: Nanos) -> f64 {
        let rate = self.transmitter.rate().map_or(1.0, |rate| rate.bits() as f64);
        self.excess(now) as i128 as f64 / rate
    }

    /// Returns how long the link has been transmitting until `now`, which is not before the last
    /// call's time.
    pub fn busy(&self, now: Nanos) -> Nanos {
        let left = if self.transmitting { self.due.saturating_sub(now) } else { 0 };
        self.busy - left
    }

    /// Returns the transmitter's capacity and use until `now`, which is not before the last call's
    /// time. On a shared medium the values have no meaning, since other stations use a part of the
    /// capacity.
    pub fn capacity(&self, now: Nanos) -> Capacity {
        let busy = self.busy(now);
        let mut timed = self.capacity.as_ref().map_or_else(
            || Account::new(self.transmitter.rate()).until(now, busy),
            |account| account.until(now, busy),
        );
        timed.used = timed.used.wrapping_sub(self.excess(now));
        self.trace.as_ref().map_or(timed, |trace| timed + trace.capacity(now))
    }

    /// Returns the counts of events since the link's creation.
    pub fn stats(&self) -> &Ledger {
        &self.ledger
    }

    /// # Panics
    /// If a packet or a byte was lost or made on the way: if the ledger differs from the backlog, the queue
    /// or the line.
    pub fn assert_conserved(&self) {
        self.assert_conserved_with(Count::default(), Count::default());
    }

    /// As [`Link::assert_conserved`], for a device with packets in its transmit ring (`ring`) and
    /// in its receive ring (`rx`).
    fn assert_conserved_with(&self, ring: Count, rx: Count) {
        let queue = Count { packets: self.queue.packets() as u64, bytes: self.queue.bytes() } + rx;
        let (queue, announced) =
            self.in_ring(self.backlog.packets).unwrap_or((queue, Count::default()));
        assert_eq!(queue, self.backlog.into(), "queue, counted by itself and the link");
        assert_eq!(queue, self.ledger.queued(), "queue, counted by itself and the ledger");
        let mut line = ring;
        self.line.packets().for_each(|packet| line.count(packet.len()));
        if self.direct.is_some() {
            line = line - queue - announced;
        }
        assert_eq!(line, self.ledger.on_line(), "line, counted by itself and the ledger");
    }
}
