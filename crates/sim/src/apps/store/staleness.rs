//! The probability that a read misses a write that was acknowledged before the read.
//!
//! This is the *t*-visibility of Bailis et al., "Probabilistically Bounded Staleness for Practical
//! Partial Quorums", VLDB 2012: the read takes place *t* after the acknowledgement, at as many
//! replicas of the record as the read's consistency level needs, selected at random. The times at
//! which replicas took the write are exact. The time of the read's own messages is neglected, so
//! the probability is an upper bound.

use sojourn_replication::{Need, NodeId};
use sojourn_units::{MILLISECOND, Nanos};
use std::collections::BTreeMap;

/// Times between acknowledgement and read for which the probability is computed.
pub(super) const AGES: [Nanos; 4] = [0, 10 * MILLISECOND, 100 * MILLISECOND, 1000 * MILLISECOND];

/// A replica of a record: its node, its data centre, and when it took the write (`None` before).
type Holder = (NodeId, u32, Option<Nanos>);

/// A write that is not acknowledged yet or that some replica lacks.
#[derive(Clone, Debug)]
struct Pending {
    version: u64,
    acknowledged: Option<Nanos>,
    holders: Vec<Holder>,
}

/// Records when replicas take writes, and computes the probability of stale reads.
#[derive(Clone, Debug)]
pub(super) struct Staleness {
    /// The answers that a read needs, for each data centre with clients.
    needs: Vec<Need>,
    /// The pending writes of each record.
    pending: BTreeMap<u64, Vec<Pending>>,
    /// Sum of the probabilities over writes, for each of [`AGES`].
    missed: [f64; AGES.len()],
    /// Number of writes in each sum.
    writes: [u64; AGES.len()],
}

impl Staleness {
    /// Returns the state before the first write. `needs` have equal weights in the probability.
    pub(super) fn new(needs: Vec<Need>) -> Self {
        Self {
            needs,
            pending: BTreeMap::new(),
            missed: Default::default(),
            writes: [0; AGES.len()],
        }
    }

    /// Begins a write; `replicas` are the nodes of its record, with their data centres.
    pub(super) fn begin(
        &mut self,
        key: u64,
        version: u64,
        replicas: impl Iterator<Item = (NodeId, u32)>,
    ) {
        let holders = replicas.map(|(node, data_centre)| (node, data_centre, None)).collect();
        let pending = Pending { version, acknowledged: None, holders };
        self.pending.entry(key).or_default().push(pending);
    }

    /// Records that a write was acknowledged at `now`.
    pub(super) fn acknowledge(&mut self, key: u64, version: u64, now: Nanos) {
        for write in self.pending.get_mut(&key).into_iter().flatten() {
            if write.version == version {
                write.acknowledged = Some(now);
            }
        }
        self.settle(key);
    }

    /// Removes a write that will not be acknowledged.
    pub(super) fn forget(&mut self, key: u64, version: u64) {
        if let Some(writes) = self.pending.get_mut(&key) {
            writes.retain(|write| write.version != version || write.acknowledged.is_some());
        }
        self.settle(key);
    }

    /// Marks the writes of `key` up to `version` as taken by `node` at `now`.
    pub(super) fn take(&mut self, node: NodeId, key: u64, version: u64, now: Nanos) {
        for write in self.pending.get_mut(&key).into_iter().flatten() {
            for holder in &mut write.holders {
                if write.version <= version && holder.0 == node && holder.2.is_none() {
                    holder.2 = Some(now);
                }
            }
        }
        self.settle(key);
    }

    /// Removes a record's acknowledged writes that all replicas have, and adds them to the sums.
    fn settle(&mut self, key: u64) {
        let Some(writes) = self.pending.get_mut(&key) else { return };
        let over = |write: &Pending| {
            write.acknowledged.is_some() && write.holders.iter().all(|holder| holder.2.is_some())
        };
        let settled: Vec<Pending> = writes.extract_if(.., |write| over(write)).collect();
        if writes.is_empty() {
            self.pending.remove(&key);
        }
        for write in settled {
            self.book(&write, Nanos::MAX);
        }
    }

