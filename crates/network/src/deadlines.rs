//! The event queue: one deadline an entity, in an indexed heap of four children a node.
//!
//! Entities (links, connections, sources, probes) are numbered; each has at most one entry, moved in
//! place when its deadline changes. Equal deadlines leave in the order of the entities' numbers, so
//! the order of events is total: by time, then by entity.

use sojourn_units::Nanos;

/// Four children of a node: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Group([u128; ARITY]);

const ARITY: usize = 4;
const ABSENT: u32 = u32::MAX;
/// Later than any key, in places of the last group that are not in use.
const VACANT: u128 = u128::MAX;
/// The root's number; node `n` has the whole group `n - 2` as children, so `g + 2` is the parent of
/// group `g`.
const ROOT: usize = 3;

/// Entities' deadlines, the earliest first.
#[derive(Clone, Debug)]
pub struct Deadlines {
    /// Keys in heap order: deadline in the upper 64 bits, entity in the lower 32.
    groups: Vec<Group>,
    /// Number after the last node.
    end: usize,
    /// Where each entity's key stands, or `ABSENT`.
    place: Vec<u32>,
}

#[inline]
fn key(at: Nanos, entity: u32) -> u128 {
    u128::from(at) << 64 | u128::from(entity)
}

#[inline]
fn split(key: u128) -> (Nanos, u32) {
    ((key >> 64) as Nanos, key as u32)
}

impl Deadlines {
    /// A queue for entities 0 to `entities` - 1.
    pub fn new(entities: u32) -> Self {
        let groups = Vec::with_capacity(entities as usize / ARITY + 2);
        let mut queue = Self { groups, end: ROOT, place: vec![ABSENT; entities as usize] };
        queue.groups.push(Group([VACANT; ARITY]));
        queue
    }

    /// Makes room for entities up to `entities` - 1.
    pub fn grow(&mut self, entities: u32) {
        if self.place.len() < entities as usize {
            self.place.resize(entities as usize, ABSENT);
        }
    }

    #[inline]
    fn node(&self, n: usize) -> u128 {
        self.groups[n / ARITY].0[n % ARITY]
    }

    #[inline]
    fn put(&mut self, n: usize, key: u128) {
        self.groups[n / ARITY].0[n % ARITY] = key;
        self.place[key as u32 as usize] = n as u32;
    }

    /// The earliest deadline and its entity.
    #[inline]
    pub fn first(&self) -> Option<(Nanos, u32)> {
        let root = self.node(ROOT);
        (root != VACANT).then(|| split(root))
    }

    /// The deadline of `entity`.
    #[inline]
    pub fn get(&self, entity: u32) -> Option<Nanos> {
        match self.place[entity as usize] {
            ABSENT => None,
            place => Some(split(self.node(place as usize)).0),
        }
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

    /// Takes the deadline of `entity` away.
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

    /// Moves the hole at `place` towards the root until `key` fits, and puts it there.
    #[inline]
    fn rise(&mut self, mut place: usize, key: u128) {
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

    /// Moves the hole at `place` towards the leaves until `key` fits, and puts it there.
    #[inline]
    fn sink(&mut self, mut place: usize, key: u128) {
        while let Some(&Group([a, b, c, d])) = self.groups.get(place - 2) {
            // Which child is least is anyone's guess: two rounds without a jump.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ties_leave_by_entity() {
        let mut queue = Deadlines::new(8);
        for entity in [5, 2, 7, 0] {
            queue.set(entity, 100);
        }
        let mut order = Vec::new();
        while let Some((_, entity)) = queue.first() {
            order.push(entity);
            queue.clear(entity);
        }
        assert_eq!(order, [0, 2, 5, 7]);
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_set(
            steps in proptest::collection::vec((0u32..40, 0u64..100, 0u8..4), 1..400),
        ) {
            let mut queue = Deadlines::new(40);
            let mut model = BTreeSet::new();
            let mut at = [None; 40];
            for (entity, time, action) in steps {
                let old: &mut Option<u64> = &mut at[entity as usize];
                if action == 0 {
                    queue.clear(entity);
                    if let Some(t) = old.take() { model.remove(&(t, entity)); }
                } else {
                    queue.set(entity, time);
                    if let Some(t) = old.replace(time) { model.remove(&(t, entity)); }
                    model.insert((time, entity));
                }
                prop_assert_eq!(queue.first(), model.first().copied());
                prop_assert_eq!(queue.get(entity), at[entity as usize]);
            }
        }
    }
}
