//! A TCP segment, without its payload's bytes.
//!
//! Source: RFC 9293, with the options of RFC 2018 (SACK), RFC 2883 (D-SACK), RFC 7323 (timestamps,
//! window scale) and RFC 9768 (AccECN).
//! Idea: sequence numbers are 64 bits wide and start at 0 with the SYN, so byte `i` of the stream
//! has number `i + 1` and nothing wraps; the window is in bytes, already scaled. SACK blocks are
//! kept relative to the acknowledgement, so that a segment stays small and is copied, not shared.
//! Invariants: at most four SACK blocks, three next to timestamps; [`Segment::wire_len`] is the
//! length of the segment as an Ethernet frame with IPv4 and without FCS.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// Bytes of Ethernet, IPv4 and TCP headers without options.
pub const HEADERS: u32 = 14 + 20 + 20;
/// Greatest number of SACK blocks.
pub const MAX_BLOCKS: usize = 4;
/// Space for options in a TCP header.
pub const MAX_OPTIONS: u32 = 40;

/// The control bits, the ECN field of the IP header, and a flag that only the sending host uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(1);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(2);
    /// Reset the connection.
    pub const RST: Self = Self(4);
    /// The packet is ECN-capable: its IP header carries ECT(0).
    pub const ECT0: Self = Self(8);
    /// The field `ack` is valid.
    pub const ACK: Self = Self(16);
    /// The packet is ECN-capable and asks for L4S: its IP header carries ECT(1) (RFC 9331).
    pub const ECT1: Self = Self(32);
    /// The sender of the segment received a packet with Congestion Experienced.
    pub const ECE: Self = Self(64);
    /// The congestion window was reduced.
    pub const CWR: Self = Self(128);
    /// Accurate ECN: the highest bit of the ACE field, before CWR and ECE (RFC 9768).
    pub const AE: Self = Self(256);
    /// The receiver should deliver the segment's data at once: the segment ends a super-packet or
    /// the written data.
    pub const PSH: Self = Self(512);
    /// The segment belongs to the super-packet of the segment before it; only the sending host uses
    /// this flag.
    pub const CONTINUES: Self = Self(1024);

    /// Returns whether all bits of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether any bit of `other` is set.
    pub fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// The timestamps option, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The clock of the segment's sender.
    pub value: u32,
    /// The peer's value that is echoed.
    pub echo: u32,
}

/// The options of a SYN. All zero on other segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynOptions {
    /// Greatest payload that the sender of the SYN takes; 0 if the option is absent.
    pub mss: u16,
    /// Whether the sender of the SYN accepts SACK blocks.
    pub sack_permitted: bool,
    /// Bits by which the sender of the SYN scales its window; `None` if the option is absent.
    pub window_scale: Option<u8>,
}

/// A segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Number of the first byte, or of the SYN or FIN.
    pub seq: u64,
    /// Next byte expected, if [`Flags::ACK`] is set.
    pub ack: u64,
    /// Payload in bytes.
    pub len: u32,
    /// Receive window: bytes that the segment's sender accepts beyond `ack`.
    pub window: u32,
    blocks: [(i32, i32); MAX_BLOCKS],
    timestamps: Timestamps,
    marked_bytes: u32,
    syn: SynOptions,
    /// Control bits.
    pub flags: Flags,
    block_count: u8,
    has_timestamps: bool,
    has_marked_bytes: bool,
}

impl Segment {
    /// Returns a segment with these flags, without payload or options.
    #[inline]
    pub fn new(seq: u64, ack: u64, flags: Flags) -> Self {
        Self {
            seq,
            ack,
            len: 0,
            window: 0,
            blocks: [(0, 0); MAX_BLOCKS],
            timestamps: Timestamps { value: 0, echo: 0 },
            marked_bytes: 0,
            syn: SynOptions::default(),
            flags,
            block_count: 0,
            has_timestamps: false,
            has_marked_bytes: false,
        }
    }

    /// Returns the sequence number after the segment's last, SYN and FIN counted.
    pub fn end(&self) -> u64 {
        self.seq + self.span()
    }

    /// Returns the number of sequence numbers used: payload, SYN and FIN.
    #[inline]
    pub fn span(&self) -> u64 {
        u64::from(self.len)
            + u64::from(self.flags.has(Flags::SYN))
            + u64::from(self.flags.has(Flags::FIN))
    }

    /// Returns whether the segment carries only an acknowledgement.
    #[inline]
    pub fn is_pure_ack(&self) -> bool {
        self.len == 0
            && self.flags.has(Flags::ACK)
            && !self.flags.any(Flags::SYN | Flags::FIN | Flags::RST)
    }

    /// Returns the timestamps option.
    pub fn timestamps(&self) -> Option<Timestamps> {
        self.has_timestamps.then_some(self.timestamps)
    }

    /// Sets the timestamps option.
    #[inline]
    pub fn set_timestamps(&mut self, value: u32, echo: u32) {
        self.timestamps = Timestamps { value, echo };
        self.has_timestamps = true;
    }

    /// Returns the AccECN option's counter of marked bytes (RFC 9768).
    pub fn marked_bytes(&self) -> Option<u32> {
        self.has_marked_bytes.then_some(self.marked_bytes)
    }

    /// Sets the AccECN option, if two of the option's counters fit into the header next to all
    /// other options. Set the other options first.
    #[inline]
    pub fn set_marked_bytes(&mut self, bytes: u32) {
        self.has_marked_bytes = self.options_len() + 8 <= MAX_OPTIONS;
        self.marked_bytes = if self.has_marked_bytes { bytes } else { 0 };
    }

