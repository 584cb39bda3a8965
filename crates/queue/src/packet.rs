//! The data of a packet that a discipline may read.

use sojourn_units::Nanos;

/// The ECN field of the IP header; the values are the two bits of RFC 3168.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The transport is not ECN-capable.
    #[default]
    NotEct = 0,
    /// The transport is ECN-capable, code point ECT(1).
    Ect1 = 1,
    /// The transport is ECN-capable, code point ECT(0).
    Ect0 = 2,
    /// Congestion experienced: a queue on the path has marked the packet.
    Ce = 3,
}

impl Ecn {
    /// Returns the code point in the two lower bits of `bits`, such as those of a TOS byte.
    #[inline]
    pub fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Sets congestion experienced, unless the transport is not ECN-capable; returns whether it is
    /// set.
    #[inline]
    pub fn mark(&mut self) -> bool {
        let capable = *self != Self::NotEct;
        if capable {
            *self = Self::Ce;
        }
        capable
    }
}

/// A packet as queue disciplines read and mark it. Length, flow and ECN field suffice for most of
/// them; the defaults of the other methods are those of best-effort packets between two hosts.
#[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
pub trait Packet {
    /// Returns the length of the Ethernet frame in bytes, without frame check sequence.
    fn len(&self) -> u32;

    /// Returns whether this is a super-packet: several frames of a TCP connection that a queue
    /// holds as one packet. [`Sink::split`](crate::Sink::split) divides it.
    #[inline]
    fn is_super(&self) -> bool {
        false
    }

    /// Returns the memory that the packet occupies, in bytes (`skb->truesize`); `memory_limit`
    /// counts it. By default it is Linux's for a packet of this length: headroom, data and
    /// `skb_shared_info` are rounded up to a power of two, and the sk_buff adds 256. A frame of 1514
    /// bytes takes 2304, a frame without data 768, and a super-packet 768 in addition to its data.
    #[inline]
    fn truesize(&self) -> u32 {
        if self.is_super() {
            return self.len() + 768;
        }
        (self.len() + 64 + 320).next_power_of_two() + 256
    }

    /// Returns a hash of the packet's flow. Flow-queueing disciplines treat packets with equal
    /// hashes as one flow, and choose its queue by the upper bits, or the lower ones: the hashes
    /// must be spread over all 32 bits.
    fn flow_hash(&self) -> u32;

    /// Returns the numbers of the source and destination host, for fairness between hosts (`cake`).
    fn hosts(&self) -> (u32, u32) {
        (0, 1)
    }

    /// Returns the minor number of the class that the packet itself names (`skb->priority` with the
    /// discipline's handle as major number); `None` if it names no class.
    fn class(&self) -> Option<u16> {
        None
    }

    /// Returns the differentiated services code point, 0 to 63.
    #[inline]
    fn dscp(&self) -> u8 {
        0
    }

    /// Returns the priority that Linux gives the packet (`skb->priority`). By default it follows
    /// from the TOS byte, after the table of `tc-prio(8)`: best effort 0, bulk 2, interactive 6,
    /// interactive bulk 4.
    fn priority(&self) -> u32 {
        [0, 2, 6, 4][usize::from(self.dscp() >> 1 & 3)]
    }

    /// Returns the ECN field.
    fn ecn(&self) -> Ecn;

    /// Overwrites the differentiated services code point; `dscp` is 0 to 63. By default a packet
    /// keeps none.
    fn set_dscp(&mut self, _dscp: u8) {}

    /// Sets congestion experienced and returns true, also if it was set before. Returns false for a
    /// packet that is not ECN-capable, without a change.
    fn set_ce(&mut self) -> bool;
}

/// Header fields for classifiers, in addition to addresses, code point and ECN field. They come
/// from [`Sink::headers`](crate::Sink::headers), so that packets need not carry them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Protocol number of the IP header; 0 if unknown.
    pub protocol: u8,
    /// Source and destination port; 0 if unknown.
    pub ports: (u16, u16),
    /// Mark set by the firewall (`skb->mark`); 0 without a mark.
    pub mark: u32,
}

impl Headers {
    /// Protocol number of TCP in the IP header.
    pub const TCP: u8 = 6;
    /// Protocol number of UDP in the IP header.
    pub const UDP: u8 = 17;
}

/// Header fields of a TCP segment, for disciplines that inspect packets (`ack_filter` of `cake`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpView {
    /// Numbers of the source and destination host.
    pub hosts: (u32, u32),
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags from FIN (bit 0) to CWR (bit 7), as in byte 13 of the header.
    pub flags: u8,
    /// Length of the payload in bytes.
    pub payload: u32,
    /// TCP timestamps option (RFC 7323): value and echo reply; `None` without the option.
    pub timestamps: Option<(u32, u32)>,
    /// Whether the header has options other than timestamps, SACK, MD5 and padding.
    pub other_options: bool,
    /// Blocks of the SACK option; empty without the option.
    pub sack: SackBlocks,
}

/// Up to four SACK blocks, each with its first sequence number and the one after its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Returns the blocks in the order of the option.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
}

impl FromIterator<(u32, u32)> for SackBlocks {
    /// Takes the first four blocks and ignores any others.
    fn from_iter<I: IntoIterator<Item = (u32, u32)>>(blocks: I) -> Self {
        let mut all = Self::default();
        for (to, block) in all.blocks.iter_mut().zip(blocks) {
            *to = block;
            all.count += 1;
        }
        all
    }
}

impl TcpView {
    /// Flag: the sender has no more data.
    pub const FIN: u8 = 0x01;
    /// Flag: synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Flag: reset the connection.
    pub const RST: u8 = 0x04;
    /// Flag: push data to the application.
    pub const PSH: u8 = 0x08;
    /// Flag: the acknowledgement number is valid.
    pub const ACK: u8 = 0x10;
    /// Flag: the urgent pointer is valid.
    pub const URG: u8 = 0x20;
    /// Flag: the receiver has received marked packets (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Flag: the sender has reduced its congestion window (RFC 3168).
    pub const CWR: u8 = 0x80;

    /// Returns whether both segments are of one connection and in one direction.
    pub fn is_with(&self, other: &Self) -> bool {
        (self.hosts, self.ports) == (other.hosts, other.ports)
    }
}

/// Information that the sending host has about a packet in addition to the headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// Socket that sent the packet; `None` if the packet comes from another host.
    pub socket: Option<Socket>,
    /// Requested departure time (`skb->tstamp`); `None` without a request.
    pub departure: Option<Nanos>,
    /// Whether the packet continues the super-packet of the packet before it; Linux counts a
    /// super-packet as one packet.
    pub continues: bool,
}

/// A socket of the host, as the host's queue discipline sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Number of the socket on its host.
    pub number: u32,
    /// Protocol and state of the socket.
    pub kind: SocketKind,
    /// Hash of the connection (`sk_hash`). A changed hash shows that `number` now belongs to
    /// another connection.
    pub hash: u32,
    /// Requested pacing rate in bytes per second; `None` for no limit.
    pub rate: Option<u64>,
}

/// Protocol and state of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// A connected TCP socket.
    Stream,
    /// A socket without a peer, which can send to many destinations.
    Unconnected,
    /// A listening socket, or the rest of a connection that has ended (TIME-WAIT).
    Passive,
    /// A connected UDP socket. A `rate` is a maximum that its program has set.
    Datagram,
}
