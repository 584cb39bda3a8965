//! An indexed heap of deadlines with four children a node. [`crate::Deadlines`] uses it for the
//! deadlines that do not fit into its slots.

use sojourn_units::Nanos;

/// A deadline in the upper 64 bits, its entity in the lower 32.
pub type Key = u128;

/// Four children of a node: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([Key; ARITY]);

const ARITY: usize = 4;
const ABSENT: u32 = u32::MAX;
/// The key of an unused node, greater than the key of any deadline.
pub const VACANT: Key = Key::MAX;
/// The root's number. The children of node `n` are the four nodes of group `n - 2`, so the parent
/// of group `g` is node `g + 2`.
const ROOT: usize = 3;

/// Entities' deadlines, the earliest first.
#[derive(Clone, Debug)]
pub struct Heap {
    /// Keys in heap order.
    groups: Vec<Group>,
    /// Number after the last node.
    end: usize,
    /// Number of the node with each entity's key, or `ABSENT`.
    place: Vec<u32>,
}

/// Returns the key of an entity's deadline.
pub fn key(at: Nanos, entity: u32) -> Key {
    u128::from(at) << 64 | u128::from(entity)
}

/// Returns the deadline and the entity of a key.
pub fn split(key: Key) -> (Nanos, u32) {
    ((key >> 64) as Nanos, key as u32)
}

impl Heap {
    /// Returns an empty heap for entities 0 to `entities` - 1.
    pub fn new(entities: u32) -> Self {
        let groups = Vec::with_capacity(entities as usize / ARITY + 2);
        let mut queue = Self { groups, end: ROOT, place: vec![ABSENT; entities as usize] };
        queue.groups.push(Group([VACANT; ARITY]));
        queue
    }

    /// Extends the heap to entities 0 to `entities` - 1.
    pub fn grow(&mut self, entities: u32) {
        if self.place.len() < entities as usize {
            self.place.resize(entities as usize, ABSENT);
        }
    }

    fn node(&self, n: usize) -> Key {
        self.groups[n / ARITY].0[n % ARITY]
    }

    #[inline]
    fn put(&mut self, n: usize, key: Key) {
        self.groups[n / ARITY].0[n % ARITY] = key;
        self.place[key as u32 as usize] = n as u32;
    }

    /// Returns the earliest key, or [`VACANT`].
    pub fn first(&self) -> Key {
        self.node(ROOT)
    }

    /// Sets the deadline of `entity`.
    #[inline]
    pub fn set(&mut self, entity: u32, at: Nanos) {
        let key = key(at, entity);
        match self.place[entity as usize] {
            ABSENT => {
                let place = self.end;
                self.end += 1;
                if place / ARITY == self.groups.len() {
                    self.groups.push(Group([VACANT; ARITY]));
                }
                self.rise(place, key);
            }
            place => {
                let place = place as usize;
                let old = self.node(place);
                if key < old {
                    self.rise(place, key);
                } else if key > old {
                    self.sink(place, key);
                }
            }
        }
    }

    /// Removes the deadline of `entity`, if it has one.
    #[inline]
    pub fn clear(&mut self, entity: u32) {
        let place = self.place[entity as usize];
        if place == ABSENT {
            return;
        }
        self.place[entity as usize] = ABSENT;
        let place = place as usize;
        self.end -= 1;
        let last = self.node(self.end);
        self.groups[self.end / ARITY].0[self.end % ARITY] = VACANT;
        if place < self.end {
            if place > ROOT && last < self.node(place / ARITY + 2) {
                self.rise(place, last);
            } else {
                self.sink(place, last);
            }
        }
    }

    /// Moves the free node `place` towards the root until `key` fits there, and stores `key`.
    #[inline]
    fn rise(&mut self, mut place: usize, key: Key) {
        while place > ROOT {
            let parent = place / ARITY + 2;
            let other = self.node(parent);
            if other <= key {
                break;
            }
            self.put(place, other);
            place = parent;
        }
        self.put(place, key);
    }

    /// Moves the free node `place` towards the leaves until `key` fits there, and stores `key`.
    #[inline]
    fn sink(&mut self, mut place: usize, key: Key) {
        while let Some(&Group([a, b, c, d])) = self.groups.get(place - 2) {
            // Branches that compare the children would often be mispredicted, so the minimum is
            // selected in two rounds that need no branch.
            let (left, left_at) = if b < a { (b, 1) } else { (a, 0) };
            let (right, right_at) = if d < c { (d, 3) } else { (c, 2) };
            let (least, at) = if right < left { (right, right_at) } else { (left, left_at) };
            if least >= key {
                break;
            }
            self.put(place, least);
            place = (place - 2) * ARITY + at;
        }
        self.put(place, key);
    }
}
