//! Rules of a firewall that set marks, code points and classes, on which filters depend.
//!
//! Queues here have no firewall before them, but filters test values that rules of a firewall set.
//! So the filters are rewritten to give the same result for packets that have not passed the
//! firewall: a packet that matches a rule goes where the filters send it after the rule's change.

use crate::filter::Match;
use crate::name::Name;
use crate::place::{Fault, Place};
use crate::rules::{RULES, Rule, Test, within};
use sojourn_queue::classes::filter::Condition;
use std::collections::BTreeMap;

/// Hooks of the firewall in the order in which packets pass them; packets are assumed to pass all.
pub(crate) const HOOKS: [&str; 5] = ["prerouting", "input", "forward", "output", "postrouting"];
/// Largest depth of nested chains.
const DEPTH: usize = 16;

/// A change that a rule makes to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Sets the masked bits of the mark.
    Mark {
        value: u32,
        mask: u32,
    },
    Dscp(u8),
    Class(Name),
}

/// Step after a rule that matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    #[default]
    Continue,
    Accept,
    Return,
    Jump(String),
    Goto(String),
}

/// A rule in a chain of the firewall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub line: Place,
    /// Tests that must all hold; a test is a list of alternatives.
    pub tests: Vec<Vec<Match>>,
    /// Device by which packets leave, which may end with a wildcard; `None` for any.
    pub device: Option<String>,
    /// Device by which packets arrive, which is not compared; `None` for any.
    pub input: Option<String>,
    pub changes: Vec<Change>,
    pub verdict: Verdict,
    /// Whether the rule matches no packet here, for example because it is for IPv6.
    pub is_idle: bool,
}

impl Step {
    fn applies(&self, device: &str) -> bool {
        let fits = |pattern: &String| match pattern.strip_suffix(['+', '*']) {
            Some(lead) => device.starts_with(lead),
            None => device == pattern,
        };
        !self.is_idle && self.device.as_ref().is_none_or(fits)
    }
}

/// All chains of the firewall.
#[derive(Clone, Debug, Default)]
pub(crate) struct Firewall {
    /// Rules by table and chain, such as `mangle/POSTROUTING`.
    pub chains: BTreeMap<String, Vec<Step>>,
    /// Hook (as an index of [`HOOKS`]) and priority of the chains at which packets begin.
    pub hooks: BTreeMap<String, (usize, i32)>,
}

impl Firewall {
    /// Returns the rules that change packets, in the order of their lines.
    pub fn changes(&self) -> Vec<&Step> {
        let steps = self.chains.values().flatten();
        let mut found: Vec<_> = steps.filter(|step| !step.changes.is_empty()).collect();
        found.sort_by_key(|step| step.line);
        found
    }

    /// Returns the chains at which packets begin, in the order in which packets pass them.
    fn entered(&self) -> Vec<&str> {
        let mut found: Vec<_> = self
            .hooks
            .iter()
            .filter(|(name, _)| self.chains.contains_key(*name))
            .map(|(name, order)| (*order, name.as_str()))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, name)| name).collect()
    }
}

/// Alternatives by which packets match a rule; empty if no packet does.
pub(crate) type Ways = Vec<Vec<Condition>>;

/// Rewrites the filters of one discipline for packets as they are before the firewall.
pub(crate) struct Rewriter<'a> {
    pub firewall: &'a Firewall,
    pub device: &'a str,
    /// Class of packets that match no filter; `None` without such a class.
    pub default: Option<Name>,
    /// The alternatives of each rule, by chain and index.
    pub ways: &'a BTreeMap<(String, usize), Ways>,
}

