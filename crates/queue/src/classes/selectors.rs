//! Filters as words of `tc`.
//!
//! Source: tc-u32(8), tc-fw(8), tc-flow(8), tc-ematch(8).
//!
//! `fw` compares the mark. `u32` compares words of the headers and needs one filter each for IPv4
//! and IPv6. `flow` distributes flows over classes by their hash; an expression (ematch) restricts
//! it to packets that meet the conditions.

use super::filter::{Condition, Filter, address};
use std::net::Ipv4Addr;

/// Header fields that identify a flow, as a word of `tc`'s filter `flow`.
const HASH: &str = "flow hash keys src,dst,proto,proto-src,proto-dst";

/// The part of a filter command from the protocol on, without the order number.
pub(crate) struct FilterCommand {
    /// Protocol of the packets that the kernel passes to the filter.
    pub protocol: &'static str,
    /// Kind and options of the filter.
    pub words: String,
}

/// Tests that must all hold, for IPv4 and IPv6 packets; `ipv6` is `None` if no IPv6 packet matches.
#[derive(Clone)]
struct Selector {
    ipv4: Vec<String>,
    ipv6: Option<Vec<String>>,
}

/// Returns the commands of `tc` with the effect of `filter`; `name` returns the name of a class.
/// `addresses` are those of the hosts, by default those in captures.
pub(crate) fn commands_of(
    filter: &Filter,
    name: impl Fn(u16) -> String,
    addresses: Option<&[String]>,
) -> Vec<FilterCommand> {
    let address_of = |host: u32| {
        let own = addresses.and_then(|all| all.get(host as usize)).cloned();
        own.unwrap_or_else(|| address(host).to_string())
    };
    let class = name(filter.class);
    let one = |words: String| vec![FilterCommand { protocol: "all", words }];
    let spread = format!("divisor {} baseclass {class}", filter.divisor);
    match (filter.divisor, filter.conditions.as_slice()) {
        (1, []) => one(format!("u32 match u32 0 0 flowid {class}")),
        (_, []) => one(format!("handle 1 {HASH} {spread}")),
        // `fw` cannot have handle 0.
        (1, [Condition::Mark(mark, mask)]) if *mark != 0 => {
            one(format!("handle {} fw classid {class}", marked(*mark, *mask)))
        }
        (1, conditions) => protocols(
            conditions,
            |one| compared(one, &address_of),
            |tests| format!("u32 match {} flowid {class}", tests.join(" match ")),
        ),
        (_, conditions) => protocols(
            conditions,
            |one| expressed(one, &address_of),
            |tests| {
                // The expression must not be at the end of the command: `tc` would read its last word
                // twice.
                format!("handle 1 {HASH} match '{}' {spread}", tests.join(" and "))
            },
        ),
    }
}

/// Returns a mark, followed by its mask unless that has all 32 bits.
fn marked(mark: u32, mask: u32) -> String {
    if mask == u32::MAX { format!("{mark:#x}") } else { format!("{mark:#x}/{mask:#x}") }
}

/// Returns the commands of a filter that matches if one alternative of each condition matches: one
/// for IPv4 and, if possible, one for IPv6 for each combination of alternatives. `choices` returns
/// a condition's alternatives, `words` the filter's words for a list of tests.
fn protocols(
    conditions: &[Condition],
    choices: impl Fn(Condition) -> Vec<Selector>,
    words: impl Fn(&[String]) -> String,
) -> Vec<FilterCommand> {
    let mut selectors = vec![Selector { ipv4: Vec::new(), ipv6: Some(Vec::new()) }];
    for condition in conditions {
        let choices = choices(*condition);
        let both = |selector: &Selector| {
            let selector = selector.clone();
            choices.iter().map(move |choice| selector.with(choice)).collect::<Vec<_>>()
        };
        selectors = selectors.iter().flat_map(both).collect();
    }
    let command = |protocol, tests: Vec<String>| FilterCommand { protocol, words: words(&tests) };
    let commands = selectors.into_iter().flat_map(|Selector { ipv4, ipv6 }| {
        let ipv6 = ipv6.map(|tests| command("ipv6", tests));
        std::iter::once(command("ip", ipv4)).chain(ipv6)
    });
    commands.collect()
}

impl Selector {
    fn new(ipv4: String, ipv6: impl Into<Option<String>>) -> Self {
        Self { ipv4: vec![ipv4], ipv6: ipv6.into().map(|test| vec![test]) }
    }

    fn with(&self, more: &Self) -> Self {
        let both = |(one, other): (&Vec<String>, &Vec<String>)| [&one[..], other].concat();
        Self {
            ipv4: both((&self.ipv4, &more.ipv4)),
            ipv6: self.ipv6.as_ref().zip(more.ipv6.as_ref()).map(both),
        }
    }
}

