//! Routes, worked out before the run: a path is a row of link numbers, and a packet carries its
//! place in it.
//!
//! A shared medium is a place like a node: links lead to it, and from it each of its stations is
//! reached without a further link.

use sojourn_plan::Plan;
use std::collections::BTreeMap;

/// The place of the next link of a packet's path.
pub type Place = u32;

/// Ends a path.
pub const END: u32 = u32::MAX;

/// Paths between the pairs of nodes in use.
#[derive(Clone, Debug)]
pub struct Routes {
    /// All paths, one after the other, each closed by [`END`].
    links: Vec<u32>,
    starts: BTreeMap<(u32, u32), Place>,
    /// Links from and to each node, then to each medium.
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
    ends: Vec<(u32, u32)>,
    /// The media on which each node is a station.
    media: Vec<Vec<u32>>,
    /// The stations of each medium.
    stations: Vec<Vec<u32>>,
    /// Each node's and medium's distance to some destinations.
    distances: BTreeMap<u32, Vec<u32>>,
}

/// Destinations whose distances are remembered.
const REMEMBERED: usize = 64;

impl Routes {
    /// Routes over the links of a plan that is valid.
    pub fn new(plan: &Plan) -> Self {
        let (nodes, places) = (plan.nodes.len(), plan.nodes.len() + plan.media.len());
        let mut routes = Self {
            links: vec![END],
            starts: BTreeMap::new(),
            out: vec![Vec::new(); places],
            into: vec![Vec::new(); places],
            ends: Vec::with_capacity(plan.links.len()),
            media: vec![Vec::new(); nodes],
            stations: vec![Vec::new(); plan.media.len()],
            distances: BTreeMap::new(),
        };
        for (number, link) in plan.links.iter().enumerate() {
            let to = link.to.unwrap_or_else(|| {
                let medium = link.medium.expect("only a medium leads to several");
                if !routes.stations[medium].contains(&(link.from as u32)) {
                    routes.stations[medium].push(link.from as u32);
                    routes.media[link.from].push((nodes + medium) as u32);
                }
                nodes + medium
            });
            routes.out[link.from].push(number as u32);
            routes.into[to].push(number as u32);
            routes.ends.push((link.from as u32, to as u32));
        }
        routes
    }

    /// Returns the first place of the shortest path from one node to another; `None` without a
    /// path. Among shortest paths it is the one that takes the lowest link at each node.
    pub fn path(&mut self, from: u32, to: u32) -> Option<Place> {
        if from == to {
            return Some(0);
        }
        if let Some(&start) = self.starts.get(&(from, to)) {
            return Some(start);
        }
        // A host at the end of a single link is reached through it: distances are needed only to
        // the node before, which thousands of hosts may share.
        let (last, goal) = match (&self.into[to as usize][..], &self.media[to as usize][..]) {
            ([only], []) => (Some(*only), self.ends[*only as usize].0),
            ([], [medium]) => (None, *medium),
            _ => (None, to),
        };
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
            if node != goal
                && let Some(medium) = (node as usize).checked_sub(self.media.len())
            {
                // The first of the stations that are as near as the medium is.
                node = *self.stations[medium]
                    .iter()
                    .find(|&&station| distance[station as usize] == nearer)
                    .expect("a medium is as near as one of its stations");
            }
        }
        self.links.extend(last);
        self.links.push(END);
        self.starts.insert((from, to), start);
        Some(start)
    }

    /// Distances of all nodes and media to `to`, breadth first against the links' direction.
    fn measure(&self, to: u32) -> Vec<u32> {
        let mut distance = vec![END; self.out.len()];
        distance[to as usize] = 0;
        let mut queue = vec![to];
        let mut next = 0;
        while let Some(&place) = queue.get(next) {
            next += 1;
            self.approach(place, &mut distance, &mut queue);
            // A medium is no further than its nearest station: it takes its turn with it.
            for &medium in self.media.get(place as usize).into_iter().flatten() {
                if distance[medium as usize] == END {
                    distance[medium as usize] = distance[place as usize];
                    self.approach(medium, &mut distance, &mut queue);
                }
            }
        }
        distance
    }

    /// Measures the nodes that a link leads from to `place`.
    fn approach(&self, place: u32, distance: &mut [u32], queue: &mut Vec<u32>) {
        for &link in &self.into[place as usize] {
            let before = self.ends[link as usize].0;
            if distance[before as usize] == END {
                distance[before as usize] = distance[place as usize] + 1;
                queue.push(before);
            }
        }
    }

    /// Places so far; a path that is new adds some.
    pub fn places(&self) -> usize {
        self.links.len()
    }

    /// All paths in use, as the links that they lead over.
    pub fn paths(&self) -> impl Iterator<Item = &[u32]> {
        self.links.split(|&link| link == END).filter(|path| !path.is_empty())
    }

    /// The link at a place of a path, or [`END`].
    #[inline]
    pub fn link(&self, place: Place) -> u32 {
        self.links[place as usize]
    }
}
