//! Placement of replicas: the nodes that store a key.
//!
//! Source: Cassandra 5.0's `SimpleStrategy` and `NetworkTopologyStrategy`,
//! `calculateNaturalReplicas`. `simple` selects the next distinct nodes on the ring.
//! `network-topology` does this separately in each data centre, and prefers racks without a
//! replica. It selects a node of a rack that already has a replica only as often as the number of
//! replicas exceeds the number of racks.

use super::{MOST_REPLICAS, NodeId, Ring, Token};
use sojourn_units::data;

/// Rule for the placement of replicas.
#[data]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case", tag = "strategy", deny_unknown_fields)]
pub enum Placement {
    /// The next nodes on the ring, regardless of their location.
    Simple {
        /// Replication factor.
        factor: u32,
    },
    /// A number of replicas in each data centre, distributed over as many racks as possible.
    NetworkTopology {
        /// Replication factor of each data centre, in the order of their numbers.
        factors: Vec<u32>,
    },
}

impl Placement {
    /// Returns the total number of replicas of a key.
    pub fn factor(&self) -> u32 {
        match self {
            Self::Simple { factor } => *factor,
            Self::NetworkTopology { factors } => factors.iter().sum(),
        }
    }

    /// Returns the replication factor of a data centre; `None` if the placement does not
    /// distinguish data centres.
    pub fn factor_in(&self, data_centre: u32) -> Option<u32> {
        match self {
            Self::Simple { .. } => None,
            Self::NetworkTopology { factors } => {
                Some(factors.get(data_centre as usize).copied().unwrap_or(0))
            }
        }
    }

    /// Checks that a key has 1 to `MOST_REPLICAS` replicas, and that the ring has enough nodes for
    /// all replicas.
    ///
    /// # Errors
    /// If the number of replicas is not allowed, or the nodes do not suffice.
    pub fn check(&self, ring: &Ring) -> Result<(), String> {
        let total = self.factor() as usize;
        if total == 0 || total > MOST_REPLICAS {
            return Err(format!(
                "a key must have 1 to {MOST_REPLICAS} replicas, found {total} replicas"
            ));
        }
        let fits = |wanted: u32, nodes: usize, whose: &str| {
            if wanted as usize <= nodes {
                return Ok(());
            }
            Err(format!("replication factor {wanted} is above the {nodes} nodes{whose}"))
        };
        match self {
            Self::Simple { factor } => fits(*factor, ring.nodes(), ""),
            Self::NetworkTopology { factors } => {
                for (dc, &wanted) in factors.iter().enumerate() {
                    let nodes = ring.places().iter().filter(|place| place.0 as usize == dc);
                    fits(wanted, nodes.count(), &format!(" of data centre {}", dc + 1))?;
                }
                Ok(())
            }
        }
    }

    /// Stores the nodes with replicas of a token in `found`, in the order of the ring.
    pub fn replicas(&self, ring: &Ring, token: Token, found: &mut Vec<NodeId>) {
        found.clear();
        match self {
            Self::Simple { factor } => {
                for node in ring.walk(token) {
                    if found.len() == *factor as usize {
                        break;
                    }
                    if !found.contains(&node) {
                        found.push(node);
                    }
                }
            }
            Self::NetworkTopology { factors } => by_topology(ring, token, factors, found),
        }
    }
}

/// Replicas that are still to be placed in one data centre.
struct Wanted {
    left: usize,
    /// Number of further replicas that may be placed in racks that already have a replica.
    repeats: i64,
    racks: Vec<u32>,
}