    /// Adds a write to the sum of each age that the write has reached at `now`.
    fn book(&mut self, write: &Pending, now: Nanos) {
        let Some(acknowledged) = write.acknowledged else { return };
        for (i, age) in AGES.iter().enumerate() {
            let at = acknowledged.saturating_add(*age);
            if at > now {
                continue;
            }
            let has = |holder: &Holder| holder.2.is_some_and(|since| since <= at);
            let holders: Vec<_> = write.holders.iter().map(|h| (h.1, has(h))).collect();
            let sum: f64 = self.needs.iter().map(|need| need.misses(&holders)).sum();
            self.missed[i] += sum / self.needs.len() as f64;
            self.writes[i] += 1;
        }
    }

    /// Returns the probability of a stale read at each of [`AGES`], at the end of a run; NaN if no
    /// write reached that age.
    pub(super) fn probabilities(&self, now: Nanos) -> [f64; AGES.len()] {
        let mut all = self.clone();
        for write in self.pending.values().flatten() {
            all.book(write, now);
        }
        std::array::from_fn(|i| all.missed[i] / all.writes[i] as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = MILLISECOND;

    fn of_three() -> impl Iterator<Item = (NodeId, u32)> {
        [(0, 0), (1, 0), (2, 0)].into_iter()
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }

    #[test]
    fn a_write_ages_until_all_replicas_have_it() {
        let mut one = Staleness::new(vec![Need::Any { count: 1 }]);
        one.begin(7, 1, of_three());
        one.take(0, 7, 1, 100 * MS);
        one.acknowledge(7, 1, 100 * MS);
        one.take(1, 7, 1, 105 * MS);
        one.take(2, 7, 1, 150 * MS);
        let found = one.probabilities(200 * MS);
        // At once two of three lack it, after 10 ms one, after 100 ms none; 1 s has not passed, but
        // nothing can become stale any more.
        for (found, expected) in found.into_iter().zip([2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0]) {
            close(found, expected);
        }
    }

    #[test]
    fn quorums_that_overlap_miss_nothing() {
        let mut two = Staleness::new(vec![Need::Any { count: 2 }]);
        two.begin(7, 1, of_three());
        two.take(0, 7, 1, 1);
        two.take(2, 7, 1, 2);
        two.acknowledge(7, 1, 3);
        assert!(two.probabilities(2000 * MS).iter().all(|&found| found == 0.0));
    }

    #[test]
    fn writes_that_are_too_young_at_the_end_do_not_count() {
        let mut one = Staleness::new(vec![Need::Any { count: 1 }]);
        one.begin(7, 1, of_three());
        one.take(0, 7, 1, MS);
        one.acknowledge(7, 1, MS);
        let found = one.probabilities(20 * MS);
        close(found[1], 2.0 / 3.0);
        assert!(found[2].is_nan() && found[3].is_nan());
    }

    #[test]
    fn a_newer_version_is_no_stale_one() {
        let mut one = Staleness::new(vec![Need::Any { count: 1 }]);
        one.begin(7, 1, of_three());
        one.begin(7, 2, of_three());
        for node in 0..3 {
            one.take(node, 7, 2, MS);
        }
        one.take(0, 7, 1, MS);
        one.acknowledge(7, 1, MS);
        one.acknowledge(7, 2, MS);
        assert!(one.probabilities(MS).iter().all(|&found| found == 0.0));
        assert!(one.pending.is_empty());
    }

    #[test]
    fn a_write_that_failed_is_forgotten() {
        let mut one = Staleness::new(vec![Need::Any { count: 1 }]);
        one.begin(7, 1, of_three());
        one.forget(7, 1);
        assert!(one.pending.is_empty());
        assert!(one.probabilities(MS)[0].is_nan());
    }
}
