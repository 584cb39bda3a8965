//! Limits: what they count, and what fits.

use crate::packet::Packet;
use crate::store::Store;
use serde::{Deserialize, Serialize};

/// The unit of a limit or threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// Returns whether `packet` fits in addition to the stored packets.
    #[inline]
    pub(crate) fn fits<P: Packet>(self, limit: u32, store: &Store<P>, packet: &P) -> bool {
        match self {
            Self::Packets => store.len() < limit as usize,
            Self::Bytes => store.bytes() + u64::from(packet.len()) <= u64::from(limit),
        }
    }
}
