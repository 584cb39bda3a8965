//! The event queue: one deadline for each entity, in order of time and then of the entities'
//! numbers.
//!
//! Entities (such as links, connections and applications) are numbered. Each has at most one entry,
//! which is moved when its deadline changes. Equal deadlines leave in the order of the entities'
//! numbers, so the order of events is total.
//!
//! Near deadlines are in a calendar (Brown, "Calendar queues", 1988): slots of equal width in time,
//! each with an ordered list. The width follows the mean distance between events, so lists are
//! short. A deadline beyond the last slot, or one whose insertion would pass many list entries,
//! goes to a [`Heap`]. The earliest deadline is the earlier of the calendar's and the heap's first.
//! The width and the choice between calendar and heap affect only the speed, never the order.

use crate::heap::{Heap, Key, VACANT, key, split};
use sojourn_units::{NEVER, Nanos};

/// The deadline of an entity, and its neighbours in a slot's list.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The deadline, or [`NEVER`].
    at: Nanos,
    /// The next entity in the list, or [`NONE`].
    next: u32,
    /// The previous entity in the list; for the first, the last. [`NONE`] without a deadline,
    /// [`HEAPED`] in the heap.
    before: u32,
}

const IDLE: Entry = Entry { at: NEVER, next: NONE, before: NONE };
const NONE: u32 = u32::MAX;
/// The entity's deadline is in the heap.
const HEAPED: u32 = u32::MAX - 1;

/// Maximum number of list entries that an insertion compares; then the deadline goes to the heap.
const PATIENCE: u32 = 12;
/// Minimum number of passed deadlines between two adaptations of the slot width. As many deadlines
/// as entities must also pass, so that the cost of an adaptation, which moves all entries, stays
/// small per deadline.
const ROUND: usize = 1024;
const FEWEST_SLOTS: usize = 64;
const MOST_SLOTS: usize = 1 << 18;

/// Entities' deadlines, the earliest first.
#[derive(Clone, Debug)]
pub struct Deadlines {
    /// The earliest deadline, or [`NEVER`].
    first_at: Nanos,
    /// The entity with the earliest deadline, which is the first of slot `base` or of the heap.
    first: u32,
    /// Binary logarithm of the slots' width in nanoseconds.
    width: u32,
    /// Number of the earliest slot in use, counted from time 0. It also contains earlier deadlines.
    base: u64,
    /// Number of slots minus 1.
    mask: u64,
    entries: Vec<Entry>,
    /// The first entity in each slot, or [`NONE`].
    slots: Vec<u32>,
    occupied: Occupied,
    heap: Heap,
    /// Number of deadlines that have passed since the last adaptation of the width.
    passed: usize,
    /// The earliest deadline at the last adaptation of the width.
    looked: Nanos,
}

impl Deadlines {
    /// Returns an event queue for entities 0 to `entities` - 1, without deadlines.
    pub fn new(entities: u32) -> Self {
        let slots = slots_for(entities);
        Self {
            first_at: NEVER,
            first: NONE,
            width: 10,
            base: 0,
            mask: slots as u64 - 1,
            entries: vec![IDLE; entities as usize],
            slots: vec![NONE; slots],
            occupied: Occupied::new(slots),
            heap: Heap::new(entities),
            passed: 0,
            looked: 0,
        }
    }

    /// Extends the event queue to entities 0 to `entities` - 1.
    pub fn grow(&mut self, entities: u32) {
        if self.entries.len() < entities as usize {
            self.entries.resize(entities as usize, IDLE);
            self.heap.grow(entities);
            // Entities are added one by one, so each rebuild at least doubles the number of slots.
            if slots_for(entities) > 2 * self.slots.len() {
                self.rebuild(slots_for(entities), self.width);
            }
        }
    }

    /// Returns the earliest deadline and its entity; `None` without deadlines.
    pub fn first(&self) -> Option<(Nanos, u32)> {
        (self.first_at != NEVER).then_some((self.first_at, self.first))
    }

    /// Returns the deadline of `entity`; `None` without one.
    pub fn get(&self, entity: u32) -> Option<Nanos> {
        Some(self.entries[entity as usize].at).filter(|at| *at != NEVER)
    }

    /// Removes the deadline of `entity`, if it has one.
    pub fn clear(&mut self, entity: u32) {
        self.set(entity, NEVER);
    }

    /// Sets the deadline of `entity`, or removes it if `at` is [`NEVER`].
    #[inline]
    pub fn set(&mut self, entity: u32, at: Nanos) {
        if self.entries[entity as usize].at != at {
            self.move_to(entity, at);
        }
    }

    #[inline(never)]
    fn move_to(&mut self, entity: u32, at: Nanos) {
        let old = self.entries[entity as usize];
        let was_first = entity == self.first && self.first_at != NEVER;
        match old.before {
            NONE => {}
            HEAPED => self.heap.clear(entity),
            _ => self.unlink(entity, old),
        }
        if at == NEVER {
            self.entries[entity as usize] = IDLE;
        } else {
            if (at, entity) < (self.first_at, self.first) {
                (self.first_at, self.first) = (at, entity);
                self.base = self.base.max(at >> self.width);
            }
            self.link(entity, at);
        }
        if was_first {
            self.find_first();
        }
    }

