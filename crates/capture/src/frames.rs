//! Packets of a simulated link as a pcap file: Ethernet, IPv4, TCP or UDP.
//!
//! Payloads are zeros, so a checksum depends only on the headers. Node `n` has the IPv4 address
//! 10.0.0.0 + n + 1 and the MAC address 02:00:00:00:00:00 + n + 1.

use crate::checksum::{fold, sum};
use crate::pcap::Writer;
use sojourn_units::Nanos;
use std::collections::BTreeMap;

/// Fields of a frame's headers.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Sending and receiving node.
    pub nodes: (u32, u32),
    /// Sending and receiving port.
    pub ports: (u16, u16),
    /// The IP header's TOS byte: DSCP in the upper six bits, ECN in the lower two.
    pub tos: u8,
    /// Frame length on the link.
    pub len: u32,
    /// The IP header's identification field: the packet's number modulo 2^16.
    pub id: u16,
    /// TCP's header; `None` for UDP.
    pub tcp: Option<TcpHeader>,
}

/// Fields of a TCP header.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpHeader {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// The flags CWR, ECE, URG, ACK, PSH, RST, SYN and FIN, from the highest bit to the lowest.
    pub flags: u8,
    /// The flag AE (RFC 9768).
    pub accurate: bool,
    /// Receive window in bytes. The file contains it shifted right by the window scale of the
    /// sender's SYN.
    pub window: u32,
    /// Payload bytes.
    pub payload: u32,
    /// Timestamp value and echo.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks: the left and the right edge of each.
    pub sack: [(u32, u32); 4],
    /// Number of valid entries in `sack`.
    pub sacks: u8,
    /// The option for the maximum segment size; 0 without it.
    pub mss: u16,
    /// Whether the header has the option SACK-permitted.
    pub sack_permitted: bool,
    /// The option for the window scale; `None` without it.
    pub window_scale: Option<u8>,
}

/// Maximum size of a capture in bytes; later frames are left out.
const LARGEST: usize = 1 << 30;
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const TCP: usize = 20;
const UDP: usize = 8;
const SYN: u8 = 0x02;

/// A capture of a simulated link in memory.
#[derive(Clone, Debug)]
pub struct Frames {
    file: Writer,
    is_cut: bool,
    /// Window scales from the SYNs of each side of a connection.
    scales: BTreeMap<Side, u8>,
}

/// One side of a connection: its sending and receiving node, its sending and receiving port.
type Side = ((u32, u32), (u16, u16));

fn address(node: u32) -> u32 {
    0x0a00_0000 + (node + 1)
}

fn mac(node: u32) -> [u8; 6] {
    let [a, b, c, d] = (node + 1).to_be_bytes();
    [2, 0, a, b, c, d]
}

impl Frames {
    /// Returns an empty capture for at most `snaplen` bytes of each frame.
    pub fn new(snaplen: u32) -> Self {
        Self { file: Writer::new(snaplen), is_cut: false, scales: BTreeMap::new() }
    }

    /// Appends a frame with the time `at`, counted from the run's start.
    pub fn add(&mut self, at: Nanos, frame: &Frame) {
        if self.file.next_size() > LARGEST {
            self.is_cut = true;
            return;
        }
        let mut head = [0u8; ETHERNET + IPV4 + 60];
        let scale = self.scale(frame);
        let written = write_headers(&mut head, frame, scale);
        self.file.add(at, frame.len, &head[..written]);
    }

    fn scale(&mut self, frame: &Frame) -> u8 {
        let Some(tcp) = &frame.tcp else { return 0 };
        let side = (frame.nodes, frame.ports);
        if tcp.flags & SYN != 0 {
            self.scales.insert(side, tcp.window_scale.unwrap_or(0));
            return 0;
        }
        self.scales.get(&side).copied().unwrap_or(0)
    }

    /// Returns whether frames were left out because the capture had its maximum size.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the pcap file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.file.into_bytes()
    }
}

/// Writes a frame's headers and returns their length. `scale` is the window scale in force.
fn write_headers(head: &mut [u8; ETHERNET + IPV4 + 60], frame: &Frame, scale: u8) -> usize {
    let (from, to) = frame.nodes;
    let total = (frame.len as usize).saturating_sub(ETHERNET).min(usize::from(u16::MAX)) as u16;
    head[0..6].copy_from_slice(&mac(to));
    head[6..12].copy_from_slice(&mac(from));
    head[12..14].copy_from_slice(&[0x08, 0x00]);
    let protocol: u8 = if frame.tcp.is_some() { 6 } else { 17 };
    let ip = &mut head[ETHERNET..ETHERNET + IPV4];
    ip[0] = 0x45;
    ip[1] = frame.tos;
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    ip[4..6].copy_from_slice(&frame.id.to_be_bytes());
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = protocol;
    ip[12..16].copy_from_slice(&address(from).to_be_bytes());
    ip[16..20].copy_from_slice(&address(to).to_be_bytes());
    let checksum = !fold(sum(ip));
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let pseudo = sum(&ip[12..20]) + u64::from(protocol);

    let segment = total.saturating_sub(IPV4 as u16);
    let body = &mut head[ETHERNET + IPV4..];
    body[0..2].copy_from_slice(&frame.ports.0.to_be_bytes());
    body[2..4].copy_from_slice(&frame.ports.1.to_be_bytes());
    let (length, at) = match &frame.tcp {
        None => {
            body[4..6].copy_from_slice(&segment.to_be_bytes());
            (UDP, 6)
        }
        Some(tcp) => (write_tcp(body, tcp, usize::from(segment), scale), 16),
    };
    let mut checksum = !fold(sum(&body[..length]) + pseudo + u64::from(segment));
    if checksum == 0 && frame.tcp.is_none() {
        checksum = 0xffff;
    }
    body[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    ETHERNET + IPV4 + length
}

/// The options field of a TCP header; an option that does not fit is left out.
struct Options<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Options<'_> {
    fn put(&mut self, option: &[u8]) {
        if let Some(to) = self.bytes.get_mut(self.at..self.at + option.len()) {
            to.copy_from_slice(option);
            self.at += option.len();
        }
    }
}

