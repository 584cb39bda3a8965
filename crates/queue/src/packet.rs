//! The data of a packet that a discipline may read.

use sojourn_units::Nanos;

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
    /// Returns the length in bytes: the Ethernet frame without FCS, plus any configured overhead.
    fn len(&self) -> u32;

    /// Returns the memory of the packet, which `memory_limit` counts.
    fn truesize(&self) -> u32;

    /// Returns a hash of the packet's flow: bucket `hash * flows >> 32` is its queue, and packets
    /// with the same hash are taken for one flow's.
    fn flow_hash(&self) -> u32;

    /// Returns the source and destination host, for isolation by host.
    fn hosts(&self) -> (u32, u32);

    /// Returns the class of the discipline that the packet names itself (`skb->priority` with the
    /// discipline's handle): its minor number, if it names one.
    fn class(&self) -> Option<u16> {
        None
    }

    /// Returns the six bits of the differentiated services code point.
    fn dscp(&self) -> u8;

    /// Returns the priority that Linux gives the packet (`skb->priority`), by default that of its
    /// TOS byte: best effort (0), bulk (2), interactive (6) or interactive bulk (4), after the
    /// table of `tc-prio(8)`.
    fn priority(&self) -> u32 {
        [0, 2, 6, 4][usize::from(self.dscp() >> 1 & 3)]
    }

    /// Returns the ECN field.
    fn ecn(&self) -> Ecn;

    /// Overwrites the code point.
    fn set_dscp(&mut self, dscp: u8);

    /// Sets Congestion Experienced; false on packets that are not ECN-capable. A packet that
    /// carries the mark already counts as marked.
    fn set_ce(&mut self) -> bool;
}

/// Fields for classifiers, in addition to addresses, code point and ECN field. The sink knows it
/// ([`Sink::headers`](crate::Sink::headers)), so that packets need not carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Protocol number of the IP header; 0 if it is not known.
    pub protocol: u8,
    /// Source and destination port; 0 if they are not known.
    pub ports: (u16, u16),
    /// The firewall's mark (`skb->mark`).
    pub mark: u32,
}

impl Headers {
    /// Protocol number of TCP.
    pub const TCP: u8 = 6;
    /// Protocol number of UDP.
    pub const UDP: u8 = 17;
}

/// The readable fields of a TCP segment's header, for disciplines that inspect packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpView {
    /// Source and destination host.
    pub hosts: (u32, u32),
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Acknowledgement number.
    pub ack: u32,
    /// The flags of the header's second half word, as on the wire.
    pub flags: u8,
    /// Bytes of payload.
    pub payload: u32,
    /// The time stamps option: value and echo.
    pub timestamps: Option<(u32, u32)>,
    /// Whether there are options other than time stamps, SACK and MD5.
    pub other_options: bool,
    /// The SACK option.
    pub sack: SackBlocks,
}

/// Up to four SACK blocks, each its start and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Returns the blocks, in their order.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
}

impl FromIterator<(u32, u32)> for SackBlocks {
    /// Takes the first four.
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
    /// No more data.
    pub const FIN: u8 = 0x01;
    /// Synchronise.
    pub const SYN: u8 = 0x02;
    /// Reset.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 0x10;
    /// Urgent.
    pub const URG: u8 = 0x20;
    /// Congestion was experienced.
    pub const ECE: u8 = 0x40;
    /// The congestion window was reduced.
    pub const CWR: u8 = 0x80;

    /// Returns whether both go the same way in the same connection.
    pub fn is_with(&self, other: &Self) -> bool {
        (self.hosts, self.ports) == (other.hosts, other.ports)
    }
}

/// The sending host's knowledge of a packet in addition to its headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// The socket that it comes from, if that is on this host.
    pub socket: Option<Socket>,
    /// The departure time that was asked for (`skb->tstamp`).
    pub departure: Option<Nanos>,
    /// It continues the super-packet of the packet before it, which Linux counts as one.
    pub continues: bool,
}

/// A socket, as a discipline of its host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Which of the host's sockets it is.
    pub number: u32,
    /// The kind of the socket.
    pub kind: SocketKind,
    /// Its hash; another one under the same number is another connection's.
    pub hash: u32,
    /// Bytes a second at which it wants its packets to leave now; none is as fast as possible.
    pub rate: Option<u64>,
}

/// The kind of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// A connected TCP socket.
    Stream,
    /// A socket without a peer, which may send to many.
    Unconnected,
    /// One that listens, or is left of a connection that has ended.
    Passive,
    /// A connected UDP socket, with a greatest rate of its own if `rate` is given.
    Datagram,
}