    /// Returns the key of an entity's deadline, by which lists are ordered.
    fn key(&self, entity: u32) -> Key {
        key(self.entries[entity as usize].at, entity)
    }

    fn slot(&self, number: u64) -> usize {
        (number.max(self.base) & self.mask) as usize
    }

    /// Removes a deadline from its slot's list.
    #[inline]
    fn unlink(&mut self, entity: u32, old: Entry) {
        let slot = self.slot(old.at >> self.width);
        let head = self.slots[slot];
        if head != entity {
            self.entries[old.before as usize].next = old.next;
            let after = if old.next == NONE { head } else { old.next };
            self.entries[after as usize].before = old.before;
        } else if old.next == NONE {
            self.slots[slot] = NONE;
            self.occupied.clear(slot);
        } else {
            self.slots[slot] = old.next;
            self.entries[old.next as usize].before = old.before;
        }
    }

    /// Puts a deadline into its slot, or into the heap.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "one of the two callers runs for every packet")]
    fn link(&mut self, entity: u32, at: Nanos) {
        let number = at >> self.width;
        if number > self.base + self.mask {
            return self.put_off(entity, at);
        }
        let slot = self.slot(number);
        let head = self.slots[slot];
        let mut entry = Entry { at, next: NONE, before: entity };
        if head == NONE {
            self.slots[slot] = entity;
            self.occupied.set(slot);
            self.entries[entity as usize] = entry;
            return;
        }
        let new = key(at, entity);
        let last = self.entries[head as usize].before;
        entry.before = last;
        if new > self.key(last) {
            self.entries[last as usize].next = entity;
        } else if new < self.key(head) {
            entry.next = head;
            self.slots[slot] = entity;
        } else {
            return self.link_behind(head, entity, at);
        }
        self.entries[head as usize].before = entity;
        self.entries[entity as usize] = entry;
    }

    /// Inserts a deadline after `before` and before the last entry of its slot's list; into the
    /// heap if that takes more than [`PATIENCE`] comparisons.
    #[inline(never)]
    fn link_behind(&mut self, mut before: u32, entity: u32, at: Nanos) {
        for _ in 0..PATIENCE {
            let next = self.entries[before as usize].next;
            if self.key(next) > key(at, entity) {
                self.entries[before as usize].next = entity;
                self.entries[next as usize].before = entity;
                self.entries[entity as usize] = Entry { at, next, before };
                return;
            }
            before = next;
        }
        self.put_off(entity, at);
    }

    #[inline(never)]
    fn put_off(&mut self, entity: u32, at: Nanos) {
        self.heap.set(entity, at);
        self.entries[entity as usize] = Entry { at, next: NONE, before: HEAPED };
    }

    /// Finds the new earliest deadline, because the previous one was moved or removed.
    #[inline]
    fn find_first(&mut self) {
        let mut first = self.heap.first();
        let head = self.slots[self.slot(0)];
        if head != NONE {
            first = first.min(self.key(head));
        } else if let Some(slot) = self.occupied.next(self.slot(0)) {
            first = first.min(self.key(self.slots[slot]));
        }
        (self.first_at, self.first) = split(first);
        if first == VACANT {
            return;
        }
        self.base = self.base.max(self.first_at >> self.width);
        self.passed += 1;
        if self.passed >= ROUND.max(self.entries.len()) {
            self.look();
        }
    }

    /// Adapts the slot width to the mean distance of the deadlines that have passed.
    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        let distance = self.first_at.saturating_sub(self.looked) / self.passed as u64;
        self.passed = 0;
        self.looked = self.first_at;
        let width = (distance | 1).ilog2() + 1;
        if width.abs_diff(self.width) > 1 {
            self.rebuild(self.slots.len(), width);
        }
    }

    #[cold]
    fn rebuild(&mut self, slots: usize, width: u32) {
        self.slots.resize(slots, NONE);
        self.slots.fill(NONE);
        self.occupied.clear_all(slots);
        self.mask = slots as u64 - 1;
        self.width = width;
        self.base = if self.first_at == NEVER { 0 } else { self.first_at >> width };
        for entity in 0..self.entries.len() as u32 {
            let Entry { at, before, .. } = self.entries[entity as usize];
            if before != NONE && before != HEAPED {
                self.link(entity, at);
            }
        }
    }
}

/// Returns the number of slots: the least power of 2 that is at least twice `entities`, within
/// [`FEWEST_SLOTS`] and [`MOST_SLOTS`].
fn slots_for(entities: u32) -> usize {
    (2 * entities as usize).next_power_of_two().clamp(FEWEST_SLOTS, MOST_SLOTS)
}

