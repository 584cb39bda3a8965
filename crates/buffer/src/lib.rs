//! Policies for the size of a receive buffer.
//!
//! A buffer decouples a sender from a handler that pauses; packets that do not fit are discarded. A
//! policy receives an [`Observation`] and returns a [`Decision`] on the size. Inside a program it
//! decides before every packet that is stored; for a socket of another program, about every 10 ms.
//! It has no clock: time is an argument.
//!
//! All sizes are bytes as the buffer counts them (Linux charges a socket the memory of packets, not
//! their length). Counters only grow; policies use differences. Arrived less processed bytes of a
//! period equal the change of the occupied bytes plus the discarded bytes, so arrivals need no
//! counter.
//!
//! # Invariants (one contract test for all)
//! A decision is never below the occupied size, never below the policy's least size, and above its
//! greatest only if that much is occupied. The first observation is the baseline: a policy may take
//! over a buffer in use.

use sojourn_units::modules;

/// The policies, one per line: module with `Params`, and policy.
macro_rules! policies {
    ($macro:ident! $($arguments:tt)*) => {
        $macro! {
            $($arguments)*
            r#static::Static,
            on_demand::OnDemand,
            rrda::Rrda,
            elastic::Elastic,
            external::External,
        }
    };
}

policies!(modules!);

mod contract;
mod family;
mod observation;
pub mod receive_buffer;

pub use contract::{PolicyParams, Sizing};
pub use family::{Params, Policy, tables};
pub use observation::{Decision, GREATEST, Memory, Observation, Reason};
pub use receive_buffer::ReceiveBuffer;

#[cfg(test)]
mod tests;
