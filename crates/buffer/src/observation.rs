//! Input and output of a policy.

use serde::{Deserialize, Serialize};
use sojourn_units::{Bytes, Nanos, choices};

/// Largest size of a buffer, 1 TiB, so that sums of sizes cannot overflow.
pub const GREATEST: Bytes = 1 << 40;

/// Memory of the machine, or of the control group to which the buffer is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Total memory in bytes.
    pub total: Bytes,
    /// Memory available without swapping, in bytes (`MemAvailable`, or the group's limit less its
    /// use).
    pub available: Bytes,
}

impl Memory {
    /// Returns the share in use, 0 to 1: RRDA's alpha. Memory of size zero counts as fully used.
    pub fn utilisation(self) -> f64 {
        if self.total == 0 {
            return 1.0;
        }
        1.0 - self.available.min(self.total) as f64 / self.total as f64
    }
}

/// State of a buffer at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Present time, by any clock that does not go back.
    pub now: Nanos,
    /// Present size in bytes. A kernel may have granted more or less than the last decision.
    pub size: Bytes,
    /// Occupied bytes.
    pub occupied: Bytes,
    /// Occupied bytes that are reserved for incomplete packets, which the handler cannot process
    /// yet.
    pub reserved: Bytes,
    /// Bytes of the packet about to be stored; 0 if none.
    pub needed: Bytes,
    /// Bytes discarded for lack of room since the buffer was created.
    pub discarded: Bytes,
    /// Bytes processed by the handler since the buffer was created, if known.
    pub processed: Option<Bytes>,
    /// Memory to which the buffer belongs, if known.
    pub memory: Option<Memory>,
}

choices! {
    /// Reason for a decision.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reason {
        /// No change is needed.
        Hold = "hold",
        /// The next packet does not fit, or soon will not.
        Demand = "demand",
        /// Packets were discarded since the last observation.
        Discards = "discards",
        /// More or fewer bytes arrived than were processed.
        Rate = "rate",
        /// The recent peak needs less.
        Idle = "idle",
        /// The handler does not catch up: more room would only add delay.
        Standing = "standing",
        /// A bound of the policy.
        Bound = "bound",
        /// Memory is short.
        Pressure = "pressure",
        /// Decision of an external policy.
        Policy = "policy",
    }
}

/// Decision on the size of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Size from now on, in bytes.
    pub size: Bytes,
    /// Why.
    pub reason: Reason,
}
