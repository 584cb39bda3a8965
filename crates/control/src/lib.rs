//! Congestion control and the other policies: pure functions of what they are told.
//!
//! A policy here has no clock, no I/O and no randomness. The same policy is driven by the virtual
//! clock of the simulator and by the real one of the measuring parts.
#![allow(clippy::doc_markdown, reason = "HyStart and NewReno are names, not code")]
#![allow(clippy::struct_excessive_bools, reason = "independent facts of the protocols")]

pub mod balance;
pub mod buffer;
pub mod congestion;
pub mod store;
