//! TCP as a state machine driven by time: no clock, no sockets, no payload.
//!
//! A [`Connection`] is one end of a TCP connection. Time and segments go in
//! ([`Connection::on_segment`], [`Connection::on_deadline`]), segments come out
//! ([`Connection::poll_transmit`]), and [`Connection::deadline`] returns when to call next.
//! [`Params`] has all settings of an end; a [`Profile`] is a named set of settings.
//!
//! Payload is counted, not carried: the application writes a number of bytes.
#![allow(clippy::doc_markdown, reason = "HyStart and NewReno are names, not code")]
#![allow(clippy::struct_excessive_bools, reason = "the flags are independent of each other")]

mod accecn;
mod connection;
pub mod params;
mod profile;
pub mod ranges;
mod rare;
mod receiver;
mod rtt;
mod scoreboard;
pub mod segment;
mod sender;
mod words;

pub use connection::{Connection, Role, State};
pub use params::Params;
pub use profile::Profile;
pub use segment::{Flags, Segment};
pub use sender::Counters;
pub use sender::limits::Limited;
pub use sender::recovery::Phase;
pub use words::{table, tables};