/// Returns the alternatives of a condition as words of `u32`; one of them must match.
fn compared(condition: Condition, address_of: &dyn Fn(u32) -> String) -> Vec<Selector> {
    let end =
        |key: &str, host: u32| Selector::new(format!("ip {key} {}/32", address_of(host)), None);
    match condition {
        Condition::Dscp(dscp) => {
            let words = |key: &str| format!("{key} {:#04x} 0xfc", dscp << 2);
            vec![Selector::new(words("ip dsfield"), words("ip6 priority"))]
        }
        Condition::Protocol(number) => {
            let words = |key: &str| format!("{key} protocol {number} 0xff");
            vec![Selector::new(words("ip"), words("ip6"))]
        }
        Condition::Sport(first, last) => blocks(&["sport"], first, last),
        Condition::Dport(first, last) => blocks(&["dport"], first, last),
        Condition::Port(first, last) => blocks(&["sport", "dport"], first, last),
        Condition::Length(first, last) => {
            let words = |(next, mask)| format!("u16 {next:#06x} {mask:#06x} at 2");
            masked(first, last).map(|block| Selector::new(words(block), None)).collect()
        }
        Condition::Mark(mark, mask) => {
            let words = format!("mark {mark:#x} {mask:#x}");
            vec![Selector::new(words.clone(), words)]
        }
        Condition::Src(host) => vec![end("src", host)],
        Condition::Dst(host) => vec![end("dst", host)],
        Condition::Host(host) => vec![end("src", host), end("dst", host)],
    }
}

/// Returns the alternatives of a range of ports.
fn blocks(ends: &[&str], first: u16, last: u16) -> Vec<Selector> {
    let both = |(next, mask): (u32, u32)| {
        ends.iter().map(move |end| {
            let words = |key: &str| format!("{key} {end} {next} {mask:#06x}");
            Selector::new(words("ip"), words("ip6"))
        })
    };
    masked(first, last).flat_map(both).collect()
}

/// Returns the blocks of a range, each as its first number and the mask of its leading bits, which
/// `u32` compares.
fn masked(first: u16, last: u16) -> impl Iterator<Item = (u32, u32)> {
    let (mut next, last) = (u32::from(first), u32::from(last));
    std::iter::from_fn(move || {
        if next > last {
            return None;
        }
        let mut size = 1;
        while next.is_multiple_of(2 * size) && next + 2 * size - 1 <= last && size < 0x1_0000 {
            size *= 2;
        }
        let block = (next, 0xffff & !(size - 1));
        next += size;
        Some(block)
    })
}

/// Returns the alternatives of a condition as expressions (ematch). Layer 1 is the IP header, layer
/// 2 the transport header.
fn expressed(condition: Condition, address_of: &dyn Fn(u32) -> String) -> Vec<Selector> {
    let end = |offset: u32, host: u32| {
        let address = address_of(host);
        let number = address.parse::<Ipv4Addr>().map(|ip| format!("{:#x}", u32::from(ip)));
        let number = number.unwrap_or(address);
        Selector::new(format!("cmp(u32 at {offset} layer 1 eq {number})"), None)
    };
    let same = |words: String| Selector::new(words.clone(), words);
    match condition {
        Condition::Dscp(dscp) => vec![Selector::new(
            format!("cmp(u8 at 1 layer 1 mask 0xfc eq {:#x})", dscp << 2),
            format!("cmp(u16 at 0 layer 1 mask 0xfc0 eq {:#x})", u16::from(dscp) << 6),
        )],
        Condition::Protocol(number) => {
            let words = |offset: u32| format!("cmp(u8 at {offset} layer 1 eq {number})");
            vec![Selector::new(words(9), words(6))]
        }
        Condition::Sport(first, last) => vec![same(span(0, first, last))],
        Condition::Dport(first, last) => vec![same(span(2, first, last))],
        Condition::Port(first, last) => [0, 2].map(|at| same(span(at, first, last))).to_vec(),
        Condition::Length(first, last) => {
            vec![Selector::new(span(2, first, last).replace("layer 2", "layer 1"), None)]
        }
        Condition::Mark(mark, u32::MAX) => vec![same(format!("meta(nf_mark eq {mark:#x})"))],
        Condition::Mark(mark, mask) => {
            vec![same(format!("meta(nf_mark mask {mask:#x} eq {mark:#x})"))]
        }
        Condition::Src(host) => vec![end(12, host)],
        Condition::Dst(host) => vec![end(16, host)],
        Condition::Host(host) => vec![end(12, host), end(16, host)],
    }
}

/// Returns an expression for a range of ports; `offset` selects the source (0) or destination port
/// (2).
fn span(offset: u32, first: u16, last: u16) -> String {
    let words = |is: &str, port: u16| format!("cmp(u16 at {offset} layer 2 {is} {port})");
    match (first.checked_sub(1), last.checked_add(1)) {
        _ if first == last => words("eq", first),
        (Some(below), Some(above)) => {
            format!("{} and {}", words("gt", below), words("lt", above))
        }
        (Some(below), None) => words("gt", below),
        (None, above) => words("lt", above.unwrap_or(last)),
    }
}
