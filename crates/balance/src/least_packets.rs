//! The server whose port has sent the fewest packets of late.
//!
//! The paper's SLPLB, defined in words only: polling period and load as the packets sent since the last poll
//! are a reconstruction.
//!
//! The load is known once two readings have been taken; before that servers are drawn. All flows that
//! begin within a period go to the same server, which is then the busiest one: with flows shorter than
//! the period, the policy herds. Once all ports are saturated, the slowest one has the least load.

use super::period_word;
pub use super::rates::{Params, Rates};
use sojourn_units::words::Table;

/// The words of `least-packets`.
pub const TABLE: Table = Table {
    name: "least-packets",
    summary: "the server whose port has sent the fewest packets in the last period (SLPLB)",
    source: "queue-length load balancing (the queue-lb paper), reconstructed",
    words: &[period_word("1s")],
};

/// A new policy for so many servers.
pub fn new(servers: usize) -> Rates {
    Rates::new(servers, |counters| counters.packets)
}
