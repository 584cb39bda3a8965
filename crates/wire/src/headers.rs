//! Parsing of a frame's headers, in one pass and without copies.
//!
//! Sources: RFC 791 (IPv4), RFC 8200 (IPv6), RFC 9293 (TCP), RFC 768 (UDP), RFC 792 and 4443
//! (ICMP), RFC 7323 and 2018 (TCP options), IEEE 802.1Q (VLAN tags). Every field is checked against
//! the frame's end before it is read. A header that is cut short or contradicts itself is *opaque*,
//! and so are the headers after it: the frame is forwarded, but fewer of its fields are known.

use std::net::IpAddr;

use sojourn_queue::{Ecn, SackBlocks, TcpView};

use crate::vnet::Partial;
use sojourn_capture::checksum;

/// Length of an Ethernet header in bytes. Queues count it in the length of a packet on every
/// device.
pub const ETHERNET: usize = 14;

/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Protocol number of `ICMPv6`.
pub const ICMP_V6: u8 = 58;

/// Offset in a frame, in bytes, up to which IPv6 extension headers are parsed. Later headers are
/// opaque.
const FURTHEST: usize = 1024;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// Ethertypes of VLAN tags: 802.1Q and 802.1ad.
const TAGS: [u16; 2] = [0x8100, 0x88a8];

/// The first header of a device's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The IP header (TUN).
    Ip,
    /// The Ethernet header (TAP and packet sockets).
    Ethernet,
}

/// Position of a fragment in its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment {
    /// Not a fragment.
    Whole,
    /// The first fragment.
    First,
    /// A later fragment, which has no transport header.
    Later,
}

/// An IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Offset of the header in the frame, in bytes.
    pub at: u16,
    /// Length of the header in bytes, with options or parsed extension headers.
    pub header: u16,
    /// Length of the datagram in bytes: header and payload.
    pub total: u32,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Type of service or traffic class: DSCP and ECN field.
    pub tos: u8,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// Whether the packet is a fragment, and which.
    pub fragment: Fragment,
}

/// A TCP header, without its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Offset of the header in the frame, in bytes.
    pub at: u16,
    /// Length of the header in bytes, with options.
    pub header: u16,
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Sequence number of the first byte.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Flags, as in [`TcpView`].
    pub flags: u8,
    /// Value of the window field, without window scaling.
    pub window: u16,
    /// Bytes of payload.
    pub payload: u32,
}

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// Offset of the header in the frame, in bytes.
    pub at: u16,
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Bytes of payload.
    pub payload: u32,
}

/// An ICMP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Offset of the header in the frame, in bytes.
    pub at: u16,
    /// ICMP type.
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// Identifier and sequence number of an echo request or reply; `None` for other types.
    pub echo: Option<(u16, u16)>,
}

/// A transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Unknown or malformed transport, or a fragment without a transport header.
    Opaque,
    /// TCP.
    Tcp(Tcp),
    /// UDP.
    Udp(Udp),
    /// ICMP or `ICMPv6`.
    Icmp(Icmp),
}

/// TCP options that queues and the accounting of flows use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Timestamps option: value and echo reply.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// Whether the list is malformed or contains an option other than timestamps, SACK, MD5 and
    /// padding.
    pub other: bool,
}

/// The headers of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Length as queues count it, in bytes: that of the Ethernet frame without FCS, on every
    /// device.
    pub length: u32,
    /// Ethertype after any VLAN tags; 0 if the frame ends before it.
    pub ethertype: u16,
    /// The IP header; `None` if it is opaque or the frame is not IP.
    pub ip: Option<Ip>,
    /// The transport header; opaque if there is no IP header.
    pub transport: Transport,
}

fn byte(frame: &[u8], at: usize) -> Option<u8> {
    frame.get(at).copied()
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?))
}

fn long(frame: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*frame.get(at..)?.first_chunk()?))
}

impl Headers {
    /// Parses the headers of `frame`. The headers of a super-packet describe the whole
    /// super-packet.
    pub fn parse(framing: Framing, frame: &[u8]) -> Self {
        let (at, ethertype, length) = match framing {
            Framing::Ip => {
                let ethertype = match frame.first().map(|first| first >> 4) {
                    Some(4) => ETHERTYPE_IPV4,
                    Some(6) => ETHERTYPE_IPV6,
                    _ => 0,
                };
                (0, ethertype, frame.len() + ETHERNET)
            }
            Framing::Ethernet => {
                let mut at = ETHERNET;
                let mut ethertype = word(frame, 12).unwrap_or(0);
                while TAGS.contains(&ethertype) && at < ETHERNET + 4 * TAGS.len() {
                    ethertype = word(frame, at + 2).unwrap_or(0);
                    at += 4;
                }
                (at, ethertype, frame.len())
            }
        };
        let ip = match ethertype {
            ETHERTYPE_IPV4 => ipv4(frame, at),
            ETHERTYPE_IPV6 => ipv6(frame, at),
            _ => None,
        };
        let transport = ip.and_then(|ip| transport(frame, &ip)).unwrap_or(Transport::Opaque);
        Self { length: length as u32, ethertype, ip, transport }
    }

