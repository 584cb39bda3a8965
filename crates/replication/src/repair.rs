//! Read repair: what a read does when the replicas it asked are out of step.
//!
//! Source: Cassandra's blocking read repair. A read asks one replica for the data and the others for a
//! digest. If the digests differ, it asks all of them for the data, takes the newest, and writes it to
//! those that lack it before it answers; that costs a round of reads and a round of writes.

use super::NodeId;

/// Number of a write of a key; 0 stands for one that was never written.
pub type Version = u64;

/// Whether these answers differ, which a comparison of digests shows.
pub fn differ(answers: &[(NodeId, Version)]) -> bool {
    answers.windows(2).any(|pair| pair[0].1 != pair[1].1)
}

/// The newest version among these answers, and who lacks it, into `stale`.
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
