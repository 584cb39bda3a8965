//! The conditions that replace the tests of a filter, and the rules of a discipline.
//!
//! Packets of a scenario are IPv4 packets without options; addresses are those of its hosts.

use crate::filter::{End, Filter, Match};
use crate::name::{Name, number};
use crate::place::{Fault, Place, Word};
use sojourn_queue::classes::filter::Condition;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Largest number of filters that replace one filter of `tc`.
const ALTERNATIVES: usize = 64;
/// Largest number of rules of one discipline that the firewall or inner classes make of its filters.
pub(crate) const RULES: usize = 256;

/// Numbers of the scenario's hosts by address.
pub type Hosts = BTreeMap<Ipv4Addr, u32>;

/// A condition of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Packet(Condition),
    /// The firewall has set this class as the packet's priority.
    Class(Name),
}

/// A rule: packets that meet all tests go to the class `target`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub tests: Vec<Test>,
    pub target: Name,
    pub line: Place,
    /// Number of classes, from `target` on, over which flows are distributed by their hash.
    pub divisor: u16,
}

/// Adds tests to rules; omits the rules after the first that had no tests.
pub(crate) fn within(rules: &[Rule], tests: &[Test]) -> Vec<Rule> {
    let end = rules.iter().position(|rule| rule.tests.is_empty()).map_or(rules.len(), |n| n + 1);
    let joined = |rule: &Rule| {
        let mut all = tests.to_vec();
        all.extend(rule.tests.iter().filter(|test| !tests.contains(test)));
        Rule { tests: all, ..rule.clone() }
    };
    rules[..end].iter().map(joined).collect()
}

/// Returns the rules; a rule that leads to an inner class is replaced by this class's rules. A
/// packet that matches no rule of an inner class goes to the default class, as in Linux.
pub(crate) fn descended(
    rules: &[Rule],
    of_class: &BTreeMap<Name, Vec<Rule>>,
    inner: &BTreeSet<Name>,
    default: Name,
) -> Result<Vec<Rule>, Fault> {
    let mut found = Vec::new();
    for rule in rules {
        if !inner.contains(&rule.target) || rule.divisor != 1 {
            found.push(rule.clone());
            continue;
        }
        // A rule that leads back to a class already entered is kept, so the recursion ends.
        let mut rest = inner.clone();
        rest.remove(&rule.target);
        let own = of_class.get(&rule.target).map_or(&[][..], Vec::as_slice);
        let mut deeper = descended(own, of_class, &rest, default)?;
        deeper.push(Rule { tests: Vec::new(), target: default, line: rule.line, divisor: 1 });
        found.extend(within(&deeper, &rule.tests));
        if found.len() > RULES.max(rules.len()) {
            return Err(Fault::new(format!("the filters would need more than {RULES} rules")));
        }
    }
    Ok(found)
}

/// The meaning of a filter: it matches a packet that meets all conditions of one alternative.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Meaning {
    pub alternatives: Vec<Vec<Condition>>,
    pub notes: Vec<String>,
    /// Addresses that no host of the scenario has, so that the filter matches no packet.
    pub strangers: Vec<String>,
}

/// Returns the meaning of a filter.
pub(crate) fn meaning(filter: &Filter, hosts: &Hosts) -> Result<Meaning, Fault> {
    const IPV4: [&str; 6] = ["ip", "ipv4", "all", "0x800", "0x0800", "800"];
    let mut meaning = Meaning::default();
    if !IPV4.contains(&filter.protocol.as_str()) {
        let protocol = &filter.protocol;
        meaning
            .notes
            .push(format!("packets here are IPv4: a filter for `{protocol}` matches none"));
        return Ok(meaning);
    }
    if filter.kind.is("flow") {
        let keys: Vec<&str> = filter.flow.keys.split(',').collect();
        if !["src", "dst", "proto-src", "proto-dst"].iter().all(|key| keys.contains(key)) {
            let note = "flows are distributed by a hash of all addresses and ports, not by `keys`";
            meaning.notes.push(note.to_owned());
        }
    }
    let mut alternatives = vec![Vec::new()];
    for test in merged(&filter.tests)? {
        let Some(choices) = choices(test, hosts, &mut meaning)? else {
            return Ok(meaning);
        };
        if choices.is_empty() {
            continue;
        }
        alternatives = alternatives
            .iter()
            .flat_map(|one| choices.iter().map(move |choice| [one.as_slice(), choice].concat()))
            .collect();
        if alternatives.len() > ALTERNATIVES {
            return Err(Fault::new(format!(
                "the filter would become more than {ALTERNATIVES} filters of the scenario"
            )));
        }
    }
    meaning.alternatives = alternatives;
    Ok(meaning)
}

