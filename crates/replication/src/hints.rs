//! Hints: writes that a replica has missed, and that a coordinator keeps and delivers later.
//!
//! Source: Cassandra's `HintsService`, limited to its effects on latency. The coordinator keeps a
//! hint for each replica that it knows to be down, and for each replica that has not answered in
//! time. Hints are delivered in order, one after another, so that the replica is not overloaded.
//! Hints above a limit are discarded; Cassandra discards hints after a time window instead.

use super::NodeId;
use std::collections::{BTreeMap, VecDeque};

/// The hints of one coordinator.
#[derive(Clone, Debug)]
pub struct Hints<T> {
    of: BTreeMap<NodeId, VecDeque<T>>,
    held: usize,
    limit: usize,
    refused: u64,
}

impl<T> Hints<T> {
    /// Returns an empty set for at most `limit` hints.
    pub fn new(limit: usize) -> Self {
        Self { of: BTreeMap::new(), held: 0, limit, refused: 0 }
    }

    /// Stores a hint. Returns false and discards the hint if the limit is reached.
    pub fn keep(&mut self, replica: NodeId, hint: T) -> bool {
        if self.held >= self.limit {
            self.refused += 1;
            return false;
        }
        self.of.entry(replica).or_default().push_back(hint);
        self.held += 1;
        true
    }

    /// Removes and returns the next hint for a replica; `None` if there is no hint for it.
    pub fn take(&mut self, replica: NodeId) -> Option<T> {
        let queue = self.of.get_mut(&replica)?;
        let hint = queue.pop_front();
        if queue.is_empty() {
            self.of.remove(&replica);
        }
        self.held -= usize::from(hint.is_some());
        hint
    }

    /// Returns the number of stored hints.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns the number of hints that were discarded because the limit was reached.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_handed_over_in_order_and_bounded() {
        let mut hints = Hints::new(3);
        assert!(hints.keep(1, 'a') && hints.keep(2, 'b') && hints.keep(1, 'c'));
        assert!(!hints.keep(1, 'd'));
        assert_eq!((hints.held(), hints.refused()), (3, 1));
        assert_eq!([hints.take(1), hints.take(1), hints.take(1)], [Some('a'), Some('c'), None]);
        assert_eq!((hints.take(2), hints.held()), (Some('b'), 0));
    }
}
