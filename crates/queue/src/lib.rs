//! Queue disciplines, written once for simulated and for real packets.
//!
//! A discipline owns its packets and knows no clock, no randomness and no I/O: the time is an
//! argument, draws are asked for by width, and drops and marks are handed to a sink. See
//! [`discipline::Discipline`] for the contract, and one module per discipline for the rest.
//!
//! [`Params::parse`] reads a description in `tc` syntax, [`Params::build`] makes the [`Queue`].

#![allow(clippy::doc_markdown, reason = "CoDel and its like are names, not code")]

pub mod blue;
pub mod cake;
pub mod choke;
pub mod cobalt;
pub mod codel;
pub mod daqm;
mod device;
pub mod discipline;
pub mod dualpi2;
pub mod fifo;
mod flow_queues;
pub mod fq_cobalt;
pub mod fq_codel;
pub mod fq_pie;
pub mod jiffies;
mod kinds;
mod limit;
pub mod packet;
pub mod params;
pub mod pi;
pub mod pi2;
pub mod pie;
pub mod queue;
pub mod red;
pub mod sfb;
pub mod store;
mod tc;

pub use device::Device;
pub use discipline::{
    Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals, View,
};
pub use limit::Unit;
pub use packet::{Ecn, Packet, SackBlocks, TcpView};
pub use params::{Params, tables};
pub use queue::Queue;
pub use tc::NoKernelEquivalent;
