//! The event queue: one deadline an entity, in an indexed heap of four children a node.
//!
//! Entities (links, connections, sources, probes) are numbered; each has at most one entry, moved in
//! place when its deadline changes. Equal deadlines leave in the order of the entities' numbers, so
//! the order of events is total: by time, then by entity.

use sojourn_units::Nanos;

/// Entities' deadlines, the earliest first.
#[derive(Clone, Debug, Default)]
pub struct Deadlines {
    /// Keys in heap order: deadline in the upper 64 bits, entity in the lower 32.
    heap: Vec<u128>,
    /// Where each entity's key stands in `heap`, or `ABSENT`.
    place: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;
const ARITY: usize = 4;

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
        Self { heap: Vec::with_capacity(entities as usize), place: vec![ABSENT; entities as usize] }
    }

    /// Makes room for entities up to `entities` - 1.
    pub fn grow(&mut self, entities: u32) {
        if self.place.len() < entities as usize {
            self.place.resize(entities as usize, ABSENT);
        }
    }

    /// The earliest deadline and its entity.
    #[inline]
    pub fn first(&self) -> Option<(Nanos, u32)> {
        self.heap.first().map(|&key| split(key))
    }

    /// The deadline of `entity`.
    #[inline]
    pub fn get(&self, entity: u32) -> Option<Nanos> {
        match self.place[entity as usize] {
            ABSENT => None,
            place => Some(split(self.heap[place as usize]).0),
        }
    }

    /// Sets the deadline of `entity`.
    #[inline]
    pub fn set(&mut self, entity: u32, at: Nanos) {
        let key = key(at, entity);
        match self.place[entity as usize] {
            ABSENT => {
                self.heap.push(key);
                self.rise(self.heap.len() - 1, key);
            }
            place => {
                let place = place as usize;
                let old = self.heap[place];
                if key < old {
                    self.rise(place, key);
                } else if key > old {
                    self.sink(place, key);
                }
            }
        }
    }

    /// Sets the deadline of `entity` unless it has an earlier one.
    #[inline]
    pub fn set_earlier(&mut self, entity: u32, at: Nanos) {
        if self.get(entity).is_none_or(|now| at < now) {
            self.set(entity, at);
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
        let last = self.heap.pop().expect("the entity has an entry");
        if place < self.heap.len() {
            if last < self.heap[place] {
                self.rise(place, last);
            } else {
                self.sink(place, last);
            }
        }
    }

    /// Moves the hole at `place` towards the root until `key` fits, and puts it there.
    #[inline]
    fn rise(&mut self, mut place: usize, key: u128) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            let other = self.heap[parent];
            if other <= key {
                break;
            }
            self.heap[place] = other;
            self.place[other as u32 as usize] = place as u32;
            place = parent;
        }
        self.heap[place] = key;
        self.place[key as u32 as usize] = place as u32;
    }

    /// Moves the hole at `place` towards the leaves until `key` fits, and puts it there.
    #[inline]
    fn sink(&mut self, mut place: usize, key: u128) {
        let n = self.heap.len();
        loop {
            let first = place * ARITY + 1;
            if first >= n {
                break;
            }
            let (mut least, mut at) = (self.heap[first], first);
            for child in first + 1..(first + ARITY).min(n) {
                let other = self.heap[child];
                if other < least {
                    (least, at) = (other, child);
                }
            }
            if least >= key {
                break;
            }
            self.heap[place] = least;
            self.place[least as u32 as usize] = place as u32;
            place = at;
        }
        self.heap[place] = key;
        self.place[key as u32 as usize] = place as u32;
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
                match action {
                    0 => {
                        queue.clear(entity);
                        if let Some(t) = old.take() { model.remove(&(t, entity)); }
                    }
                    1 => {
                        queue.set_earlier(entity, time);
                        if old.is_none_or(|t| time < t) {
                            if let Some(t) = old.replace(time) { model.remove(&(t, entity)); }
                            model.insert((time, entity));
                        }
                    }
                    _ => {
                        queue.set(entity, time);
                        if let Some(t) = old.replace(time) { model.remove(&(t, entity)); }
                        model.insert((time, entity));
                    }
                }
                prop_assert_eq!(queue.first(), model.first().copied());
                prop_assert_eq!(queue.get(entity), at[entity as usize]);
            }
        }
    }
}
