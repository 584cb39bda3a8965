//! Endpoints: traffic sources on real sockets, and reports of their traffic.
//!
//! An [`Endpoint`] is one host's part in a run. It sends the traffic of the plan's packet sources
//! and transfers of this host, driven by the simulator's state machines and random draws, and
//! receives the traffic of others. One thread serves all flows of a host. An endpoint decides and
//! measures nothing: it writes every event to a [log](log::Event). After the run, [`report`]
//! computes the results from the logs of all hosts, with the simulator's receiver model.
//!
//! All times are from one clock: the machine's monotonic clock, shifted so that the run begins at
//! [`EPOCH`](sojourn_units::EPOCH).
//!
//! A datagram begins with its number, as many of the low bytes as fit, without any other header.
//! The receiver answers a transfer with eight bytes: the arrival time of its last byte, from which
//! the sender counts the think time.

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
