//! A FIFO in closed form: a packet's arrival at the queue determines its arrival at the far end.
//!
//! A packet departs at the later of its arrival and the end of the transmission before it. So
//! queue, transmitter and wire share one ring buffer of packets, in order: those on the wire, those
//! that are queued (the backlog says how many), and those that are announced, which come later.
//! [`Link::book`] records their events, each at its own time.
//!
//! Only a FIFO that drops arriving packets when it is full, with a constant rate and a wire that
//! only delays, has a closed form.

use super::Link;
use crate::ledger::Backlog;
use crate::observer::{Corrupt, Event, Observer};
use crate::transmitter::Transmitter;
use sojourn_measure::Count;
use sojourn_queue::{Discipline, DropReason, Packet, Unit};
use sojourn_units::{NEVER, Nanos};

/// A packet with the time at which it comes to its link.
pub trait Stamped {
    /// Returns when the packet comes to its link, or to the link to which it is announced.
    fn comes_at(&self) -> Nanos;
}

/// Observes a queue's length in addition to the events.
pub trait Watch<P>: Observer<P> {
    /// The queue's length is `backlog` from `at` on. Not called for a packet that passes an idle
    /// link.
    fn on_backlog(&mut self, at: Nanos, backlog: Backlog);
}

/// State of a link in closed form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direct {
    limit: Option<(Unit, u32)>,
    /// The transmitter after the transmissions of all packets, announced packets included.
    ahead: Transmitter,
    /// When these transmissions end.
    free: Nanos,
    /// Number of announced packets.
    announced: u32,
    /// When the next event is to be recorded, or [`NEVER`].
    next: Nanos,
}

impl Direct {
    #[inline]
    fn fits(&self, backlog: Backlog, bytes: u32) -> bool {
        self.limit.is_none_or(|(unit, limit)| match unit {
            Unit::Packets => backlog.packets < limit,
            Unit::Bytes => backlog.bytes + u64::from(bytes) <= u64::from(limit),
        })
    }
}

impl<P: Packet + Clone + Corrupt + Stamped, Q: Discipline<P>> Link<P, Q> {
    /// Puts an empty link, whose queue is a FIFO with this limit, into closed form. Packets then do
    /// not pass through the queue, and the queue's own counters do not change. Only the methods
    /// here may move packets until [`Link::leave_direct`].
    pub fn go_direct(&mut self, limit: Option<(Unit, u32)>) {
        assert!(self.backlog.packets == 0 && self.line.len() == 0, "the link has packets");
        let free = if self.transmitting { self.due } else { 0 };
        self.transmitting = true;
        self.due = free;
        let ahead = self.transmitter;
        self.direct = Some(Direct { limit, ahead, free, announced: 0, next: NEVER });
    }

    /// Makes the link work event by event from `now` on, and removes announced packets.
    /// [`Link::book`] must have recorded earlier events.
    pub fn leave_direct(&mut self, now: Nanos, observer: &mut impl Observer<P>) {
        let Some(direct) = self.direct.take() else { return };
        self.set_clock(now);
        self.line.cut(direct.announced as usize);
        for packet in self.line.cut(self.backlog.packets as usize) {
            let at = packet.comes_at();
            self.tap(at, observer, |queue, call| queue.enqueue(packet, call));
        }
    }

    fn direct(&mut self) -> &mut Direct {
        self.direct.as_mut().expect("the link is in closed form")
    }

    /// Puts a packet that comes at `at` behind all others, and returns when it arrives at the far end.
    #[inline]
    fn place(&mut self, at: Nanos, packet: P) -> Nanos {
        let direct = self.direct();
        let begins = at.max(direct.free);
        direct.free = begins + direct.ahead.takes(begins, packet.len());
        let arrives = direct.free + self.delay;
        self.line.push(arrives, packet);
        arrives
    }

    /// Announces a packet that comes later; the queue must be sure to have space for it then.
    /// Returns when the packet arrives at the far end.
    #[inline]
    pub fn announce(&mut self, packet: P) -> Nanos {
        let comes = packet.comes_at();
        let direct = self.direct();
        direct.announced += 1;
        direct.next = direct.next.min(comes);
        self.place(comes, packet)
    }