impl Rewriter<'_> {
    /// Returns rules for packets before the firewall; `rules` are those for packets after it.
    pub fn rewritten(&self, rules: &[Rule], major: u16) -> Result<Vec<Rule>, Fault> {
        let mut found = self.by_class(major);
        found.extend_from_slice(rules);
        for name in self.firewall.entered().into_iter().rev() {
            found = self.before(name, &found, &found, &found, 0)?;
        }
        found.retain(|rule| !rule.tests.iter().any(|test| matches!(test, Test::Class(_))));
        Ok(found)
    }

    /// Returns a rule for each class that the firewall sets as a packet's priority: Linux sends such
    /// a packet to this class before it evaluates filters.
    fn by_class(&self, major: u16) -> Vec<Rule> {
        let mut found: Vec<Rule> = Vec::new();
        for step in self.firewall.changes() {
            for change in &step.changes {
                if let Change::Class(name) = *change
                    && name.major == major
                    && !found.iter().any(|rule| rule.target == name)
                {
                    let tests = vec![Test::Class(name)];
                    found.push(Rule { tests, target: name, line: step.line, divisor: 1 });
                }
            }
        }
        found
    }

    /// Returns the rules for packets before a chain. `after`, `accepted` and `returned` are the
    /// rules for packets that leave the chain at its end, by `accept` and by `return`.
    fn before(
        &self,
        chain: &str,
        after: &[Rule],
        accepted: &[Rule],
        returned: &[Rule],
        depth: usize,
    ) -> Result<Vec<Rule>, Fault> {
        if depth > DEPTH {
            let why = format!("chains of the firewall are nested more than {DEPTH} deep");
            return Err(Fault::new(why));
        }
        let mut found = after.to_vec();
        let Some(steps) = self.firewall.chains.get(chain) else { return Ok(found) };
        for (n, step) in steps.iter().enumerate().rev() {
            if !step.applies(self.device) {
                continue;
            }
            let mut block = match &step.verdict {
                Verdict::Accept => accepted.to_vec(),
                Verdict::Return => returned.to_vec(),
                Verdict::Jump(target) => {
                    self.before(target, &found, accepted, &found, depth + 1)?
                }
                Verdict::Goto(target) => {
                    self.before(target, returned, accepted, returned, depth + 1)?
                }
                Verdict::Continue => found.clone(),
            };
            for change in step.changes.iter().rev() {
                block = block.into_iter().filter_map(|rule| before_change(rule, *change)).collect();
            }
            let ways = self.ways.get(&(chain.to_owned(), n)).map_or(&[][..], Vec::as_slice);
            found = self.joined(step, ways, block, &found)?;
        }
        Ok(found)
    }

    /// Returns rules for packets before a step: `met` for matching packets, else `others`.
    fn joined(
        &self,
        step: &Step,
        ways: &[Vec<Condition>],
        met: Vec<Rule>,
        others: &[Rule],
    ) -> Result<Vec<Rule>, Fault> {
        let same = met.iter().zip(others).take_while(|(one, other)| one == other).count();
        if met.len() == same && others.len() == same {
            return Ok(met);
        }
        if ways.iter().any(Vec::is_empty) {
            return Ok(met);
        }
        let mut block = met[same..].to_vec();
        let rest = &others[same..];
        if block.ends_with(rest) {
            // The last rules of `block` are also in `others`, so they do not need the step's tests.
            block.truncate(block.len() - rest.len());
        } else if let Some(target) = self.default
            && !block.iter().any(|rule| rule.tests.is_empty())
        {
            block.push(Rule { tests: Vec::new(), target, line: step.line, divisor: 1 });
        }
        let mut found = others[..same].to_vec();
        for conditions in ways {
            let tests: Vec<_> = conditions.iter().copied().map(Test::Packet).collect();
            found.extend(within(&block, &tests));
        }
        found.extend_from_slice(rest);
        pruned(found)
    }
}

/// Returns a rule for packets before a change; `None` if no changed packet matches the rule.
fn before_change(rule: Rule, change: Change) -> Option<Rule> {
    let mut tests = Vec::new();
    for test in rule.tests {
        match (test, change) {
            (Test::Packet(Condition::Mark(wanted, bits)), Change::Mark { value, mask }) => {
                if (value ^ wanted) & bits & mask != 0 {
                    return None;
                }
                let rest = bits & !mask;
                if rest != 0 {
                    tests.push(Test::Packet(Condition::Mark(wanted & rest, rest)));
                }
            }
            (Test::Packet(Condition::Dscp(wanted)), Change::Dscp(dscp)) if wanted != dscp => {
                return None;
            }
            (Test::Class(wanted), Change::Class(name)) if wanted != name => return None,
            (Test::Packet(Condition::Dscp(_)), Change::Dscp(_))
            | (Test::Class(_), Change::Class(_)) => {}
            (test, _) => tests.push(test),
        }
    }
    Some(Rule { tests, ..rule })
}