fn by_topology(ring: &Ring, token: Token, factors: &[u32], found: &mut Vec<NodeId>) {
    let mut wanted: Vec<Wanted> = factors
        .iter()
        .enumerate()
        .map(|(dc, &factor)| {
            let mut racks: Vec<u32> = Vec::new();
            let mut nodes = 0;
            for place in ring.places().iter().filter(|place| place.0 as usize == dc) {
                nodes += 1;
                racks.push(place.1);
            }
            racks.sort_unstable();
            racks.dedup();
            Wanted {
                left: nodes.min(factor as usize),
                repeats: i64::from(factor) - racks.len() as i64,
                racks: Vec::new(),
            }
        })
        .collect();
    let mut open = wanted.iter().filter(|w| w.left > 0).count();
    for node in ring.walk(token) {
        if open == 0 {
            break;
        }
        let (dc, rack) = ring.place(node);
        let Some(wanted) = wanted.get_mut(dc as usize).filter(|w| w.left > 0) else { continue };
        if found.contains(&node) {
            continue;
        }
        if wanted.racks.contains(&rack) {
            if wanted.repeats <= 0 {
                continue;
            }
            wanted.repeats -= 1;
        } else {
            wanted.racks.push(rack);
        }
        found.push(node);
        wanted.left -= 1;
        open -= usize::from(wanted.left == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Member;
    use crate::ring::even;
    use proptest::prelude::*;

    fn ring(places: &[(u32, u32)]) -> Ring {
        let nodes = places.len() as u32;
        let member = |(i, &(data_centre, rack)): (usize, &(u32, u32))| Member {
            tokens: vec![even(i as u32, nodes)],
            data_centre,
            rack,
        };
        Ring::new(&places.iter().enumerate().map(member).collect::<Vec<_>>()).unwrap()
    }

    fn replicas(placement: &Placement, ring: &Ring, token: Token) -> Vec<NodeId> {
        let mut found = Vec::new();
        placement.replicas(ring, token, &mut found);
        found
    }

    #[test]
    fn simple_takes_the_next_nodes() {
        let ring = ring(&[(0, 0); 5]);
        let placement = Placement::Simple { factor: 3 };
        assert_eq!(replicas(&placement, &ring, Token::MIN), [0, 1, 2]);
        assert_eq!(replicas(&placement, &ring, Token::MIN + 1), [1, 2, 3]);
        assert_eq!(replicas(&placement, &ring, Token::MAX), [0, 1, 2]);
    }

    #[test]
    fn racks_come_before_nodes() {
        // Nodes of the same rack are neighbours on the ring: the second replica skips the rack of
        // the first.
        let ring = ring(&[(0, 0), (0, 0), (0, 1), (0, 1)]);
        let two = Placement::NetworkTopology { factors: vec![2] };
        assert_eq!(replicas(&two, &ring, Token::MIN), [0, 2]);
        // Three replicas in two racks: one rack has two replicas.
        let three = Placement::NetworkTopology { factors: vec![3] };
        assert_eq!(replicas(&three, &ring, Token::MIN), [0, 1, 2]);
    }

    #[test]
    fn a_factor_above_the_nodes_is_refused() {
        let ring = ring(&[(0, 0), (0, 0), (1, 0)]);
        let fails = |p: Placement| p.check(&ring).unwrap_err();
        assert!(fails(Placement::Simple { factor: 4 }).contains("above the 3 nodes"));
        assert!(fails(Placement::Simple { factor: 0 }).contains("0 replicas"));
        let topology = |factors| Placement::NetworkTopology { factors };
        assert!(fails(topology(vec![2, 2])).contains("data centre 2"));
        assert!(topology(vec![2, 1]).check(&ring).is_ok());
    }

    proptest! {
        #[test]
        fn each_key_has_as_many_distinct_replicas_as_wanted(
            places in proptest::collection::vec((0u32..3, 0u32..4), 1..24),
            factors in proptest::collection::vec(0u32..6, 3),
            token: Token,
        ) {
            let ring = ring(&places);
            let placement = Placement::NetworkTopology { factors: factors.clone() };
            let found = replicas(&placement, &ring, token);
            for (dc, &factor) in factors.iter().enumerate() {
                let here = places.iter().filter(|p| p.0 as usize == dc);
                let racks: std::collections::BTreeSet<_> = here.clone().map(|p| p.1).collect();
                let nodes = here.count();
                let mine: Vec<_> =
                    found.iter().filter(|&&n| ring.data_centre(n) as usize == dc).collect();
                // Cassandra places fewer replicas in a data centre if its racks have too few nodes.
                let wanted = nodes.min(factor as usize);
                prop_assert!(mine.len() <= wanted);
                if factor as usize <= racks.len() || nodes <= factor as usize {
                    prop_assert_eq!(mine.len(), wanted);
                }
                let of: std::collections::BTreeSet<_> =
                    mine.iter().map(|&&n| ring.place(n).1).collect();
                prop_assert!(of.len() >= racks.len().min(mine.len()).min(factor as usize));
            }
            let mut sorted = found.clone();
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert_eq!(sorted.len(), found.len());
        }
    }
}
