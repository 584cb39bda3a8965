//! Consistency levels: the number of replicas that must answer before a request succeeds.
//!
//! Source: Cassandra 5.0's `ConsistencyLevel.blockFor` and the handlers of write responses. A
//! quorum of n is n / 2 + 1. LOCAL levels count only the replicas of the coordinator's data centre;
//! `EACH_QUORUM` requires a quorum in every data centre with replicas of the key. If the placement
//! does not distinguish data centres, quorums are of all replicas.

use super::Placement;
use sojourn_units::choices;

choices! {
    /// A consistency level.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Level {
        /// One replica.
        One = "one",
        /// Two replicas.
        Two = "two",
        /// Three replicas.
        Three = "three",
        /// More than half of all replicas.
        Quorum = "quorum",
        /// One replica in the coordinator's data centre.
        LocalOne = "local_one",
        /// More than half of the replicas in the coordinator's data centre.
        LocalQuorum = "local_quorum",
        /// More than half of the replicas in each data centre.
        EachQuorum = "each_quorum",
        /// All replicas.
        All = "all",
    }
}

impl Level {
    /// Returns the answers that a request needs if its coordinator is in the data centre `local`.
    pub fn need(self, placement: &Placement, local: u32) -> Need {
        let all = placement.factor();
        let here = placement.factor_in(local).unwrap_or(all);
        let of_all = |count| Need::Any { count };
        match (self, placement) {
            (Self::One, _) => of_all(1),
            (Self::Two, _) => of_all(2),
            (Self::Three, _) => of_all(3),
            (Self::All, _) => of_all(all),
            (Self::LocalOne, _) => Need::Local { data_centre: local, count: 1 },
            (Self::LocalQuorum, _) => Need::Local { data_centre: local, count: quorum(here) },
            (Self::EachQuorum, Placement::NetworkTopology { factors }) => {
                let each =
                    factors.iter().map(|&factor| if factor > 0 { quorum(factor) } else { 0 });
                Need::Each { counts: each.collect() }
            }
            (Self::Quorum | Self::EachQuorum, _) => of_all(quorum(all)),
        }
    }
}

/// Returns the smallest number of replicas that is more than half of `replicas`.
pub fn quorum(replicas: u32) -> u32 {
    replicas / 2 + 1
}

/// The answers that a request needs before it succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Answers of any replicas.
    Any {
        /// Number of answers.
        count: u32,
    },
    /// Answers of replicas in one data centre.
    Local {
        /// Number of the data centre.
        data_centre: u32,
        /// Number of answers.
        count: u32,
    },
    /// Answers of replicas in each data centre.
    Each {
        /// Number of answers for each data centre, in the order of their numbers.
        counts: Vec<u32>,
    },
}

impl Need {
    /// Returns the probability that the needed number of replicas, drawn at random without
    /// replacement, all lack a write. `replicas` states each replica's data centre and whether it
    /// has the write.
    pub fn misses(&self, replicas: &[(u32, bool)]) -> f64 {
        let of = |data_centre: Option<u32>, count: u32| {
            let here = || replicas.iter().filter(|r| data_centre.is_none_or(|dc| r.0 == dc));
            drawn_without(here().filter(|r| !r.1).count(), here().count(), count)
        };
        match self {
            Self::Any { count } => of(None, *count),
            Self::Local { data_centre, count } => of(Some(*data_centre), *count),
            Self::Each { counts } => {
                counts.iter().zip(0..).map(|(&count, dc)| of(Some(dc), count)).product()
            }
        }
    }

    /// Returns the total number of answers needed.
    pub fn count(&self) -> u32 {
        match self {
            Self::Any { count } | Self::Local { count, .. } => *count,
            Self::Each { counts } => counts.iter().sum(),
        }
    }

    /// Returns whether one answer from each of these data centres, which may repeat, satisfies the
    /// need.
    pub fn met_by(&self, data_centres: impl Iterator<Item = u32> + Clone) -> bool {
        let here = |dc: u32| data_centres.clone().filter(|&d| d == dc).count();
        match self {
            Self::Any { count } => data_centres.count() >= *count as usize,
            Self::Local { data_centre, count } => here(*data_centre) >= *count as usize,
            Self::Each { counts } => {
                counts.iter().enumerate().all(|(dc, &count)| here(dc as u32) >= count as usize)
            }
        }
    }
}

/// Returns the probability that `count` replicas, drawn at random without replacement from `all`,
/// all belong to the `lacking` ones.
fn drawn_without(lacking: usize, all: usize, count: u32) -> f64 {
    (0..count as usize)
        .map(|i| lacking.saturating_sub(i) as f64 / all.saturating_sub(i).max(1) as f64)
        .product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::declare::Choices;

    #[test]
    fn levels_need_what_cassandra_says() {
        let simple = Placement::Simple { factor: 5 };
        let count = |level: Level, placement: &Placement| level.need(placement, 0).count();
        let of =
            |p: &Placement| Level::ALL.iter().map(|level| count(*level, p)).collect::<Vec<_>>();
        assert_eq!(of(&simple), [1, 2, 3, 3, 1, 3, 3, 5]);
        let topology = Placement::NetworkTopology { factors: vec![3, 2] };
        assert_eq!(of(&topology), [1, 2, 3, 3, 1, 2, 4, 5]);
        assert_eq!([1, 2, 3, 4, 5].map(quorum), [1, 2, 2, 3, 3]);
    }

    #[test]
    fn local_levels_need_local_replicas() {
        let topology = Placement::NetworkTopology { factors: vec![3, 2] };
        let local = Level::LocalQuorum.need(&topology, 1);
        assert!(!local.met_by([0, 0, 0, 1].into_iter()));
        assert!(local.met_by([1, 1].into_iter()));
        let each = Level::EachQuorum.need(&topology, 0);
        assert!(!each.met_by([0, 0, 0, 1].into_iter()));
        assert!(each.met_by([0, 0, 1, 1].into_iter()));
    }

    #[test]
    fn a_draw_misses_as_often_as_counting_says() {
        // Two of five replicas lack the write. One of the ten possible pairs consists of these two.
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12);
        let five = [(0, true), (0, false), (0, true), (0, false), (0, true)];
        close(Need::Any { count: 1 }.misses(&five), 0.4);
        close(Need::Any { count: 2 }.misses(&five), 0.1);
        close(Need::Any { count: 3 }.misses(&five), 0.0);
        let centres = [(0, false), (0, true), (1, false), (1, false)];
        close(Need::Local { data_centre: 1, count: 1 }.misses(&centres), 1.0);
        close(Need::Each { counts: vec![1, 1] }.misses(&centres), 0.5);
    }
}
