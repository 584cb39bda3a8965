//! The set of received datagram numbers, as ranges.

use crate::packet::RANGES;

/// Disjoint ranges of numbers, newest first. If there are more than [`RANGES`], the oldest are
/// discarded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Adds a number. Returns false if the number is already in a range, or is too old to be
    /// stored.
    pub(crate) fn insert(&mut self, n: u64) -> bool {
        // `i` is the newest range whose first number is at most n + 1.
        let i = self.0.iter().position(|&(first, _)| n.saturating_add(1) >= first);
        let Some(i) = i else {
            if self.0.len() == RANGES {
                return false;
            }
            self.0.push((n, n));
            return true;
        };
        let (first, last) = self.0[i];
        if (first..=last).contains(&n) {
            return false;
        }
        if first.checked_sub(1) == Some(n) {
            self.0[i].0 = n;
            if let Some(&(low, high)) = self.0.get(i + 1)
                && high + 1 == n
            {
                self.0[i].0 = low;
                self.0.remove(i + 1);
            }
        } else if n == last.saturating_add(1) {
            self.0[i].1 = n;
        } else {
            self.0.insert(i, (n, n));
            self.0.truncate(RANGES);
        }
        true
    }

    pub(crate) fn as_slice(&self) -> &[(u64, u64)] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn they_hold_what_was_put_in(numbers in proptest::collection::vec(0..60u64, 0..80)) {
            let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
            for n in numbers {
                prop_assert_eq!(ranges.insert(n), model.insert(n));
                let held: BTreeSet<u64> =
                    ranges.as_slice().iter().flat_map(|&(a, b)| a..=b).collect();
                prop_assert_eq!(&held, &model);
                let apart = ranges.as_slice().windows(2).all(|w| w[1].1 + 1 < w[0].0);
                prop_assert!(apart, "{:?}", ranges);
            }
        }

        #[test]
        fn they_are_bounded(numbers in proptest::collection::vec(prop_oneof![any::<u64>(), u64::MAX - 4..=u64::MAX], 0..400)) {
            let mut ranges = Ranges::default();
            for n in numbers {
                ranges.insert(n);
                prop_assert!(ranges.as_slice().len() <= RANGES);
            }
        }
    }
}
