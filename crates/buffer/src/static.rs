//! A policy with a constant size.
//!
//! Most servers are configured in this way. UDT 4 reserves 8192 packets of 1500 bytes (12 MB),
//! Linux gives a socket 212 992 bytes (208 KiB), and the RRDA paper uses 1 MB for comparison.

use crate::contract::{PolicyParams, Sizing, bytes};
use crate::observation::{Decision, Observation, Reason};
use sojourn_units::{Bytes, params};

params! {
    "static": "a receive buffer of constant size",
    from "the baseline; 1 MB as in the RRDA paper, 12 MB as in UDT 4";

    /// The constant size.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Size of the buffer.
        size: Bytes = bytes("1mb"),
    }
}

impl PolicyParams for Params {
    type Policy = Static;

    fn build(&self) -> Static {
        Static { params: *self }
    }

    fn sizes(&self) -> Vec<(&'static str, Bytes)> {
        vec![("size", self.size)]
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Static {
    params: Params,
}

impl Sizing for Static {
    /// Returns the constant size, or the occupied bytes if they are more.
    fn observe(&mut self, seen: &Observation) -> Decision {
        Decision { size: self.params.size.max(seen.occupied), reason: Reason::Hold }
    }
}
