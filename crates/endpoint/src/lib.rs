//! Endpoints: traffic sources and receivers on real sockets, and reports of their traffic.
//!
//! An [`Endpoint`] contains the sending and receiving ends of one host in a run. It sends the
//! traffic of the plan's packet sources and transfers, with the state machines and random draws of
//! the simulator, and receives the traffic that other hosts send to it. One thread serves all flows
//! of a host, except for endless transfers, which have one thread per connection end. An endpoint
//! computes no results: it writes every event to a [log](log::Event). After the run, [`report`]
//! computes the results from the logs of all hosts, with the simulator's model of receivers.
//!
//! All times are from one clock: the machine's monotonic clock, shifted such that the run begins at
//! [`EPOCH`](sojourn_units::EPOCH).
//!
//! A datagram has no header of the endpoint. Its payload begins with its number; a datagram shorter
//! than eight bytes contains only the low bytes of the number. When a transfer is complete, the
//! receiver answers with eight bytes: the arrival time of the transfer's last byte. The sender's
//! think time begins at this time.
//! Sockets need Linux; elsewhere the crate only reads logs.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod log;
pub mod report;

#[cfg(target_os = "linux")]
mod bulk;
#[cfg(target_os = "linux")]
mod datagrams;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod net;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod transfers;
#[cfg(target_os = "linux")]
mod writes;

#[cfg(target_os = "linux")]
pub use host::Endpoint;
#[cfg(target_os = "linux")]
pub use sys::duplicate;