/// Returns the rules without those that no packet can reach.
fn pruned(rules: Vec<Rule>) -> Result<Vec<Rule>, Fault> {
    let mut found: Vec<Rule> = Vec::new();
    for rule in rules {
        let is_covered = |one: &Rule| one.tests.iter().all(|test| rule.tests.contains(test));
        if !can_hold(&rule.tests) || found.iter().any(is_covered) {
            continue;
        }
        found.push(rule);
        if found.len() > RULES {
            return Err(Fault::new(format!(
                "filters and rules of the firewall would need more than {RULES} rules"
            )));
        }
    }
    Ok(found)
}

/// Returns whether a packet can meet all tests.
fn can_hold(tests: &[Test]) -> bool {
    let overlap = |(a, b): (u16, u16), (c, d): (u16, u16)| a <= d && c <= b;
    tests.iter().enumerate().all(|(n, one)| {
        tests[..n].iter().all(|other| match (one, other) {
            (
                Test::Packet(Condition::Mark(value, mask)),
                Test::Packet(Condition::Mark(other, bits)),
            ) => (value ^ other) & mask & bits == 0,
            (Test::Packet(Condition::Sport(a, b)), Test::Packet(Condition::Sport(c, d)))
            | (Test::Packet(Condition::Dport(a, b)), Test::Packet(Condition::Dport(c, d))) => {
                overlap((*a, *b), (*c, *d))
            }
            (one, other) => {
                std::mem::discriminant(one) != std::mem::discriminant(other)
                    || one == other
                    || differ_in_kind(*one, *other)
            }
        })
    })
}

