//! Read repair: the reaction to a read whose replicas answer with different versions.
//!
//! Source: Cassandra's blocking read repair. A read requests the data from one replica and a digest
//! from each of the others. If the digests differ, the coordinator requests the data from all of
//! these replicas, selects the newest version, and writes it to the replicas that lack it. Only
//! then it answers the client. This costs one additional round of reads and one of writes.

use super::NodeId;

/// Number of a write to a key; 0 if the key was never written.
pub type Version = u64;

/// Returns whether the versions in these answers differ. A coordinator finds this by comparing
/// digests.
pub fn differ(answers: &[(NodeId, Version)]) -> bool {
    answers.windows(2).any(|pair| pair[0].1 != pair[1].1)
}

/// Returns the newest version in these answers, and stores the nodes that lack it in `stale`.
pub fn newest(answers: &[(NodeId, Version)], stale: &mut Vec<NodeId>) -> Version {
    let newest = answers.iter().map(|&(_, version)| version).max().unwrap_or(0);
    stale.clear();
    stale.extend(answers.iter().filter(|answer| answer.1 < newest).map(|&(node, _)| node));
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_behind_the_newest_are_stale() {
        let mut stale = Vec::new();
        assert!(!differ(&[(1, 4), (2, 4)]));
        assert!(differ(&[(1, 4), (2, 4), (3, 2)]));
        assert_eq!(newest(&[(1, 4), (2, 0), (3, 7)], &mut stale), 7);
        assert_eq!(stale, [1, 2]);
        assert_eq!(newest(&[], &mut stale), 0);
    }
}
