//! The eight features of dAQM: measurements of the queue and their derivatives.

use crate::discipline::View;
use sojourn_units::{MILLISECOND, Nanos, data};

/// A feature of the queue, which dAQM compares with a threshold.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Sojourn time of the oldest packet, in ms.
    S,
    /// First derivative of the oldest packets' sojourn times, in ms/ms.
    S1,
    /// Second derivative of the sojourn time, in ms/ms².
    S2,
    /// Third derivative of the sojourn time, in ms/ms³.
    S3,
    /// Queue length, in packets.
    Q,
    /// First derivative of the queue length, in packets per sample.
    Q1,
    /// Second derivative of the queue length, in packets per sample².
    Q2,
    /// Third derivative of the queue length, in packets per sample³.
    Q3,
}

impl Feature {
    /// All features, in the order of their numbers.
    pub const ALL: [Self; 8] =
        [Self::S, Self::S1, Self::S2, Self::S3, Self::Q, Self::Q1, Self::Q2, Self::Q3];

    /// All features, in the order in which they are checked; the first above its threshold decides.
    pub const CHECKED: [Self; 8] =
        [Self::S3, Self::Q3, Self::S2, Self::Q2, Self::S1, Self::Q1, Self::S, Self::Q];

    /// Returns the feature's name in words and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::S => "s",
            Self::S1 => "s1",
            Self::S2 => "s2",
            Self::S3 => "s3",
            Self::Q => "q",
            Self::Q1 => "q1",
            Self::Q2 => "q2",
            Self::Q3 => "q3",
        }
    }
}

/// A value for each feature.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerFeature<T> {
    /// Value of [`Feature::S`].
    pub s: T,
    /// Value of [`Feature::S1`].
    pub s1: T,
    /// Value of [`Feature::S2`].
    pub s2: T,
    /// Value of [`Feature::S3`].
    pub s3: T,
    /// Value of [`Feature::Q`].
    pub q: T,
    /// Value of [`Feature::Q1`].
    pub q1: T,
    /// Value of [`Feature::Q2`].
    pub q2: T,
    /// Value of [`Feature::Q3`].
    pub q3: T,
}

impl<T> PerFeature<T> {
    /// Returns the value of `feature`.
    #[inline]
    pub fn of(&self, feature: Feature) -> &T {
        match feature {
            Feature::S => &self.s,
            Feature::S1 => &self.s1,
            Feature::S2 => &self.s2,
            Feature::S3 => &self.s3,
            Feature::Q => &self.q,
            Feature::Q1 => &self.q1,
            Feature::Q2 => &self.q2,
            Feature::Q3 => &self.q3,
        }
    }

    /// Returns the value of `feature`, mutable.
    pub fn of_mut(&mut self, feature: Feature) -> &mut T {
        match feature {
            Feature::S => &mut self.s,
            Feature::S1 => &mut self.s1,
            Feature::S2 => &mut self.s2,
            Feature::S3 => &mut self.s3,
            Feature::Q => &mut self.q,
            Feature::Q1 => &mut self.q1,
            Feature::Q2 => &mut self.q2,
            Feature::Q3 => &mut self.q3,
        }
    }
}

/// Number of values from which derivatives are computed.
pub const VALUES: usize = 5;

/// Returns the first, second and third derivative of five values at a distance of `step`, oldest
/// first; zeros if `step` is 0.
///
/// The first derivative is the difference of the first two values over `step`. The second and third
/// are computed from slopes over two steps. For a cubic they are exact: the second at 1.5 steps
/// after the first value, the third at 2 steps.
pub fn derivatives(values: [f64; VALUES], step: f64) -> [f64; 3] {
    if step == 0.0 {
        return [0.0; 3];
    }
    let slope = |from: usize| (values[from + 2] - values[from]) / (2.0 * step);
    let (a, b, c) = (slope(0), slope(1), slope(2));
    let (d, e) = ((b - a) / step, (c - b) / step);
    [(values[1] - values[0]) / step, d, (e - d) / step]
}

/// Distance between arrivals that the derivatives of the sojourn time assume.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Interval {
    /// A fixed distance, in nanoseconds.
    Constant(Nanos),
    /// The mean interval between the arrivals of the queued packets.
    Measured,
}

impl Interval {
    /// Returns the distance in milliseconds; 0 if it is measured with fewer than two packets.
    pub(crate) fn millis(self, queue: &impl View) -> f64 {
        match self {
            Self::Constant(interval) => millis(interval),
            Self::Measured => {
                let gaps = queue.packets().saturating_sub(1);
                match (queue.enqueued_at(0), queue.enqueued_at(gaps)) {
                    (Some(first), Some(last)) if gaps > 0 => millis(last - first) / gaps as f64,
                    _ => 0.0,
                }
            }
        }
    }
}

/// Converts nanoseconds to milliseconds.
pub(crate) fn millis(span: Nanos) -> f64 {
    span as f64 / MILLISECOND as f64
}