fn differ_in_kind(one: Test, other: Test) -> bool {
    match (one, other) {
        (Test::Packet(one), Test::Packet(other)) => {
            std::mem::discriminant(&one) != std::mem::discriminant(&other)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A packet: mark, code point, destination port, and class (0 for none).
    type Fields = [u32; 4];
    type Row = (Vec<(usize, u32)>, Option<Change>, u8);

    fn changes() -> impl Strategy<Value = Option<Change>> {
        prop_oneof![
            Just(None),
            (0..4u32).prop_map(|value| Some(Change::Mark { value, mask: u32::MAX })),
            Just(Some(Change::Mark { value: 2, mask: 2 })),
            Just(Some(Change::Mark { value: 0, mask: 1 })),
            (0..2u8).prop_map(|dscp| Some(Change::Dscp(dscp))),
            Just(Some(Change::Class(Name::new(1, 7)))),
        ]
    }

    fn tests(least: u32) -> impl Strategy<Value = Vec<(usize, u32)>> {
        prop::collection::btree_map(0..3usize, least..3, 0..3)
            .prop_map(|tests| tests.into_iter().collect())
    }

    fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
        prop::collection::vec((tests(1), changes(), 0..6u8), 0..=most)
    }

    fn condition((field, value): (usize, u32)) -> Condition {
        match field {
            0 => Condition::Mark(value, u32::MAX),
            1 => Condition::Dscp(value as u8),
            _ => Condition::Dport(value.max(1) as u16, value as u16),
        }
    }

    fn fits(tests: &[(usize, u32)], packet: &Fields) -> bool {
        tests.iter().all(|(field, value)| packet[*field] == *value)
    }

    fn holds(test: Test, packet: &Fields) -> bool {
        match test {
            Test::Packet(Condition::Mark(value, mask)) => packet[0] & mask == value,
            Test::Packet(Condition::Dscp(dscp)) => packet[1] == u32::from(dscp),
            Test::Packet(Condition::Dport(first, last)) => {
                (u32::from(first)..=u32::from(last)).contains(&packet[2])
            }
            _ => false,
        }
    }

    /// Lets a packet pass a chain; returns whether it is accepted, or leaves by `return` or `goto`.
    fn passed(chains: &[Vec<Row>; 3], chain: usize, packet: &mut Fields) -> Verdict {
        for (tests, change, verdict) in &chains[chain] {
            if !fits(tests, packet) {
                continue;
            }
            match change {
                Some(Change::Mark { value, mask }) => packet[0] = packet[0] & !mask | value,
                Some(Change::Dscp(dscp)) => packet[1] = u32::from(*dscp),
                Some(Change::Class(name)) => packet[3] = u32::from(name.minor),
                None => {}
            }
            match verdict {
                2 => return Verdict::Accept,
                3 => return Verdict::Return,
                4 | 5 if chain != 1 => {
                    let left = passed(chains, 1, packet);
                    if left == Verdict::Accept || *verdict == 5 {
                        return left;
                    }
                }
                _ => {}
            }
        }
        Verdict::Continue
    }

    proptest! {
        #[test]
        fn a_packet_before_the_firewall_goes_where_the_changed_packet_goes(
            first in rows(4),
            sub in rows(3),
            second in rows(2),
            filters in prop::collection::vec((tests(0), 1..5u16), 0..=4),
        ) {
            let chains = [first, sub, second];
            let filters: Vec<_> = filters
                .into_iter()
                .filter(|(tests, _)| !tests.contains(&(2, 0)))
                .collect();
            let mut firewall = Firewall::default();
            let mut ways = BTreeMap::new();
            for (chain, name) in ["first", "sub", "second"].into_iter().enumerate() {
                let steps = chains[chain].iter().enumerate().map(|(n, (tests, change, verdict))| {
                    let way = tests.iter().copied().map(condition).collect();
                    ways.insert((name.to_owned(), n), vec![way]);
                    let verdict = match verdict {
                        2 => Verdict::Accept,
                        3 => Verdict::Return,
                        4 if chain != 1 => Verdict::Jump("sub".to_owned()),
                        5 if chain != 1 => Verdict::Goto("sub".to_owned()),
                        _ => Verdict::Continue,
                    };
                    Step { changes: change.iter().copied().collect(), verdict, ..Step::default() }
                });
                let steps = steps.collect();
                firewall.chains.insert(name.to_owned(), steps);
            }
            firewall.hooks = [("first".to_owned(), (3, 0)), ("second".to_owned(), (4, 0))].into();
            let default = Name::new(1, 5);
            let rule = |(tests, minor): &(Vec<(usize, u32)>, u16)| Rule {
                tests: tests.iter().copied().map(condition).map(Test::Packet).collect(),
                target: Name::new(1, *minor),
                line: Place::default(),
                divisor: 1,
            };
            let rules: Vec<Rule> = filters.iter().map(rule).collect();
            let rewriter = Rewriter {
                firewall: &firewall,
                device: "eth0",
                default: Some(default),
                ways: &ways,
            };
            let found = rewriter.rewritten(&rules, 1).expect("few rules");
            for mark in 0..4 {
                for dscp in 0..2 {
                    for port in 1..4 {
                        let packet = [mark, dscp, port, 0];
                        let matching =
                            |rule: &&Rule| rule.tests.iter().all(|test| holds(*test, &packet));
                        let target = found.iter().find(matching).map_or(default, |r| r.target);
                        let mut changed = packet;
                        for chain in [0, 2] {
                            passed(&chains, chain, &mut changed);
                        }
                        let behind = filters.iter().find(|(tests, _)| fits(tests, &changed));
                        let expected = match (changed[3], behind) {
                            (0, Some((_, minor))) => *minor,
                            (0, None) => default.minor,
                            (class, _) => class as u16,
                        };
                        prop_assert_eq!(target.minor, expected, "{:?}", packet);
                    }
                }
            }
        }
    }
}
