//! Policies that choose a server for a new flow.
//!
//! A balancer stands before servers that do the same work: a switch with a port to each of them, or a
//! proxy. At a flow's first packet a policy says which server gets it, and all its packets go there.
//! A policy has no clock, no I/O and no randomness of its own: time and draws are arguments.
//!
//! What a policy may look at is its type ([`Policy::View`]): nothing, the connections that it has
//! given out itself, counters of ports, or backlogs of their queues. A [`Balancer`] keeps what it was
//! told last ([`Balancer::observe`]) and shows each policy its own part of that, so that information is
//! as old as its driver makes it: [`Needs::fresh`] says whether readings are taken at each choice or
//! once a period.
//!
//! # Invariants (one contract test for all)
//! A server that is down is never chosen, and with all down none is. The same calls with the same draws
//! give the same choices. A draw is asked for only where one is needed. What is kept does not grow with
//! the number of flows. A server whose reading was never taken is chosen only if no other was read.

use sojourn_units::modules;

/// The policies, one a line: the module, which has its `Params`, and the policy.
macro_rules! policies {
    ($macro:ident! $($arguments:tt)*) => {
        $macro! {
            $($arguments)*
            random::Random,
            round_robin::RoundRobin,
            weighted_round_robin::WeightedRoundRobin,
            hash::Hash,
            maglev::Maglev,
            least_bandwidth::LeastBandwidth,
            least_packets::LeastPackets,
            least_connections::LeastConnections,
            iqlb::Iqlb,
            qtm::Qtm,
            jsq::Jsq,
            power_of_d::PowerOfD,
            queue_delay::QueueDelay,
            peak_ewma::PeakEwma,
            jiq::Jiq,
            external::External,
        }
    };
}

policies!(modules!);

mod balancer;
mod contract;
mod facts;
mod family;
mod needs;
mod pick;
mod rates;
mod sight;
mod urn;

pub use balancer::{Balancer, Choice, MOST_SERVERS};
pub use contract::{Ask, Policy, PolicyParams};
pub use facts::{Backlog, Counters, Flow, Limit, Reading, Server, hash_of};
pub use family::{Params, tables};
pub use needs::{Fresh, Look, Needs};
pub use pick::{Draws, Pick, Reason};
pub use sight::{Connections, Everything, Sight, View};

#[cfg(test)]
mod tests;
