//! A schedule of one application's events, in the order of time and then of addition.

use sojourn_units::Nanos;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Events that are due at known times.
#[derive(Clone, Debug)]
pub struct Schedule<E> {
    added: u64,
    due: BinaryHeap<Reverse<Due<E>>>,
}

#[derive(Clone, Debug)]
struct Due<E> {
    at: Nanos,
    number: u64,
    event: E,
}

impl<E> Due<E> {
    fn key(&self) -> (Nanos, u64) {
        (self.at, self.number)
    }
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Due<E> {}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Due<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E> Default for Schedule<E> {
    fn default() -> Self {
        Self { added: 0, due: BinaryHeap::new() }
    }
}

impl<E> Schedule<E> {
    /// Adds an event.
    pub fn add(&mut self, at: Nanos, event: E) {
        self.added += 1;
        self.due.push(Reverse(Due { at, number: self.added, event }));
    }

    /// Returns the time of the next event; `None` without events.
    pub fn next_at(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse(due)| due.at)
    }

    /// Removes the next event if it is due at or before `now`, and returns its time and the event.
    pub fn take_due(&mut self, now: Nanos) -> Option<(Nanos, E)> {
        if self.next_at()? > now {
            return None;
        }
        self.due.pop().map(|Reverse(due)| (due.at, due.event))
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn events_leave_by_time_and_then_as_added() {
        let mut schedule = Schedule::default();
        for (at, event) in [(5, 'b'), (3, 'a'), (5, 'c'), (9, 'd')] {
            schedule.add(at, event);
        }
        assert_eq!(schedule.next_at(), Some(3));
        let taken: Vec<_> = std::iter::from_fn(|| schedule.take_due(5)).collect();
        assert_eq!(taken, [(3, 'a'), (5, 'b'), (5, 'c')]);
        assert_eq!(schedule.next_at(), Some(9));
    }
}
