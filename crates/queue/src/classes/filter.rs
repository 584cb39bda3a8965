//! Filters, which select the class of a packet.

use super::statements::{self, Name, Statement};
use crate::packet::{Headers, Packet};
use sojourn_units::data;
use sojourn_units::words::{Text, Token, WordError};
use std::net::Ipv4Addr;

/// Names of differentiated services code points (RFC 2474, 2597, 3246, 5865, 8622).
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

/// Returns the code point of a name such as `EF`, in any case; `None` for an unknown name.
pub fn code_point(name: &str) -> Option<u8> {
    CODE_POINTS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, dscp)| *dscp)
}

/// Length of the Ethernet header in bytes.
const ETHERNET: u32 = 14;

/// Words of the conditions; each takes a value.
pub const CONDITIONS: &[&str] =
    &["dscp", "protocol", "sport", "dport", "port", "length", "mark", "src", "dst", "host"];

/// A condition that a packet must meet.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The code point equals this value.
    Dscp(u8),
    /// The protocol number of the IP header equals this value.
    Protocol(u8),
    /// The source port is in this range, including both ends.
    Sport(u16, u16),
    /// The destination port is in this range, including both ends.
    Dport(u16, u16),
    /// The source or the destination port is in this range, including both ends.
    Port(u16, u16),
    /// The length of the IP packet in bytes is in this range, including both ends.
    Length(u16, u16),
    /// The firewall's mark, masked with the second number, equals the first.
    Mark(u32, u32),
    /// The source is the host with this number.
    Src(u32),
    /// The destination is the host with this number.
    Dst(u32),
    /// The source or the destination is the host with this number.
    Host(u32),
}

impl Condition {
    fn holds(self, packet: &impl Packet, headers: impl Fn() -> Headers) -> bool {
        match self {
            Self::Dscp(dscp) => packet.dscp() == dscp,
            Self::Protocol(protocol) => headers().protocol == protocol,
            Self::Sport(first, last) => (first..=last).contains(&headers().ports.0),
            Self::Dport(first, last) => (first..=last).contains(&headers().ports.1),
            Self::Port(first, last) => {
                let (source, destination) = headers().ports;
                let range = first..=last;
                range.contains(&source) || range.contains(&destination)
            }
            Self::Length(first, last) => {
                let length = packet.len().saturating_sub(ETHERNET);
                (u32::from(first)..=u32::from(last)).contains(&length)
            }
            Self::Mark(mark, mask) => headers().mark & mask == mark,
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
                let number = text.parse().ok().filter(|number| *number < 64);
                let dscp = code_point(text).or(number);
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
            "sport" | "dport" | "port" => {
                let ports =
                    ports(text).ok_or_else(|| wrong("a port, such as 443, or 5000-5100"))?;
                Ok(match key.text {
                    "sport" => Self::Sport(ports.0, ports.1),
                    "dport" => Self::Dport(ports.0, ports.1),
                    _ => Self::Port(ports.0, ports.1),
                })
            }
            "length" => {
                let range = range(text);
                let (first, last) =
                    range.ok_or_else(|| wrong("a number of bytes, such as 40, or 0-127"))?;
                Ok(Self::Length(first, last))
            }
            "mark" => {
                let (mark, mask) = mark(text).ok_or_else(|| {
                    wrong("a 32-bit number, such as 1, or number/mask, such as 0x10/0xff")
                })?;
                Ok(Self::Mark(mark & mask, mask))
            }
            _ => {
                let host = host(text)
                    .ok_or_else(|| wrong("a host's number or IPv4 address, such as 10.0.0.1"))?;
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
            Self::Sport(first, last) => text.value("sport", span(first, last)),
            Self::Dport(first, last) => text.value("dport", span(first, last)),
            Self::Port(first, last) => text.value("port", span(first, last)),
            Self::Length(first, last) => text.value("length", span(first, last)),
            Self::Mark(mark, u32::MAX) => text.value("mark", mark),
            Self::Mark(mark, mask) => text.value("mark", format!("{mark:#x}/{mask:#x}")),
            Self::Src(host) => text.value("src", host),
            Self::Dst(host) => text.value("dst", host),
            Self::Host(host) => text.value("host", host),
        }
    }
}

/// Reads a port above 0 or a range of such ports, as first and last port; `None` for other texts.
fn ports(text: &str) -> Option<(u16, u16)> {
    range(text).filter(|(first, _)| *first != 0)
}

/// Reads a number or a range of numbers, as first and last number; `None` for other texts.
fn range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

/// Returns a range of numbers as text that `range` reads.
fn span(first: u16, last: u16) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// Reads a mark and its mask; without a mask all 32 bits are compared.
fn mark(text: &str) -> Option<(u32, u32)> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match text.split_once('/') {
        Some((mark, mask)) => Some((number(mark)?, number(mask)?)),
        None => Some((number(text)?, u32::MAX)),
    }
}

