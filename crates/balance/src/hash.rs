//! The flow's hash modulo the number of servers, as ECMP does it.
//!
//! Nothing is kept, and several balancers agree without talking. When a server comes or goes nearly
//! all flows would be sent elsewhere; see [`maglev`](super::maglev) for what to do about that.

use super::{Draws, Flow, Pick, Policy, Reason, Sight};
use serde::{Deserialize, Serialize};
use sojourn_units::words::Table;

/// The words of `hash`.
pub const TABLE: Table = Table {
    name: "hash",
    summary: "by the hash of the flow's addresses, protocol and ports, as ECMP",
    source: "RFC 2992",
    words: &[],
};

/// Nothing to set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// The policy.
#[derive(Clone, Debug)]
pub struct Hash;

impl Policy for Hash {
    type View = ();

    fn choose(
        &mut self,
        _now: u64,
        flow: &Flow,
        sight: &Sight<'_, ()>,
        _draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        let up = sight.up().count() as u64;
        let nth = flow.hash.checked_rem(up)?;
        sight.up().nth(nth as usize).map(|i| (i, Reason::Hashed))
    }
}
