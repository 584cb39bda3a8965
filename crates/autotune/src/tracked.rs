//! State of one followed socket.

use crate::PACKET;
use crate::diag::Reading;
use crate::drops::Split;
use crate::need::Meter;
use crate::refusal::Refusal;
use crate::socket::{GREATEST, Setting};
use sojourn_buffer::{Memory, Observation, Params, Policy, Reason};
use sojourn_units::{Bytes, Nanos};
use std::collections::VecDeque;

/// A socket with its policy and its history.
#[derive(Debug)]
pub(crate) struct Tracked {
    /// Latest reading from the kernel.
    pub(crate) reading: Reading,
    /// Number of the pass in which this reading was taken.
    pub(crate) seen: u64,
    /// Current size of the receive buffer in bytes; `None` if unknown.
    pub(crate) size: Option<Bytes>,
    /// Cookie of the socket, which is unique among all sockets since the boot; `None` if unknown.
    pub(crate) cookie: Option<u64>,
    policy: Policy,
    /// Setting to restore at the end: that before the first change, or the one that the program has
    /// set since. `None` if the tuner has not changed the socket.
    pub(crate) before: Option<Setting>,
    /// Size that the tuner set last, in bytes; `None` if it has not set any.
    pub(crate) set: Option<Bytes>,
    /// Maximum size in bytes that this process may set.
    pub(crate) most: Bytes,
    /// Why the socket is only observed; `None` if it is tuned.
    pub(crate) refusal: Option<Refusal>,
    /// Size of the latest decision in bytes, after the division of the budget.
    pub(crate) wanted: Bytes,
    pub(crate) reason: Reason,
    /// Whether the budget limits the size to less than the policy wants.
    pub(crate) curbed: bool,
    /// Packets dropped since the tuner began to follow the socket.
    pub(crate) drops: Split,
    /// Number of changes of the size by the tuner.
    pub(crate) changes: u64,
    pub(crate) peak_occupied: Bytes,
    pub(crate) peak_size: Bytes,
    /// Meter of the size that would have prevented all drops.
    pub(crate) need: Meter,
    /// For each of the latest quarters of a second, newest last: largest memory of packets in
    /// bytes, and number of dropped packets.
    pub(crate) recent: VecDeque<(Bytes, u64)>,
    moment: (Bytes, u64),
}

/// Maximum number of stored moments.
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

    /// Stores a reading. Returns the number of packets dropped for any reason since the previous
    /// reading.
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

    /// Returns whether the program has set a size itself since the tuner's last change.
    pub(crate) fn program_has_set(&mut self) -> bool {
        self.set.is_some() && self.size.is_some() && self.set != self.size
    }

    /// Returns the minimum size in bytes, which is the original size.
    pub(crate) fn least(&self) -> Bytes {
        let size = self.size.unwrap_or(0);
        self.before.map_or(size, |before| before.size)
    }

    /// Calls the policy, and returns the size in bytes that it wants; `None` if the current size is
    /// unknown.
    pub(crate) fn decide(&mut self, now: Nanos, memory: Memory) -> Option<Bytes> {
        let size = self.size?;
        // A fill level of at most a quarter of the original size counts as empty, because the
        // kernel may release memory late (`udp_rmem_release`).
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
        // The kernel sets only even sizes.
        Some((decision.size.clamp(self.least(), self.most.max(self.least())) + 1) & !1)
    }

    /// Ends the current moment of the history.
    pub(crate) fn turn(&mut self) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(self.moment);
        self.moment = (self.reading.occupied, 0);
    }
}
