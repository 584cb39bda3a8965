//! Policies for the size of a receive buffer.
//!
//! A buffer stands between a sender that does not ask and a handler that pauses: packets that do not
//! fit are discarded. A policy is told what the buffer sees ([`Observation`]) and says how large it
//! is to be ([`Decision`]). Inside a program it is asked before every packet that is put in; from
//! outside (the socket of another program) every 10 ms or so. It has no clock: time is an argument.
//!
//! All sizes are bytes as the buffer itself counts them (Linux charges a socket its packets' memory,
//! not their length). Counters only grow; policies take differences. What arrived less what was
//! processed in a span of time is the change of what is occupied plus what was discarded, so nobody
//! has to count arrivals.
//!
//! # Invariants (one contract test for all)
//! A decision is never below what is occupied, never below the policy's least size, and above its
//! greatest only if that much is occupied. The first observation is the baseline: a policy may take
//! over a buffer in use.

use sojourn_units::modules;

/// The policies, one a line: the module, which has its `Params`, and the policy.
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
pub mod store;

pub use contract::{PolicyParams, Sizing};
pub use family::{Params, Policy, tables};
pub use observation::{Decision, GREATEST, Memory, Observation, Reason};
pub use store::Store;

#[cfg(test)]
mod tests;
