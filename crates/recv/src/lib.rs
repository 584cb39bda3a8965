//! A UDP transport whose receive buffer adapts.
//!
//! Messages of any size travel in fragments from clients to a server, where a buffer under a policy
//! of `sojourn_buffer` precedes a handler. [`server`] and [`sender`] are the two sides without
//! clock, sockets and randomness, which the other modules supply.
//!
//! A server is a [`serve::Running`] with a [`serve::Handler`]; a client is [`send::send`].
//! `examples/messages.rs` has both in one program. [`files`] is the handler of `sojourn udp serve`.
//!
//! There is no encryption: a host that can read or write the path can read or write the messages.
//! The random number of a connection cannot be guessed off the path. A stateless cookie validates a
//! client's address before the server keeps any state.
#![allow(clippy::doc_markdown, reason = "SipHash and NewReno are names, not code")]
#![allow(clippy::struct_excessive_bools, reason = "independent facts of the protocol")]

/// Policies and their words.
pub use sojourn_buffer as buffer;

mod cookie;
mod outgoing;
pub mod packet;
mod ranges;
mod rtt;
pub mod sender;
pub mod server;
mod spare;

pub mod files;
pub mod fleet;
mod io;
pub mod memory;
pub mod send;
pub mod serve;
pub mod work;
