//! Filters of `tc`: their tests as bits of the IP header.
//!
//! Sources: tc-u32(8), tc-flower(8), tc-basic(8), tc-ematch(8), tc-flow(8), tc-fw(8).

use crate::name::{Name, mask, number};
use crate::place::{Fault, Place, Word, Words, among};
use crate::table::Table;
use std::net::Ipv4Addr;

/// Protocols of the IP header by name, as in /etc/protocols.
pub(crate) const PROTOCOLS: [(&str, u32); 10] = [
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ipv6-icmp", 58),
    ("sctp", 132),
];
/// Filters that are not supported, each with the reason.
const NOT_READ: [(&str, &str); 6] = [
    ("bpf", "a BPF program decides"),
    ("cgroup", "packets here belong to no cgroup"),
    ("route", "routes here have no realms"),
    ("rsvp", "there are no RSVP sessions here"),
    ("tcindex", "packets have no traffic index here"),
    ("ematch", "it is not a filter by itself"),
];
const READ: [&str; 6] = ["u32", "flower", "basic", "flow", "fw", "matchall"];
const NEXT: &str =
    "action actions flowid classid police pipe continue drop pass keys divisor baseclass perturb";

/// End of a connection whose port is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Source,
    Destination,
}

/// A test of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// A masked 32-bit word of the IP header at a byte offset.
    Ip { value: u32, mask: u32, offset: u32 },
    /// A masked 32-bit word of the header that follows the IP header.
    Next { value: u32, mask: u32, offset: u32 },
    /// A range of ports, including both ends.
    Port(End, u16, u16),
    /// A range of lengths of the IP packet in bytes, including both ends.
    Length(u16, u16),
    /// The firewall's mark.
    Mark { value: u32, mask: u32 },
    /// A field of IPv6, which no packet here has.
    Ipv6,
    /// A field of the link header.
    Link,
}

/// Options of the filter `flow`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowHash {
    pub map: bool,
    pub keys: String,
    pub divisor: Option<Word>,
    pub base: Option<Word>,
}

/// A filter: its place in the device, order, tests and target.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub kind: Word,
    pub parent: Name,
    pub line: Place,
    /// Order of evaluation, lowest first; `None` if Linux chooses it.
    pub prio: Option<u32>,
    pub protocol: String,
    pub handle: Option<Word>,
    /// Words of its command after its kind.
    pub given: Vec<String>,
    pub tests: Vec<Match>,
    pub target: Option<Word>,
    pub flow: FlowHash,
    pub table: Table,
    /// Device to which the filter redirects incoming packets.
    pub redirect: Option<String>,
    /// Words that have no effect here, each with the reason.
    pub idle: Vec<(Word, &'static str)>,
}

impl Filter {
    pub fn new(kind: Word, parent: Name, line: Place) -> Self {
        Self {
            kind,
            parent,
            line,
            prio: None,
            protocol: "all".to_owned(),
            handle: None,
            given: Vec::new(),
            tests: Vec::new(),
            target: None,
            flow: FlowHash::default(),
            table: Table::default(),
            redirect: None,
            idle: Vec::new(),
        }
    }

    /// Whether some IPv4 packets do not meet the tests.
    pub fn is_selective(&self) -> bool {
        let always = |test: &Match| {
            matches!(
                test,
                Match::Ip { mask: 0, .. }
                    | Match::Next { mask: 0, .. }
                    | Match::Mark { value: 0, mask: 0 }
            )
        };
        !self.tests.iter().all(always)
    }

    fn is_ingress(&self) -> bool {
        self.parent.major == Name::INGRESS
    }

