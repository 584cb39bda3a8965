//! The chosen server, the reason of the choice, and the source of random draws.

use sojourn_units::choices;

/// Source of random draws. It returns a uniformly distributed integer from 0 to its argument minus
/// 1.
pub type Draws<'a> = dyn FnMut(u64) -> u64 + 'a;

choices! {
    /// Reason for the choice of a server.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Reason {
        /// It was the server's turn.
        Turn = "turn",
        /// The server was drawn at random.
        Drawn = "drawn",
        /// The hash of the flow selects the server.
        Hashed = "hashed",
        /// The server has the least value of the policy's measure.
        Least = "least",
        /// The server was drawn at random among several servers with the same least value.
        Tie = "tie",
        /// All queues are above the threshold.
        Full = "full",
        /// The server is idle.
        Idle = "idle",
        /// An external policy chose the server.
        Policy = "policy",
        /// The server was drawn at random among those that are up: the measure was unknown for all.
        Unread = "unread",
    }
}

/// Index of a server, and the reason for its choice.
pub type Pick = (usize, Reason);
