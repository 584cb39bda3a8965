//! Policies that choose a server for a new flow.
//!
//! A balancer distributes flows over servers that do the same work: a switch with a port to each of
//! them, or a proxy. At a flow's first packet a policy chooses the server, and all packets of the
//! flow go there. A policy has no clock, no I/O and no randomness: time and draws are arguments.
//!
//! The type of a policy determines the information that it may use ([`Policy::View`]): none, its
//! own open connections, counters of ports, or backlogs of their queues. A [`Balancer`] stores the
//! latest readings ([`Balancer::observe`]) and shows each policy only its own part, so the program
//! that drives it determines the age of the information: [`Needs::freshness`] states whether readings
//! are taken at each choice or once per period.
//!
//! # Invariants (one contract test for all)
//! A server that is down is never chosen; if all are down, no server is chosen. The same calls with
//! the same draws give the same choices. A draw is requested only where it is needed. The stored
//! state does not grow with the number of flows. A server without a reading is chosen only if no
//! other server has one.

use sojourn_units::modules;

/// The policies, one per line: the module, which has the policy's `Params`, and the policy.
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
mod urn;
mod view;

pub use balancer::{Balancer, Choice, MOST_SERVERS};
pub use contract::{Policy, PolicyParams, Request};
pub use facts::{Backlog, Counters, Flow, Limit, Reading, Server, hash_of};
pub use family::{Params, tables};
pub use needs::{Freshness, Needs, Signal};
pub use pick::{Draws, Pick, Reason};
pub use view::{Connections, Everything, Servers, View};

#[cfg(test)]
mod tests;
