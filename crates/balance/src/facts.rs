//! Data on which choices depend: servers, readings of their ports, and flows.

use sojourn_units::{Bytes, Rate, data};

/// Identity and weight of a server.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Identifier of the server: a hash of its name or address, which is the same in every run.
    pub id: u64,
    /// Weight of the server relative to others, for policies that use weights; at least 1.
    pub weight: u32,
}

impl Server {
    /// Returns the server with this name and weight. A weight of 0 becomes 1.
    pub fn new(name: &str, weight: u32) -> Self {
        Self { id: hash_of(name.as_bytes()), weight: weight.max(1) }
    }
}

/// Returns a hash of bytes, such as a flow's addresses, protocol and ports. It is the same on every
/// machine.
pub fn hash_of(bytes: &[u8]) -> u64 {
    let fnv = bytes.iter().fold(0xCBF2_9CE4_8422_2325u64, |h, &b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    mix(fnv)
}

/// Distributes a number over all bits with the finaliser of `SplitMix64`, which is a bijection.
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Limit of a queue.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Limit in packets.
    Packets(u64),
    /// Limit in bytes.
    Bytes(Bytes),
}

/// State of the queue at the port to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of packets in the queue.
    pub packets: u64,
    /// Number of bytes in the queue.
    pub bytes: Bytes,
    /// Limit of the queue; `None` if unknown.
    pub limit: Option<Limit>,
    /// Rate of the link after the queue; `None` if unknown.
    pub rate: Option<Rate>,
}

impl Backlog {
    /// Returns the used share of the limit; 0 if the limit is unknown, and 1 for a limit of 0.
    pub fn occupancy(&self) -> f64 {
        let share =
            |used: u64, limit: u64| if limit == 0 { 1.0 } else { used as f64 / limit as f64 };
        match self.limit {
            None => 0.0,
            Some(Limit::Packets(limit)) => share(self.packets, limit),
            Some(Limit::Bytes(limit)) => share(self.bytes, limit),
        }
    }
}

/// Counters of the traffic that the port to a server has sent. They may start at any value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes sent.
    pub bytes: Bytes,
    /// Packets sent.
    pub packets: u64,
}

/// Reading of a server's port at one time. A part is `None` if it could not be read; then the
/// previous reading of this part remains in use, with its age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Queue of the port.
    pub backlog: Option<Backlog>,
    /// Counters of the port.
    pub counters: Option<Counters>,
}

/// A new flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Hash of the header fields that all packets of the flow share: [`hash_of`] addresses,
    /// protocol and ports.
    pub hash: u64,
}