    /// Reads the words of a command after the filter's kind.
    pub fn read(&mut self, words: &[Word]) -> Result<(), Fault> {
        let kind = self.kind.clone();
        if let Some((name, why)) = NOT_READ.iter().find(|(name, _)| kind.is(name)) {
            return Err(kind.fault(format!("`{name}` filters are not supported: {why}")));
        }
        if !READ.contains(&kind.text.as_str()) {
            let known = READ.join(", ");
            let why = format!("`{}` filters are not supported; supported: {known}", kind.text);
            return Err(kind.unknown(why, &READ));
        }
        let mut given = Words::new(words);
        while let Some(word) = given.next() {
            match word.text.as_str() {
                "flowid" | "classid" => self.target = Some(given.value(word)?.clone()),
                "action" | "actions" => self.action(word, &mut given)?,
                "police" => self.police(word, &mut given)?,
                "skip_hw" | "skip_sw" | "no_percpu" | "verbose" => {}
                text => match kind.text.as_str() {
                    "u32" => self.u32(word, &mut given)?,
                    "flower" => {
                        let value = given.value(word)?;
                        self.flower(word, value)?;
                    }
                    "basic" if text == "match" => self.expression(word, &mut given)?,
                    "flow" => self.flow(word, &mut given)?,
                    "fw" | "basic" | "matchall" => {
                        return Err(word.unknown(
                            format!("unknown word `{text}` for `{}`", kind.text),
                            &["flowid", "classid", "action", "match"],
                        ));
                    }
                    _ => unreachable!("kinds that are read"),
                },
            }
        }
        if kind.is("fw") {
            let handle = self.handle.clone().ok_or_else(|| {
                Fault::new(
                    "`fw` without `handle` uses the mark as the class, which is not modelled",
                )
            })?;
            self.tests.push(marked(&handle)?);
        }
        self.given = words.iter().map(|word| word.text.clone()).collect();
        Ok(())
    }

