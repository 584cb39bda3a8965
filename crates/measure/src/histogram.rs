//! A log-linear histogram of integers, for percentiles and distribution functions.
//!
//! Each octave has 256 bins. Each value below 512 has its own bin; above 512 the width of a bin is
//! at most 1/256 (0.4 %) of its values. The number of values, least value, greatest value and
//! moments are exact. Only octaves that contain values use memory (2 KiB each).

use crate::moments::Moments;

const BITS: u32 = 8;
const BINS: usize = 1 << BITS;
const OCTAVES: usize = 64 - BITS as usize + 1;
const UNUSED: u8 = u8::MAX;

/// Histogram of values from 0 to 2^64 - 1.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// For each octave, the number of its block of [`BINS`] counts in `counts`; [`UNUSED`] without
    /// values.
    slot: [u8; OCTAVES],
    counts: Vec<u64>,
    moments: Moments,
}

/// A bin that contains values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Least value of the bin.
    pub low: u64,
    /// Greatest value of the bin.
    pub high: u64,
    /// Number of values in the bin.
    pub count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Maximum width of a bin relative to its values.
    pub const RESOLUTION: f64 = 1.0 / BINS as f64;

    /// Returns an empty histogram.
    pub fn new() -> Self {
        Self { slot: [UNUSED; OCTAVES], counts: Vec::new(), moments: Moments::default() }
    }

    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let octave = (value | (BINS as u64 - 1)).ilog2() + 1 - BITS;
        // The first octave covers values from 0 to 255, the next one from 256 to 511 with bins of
        // width 1, the next one from 512 to 1023 with bins of width 2. Above the first octave, the
        // top bit of a value is implied by the octave, so `sub` needs only the bits below it.
        let shift = octave.saturating_sub(1);
        let sub = ((value >> shift) as usize) & (BINS - 1);
        let mut slot = self.slot[octave as usize];
        if slot == UNUSED {
            slot = self.open(octave as usize);
        }
        self.counts[usize::from(slot) * BINS + sub] += 1;
        self.moments.add(value);
    }

    #[cold]
    fn open(&mut self, octave: usize) -> u8 {
        let slot = (self.counts.len() / BINS) as u8;
        self.counts.resize(self.counts.len() + BINS, 0);
        self.slot[octave] = slot;
        slot
    }

    /// Removes all values, but keeps the memory allocated.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.moments = Moments::default();
    }

    /// Returns the number of values, their mean, deviation, least and greatest value.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Returns the octaves that contain values, in ascending order, with the counts of their bins.
    fn octaves(&self) -> impl Iterator<Item = (usize, &[u64])> {
        let used = self.slot.iter().enumerate().filter(|&(_, &slot)| slot != UNUSED);
        used.map(|(octave, &slot)| (octave, &self.counts[usize::from(slot) * BINS..][..BINS]))
    }

    /// Returns the bins that contain values, in ascending order.
    pub fn bins(&self) -> impl Iterator<Item = Bin> + '_ {
        self.octaves().flat_map(|(octave, counts)| filled(octave, counts))
    }

    /// Returns the `q`-quantile (nearest rank), interpolated linearly in its bin and limited to the
    /// range of the values; NaN if there are no values.
    pub fn quantile(&self, q: f64) -> f64 {
        let n = self.moments.count();
        if n == 0 {
            return f64::NAN;
        }
        let rank = ((q * n as f64).ceil() as u64).clamp(1, n);
        let mut before = 0;
        for (octave, counts) in self.octaves() {
            let all: u64 = counts.iter().sum();
            if before + all < rank {
                before += all;
                continue;
            }
            for bin in filled(octave, counts) {
                if before + bin.count >= rank {
                    let share = (rank - before) as f64 / bin.count as f64;
                    let value = bin.low as f64 + share * (bin.high - bin.low) as f64;
                    return value
                        .clamp(self.moments.least() as f64, self.moments.greatest() as f64);
                }
                before += bin.count;
            }
        }
        unreachable!("the bins contain all values")
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for octave in 0..OCTAVES {
            if other.slot[octave] == UNUSED {
                continue;
            }
            if self.slot[octave] == UNUSED {
                self.open(octave);
            }
            let from = &other.counts[usize::from(other.slot[octave]) * BINS..][..BINS];
            let to = &mut self.counts[usize::from(self.slot[octave]) * BINS..][..BINS];
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        }
        self.moments.merge(&other.moments);
    }
}

/// Returns the bins of an octave that contain values, in ascending order.
fn filled(octave: usize, counts: &[u64]) -> impl Iterator<Item = Bin> + '_ {
    counts.iter().enumerate().filter(|&(_, &count)| count > 0).map(move |(sub, &count)| {
        let shift = octave.saturating_sub(1) as u32;
        let top = if octave == 0 { 0 } else { BINS as u64 };
        let low = (top + sub as u64) << shift;
        Bin { low, high: low + ((1 << shift) - 1), count }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_values_are_exact() {
        let mut h = Histogram::new();
        for v in 0..512 {
            h.record(v);
        }
        assert!(h.bins().all(|b| b.low == b.high && b.count == 1));
        assert_eq!(h.bins().count(), 512);
        assert!((h.quantile(0.5) - 255.0).abs() < 1e-9);
        assert!((h.quantile(1.0) - 511.0).abs() < 1e-9);
    }

    #[test]
    fn empty_has_no_quantile() {
        assert!(Histogram::new().quantile(0.5).is_nan());
    }

    proptest! {
        #[test]
        fn each_value_lies_in_its_bin(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let mut h = Histogram::new();
            h.record(value);
            let bin = h.bins().next().unwrap();
            prop_assert!(bin.low <= value && value <= bin.high);
            prop_assert!((bin.high - bin.low) as f64 <= Histogram::RESOLUTION * bin.low as f64);
        }

        #[test]
        fn quantiles_keep_the_stated_resolution(
            mut values in proptest::collection::vec(0u64..1 << 40, 1..200), q in 0.0f64..=1.0,
        ) {
            let mut h = Histogram::new();
            for &v in &values { h.record(v); }
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            prop_assert!((h.quantile(q) - exact).abs() <= Histogram::RESOLUTION * exact + 1e-9);
        }

        #[test]
        fn merging_is_recording_both(
            a in proptest::collection::vec(0u64..1 << 50, 0..50),
            b in proptest::collection::vec(0u64..1 << 20, 0..50),
        ) {
            let (mut x, mut y, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
            for &v in &a { x.record(v); both.record(v); }
            for &v in &b { y.record(v); both.record(v); }
            x.merge(&y);
            prop_assert_eq!(x.bins().collect::<Vec<_>>(), both.bins().collect::<Vec<_>>());
            prop_assert_eq!(x.moments(), both.moments());
        }
    }
}
