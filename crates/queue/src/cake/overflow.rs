//! Which queue loses a packet when memory is short: the longest, by a heap.
//!
//! The heap has a place for every queue of every tin that there could be. It is put in order when it is
//! first needed, and kept so until long after.
//!
//! Sifting down compares with the value that was swapped up, not with the entry that went down, so below
//! the top the order is only roughly kept. That is the kernel's, and decides who is dropped.

use super::tins::{QUEUES, TINS};

const ENTRIES: usize = QUEUES * TINS;

/// After so many packets sent without an overflow it is left to itself.
const LIVE: u16 = u16::MAX;

/// Returns a queue of a tin as one number.
#[inline]
fn number(tin: usize, queue: usize) -> usize {
    queue * TINS + tin
}

/// The heap. Backlogs are asked for, by tin and queue.
#[derive(Clone, Debug)]
pub struct Heap {
    /// Numbers of queues by place.
    entries: Vec<u16>,
    /// Places by number of queue.
    places: Vec<u16>,
    /// Packets to send before the order is given up; 0 without an order.
    left: u16,
}

impl Heap {
    /// Returns a heap that is not in order yet.
    pub fn new() -> Self {
        let numbers: Vec<u16> = (0..ENTRIES as u16).collect();
        Self { entries: numbers.clone(), places: numbers, left: 0 }
    }

    /// Returns whether it is kept in order.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.left > 0
    }

    /// Puts it in order if it is not.
    pub fn wake(&mut self, backlog: impl Fn(usize, usize) -> u64) {
        if self.left == 0 {
            for place in (0..ENTRIES / 2).rev() {
                self.sift_down(place, &backlog);
            }
        }
        self.left = LIVE;
    }

    /// Its order has proved wrong.
    pub fn give_up(&mut self) {
        self.left = 0;
    }

    /// Records a sent packet.
    #[inline]
    pub fn sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Returns the tin and queue at the top.
    pub fn top(&self) -> (usize, usize) {
        let number = usize::from(self.entries[0]);
        (number % TINS, number / TINS)
    }

    /// Records that a queue has grown.
    #[inline]
    pub fn grown(&mut self, tin: usize, queue: usize, backlog: impl Fn(usize, usize) -> u64) {
        if self.is_live() {
            self.sift_up(self.places[number(tin, queue)].into(), backlog);
        }
    }

    /// Records that a queue has shrunk.
    #[inline]
    pub fn shrunk(&mut self, tin: usize, queue: usize, backlog: impl Fn(usize, usize) -> u64) {
        if self.is_live() {
            self.sift_down(self.places[number(tin, queue)].into(), &backlog);
        }
    }

    fn at(&self, place: usize, backlog: impl Fn(usize, usize) -> u64) -> u64 {
        let number = usize::from(self.entries[place]);
        backlog(number % TINS, number / TINS)
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.entries.swap(one, other);
        for place in [one, other] {
            self.places[usize::from(self.entries[place])] = place as u16;
        }
    }

    fn sift_down(&mut self, from: usize, backlog: &impl Fn(usize, usize) -> u64) {
        let mut place = from;
        let mut most = self.at(place, backlog);
        loop {
            let mut next = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < ENTRIES {
                    let bytes = self.at(child, backlog);
                    if bytes > most {
                        next = child;
                        most = bytes;
                    }
                }
            }
            if next == place {
                return;
            }
            self.swap(place, next);
            place = next;
        }
    }

    fn sift_up(&mut self, from: usize, backlog: impl Fn(usize, usize) -> u64) {
        let mut place = from;
        let bytes = self.at(place, &backlog);
        while place > 0 {
            let parent = (place - 1) / 2;
            if bytes <= self.at(parent, &backlog) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However loose the order below, a heap just put in order has the longest at the top, and
        /// entries and places always fit each other.
        #[test]
        fn the_longest_is_at_the_top(
            rounds in prop::collection::vec(
                prop::collection::vec((0..TINS, 0..QUEUES, 0u64..50), 1..40), 1..4
            )
        ) {
            let mut heap = Heap::new();
            let mut backlogs = vec![0; ENTRIES];
            for changes in rounds {
                for (tin, queue, bytes) in changes {
                    let before = std::mem::replace(&mut backlogs[number(tin, queue)], bytes);
                    let backlog = |tin, queue| backlogs[number(tin, queue)];
                    if bytes > before {
                        heap.grown(tin, queue, backlog);
                    } else {
                        heap.shrunk(tin, queue, backlog);
                    }
                }
                heap.give_up();
                let backlog = |tin, queue| backlogs[number(tin, queue)];
                heap.wake(backlog);
                let (tin, queue) = heap.top();
                prop_assert_eq!(Some(&backlog(tin, queue)), backlogs.iter().max());
                for (place, &entry) in heap.entries.iter().enumerate() {
                    prop_assert_eq!(usize::from(heap.places[usize::from(entry)]), place);
                }
            }
        }
    }
}