/// Reads a host by its number, or by its address in captures, which is 10.0.0.1 plus the number.
fn host(text: &str) -> Option<u32> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        let first = u32::from(Ipv4Addr::new(10, 0, 0, 1));
        return u32::from(address).checked_sub(first).filter(|host| *host < 1 << 24);
    }
    text.parse().ok()
}

/// Returns the address of a host in captures: 10.0.0.1 plus its number.
pub(super) fn address(host: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)).saturating_add(host))
}

/// A filter, which sends packets that meet all its conditions to a class.
#[data]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Conditions that a packet must meet; an empty list matches all packets.
    pub conditions: Vec<Condition>,
    /// Number of classes over which flows are distributed by their hash; 1 for one class.
    pub divisor: u16,
    /// Minor number of the class, or of the first class.
    pub class: u16,
}

impl Filter {
    /// Returns the class of `packet`; `None` if a condition does not hold. `headers` returns
    /// protocol, ports and mark.
    #[inline]
    pub fn class(&self, packet: &impl Packet, headers: impl Fn() -> Headers) -> Option<u16> {
        let fits = self.conditions.iter().all(|condition| condition.holds(packet, &headers));
        fits.then(|| match self.divisor {
            1 => self.class,
            divisor => {
                let place = packet.flow_hash() % u32::from(divisor);
                self.class.saturating_add(place as u16)
            }
        })
    }

    /// Returns the minor numbers of the classes to which the filter can send packets.
    pub fn classes(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.divisor).map(|n| self.class.saturating_add(n))
    }

    /// Reads a filter statement of the discipline with the number `major`.
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
                word if CONDITIONS.contains(&word) => {
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
                        let message = format!("`{}` is not a class of `{major:x}:`", value.text);
                        value.error(message, Vec::new())
                    })?;
                    filter.class = name.minor;
                    is_aimed = true;
                }
                other => {
                    let others = ["flow", "divisor", "all", "to"];
                    let known = CONDITIONS.iter().chain(&others).map(|word| (*word).to_owned());
                    let message = format!("unknown word `{other}` for `filter`");
                    return Err(key.error(message, known.collect()));
                }
            }
        }
        if !is_aimed {
            return Err(statement.error("`filter` needs a class, such as `to 1:10`"));
        }
        Ok(filter)
    }

    /// Returns the filter as a statement of the discipline with the number `major`.
    pub fn statement(&self, major: u16) -> String {
        self.write(major, Text::new("filter").value("parent", format!("{major:x}:"))).done()
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

/// Returns the filters in a text of statements, in order: `filter parent 1: dport 443 to 1:10 ;
/// ...`.
///
/// # Errors
/// A statement that is not a filter, or that cannot be read.
pub fn read(text: &str) -> Result<Vec<Filter>, WordError> {
    let filter = |statement: &Statement<'_>| {
        if statement.object.text != "filter" || statement.deletes {
            return Err(statement.error("this is not a filter; a filter begins with `filter`"));
        }
        let parent = statement.parent.and_then(|(name, _)| name.major);
        Filter::read(statement, parent.unwrap_or(1))
    };
    statements::read(text)?.iter().map(filter).collect()
}
