//! A constant size.
//!
//! The configuration of most servers and the baseline of every comparison: UDT 4 reserves 8192
//! packets of 1500 bytes (12 MB), Linux gives a socket 212 992 bytes (208 KiB), the RRDA paper
//! compares with 1 MB.

use crate::contract::{PolicyParams, Sizing, bytes};
use crate::observation::{Decision, Observation, Reason};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::Parameters;
use sojourn_units::words::Table;
use sojourn_units::{Bytes, params};

params! {
    /// The size.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// The size.
        size: Bytes = bytes("1mb"),
    }
}

impl PolicyParams for Params {
    const TABLE: Table = Table {
        name: "static",
        summary: "a receive buffer of one size",
        source: "the baseline; 1 MB as in the RRDA paper, 12 MB as in UDT 4",
        words: Self::WORDS,
    };

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
    /// The constant size in bytes.
    #[inline]
    fn observe(&mut self, seen: &Observation) -> Decision {
        Decision { size: self.params.size.max(seen.occupied), reason: Reason::Hold }
    }
}