    /// Brings a packet to the queue at `now`, after all events due until then. Returns when the
    /// packet arrives at the far end; `None` if the queue drops it.
    #[inline]
    pub fn bring(&mut self, now: Nanos, packet: P, observer: &mut impl Watch<P>) -> Option<Nanos> {
        self.book(now, observer);
        self.ledger.record(now, &packet, Event::Offered, observer);
        if !self.direct.is_some_and(|direct| direct.fits(self.backlog, packet.len())) {
            self.refuse(now, &packet, observer);
            return None;
        }
        if self.due > now || self.backlog.packets > 0 {
            self.backlog.add(packet.len());
            observer.on_backlog(now, self.backlog);
            let departs = self.due;
            let direct = self.direct();
            direct.next = direct.next.min(departs);
        } else {
            self.ledger.record(now, &packet, Event::Departed, observer);
            self.begin(now, packet.len());
        }
        Some(self.place(now, packet))
    }

    #[cold]
    fn refuse(&mut self, at: Nanos, packet: &P, observer: &mut impl Watch<P>) {
        let event = Event::Dropped { reason: DropReason::Overflow, queued: false };
        self.ledger.record(at, packet, event, observer);
    }

    /// Begins the transmission of a packet.
    #[inline]
    fn begin(&mut self, at: Nanos, bytes: u32) {
        let takes = self.transmitter.takes(at, bytes);
        self.due = at + takes;
        self.busy += takes;
    }

    /// Returns whether an event up to and at `until` has not been recorded.
    pub fn is_behind(&mut self, until: Nanos) -> bool {
        self.direct().next <= until
    }

    /// Records the arrivals at the queue and the departures up to and at `until`.
    #[inline]
    pub fn book(&mut self, until: Nanos, observer: &mut impl Watch<P>) {
        if self.is_behind(until) {
            self.book_due(until, observer);
        }
    }

    fn book_due(&mut self, until: Nanos, observer: &mut impl Watch<P>) {
        let Self { direct: Some(direct), line, backlog, ledger, due, .. } = self else { return };
        let mut begin = |due: &mut Nanos, at, bytes| {
            let takes = self.transmitter.takes(at, bytes);
            *due = at + takes;
            self.busy += takes;
        };
        loop {
            let announced = direct.announced as usize;
            let departs = if backlog.packets > 0 { *due } else { NEVER };
            let comes = if announced > 0 { line.behind(announced).comes_at() } else { NEVER };
            direct.next = departs.min(comes);
            if direct.next > until {
                return;
            }
            if departs <= comes {
                let packet = line.behind(announced + backlog.packets as usize);
                backlog.remove(packet.len());
                ledger.record(departs, packet, Event::Departed, observer);
                observer.on_backlog(departs, *backlog);
                begin(due, departs, packet.len());
                continue;
            }
            let packet = line.behind(announced);
            ledger.record(comes, packet, Event::Offered, observer);
            if *due > comes || backlog.packets > 0 {
                debug_assert!(direct.fits(*backlog, packet.len()), "an announced packet must fit");
                backlog.add(packet.len());
                observer.on_backlog(comes, *backlog);
            } else {
                ledger.record(comes, packet, Event::Departed, observer);
                begin(due, comes, packet.len());
            }
            direct.announced -= 1;
        }
    }

    /// Removes and returns the next packet that arrives at the far end up to and at `until`.
    /// [`Link::book`] must have recorded the events until then.
    #[inline]
    pub fn take(&mut self, until: Nanos, observer: &mut impl Watch<P>) -> Option<P> {
        let at = self.line.head();
        if at > until {
            return None;
        }
        let packet = self.line.pop(Packet::len)?;
        self.ledger.record(at, &packet, Event::Delivered, observer);
        Some(packet)
    }

    /// Removes the packets that arrive up to and at `until`. They were handed to the next link in
    /// advance, so no observer gets their arrival.
    #[inline]
    pub fn forget(&mut self, until: Nanos) {
        while self.line.head() <= until
            && let Some(packet) = self.line.pop(Packet::len)
        {
            self.ledger.delivered.count(packet.len());
        }
    }
}

impl<P: Packet, Q> Link<P, Q> {
    /// Returns the counts of the queued and of the announced packets, which the line holds; `None`
    /// if the link is not in closed form.
    pub(super) fn in_ring(&self, queued: u32) -> Option<(Count, Count)> {
        let direct = self.direct.as_ref()?;
        let mut counts = [Count::default(); 2];
        let (announced, queued) = (direct.announced as usize, queued as usize);
        for i in 0..announced + queued {
            let (_, packet) = self.line.last_but(i)?;
            counts[usize::from(i < announced)].count(packet.len());
        }
        Some((counts[0], counts[1]))
    }
}
