//! The choice of a request's record, by YCSB's generators.
//!
//! Source: YCSB 0.17, `ZipfianGenerator` (after Gray et al., "Quickly generating billion-record
//! synthetic databases", SIGMOD 1994), `ScrambledZipfianGenerator`, `SkewedLatestGenerator`. The
//! scrambling here is a bijection of 64 bits taken modulo the number of records.

use sojourn_plan::store::{Keys as Choice, Workload};
use sojourn_random::Stream;

const THETA: f64 = 0.99;
/// Number of terms of `zeta` that are summed one by one; the others are approximated.
const TERMS: u64 = 10_000;

/// The existing records, and the distribution from which a record is drawn.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    choice: Choice,
    count: u64,
    zeta: f64,
}

/// Returns the sum of k^-[`THETA`] for k from 1 to n.
fn zeta(n: u64) -> f64 {
    let exact = n.min(TERMS);
    let sum: f64 = (1..=exact).map(|k| libm::pow(k as f64, -THETA)).sum();
    if n == exact {
        return sum;
    }
    // The Euler-Maclaurin formula for the terms from `exact` + 1 to n.
    let (a, b) = (exact as f64, n as f64);
    let integral = (libm::pow(b, 1.0 - THETA) - libm::pow(a, 1.0 - THETA)) / (1.0 - THETA);
    sum + integral + (libm::pow(b, -THETA) - libm::pow(a, -THETA)) / 2.0
}

fn scrambled(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

impl Keys {
    /// Returns the records that exist at the start of a workload.
    pub(super) fn new(workload: &Workload) -> Self {
        let zipfian = workload.keys != Choice::Uniform && workload.records > 0;
        let zeta = if zipfian { zeta(workload.records) } else { 0.0 };
        Self { choice: workload.keys, count: workload.records, zeta }
    }

    /// Adds a record and returns its number.
    pub(super) fn insert(&mut self) -> u64 {
        self.count += 1;
        self.zeta += libm::pow(self.count as f64, -THETA);
        self.count - 1
    }

    /// Draws the number of an existing record; at least one must exist.
    pub(super) fn choose(&self, draws: &mut Stream) -> u64 {
        match self.choice {
            Choice::Uniform => draws.below(self.count),
            Choice::Zipfian => scrambled(self.rank(draws)) % self.count,
            Choice::Latest => self.count - 1 - self.rank(draws),
        }
    }

    /// Draws a rank from 0 by Zipf's law.
    fn rank(&self, draws: &mut Stream) -> u64 {
        let u = draws.uniform();
        let n = self.count as f64;
        let at = u * self.zeta;
        if at < 1.0 || self.count < 2 {
            return 0;
        }
        let second = 1.0 + libm::pow(0.5, THETA);
        if at < second {
            return 1;
        }
        let eta = (1.0 - libm::pow(2.0 / n, 1.0 - THETA)) / (1.0 - second / self.zeta);
        let rank = n * libm::pow(eta * u - eta + 1.0, 1.0 / (1.0 - THETA));
        (rank as u64).min(self.count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(choice: Choice, records: u64) -> Keys {
        Keys::new(&Workload {
            read: 1.0,
            update: 0.0,
            insert: 0.0,
            scan: 0.0,
            modify: 0.0,
            records,
            keys: choice,
            value: 0,
            scan_length: 0,
        })
    }

    #[test]
    fn long_sums_agree_with_short_ones() {
        let plain = |n: u64| (1..=n).map(|k| libm::pow(k as f64, -THETA)).sum::<f64>();
        for n in [1, TERMS, TERMS + 1, 300_000] {
            assert!((zeta(n) - plain(n)).abs() < 1e-9, "{n}");
        }
    }

    #[test]
    fn the_first_ranks_have_the_share_that_zipf_gives_them() {
        let keys = keys(Choice::Latest, 1000);
        let mut draws = Stream::new(1, "a", "b");
        let n = 200_000;
        let mut counts = vec![0u32; 1000];
        for _ in 0..n {
            counts[999 - keys.choose(&mut draws) as usize] += 1;
        }
        for (rank, &count) in counts.iter().enumerate().take(2) {
            let share = libm::pow((rank + 1) as f64, -THETA) / zeta(1000);
            let found = f64::from(count) / f64::from(n);
            assert!((found / share - 1.0).abs() < 0.03, "rank {rank}: {found} of {share}");
        }
        let tail: u32 = counts[100..].iter().sum();
        let share = 1.0 - zeta(100) / zeta(1000);
        assert!((f64::from(tail) / f64::from(n) / share - 1.0).abs() < 0.05);
    }

    #[test]
    fn new_records_are_the_latest() {
        let mut keys = keys(Choice::Latest, 10);
        assert_eq!((keys.insert(), keys.insert()), (10, 11));
        let mut draws = Stream::new(1, "a", "b");
        assert!((0..1000).any(|_| keys.choose(&mut draws) == 11));
        assert!((0..1000).all(|_| keys.choose(&mut draws) < 12));
    }
}