/// Returns the sojourn times at `now` of five packets from index `first` on, in nanoseconds, oldest
/// first.
pub(crate) fn waits(queue: &impl View, first: usize, now: Nanos) -> [Nanos; VALUES] {
    std::array::from_fn(|n| queue.enqueued_at(first + n).map_or(0, |at| now - at))
}

/// Returns the derivatives of the sojourn time of packets that arrived `interval` ms apart; the
/// n-th derivative is in ms/ms^n.
///
/// With `whole`, sojourn times are first truncated to milliseconds.
pub(crate) fn of_waits(waits: [Nanos; VALUES], interval: f64, whole: bool) -> [f64; 3] {
    if whole {
        derivatives(waits.map(|wait| (wait / MILLISECOND) as f64), interval)
    } else {
        // Differences of whole nanoseconds are exact in floating point; differences of fractional
        // milliseconds are not.
        derivatives(waits.map(|wait| wait as f64), interval).map(|d| d / MILLISECOND as f64)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "results for whole numbers are exact")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_feature_is_checked_once_and_has_its_place() {
        let mut numbers = PerFeature::<usize>::default();
        for (number, feature) in Feature::ALL.into_iter().enumerate() {
            *numbers.of_mut(feature) = number + 1;
        }
        for (number, feature) in Feature::ALL.into_iter().enumerate() {
            assert_eq!((feature as usize, *numbers.of(feature)), (number, number + 1));
            assert_eq!(Feature::CHECKED.iter().filter(|f| **f == feature).count(), 1);
        }
    }

    /// Checks the paper's equations for one example: with a step of 2, the differences over two
    /// steps are 10, 20 and -12, and the slopes 2.5, 5 and -3.
    #[test]
    fn equations_by_hand() {
        let [r1, r2, r3] = derivatives([1.0, 4.0, 11.0, 24.0, -1.0], 2.0);
        assert!((r1 - 1.5).abs() < 1e-12);
        assert!((r2 - (5.0 - 2.5) / 2.0).abs() < 1e-12);
        assert!((r3 - ((-3.0 - 5.0) / 2.0 - (5.0 - 2.5) / 2.0) / 2.0).abs() < 1e-12);
        assert_eq!(derivatives([1.0, 2.0, 3.0, 4.0, 9.0], 0.0), [0.0; 3]);
    }

    proptest! {
        /// For a cubic polynomial the derivatives are exact at the times that the documentation of
        /// `derivatives` states.
        #[test]
        fn derivatives_of_cubics_are_exact(
            coefficients in prop::array::uniform4(-50.0f64..50.0),
            from in -20.0f64..20.0,
            step in 0.1f64..10.0,
        ) {
            let [k0, k1, k2, k3] = coefficients;
            let value = |x: f64| k0 + x * (k1 + x * (k2 + x * k3));
            let second = |x: f64| 2.0 * k2 + 6.0 * k3 * x;
            let values: [f64; VALUES] = std::array::from_fn(|n| value(from + n as f64 * step));
            let [r1, r2, r3]: [f64; 3] = derivatives(values, step);
            // The first derivative is the mean slope of the first step. Simpson's rule gives it
            // exactly, since the slope of a cubic is quadratic.
            let slope = |x: f64| k1 + x * (2.0 * k2 + x * 3.0 * k3);
            let simpson = (slope(from) + 4.0 * slope(from + step / 2.0) + slope(from + step)) / 6.0;
            let size = values.iter().fold(1.0, |most: f64, v: &f64| most.max(v.abs()));
            prop_assert!((r1 - simpson).abs() <= 1e-13 * size / step);
            prop_assert!((r2 - second(from + 1.5 * step)).abs() <= 1e-12 * size / (step * step));
            prop_assert!((r3 - 6.0 * k3).abs() <= 1e-12 * size / (step * step * step));
        }

        /// Derivatives above the degree of a polynomial are exactly zero for whole numbers.
        #[test]
        fn derivatives_above_the_degree_are_zero(k0 in -1000i32..1000, k1 in -1000i32..1000, k2 in -1000i32..1000) {
            let [k0, k1, k2] = [k0, k1, k2].map(f64::from);
            let of = |value: &dyn Fn(f64) -> f64| derivatives(std::array::from_fn(|n| value(n as f64)), 1.0);
            prop_assert_eq!(of(&|_| k0), [0.0, 0.0, 0.0]);
            prop_assert_eq!(of(&|x| k0 + k1 * x), [k1, 0.0, 0.0]);
            prop_assert_eq!(of(&|x| k0 + k1 * x + k2 * x * x), [k1 + k2, 2.0 * k2, 0.0]);
        }

        #[test]
        fn waits_keep_or_lose_their_fractions(waits in prop::array::uniform5(0u64..100 * MILLISECOND)) {
            let exact = of_waits(waits, 2.0, false);
            let by_hand = derivatives(waits.map(millis), 2.0);
            let floored = of_waits(waits.map(|w| w / MILLISECOND * MILLISECOND), 2.0, false);
            let whole = of_waits(waits, 2.0, true);
            for n in 0..3 {
                prop_assert!((exact[n] - by_hand[n]).abs() < 1e-9);
                prop_assert!((whole[n] - floored[n]).abs() < 1e-9);
            }
        }
    }
}
