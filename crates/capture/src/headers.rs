//! Parsing of packets' headers: addresses, protocol and ports.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of an Ethernet header in bytes.
const ETHERNET: u32 = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Kind of the first header of a link's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// An Ethernet header.
    Ethernet,
    /// A link-layer header of this many bytes, followed by an IP header.
    Ip(u8),
}

/// Addresses, protocol and ports of an IP packet. Ports are `None` if they are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headers {
    pub source: (IpAddr, Option<u16>),
    pub destination: (IpAddr, Option<u16>),
    pub protocol: u8,
}

impl Link {
    /// Returns the link for a number in the registry of link types.
    pub fn of(number: u32) -> Result<Self, String> {
        Ok(match number {
            1 => Self::Ethernet,
            // BSD loopback in both byte orders.
            0 | 108 => Self::Ip(4),
            // Raw IP, for which some systems use the numbers 12 and 14.
            12 | 14 | 101 | 228 | 229 => Self::Ip(0),
            // The interface "any" of Linux ("cooked" captures).
            113 => Self::Ip(16),
            276 => Self::Ip(20),
            _ => {
                return Err(format!(
                    "unsupported link type {number}: use Ethernet (1), raw IP (101, 228, 229), \
                     Linux cooked (113, 276) or loopback (0, 108)"
                ));
            }
        })
    }

    /// Returns the length in bytes of a packet's Ethernet frame. `length` is the packet's length
    /// with the header of this link type.
    pub fn frame(self, length: u32) -> u32 {
        match self {
            Self::Ethernet => length,
            Self::Ip(header) => length.saturating_sub(u32::from(header)).saturating_add(ETHERNET),
        }
    }

    /// Returns the headers of a packet; `None` if it is not IP or too few bytes were captured.
    pub fn headers(self, data: &[u8]) -> Option<Headers> {
        let mut at = match self {
            Self::Ethernet => ETHERNET as usize,
            Self::Ip(header) => usize::from(header),
        };
        if self == Self::Ethernet {
            // VLAN tags precede the ethertype.
            while matches!(data.get(at - 2..at)?, [0x81, 0x00] | [0x88, 0xa8]) {
                at += 4;
            }
            if !matches!(data.get(at - 2..at)?, [0x08, 0x00] | [0x86, 0xdd]) {
                return None;
            }
        }
        let ip = data.get(at..)?;
        match ip.first()? >> 4 {
            4 => ipv4(ip),
            6 => ipv6(ip),
            _ => None,
        }
    }
}

fn ipv4(ip: &[u8]) -> Option<Headers> {
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 4] = ip.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(bytes).into())
    };
    let protocol = *ip.get(9)?;
    let fragment = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x1fff;
    let rest = ip.get(usize::from(ip[0] & 15) * 4..).filter(|_| fragment == 0);
    Some(headers(address(12)?, address(16)?, protocol, rest))
}

fn ipv6(ip: &[u8]) -> Option<Headers> {
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = ip.get(at..at + 16)?.try_into().ok()?;
        Some(Ipv6Addr::from(bytes).into())
    };
    let (source, destination) = (address(8)?, address(24)?);
    let mut protocol = *ip.get(6)?;
    let mut rest = ip.get(40..);
    // Hop-by-hop options, routing and destination options may follow, and then a fragment header.
    while matches!(protocol, 0 | 43 | 60) {
        let header = rest.filter(|rest| rest.len() >= 2)?;
        protocol = header[0];
        rest = header.get((usize::from(header[1]) + 1) * 8..);
    }
    if protocol == 44 {
        let header = rest.filter(|rest| rest.len() >= 8)?;
        protocol = header[0];
        let first = u16::from_be_bytes([header[2], header[3]]) >> 3 == 0;
        rest = header.get(8..).filter(|_| first);
    }
    Some(headers(source, destination, protocol, rest))
}

fn headers(source: IpAddr, destination: IpAddr, protocol: u8, rest: Option<&[u8]>) -> Headers {
    let port = |at: usize| {
        let ports = rest.filter(|_| matches!(protocol, TCP | UDP))?;
        Some(u16::from_be_bytes(ports.get(at..at + 2)?.try_into().ok()?))
    };
    Headers { source: (source, port(0)), destination: (destination, port(2)), protocol }
}
