//! Selection of packets of a capture by their headers.

use crate::headers::Headers;
use core::net::{IpAddr, SocketAddr};
use sojourn_units::data;
use std::fmt;

/// An address, a port, or both, which a packet's source or destination must match.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// IP address; `None` for any address.
    pub address: Option<IpAddr>,
    /// Port; `None` for any port.
    pub port: Option<u16>,
}

impl Endpoint {
    /// Parses a text such as `10.0.0.1`, `10.0.0.1:443`, `:443`, `2001:db8::1` or
    /// `[2001:db8::1]:443`; `None` if it has another form.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(port) = text.strip_prefix(':').and_then(|port| port.parse().ok()) {
            return Some(Self { address: None, port: Some(port) });
        }
        if let Ok(both) = text.parse::<SocketAddr>() {
            return Some(Self { address: Some(both.ip()), port: Some(both.port()) });
        }
        text.parse().ok().map(|address| Self { address: Some(address), port: None })
    }

    fn means(&self, (address, port): (IpAddr, Option<u16>)) -> bool {
        self.address.is_none_or(|wanted| wanted == address)
            && self.port.is_none_or(|wanted| port == Some(wanted))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, self.port) {
            (Some(address), Some(port)) => SocketAddr::new(address, port).fmt(f),
            (Some(address), None) => address.fmt(f),
            (None, port) => write!(f, ":{}", port.unwrap_or(0)),
        }
    }
}

/// Conditions for packets. A packet is selected if all given conditions hold.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// Source of the packets; `None` for any source.
    pub source: Option<Endpoint>,
    /// Destination of the packets; `None` for any destination.
    pub destination: Option<Endpoint>,
    /// Protocol number in the IP header; `None` for any protocol.
    pub protocol: Option<u8>,
}

impl Select {
    /// Returns whether all packets are selected, including those without IP headers.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn means(&self, headers: Option<&Headers>) -> bool {
        headers.is_some_and(|headers| {
            self.source.is_none_or(|end| end.means(headers.source))
                && self.destination.is_none_or(|end| end.means(headers.destination))
                && self.protocol.is_none_or(|protocol| protocol == headers.protocol)
        })
    }
}
