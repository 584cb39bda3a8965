//! Measurements at one link, or at several links together, in addition to the ledger: the queue's
//! length over time, sojourn times and loss events.

use sojourn_link::{Backlog, Capacity, Ledger};
use sojourn_measure::{Count, Histogram, LossRuns, TimeWeighted};
use sojourn_units::Nanos;
use std::ops::{Add, Sub};

/// The work of a transmitter since the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Time for which the transmitter was busy, in nanoseconds and parts of them.
    pub busy: f64,
    /// Packets whose transmission has begun.
    pub begun: Count,
    /// Bytes transmitted, including the finished part of a transmission in progress.
    pub transmitted: u64,
    /// Capacity offered and used; `None` if the transmitter's rate does not change during the run.
    pub capacity: Option<Capacity>,
}

/// Combines two capacities; returns the only one if the other is `None`.
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

/// Counts of how packets left a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Packets dropped.
    pub dropped: u64,
    /// Packets that left the queue.
    pub departed: u64,
}

impl Fates {
    /// Returns the fates of all packets of a ledger.
    pub fn of(ledger: &Ledger) -> Self {
        Self { dropped: ledger.drops().packets, departed: ledger.departed.packets }
    }

    /// Combines each count with that of `other`.
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
    /// The fates of UDP packets since the run's start. The ledger's remaining packets are TCP.
    pub udp: Fates,
    /// The fates of UDP packets at the end of the warm-up.
    udp_before: Fates,
    /// The link's ledger at the end of the warm-up.
    ledger_before: Ledger,
    /// The transmitter's work at the end of the warm-up.
    work_before: Work,
    /// Number of packets in the queue over time.
    pub packets: TimeWeighted,
    /// Number of bytes in the queue over time.
    pub bytes: TimeWeighted,
    /// Sojourn times, from a packet's arrival at the queue to its departure from the queue.
    pub sojourn: Histogram,
    /// Runs of consecutive losses.
    pub runs: LossRuns,
    /// Number of departed packets with a sojourn time above 0, since the run's start.
    pub waited: u64,
    /// Sojourn time of the packet that left last.
    pub last_sojourn: Nanos,
    /// Time of the last departure; the probe's start before the first departure.
    pub last_departed: Nanos,
}

impl LinkProbe {
    /// Returns a probe whose measurements begin at `now`.
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

    /// Begins the measurements anew at the end of the warm-up, with the link's `ledger` and the
    /// transmitter's `work` at that time.
    pub fn restart(&mut self, now: Nanos, ledger: Ledger, work: Work) {
        self.udp_before = self.udp;
        self.ledger_before = ledger;
        self.work_before = work;
        self.packets.restart(now);
        self.bytes.restart(now);
        self.sojourn.clear();
        self.runs.clear();
    }

    /// Records the queue's backlog at `now`, and returns whether it has changed. A packet that an
    /// idle link transmits at once does not change the backlog and is not recorded.
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

    /// Returns the part of a transmitter's `work` since the end of the warm-up.
    pub fn measured_work(&self, work: Work) -> Work {
        work - self.work_before
    }

    /// Returns the part of a link's `ledger` since the end of the warm-up.
    pub fn measured_ledger(&self, ledger: Ledger) -> Ledger {
        ledger - self.ledger_before
    }

    /// Returns the fates of UDP packets since the end of the warm-up.
    pub fn measured_udp(&self) -> Fates {
        self.udp - self.udp_before
    }

    /// Returns the time of the queue's last change. The departure of a packet that did not wait
    /// counts as a change.
    pub fn changed(&self) -> Nanos {
        self.packets.since().max(self.last_departed)
    }
}

/// The total backlog of several links over time.
#[derive(Clone, Debug)]
pub struct Joint {
    /// Last reported backlog of each link.
    members: Vec<Backlog>,
    packets: TimeWeighted,
    bytes: TimeWeighted,
}

impl Joint {
    /// Returns the total backlog of `members` links, whose queues are empty at `now`.
    pub fn new(now: Nanos, members: usize) -> Self {
        Self {
            members: vec![Backlog::default(); members],
            packets: TimeWeighted::new(now, 0),
            bytes: TimeWeighted::new(now, 0),
        }
    }

    /// Records a new backlog of the link `member`.
    #[cold]
    pub fn backlog(&mut self, now: Nanos, member: u32, backlog: Backlog) {
        let before = std::mem::replace(&mut self.members[member as usize], backlog);
        let packets = self.packets.value() + u64::from(backlog.packets);
        self.packets.set(now, packets - u64::from(before.packets));
        self.bytes.set(now, self.bytes.value() + backlog.bytes - before.bytes);
    }

    /// Begins the averages anew at the end of the warm-up.
    pub fn restart(&mut self, now: Nanos) {
        self.packets.restart(now);
        self.bytes.restart(now);
    }

    /// Returns the measurements of the links as if they were one link; `members` are their probes.
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
