//! Limits: what they count, and what fits.

use crate::packet::Packet;
use crate::packet_fifo::PacketFifo;
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
    pub(crate) fn fits<P: Packet>(self, limit: u32, fifo: &PacketFifo<P>, packet: &P) -> bool {
        match self {
            Self::Packets => fifo.len() < limit as usize,
            Self::Bytes => fifo.bytes() + u64::from(packet.len()) <= u64::from(limit),
        }
    }
}
