//! Balancing policies: they choose a server for each new flow.
//!
//! A balancer distributes flows over servers that offer the same service. It is a switch with a
//! port to each server, or a proxy. The policy chooses a server at a flow's first packet, and all
//! packets of the flow go there. A policy has no clock, I/O or randomness: time and random draws
//! are arguments.
//!
//! A built-in policy's type determines which information about servers it may use
//! ([`Policy::View`]): none, the number of open connections, counters of ports, or backlogs of
//! queues. A [`Balancer`] stores the latest readings ([`Balancer::observe`]). Therefore the caller
//! determines the age of the information. [`Needs::freshness`] states when readings must be taken:
//! at each choice, once per period, or never.
//!
//! # Invariants of all policies except external ones
//! A server that is down is never chosen; if all are down, no server is chosen. The same calls with
//! the same draws lead to the same choices. Random numbers are drawn only if the choice depends on
//! them. The size of the stored state does not depend on the number of flows. Except with
//! `iqlb full random`, a server without a reading is chosen only if no server has a reading.

use sojourn_units::modules;

/// List of all policies: the module, which contains the policy's `Params`, and the policy.
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
