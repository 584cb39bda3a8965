//! Measurements at a link, or at several together, in addition to the ledger: the queue's length
//! over time, sojourn times, loss events.

use sojourn_link::{Backlog, Capacity, Ledger};
use sojourn_measure::{Count, Histogram, LossRuns, TimeWeighted};
use sojourn_units::Nanos;
use std::ops::{Add, Sub};

/// The work of a transmitter since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// How long it was busy.
    pub busy: Nanos,
    /// Packets whose transmission has begun.
    pub begun: Count,
    /// Bytes transmitted; of a transmission in progress the part that is done.
    pub transmitted: u64,
    /// The capacity used, if its rate changes during the run.
    pub capacity: Option<Capacity>,
}

/// Both together; of one alone, what it is.
fn join(
    one: Option<Capacity>,
    other: Option<Capacity>,
    both: impl FnOnce(Capacity, Capacity) -> Capacity,
) -> Option<Capacity> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

impl Add for Work {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            busy: self.busy + other.busy,
            begun: self.begun + other.begun,
            transmitted: self.transmitted + other.transmitted,
            capacity: join(self.capacity, other.capacity, Add::add),
        }
    }
}

impl Sub for Work {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            busy: self.busy - other.busy,
            begun: self.begun - other.begun,
            transmitted: self.transmitted - other.transmitted,
            capacity: join(self.capacity, other.capacity, Sub::sub),
        }
    }
}

impl std::iter::Sum for Work {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::default(), Add::add)
    }
}

/// The end of packets in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Packets dropped.
    pub dropped: u64,
    /// Packets that left.
    pub departed: u64,
}

impl Fates {
    /// The fates of all packets of a ledger.
    pub fn of(ledger: &Ledger) -> Self {
        Self { dropped: ledger.drops().packets, departed: ledger.departed.packets }
    }

    /// Combines two counts.
    fn zip(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            dropped: combine(self.dropped, other.dropped),
            departed: combine(self.departed, other.departed),
        }
    }
}

impl Add for Fates {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.zip(other, Add::add)
    }
}

impl Sub for Fates {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.zip(other, Sub::sub)
    }
}

/// The probe of one link.
#[derive(Clone, Debug)]
pub struct LinkProbe {
    /// The outcomes of UDP packets since the start; all others are TCP's.
    pub udp: Fates,
    /// The same at the end of the warm-up.
    udp_before: Fates,
    /// The link's ledger at the end of the warm-up.
    ledger_before: Ledger,
    /// The transmitter's work at the end of the warm-up.
    work_before: Work,
    /// Packets queued.
    pub packets: TimeWeighted,
    /// Bytes queued.
    pub bytes: TimeWeighted,
    /// From a packet's arrival at the queue to the start of its transmission.
    pub sojourn: Histogram,
    /// Consecutive losses.
    pub runs: LossRuns,
    /// Packets that left after they had waited, since the start.
    pub waited: u64,
    /// Sojourn time of the packet that left last.
    pub last_sojourn: Nanos,
    /// When it left.
    pub last_departed: Nanos,
}

impl LinkProbe {
    /// A probe that begins at `now`.
    pub fn new(now: Nanos) -> Self {
        Self {
            udp: Fates::default(),
            udp_before: Fates::default(),
            ledger_before: Ledger::default(),
            work_before: Work::default(),
            packets: TimeWeighted::new(now, 0),
            bytes: TimeWeighted::new(now, 0),
            sojourn: Histogram::new(),
            runs: LossRuns::default(),
            waited: 0,
            last_sojourn: 0,
            last_departed: now,
        }
    }

    /// The warm-up is over; `ledger` is the link's, and `work` is what the transmitter has done.
    pub fn restart(&mut self, now: Nanos, ledger: Ledger, work: Work) {
        self.udp_before = self.udp;
        self.ledger_before = ledger;
        self.work_before = work;
        self.packets.restart(now);
        self.bytes.restart(now);
        self.sojourn.clear();
        self.runs.clear();
    }

    /// The queue's length after something happened; says whether it is another. A packet that passes
    /// an idle link is in the queue for no time, and is not seen here.
    #[inline]
    pub fn backlog(&mut self, now: Nanos, backlog: Backlog) -> bool {
        let mut changed = false;
        if u64::from(backlog.packets) != self.packets.value() {
            self.packets.set(now, u64::from(backlog.packets));
            changed = true;
        }
        if backlog.bytes != self.bytes.value() {
            self.bytes.set(now, backlog.bytes);
            changed = true;
        }
        changed
    }

    /// How much of a transmitter's work is since the end of the warm-up.
    pub fn measured_work(&self, work: Work) -> Work {
        work - self.work_before
    }

    /// How much of a link's ledger is since the end of the warm-up.
    pub fn measured_ledger(&self, ledger: Ledger) -> Ledger {
        ledger - self.ledger_before
    }

    /// The fates of UDP packets since the end of the warm-up.
    pub fn measured_udp(&self) -> Fates {
        self.udp - self.udp_before
    }

    /// When the queue last changed; a packet that passed it by counts too.
    pub fn changed(&self) -> Nanos {
        self.packets.since().max(self.last_departed)
    }
}

/// The queues of several links as one: how long they are together.
#[derive(Clone, Debug)]
pub struct Joint {
    /// Last reported length of each member.
    members: Vec<Backlog>,
    packets: TimeWeighted,
    bytes: TimeWeighted,
}

impl Joint {
    /// Of so many links, whose queues are empty at `now`.
    pub fn new(now: Nanos, members: usize) -> Self {
        Self {
            members: vec![Backlog::default(); members],
            packets: TimeWeighted::new(now, 0),
            bytes: TimeWeighted::new(now, 0),
        }
    }

    /// A member's queue has another length.
    #[cold]
    pub fn backlog(&mut self, now: Nanos, member: u32, backlog: Backlog) {
        let before = std::mem::replace(&mut self.members[member as usize], backlog);
        let packets = self.packets.value() + u64::from(backlog.packets);
        self.packets.set(now, packets - u64::from(before.packets));
        self.bytes.set(now, self.bytes.value() + backlog.bytes - before.bytes);
    }

    /// The warm-up is over.
    pub fn restart(&mut self, now: Nanos) {
        self.packets.restart(now);
        self.bytes.restart(now);
    }

    /// Returns the measurements of its members, as if they were one link.
    pub fn merged<'a>(&self, members: impl Iterator<Item = &'a LinkProbe>) -> LinkProbe {
        let mut all = LinkProbe::new(0);
        for member in members {
            all.udp = all.udp + member.udp;
            all.udp_before = all.udp_before + member.udp_before;
            all.sojourn.merge(&member.sojourn);
            all.runs.merge(&member.runs);
        }
        all.packets = self.packets;
        all.bytes = self.bytes;
        all
    }
}
