//! A link with a transmit ring, a shared medium or a late host.

use super::{Link, remainder};
use crate::csma::{Backoff, Medium};
use crate::host::{self, Host};
use crate::observer::{Corrupt, Event, Observer};
use crate::params::Params;
use sojourn_measure::Count;
use sojourn_queue::OtherDiscipline;
use sojourn_queue::{Dequeue, Discipline, DropReason, Packet, Queue, Return};
use sojourn_random::Key;
use sojourn_units::{NEVER, Nanos};
use std::collections::VecDeque;

/// One direction of a link that has a transmit ring, a shared medium or a late host, or several of
/// these; see the [crate] for the rules. Each call gets the same medium; `None` means that the link
/// does not share its medium.
///
/// Observers are `dyn`, so that this code is compiled apart from that of [`Link`] and does not slow
/// the latter.
#[derive(Clone, Debug)]
pub struct Station<P, Q = Queue<P>> {
    link: Link<P, Q>,
    /// Packets taken from the queue ahead of their transmission.
    ring: VecDeque<P>,
    /// Most packets in `ring`.
    room: usize,
    /// When a queue that shapes is asked again for a packet for the ring; [`NEVER`] for no request.
    refill: Nanos,
    /// The host, if it is late.
    host: Option<Box<Host<P>>>,
    backoff: Backoff,
    /// When the frame sent last ceases to occupy the medium.
    until: Nanos,
    /// End of the transmission begun last, with the packet's length and the transmission's
    /// duration.
    transmission: (Nanos, (u32, Nanos)),
}

impl<P: Packet + Clone + Corrupt> Station<P> {
    /// Returns a station, idle and empty at `now`, whose device takes up to `ring` packets from the
    /// queue ahead of their transmission; `key` is made from the run's seed and the link's name.
    pub fn new(params: &Params, ring: u32, key: Key, now: Nanos) -> Self {
        Self {
            link: Link::new(params, key, now),
            ring: VecDeque::new(),
            room: ring as usize,
            refill: NEVER,
            host: None,
            backoff: Backoff::new(key),
            until: 0,
            transmission: (0, (0, 0)),
        }
    }

    /// Returns the station with a host that serves the queue as late as `params` says.
    #[must_use]
    pub fn with_host(mut self, params: &host::Params) -> Self {
        self.host = Host::new(params, self.link.key).map(Box::new);
        self
    }

    /// As [`Link::change`].
    ///
    /// # Errors
    /// If `params` has another discipline. Then only the events due until `now` have
    /// happened.
    pub fn change(
        &mut self,
        now: Nanos,
        params: &Params,
        medium: Option<&mut Medium>,
        observer: &mut dyn Observer<P>,
    ) -> Result<(), OtherDiscipline> {
        self.run(now, medium, observer);
        self.link.apply(now, params, observer)
    }
}

impl<P: Packet + Clone + Corrupt, Q: Discipline<P>> Station<P, Q> {
    /// As [`Link::send`].
    ///
    /// # Panics
    /// If `now` is before an earlier call's.
    pub fn send(
        &mut self,
        now: Nanos,
        packet: P,
        mut medium: Option<&mut Medium>,
        observer: &mut dyn Observer<P>,
    ) -> Return {
        self.run(now, medium.as_deref_mut(), observer);
        self.link.arrive(now, &packet, observer);
        if self.is_stalled(now) {
            return self.hold(now, packet, observer);
        }
        self.enqueue(now, packet, medium, observer)
    }

    fn enqueue(
        &mut self,
        at: Nanos,
        packet: P,
        medium: Option<&mut Medium>,
        observer: &mut dyn Observer<P>,
    ) -> Return {
        let verdict = self.link.tap(at, observer, |queue, call| queue.enqueue(packet, call));
        self.stir(at, medium, observer);
        verdict
    }

    /// Returns whether the host stalls at `at`.
    fn is_stalled(&mut self, at: Nanos) -> bool {
        self.host.as_mut().is_some_and(|host| host.is_stalled(at))
    }

    /// Puts a packet that comes during a stall into the receive ring, or drops it if that is full.
    fn hold(&mut self, at: Nanos, packet: P, observer: &mut dyn Observer<P>) -> Return {
        let refused = self.host.as_mut().and_then(|host| host.keep(packet).err());
        if let Some(packet) = refused {
            self.link.backlog.remove(packet.len());
            let event = Event::Dropped { reason: DropReason::Overflow, queued: false };
            self.link.ledger.record(at, &packet, event, observer);
        }
        Return::Success
    }

