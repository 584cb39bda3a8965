//! Congestion control and the other policies: pure functions of what they are told.
//!
//! A policy here has no clock, no I/O and no randomness. The same policy is driven by the virtual
//! clock of the simulator and by the real one of the measuring parts.

pub mod congestion;
