//! The network device of a queue.

use sojourn_units::{Rate, data};

/// The network device of a queue; some defaults of parameters depend on it.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Length of the largest frame in bytes, including the Ethernet header.
    pub psched_mtu: u32,
    /// Timer ticks per second (`CONFIG_HZ`); periodic tasks run at ticks.
    pub hz: u32,
    /// Rate of the link after the queue; `None` if unknown.
    pub rate: Option<Rate>,
}

impl Default for Device {
    fn default() -> Self {
        Self { psched_mtu: 1514, hz: 1000, rate: None }
    }
}
