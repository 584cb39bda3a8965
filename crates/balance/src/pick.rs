//! Picks, their reasons, and the draws that decide some of them.

use serde::Serialize;
use sojourn_units::choices;

/// Source of draws: returns a uniformly distributed integer below its argument.
pub type Draws<'a> = dyn FnMut(u64) -> u64 + 'a;

choices! {
    /// Reason for the choice of a server.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reason {
        /// The server's turn.
        Turn = "turn",
        /// Random draw.
        Drawn = "drawn",
        /// Hash of the flow.
        Hashed = "hashed",
        /// Least value of the policy's measure.
        Least = "least",
        /// Random draw among several servers with the same least value.
        Tie = "tie",
        /// All queues were above the threshold.
        Full = "full",
        /// The server was idle.
        Idle = "idle",
        /// Choice of an external policy.
        Policy = "policy",
        /// Random draw among all servers, before the first reading.
        Unread = "unread",
    }
}

/// Index of a server, and the reason for its choice.
pub type Pick = (usize, Reason);
