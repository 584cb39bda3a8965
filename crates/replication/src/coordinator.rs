//! Selection of the coordinator: the node to which a client sends a request.
//!
//! Source: the load-balancing policies of the `DataStax` driver for Python, `RoundRobinPolicy`,
//! `DCAwareRoundRobinPolicy` and `TokenAwarePolicy`. `round-robin` selects in turn among all nodes
//! that are up. `dc-aware` selects in turn among the nodes of the client's data centre, and other
//! nodes only if all of these are down. `token-aware` prefers the key's replicas.

use super::NodeId;
use sojourn_units::choices;

choices! {
    /// Rule for the choice of a coordinator.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "kebab-case")]
    pub enum Policy {
        /// All nodes in turn.
        RoundRobin = "round-robin",
        /// All nodes of the client's data centre in turn.
        DcAware = "dc-aware",
        /// Replicas of the key in turn; any node if none is up.
        TokenAware = "token-aware",
        /// Replicas of the key in the client's data centre in turn; as `DcAware` if none is up.
        TokenDcAware = "token-dc-aware",
    }
}

/// Selection of coordinators for one client.
#[derive(Clone, Copy, Debug)]
pub struct Chooser {
    policy: Policy,
    turn: u32,
}

impl Chooser {
    /// Returns a selection that begins with node `turn`.
    pub fn new(policy: Policy, turn: u32) -> Self {
        Self { policy, turn }
    }

    /// Returns the coordinator of the next request for a key with these `replicas`; `None` if all
    /// nodes are down. `places` has data centre and rack of each node. `local` is the client's data
    /// centre.
    pub fn choose(
        &mut self,
        places: &[(u32, u32)],
        local: u32,
        replicas: &[NodeId],
        up: impl Fn(NodeId) -> bool,
    ) -> Option<NodeId> {
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
        let here = |&node: &NodeId| places[node as usize].0 == local;
        let nodes = 0..places.len() as NodeId;
        let any = || pick(turn, nodes.clone().filter(|&n| up(n)));
        let near = || pick(turn, nodes.clone().filter(here).filter(|&n| up(n))).or_else(any);
        match self.policy {
            Policy::RoundRobin => any(),
            Policy::DcAware => near(),
            Policy::TokenAware => {
                pick(turn, replicas.iter().copied().filter(|&n| up(n))).or_else(any)
            }
            Policy::TokenDcAware => {
                pick(turn, replicas.iter().copied().filter(here).filter(|&n| up(n))).or_else(near)
            }
        }
    }
}

/// Returns the candidate at position `turn`, counted modulo the number of candidates.
fn pick(turn: u32, candidates: impl Iterator<Item = NodeId> + Clone) -> Option<NodeId> {
    let count = candidates.clone().count();
    if count == 0 {
        return None;
    }
    let mut candidates = candidates;
    candidates.nth(turn as usize % count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [(u32, u32); 5] = [(0, 0), (0, 0), (1, 0), (1, 0), (1, 0)];

    fn chosen(policy: Policy, down: &[NodeId]) -> Vec<Option<NodeId>> {
        let mut chooser = Chooser::new(policy, 0);
        let up = |node| !down.contains(&node);
        (0..6).map(|_| chooser.choose(&PLACES, 0, &[1, 2], up)).collect()
    }

    #[test]
    fn each_policy_has_its_order() {
        let some = |nodes: [NodeId; 6]| nodes.map(Some).to_vec();
        assert_eq!(chosen(Policy::RoundRobin, &[]), some([0, 1, 2, 3, 4, 0]));
        assert_eq!(chosen(Policy::DcAware, &[]), some([0, 1, 0, 1, 0, 1]));
        assert_eq!(chosen(Policy::TokenAware, &[]), some([1, 2, 1, 2, 1, 2]));
        assert_eq!(chosen(Policy::TokenDcAware, &[]), some([1; 6]));
    }

    #[test]
    fn nodes_that_are_down_are_passed_over() {
        let some = |nodes: [NodeId; 6]| nodes.map(Some).to_vec();
        assert_eq!(chosen(Policy::RoundRobin, &[1]), some([0, 2, 3, 4, 0, 2]));
        assert_eq!(chosen(Policy::DcAware, &[0, 1]), some([2, 3, 4, 2, 3, 4]));
        assert_eq!(chosen(Policy::TokenAware, &[1, 2]), some([0, 3, 4, 0, 3, 4]));
        assert_eq!(chosen(Policy::TokenDcAware, &[1]), some([0; 6]));
        assert_eq!(chosen(Policy::RoundRobin, &[0, 1, 2, 3, 4]), [None; 6]);
    }

    #[test]
    fn a_thousand_requests_are_two_hundred_of_each_of_five() {
        let mut chooser = Chooser::new(Policy::RoundRobin, 3);
        let mut counts = [0; 5];
        for _ in 0..1000 {
            counts[chooser.choose(&PLACES, 0, &[], |_| true).unwrap() as usize] += 1;
        }
        assert_eq!(counts, [200; 5]);
    }
}
