//! A message transport over UDP whose receive buffer adapts to the load.
//!
//! Clients send messages of any size in fragments to a server. There a buffer, controlled by a
//! policy of `sojourn_buffer`, holds the messages until a handler processes them. [`server`] and
//! [`sender`] implement the two sides without clock, sockets and randomness, which other modules
//! provide.
//!
//! A server is a [`serve::Running`] with a [`serve::Handler`]; a client is a call of
//! [`send::send`]. `examples/messages.rs` runs both in one program. [`files`] is the handler of
//! `sojourn udp serve`.
//!
//! There is no encryption: a host on the path can read and change the messages. A host outside the
//! path cannot guess the random number of a connection. A stateless cookie validates a client's
//! address before the server stores anything about the client.
#![cfg(target_os = "linux")]
#![allow(clippy::doc_markdown, reason = "SipHash and NewReno are not code")]
#![allow(clippy::struct_excessive_bools, reason = "the flags are independent of each other")]

/// Policies of receive buffers and their parameters.
pub use sojourn_buffer as buffer;

mod cookie;
mod fragments;
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