    /// Ends a stall: the host takes the packets of the receive ring, and asks its queue.
    fn go_on(
        &mut self,
        at: Nanos,
        mut medium: Option<&mut Medium>,
        observer: &mut dyn Observer<P>,
    ) {
        if let Some(host) = &mut self.host {
            host.resumed();
        }
        if self.is_stalled(at) {
            return;
        }
        while let Some(packet) = self.host.as_mut().and_then(|host| host.take()) {
            self.enqueue(at, packet, medium.as_deref_mut(), observer);
        }
        self.stir(at, medium, observer);
    }

    /// Returns when the host resumes after a stall; [`NEVER`] if no work waits for its end.
    fn resume(&self) -> Nanos {
        self.host.as_ref().map_or(NEVER, |host| host.resume())
    }

    /// Returns when the host asks its queue again, if the queue requested `time`.
    fn wake(&mut self, time: Nanos, at: Nanos) -> Nanos {
        let fires = self.host.as_mut().map_or(time, |host| host.fires(time));
        fires.max(at + 1)
    }

    fn in_rx(&self) -> Count {
        let mut rx = Count::default();
        self.host.iter().flat_map(|host| host.waiting()).for_each(|packet| rx.count(packet.len()));
        rx
    }

    /// As [`Link::poll`].
    ///
    /// # Panics
    /// If `now` is before an earlier call's.
    pub fn poll(
        &mut self,
        now: Nanos,
        medium: Option<&mut Medium>,
        observer: &mut dyn Observer<P>,
    ) {
        self.run(now, medium, observer);
    }

    /// As [`Link::set_wire`].
    ///
    /// # Panics
    /// If `now` is before an earlier call's.
    pub fn set_wire(
        &mut self,
        now: Nanos,
        params: &Params,
        medium: Option<&mut Medium>,
        observer: &mut dyn Observer<P>,
    ) {
        if let Some(before) = self.link.before(now) {
            self.run(before, medium, observer);
        }
        self.link.set(now, params);
    }

    /// As [`Link::next_wakeup`].
    pub fn next_wakeup(&self) -> Option<Nanos> {
        let queued = self.link.backlog.packets > 0;
        let due = if queued || !self.ring.is_empty() { self.link.due } else { NEVER };
        let refill = if queued { self.refill.min(self.resume()) } else { NEVER };
        let next = due.min(refill).min(self.link.line.head());
        (next != NEVER).then_some(next)
    }

    fn run(&mut self, now: Nanos, mut medium: Option<&mut Medium>, observer: &mut dyn Observer<P>) {
        self.link.set_clock(now);
        loop {
            let resume = self.resume();
            let acts = self.link.due.min(self.refill).min(resume);
            let at = self.link.line.head().min(acts);
            if at > now {
                break;
            }
            if self.link.line.head() <= acts {
                self.link.deliver_next(observer);
                continue;
            }
            self.link.run_timers(at);
            if self.link.due <= at {
                let asks = self.asks_after_transmission(at);
                self.attempt(at, asks, medium.as_deref_mut(), observer);
            } else if resume <= at {
                self.go_on(at, medium.as_deref_mut(), observer);
            } else {
                self.stir(at, medium.as_deref_mut(), observer);
            }
        }
        self.link.run_timers(now);
    }

    /// Returns whether the end of a transmission makes the host ask its queue: not while a late
    /// host waits for a wake-up that a shaper requested.
    fn asks_after_transmission(&self, at: Nanos) -> bool {
        self.host.is_none() || self.refill == NEVER || self.refill <= at
    }

    /// Lets the device take packets, after the queue may have become ready to give some.
    fn stir(&mut self, at: Nanos, medium: Option<&mut Medium>, observer: &mut dyn Observer<P>) {
        if self.link.transmitting || self.backoff.is_waiting() {
            self.fill(at, observer);
        } else {
            self.attempt(at, true, medium, observer);
        }
    }

