//! Routes: a path is a sequence of link numbers, and a packet carries its position in that
//! sequence.
//!
//! In the search for shortest paths a shared medium is a vertex like a node: links lead to it, and
//! from it each of its stations is reached without a further link.

use sojourn_plan::Plan;
use std::collections::BTreeMap;

/// Position in the table of paths: the index of the packet's present or next link.
pub type Place = u32;

/// The value that ends a path, instead of a link's number.
pub const END: u32 = u32::MAX;

/// The paths between all pairs of nodes for which a path was requested.
#[derive(Clone, Debug)]
pub struct Routes {
    /// The links of all paths, one path after the other, each followed by [`END`].
    links: Vec<u32>,
    /// Position of the first link of the path between two nodes.
    starts: BTreeMap<(u32, u32), Place>,
    /// Links that leave each node; empty for media, whose vertices follow the nodes.
    out: Vec<Vec<u32>>,
    /// Links that lead to each node, then to each medium.
    into: Vec<Vec<u32>>,
    /// First and last vertex of each link.
    ends: Vec<(u32, u32)>,
    /// The media on which each node is a station.
    media: Vec<Vec<u32>>,
    /// The stations of each medium.
    stations: Vec<Vec<u32>>,
    /// Distance in links from each node and medium to some destinations, by destination.
    distances: BTreeMap<u32, Vec<u32>>,
}

/// Maximum number of destinations in `distances`; the map is cleared when it is full.
const REMEMBERED: usize = 64;

impl Routes {
    /// Returns routes over the links of a valid plan, without a path yet.
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
                let medium = link.medium.expect("a link without a receiver is on a medium");
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

    /// Returns the position of the first link of the shortest path from node `from` to node `to`;
    /// `None` if no path exists. Among shortest paths it selects the one whose link has the lowest
    /// number at each node.
    pub fn path(&mut self, from: u32, to: u32) -> Option<Place> {
        if from == to {
            return Some(0);
        }
        if let Some(&start) = self.starts.get(&(from, to)) {
            return Some(start);
        }
        // A host to which a single link leads is reached only over that link. Distances to the
        // link's first node therefore suffice, and serve all hosts behind that node.
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
                // Continue at the first station that has the distance of the medium.
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

    /// Returns the distances in links of all nodes and media to `to`, by a breadth-first search
    /// against the direction of the links; [`END`] for vertices without a path to `to`.
    fn measure(&self, to: u32) -> Vec<u32> {
        let mut distance = vec![END; self.out.len()];
        distance[to as usize] = 0;
        let mut queue = vec![to];
        let mut next = 0;
        while let Some(&place) = queue.get(next) {
            next += 1;
            self.approach(place, &mut distance, &mut queue);
            // A medium has the distance of its nearest station, which is the first one that the
            // search visits.
            for &medium in self.media.get(place as usize).into_iter().flatten() {
                if distance[medium as usize] == END {
                    distance[medium as usize] = distance[place as usize];
                    self.approach(medium, &mut distance, &mut queue);
                }
            }
        }
        distance
    }

    /// Sets the distance of each unvisited node from which a link leads to the vertex `place`, and
    /// appends that node to `queue`.
    fn approach(&self, place: u32, distance: &mut [u32], queue: &mut Vec<u32>) {
        for &link in &self.into[place as usize] {
            let before = self.ends[link as usize].0;
            if distance[before as usize] == END {
                distance[before as usize] = distance[place as usize] + 1;
                queue.push(before);
            }
        }
    }

    /// Returns the number of positions in use. Each new path increases it.
    pub fn places(&self) -> usize {
        self.links.len()
    }

    /// Returns the link numbers of each path that was requested.
    pub fn paths(&self) -> impl Iterator<Item = &[u32]> {
        self.links.split(|&link| link == END).filter(|path| !path.is_empty())
    }

    /// Returns the link at a position, or [`END`] after the last link of a path.
    pub fn link(&self, place: Place) -> u32 {
        self.links[place as usize]
    }
}
