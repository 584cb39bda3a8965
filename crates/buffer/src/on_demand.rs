//! Growth when a packet does not fit, within a budget.
//!
//! The simplest adaptive policy: the size doubles when needed and never shrinks. Observed from
//! outside, where a packet that does not fit is lost before the policy decides, it doubles after
//! discards and when more than half is occupied.

use crate::contract::{PolicyParams, Sizing, bytes, within};
use crate::observation::{Decision, Observation, Reason};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::Parameters;
use sojourn_units::words::Table;
use sojourn_units::{Bytes, params};

params! {
    /// Bounds of the growth.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Least and initial size.
        floor: Bytes = bytes("64kb"),
        /// Greatest size.
        budget: Bytes = bytes("256mb"),
    }
}

impl PolicyParams for Params {
    const TABLE: Table = Table {
        name: "on-demand",
        summary: "a receive buffer that doubles when a packet does not fit, within a budget",
        source: "ours, a baseline",
        words: Self::WORDS,
    };

    type Policy = OnDemand;

    fn build(&self) -> OnDemand {
        OnDemand { params: *self, discarded: None }
    }

    fn sizes(&self) -> Vec<(&'static str, Bytes)> {
        vec![("floor", self.floor), ("budget", self.budget)]
    }

    fn potential(&self, _size: Bytes, _reason: Reason) -> Bytes {
        self.budget
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct OnDemand {
    params: Params,
    /// Discarded bytes at the last observation.
    discarded: Option<Bytes>,
}

impl Sizing for OnDemand {
    /// Doubles the size, repeatedly if needed.
    #[inline]
    fn observe(&mut self, seen: &Observation) -> Decision {
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

    fn state(&self, visit: &mut dyn FnMut(&str, f64)) {
        visit("discarded", self.discarded.unwrap_or(0) as f64);
    }
}
