//! One server after the other.
//!
//! Flows are spread evenly, whatever the servers, their links and the flows' sizes are.

use super::{Draws, Flow, Pick, Policy, Reason, Sight};
use serde::{Deserialize, Serialize};
use sojourn_units::words::Table;

/// The words of `round-robin`.
pub const TABLE: Table = Table {
    name: "round-robin",
    summary: "one server after the other, all alike",
    source: "",
    words: &[],
};

/// Nothing to set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// The policy.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    next: usize,
}

impl Policy for RoundRobin {
    type View = ();

    fn choose(
        &mut self,
        _now: u64,
        _flow: &Flow,
        sight: &Sight<'_, ()>,
        _draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        let server = sight.up().find(|&i| i >= self.next).or_else(|| sight.up().next())?;
        self.next = server + 1;
        Some((server, Reason::Turn))
    }
}