    /// Returns the words of its command after its place.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec!["protocol".to_owned(), self.protocol.clone()];
        if let Some(prio) = self.prio {
            words.extend(["pref".to_owned(), prio.to_string()]);
        }
        if let Some(handle) = &self.handle {
            words.extend(["handle".to_owned(), handle.text.clone()]);
        }
        words.push(self.kind.text.clone());
        words.extend(self.given.iter().cloned());
        words
    }

    // Actions

    /// Reads the action that follows a word.
    pub fn action(&mut self, word: &Word, given: &mut Words<'_>) -> Result<(), Fault> {
        let kind = given.value(word)?;
        match kind.text.as_str() {
            "police" => self.police(kind, given)?,
            "mirred" => self.mirred(kind, given)?,
            "skbedit" => {
                let keys = ["priority", "mark", "queue_mapping", "ptype"];
                while let Some(key) = given.next_if(|word| keys.contains(&word)) {
                    let value = given.value(key)?;
                    if key.is("priority") && Name::read(&value.text).is_some() {
                        self.target = Some(value.clone());
                    } else {
                        self.idle.push((value.clone(), "filters here do not change packets"));
                    }
                }
            }
            "gact" => {
                given.next_if(|word| word == "action");
                let verdict = given.value(kind)?;
                not_dropped(verdict)?;
            }
            "pass" | "ok" | "continue" | "reclassify" | "pipe" | "drop" | "shot" => {
                not_dropped(kind)?;
            }
            "connmark" | "ctinfo" => {
                let ends = ["action", "flowid", "classid", "mirred"];
                while let Some(option) = given.next_if(|word| !ends.contains(&word)) {
                    self.idle.push((option.clone(), "connections have no marks here"));
                }
                if let Some(word) = given.next_if(|word| word == "mirred") {
                    self.mirred(word, given)?;
                }
            }
            other => {
                return Err(kind.fault(format!("the action `{other}` is not modelled")));
            }
        }
        // Words that may follow any action.
        while let Some(key) = given.next_if(|word| matches!(word, "index" | "hw_stats")) {
            given.value(key)?;
        }
        given.next_if(|word| matches!(word, "pipe" | "continue" | "pass" | "ok"));
        Ok(())
    }

    fn mirred(&mut self, word: &Word, given: &mut Words<'_>) -> Result<(), Fault> {
        let mut redirects = false;
        while let Some(option) = given.next_if(|word| word != "dev") {
            match option.text.as_str() {
                "egress" => {}
                "redirect" => redirects = true,
                "mirror" => {
                    return Err(option.fault("a copy of a packet (mirror) is not modelled"));
                }
                text => {
                    let message = format!("unknown word `{text}` for `mirred`");
                    return Err(option.unknown(message, &["egress", "redirect", "dev"]));
                }
            }
        }
        let key = given.value(word)?;
        let device = given.value(key)?;
        if !redirects {
            return Err(word.fault("`mirred` needs `redirect`"));
        }
        if !self.is_ingress() {
            let why = "redirection of outgoing packets to another device is not modelled";
            return Err(device.fault(why));
        }
        self.redirect = Some(device.text.clone());
        Ok(())
    }

    /// Reads a limit that drops packets. That of incoming packets has no effect here, because it
    /// holds none.
    pub fn police(&mut self, word: &Word, given: &mut Words<'_>) -> Result<(), Fault> {
        if !self.is_ingress() {
            let why = "`police`: a limit that drops packets without a queue is not modelled";
            return Err(word.fault(why));
        }
        let mut text = word.text.clone();
        while let Some(next) =
            given.next_if(|word| !matches!(word, "flowid" | "classid" | "action"))
        {
            text = format!("{text} {}", next.text);
        }
        let why = "incoming packets are limited by the link alone, not by a policer";
        self.idle.push((Word::new(text, word.place), why));
        Ok(())
    }

    /// Notes that a value has bits outside its mask.
    fn beyond(&mut self, word: &Word, value: u32, bits: u32) {
        if value & !bits != 0 {
            self.idle.push((word.clone(), "bits outside the mask are not compared"));
        }
    }

    // u32

    fn u32(&mut self, word: &Word, given: &mut Words<'_>) -> Result<(), Fault> {
        match word.text.as_str() {
            "match" => {
                let rest = given.rest();
                self.tests.push(selector(word, given)?);
                let own = &rest[..rest.len() - given.rest().len()];
                // As in Linux, bits outside the mask are not compared, except those of a mark.
                let numbers = own.windows(2).skip(usize::from(own[0].is("mark")) * own.len());
                for pair in numbers {
                    if let (Ok(value), Ok(bits)) = (number(&pair[0]), mask(&pair[1])) {
                        self.beyond(&pair[0], value, bits);
                    }
                }
            }
            "ht" | "link" | "hashkey" | "divisor" | "sample" | "offset" => {
                self.table.read(word, given)?;
            }
            "order" | "handle" => {
                given.value(word)?;
            }
            text => {
                let known = ["match", "flowid", "classid", "action", "order", "ht"];
                return Err(word.unknown(format!("unknown word `{text}` for `u32`"), &known));
            }
        }
        Ok(())
    }

    // flower

    /// Reads a key of `flower` and its value.
    fn flower(&mut self, key: &Word, value: &Word) -> Result<(), Fault> {
        match key.text.as_str() {
            "ip_proto" => self.tests.push(protocol(value)?),
            "src_ip" | "dst_ip" if value.text.contains(':') => self.tests.push(Match::Ipv6),
            "src_ip" => self.tests.push(network(value, 12)?),
            "dst_ip" => self.tests.push(network(value, 16)?),
            "src_port" => self.tests.push(masked_port(value, End::Source)?),
            "dst_port" => self.tests.push(masked_port(value, End::Destination)?),
            "ip_tos" => {
                let (tos, bits) = halves(value);
                let bits = bits.map_or(Ok(0xff), |bits| mask(&bits))?;
                let tos = number(&tos)?;
                self.beyond(value, tos, bits);
                self.tests.push(Match::Ip { value: tos << 16, mask: bits << 16, offset: 0 });
            }
            "chain" | "hw_tc" | "handle" => {}
            text => return Err(key.fault(format!("`flower` by `{text}` is not modelled"))),
        }
        Ok(())
    }

    // basic and flow

    fn expression(&mut self, key: &Word, given: &mut Words<'_>) -> Result<(), Fault> {
        let mut words = Vec::new();
        while let Some(word) = given.next_if(|word| !among(word, NEXT)) {
            words.push(word.text.as_str());
        }
        let text = Word::new(words.join(" "), key.place);
        self.tests.extend(expression(&text)?);
        Ok(())
    }

    fn flow(&mut self, word: &Word, given: &mut Words<'_>) -> Result<(), Fault> {
        match word.text.as_str() {
            "hash" => {}
            "map" => self.flow.map = true,
            "keys" | "key" => self.flow.keys.clone_from(&given.value(word)?.text),
            "divisor" => self.flow.divisor = Some(given.value(word)?.clone()),
            "baseclass" => self.flow.base = Some(given.value(word)?.clone()),
            "perturb" | "addend" | "rshift" | "and" | "or" | "xor" => {
                let value = given.value(word)?.clone();
                self.idle.push((value, "the hash of a flow is that of all addresses and ports"));
            }
            "match" => self.expression(word, given)?,
            text => {
                let known = ["hash", "map", "keys", "divisor", "baseclass", "perturb", "match"];
                return Err(word.unknown(format!("unknown word `{text}` for `flow`"), &known));
            }
        }
        Ok(())
    }
}

