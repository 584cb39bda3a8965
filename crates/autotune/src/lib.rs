//! Observation and control of the receive buffers of running UDP servers, from outside the server.
//!
//! A policy of `sojourn_buffer` decides the sizes. This crate observes the sockets of unmodified
//! programs and applies the policy's decisions. [`tuner::Tuner`] does this for another program's
//! sockets, [`own::Adaptive`] for a socket of the calling program (`examples/server.rs`).
//!
//! # Observation and changes
//! The kernel reports sockets through `sock_diag` (`diag`), from inside their network namespace.
//! For a change, a descriptor is copied from the server (`pidfd_getfd`, `process`) and closed
//! immediately afterwards. A copy that stayed open would keep the port bound after the server's
//! end, so that the server could not restart.
//!
//! # Invariants
//! * Before the first change of a socket, its original setting is on disk ([`journal`]). After a
//!   `kill -9`, [`restore()`](restore::restore) restores it; the socket is found by its cookie,
//!   which is unique within a boot.
//! * A process is identified by a pidfd, so that a reused PID is never mistaken for it.
//! * A socket's buffer is never smaller than its original size. Growth never takes the sum of all
//!   sizes above the budget (`budget`).
//! * Drops for other reasons than the socket's full buffer make no buffer grow (`drops`).
//!
//! Sizes are in the kernel's units: bytes of charged memory, which are twice the size that a
//! program requests.
#![cfg(target_os = "linux")]

/// Policies and their parameters.
pub use sojourn_buffer as buffer;

mod budget;
mod core;
mod diag;
mod drops;
mod holders;
pub mod journal;
mod memory;
mod need;
pub mod own;
mod process;
mod procfs;
mod refusal;
pub mod restore;
pub mod settings;
pub mod socket;
mod space;
pub mod target;
mod tracked;
pub mod tuner;

/// Memory that is assumed for one dropped packet, in bytes: that of a full Ethernet frame with most
/// drivers. The kernel counts dropped packets, not their memory.
pub const PACKET: u64 = 2304;