    /// Asks the queue for a packet.
    fn dequeue(&mut self, at: Nanos, observer: &mut dyn Observer<P>) -> Dequeue<P> {
        #[expect(
            clippy::redundant_closure_for_method_calls,
            reason = "a method is not general enough over lifetimes"
        )]
        let next = self.link.tap(at, observer, |queue, call| queue.dequeue(call));
        match &next {
            Dequeue::Packet(packet) => self.link.depart(at, packet, observer),
            Dequeue::Empty => {
                let waiting = self.in_rx().packets;
                debug_assert_eq!(
                    u64::from(self.link.backlog.packets),
                    waiting,
                    "a queue with packets says it is empty"
                );
            }
            Dequeue::NotBefore(time) => {
                debug_assert!(*time > at, "a queue asks to wait until {time} at {at}");
            }
        }
        next
    }

    /// Takes packets into the ring while it has space.
    fn fill(&mut self, at: Nanos, observer: &mut dyn Observer<P>) {
        self.refill = NEVER;
        if self.is_stalled(at) {
            return;
        }
        while self.ring.len() < self.room {
            match self.dequeue(at, observer) {
                Dequeue::Packet(packet) => self.ring.push_back(packet),
                Dequeue::Empty => break,
                Dequeue::NotBefore(time) => {
                    self.refill = self.wake(time, at);
                    break;
                }
            }
        }
    }

    /// Returns the next packet to send, if there is one. If there is no ring and the queue delays
    /// the packet, `due` becomes the time of the next request.
    fn next_packet(&mut self, at: Nanos, observer: &mut dyn Observer<P>) -> Option<P> {
        if self.room > 0 {
            return self.ring.pop_front();
        }
        if self.is_stalled(at) {
            return None;
        }
        match self.dequeue(at, observer) {
            Dequeue::Packet(packet) => Some(packet),
            Dequeue::Empty => None,
            Dequeue::NotBefore(time) => {
                self.link.due = self.wake(time, at);
                None
            }
        }
    }

    /// Lets the free transmitter send the next packet, if there is one and the medium is free. If
    /// `asks`, the host asks the queue for packets.
    fn attempt(
        &mut self,
        at: Nanos,
        asks: bool,
        mut medium: Option<&mut Medium>,
        observer: &mut dyn Observer<P>,
    ) {
        self.link.transmitting = false;
        self.link.due = NEVER;
        loop {
            if asks {
                self.fill(at, observer);
            }
            let waits = !self.ring.is_empty() || self.room == 0 && self.link.backlog.packets > 0;
            if waits
                && let Some(medium) = medium.as_deref_mut()
                && !medium.is_free(at)
            {
                if let Some(next) = self.backoff.defer(medium, at) {
                    self.link.due = next;
                    return;
                }
                let Some(packet) = self.next_packet(at, observer) else { return };
                self.link.ledger.record(at, &packet, Event::Abandoned, observer);
                // The next packet makes its first attempt at once.
                continue;
            }
            self.backoff.reset();
            if let Some(packet) = self.next_packet(at, observer) {
                self.begin(at, packet, medium, observer);
                if asks {
                    self.fill(at, observer);
                }
            }
            return;
        }
    }

    fn begin(
        &mut self,
        at: Nanos,
        packet: P,
        medium: Option<&mut Medium>,
        observer: &mut dyn Observer<P>,
    ) {
        let length = packet.len();
        let mut occupied = self.link.transmit(at, packet, observer);
        self.transmission = (at + occupied, (length, occupied));
        if let Some(medium) = medium {
            occupied += self.link.delay;
            medium.occupy(at, at + occupied);
            let gap = medium.params().gap;
            self.link.due += self.link.transmitter.gap(self.link.due, gap);
        }
        self.link.busy += occupied;
        self.until = at + occupied;
    }

    /// Begins the measurements of the queue's classes anew.
    pub fn restart(&mut self) {
        self.link.restart();
    }

    /// Returns the link, to read its queue, backlog and counters. The station itself reports the
    /// packets on the wire and its busy time.
    pub fn link(&self) -> &Link<P, Q> {
        &self.link
    }

    /// Returns the number of packets on the wire, the one in transmission included, and in the
    /// transmit ring.
    pub fn in_flight(&self) -> usize {
        self.link.in_flight() + self.ring.len()
    }

    /// Returns how long the station's frames have been transmitted until `now`, which is not before
    /// the last call's time; on a shared medium, how long they have occupied it.
    pub fn busy(&self, now: Nanos) -> Nanos {
        self.link.busy - self.until.saturating_sub(now)
    }

    /// As [`Link::transmitted`].
    pub fn transmitted(&self, now: Nanos) -> u64 {
        let (end, transmission) = self.transmission;
        self.begun().bytes - remainder(transmission, end.saturating_sub(now))
    }

    /// Returns the packets whose transmission has begun.
    pub fn begun(&self) -> Count {
        let ledger = &self.link.ledger;
        ledger.departed - ledger.abandoned - self.in_ring()
    }

    fn in_ring(&self) -> Count {
        let mut ring = Count::default();
        self.ring.iter().for_each(|packet| ring.count(packet.len()));
        ring
    }

    /// # Panics
    /// As [`Link::assert_conserved`].
    pub fn assert_conserved(&self) {
        self.link.assert_conserved_with(self.in_ring(), self.in_rx());
    }
}
