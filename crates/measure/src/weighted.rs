//! Time-weighted mean and standard deviation of a value that changes in steps, such as the length
//! of a queue.

/// A step function of time, with the exact integrals of its value and of the square of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWeighted {
    value: u64,
    since: u64,
    start: u64,
    integral: u128,
    squares: u128,
    greatest: u64,
}

impl TimeWeighted {
    /// Returns a step function that has `value` from the time `now`, in nanoseconds.
    pub fn new(now: u64, value: u64) -> Self {
        Self { value, since: now, start: now, integral: 0, squares: 0, greatest: value }
    }

    /// Sets the value from the time `now`.
    #[inline]
    pub fn set(&mut self, now: u64, value: u64) {
        self.advance(now);
        self.value = value;
        self.greatest = self.greatest.max(value);
    }

    #[inline]
    fn advance(&mut self, now: u64) {
        debug_assert!(now >= self.since, "the time must not go back");
        if self.value > 0 {
            let area = u128::from(self.value) * u128::from(now - self.since);
            self.integral += area;
            self.squares += area * u128::from(self.value);
        }
        self.since = now;
    }

    /// Discards the history before `now`; the current value remains.
    pub fn restart(&mut self, now: u64) {
        *self = Self::new(now, self.value);
    }

    /// Returns the current value.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Returns the time of the last change.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// Returns the greatest value so far.
    pub fn greatest(&self) -> u64 {
        self.greatest
    }

    /// Returns the integral up to `now`, in units of the value times nanoseconds.
    pub fn integral(&self, now: u64) -> u128 {
        let mut end = *self;
        end.advance(now);
        end.integral
    }

    /// Returns the mean up to `now`; the current value if no time has passed.
    pub fn mean(&self, now: u64) -> f64 {
        match now - self.start {
            0 => self.value as f64,
            span => self.integral(now) as f64 / span as f64,
        }
    }

    /// Returns the standard deviation up to `now`; 0 if no time has passed.
    pub fn deviation(&self, now: u64) -> f64 {
        let mut end = *self;
        end.advance(now);
        match now - self.start {
            0 => 0.0,
            span => {
                let mean = end.integral as f64 / span as f64;
                (end.squares as f64 / span as f64 - mean * mean).max(0.0).sqrt()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighs_by_time() {
        let mut w = TimeWeighted::new(100, 0);
        w.set(110, 4);
        w.set(140, 1);
        // The value is 0 for 10 ns, 4 for 30 ns and 1 for 60 ns.
        assert_eq!(w.integral(200), 180);
        assert!((w.mean(200) - 1.8).abs() < 1e-12);
        let variance: f64 = (10.0 * 3.24 + 30.0 * 4.84 + 60.0 * 0.64) / 100.0;
        assert!((w.deviation(200) - variance.sqrt()).abs() < 1e-12);
        assert_eq!(w.greatest(), 4);
    }

    #[test]
    fn restarting_keeps_the_value() {
        let mut w = TimeWeighted::new(0, 9);
        w.set(50, 2);
        w.restart(60);
        assert!((w.mean(70) - 2.0).abs() < 1e-12);
        assert_eq!(w.greatest(), 2);
    }
}
