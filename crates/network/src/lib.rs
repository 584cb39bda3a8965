//! Links put together: what a simulated network and one of real packets have in common.
//!
//! [`Network`] holds the links of a plan and the packets in them, each on its path. Whoever drives it
//! brings packets ([`Network::send`]), calls [`Network::run`] for the link that is due next, and takes
//! what has arrived ([`Network::next_arrival`]); it does not know whose clock that is. Where links change
//! on the way, it also calls [`Network::change_links`] at [`Network::next_change`]. A simulator may have links cost no
//! event of their own ([`Network::fuse`]), and then says when it looks at them ([`Network::catch_up`]). The network keeps the
//! accounts of flows, measures, and makes the tables of a record ([`report`], [`flow_report`], [`series`]), so a
//! metric is the same thing in simulated and in real time.

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
