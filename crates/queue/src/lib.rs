//! Queue disciplines, written once for simulated and for real packets.
//!
//! A discipline owns its packets and knows no clock, no randomness and no I/O: the time is an
//! argument, draws are asked for by width, and drops and marks are handed to a sink. See
//! [`discipline::Discipline`] for the contract, and one module per discipline for the rest.

pub mod discipline;
pub mod packet;

pub use discipline::{Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, View};
pub use packet::{Ecn, Packet};
