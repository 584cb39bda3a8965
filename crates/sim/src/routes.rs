//! Routes, worked out before the run: a path is a row of link numbers, and a packet carries its
//! place in it.

use sojourn_plan::Link;
use std::collections::BTreeMap;

/// Where the next link of a packet's path stands.
pub type Place = u32;

/// Ends a path.
pub const END: u32 = u32::MAX;

/// Paths between the pairs of nodes in use.
#[derive(Clone, Debug)]
pub struct Routes {
    /// All paths, one after the other, each closed by [`END`].
    links: Vec<u32>,
    starts: BTreeMap<(u32, u32), Place>,
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
    ends: Vec<(u32, u32)>,
    /// Each node's distance to some destinations.
    distances: BTreeMap<u32, Vec<u32>>,
}

/// Destinations whose distances are remembered.
const REMEMBERED: usize = 64;

impl Routes {
    /// Routes over `links` between `nodes` nodes.
    pub fn new(nodes: usize, links: &[Link]) -> Self {
        let ends: Vec<_> = links.iter().map(|l| (l.from as u32, l.to as u32)).collect();
        let (mut out, mut into) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        for (link, &(from, to)) in ends.iter().enumerate() {
            out[from as usize].push(link as u32);
            into[to as usize].push(link as u32);
        }
        let (starts, distances) = (BTreeMap::new(), BTreeMap::new());
        Self { links: vec![END], starts, out, into, ends, distances }
    }

    /// The first place of the shortest path from one node to another; `None` if there is none. Among
    /// shortest paths the one that takes the lowest link at each node.
    pub fn path(&mut self, from: u32, to: u32) -> Option<Place> {
        if from == to {
            return Some(0);
        }
        if let Some(&start) = self.starts.get(&(from, to)) {
            return Some(start);
        }
        // A host at the end of a single link is reached through it: distances are needed only to
        // the node before, which thousands of hosts may share.
        let last = match self.into[to as usize][..] {
            [only] => Some(only),
            _ => None,
        };
        let goal = last.map_or(to, |link| self.ends[link as usize].0);
        if !self.distances.contains_key(&goal) {
            if self.distances.len() == REMEMBERED {
                self.distances.clear();
            }
            self.distances.insert(goal, self.measure(goal));
        }
        let distance = &self.distances[&goal];
        if distance[from as usize] == END {
            return None;
        }
        let start = self.links.len() as Place;
        let mut node = from;
        while node != goal {
            let nearer = distance[node as usize] - 1;
            let link = *self.out[node as usize]
                .iter()
                .find(|&&l| distance[self.ends[l as usize].1 as usize] == nearer)
                .expect("a node at a distance has a neighbour one nearer");
            self.links.push(link);
            node = self.ends[link as usize].1;
        }
        self.links.extend(last);
        self.links.push(END);
        self.starts.insert((from, to), start);
        Some(start)
    }

    /// Distances of all nodes to `to`, breadth first against the links' direction.
    fn measure(&self, to: u32) -> Vec<u32> {
        let mut distance = vec![END; self.out.len()];
        distance[to as usize] = 0;
        let mut queue = vec![to];
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            for &link in &self.into[node as usize] {
                let before = self.ends[link as usize].0;
                if distance[before as usize] == END {
                    distance[before as usize] = distance[node as usize] + 1;
                    queue.push(before);
                }
            }
        }
        distance
    }

    /// The link at a place of a path, or [`END`].
    #[inline]
    pub fn link(&self, place: Place) -> u32 {
        self.links[place as usize]
    }
}
