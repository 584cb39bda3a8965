//! The server whose port has sent the fewest bytes of late.
//!
//! The paper's LBW. Its reference (Padilha and Batista, ETRI Journal 41, 2019) defines it in words only:
//! polling period and load as the bytes sent since the last poll are a reconstruction.
//!
//! The load is known once two readings have been taken; before that servers are drawn. All flows that
//! begin within a period go to the same server, which is then the busiest one: with flows shorter than
//! the period, the policy herds. Once all ports are saturated, the slowest one has the least load.

use super::period_word;
pub use super::rates::{Params, Rates};
use sojourn_units::words::Table;

/// The words of `least-bandwidth`.
pub const TABLE: Table = Table {
    name: "least-bandwidth",
    summary: "the server whose port has sent the fewest bytes in the last period (LBW)",
    source: "queue-length load balancing (the queue-lb paper), reconstructed",
    words: &[period_word("1s")],
};

/// A new policy for so many servers.
pub fn new(servers: usize) -> Rates {
    Rates::new(servers, |counters| counters.bytes)
}
