//! The heap that finds the longest queue, which loses packets when the limit of memory is exceeded.
//!
//! The heap has an entry for every queue of eight tins. It is put in order at the first overflow,
//! and kept in order until 65535 packets are sent without another overflow.
//!
//! `sift_down` moves an entry down. After each step it compares the next children with the length
//! of the child that has moved up, not with the length of the entry itself. Therefore the order
//! below the top is only approximate. The kernel does the same; the order determines which packets
//! are dropped.

use super::tins::{QUEUES, TINS};

const ENTRIES: usize = QUEUES * TINS;

/// Number of packets, sent without another overflow, for which the heap is kept in order.
const LIVE: u16 = u16::MAX;

/// Returns the number of a queue in the heap.
fn number(tin: usize, queue: usize) -> usize {
    queue * TINS + tin
}

/// A heap of queues by backlog. `backlog` arguments return the bytes of a tin's queue.
#[derive(Clone, Debug)]
pub struct Heap {
    /// Number of the queue at each position of the heap.
    entries: Vec<u16>,
    /// Position in the heap of each queue.
    places: Vec<u16>,
    /// Packets to send before the heap is no longer kept in order; 0 if it is not in order.
    left: u16,
}

impl Heap {
    /// Returns a heap that is not in order.
    pub fn new() -> Self {
        let numbers: Vec<u16> = (0..ENTRIES as u16).collect();
        Self { entries: numbers.clone(), places: numbers, left: 0 }
    }

    /// Returns whether the heap is kept in order.
    pub fn is_live(&self) -> bool {
        self.left > 0
    }

    /// Puts the heap in order if it is not, and restarts the count of packets.
    pub fn wake(&mut self, backlog: impl Fn(usize, usize) -> u64) {
        if self.left == 0 {
            for place in (0..ENTRIES / 2).rev() {
                self.sift_down(place, &backlog);
            }
        }
        self.left = LIVE;
    }

    /// Marks the heap as not in order, after its top proved to be an empty queue.
    pub fn give_up(&mut self) {
        self.left = 0;
    }

    /// Counts a sent packet.
    pub fn sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Returns tin and queue of the entry at the top.
    pub fn top(&self) -> (usize, usize) {
        let number = usize::from(self.entries[0]);
        (number % TINS, number / TINS)
    }

    /// Restores the order after a queue has grown.
    #[inline]
    pub fn grown(&mut self, tin: usize, queue: usize, backlog: impl Fn(usize, usize) -> u64) {
        if self.is_live() {
            self.sift_up(self.places[number(tin, queue)].into(), backlog);
        }
    }

    /// Restores the order after a queue has shrunk.
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
        /// Checks that a heap just put in order has the longest queue at the top, and that entries
        /// and positions agree.
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
