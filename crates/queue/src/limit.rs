//! The unit of limits, and the check whether a packet fits.

use crate::packet::Packet;
use crate::packet_fifo::PacketFifo;
use sojourn_units::{data, quantity::format_size};

/// The unit of a limit or threshold.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// The limit counts packets.
    Packets,
    /// The limit counts bytes.
    Bytes,
}

impl Unit {
    /// Returns a limit as a user writes it, such as `300p` or `50kb`.
    pub(crate) fn text(self, limit: u32) -> String {
        match self {
            Self::Packets => format!("{limit}p"),
            Self::Bytes => format_size(u64::from(limit)),
        }
    }

    /// Returns whether `fifo` and `packet` together are within `limit`.
    #[inline]
    pub(crate) fn fits<P: Packet>(self, limit: u32, fifo: &PacketFifo<P>, packet: &P) -> bool {
        match self {
            Self::Packets => fifo.len() < limit as usize,
            Self::Bytes => fifo.bytes() + u64::from(packet.len()) <= u64::from(limit),
        }
    }
}
