//! Hints: writes that a coordinator keeps for a replica that was down, and delivers after its
//! return.
//!
//! Source: Cassandra's `HintsService`, as far as it affects latency. The coordinator keeps a hint
//! for each replica that it knows to be down, and for each that has not answered in time. Hints are
//! delivered one after the other, in order, so that the replica is not overloaded. Above a limit,
//! further hints are discarded; Cassandra discards them after a time window instead.

use super::NodeId;
use std::collections::{BTreeMap, VecDeque};

/// Hints of one coordinator.
#[derive(Clone, Debug)]
pub struct Hints<T> {
    of: BTreeMap<NodeId, VecDeque<T>>,
    held: usize,
    limit: usize,
    refused: u64,
}

impl<T> Hints<T> {
    /// Returns an empty store of hints with space for `limit`.
    pub fn new(limit: usize) -> Self {
        Self { of: BTreeMap::new(), held: 0, limit, refused: 0 }
    }

    /// Stores a hint; returns whether there was space.
    pub fn keep(&mut self, replica: NodeId, hint: T) -> bool {
        if self.held >= self.limit {
            self.refused += 1;
            return false;
        }
        self.of.entry(replica).or_default().push_back(hint);
        self.held += 1;
        true
    }

    /// Takes the next hint for a replica that is up again.
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

    /// Returns the number of hints discarded for lack of space.
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