    /// Returns the TCP header; `None` if the transport is not TCP.
    pub fn tcp(&self) -> Option<&Tcp> {
        if let Transport::Tcp(tcp) = &self.transport { Some(tcp) } else { None }
    }

    /// Returns source and destination port of TCP or UDP; `None` for other transports.
    pub fn ports(&self) -> Option<(u16, u16)> {
        match &self.transport {
            Transport::Tcp(tcp) => Some(tcp.ports),
            Transport::Udp(udp) => Some(udp.ports),
            Transport::Icmp(_) | Transport::Opaque => None,
        }
    }

    /// Returns the offset of the transport's payload in the frame; `None` unless the transport is
    /// TCP or UDP.
    pub fn payload_at(&self) -> Option<usize> {
        match &self.transport {
            Transport::Tcp(tcp) => Some(usize::from(tcp.at) + usize::from(tcp.header)),
            Transport::Udp(udp) => Some(usize::from(udp.at) + 8),
            Transport::Icmp(_) | Transport::Opaque => None,
        }
    }

    /// Returns the six bits of the DSCP; 0 without an IP header.
    pub fn dscp(&self) -> u8 {
        self.ip.map_or(0, |ip| ip.tos >> 2)
    }

    /// Returns the ECN field; [`Ecn::NotEct`] without an IP header.
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.ip.map_or(0, |ip| ip.tos))
    }

    /// Writes DSCP and ECN field into `frame`, which must be the frame with these headers, and
    /// updates IPv4's header checksum. No other checksum covers these fields. Does nothing without
    /// an IP header.
    pub fn set_tos(&mut self, frame: &mut [u8], tos: u8) {
        let Some(ip) = &mut self.ip else { return };
        let at = usize::from(ip.at);
        if let Some(header) = frame.get_mut(at..at + 12) {
            let old = u16::from_be_bytes([header[0], header[1]]);
            if ip.source.is_ipv4() {
                let new = old & 0xff00 | u16::from(tos);
                let sum = u16::from_be_bytes([header[10], header[11]]);
                header[..2].copy_from_slice(&new.to_be_bytes());
                header[10..].copy_from_slice(&checksum::update(sum, old, new).to_be_bytes());
            } else {
                let new = old & 0xf00f | u16::from(tos) << 4;
                header[..2].copy_from_slice(&new.to_be_bytes());
            }
            ip.tos = tos;
        }
    }

    /// Returns a hash of addresses, protocol and ports, keyed by `seed`. The two directions of a
    /// connection have different hashes. Fragments are hashed without ports, so that all fragments
    /// of a datagram have the same hash, as in Linux. Echo requests and replies are hashed with
    /// their identifier, frames without an IP header by their ethertype.
    pub fn flow_hash(&self, seed: u64) -> u32 {
        let (protocol, ports) = match (&self.ip, &self.transport) {
            (Some(ip), _) if ip.fragment != Fragment::Whole => (ip.protocol, (0, 0)),
            (Some(ip), Transport::Icmp(icmp)) => (ip.protocol, (icmp.echo.map_or(0, |e| e.0), 0)),
            (Some(ip), _) => (ip.protocol, self.ports().unwrap_or((0, 0))),
            (None, _) => (0, (0, 0)),
        };
        let rest = u64::from(self.ethertype) << 48
            | u64::from(protocol) << 32
            | u64::from(ports.0) << 16
            | u64::from(ports.1);
        let mut hash = mix((seed ^ KEYS[0]) | 1, rest ^ KEYS[1]);
        if let Some(ip) = &self.ip {
            hash = mix(hash ^ address(ip.source, hash), address(ip.destination, !hash) ^ KEYS[2]);
        }
        (hash ^ hash >> 32) as u32
    }

    /// Returns source and destination host as numbers: an IPv4 address itself, a hash of an IPv6
    /// address, 0 without an IP header.
    pub fn hosts(&self) -> (u32, u32) {
        let host = |host: IpAddr| match host {
            IpAddr::V4(host) => host.to_bits(),
            IpAddr::V6(_) => (address(host, KEYS[0]) >> 32) as u32,
        };
        self.ip.map_or((0, 0), |ip| (host(ip.source), host(ip.destination)))
    }

    /// Returns the TCP options in `frame`, which must be the frame with these headers; none if the
    /// transport is not TCP.
    pub fn tcp_options(&self, frame: &[u8]) -> TcpOptions {
        self.tcp().map_or_else(TcpOptions::default, |tcp| {
            let at = usize::from(tcp.at);
            let list = frame.get(at + 20..at + usize::from(tcp.header)).unwrap_or_default();
            options(list)
        })
    }

    /// Returns the TCP segment for disciplines that use its fields; `None` if the transport is not
    /// TCP. `frame` must be the frame with these headers. `hosts` are the numbers of source and
    /// destination host in the network.
    pub fn tcp_view(&self, frame: &[u8], hosts: (u32, u32)) -> Option<TcpView> {
        let tcp = self.tcp()?;
        let TcpOptions { timestamps, sack, other } = self.tcp_options(frame);
        Some(TcpView {
            hosts,
            ports: tcp.ports,
            ack: tcp.acknowledgement,
            flags: tcp.flags,
            payload: tcp.payload,
            timestamps,
            other_options: other,
            sack,
        })
    }

    /// Returns the position of the transport's checksum, as a [`Partial`]; `None` unless the
    /// transport is TCP or UDP.
    pub(crate) fn checksum_place(&self) -> Option<Partial> {
        match &self.transport {
            Transport::Tcp(tcp) => Some(Partial { start: tcp.at, offset: 16 }),
            Transport::Udp(udp) => Some(Partial { start: udp.at, offset: 6 }),
            Transport::Icmp(_) | Transport::Opaque => None,
        }
    }

    /// Returns whether the checksums of `frame` are correct: that of IPv4's header, and in an
    /// unfragmented datagram that of TCP or UDP. `frame` must be the frame with these headers.
    /// Returns true if there is no known checksum, and for UDP over IPv4 with checksum 0, which
    /// means that the sender computed none.
    pub fn verify(&self, frame: &[u8]) -> bool {
        let Some(ip) = &self.ip else { return true };
        let at = usize::from(ip.at);
        let end = at + ip.total as usize;
        if ip.source.is_ipv4()
            && checksum::fold(checksum::sum(&frame[at..at + usize::from(ip.header)])) != 0xffff
        {
            return false;
        }
        let Some(place) = self.checksum_place() else { return true };
        if ip.fragment != Fragment::Whole {
            return true;
        }
        let (start, field) = (usize::from(place.start), usize::from(place.start + place.offset));
        if ip.protocol == UDP && ip.source.is_ipv4() && frame[field..field + 2] == [0, 0] {
            return true;
        }
        let pseudo = pseudo_header(frame, ip) + (end - start) as u64;
        checksum::fold(pseudo + checksum::sum(&frame[start..end])) == 0xffff
    }
}

