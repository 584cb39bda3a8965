//! Filters as `tc` takes them.
//!
//! Source: tc-u32(8), tc-flow(8).
//!
//! `u32` compares words of the headers, those of IPv4 and of IPv6 in a filter each; `flow` spreads flows over
//! classes by their hash.

use super::filter::{Condition, Filter, address};
use crate::tc::NoKernelEquivalent;
use sojourn_units::words::Text;

/// Writes the part of a command behind the filter's parent and order.
pub(crate) struct FilterCommand {
    /// The packets that the kernel shows it.
    pub protocol: &'static str,
    /// Kind and words.
    pub words: String,
}

/// Conditions as words of `u32`, for IPv4 and, where they may hold there, for IPv6.
#[derive(Clone, Default)]
struct Selector {
    ipv4: String,
    ipv6: Option<String>,
}

/// Returns the commands that send the same packets to the same class; `name` gives the name of a
/// class.
///
/// # Errors
/// Where `tc` cannot say it.
pub(crate) fn commands_of(
    filter: &Filter,
    name: impl Fn(u16) -> String,
) -> Result<Vec<FilterCommand>, NoKernelEquivalent> {
    let class = name(filter.class);
    if filter.divisor != 1 && !filter.conditions.is_empty() {
        let text = filter.write(0, Text::new("filter")).done();
        let (text, _) = text.split_once(" to ").unwrap_or((&text, ""));
        let why = "`tc` spreads all flows or none: put a discipline that spreads them into a class";
        return Err(NoKernelEquivalent::new(text, why));
    }
    if filter.divisor != 1 {
        let hash = "flow hash keys src,dst,proto,proto-src,proto-dst";
        let words = format!("{hash} divisor {} baseclass {class}", filter.divisor);
        return Ok(vec![FilterCommand { protocol: "all", words: format!("handle 1 {words}") }]);
    }
    if filter.conditions.is_empty() {
        let words = format!("u32 match u32 0 0 flowid {class}");
        return Ok(vec![FilterCommand { protocol: "all", words }]);
    }
    let mut selectors = vec![Selector { ipv6: Some(String::new()), ..Selector::default() }];
    for condition in &filter.conditions {
        let choices = choices(*condition);
        let both = |selector: &Selector| {
            let selector = selector.clone();
            choices.iter().map(move |choice| selector.with(choice)).collect::<Vec<_>>()
        };
        selectors = selectors.iter().flat_map(both).collect();
    }
    let command = |protocol, matches: String| FilterCommand {
        protocol,
        words: format!("u32{matches} flowid {class}"),
    };
    let commands = selectors.into_iter().flat_map(|Selector { ipv4, ipv6 }| {
        let ipv6 = ipv6.map(|matches| command("ipv6", matches));
        std::iter::once(command("ip", ipv4)).chain(ipv6)
    });
    Ok(commands.collect())
}

impl Selector {
    fn with(&self, more: &Self) -> Self {
        let both = |(one, other): (&String, &String)| format!("{one}{other}");
        Self {
            ipv4: both((&self.ipv4, &more.ipv4)),
            ipv6: self.ipv6.as_ref().zip(more.ipv6.as_ref()).map(both),
        }
    }
}

/// Returns the alternatives of a condition: one of them must match.
fn choices(condition: Condition) -> Vec<Selector> {
    let is = |ipv4: String, ipv6: Option<String>| Selector { ipv4, ipv6 };
    let end = |key: &str, host: u32| is(format!(" match ip {key} {}/32", address(host)), None);
    match condition {
        Condition::Dscp(dscp) => {
            let field = dscp << 2;
            let words = |key: &str| format!(" match {key} {field:#04x} 0xfc");
            vec![is(words("ip dsfield"), Some(words("ip6 priority")))]
        }
        Condition::Protocol(number) => {
            let words = |key: &str| format!(" match {key} protocol {number} 0xff");
            vec![is(words("ip"), Some(words("ip6")))]
        }
        Condition::Sport(first, last) => ports(&["sport"], first, last),
        Condition::Dport(first, last) => ports(&["dport"], first, last),
        Condition::Port(first, last) => ports(&["sport", "dport"], first, last),
        Condition::Mark(mark, mask) => {
            let words = format!(" match mark {mark:#x} {mask:#x}");
            vec![is(words.clone(), Some(words))]
        }
        Condition::Src(host) => vec![end("src", host)],
        Condition::Dst(host) => vec![end("dst", host)],
        Condition::Host(host) => vec![end("src", host), end("dst", host)],
    }
}

/// Returns the ports of a range, at any of the ends: `u32` compares the leading bits of a port, so
/// a range is several blocks.
fn ports(ends: &[&str], first: u16, last: u16) -> Vec<Selector> {
    let mut found = Vec::new();
    let mut next = u32::from(first);
    while next <= u32::from(last) {
        let mut size = 1;
        while next.is_multiple_of(2 * size) && next + 2 * size - 1 <= u32::from(last) {
            size *= 2;
        }
        let mask = 0xffff & !(size - 1);
        found.extend(ends.iter().map(|end| {
            let words = |key: &str| format!(" match {key} {end} {next} {mask:#06x}");
            Selector { ipv4: words("ip"), ipv6: Some(words("ip6")) }
        }));
        next += size;
    }
    found
}
