//! The detection of heavy hitters: counters in stages, and the flows whose counters were all high.
//!
//! Source: Estan, Varghese, *New Directions in Traffic Measurement and Accounting*, SIGCOMM 2002 (multistage filters
//! with shielding and conservative update); tc-hhf(8).

const STAGES: usize = 4;
/// Counters of a stage, and slots of the table.
const SIZE: usize = 1 << BITS;
const BITS: u32 = 10;
const NONE: u32 = u32::MAX;

/// A flow that is a heavy hitter.
#[derive(Clone, Copy, Debug)]
struct Hitter {
    hash: u32,
    /// Tick of its last packet.
    hit: u64,
    /// The hitter behind it in its slot, or in the list of free ones.
    next: u32,
}

/// The rule that makes a flow a heavy hitter; times are in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    /// After this span the counters begin anew.
    pub reset: u64,
    /// A hitter without packets for longer than this is none.
    pub evict: u64,
    /// Bytes that a flow's counters must exceed.
    pub admit_bytes: u32,
    /// Maximum number of heavy hitters in the table.
    pub hh_limit: u32,
}

/// The counters, and the table of heavy hitters.
#[derive(Clone, Debug)]
pub(super) struct Detector {
    /// Bytes of the packets that have passed each counter.
    counters: [[u32; SIZE]; STAGES],
    /// Tick at which the counters began.
    begun: u64,
    hitters: Vec<Hitter>,
    /// The first hitter of each slot.
    slots: [u32; SIZE],
    free: u32,
    /// Hitters in the table.
    pub current: u32,
    /// Flows that became hitters.
    pub total: u64,
    /// Flows that did not because the table was full.
    pub refused: u64,
}

/// The counter of a flow in each stage: parts of its hash of ten bits each, and the sum of all parts without carry.
fn places(hash: u32) -> [usize; STAGES] {
    let part = |n: u32| (hash >> (n * BITS)) as usize & (SIZE - 1);
    [part(0), part(1), part(2), part(0) ^ part(1) ^ part(2) ^ part(3)]
}

impl Detector {
    pub fn new(now: u64) -> Self {
        Self {
            counters: [[0; SIZE]; STAGES],
            begun: now,
            hitters: Vec::new(),
            slots: [NONE; SIZE],
            free: NONE,
            current: 0,
            total: 0,
            refused: 0,
        }
    }

    /// Whether a packet of `length` bytes, at tick `now`, is of a heavy hitter.
    pub fn is_heavy(&mut self, hash: u32, length: u32, now: u64, constants: &Constants) -> bool {
        if self.begun + constants.reset < now {
            self.counters.iter_mut().for_each(|stage| stage.fill(0));
            self.begun = now;
        }
        if self.meets(hash, now, constants.evict) {
            return true;
        }
        let places = places(hash);
        let stages = self.counters.iter_mut().zip(places).map(|(stage, place)| &mut stage[place]);
        let least = stages.map(|counter| *counter).min().unwrap_or_default().saturating_add(length);
        if least > constants.admit_bytes {
            // Its counters stay: they shield other flows from a hitter.
            return self.admit(hash, now, constants.evict, constants.hh_limit);
        }
        for (stage, place) in self.counters.iter_mut().zip(places) {
            stage[place] = stage[place].max(least);
        }
        false
    }

    /// Whether the flow is in the table. Hitters on the way whose time is over are taken out, but for the last one of
    /// the slot, whose place is used again.
    fn meets(&mut self, hash: u32, now: u64, evict: u64) -> bool {
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

    /// Takes a flow into the table, if there is room.
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
