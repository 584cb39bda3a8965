//! The device that a queue is on.

use serde::{Deserialize, Serialize};
use sojourn_units::Rate;

/// The device that a queue is on: where defaults come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The largest frame with its Ethernet header.
    pub psched_mtu: u32,
    /// Ticks a second of the coarse clock by which periodic tasks run.
    pub hz: u32,
    /// The rate at which it sends, if known.
    pub rate: Option<Rate>,
}

impl Default for Device {
    fn default() -> Self {
        Self { psched_mtu: 1514, hz: 1000, rate: None }
    }
}