/// Returns the tests in their order; tests of one header word or of one port are merged.
fn merged(tests: &[Match]) -> Result<Vec<Match>, Fault> {
    let mut found: Vec<Match> = Vec::new();
    for test in tests {
        let old = found.iter_mut().find(|old| match (&**old, test) {
            (Match::Ip { offset: a, .. }, Match::Ip { offset: b, .. })
            | (Match::Next { offset: a, .. }, Match::Next { offset: b, .. }) => a == b,
            (Match::Port(a, ..), Match::Port(b, ..)) => a == b,
            _ => false,
        });
        match (old, *test) {
            (
                Some(Match::Ip { value, mask, .. } | Match::Next { value, mask, .. }),
                Match::Ip { value: more, mask: bits, .. }
                | Match::Next { value: more, mask: bits, .. },
            ) => {
                if (*value ^ more) & *mask & bits != 0 {
                    return Err(Fault::new("no packet meets all tests of the filter"));
                }
                *value = *value & *mask | more & bits;
                *mask |= bits;
            }
            (Some(Match::Port(_, low, high)), Match::Port(_, first, last)) => {
                (*low, *high) = ((*low).max(first), (*high).min(last));
                if low > high {
                    return Err(Fault::new("no port matches all tests of the filter"));
                }
            }
            _ => found.push(*test),
        }
    }
    Ok(found)
}

/// Alternatives of one test: empty if it always holds, `None` if it never holds.
type Choices = Option<Vec<Vec<Condition>>>;

fn choices(test: Match, hosts: &Hosts, meaning: &mut Meaning) -> Result<Choices, Fault> {
    let refuse = |why: &str| Err(Fault::new(why));
    match test {
        Match::Ipv6 => {
            meaning.notes.push("packets here are IPv4: a test of IPv6 matches none".to_owned());
            Ok(None)
        }
        Match::Link => refuse("a test of link addresses is not modelled"),
        Match::Port(End::Source, low, high) => Ok(Some(vec![vec![Condition::Sport(low, high)]])),
        Match::Port(End::Destination, low, high) => {
            Ok(Some(vec![vec![Condition::Dport(low, high)]]))
        }
        Match::Ip { mask: 0, .. }
        | Match::Next { mask: 0, .. }
        | Match::Mark { value: 0, mask: 0 } => Ok(Some(Vec::new())),
        // Linux compares the whole value with the masked mark.
        Match::Mark { value, mask } if value & !mask != 0 => {
            let note = format!("no packet has the mark `{value:#x}` behind the mask `{mask:#x}`");
            meaning.notes.push(note);
            Ok(None)
        }
        Match::Mark { value, mask } => Ok(Some(vec![vec![Condition::Mark(value, mask)]])),
        Match::Ip { value, mask, offset: 12 } => {
            Ok(address(value, mask, hosts, &mut meaning.strangers, Condition::Src))
        }
        Match::Ip { value, mask, offset: 16 } => {
            Ok(address(value, mask, hosts, &mut meaning.strangers, Condition::Dst))
        }
        Match::Ip { value, mask, offset: 0 } => first_word(value, mask, meaning),
        Match::Ip { value, mask: 0xff_0000, offset: 8 } => {
            Ok(Some(vec![vec![Condition::Protocol((value >> 16) as u8)]]))
        }
        Match::Next { value, mask, offset: 0 } => ports(value & mask, mask, meaning),
        Match::Length(first, last) => Ok(Some(vec![vec![Condition::Length(first, last)]])),
        // The flags of TCP, with ACK set, as in nearly all its packets.
        Match::Next { value, mask, offset: 12 }
            if mask & !0xff_0000 == 0 && value & mask & 0x10_0000 != 0 =>
        {
            let note = "flags of TCP are not compared: packets that meet the other tests match";
            meaning.notes.push(note.to_owned());
            Ok(Some(Vec::new()))
        }
        _ => refuse("a test of this part of the header is not modelled"),
    }
}