/// Returns the sum of the pseudo-header without its length field, not folded.
pub(crate) fn pseudo_header(frame: &[u8], ip: &Ip) -> u64 {
    let at = usize::from(ip.at);
    let addresses =
        if ip.source.is_ipv4() { &frame[at + 12..at + 20] } else { &frame[at + 8..at + 40] };
    checksum::sum(addresses) + u64::from(ip.protocol)
}

fn ipv4(frame: &[u8], at: usize) -> Option<Ip> {
    let header = usize::from(byte(frame, at)? & 0xf) * 4;
    let total = usize::from(word(frame, at + 2)?);
    if byte(frame, at)? >> 4 != 4 || header < 20 || total < header || at + total > frame.len() {
        return None;
    }
    let fragment = match word(frame, at + 6)? {
        place if place & 0x1fff != 0 => Fragment::Later,
        place if place & 0x2000 != 0 => Fragment::First,
        _ => Fragment::Whole,
    };
    let address = |at| Some(IpAddr::V4(long(frame, at)?.into()));
    Some(Ip {
        at: at as u16,
        header: header as u16,
        total: total as u32,
        source: address(at + 12)?,
        destination: address(at + 16)?,
        tos: byte(frame, at + 1)?,
        ttl: byte(frame, at + 8)?,
        protocol: byte(frame, at + 9)?,
        fragment,
    })
}

fn ipv6(frame: &[u8], at: usize) -> Option<Ip> {
    let start = word(frame, at)?;
    let total = usize::from(word(frame, at + 4)?) + 40;
    if start >> 12 != 6 || at + total > frame.len() {
        return None;
    }
    let address = |at: usize| {
        Some(IpAddr::V6(u128::from_be_bytes(*frame.get(at..)?.first_chunk::<16>()?).into()))
    };
    let mut ip = Ip {
        at: at as u16,
        header: 40,
        total: total as u32,
        source: address(at + 8)?,
        destination: address(at + 24)?,
        tos: (start >> 4) as u8,
        ttl: byte(frame, at + 7)?,
        protocol: byte(frame, at + 6)?,
        fragment: Fragment::Whole,
    };
    extensions(&frame[..at + total], &mut ip);
    Some(ip)
}

