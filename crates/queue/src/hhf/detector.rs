//! Detection of heavy hitters: a multistage filter of counters, and the table of detected flows.
//!
//! Source: Estan, Varghese, *New Directions in Traffic Measurement and Accounting*, SIGCOMM 2002
//! (multistage filters with shielding and conservative update); tc-hhf(8).

const STAGES: usize = 4;
/// Number of counters in a stage, and number of slots in the table.
const SIZE: usize = 1 << BITS;
const BITS: u32 = 10;
const NONE: u32 = u32::MAX;

/// A heavy hitter: a flow in the table.
#[derive(Clone, Copy, Debug)]
struct Hitter {
    hash: u32,
    /// Tick of the flow's last packet.
    hit: u64,
    /// Next heavy hitter in the same slot, or next entry in the list of free entries; `NONE` at the
    /// end.
    next: u32,
}

/// Limits that make a flow a heavy hitter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    /// Time in ticks after which all counters are set to 0.
    pub reset: u64,
    /// Time in ticks without packets after which a flow is no longer a heavy hitter.
    pub evict: u64,
    /// Number of bytes that a flow's counters must exceed in all stages.
    pub admit_bytes: u32,
    /// Maximum number of heavy hitters in the table.
    pub hh_limit: u32,
}

/// Multistage filter, and the table of heavy hitters.
#[derive(Clone, Debug)]
pub(super) struct Detector {
    /// Number of bytes counted by each counter of each stage.
    counters: [[u32; SIZE]; STAGES],
    /// Tick at which the counters were last set to 0.
    reset_at: u64,
    hitters: Vec<Hitter>,
    /// First heavy hitter of each slot; `NONE` in an empty slot.
    slots: [u32; SIZE],
    free: u32,
    /// Number of heavy hitters in the table.
    pub current: u32,
    /// Number of flows that have become heavy hitters.
    pub total: u64,
    /// Number of times that a flow did not become a heavy hitter because the table was full.
    pub refused: u64,
}

/// Returns the index of a flow's counter in each stage: the first three parts of ten bits of its
/// hash, and the exclusive or of all four parts.
fn places(hash: u32) -> [usize; STAGES] {
    let part = |n: u32| (hash >> (n * BITS)) as usize & (SIZE - 1);
    [part(0), part(1), part(2), part(0) ^ part(1) ^ part(2) ^ part(3)]
}

impl Detector {
    pub fn new(now: u64) -> Self {
        Self {
            counters: [[0; SIZE]; STAGES],
            reset_at: now,
            hitters: Vec::new(),
            slots: [NONE; SIZE],
            free: NONE,
            current: 0,
            total: 0,
            refused: 0,
        }
    }

    /// Counts a packet of `length` bytes at tick `now`, and returns whether its flow is a heavy
    /// hitter.
    pub fn is_heavy(&mut self, hash: u32, length: u32, now: u64, constants: &Constants) -> bool {
        if self.reset_at + constants.reset < now {
            self.counters.iter_mut().for_each(|stage| stage.fill(0));
            self.reset_at = now;
        }
        if self.find(hash, now, constants.evict) {
            return true;
        }
        let places = places(hash);
        let stages = self.counters.iter_mut().zip(places).map(|(stage, place)| &mut stage[place]);
        let least = stages.map(|counter| *counter).min().unwrap_or_default().saturating_add(length);
        if least > constants.admit_bytes {
            // The counters do not grow with the packets of heavy hitters (shielding).
            return self.admit(hash, now, constants.evict, constants.hh_limit);
        }
        for (stage, place) in self.counters.iter_mut().zip(places) {
            stage[place] = stage[place].max(least);
        }
        false
    }

    /// Returns whether the flow is in the table. Expired entries before it in the slot are freed,
    /// except the last one of the slot, which `admit` reuses.
    fn find(&mut self, hash: u32, now: u64, evict: u64) -> bool {
        let slot = hash as usize & (SIZE - 1);
        let (mut before, mut at) = (NONE, self.slots[slot]);
        while let Some(Hitter { hash: own, hit, next }) = self.hitters.get(at as usize).copied() {
            if hit + evict < now {
                if next == NONE {
                    return false;
                }
                match self.hitters.get_mut(before as usize) {
                    Some(before) => before.next = next,
                    None => self.slots[slot] = next,
                }
                self.hitters[at as usize].next = std::mem::replace(&mut self.free, at);
                self.current -= 1;
            } else if own == hash {
                self.hitters[at as usize].hit = now;
                return true;
            } else {
                before = at;
            }
            at = next;
        }
        false
    }

    /// Adds a flow to the table and returns true; returns false if the table is full.
    fn admit(&mut self, hash: u32, now: u64, evict: u64, limit: u32) -> bool {
        let slot = hash as usize & (SIZE - 1);
        let (mut last, mut at) = (NONE, self.slots[slot]);
        while let Some(hitter) = self.hitters.get_mut(at as usize) {
            if hitter.hit + evict < now {
                (hitter.hash, hitter.hit) = (hash, now);
                self.total += 1;
                return true;
            }
            (last, at) = (at, hitter.next);
        }
        if self.current >= limit {
            self.refused += 1;
            return false;
        }
        let new = Hitter { hash, hit: now, next: NONE };
        let place = if self.free == NONE {
            self.hitters.push(new);
            self.hitters.len() as u32 - 1
        } else {
            let place = self.free;
            self.free = std::mem::replace(&mut self.hitters[place as usize], new).next;
            place
        };
        match self.hitters.get_mut(last as usize) {
            Some(last) => last.next = place,
            None => self.slots[slot] = place,
        }
        self.current += 1;
        self.total += 1;
        true
    }
}
