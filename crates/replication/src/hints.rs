//! Hints: writes kept for a replica that was away, to be handed over when it is back.
//!
//! Source: Cassandra's `HintsService`, as far as latency needs it. The coordinator keeps a hint for each
//! replica that it knows to be down, and for each that has not answered in time. Hints are handed over
//! one after the other, in their order, so that the replica is not flooded. Beyond a number of hints
//! further ones are not kept, as beyond Cassandra's window of time.

use super::NodeId;
use std::collections::{BTreeMap, VecDeque};

/// The hints that one coordinator keeps.
#[derive(Clone, Debug)]
pub struct Hints<T> {
    of: BTreeMap<NodeId, VecDeque<T>>,
    held: usize,
    limit: usize,
    refused: u64,
}

impl<T> Hints<T> {
    /// None yet, and never more than `limit`.
    pub fn new(limit: usize) -> Self {
        Self { of: BTreeMap::new(), held: 0, limit, refused: 0 }
    }

    /// Keeps a hint. Says whether there was room.
    pub fn keep(&mut self, replica: NodeId, hint: T) -> bool {
        if self.held >= self.limit {
            self.refused += 1;
            return false;
        }
        self.of.entry(replica).or_default().push_back(hint);
        self.held += 1;
        true
    }

    /// Takes the next hint for a replica that is back.
    pub fn take(&mut self, replica: NodeId) -> Option<T> {
        let queue = self.of.get_mut(&replica)?;
        let hint = queue.pop_front();
        if queue.is_empty() {
            self.of.remove(&replica);
        }
        self.held -= usize::from(hint.is_some());
        hint
    }

    /// Hints held.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Hints that found no room.
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