fn not_dropped(verdict: &Word) -> Result<(), Fault> {
    match verdict.text.as_str() {
        "drop" | "shot" => Err(verdict.fault("packets that a filter drops are not modelled")),
        _ => Ok(()),
    }
}

/// Splits a word at its first slash.
fn halves(word: &Word) -> (Word, Option<Word>) {
    match word.text.split_once('/') {
        Some((first, second)) => {
            (Word::new(first, word.place), Some(Word::new(second, word.place)))
        }
        None => (word.clone(), None),
    }
}

/// Reads a mark with an optional mask, such as `0x10/0xff`.
pub(crate) fn marked(word: &Word) -> Result<Match, Fault> {
    let (value, bits) = halves(word);
    let bits = bits.map_or(Ok(u32::MAX), |bits| number(&bits))?;
    Ok(Match::Mark { value: number(&value)?, mask: bits })
}

fn selector(word: &Word, given: &mut Words<'_>) -> Result<Match, Fault> {
    let kind = given.value(word)?;
    match kind.text.as_str() {
        "u8" | "u16" | "u32" => {
            let width: u32 = kind.text[1..].parse().unwrap_or(32);
            let value = number(given.value(kind)?)?;
            let bits = mask(given.value(kind)?)?;
            let place = given.next_if(|word| word == "at").map(|at| given.value(at)).transpose()?;
            let zero = Word::new("0", kind.place);
            let place = place.unwrap_or(&zero);
            // The link header precedes the IP header.
            if place.text.starts_with('-') {
                return Ok(Match::Link);
            }
            header_bytes(place, width, value, bits)
        }
        "mark" => {
            let value = number(given.value(kind)?)?;
            Ok(Match::Mark { value, mask: mask(given.value(kind)?)? })
        }
        "ip6" | "ether" => {
            given.value(kind)?;
            given.value(kind)?;
            given.next_if(|word| {
                let digits = word.strip_prefix("0x").unwrap_or(word);
                !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())
            });
            Ok(if kind.is("ip6") { Match::Ipv6 } else { Match::Link })
        }
        "tcp" | "udp" => {
            let end = given.value(kind)?;
            match end.text.as_str() {
                "src" => port_word(End::Source, end, given),
                "dst" => port_word(End::Destination, end, given),
                text => Err(end.fault(format!("`match {} {text}` is not modelled", kind.text))),
            }
        }
        "ip" => {
            let key = given.value(kind)?;
            match key.text.as_str() {
                "src" => network(given.value(key)?, 12),
                "dst" => network(given.value(key)?, 16),
                "sport" => port_word(End::Source, key, given),
                "dport" => port_word(End::Destination, key, given),
                "tos" | "dsfield" | "precedence" => byte(key, given, 0),
                "protocol" => byte(key, given, 8),
                text => Err(key.fault(format!("`match ip {text}` is not modelled"))),
            }
        }
        text => {
            let known = ["ip", "ip6", "tcp", "udp", "u8", "u16", "u32", "mark", "ether"];
            Err(kind.unknown(format!("`match {text}` is not supported"), &known))
        }
    }
}

