//! Mean and standard deviation, computed exactly for integers and by Welford's method for real
//! numbers.

/// Moments of integers. They are exact for up to 2^32 values below 2^48 (78 hours in nanoseconds).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    count: u64,
    sum: u128,
    squares: u128,
    least: u64,
    greatest: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { count: 0, sum: 0, squares: 0, least: u64::MAX, greatest: 0 }
    }
}

impl Moments {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        // Outside the range that `Moments` states, the sum of squares wraps around. Then only
        // variance and deviation are wrong.
        self.squares = self.squares.wrapping_add(u128::from(value) * u128::from(value));
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// Adds all values of another instance.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.wrapping_add(other.squares);
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of the values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the least value; `u64::MAX` if there are no values.
    pub fn least(&self) -> u64 {
        self.least
    }

    /// Returns the greatest value; 0 if there are no values.
    pub fn greatest(&self) -> u64 {
        self.greatest
    }

    /// Returns the mean; NaN if there are no values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.sum as f64 / self.count as f64 }
    }

    /// Returns the population variance (mean of the squared deviations from the mean); NaN without
    /// values.
    pub fn variance(&self) -> f64 {
        if self.count == 0 {
            return f64::NAN;
        }
        // Squares are taken relative to the integer part of the mean, which avoids cancellation.
        let n = u128::from(self.count);
        let centre = self.sum / n;
        let rest = self.sum - centre * n;
        let around = (self.squares.wrapping_add(n.wrapping_mul(centre * centre)))
            .wrapping_sub(2 * centre.wrapping_mul(self.sum));
        let offset = rest as f64 / n as f64;
        (around as f64 / n as f64 - offset * offset).max(0.0)
    }

    /// Returns the population standard deviation; NaN if there are no values.
    pub fn deviation(&self) -> f64 {
        self.variance().sqrt()
    }
}

/// Mean and deviation of real numbers by Welford's method.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Welford {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Welford {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (value - self.mean);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean; NaN if there are no values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.mean }
    }

    /// Returns the population variance (mean of the squared deviations from the mean); NaN without
    /// values.
    pub fn variance(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.squares / self.count as f64 }
    }

    /// Returns the population standard deviation; NaN if there are no values.
    pub fn deviation(&self) -> f64 {
        self.variance().sqrt()
    }
}

/// Returns Jain's index of fairness, (sum x)^2 / (n sum x^2). It is 1 if all values are equal, 1/n
/// if only one value is not 0, and NaN if there are no values or all are 0.
pub fn jain(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for x in values {
        n += 1.0;
        sum += x;
        squares += x * x;
    }
    sum * sum / (n * squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn jain_of_equals_is_one() {
        assert!((jain([3.0; 7]) - 1.0).abs() < 1e-15);
        assert!((jain([5.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-15);
        assert!(jain([]).is_nan() && jain([0.0]).is_nan());
    }

    #[test]
    fn no_cancellation_far_from_zero() {
        let mut m = Moments::default();
        let base = 100_000_000_000_000;
        (0..4).for_each(|i| m.add(base + i));
        assert!((m.variance() - 1.25).abs() < 1e-12);
        assert!((m.mean() - (base as f64 + 1.5)).abs() < 1e-1);
    }

    proptest! {
        #[test]
        fn both_agree_with_the_two_pass_formula(values in proptest::collection::vec(0u64..1 << 44, 1..100)) {
            let (mut m, mut w) = (Moments::default(), Welford::default());
            for &v in &values { m.add(v); w.add(v as f64); }
            let mean = values.iter().map(|&v| v as f64).sum::<f64>() / values.len() as f64;
            let square = |v: &u64| (*v as f64 - mean) * (*v as f64 - mean);
            let var = values.iter().map(square).sum::<f64>() / values.len() as f64;
            prop_assert!((m.mean() - mean).abs() <= 1e-9 * mean);
            prop_assert!((m.variance() - var).abs() <= 1e-9 * var + 1e-6);
            prop_assert!((w.mean() - mean).abs() <= 1e-9 * mean);
            prop_assert!((w.variance() - var).abs() <= 1e-9 * var + 1e-6);
        }
    }
}