    /// Returns the options of a SYN.
    pub fn syn_options(&self) -> &SynOptions {
        &self.syn
    }

    /// Sets the options of a SYN.
    pub fn set_syn_options(&mut self, options: SynOptions) {
        self.syn = options;
    }

    /// Returns the SACK blocks with absolute numbers; a D-SACK block comes first.
    #[inline]
    pub fn sack(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + Clone + '_ {
        self.blocks[..usize::from(self.block_count)].iter().map(|&(start, end)| {
            (self.ack.wrapping_add_signed(start.into()), self.ack.wrapping_add_signed(end.into()))
        })
    }

    /// Returns whether the segment has a SACK block.
    pub fn has_sack(&self) -> bool {
        self.block_count > 0
    }

    /// Returns how many SACK blocks the segment can have next to its timestamps (set these first).
    pub fn sack_room(&self) -> usize {
        if self.has_timestamps { MAX_BLOCKS - 1 } else { MAX_BLOCKS }
    }

    /// Adds a SACK block if the header has space and the block lies within 2 GiB of the
    /// acknowledgement. Returns whether it was added.
    #[inline]
    pub fn push_sack(&mut self, start: u64, end: u64) -> bool {
        let at = usize::from(self.block_count);
        if at >= self.sack_room() {
            return false;
        }
        let relative = |number: u64| i32::try_from(number.wrapping_sub(self.ack) as i64);
        let (Ok(start), Ok(end)) = (relative(start), relative(end)) else {
            return false;
        };
        self.blocks[at] = (start, end);
        self.block_count += 1;
        true
    }

    /// Returns the bytes of TCP options, padded to words as in Linux.
    #[inline]
    pub fn options_len(&self) -> u32 {
        let timestamps = u32::from(self.has_timestamps) * 12;
        let blocks = u32::from(self.block_count);
        let sack = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        if self.flags.has(Flags::SYN) {
            let mss = u32::from(self.syn.mss > 0) * 4;
            let scale = u32::from(self.syn.window_scale.is_some()) * 4;
            // SACK-permitted fills the padding of the timestamps, or takes four bytes of its own.
            let permitted = u32::from(self.syn.sack_permitted && !self.has_timestamps) * 4;
            return mss + timestamps + scale + permitted;
        }
        // The AccECN option has 11 bytes with three counters, 8 with two.
        let left = MAX_OPTIONS.saturating_sub(timestamps + sack);
        timestamps + sack + u32::from(self.has_marked_bytes) * left.min(12)
    }

    /// Returns the length in bytes as an Ethernet frame with IPv4 and without FCS.
    pub fn wire_len(&self) -> u32 {
        HEADERS + self.options_len() + self.len
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (bit, letter) in [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'C'),
            (Flags::AE, 'A'),
        ] {
            if self.flags.has(bit) {
                write!(f, "{letter}")?;
            }
        }
        write!(f, ". {}:{}({})", self.seq, self.end(), self.len)?;
        if self.flags.has(Flags::ACK) {
            write!(f, " ack {}", self.ack)?;
        }
        write!(f, " win {}", self.window)?;
        if self.has_sack() {
            write!(f, " sack")?;
            for (start, end) in self.sack() {
                write!(f, " {start}:{end}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_is_1514_bytes() {
        let mut segment = Segment::new(1, 1, Flags::ACK);
        segment.len = 1460;
        assert_eq!(segment.wire_len(), 1514);
        segment.set_timestamps(1, 1);
        segment.len = 1448;
        assert_eq!(segment.wire_len(), 1514);
        segment.len = 0;
        assert_eq!(segment.wire_len(), 66);
    }

    #[test]
    fn a_syn_of_linux_is_74_bytes() {
        let mut syn = Segment::new(0, 0, Flags::SYN);
        syn.set_syn_options(SynOptions { mss: 1460, sack_permitted: true, window_scale: Some(7) });
        syn.set_timestamps(1, 0);
        assert_eq!(syn.wire_len(), 74);
        assert_eq!(syn.span(), 1);
    }

    #[test]
    fn blocks_are_absolute_and_few() {
        let mut ack = Segment::new(1, 5000, Flags::ACK);
        ack.set_timestamps(1, 1);
        assert!(ack.push_sack(1000, 2000));
        assert!(ack.push_sack(6000, 7000));
        assert!(!ack.push_sack(5000 + (1 << 40), 5001 + (1 << 40)));
        assert!(ack.push_sack(8000, 9000));
        assert!(!ack.push_sack(10_000, 11_000));
        assert_eq!(ack.sack().collect::<Vec<_>>(), [(1000, 2000), (6000, 7000), (8000, 9000)]);
        assert_eq!(ack.options_len(), 40);
        let mut bare = Segment::new(1, 1, Flags::ACK);
        (0..4).for_each(|i| assert!(bare.push_sack(10 + i * 20, 20 + i * 20)));
        assert!(!bare.push_sack(100, 110));
        assert_eq!(bare.options_len(), 36);
    }

    #[test]
    fn counters_take_what_other_options_leave() {
        for (blocks, length) in [(0, 24), (1, 36), (2, 40), (3, 40)] {
            let mut ack = Segment::new(1, 1, Flags::ACK);
            ack.set_timestamps(1, 1);
            (0..blocks).for_each(|i| assert!(ack.push_sack(10 + i * 20, 20 + i * 20)));
            ack.set_marked_bytes(7);
            assert_eq!(ack.options_len(), length, "{blocks} blocks");
            assert_eq!(ack.marked_bytes(), (blocks < 3).then_some(7));
        }
    }

    #[test]
    fn it_stays_small() {
        assert!(size_of::<Segment>() <= 80, "{}", size_of::<Segment>());
    }
}
