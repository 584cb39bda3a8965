//! The world's data of a flow: nodes, paths, times and counts.

use super::controller::Assignment;
use sojourn_measure::{FlowAccount, Histogram, Moments};
use sojourn_network::{Node, Place, Tally};
use sojourn_units::Nanos;

/// Counts of a flow at the end of the warm-up.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// TCP's counters of the flow's connections.
    pub tally: Tally,
    /// The packet accounts of the data direction and of the opposite direction.
    pub books: [FlowAccount; 2],
}

/// A flow of a group. The application with the same number sends its data.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Index of the flow's group.
    pub group: u32,
    /// Number of the flow within its group.
    pub number: u32,
    /// Sending and receiving node.
    pub nodes: (Node, Node),
    /// Path of the data, and path of the opposite direction; the latter is 0 for UDP.
    pub places: (Place, Place),
    /// Assignment of a server; `None` without a balancer.
    pub assignment: Option<Assignment>,
    /// Index of the account of the data direction; that of the opposite direction is the next one.
    pub account: u32,
    /// When the flow begins, or `NEVER`.
    pub start: Nanos,
    /// When the application stops offering data, or `NEVER`.
    pub stop: Nanos,
    /// When the flow ended; `None` before.
    pub end: Option<Nanos>,
    /// Number of connections opened so far.
    pub connections: u32,
    /// Slot of the opener's end of the open connection, for flows with one connection at a time.
    pub current: Option<u32>,
    /// Counts at the end of the warm-up; `None` if all were 0.
    pub before: Option<Box<Before>>,
    /// Distribution of one-way delays; `None` unless the plan sets `per_flow_histograms`.
    pub delay: Option<Box<Histogram>>,
    /// One-way delays of packets with data, for flows whose `delay` has the delays of writes.
    pub packet_delays: Option<Box<Moments>>,
    /// Number of transfers completed since the end of the warm-up.
    pub finished: u64,
}
