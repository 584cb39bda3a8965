//! Observations and decisions: input and output of a policy.

use sojourn_units::{Bytes, Nanos, choices, data};

/// Maximum size of a buffer in bytes, 1 TiB. It prevents overflow of sums of sizes.
pub const GREATEST: Bytes = 1 << 40;

/// Memory of the machine, or of the control group to which the buffer is charged.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Total memory in bytes.
    pub total: Bytes,
    /// Memory in bytes that is available without swapping: `MemAvailable` or, if less, the control
    /// group's limit minus its use.
    pub available: Bytes,
}

impl Memory {
    /// Returns the share of memory in use, 0 to 1, which is alpha of RRDA. If the total is 0,
    /// returns 1.
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
    /// Current time in nanoseconds, by any clock that does not go back.
    pub now: Nanos,
    /// Current size in bytes. It may differ from the last decision, since a kernel may set more or
    /// less.
    pub size: Bytes,
    /// Occupied bytes, including reserved ones.
    pub occupied: Bytes,
    /// Occupied bytes that are reserved for incomplete packets, which the handler cannot process
    /// yet.
    pub reserved: Bytes,
    /// Size in bytes of the packet that is about to be stored; 0 without a packet.
    pub needed: Bytes,
    /// Bytes discarded because the buffer was full, since the buffer was created.
    pub discarded: Bytes,
    /// Bytes that the handler has processed since the buffer was created; `None` if unknown.
    pub processed: Option<Bytes>,
    /// Memory of the machine or control group; `None` if unknown.
    pub memory: Option<Memory>,
}

choices! {
    /// Reason for a decision.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Reason {
        /// The size need not change.
        Hold = "hold",
        /// The next packet does not fit, or the free space will soon be too small.
        Demand = "demand",
        /// Packets were discarded since the last observation.
        Discards = "discards",
        /// The numbers of bytes that arrived and that were processed differ.
        Rate = "rate",
        /// The recent peak needs a smaller buffer.
        Idle = "idle",
        /// The handler does not catch up, so a larger buffer would only add delay.
        Standing = "standing",
        /// The policy's minimum or maximum limits the size.
        Bound = "bound",
        /// Memory of the machine or of the control group is short.
        Pressure = "pressure",
        /// An external policy decided.
        Policy = "policy",
    }
}

/// Decision on the size of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Size from now on, in bytes.
    pub size: Bytes,
    /// Reason for the decision.
    pub reason: Reason,
}
