//! What a policy is told of a buffer, and what it answers.

use serde::{Deserialize, Serialize};
use sojourn_units::{Bytes, Nanos, choices};

/// The largest size a buffer may be given, 1 TiB: sums of sizes stay far from overflow.
pub const GREATEST: Bytes = 1 << 40;

/// Memory of the machine, or of the control group that the buffer is charged to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// All of it.
    pub total: Bytes,
    /// What could be given out without swapping (`MemAvailable`, or the group's limit less its use).
    pub available: Bytes,
}

impl Memory {
    /// The share in use, 0 to 1: RRDA's alpha. Memory without a size counts as used up.
    pub fn utilisation(self) -> f64 {
        if self.total == 0 {
            return 1.0;
        }
        1.0 - self.available.min(self.total) as f64 / self.total as f64
    }
}

/// What a buffer sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Now, by any clock that does not go back.
    pub now: Nanos,
    /// Size in force. A kernel may have granted more or less than the last decision asked for.
    pub size: Bytes,
    /// Bytes in the buffer.
    pub occupied: Bytes,
    /// Bytes of these that are set aside for packets that have not come whole: the handler does not
    /// owe them.
    pub reserved: Bytes,
    /// Bytes of the packet that is about to be put in; 0 if there is none.
    pub needed: Bytes,
    /// Bytes discarded for lack of room since the buffer was made.
    pub discarded: Bytes,
    /// Bytes the handler has taken since the buffer was made, if known.
    pub processed: Option<Bytes>,
    /// Memory that the buffer is part of, if known.
    pub memory: Option<Memory>,
}

choices! {
    /// Why a size is as it is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reason {
        /// Nothing calls for a change.
        Hold = "hold",
        /// What is to be put in does not fit, or soon would not.
        Demand = "demand",
        /// Packets were discarded since the last observation.
        Discards = "discards",
        /// More arrived than was processed, or less.
        Rate = "rate",
        /// The recent peak needs less.
        Idle = "idle",
        /// The handler does not catch up: more room would only be more waiting.
        Standing = "standing",
        /// A bound of the policy.
        Bound = "bound",
        /// Memory is short.
        Pressure = "pressure",
        /// A policy from outside decided so.
        Policy = "policy",
    }
}

/// How large the buffer is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Size from now on, in bytes.
    pub size: Bytes,
    /// Why.
    pub reason: Reason,
}
