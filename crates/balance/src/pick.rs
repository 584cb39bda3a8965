//! Picks, their reasons, and the draws that decide some of them.

use serde::Serialize;
use sojourn_units::choices;

/// A source of draws: gives a whole number below its argument, all equally likely.
pub type Draws<'a> = dyn FnMut(u64) -> u64 + 'a;

choices! {
    /// Why a server was chosen.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reason {
        /// It was its turn.
        Turn = "turn",
        /// By the draw.
        Drawn = "drawn",
        /// By the flow's hash.
        Hashed = "hashed",
        /// It had the least of what counts.
        Least = "least",
        /// Drawn from several with the same least.
        Tie = "tie",
        /// All queues were above the threshold.
        Full = "full",
        /// It was idle.
        Idle = "idle",
        /// A policy from outside chose it.
        Policy = "policy",
        /// Nothing has been read yet: drawn from all.
        Unread = "unread",
    }
}

/// A server's index, and why it was picked.
pub type Pick = (usize, Reason);
