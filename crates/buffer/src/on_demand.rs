//! Growth when a packet does not fit, within a budget.
//!
//! The simplest policy that adapts: the size doubles at the moment of need and is never given back.
//! Seen from outside, where a packet that did not fit is gone before anybody is asked, it doubles
//! after discards, and when more than half is occupied.

use super::{Decision, Observation, Reason, floor_word, ordered, size, within};
use serde::{Deserialize, Serialize};
use sojourn_units::Bytes;
use sojourn_units::quantity::format_size;
use sojourn_units::words::{Given, Kind, Table, Word, WordError};

/// The words of `on-demand`.
pub const TABLE: Table = Table {
    name: "on-demand",
    summary: "a receive buffer that doubles when a packet does not fit, within a budget",
    source: "ours, a baseline",
    words: &[
        floor_word("64kb"),
        Word { name: "budget", kind: Kind::Size, default: "256mb", doc: "Greatest size." },
    ],
};

/// Bounds of the growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Least size, and the first, in bytes.
    pub floor: Bytes,
    /// Greatest size in bytes.
    pub budget: Bytes,
}

impl Default for Params {
    fn default() -> Self {
        Self { floor: 64 << 10, budget: 256 << 20 }
    }
}

impl Params {
    pub(super) fn read(given: &Given) -> Result<Self, WordError> {
        let default = Self::default();
        let params = Self {
            floor: size(given, "floor", default.floor)?,
            budget: size(given, "budget", default.budget)?,
        };
        ordered(given, ("floor", params.floor), ("budget", params.budget))?;
        Ok(params)
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (floor, budget) = (format_size(self.floor), format_size(self.budget));
        write!(f, "on-demand floor {floor} budget {budget}")
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct OnDemand {
    params: Params,
    /// Bytes discarded up to the last observation.
    discarded: Option<Bytes>,
}

impl OnDemand {
    /// A new one.
    pub fn new(params: Params) -> Self {
        Self { params, discarded: None }
    }

    /// Doubles the size, if need be more than once.
    #[inline]
    pub fn observe(&mut self, seen: &Observation) -> Decision {
        let lost = seen.discarded > self.discarded.unwrap_or(seen.discarded);
        self.discarded = Some(seen.discarded.max(self.discarded.unwrap_or(0)));
        let wanted = seen.occupied.saturating_add(seen.needed);
        let (mut size, mut reason) = (seen.size.max(1), Reason::Hold);
        if seen.needed == 0 && (lost || seen.occupied > seen.size / 2) {
            size = size.saturating_mul(2);
            reason = if lost { Reason::Discards } else { Reason::Demand };
        }
        while size < wanted && size < self.params.budget {
            size = size.saturating_mul(2);
            reason = Reason::Demand;
        }
        let bounded = within(size, self.params.floor, self.params.budget, seen.occupied);
        if bounded < size || bounded < wanted {
            reason = Reason::Bound;
        }
        Decision { size: bounded, reason }
    }

    pub(super) fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("discarded", self.discarded.unwrap_or(0) as f64);
    }
}
