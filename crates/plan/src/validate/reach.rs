//! Reachability of nodes over the links of a plan.

use crate::Plan;

/// Reachability between all pairs of nodes. In nearly all plans every node reaches every other one.
/// Therefore the nodes that reach node 0 and are reached from it are determined once, and only for
/// other nodes a search is needed. Shared media are vertices of the graph, with numbers after the
/// nodes.
pub(super) struct Reach {
    out: Vec<Vec<u32>>,
    hub: Vec<bool>,
}

fn search(edges: &[Vec<u32>], from: usize) -> Vec<bool> {
    let mut reached = vec![false; edges.len()];
    let mut open = Vec::new();
    if let Some(first) = reached.get_mut(from) {
        *first = true;
        open.push(from as u32);
    }
    while let Some(node) = open.pop() {
        for &next in &edges[node as usize] {
            if !std::mem::replace(&mut reached[next as usize], true) {
                open.push(next);
            }
        }
    }
    reached
}

impl Reach {
    /// Returns the reachability over the links of a plan. All indices of the plan must be in range.
    pub fn new(plan: &Plan) -> Self {
        let mut out = vec![Vec::new(); plan.nodes.len() + plan.media.len()];
        let mut into = out.clone();
        let mut edge = |from: usize, to: usize| {
            out[from].push(to as u32);
            into[to].push(from as u32);
        };
        for link in &plan.links {
            let medium = || {
                plan.nodes.len()
                    + link.medium.expect("`check_ends` has found a medium or a receiver")
            };
            edge(link.from, link.to.unwrap_or_else(medium));
            if link.to.is_none() {
                edge(medium(), link.from);
            }
        }
        let hub = search(&out, 0).iter().zip(search(&into, 0)).map(|(&a, b)| a && b).collect();
        Self { out, hub }
    }

    /// Returns whether a path of links leads from one node to another.
    pub fn reaches(&self, from: usize, to: usize) -> bool {
        self.hub[from] && self.hub[to] || search(&self.out, from)[to]
    }
}