/// Parses IPv6 extension headers until the transport header, a later fragment, a header that is cut
/// short, or [`FURTHEST`] (RFC 8200, section 4).
fn extensions(frame: &[u8], ip: &mut Ip) {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const DESTINATION: u8 = 60;
    loop {
        let at = usize::from(ip.at) + usize::from(ip.header);
        let (Some(next), Some(words)) = (byte(frame, at), byte(frame, at + 1)) else { return };
        let length = match ip.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION => (usize::from(words) + 1) * 8,
            AUTHENTICATION => (usize::from(words) + 2) * 4,
            FRAGMENT => {
                let Some(place) = word(frame, at + 2) else { return };
                if place & 0xfff8 != 0 {
                    ip.fragment = Fragment::Later;
                } else if place & 1 != 0 {
                    ip.fragment = Fragment::First;
                }
                8
            }
            _ => return,
        };
        if at + length > frame.len().min(FURTHEST) {
            return;
        }
        ip.header += length as u16;
        ip.protocol = next;
        if ip.fragment == Fragment::Later {
            return;
        }
    }
}

fn transport(frame: &[u8], ip: &Ip) -> Option<Transport> {
    if ip.fragment == Fragment::Later {
        return None;
    }
    let frame = &frame[..usize::from(ip.at) + ip.total as usize];
    let at = usize::from(ip.at) + usize::from(ip.header);
    let ports = || Some((word(frame, at)?, word(frame, at + 2)?));
    Some(match ip.protocol {
        TCP => {
            let header = usize::from(byte(frame, at + 12)? >> 4) * 4;
            if header < 20 || at + header > frame.len() {
                return None;
            }
            Transport::Tcp(Tcp {
                at: at as u16,
                header: header as u16,
                ports: ports()?,
                sequence: long(frame, at + 4)?,
                acknowledgement: long(frame, at + 8)?,
                flags: byte(frame, at + 13)?,
                window: word(frame, at + 14)?,
                payload: (frame.len() - at - header) as u32,
            })
        }
        UDP => {
            frame.get(at..at + 8)?;
            // The UDP length field is not used: in a super-packet it may be the length of one
            // segment.
            let payload = (frame.len() - at - 8) as u32;
            Transport::Udp(Udp { at: at as u16, ports: ports()?, payload })
        }
        ICMP | ICMP_V6 => {
            let (kind, code) = (byte(frame, at)?, byte(frame, at + 1)?);
            let is_echo = match ip.protocol {
                ICMP => matches!(kind, 0 | 8),
                _ => matches!(kind, 128 | 129),
            };
            let echo = || Some((word(frame, at + 4)?, word(frame, at + 6)?));
            let echo = if is_echo { echo() } else { None };
            Transport::Icmp(Icmp { at: at as u16, kind, code, echo })
        }
        _ => return None,
    })
}

fn options(mut list: &[u8]) -> TcpOptions {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    const SACK: u8 = 5;
    const TIMESTAMPS: u8 = 8;
    const MD5: u8 = 19;
    let mut read = TcpOptions::default();
    while let Some(kind) = list.first() {
        match *kind {
            END => break,
            NOTHING => {
                list = &list[1..];
                continue;
            }
            _ => {}
        }
        let length = list.get(1).map_or(0, |length| usize::from(*length));
        let Some(body) = list.get(2..length) else {
            read.other = true;
            break;
        };
        match (*kind, body.len()) {
            (TIMESTAMPS, 8) => read.timestamps = long(body, 0).zip(long(body, 4)),
            (SACK, bytes) if bytes > 0 && bytes % 8 == 0 => {
                read.sack = body
                    .chunks_exact(8)
                    .filter_map(|block| long(block, 0).zip(long(block, 4)))
                    .collect();
            }
            (MD5, 16) => {}
            _ => read.other = true,
        }
        list = &list[length..];
    }
    read
}

/// The first three constants of wyhash. They are odd and have as many one bits as zero bits.
const KEYS: [u64; 3] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3];

/// Multiplies to 128 bits and combines both halves, so that each input bit can affect all bits of
/// the result.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

fn address(host: IpAddr, key: u64) -> u64 {
    match host {
        IpAddr::V4(host) => u64::from(host.to_bits()),
        IpAddr::V6(host) => {
            let bits = host.to_bits();
            mix((bits >> 64) as u64 ^ KEYS[1] ^ key, bits as u64 ^ KEYS[2])
        }
    }
}
