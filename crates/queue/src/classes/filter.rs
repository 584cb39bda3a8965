//! Filters: which class packets go to.

use super::statements::{Name, Statement};
use crate::packet::{Headers, Packet};
use serde::{Deserialize, Serialize};
use sojourn_units::words::{Text, Token, WordError};
use std::net::Ipv4Addr;

/// Names of code points (RFC 2474, 2597, 3246, 5865, 8622).
const CODE_POINTS: &[(&str, u8)] = &[
    ("CS0", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
    ("CS7", 56),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("EF", 46),
    ("VA", 44),
    ("LE", 1),
];

/// What a packet must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// This code point.
    Dscp(u8),
    /// This protocol number of the IP header.
    Protocol(u8),
    /// This source host.
    Src(u32),
    /// This destination host.
    Dst(u32),
    /// This host as source or destination.
    Host(u32),
}

impl Condition {
    fn holds(self, packet: &impl Packet) -> bool {
        match self {
            Self::Dscp(dscp) => packet.dscp() == dscp,
            Self::Protocol(protocol) => packet.headers().protocol == protocol,
            Self::Src(host) => packet.hosts().0 == host,
            Self::Dst(host) => packet.hosts().1 == host,
            Self::Host(host) => packet.hosts().0 == host || packet.hosts().1 == host,
        }
    }

    fn read(key: &Token<'_>, value: &Token<'_>) -> Result<Self, WordError> {
        let text = value.text;
        let wrong = |needs: &str| {
            let message = format!("`{}` needs {needs}; found `{text}`", key.text);
            value.error(message, Vec::new())
        };
        match key.text {
            "dscp" => {
                let named = CODE_POINTS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
                let number = text.parse().ok().filter(|number| *number < 64);
                let dscp = named.map(|(_, dscp)| *dscp).or(number);
                dscp.map(Self::Dscp).ok_or_else(|| wrong("a code point, such as EF or 46"))
            }
            "protocol" => {
                let protocol = match text {
                    "tcp" => Some(Headers::TCP),
                    "udp" => Some(Headers::UDP),
                    number => number.parse().ok(),
                };
                protocol.map(Self::Protocol).ok_or_else(|| wrong("tcp, udp or a number"))
            }
            _ => {
                let host = host(text).ok_or_else(|| wrong("a host's number or its address"))?;
                Ok(match key.text {
                    "src" => Self::Src(host),
                    "dst" => Self::Dst(host),
                    _ => Self::Host(host),
                })
            }
        }
    }

    fn write(self, text: Text) -> Text {
        match self {
            Self::Dscp(dscp) => {
                let named = CODE_POINTS.iter().find(|(_, number)| *number == dscp);
                match named {
                    Some((name, _)) => text.value("dscp", name),
                    None => text.value("dscp", dscp),
                }
            }
            Self::Protocol(Headers::TCP) => text.value("protocol", "tcp"),
            Self::Protocol(Headers::UDP) => text.value("protocol", "udp"),
            Self::Protocol(number) => text.value("protocol", number),
            Self::Src(host) => text.value("src", host),
            Self::Dst(host) => text.value("dst", host),
            Self::Host(host) => text.value("host", host),
        }
    }
}

/// A host by its number, or by the address that captures show: 10.0.0.0 and the number and 1.
fn host(text: &str) -> Option<u32> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        let first = u32::from(Ipv4Addr::new(10, 0, 0, 1));
        return u32::from(address).checked_sub(first).filter(|host| *host < 1 << 24);
    }
    text.parse().ok()
}

/// The address of a host, as captures show it.
pub(super) fn address(host: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)).saturating_add(host))
}

/// A filter: packets that meet all conditions go to a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// What a packet must have; nothing fits all.
    pub conditions: Vec<Condition>,
    /// Over how many classes flows are spread by their hash, from [`Filter::class`] on.
    pub divisor: u16,
    /// Minor number of the class.
    pub class: u16,
}

impl Filter {
    /// The class of `packet`, if it fits.
    #[inline]
    pub fn class(&self, packet: &impl Packet) -> Option<u16> {
        let fits = self.conditions.iter().all(|condition| condition.holds(packet));
        fits.then(|| match self.divisor {
            1 => self.class,
            divisor => {
                let place = packet.flow_hash() % u32::from(divisor);
                self.class.saturating_add(place as u16)
            }
        })
    }

    /// The classes that packets may go to.
    pub fn classes(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.divisor).map(|n| self.class.saturating_add(n))
    }

    /// Reads a statement of the discipline with the number `major`.
    pub(super) fn read(statement: &Statement<'_>, major: u16) -> Result<Self, WordError> {
        let mut filter = Self { conditions: Vec::new(), divisor: 1, class: 0 };
        let mut words = statement.words.iter();
        let mut is_aimed = false;
        while let Some(key) = words.next() {
            if matches!(key.text, "flow" | "all") {
                continue;
            }
            let value = || {
                let message = format!("`{}` needs a value", key.text);
                key.error(message, Vec::new())
            };
            match key.text {
                "dscp" | "protocol" | "src" | "dst" | "host" => {
                    let value = words.next().ok_or_else(value)?;
                    filter.conditions.push(Condition::read(key, value)?);
                }
                "divisor" => {
                    let value = words.next().ok_or_else(value)?;
                    let number = value.text.parse().ok().filter(|number| *number > 0);
                    filter.divisor = number.ok_or_else(|| {
                        let message =
                            format!("`divisor` needs a number of classes; found `{}`", value.text);
                        value.error(message, Vec::new())
                    })?;
                }
                "to" | "flowid" | "classid" | "baseclass" => {
                    let value = words.next().ok_or_else(value)?;
                    let name = Name::read(value.text);
                    let name = name.filter(|name| name.major.is_none_or(|own| own == major));
                    let name = name.ok_or_else(|| {
                        let message = format!("`{}` is no class of `{major:x}:`", value.text);
                        value.error(message, Vec::new())
                    })?;
                    filter.class = name.minor;
                    is_aimed = true;
                }
                "port" | "sport" | "dport" | "mark" | "fw" | "u32" | "fwmark" => {
                    let message = format!(
                        "packets have no `{}` here: filters know dscp, protocol, src, dst, host and flow",
                        key.text
                    );
                    return Err(key.error(message, Vec::new()));
                }
                other => {
                    let known =
                        ["dscp", "protocol", "src", "dst", "host", "flow", "divisor", "all", "to"];
                    let message = format!("unknown word `{other}` for `filter`");
                    return Err(key.error(message, known.map(str::to_owned).to_vec()));
                }
            }
        }
        if !is_aimed {
            return Err(statement.error("`filter` needs a class, such as `to 1:10`"));
        }
        Ok(filter)
    }

    pub(super) fn write(&self, major: u16, text: Text) -> Text {
        let text = self.conditions.iter().fold(text, |text, condition| condition.write(text));
        let text = match (self.divisor, self.conditions.is_empty()) {
            (1, true) => text.flag("all"),
            (1, false) => text,
            (divisor, _) => text.flag("flow").value("divisor", divisor),
        };
        text.value("to", format!("{major:x}:{:x}", self.class))
    }
}