/// The slots in use, as a tree of bits: one bit for each slot, one for each nonzero word of
/// `slots`, and one for each nonzero word of `words`.
#[derive(Clone, Debug)]
struct Occupied {
    slots: Vec<u64>,
    words: Vec<u64>,
    groups: u64,
}

impl Occupied {
    fn new(slots: usize) -> Self {
        let words = slots.div_ceil(64);
        Self { slots: vec![0; words], words: vec![0; words.div_ceil(64)], groups: 0 }
    }

    /// Clears all bits for `slots` slots, which are not fewer than before.
    fn clear_all(&mut self, slots: usize) {
        let words = slots.div_ceil(64);
        self.slots.resize(words, 0);
        self.slots.fill(0);
        self.words.resize(words.div_ceil(64), 0);
        self.words.fill(0);
        self.groups = 0;
    }

    #[inline]
    fn set(&mut self, slot: usize) {
        let (word, group) = (slot / 64, slot / 4096);
        let bits = &mut self.slots[word];
        if *bits == 0 {
            self.words[group] |= 1 << (word % 64);
            self.groups |= 1 << group;
        }
        *bits |= 1 << (slot % 64);
    }

    #[inline]
    fn clear(&mut self, slot: usize) {
        let (word, group) = (slot / 64, slot / 4096);
        self.slots[word] &= !(1 << (slot % 64));
        if self.slots[word] == 0 {
            self.words[group] &= !(1 << (word % 64));
            if self.words[group] == 0 {
                self.groups &= !(1 << group);
            }
        }
    }

    /// Returns the first slot in use from `from` on; without one, the first slot in use.
    #[inline]
    fn next(&self, from: usize) -> Option<usize> {
        let word = self.slots[from / 64] >> (from % 64);
        if word != 0 {
            return Some(from + word.trailing_zeros() as usize);
        }
        let (word, group) = (from / 64, from / 4096);
        let word = if let Some(bit) = above(self.words[group], word % 64) {
            64 * group + bit
        } else {
            let group = above(self.groups, group).or_else(|| lowest(self.groups))?;
            64 * group + lowest(self.words[group])?
        };
        Some(64 * word + lowest(self.slots[word])?)
    }
}

fn lowest(bits: u64) -> Option<usize> {
    (bits != 0).then(|| bits.trailing_zeros() as usize)
}

/// Returns the lowest bit that is set above bit `n`.
fn above(bits: u64, n: usize) -> Option<usize> {
    lowest(bits & (u64::MAX << 1) << n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::{BTreeSet, BinaryHeap};

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

    #[test]
    fn many_at_one_time_leave_by_entity() {
        let mut queue = Deadlines::new(1000);
        (0..1000).for_each(|i| queue.set(i * 617 % 1000, 5_000_000));
        for entity in 0..1000 {
            assert_eq!(queue.first(), Some((5_000_000, entity)));
            queue.set(entity, 9_000_000 + u64::from(entity % 7));
        }
        assert_eq!(queue.first(), Some((9_000_000, 0)));
    }

    /// Compares the event queue with a heap in the steps of a simulation: the earliest deadline is
    /// set anew, by distances of several kinds, and other deadlines are set or removed. An entry of
    /// the heap is valid only if it is the latest one of its entity.
    fn compare_with_heap(distances: &[(u64, u32, u8)], entities: u32, scale: u64) {
        let mut queue = Deadlines::new(entities / 2);
        queue.grow(entities);
        let mut model = BinaryHeap::new();
        let mut latest = vec![None; entities as usize];
        let (mut now, mut steps) = (1_000_000_000_u64, 0);
        for (distance, entity, kind) in distances.iter().cycle().take(6_000) {
            let entity = (entity + steps) % entities;
            steps += 1;
            let first = loop {
                match model.peek() {
                    Some(&Reverse((at, entity))) if latest[entity as usize] != Some(at) => {
                        model.pop()
                    }
                    first => break first.map(|Reverse(first)| *first),
                };
            };
            assert_eq!(queue.first(), first);
            let at = match kind % 4 {
                0 => now + distance % (4 * scale),
                1 => now + scale,
                2 => now + distance * scale,
                _ => now,
            };
            if let Some((due, first)) = first.filter(|_| kind / 4 % 4 != 0) {
                now = due;
                let at = at.max(now);
                queue.set(first, at);
                latest[first as usize] = Some(at);
                model.push(Reverse((at, first)));
            } else if kind / 16 == 0 {
                queue.clear(entity);
                latest[entity as usize] = None;
            } else {
                queue.set(entity, at);
                latest[entity as usize] = Some(at);
                model.push(Reverse((at, entity)));
            }
            assert_eq!(queue.get(entity), latest[entity as usize]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn behaves_like_a_heap(
            distances in proptest::collection::vec((0u64..100_000, 0u32..1000, 0u8..64), 1..80),
            entities in 2u32..900,
            scale in 0u32..20,
        ) {
            compare_with_heap(&distances, entities, 1 << scale);
        }
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
