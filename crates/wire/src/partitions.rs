//! Partitions of a store's network. Packets between hosts that a partition separates are discarded
//! at the receiving host, as in the simulation, so that the links still carry them.

use sojourn_network::Packet;
use sojourn_plan::Plan;
use sojourn_plan::store::{Fault, What};
use sojourn_queue::Packet as _;
use sojourn_units::{EPOCH, Nanos};

/// The partitions of a plan's store.
#[derive(Debug)]
pub struct Partitions {
    list: Vec<Fault>,
    /// Number of store nodes. Among the store's hosts, nodes have the first numbers, and clients
    /// the numbers after them.
    nodes: u32,
    /// For each node of the plan, its number among the store's hosts; `None` for other nodes.
    hosts: Vec<Option<u32>>,
}

impl Partitions {
    /// Returns the partitions of a plan; no partition if the plan has no store.
    pub fn new(plan: &Plan) -> Self {
        let mut made = Self { list: Vec::new(), nodes: 0, hosts: Vec::new() };
        let Some(store) = plan.stores().next() else { return made };
        made.nodes = store.nodes.len() as u32;
        made.hosts = vec![None; plan.nodes.len()];
        for (number, host) in (0..).zip(store.nodes.iter().chain(&store.clients)) {
            made.hosts[host.node] = Some(number);
        }
        let partitions = store.faults.iter().filter(|f| matches!(f.what, What::Partition { .. }));
        made.list = partitions.cloned().collect();
        made
    }

    /// Returns whether a partition separates the packet's hosts at `now`.
    pub fn cut(&self, now: Nanos, packet: &Packet) -> bool {
        !self.list.is_empty() && self.parts(now - EPOCH, packet.hosts())
    }

    fn parts(&self, now: Nanos, (from, to): (u32, u32)) -> bool {
        let host = |node: u32| self.hosts.get(node as usize).copied().flatten();
        let (Some(from), Some(to)) = (host(from), host(to)) else { return false };
        self.list.iter().any(|fault| fault.is_on(now) && fault.what.parts(self.nodes, from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_on_the_same_side_of_a_partition_hear_each_other() {
        let what = What::Partition { nodes: vec![2], clients: vec![1] };
        let list = vec![Fault { at: 10, until: Some(20), what }];
        // Three nodes and two clients of the store are the plan's nodes 1 to 5; the plan's node 0
        // is a switch.
        let hosts = [None, Some(0), Some(1), Some(2), Some(3), Some(4)].to_vec();
        let partitions = Partitions { list, nodes: 3, hosts };
        for (from, to, apart) in [
            (1, 3, true),
            (3, 1, true),
            (4, 3, true),
            (5, 1, true),
            (1, 2, false),
            (3, 5, false),
            (0, 3, false),
            (3, 0, false),
        ] {
            assert_eq!(partitions.parts(10, (from, to)), apart, "{from} to {to}");
            assert_eq!(partitions.parts(19, (from, to)), apart, "{from} to {to}");
            assert!(!partitions.parts(9, (from, to)));
            assert!(!partitions.parts(20, (from, to)));
        }
    }
}
