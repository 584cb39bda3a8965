//! Real sockets for the traffic sources, and what becomes of what they send.
//!
//! An [`Endpoint`] is one host's part in a run: it sends what the plan's packet sources and transfers
//! of this host say, driven by the same machines and the same draws as the simulator, and takes what
//! comes in. One thread serves all of a host's flows. It decides nothing and measures nothing: every
//! event goes to a [log](log::Event), and [`report`] makes results of the logs of all hosts when the
//! run is over, with the receiver that the simulator has.
//!
//! All times are of one clock, the machine's monotonic one, shifted so that the run begins at
//! [`EPOCH`](sojourn_units::EPOCH).
//!
//! On the wire a datagram begins with its number, as many of its low bytes as fit; nothing else is
//! added. A transfer is answered by eight bytes with the time at which its last byte came, so that
//! its sender knows when to think from.

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
