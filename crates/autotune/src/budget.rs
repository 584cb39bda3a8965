//! Division of one memory budget among all tuned sockets.

use sojourn_units::Bytes;

/// Claim of one socket on the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Minimum size in bytes: the larger of the socket's original size and its occupancy.
    pub least: Bytes,
    /// Size in bytes that the policy wants; at least `least`.
    pub wanted: Bytes,
}

/// Returns the max-min fair division of `budget`, in bytes. No socket gets more than it wants. All
/// sockets that get less than they want get the same size, or their minimum size if that is larger,
/// even if the sum then exceeds the budget.
pub fn divide(budget: Bytes, claims: &[Claim]) -> Vec<Bytes> {
    let wanted: u128 = claims.iter().map(|claim| u128::from(claim.wanted)).sum();
    if wanted <= u128::from(budget) {
        return claims.iter().map(|claim| claim.wanted).collect();
    }
    let given =
        |level: Bytes| claims.iter().map(move |claim| claim.wanted.min(level).max(claim.least));
    // Bisection finds the highest level at which the sum of all sizes fits. The sum never falls as
    // the level rises.
    let (mut fits, mut exceeds) = (0, claims.iter().map(|claim| claim.wanted).max().unwrap_or(0));
    while exceeds - fits > 1 {
        let middle = fits + (exceeds - fits) / 2;
        if given(middle).map(u128::from).sum::<u128>() <= u128::from(budget) {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
    given(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(least: Bytes, wanted: Bytes) -> Claim {
        Claim { least, wanted }
    }

    #[test]
    fn fair() {
        assert_eq!(divide(100, &[claim(0, 30), claim(0, 40)]), [30, 40]);
        assert_eq!(divide(100, &[claim(0, 30), claim(0, 400)]), [30, 70]);
        assert_eq!(divide(100, &[claim(0, 300), claim(0, 400)]), [50, 50]);
        assert_eq!(divide(100, &[claim(80, 300), claim(0, 400)]), [80, 20]);
        assert_eq!(divide(100, &[claim(80, 300), claim(90, 400)]), [80, 90]);
        assert_eq!(divide(0, &[]), Vec::<Bytes>::new());
    }

    proptest! {
        #[test]
        fn within_budget_and_never_below_the_least(
            budget in 0u64..1 << 40,
            sizes in prop::collection::vec((0u64..1 << 38, 0u64..1 << 38), 0..20),
        ) {
            let claims: Vec<_> = sizes.iter().map(|&(a, b)| claim(a.min(b), a.max(b))).collect();
            let given = divide(budget, &claims);
            let least: u64 = claims.iter().map(|claim| claim.least).sum();
            prop_assert!(given.iter().sum::<u64>() <= budget.max(least));
            for (claim, &size) in claims.iter().zip(&given) {
                prop_assert!((claim.least..=claim.wanted).contains(&size));
            }
            for (i, a) in claims.iter().enumerate() {
                for (j, b) in claims.iter().enumerate() {
                    // A socket that gets less than it wants gets at least as much as any socket
                    // above its minimum.
                    if given[i] < a.wanted && given[j] > b.least {
                        prop_assert!(given[i] >= given[j]);
                    }
                }
            }
        }
    }
}