/// Writes a TCP header and returns its length. The length of its options follows from the segment's
/// total length and payload.
fn write_tcp(body: &mut [u8], tcp: &TcpHeader, segment: usize, scale: u8) -> usize {
    let options = (segment.saturating_sub(TCP + tcp.payload as usize)).min(40) / 4 * 4;
    body[4..8].copy_from_slice(&tcp.seq.to_be_bytes());
    body[8..12].copy_from_slice(&tcp.ack.to_be_bytes());
    body[12] = (((TCP + options) / 4) << 4) as u8 | u8::from(tcp.accurate);
    body[13] = tcp.flags;
    let window = (tcp.window >> scale).min(u32::from(u16::MAX)) as u16;
    body[14..16].copy_from_slice(&window.to_be_bytes());
    let mut field = Options { bytes: &mut body[TCP..TCP + options], at: 0 };
    if tcp.mss > 0 {
        let [a, b] = tcp.mss.to_be_bytes();
        field.put(&[2, 4, a, b]);
    }
    // As in Linux: SACK-permitted takes the two bytes that would pad the timestamps option.
    let padding: &[u8] = if tcp.sack_permitted { &[4, 2] } else { &[1, 1] };
    match tcp.timestamps {
        Some((value, echo)) => {
            let mut option = [0; 12];
            option[..2].copy_from_slice(padding);
            option[2..4].copy_from_slice(&[8, 10]);
            option[4..8].copy_from_slice(&value.to_be_bytes());
            option[8..].copy_from_slice(&echo.to_be_bytes());
            field.put(&option);
        }
        None if tcp.sack_permitted => field.put(&[1, 1, 4, 2]),
        None => {}
    }
    if let Some(scale) = tcp.window_scale {
        field.put(&[1, 3, 3, scale]);
    }
    let room = (options - field.at).saturating_sub(4) / 8;
    let sacks = room.min(usize::from(tcp.sacks));
    if sacks > 0 {
        field.put(&[1, 1, 5, (2 + 8 * sacks) as u8]);
        for (left, right) in &tcp.sack[..sacks] {
            field.put(&left.to_be_bytes());
            field.put(&right.to_be_bytes());
        }
    }
    field.bytes[field.at..].fill(1);
    TCP + options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_udp_frame_byte_for_byte() {
        let mut capture = Frames::new(64);
        let frame =
            Frame { nodes: (0, 1), ports: (5000, 5001), tos: 0xb8, len: 60, id: 7, tcp: None };
        capture.add(1_500_000_001, &frame);
        let bytes = capture.into_bytes();
        assert_eq!(bytes.len(), 24 + 16 + 60);
        assert_eq!(bytes[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
        assert_eq!(bytes[24..40], [1, 0, 0, 0, 1, 0x65, 0xcd, 0x1d, 60, 0, 0, 0, 60, 0, 0, 0]);
        #[rustfmt::skip]
        assert_eq!(bytes[40..82], [
            2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,
            0x45, 0xb8, 0, 46, 0, 7, 0x40, 0, 64, 17, 0x25, 0xfe, 10, 0, 0, 1, 10, 0, 0, 2,
            0x13, 0x88, 0x13, 0x89, 0, 26, 0xc4, 0xa6,
        ]);
        assert!(bytes[82..].iter().all(|&b| b == 0));
    }

    #[test]
    fn checksums_verify() {
        let tcp = TcpHeader {
            seq: u32::MAX,
            ack: 12345,
            flags: 0x10,
            window: 1000,
            payload: 1448,
            timestamps: Some((1, 2)),
            ..TcpHeader::default()
        };
        let frame = Frame {
            nodes: (3, 70_000),
            ports: (80, 40_000),
            tos: 2,
            len: 1514,
            id: 9,
            tcp: Some(tcp),
        };
        let mut capture = Frames::new(2000);
        capture.add(0, &frame);
        let bytes = capture.into_bytes();
        let ip = &bytes[40 + ETHERNET..];
        assert_eq!(!fold(sum(&ip[..IPV4])), 0);
        assert_eq!(!fold(sum(&ip[IPV4..]) + sum(&ip[12..20]) + 6 + 1480), 0);
        assert_eq!(ip[IPV4 + 12] >> 4, 8);
    }
}
