//! What the wire keeps of a packet besides its bytes.

use crate::flows::Facts;
use crate::headers::Framing;
use crate::vnet::Partial;

/// What the wire keeps of a packet besides its bytes.
#[derive(Clone, Copy, Debug)]
pub struct PacketMeta {
    /// Bytes at its place in the arena.
    pub bytes: u32,
    /// What its flow's account needs.
    pub facts: Facts,
    /// Where its checksum is still partial.
    pub partial: Option<Partial>,
    /// What its bytes begin with.
    pub framing: Framing,
    /// Its code point and ECN field as they stand in its bytes.
    pub tos: u8,
    /// As in [`crate::flows::Belonging`], whichever account counts it.
    pub whose: u32,
}
