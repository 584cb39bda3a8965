//! One size for ever.
//!
//! What most servers have: UDT 4 reserves 8192 packets of 1500 bytes (12 MB), Linux gives a socket
//! 212 992 bytes (208 KiB), the RRDA paper compares with 1 MB. The baseline of every comparison.

use super::{Decision, Observation, Reason, size};
use serde::{Deserialize, Serialize};
use sojourn_units::Bytes;
use sojourn_units::quantity::format_size;
use sojourn_units::words::{Given, Kind, Table, Word, WordError};

/// The words of `static`.
pub const TABLE: Table = Table {
    name: "static",
    summary: "a receive buffer of one size",
    source: "the baseline; 1 MB as in the RRDA paper, 12 MB as in UDT 4",
    words: &[Word { name: "size", kind: Kind::Size, default: "1mb", doc: "The size." }],
};

/// The size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// The size in bytes.
    pub size: Bytes,
}

impl Default for Params {
    fn default() -> Self {
        Self { size: 1 << 20 }
    }
}

impl Params {
    pub(super) fn read(given: &Given) -> Result<Self, WordError> {
        Ok(Self { size: size(given, "size", Self::default().size)? })
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "static size {}", format_size(self.size))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Static {
    params: Params,
}

impl Static {
    /// A new one.
    pub fn new(params: Params) -> Self {
        Self { params }
    }

    /// The size, whatever is seen.
    #[inline]
    pub fn observe(&mut self, seen: &Observation) -> Decision {
        Decision { size: self.params.size.max(seen.occupied), reason: Reason::Hold }
    }
}
