//! The header in front of every frame of a device with `IFF_VNET_HDR` or `PACKET_VNET_HDR`.
//!
//! Source: `struct virtio_net_hdr`, `include/uapi/linux/virtio_net.h`; Virtual I/O Device (VIRTIO)
//! 1.3, 5.1.6. With this header the kernel passes *super-packets*, which are many segments of one
//! flow under one header, and frames with a *partial* transport checksum. The field of a partial
//! checksum holds the sum of the pseudo-header; the program that sends the frame must complete it.
//! This is the legacy form of the header: ten bytes, native byte order.

use sojourn_capture::checksum;

/// Length of the header in bytes.
pub const LENGTH: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const ECN: u8 = 0x80;

/// Type of a super-packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gso {
    /// The frame is a single packet.
    #[default]
    None,
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP datagrams of one size, over IPv4 or IPv6.
    UdpL4,
    /// Another type, which the wire does not request.
    Other(u8),
}

impl Gso {
    fn parse(kind: u8) -> Self {
        match kind {
            0 => Self::None,
            1 => Self::TcpV4,
            4 => Self::TcpV6,
            5 => Self::UdpL4,
            other => Self::Other(other),
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::TcpV4 => 1,
            Self::TcpV6 => 4,
            Self::UdpL4 => 5,
            Self::Other(kind) => kind,
        }
    }
}

/// Position of a partial checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Offset in the frame of the first byte that the checksum covers.
    pub start: u16,
    /// Offset of the checksum field from `start`.
    pub offset: u16,
}

impl Partial {
    /// Completes the checksum of `frame`, whose checksum field must hold the sum of the
    /// pseudo-header. Does nothing if the field lies beyond the frame's end.
    pub fn finish(self, frame: &mut [u8]) {
        let (start, field) = (usize::from(self.start), self.field());
        if field + 2 <= frame.len() {
            // In UDP, 0 means "no checksum". In ones' complement, 0xffff is the same number, so it
            // is also correct in TCP.
            let sum = match !checksum::fold(checksum::sum(&frame[start..])) {
                0 => 0xffff,
                sum => sum,
            };
            frame[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        }
    }

    fn field(self) -> usize {
        usize::from(self.start) + usize::from(self.offset)
    }
}

/// The header before a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// Position of the frame's checksum if it is partial.
    pub partial: Option<Partial>,
    /// Type of the super-packet, or [`Gso::None`] for a single packet.
    pub gso: Gso,
    /// Whether Congestion Window Reduced applies to the first segment only.
    pub ecn: bool,
    /// Length of all headers in bytes; 0 if unknown. This is only a hint.
    pub header_length: u16,
    /// Payload bytes of every segment except the last.
    pub segment_size: u16,
}

impl VnetHeader {
    /// Returns the header of a single packet.
    pub fn single(partial: Option<Partial>) -> Self {
        Self { partial, ..Self::default() }
    }

    /// Reads a header.
    pub fn parse(bytes: [u8; LENGTH]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            partial: (bytes[0] & NEEDS_CHECKSUM != 0)
                .then(|| Partial { start: word(6), offset: word(8) }),
            gso: Gso::parse(bytes[1] & !ECN),
            ecn: bytes[1] & ECN != 0,
            header_length: word(2),
            segment_size: word(4),
        }
    }

    /// Writes the header.
    pub fn to_bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[1] = self.gso.number() | if self.ecn { ECN } else { 0 };
        bytes[2..4].copy_from_slice(&self.header_length.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.segment_size.to_ne_bytes());
        if let Some(partial) = self.partial {
            bytes[0] = NEEDS_CHECKSUM;
            bytes[6..8].copy_from_slice(&partial.start.to_ne_bytes());
            bytes[8..10].copy_from_slice(&partial.offset.to_ne_bytes());
        }
        bytes
    }

    /// Returns the position of the partial checksum of a frame of `length` bytes; `None` if the
    /// field would lie outside the frame.
    pub fn partial_within(&self, length: usize) -> Option<Partial> {
        self.partial.filter(|partial| partial.field() + 2 <= length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives() {
        for gso in [Gso::None, Gso::TcpV4, Gso::TcpV6, Gso::UdpL4, Gso::Other(3)] {
            for ecn in [false, true] {
                for partial in [None, Some(Partial { start: 34, offset: 16 })] {
                    let header =
                        VnetHeader { partial, gso, ecn, header_length: 66, segment_size: 1448 };
                    assert_eq!(VnetHeader::parse(header.to_bytes()), header);
                }
            }
        }
    }

    #[test]
    fn as_the_kernel_lays_it_out() {
        let mut expected = [0; LENGTH];
        expected[0] = 1; // VIRTIO_NET_HDR_F_NEEDS_CSUM
        expected[1] = 0x81; // VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN
        expected[2..4].copy_from_slice(&52u16.to_ne_bytes());
        expected[4..6].copy_from_slice(&1448u16.to_ne_bytes());
        expected[6..8].copy_from_slice(&20u16.to_ne_bytes());
        expected[8..10].copy_from_slice(&16u16.to_ne_bytes());
        let header = VnetHeader {
            partial: Some(Partial { start: 20, offset: 16 }),
            gso: Gso::TcpV4,
            ecn: true,
            header_length: 52,
            segment_size: 1448,
        };
        assert_eq!(header.to_bytes(), expected);
    }

    #[test]
    fn a_partial_checksum_outside_the_frame_is_none() {
        let header = VnetHeader::single(Some(Partial { start: 20, offset: 16 }));
        assert_eq!(header.partial_within(37), None);
        assert_eq!(header.partial_within(38), header.partial);
        let mut frame = [0; 37];
        Partial { start: u16::MAX, offset: u16::MAX }.finish(&mut frame);
        assert_eq!(frame, [0; 37]);
    }
}
