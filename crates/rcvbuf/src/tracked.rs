//! One socket that is followed.

use crate::PACKET;
use crate::diag::Reading;
use crate::drops::Split;
use crate::need::Meter;
use crate::refusal::Refusal;
use crate::socket::{GREATEST, Setting};
use sojourn_buffer::{Memory, Observation, Params, Policy, Reason};
use sojourn_units::{Bytes, Nanos};
use std::collections::VecDeque;

/// A socket, its policy, and what has happened to it.
#[derive(Debug)]
pub(crate) struct Tracked {
    /// What the kernel told last.
    pub(crate) reading: Reading,
    /// The pass in which that was.
    pub(crate) seen: u64,
    /// Size in force, if known.
    pub(crate) size: Option<Bytes>,
    /// Number that no other socket of this boot ever has, if known.
    pub(crate) cookie: Option<u64>,
    policy: Policy,
    /// What it was before we changed it; the program's own wish.
    pub(crate) before: Option<Setting>,
    /// What we have set last.
    pub(crate) set: Option<Bytes>,
    /// Largest size that we may give it; less than all without `CAP_NET_ADMIN`.
    pub(crate) most: Bytes,
    /// Why it is watched only.
    pub(crate) refusal: Option<Refusal>,
    /// What was decided last, after the budget.
    pub(crate) wanted: Bytes,
    pub(crate) reason: Reason,
    /// The budget gives it less than its policy wants.
    pub(crate) curbed: bool,
    /// Drops since it is followed.
    pub(crate) drops: Split,
    /// Changes made.
    pub(crate) changes: u64,
    pub(crate) peak_occupied: Bytes,
    pub(crate) peak_size: Bytes,
    /// What its bursts needed.
    pub(crate) need: Meter,
    /// Largest occupancy and drops of the last moments, newest last.
    pub(crate) recent: VecDeque<(Bytes, u64)>,
    moment: (Bytes, u64),
}

/// Moments that are remembered.
pub(crate) const RECENT: usize = 32;

impl Tracked {
    pub(crate) fn new(reading: Reading, policy: &Params) -> Self {
        Self {
            reading,
            seen: 0,
            size: reading.size,
            cookie: reading.cookie,
            policy: Policy::new(policy),
            before: None,
            set: None,
            most: GREATEST,
            refusal: None,
            wanted: reading.size.unwrap_or(0),
            reason: Reason::Hold,
            curbed: false,
            drops: Split::default(),
            changes: 0,
            peak_occupied: reading.occupied,
            peak_size: reading.size.unwrap_or(0),
            need: Meter::default(),
            recent: VecDeque::with_capacity(RECENT),
            moment: (0, 0),
        }
    }

    /// Takes in what the kernel tells; gives the packets dropped since the last time, for any reason.
    pub(crate) fn update(&mut self, reading: Reading, pass: u64) -> u64 {
        let dropped = u64::from(reading.drops.wrapping_sub(self.reading.drops));
        self.reading = reading;
        self.seen = pass;
        if reading.size.is_some() {
            self.size = reading.size;
        }
        self.cookie = self.cookie.or(reading.cookie);
        self.peak_occupied = self.peak_occupied.max(reading.occupied);
        self.peak_size = self.peak_size.max(self.size.unwrap_or(0));
        self.moment.0 = self.moment.0.max(reading.occupied);
        self.moment.1 += dropped;
        dropped
    }

    /// The program has set a size of its own, which is what it is to have when we are done.
    pub(crate) fn program_has_set(&mut self) -> bool {
        self.set.is_some() && self.size.is_some() && self.set != self.size
    }

    /// Least size: never below what the program has asked for.
    pub(crate) fn least(&self) -> Bytes {
        let size = self.size.unwrap_or(0);
        self.before.map_or(size, |before| before.size)
    }

    /// Asks the policy. `None` if the size is not known.
    pub(crate) fn decide(&mut self, now: Nanos, memory: Memory) -> Option<Bytes> {
        let size = self.size?;
        // A quarter of what the program has is little: the kernel may count that much late (`udp_rmem_release`).
        let little = self.least() / 4;
        self.need.look(now, size, self.reading.occupied, self.drops.buffer, little);
        let decision = self.policy.observe(&Observation {
            now,
            size,
            occupied: self.reading.occupied,
            reserved: 0,
            needed: 0,
            discarded: self.drops.buffer.saturating_mul(PACKET),
            processed: None,
            memory: Some(memory),
        });
        self.reason = decision.reason;
        // The kernel gives even sizes only.
        Some((decision.size.clamp(self.least(), self.most.max(self.least())) + 1) & !1)
    }

    /// A moment is over.
    pub(crate) fn turn(&mut self) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(self.moment);
        self.moment = (self.reading.occupied, 0);
    }
}
