//! The world's data of a flow: its ends, its times, and its counts.

use super::controller::Assignment;
use sojourn_measure::{FlowAccount, Histogram, Moments};
use sojourn_network::{Node, Place, Tally};
use sojourn_units::Nanos;

/// What had been counted of a flow before measuring began.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// What its connections had done.
    pub tally: Tally,
    /// The ledgers of both directions.
    pub books: [FlowAccount; 2],
}

/// A flow of a group. The application with the same number moves it.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Index of its group.
    pub group: u32,
    /// Its number within the group.
    pub number: u32,
    /// Sending and receiving node.
    pub nodes: (Node, Node),
    /// Path of its data, and the way back.
    pub places: (Place, Place),
    /// Its way to a server, if a balancer chooses one.
    pub assignment: Option<Assignment>,
    /// Its ledger: data at this index, the other direction at the next.
    pub account: u32,
    /// When it begins.
    pub start: Nanos,
    /// When its application stops offering data.
    pub stop: Nanos,
    /// When it ended.
    pub end: Option<Nanos>,
    /// Connections opened so far.
    pub connections: u32,
    /// The slot of its connection, if it has just one at a time and it is open.
    pub current: Option<u32>,
    /// What had been counted at the end of the warm-up, if anything had.
    pub before: Option<Box<Before>>,
    /// One-way delays, if asked for by flow.
    pub delay: Option<Box<Histogram>>,
    /// Times of packets with data from host to host, if its delays are those of writes.
    pub packet_delays: Option<Box<Moments>>,
    /// Transfers that ended since the end of the warm-up.
    pub finished: u64,
}
