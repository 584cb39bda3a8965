//! Waiting times of speculative reads that follow a percentile of recent latencies.
//!
//! As in Cassandra (`PercentileSpeculativeRetryPolicy`, `DecayingEstimatedHistogramReservoir`), a
//! coordinator counts the latencies of its reads in buckets of microseconds that grow by a factor
//! of 1.2, and a count loses half of its weight in a minute. The waiting time is the upper end of
//! the bucket with the percentile. It is determined once in each read timeout; before the first
//! latency it is half of the read timeout.

use sojourn_plan::store::Percentile;
use sojourn_replication::NodeId;
use sojourn_units::{EPOCH, MICROSECOND, Nanos, SECOND};

/// Number of buckets.
const BUCKETS: usize = 164;
/// Time in which a count loses half of its weight.
const HALF: Nanos = 60 * SECOND;
/// Time after which weights are scaled down, so that they stay finite.
const RESCALE: Nanos = 30 * HALF;

/// The latencies of one coordinator's reads.
#[derive(Clone, Debug)]
struct Recent {
    /// Weight in each bucket: a latency weighs twice as much as one a minute before.
    weights: Vec<f64>,
    /// The time at which a latency has the weight 1.
    landmark: Nanos,
    wait: Nanos,
    /// Number of the period in which `wait` was determined.
    period: u64,
}

/// The waiting times of all coordinators.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    rule: Percentile,
    timeout: Nanos,
    /// Upper end of each bucket in microseconds.
    ends: Vec<u64>,
    nodes: Vec<Recent>,
}

impl Waits {
    pub(super) fn new(rule: Percentile, timeout: Nanos, nodes: usize) -> Self {
        let grown = |&end: &u64| Some(((12 * end + 5) / 10).max(end + 1));
        let ends: Vec<u64> = std::iter::successors(Some(1), grown).take(BUCKETS).collect();
        let mut waits = Self { rule, timeout, ends, nodes: Vec::new() };
        waits.nodes = vec![waits.fresh(); nodes];
        waits
    }

    fn fresh(&self) -> Recent {
        let weights = vec![0.0; self.ends.len() + 1];
        Recent { weights, landmark: EPOCH, wait: self.timeout / 2, period: 0 }
    }

    /// Removes what a coordinator knows, as after a crash.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.nodes[node as usize] = self.fresh();
    }

    /// Returns the time after which a coordinator asks another replica.
    pub(super) fn wait(&mut self, node: NodeId, now: Nanos) -> Nanos {
        let period = now.saturating_sub(EPOCH) / self.timeout;
        let recent = &mut self.nodes[node as usize];
        if recent.period < period {
            recent.period = period;
            if let Some(wait) = recent.percentile(&self.ends, self.rule.share) {
                recent.wait = wait.min(self.rule.most.unwrap_or(Nanos::MAX)).max(self.rule.least);
            }
        }
        recent.wait
    }

    /// Records the latency of a coordinator's read.
    pub(super) fn record(&mut self, node: NodeId, now: Nanos, latency: Nanos) {
        self.wait(node, now);
        let micros = latency / MICROSECOND;
        let bucket = self.ends.partition_point(|&end| end < micros);
        self.nodes[node as usize].record(bucket, now);
    }
}

impl Recent {
    fn record(&mut self, bucket: usize, now: Nanos) {
        let age = |landmark: Nanos| (now - landmark) as f64 / HALF as f64;
        if now - self.landmark > RESCALE {
            let less = libm::exp2(-age(self.landmark));
            self.weights.iter_mut().for_each(|weight| *weight *= less);
            self.landmark = now;
        }
        self.weights[bucket] += libm::exp2(age(self.landmark));
    }

    /// Returns the upper end of the bucket with a share of the weight in and below it; `None`
    /// without latencies.
    fn percentile(&self, ends: &[u64], share: f64) -> Option<Nanos> {
        let total: f64 = self.weights.iter().sum();
        let wanted = share * total * (1.0 - 1e-12);
        let mut below = 0.0;
        let bucket = self.weights.iter().position(|weight| {
            below += weight;
            below > 0.0 && below >= wanted
        })?;
        Some(ends[bucket.min(ends.len() - 1)] * MICROSECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sojourn_units::MILLISECOND;

    const MS: Nanos = MILLISECOND;

    fn waits(share: f64) -> Waits {
        Waits::new(Percentile { share, least: 0, most: None }, 5 * SECOND, 2)
    }

    #[test]
    fn buckets_are_those_of_cassandra() {
        let ends = waits(0.99).ends;
        let first = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60, 72];
        assert_eq!(ends[..20], first);
    }

    #[test]
    fn the_time_is_determined_once_in_each_timeout() {
        let mut waits = waits(0.5);
        assert_eq!(waits.wait(0, EPOCH), 2500 * MS);
        waits.record(0, EPOCH + MS, MS);
        assert_eq!(waits.wait(0, EPOCH + 4999 * MS), 2500 * MS);
        // 1 ms is in the bucket that ends at 1131 µs.
        let found = waits.wait(0, EPOCH + 5000 * MS);
        assert!((MS..=12 * MS / 10).contains(&found), "{found}");
        assert_eq!(waits.wait(1, EPOCH + 5000 * MS), 2500 * MS);
        waits.forget(0);
        assert_eq!(waits.wait(0, EPOCH + 10_000 * MS), 2500 * MS);
    }

    #[test]
    fn latencies_of_an_hour_ago_are_forgotten() {
        let mut waits = waits(0.5);
        for i in 0..1000 {
            waits.record(0, EPOCH + i * MS, 100 * MS);
        }
        for i in 0..10 {
            waits.record(0, EPOCH + 3600 * SECOND + i * MS, MS);
        }
        assert!(waits.wait(0, EPOCH + 3700 * SECOND) < 2 * MS);
    }

    #[test]
    fn limits_hold() {
        let rule = Percentile { share: 0.99, least: 20 * MS, most: Some(50 * MS) };
        let mut waits = Waits::new(rule, SECOND, 1);
        waits.record(0, EPOCH, 400 * MS);
        assert_eq!(waits.wait(0, EPOCH + SECOND), 50 * MS);
        (0..1000).for_each(|i| waits.record(0, EPOCH + SECOND + i, MS));
        assert_eq!(waits.wait(0, EPOCH + 2 * SECOND), 20 * MS);
    }

    proptest! {
        /// The percentile of latencies of one moment is at most a bucket above the exact one.
        #[test]
        fn a_percentile_is_at_most_a_fifth_too_long(
            mut latencies in prop::collection::vec(20 * MICROSECOND..SECOND, 1..200),
            share in 0.01f64..=1.0,
        ) {
            let mut waits = waits(share);
            for &latency in &latencies {
                waits.record(0, EPOCH, latency);
            }
            latencies.sort_unstable();
            let rank = libm::ceil(share * latencies.len() as f64 - 1e-9) as usize;
            let exact = latencies[rank.max(1) - 1] / MICROSECOND * MICROSECOND;
            let found = waits.wait(0, EPOCH + 5 * SECOND);
            prop_assert!(found >= exact, "{found} {exact}");
            prop_assert!(found as f64 <= 1.26 * exact as f64, "{found} {exact}");
        }
    }
}
