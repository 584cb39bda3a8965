//! Facts that choices depend on: servers, readings of their ports, flows.

use serde::{Deserialize, Serialize};
use sojourn_units::{Bytes, Rate};

/// A server, as it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// What it is known by: a hash of its name or address, the same in every run.
    pub id: u64,
    /// Its share of the flows, for policies that know weights. At least 1.
    pub weight: u32,
}

impl Server {
    /// The server called `name`.
    pub fn new(name: &str, weight: u32) -> Self {
        Self { id: hash_of(name.as_bytes()), weight: weight.max(1) }
    }
}

/// A hash of bytes such as a flow's addresses, protocol and ports: the same on every machine.
pub fn hash_of(bytes: &[u8]) -> u64 {
    let fnv = bytes.iter().fold(0xCBF2_9CE4_8422_2325u64, |h, &b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    mix(fnv)
}

/// Spreads a number over all bits (the finalizer of `SplitMix64`; a bijection).
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// What a queue holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// So many packets.
    Packets(u64),
    /// So many bytes.
    Bytes(Bytes),
}

/// The queue of the port that leads to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets in it.
    pub packets: u64,
    /// Bytes in it.
    pub bytes: Bytes,
    /// What it holds at most, if that is known.
    pub limit: Option<Limit>,
    /// The rate that it is emptied at, if that is known.
    pub rate: Option<Rate>,
}

impl Backlog {
    /// The share of the limit that is taken, 0 where there is none.
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

/// What the port that leads to a server has sent since some beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes.
    pub bytes: Bytes,
    /// Packets.
    pub packets: u64,
}

/// What was read of a server's port at one time. What could not be read is `None`: then the reading
/// before stays in force, and ages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Its queue.
    pub backlog: Option<Backlog>,
    /// Its counters.
    pub counters: Option<Counters>,
}

/// A new flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// A hash of what is equal in all its packets ([`hash_of`] addresses, protocol and ports).
    pub hash: u64,
}