fn byte(key: &Word, given: &mut Words<'_>, offset: u32) -> Result<Match, Fault> {
    let text = given.value(key)?;
    let named = PROTOCOLS.iter().find(|(name, _)| key.is("protocol") && text.is(name));
    let value = named.map_or_else(|| number(text), |(_, value)| Ok(*value))?;
    let bits = mask(given.value(key)?)?;
    if value > 0xff || bits > 0xff {
        return Err(text.fault(format!("`{}` is above 255", text.text)));
    }
    Ok(Match::Ip { value: value << 16, mask: bits << 16, offset })
}

fn port_word(end: End, key: &Word, given: &mut Words<'_>) -> Result<Match, Fault> {
    let value = given.value(key)?;
    port_bits(end, value, number(value)?, mask(given.value(key)?)?)
}

fn port_bits(end: End, word: &Word, value: u32, bits: u32) -> Result<Match, Fault> {
    if value.max(bits) > 0xffff {
        return Err(word.fault(format!("`{}` is not a port", word.text)));
    }
    let shift = if end == End::Source { 16 } else { 0 };
    Ok(Match::Next { value: value << shift, mask: bits << shift, offset: 0 })
}

/// Returns a comparison of bytes as a comparison of a 32-bit word of the header.
fn header_bytes(place: &Word, width: u32, value: u32, bits: u32) -> Result<Match, Fault> {
    let behind = place.text.strip_prefix("nexthdr+");
    let text = behind.unwrap_or(&place.text);
    let offset = number(&Word::new(if text.is_empty() { "0" } else { text }, place.place))?;
    let shift = 32u32.checked_sub(width + 8 * (offset % 4)).ok_or_else(|| {
        place.fault("a comparison of bytes in two 32-bit words of the header is not supported")
    })?;
    let fit =
        |number: u32| if width < 32 && number >> width != 0 { None } else { Some(number << shift) };
    let (Some(value), Some(bits)) = (fit(value), fit(bits)) else {
        return Err(place.fault(format!("the value has more than {width} bits")));
    };
    Ok(header_word(behind.is_some(), value, bits, offset - offset % 4))
}

/// Returns a comparison of a 32-bit word of the IP header, or of the header that follows it.
pub(crate) fn header_word(is_next: bool, value: u32, mask: u32, offset: u32) -> Match {
    // IP headers here have no options and therefore 20 bytes.
    match (is_next, offset) {
        (true, offset) => Match::Next { value, mask, offset },
        (false, 20..) => Match::Next { value, mask, offset: offset - 20 },
        (false, offset) => Match::Ip { value, mask, offset },
    }
}

/// Returns the test of the transport protocol.
pub(crate) fn protocol(word: &Word) -> Result<Match, Fault> {
    let named = PROTOCOLS.iter().find(|(name, _)| word.is(name));
    let value = named.map_or_else(|| number(word), |(_, value)| Ok(*value))?;
    if value > 0xff {
        return Err(word.fault(format!("`{}` is not a protocol", word.text)));
    }
    Ok(Match::Ip { value: value << 16, mask: 0xff << 16, offset: 8 })
}

/// Returns the test of an address or network at a byte offset in the IP header. As in `tc`, missing
/// parts of an address are 0.
pub(crate) fn network(word: &Word, offset: u32) -> Result<Match, Fault> {
    let wrong = || word.fault(format!("`{}` is not an IPv4 address", word.text));
    if matches!(word.text.as_str(), "any" | "all" | "default") {
        return Ok(Match::Ip { value: 0, mask: 0, offset });
    }
    let (address, length) = word.text.split_once('/').unwrap_or((&word.text, "32"));
    let parts = address.split('.').count();
    let whole = format!("{address}{}", ".0".repeat(4usize.saturating_sub(parts)));
    let address: Ipv4Addr = whole.parse().map_err(|_| wrong())?;
    let mask = if let Ok(dotted) = length.parse::<Ipv4Addr>() {
        u32::from(dotted)
    } else {
        let length = length.parse::<u32>().ok().filter(|length| *length <= 32);
        u32::MAX.checked_shl(32 - length.ok_or_else(wrong)?).unwrap_or(0)
    };
    Ok(Match::Ip { value: u32::from(address) & mask, mask, offset })
}