/// A test of the first word of the IP header: version, header length, DS field, length.
fn first_word(value: u32, mask: u32, meaning: &mut Meaning) -> Result<Choices, Fault> {
    let (tos, bits) = ((value >> 16) as u8, (mask >> 16) as u8);
    let value = value & mask;
    let length =
        (mask & 0xffff != 0).then(|| range(value as u16, mask as u16, "lengths")).transpose()?;
    let length = length.map(|(first, last)| Condition::Length(first, last));
    // IP version 4 and a header of five 32-bit words.
    if (0x45 << 24) & mask != value & 0xff00_0000 {
        let note = "packets here have no IP options: the test of the header length matches none";
        meaning.notes.push(note.to_owned());
        return Ok(None);
    }
    if bits & 3 != 0 {
        meaning.notes.push(format!(
            "the ECN field is ignored in the comparison of the DS field with `{tos:#x}/{bits:#x}`"
        ));
    }
    let points: Vec<u8> = (0..64).filter(|dscp| ((dscp << 2) ^ tos) & bits & 0xfc == 0).collect();
    if points.len() == 64 {
        return Ok(Some(length.map(|one| vec![one]).into_iter().collect()));
    }
    let both = |dscp| std::iter::once(Condition::Dscp(dscp)).chain(length).collect();
    Ok(Some(points.into_iter().map(both).collect()))
}

/// Returns the numbers of 16 bits that a comparison with a mask finds.
fn range(value: u16, bits: u16, of: &str) -> Result<(u16, u16), Fault> {
    // Bits that are not compared allow a range only if they are the lowest bits.
    let rest = !bits;
    if rest & rest.wrapping_add(1) != 0 {
        return Err(Fault::new(format!(
            "a mask that does not give a range of {of} is not supported: write the {of} one by one"
        )));
    }
    Ok((value, value + rest))
}

/// A test of both ports.
fn ports(value: u32, mask: u32, meaning: &mut Meaning) -> Result<Choices, Fault> {
    let mut found = Vec::new();
    for (shift, condition) in
        [(16, Condition::Sport as fn(u16, u16) -> Condition), (0, Condition::Dport)]
    {
        let (first, bits) = ((value >> shift) as u16, (mask >> shift) as u16);
        let (first, last) = range(first, bits, "ports")?;
        if last == 0 {
            meaning.notes.push("no packet here has port 0: the filter matches none".to_owned());
            return Ok(None);
        }
        if bits != 0 {
            found.push(condition(first.max(1), last));
        }
    }
    Ok(Some(vec![found]))
}

fn address(
    value: u32,
    mask: u32,
    hosts: &Hosts,
    strangers: &mut Vec<String>,
    condition: fn(u32) -> Condition,
) -> Choices {
    let fits: BTreeSet<u32> = hosts
        .iter()
        .filter(|(address, _)| u32::from(**address) & mask == value & mask)
        .map(|(_, host)| *host)
        .collect();
    if fits.is_empty() {
        let length = mask.count_ones();
        let length = if length == 32 { String::new() } else { format!("/{length}") };
        strangers.push(format!("{}{length}", Ipv4Addr::from(value)));
        return None;
    }
    if fits.len() == hosts.values().collect::<BTreeSet<_>>().len() {
        return Some(Vec::new());
    }
    Some(fits.into_iter().map(|host| vec![condition(host)]).collect())
}

/// Returns the first class over which a filter `flow` distributes flows, and the number of classes.
pub(crate) fn spread(filter: &Filter, major: u16) -> Result<(Name, u16), Fault> {
    if filter.flow.map {
        return Err(Fault::new(
            "`flow map` selects the class by a field of the packet, which is not modelled",
        ));
    }
    let minor = match filter.flow.base.as_ref().or(filter.target.as_ref()) {
        None => 1,
        Some(base) if base.text.contains(':') => Name::of(base)?.minor,
        Some(base) => Name::of(&Word::new(format!(":{}", base.text), base.place))?.minor,
    };
    let missing = || {
        Fault::new(
            "`flow` needs a `divisor`: the number of classes over which it distributes flows",
        )
    };
    let divisor = filter.flow.divisor.as_ref().ok_or_else(missing)?;
    let count = number(divisor)?;
    let count = u16::try_from(count).ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| divisor.fault("`divisor` must be from 1 to 65535"))?;
    Ok((Name::new(major, minor.max(1)), count))
}
