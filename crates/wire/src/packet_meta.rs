//! Data that the wire keeps for a packet in addition to its bytes.

use crate::flows::Facts;
use crate::headers::Framing;
use crate::vnet::Partial;

/// Data that the wire keeps for a packet in addition to its bytes.
#[derive(Clone, Copy, Debug)]
pub struct PacketMeta {
    /// Length of the frame in the arena, in bytes.
    pub bytes: u32,
    /// Header fields that identify the packet's flow and are measured.
    pub facts: Facts,
    /// Position of the transport checksum if it is partial.
    pub partial: Option<Partial>,
    /// The first header of the frame.
    pub framing: Framing,
    /// DSCP and ECN field in the frame's bytes. A queue's mark changes only the packet's own `tos`.
    pub tos: u8,
    /// Index of the packet's account, as in [`crate::flows::Belonging`].
    pub whose: u32,
}
