//! A policy that enlarges the buffer if a packet does not fit, up to a budget.
//!
//! This is the simplest adaptive policy: the size doubles if necessary, and never shrinks. If the
//! policy observes a buffer from outside, a packet that does not fit is lost before the policy
//! decides; then the size doubles after discards, and whenever more than half is occupied.

use crate::contract::{PolicyParams, Sizing, bytes, within};
use crate::observation::{Decision, Observation, Reason};
use sojourn_units::{Bytes, params};

params! {
    "on-demand": "a receive buffer that doubles when a packet does not fit, within a budget",
    from "this project's own baseline";

    /// Bounds of the size.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Minimum and initial size.
        floor: Bytes = bytes("64kb"),
        /// Maximum size.
        budget: Bytes = bytes("256mb"),
    }
}

impl PolicyParams for Params {
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
    /// Discarded bytes at the last observation; `None` before the first one.
    discarded: Option<Bytes>,
}

impl Sizing for OnDemand {
    /// Doubles the size until the next packet fits.
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
