//! Policies for the size of a receive buffer.
//!
//! A receive buffer holds packets while a handler pauses; packets that do not fit are discarded. A
//! policy receives an [`Observation`] and returns a [`Decision`] on the size. Inside a program it
//! decides before each packet is stored, and for a socket of another program about every 10 ms. A
//! policy has no clock: time is part of the observation.
//!
//! All sizes are in bytes as the buffer counts them; Linux charges a socket the memory of packets,
//! not their length. Counters only grow, and policies use differences. In any period without
//! abandoned packets, arrived bytes minus processed bytes equal the change of the occupied bytes
//! plus the discarded bytes, so no counter of arrivals is needed.
//!
//! # Invariants of all policies
//! A decided size is never below the occupied bytes and never below the policy's minimum. It is
//! above the policy's maximum only if more bytes are occupied. The first observation is the
//! baseline of the counters, so that a policy may begin with a buffer in use.

use sojourn_units::modules;

/// List of all policies: the module, which contains the policy's `Params`, and the policy.
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
