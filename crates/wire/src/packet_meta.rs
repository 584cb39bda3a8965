//! The wire's data of a packet in addition to its bytes.

use crate::flows::Facts;
use crate::headers::Framing;
use crate::vnet::Partial;

/// The wire's data of a packet in addition to its bytes.
#[derive(Clone, Copy, Debug)]
pub struct PacketMeta {
    /// Bytes at its place in the arena.
    pub bytes: u32,
    /// Data for its flow's account.
    pub facts: Facts,
    /// Where its checksum is still partial.
    pub partial: Option<Partial>,
    /// The header of its bytes.
    pub framing: Framing,
    /// Its code point and ECN field in its bytes.
    pub tos: u8,
    /// As in [`crate::flows::Belonging`], for the account that counts it.
    pub whose: u32,
}