fn masked_port(word: &Word, end: End) -> Result<Match, Fault> {
    if let Some((first, last)) = word.text.split_once('-') {
        return port_range(word, end, &Word::new(first, word.place), &Word::new(last, word.place));
    }
    let (value, bits) = halves(word);
    let bits = bits.map_or(Ok(0xffff), |bits| number(&bits))?;
    port_bits(end, word, number(&value)?, bits)
}

/// Returns the test of a range of ports, including both ends.
pub(crate) fn port_range(word: &Word, end: End, first: &Word, last: &Word) -> Result<Match, Fault> {
    let (low, high) = (number(first)?.max(1), number(last)?);
    if low > high || high > 0xffff {
        return Err(word.fault(format!("`{}` is neither a port nor a range of ports", word.text)));
    }
    Ok(Match::Port(end, low as u16, high as u16))
}

/// Reads an expression of `basic` or `flow`: comparisons joined by `and`.
fn expression(text: &Word) -> Result<Vec<Match>, Fault> {
    let whole = text.text.trim();
    let inner = whole.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let mut tests = Vec::new();
    for part in inner.unwrap_or(whole).split(" and ") {
        let part = Word::new(part.trim().trim_start_matches("AND "), text.place);
        let refuse = || {
            let start: String = part.text.chars().take(40).collect();
            part.fault(format!("the expression `{start}` is not supported"))
        };
        let (name, rest) = part.text.split_once('(').ok_or_else(refuse)?;
        let inside = rest.trim().strip_suffix(')').ok_or_else(refuse)?;
        let words: Vec<Word> =
            inside.split_whitespace().map(|word| Word::new(word, text.place)).collect();
        let tokens: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        tests.push(match (name.trim(), tokens.as_slice()) {
            ("cmp", [width @ ("u8" | "u16" | "u32"), "at", rest @ ..]) => {
                compared(width, &words[2], rest, &words[3..]).ok_or_else(refuse)??
            }
            ("meta", ["nf_mark" | "fwmark", rest @ ..]) => match rest {
                ["eq", _] => Match::Mark { value: number(&words[2])?, mask: u32::MAX },
                ["mask", _, "eq", _] => {
                    Match::Mark { value: number(&words[4])?, mask: number(&words[2])? }
                }
                _ => return Err(refuse()),
            },
            _ => return Err(refuse()),
        });
    }
    Ok(tests)
}

/// Reads the words of `cmp` after the offset; `None` for an unsupported form.
fn compared(
    width: &str,
    offset: &Word,
    rest: &[&str],
    words: &[Word],
) -> Option<Result<Match, Fault>> {
    let (layer, rest, words) = match rest.get(1..)? {
        ["layer", layer, rest @ ..] => (*layer, rest, words.get(2..)?),
        rest => ("1", rest, words),
    };
    let is_next = matches!(layer, "2" | "transport");
    if matches!(layer, "0" | "link") {
        return Some(Err(offset.fault("a test of the link header is not modelled")));
    }
    let width: u32 = width[1..].parse().ok()?;
    let at = if is_next { format!("nexthdr+{}", offset.text) } else { offset.text.clone() };
    let at = Word::new(at, offset.place);
    let compare = |value: &Word, bits: Option<&Word>| {
        let bits = bits.map_or(Ok(u32::MAX >> (32 - width)), number)?;
        header_bytes(&at, width, number(value)?, bits)
    };
    let bound = |value: &Word, is_above: bool| {
        let end = if offset.is("0") { End::Source } else { End::Destination };
        let limit = number(value)?;
        let (low, high) = if is_above {
            (limit.saturating_add(1), 0xffff)
        } else {
            (1, limit.saturating_sub(1).min(0xffff))
        };
        if low > high {
            return Err(value.fault(format!("no port is on this side of {}", value.text)));
        }
        Ok(Match::Port(end, low as u16, high as u16))
    };
    match rest {
        ["eq", _] => Some(compare(&words[1], None)),
        ["mask", _, "eq", _] => Some(compare(&words[3], Some(&words[1]))),
        [side @ ("gt" | "lt"), _]
            if is_next && width == 16 && ["0", "2"].contains(&offset.text.as_str()) =>
        {
            Some(bound(&words[1], *side == "gt"))
        }
        _ => None,
    }
}
