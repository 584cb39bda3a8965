//! What a discipline may ask of a packet.

/// The ECN field (RFC 3168), numbered as on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable transport.
    #[default]
    NotEct = 0,
    /// ECN-capable, ECT(1).
    Ect1 = 1,
    /// ECN-capable, ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// A packet as a queue sees it.
#[expect(clippy::len_without_is_empty, reason = "no packet is empty")]
pub trait Packet {
    /// Length in bytes: the Ethernet frame without FCS, plus any configured overhead.
    fn len(&self) -> u32;

    /// Memory that the packet occupies, which `memory_limit` counts.
    fn truesize(&self) -> u32;

    /// A hash of the packet's flow: bucket `hash * flows >> 32` is its queue, and packets with the same
    /// hash are taken for one flow's.
    fn flow_hash(&self) -> u32;

    /// Source and destination host, for isolation by host.
    fn hosts(&self) -> (u32, u32);

    /// The six bits of the differentiated services code point.
    fn dscp(&self) -> u8;

    /// The ECN field.
    fn ecn(&self) -> Ecn;

    /// Sets Congestion Experienced; false on packets that are not ECN-capable. A packet that
    /// carries the mark already counts as marked.
    fn set_ce(&mut self) -> bool;
}
