//! What is measured at a link: the books, the queue's length over time, sojourn times, loss events.

use crate::slab::{CLASSES, Class};
use sojourn_link::Backlog;
use sojourn_measure::{Histogram, LinkAccount, LossRuns, TimeWeighted};
use sojourn_units::Nanos;

/// The probe of one link.
#[derive(Clone, Debug)]
pub struct LinkProbe {
    /// The books since the start, by class.
    pub account: [LinkAccount; CLASSES],
    /// The books at the end of the warm-up.
    before: [LinkAccount; CLASSES],
    /// Time that the link had transmitted at the end of the warm-up.
    busy_before: Nanos,
    /// Packets queued.
    pub packets: TimeWeighted,
    /// Bytes queued.
    pub bytes: TimeWeighted,
    /// From a packet's arrival at the queue to the start of its transmission.
    pub sojourn: Histogram,
    /// Consecutive losses.
    pub runs: LossRuns,
    /// Sojourn time of the packet that left last.
    pub last_sojourn: Nanos,
    /// When it left.
    pub last_departed: Nanos,
}

impl LinkProbe {
    /// A probe that begins at `now`.
    pub fn new(now: Nanos) -> Self {
        Self {
            account: Default::default(),
            before: Default::default(),
            busy_before: 0,
            packets: TimeWeighted::new(now, 0),
            bytes: TimeWeighted::new(now, 0),
            sojourn: Histogram::new(),
            runs: LossRuns::default(),
            last_sojourn: 0,
            last_departed: now,
        }
    }

    /// The warm-up is over; `busy` is how long the link has transmitted.
    pub fn restart(&mut self, now: Nanos, busy: Nanos) {
        self.before = self.account;
        self.busy_before = busy;
        self.packets.restart(now);
        self.bytes.restart(now);
        self.sojourn.clear();
        self.runs.clear();
    }

    /// The queue's length after something happened. A packet that passes an idle link is in the
    /// queue for no time, and is not seen here.
    #[inline]
    pub fn backlog(&mut self, now: Nanos, backlog: Backlog) {
        if u64::from(backlog.packets) != self.packets.value() {
            self.packets.set(now, u64::from(backlog.packets));
        }
        if backlog.bytes != self.bytes.value() {
            self.bytes.set(now, backlog.bytes);
        }
    }

    /// How much of a link's time in transmission is since the end of the warm-up.
    pub fn measured_busy(&self, busy: Nanos) -> Nanos {
        busy - self.busy_before
    }

    /// The books since the end of the warm-up, of one class.
    pub fn measured(&self, class: Class) -> LinkAccount {
        self.account[class as usize] - self.before[class as usize]
    }

    /// The books since the end of the warm-up, of all classes.
    pub fn measured_all(&self) -> LinkAccount {
        self.measured(Class::Tcp) + self.measured(Class::Udp)
    }

    /// When the queue last changed; a packet that passed it by counts too.
    pub fn changed(&self) -> Nanos {
        self.packets.since().max(self.last_departed)
    }

    /// The books since the start, of all classes.
    pub fn all(&self) -> LinkAccount {
        self.account[0] + self.account[1]
    }
}
