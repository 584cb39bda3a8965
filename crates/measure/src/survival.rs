//! Durations of which some have not ended, so that only their age is known (censored).

use crate::histogram::Histogram;

/// The product-limit estimate of Kaplan and Meier (1958).
///
/// If the longest duration has not ended, it counts as if it ended then (Efron 1967), so a mean or
/// quantile is then the least possible one.
#[derive(Clone, Debug)]
pub struct Survival<'a> {
    ended: &'a Histogram,
    /// Ages of the durations that have not ended, in ascending order.
    ages: Vec<u64>,
}

/// Durations in one bin of the histogram.
struct Step {
    low: f64,
    high: f64,
    /// Number of durations that ended in the bin, and that had lasted until then.
    ended: f64,
    exposed: f64,
    /// Share of the durations that last longer than those before the bin, and than the bin.
    before: f64,
    after: f64,
}

impl<'a> Survival<'a> {
    /// Returns the estimate for durations that have `ended`, and the `ages` of those that have not.
    pub fn new(ended: &'a Histogram, mut ages: Vec<u64>) -> Self {
        ages.sort_unstable();
        Self { ended, ages }
    }

    fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        let mut left = self.ended.moments().count();
        let mut share = 1.0;
        self.ended.bins().map(move |bin| {
            let open = self.ages.len() - self.ages.partition_point(|&age| age < bin.low);
            let exposed = (left + open as u64) as f64;
            left -= bin.count;
            let before = share;
            share *= 1.0 - bin.count as f64 / exposed;
            Step {
                low: bin.low as f64,
                high: bin.high as f64,
                ended: bin.count as f64,
                exposed,
                before,
                after: share,
            }
        })
    }

    fn longest(&self) -> f64 {
        let ended = (self.ended.moments().count() > 0).then(|| self.ended.moments().greatest());
        ended.into_iter().chain(self.ages.last().copied()).max().map_or(f64::NAN, |x| x as f64)
    }

    /// Returns the mean duration; NaN if there are no durations.
    pub fn mean(&self) -> f64 {
        if self.ages.is_empty() {
            return self.ended.moments().mean();
        }
        let (mut area, mut at, mut share) = (0.0, 0.0, 1.0);
        for step in self.steps() {
            let middle = f64::midpoint(step.low, step.high);
            area += share * (middle - at);
            (at, share) = (middle, step.after);
        }
        area + share * (self.longest() - at).max(0.0)
    }

    /// Returns the `q`-quantile of the durations; NaN if there are no durations.
    pub fn quantile(&self, q: f64) -> f64 {
        if self.ages.is_empty() {
            return self.ended.quantile(q);
        }
        let rest = 1.0 - q;
        let moments = self.ended.moments();
        self.steps().find(|step| step.after <= rest + 1e-12).map_or(self.longest(), |step| {
            let rank = (step.exposed * (1.0 - rest / step.before) - 1e-9).ceil();
            let share = rank.clamp(1.0, step.ended) / step.ended;
            let value = step.low + share * (step.high - step.low);
            value.clamp(moments.least() as f64, moments.greatest() as f64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut found = Histogram::new();
        for &value in values {
            found.record(value);
        }
        found
    }

    #[test]
    fn a_published_example_is_reproduced() {
        // Freireich et al. 1963: weeks of remission with 6-MP; the median is 23 weeks.
        let ended = of(&[6, 6, 6, 7, 10, 13, 16, 22, 23]);
        let ages = vec![6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35];
        let found = Survival::new(&ended, ages);
        let shares: Vec<f64> = found.steps().map(|step| step.after).collect();
        let published = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448];
        for (share, known) in shares.iter().zip(published) {
            assert!((share - known).abs() < 5e-4, "{shares:?}");
        }
        assert_eq!((found.quantile(0.5), found.quantile(0.9)), (23.0, 35.0));
    }

    #[test]
    fn if_nothing_ended_the_age_is_the_least_duration() {
        let none = Histogram::new();
        let found = Survival::new(&none, vec![3, 9]);
        assert_eq!((found.mean(), found.quantile(0.5)), (9.0, 9.0));
        assert!(Survival::new(&none, Vec::new()).mean().is_nan());
        assert!(Survival::new(&none, Vec::new()).quantile(0.5).is_nan());
    }

    proptest! {
        #[test]
        fn open_durations_never_shorten_the_estimate(
            ended in proptest::collection::vec(1u64..500, 1..60),
            ages in proptest::collection::vec(1u64..500, 0..60), q in 0.01f64..0.99,
        ) {
            let ended = of(&ended);
            let found = Survival::new(&ended, ages);
            prop_assert!(found.mean() >= ended.moments().mean() - 1e-6);
            prop_assert!(found.quantile(q) >= ended.quantile(q) - 1e-6);
        }

        #[test]
        fn without_open_durations_it_is_the_distribution(
            ended in proptest::collection::vec(1u64..500, 1..60), q in 0.01f64..0.99,
        ) {
            let ended = of(&ended);
            // An age of 0 says nothing.
            let found = Survival::new(&ended, vec![0]);
            prop_assert!((found.mean() - ended.moments().mean()).abs() < 1e-6);
            prop_assert!((found.quantile(q) - ended.quantile(q)).abs() < 1e-6);
        }
    }
}
