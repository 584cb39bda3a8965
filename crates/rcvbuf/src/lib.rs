//! Receive buffers of running UDP servers, watched and adapted from outside.
//!
//! A policy of `sojourn_buffer` decides; this crate lets it see the sockets of programs that know
//! nothing of it, and carries out what it decides. [`tuner::Tuner`] follows a server; [`own::Adaptive`]
//! does the same for a socket of one's own (`examples/server.rs`).
//!
//! # How it sees and acts
//! The kernel tells of sockets by `sock_diag` (`diag`), from inside their network namespace. A descriptor
//! is copied out of the server (`pidfd_getfd`, `process`) for the moment of a change only: a copy that is
//! held keeps the port bound after the server has died, so that it could not start again.
//!
//! # Invariants
//! * Before a socket is first changed, what it was is on disk ([`journal`]); [`restore()`](restore::restore)
//!   puts it back after a `kill -9`, found by its cookie, which no other socket of this boot has.
//! * A process is known by a descriptor of it, so that a number used again is never mistaken for it.
//! * A socket is never smaller than it was, and all together never larger than the budget (`budget`).
//! * Growth answers drops at the socket's own buffer only (`drops`).
//!
//! Sizes are the kernel's own: bytes of memory charged, twice what a program asks for.

/// The policies and their words.
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

/// Memory that a dropped packet is taken for: a full Ethernet frame as most drivers store it. The kernel
/// counts packets dropped, not bytes.
pub const PACKET: u64 = 2304;
