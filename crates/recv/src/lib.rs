//! A UDP transport whose receive buffer adapts.
//!
//! Messages of any size go in fragments from clients to a server, where a buffer under a policy of
//! `sojourn_buffer` stands before a handler. [`server`] and [`sender`] are the two sides
//! without clock, sockets and randomness; the rest gives them these.
//!
//! A server is a [`serve::Running`] with a [`serve::Handler`]; a client is [`send::send`]. `examples/messages.rs` is
//! both in one program, and [`files`] the handler of `sojourn udp serve`.
//!
//! Encryption is out of scope: who can read or write the path can read or write the messages. The
//! number of a connection is random, so that nobody else can guess it; the address of a client is
//! validated by a stateless cookie before anything is kept of it.
#![allow(clippy::doc_markdown, reason = "SipHash and NewReno are names, not code")]
#![allow(clippy::struct_excessive_bools, reason = "independent facts of the protocol")]

/// The policies and their words.
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
