//! A network of links, for the simulator and for the wire, which emulates links on real packets.
//!
//! [`Network`] holds the links of a plan and the packets in them, each on its path. Its driver
//! sends packets ([`Network::send`]), calls [`Network::run`] for the link that is due next, and
//! takes the packets that have reached their hosts ([`Network::next_arrival`]). The driver passes
//! the time to each call, so the network works with simulated and with real time. If the plan
//! changes links during the run, the driver also calls [`Network::change_links`] at
//! [`Network::next_change`]. A simulator may call [`Network::fuse`], after which some links need no
//! events of their own; it then calls [`Network::catch_up`] before it reads their state. The
//! network keeps the accounts of flows, measures, and makes the tables of a record ([`report`],
//! [`flow_report`], [`series`]), so each metric has the same definition in simulated and in real
//! time.

mod changes;
mod deadlines;
mod flow_probe;
pub mod flow_report;
mod heap;
pub mod journal;
mod link_report;
mod network;
pub mod observed;
mod port;
mod probe;
mod record;
mod report;
mod roles;
mod routes;
mod selected;
mod series;
mod slab;
mod tables;
mod watched;

pub use deadlines::Deadlines;
pub use flow_probe::{GroupProbe, Tally};
pub use flow_report::{Counted, FlowLine};
pub use link_report::{rate, share};
pub use network::{Network, Options, Seen};
pub use probe::{LinkProbe, Work};
pub use record::Record;
pub use report::{Span, append_times};
pub use routes::{Place, Routes};
pub use selected::{Selected, selected};
pub use series::LinkSeries;
pub use slab::{Body, Class, Copies, Node, Packet, Slab, node};
pub use tables::{Cell, Row, append, table};
pub use watched::Watched;
