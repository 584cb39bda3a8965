//! Commands and files of `nft` (nft(8)): rules that set marks, code points and classes.

use crate::filter::{End, Match, network, protocol};
use crate::firewall::{Change, Firewall, HOOKS, Step, Verdict};
use crate::iptables::{code_point, dscp, ports};
use crate::name::{Name, number};
use crate::place::{Fault, Place, Word, Words};
use std::collections::BTreeMap;

const FAMILIES: [&str; 6] = ["ip", "ip6", "inet", "arp", "bridge", "netdev"];
const PRIORITIES: [(&str, i32); 6] = [
    ("raw", -300),
    ("mangle", -150),
    ("dstnat", -100),
    ("filter", 0),
    ("security", 50),
    ("srcnat", 100),
];
const OPERATORS: [&str; 10] = ["!", "!=", "<", ">", "<=", ">=", "and", "&", "map", "vmap"];

/// A rule's tests, each a list of alternatives, or the change that its statement makes.
enum Part {
    Tests(Vec<Vec<Match>>),
    Change(Change),
}

/// Splits a text into the words of `nft`: names, numbers, operators, brackets, quoted texts.
fn words_of(text: &str, place: Place) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            '=' | '!' | '<' | '>' if rest[1..].starts_with('=') => 2,
            '{' | '}' | ',' | ';' | '=' | '!' | '<' | '>' => 1,
            _ => rest
                .find(|c: char| c.is_whitespace() || "{},;=<>!\"".contains(c))
                .unwrap_or(rest.len()),
        };
        let (word, behind) = rest.split_at(length);
        words.push(Word::new(word.trim_matches('"'), place));
        rest = behind.trim_start();
    }
    words
}

fn texts(words: &[Word]) -> Vec<&str> {
    words.iter().map(|word| word.text.as_str()).collect()
}

/// Applies a command, given by its words after `nft`.
pub(crate) fn command(firewall: &mut Firewall, words: &[Word], line: Place) -> Result<(), Fault> {
    let split = words.iter().flat_map(|word| words_of(&word.text, word.place));
    let found: Vec<Word> = split.skip_while(|word| word.text.starts_with('-')).collect();
    let list = texts(&found);
    let has_family = list.get(2).is_some_and(|word| FAMILIES.contains(word));
    let family = if has_family { list[2] } else { "ip" };
    let rest = found.get(if has_family { 3 } else { 2 }..).unwrap_or_default();
    let names = texts(rest);
    match (list.get(..2), names.as_slice()) {
        (Some([verb @ ("add" | "insert"), "rule"]), [table, chain, _, ..]) => {
            let chain = format!("{table}/{chain}");
            rule(firewall, *verb == "add", family, &chain, &rest[2..], line)
        }
        (Some(["add" | "create", "chain"]), [table, chain, _, ..]) => {
            hook(firewall, &format!("{table}/{chain}"), &names[2..]);
            Ok(())
        }
        (Some(["flush" | "delete", "table"]), [table, ..]) => {
            remove(firewall, |name| name.starts_with(&format!("nft:{table}/")));
            Ok(())
        }
        (Some(["flush" | "delete", "chain"]), [table, chain, ..]) => {
            remove(firewall, |name| name == format!("nft:{table}/{chain}"));
            Ok(())
        }
        (Some(["flush", "ruleset"]), _) => {
            remove(firewall, |name| name.starts_with("nft:"));
            Ok(())
        }
        (
            Some(
                [
                    verb @ ("add" | "insert" | "replace" | "delete"),
                    what @ ("rule" | "element" | "set" | "map"),
                ],
            ),
            _,
        ) => Err(found[1].fault(format!("`{verb} {what}` is not supported"))),
        _ => Ok(()),
    }
}

/// Applies the rules in a file; returns the lines that are not supported, with their texts.
pub(crate) fn file(
    firewall: &mut Firewall,
    lines: impl Iterator<Item = (String, Place)>,
) -> Vec<(Place, Fault, String)> {
    let mut refused = Vec::new();
    let (mut family, mut table, mut chain) = ("ip".to_owned(), String::new(), String::new());
    let (mut depth, mut defined) = (0i64, BTreeMap::<String, String>::new());
    for (line, place) in lines {
        let code = line.split(" #").next().unwrap_or("");
        let clean = if line.trim_start().starts_with('#') { "" } else { code };
        let mut clean = clean.trim().trim_end_matches(';').trim().to_owned();
        for (name, value) in &defined {
            clean = clean.replace(&format!("${name}"), value);
        }
        if let Some((name, value)) =
            clean.strip_prefix("define ").and_then(|rest| rest.split_once('='))
        {
            defined.insert(name.trim().to_owned(), value.trim().to_owned());
            continue;
        }
        if clean.is_empty() {
            continue;
        }
        let words = words_of(&clean, place);
        let list = texts(&words);
        let result = match list.as_slice() {
            ["table", names @ .., "{"] if !names.is_empty() => {
                (if names.len() > 1 { names[0] } else { "ip" }).clone_into(&mut family);
                names[names.len() - 1].clone_into(&mut table);
                chain.clear();
                Ok(())
            }
            ["chain", name, "{"] => {
                chain = format!("{table}/{name}");
                Ok(())
            }
            ["set" | "map" | "flowtable", .., "{"] => {
                depth += 1;
                Ok(())
            }
            // The elements of a set are on the following lines.
            _ if depth > 0 => {
                let count = |sign| list.iter().filter(|word| **word == sign).count() as i64;
                depth += count("{") - count("}");
                Ok(())
            }
            ["}"] => {
                if std::mem::take(&mut chain).is_empty() {
                    table.clear();
                }
                Ok(())
            }
            ["type", ..] if !chain.is_empty() => {
                hook(firewall, &chain, &list);
                Ok(())
            }
            ["policy", ..] if !chain.is_empty() => Ok(()),
            _ if !chain.is_empty() => rule(firewall, true, &family, &chain, &words, place),
            _ if table.is_empty() => command(firewall, &words, place),
            _ => Ok(()),
        };
        if let Err(why) = result {
            refused.push((place, why, clean));
        }
    }
    refused
}

fn remove(firewall: &mut Firewall, is_meant: impl Fn(&str) -> bool) {
    for (name, steps) in &mut firewall.chains {
        if is_meant(name) {
            steps.clear();
        }
    }
}

/// Notes hook and priority of a chain: `type filter hook output priority mangle + 10`.
fn hook(firewall: &mut Firewall, chain: &str, words: &[&str]) {
    let name = format!("nft:{chain}");
    firewall.chains.entry(name.clone()).or_default();
    let after = |key: &str| words.iter().position(|word| *word == key).map(|at| &words[at + 1..]);
    let hook = after("hook").and_then(<[_]>::first);
    let hook = hook.and_then(|hook| HOOKS.iter().position(|known| known == hook));
    let (Some(hook), Some(order)) = (hook, after("priority")) else { return };
    let base = |word: &&str| match PRIORITIES.iter().find(|(name, _)| name == word) {
        Some((_, order)) => *order,
        None => word.parse().unwrap_or(0),
    };
    let more = match order.get(1..3) {
        Some(["+", more]) => more.parse().unwrap_or(0),
        Some(["-", less]) => -less.parse().unwrap_or(0),
        _ => 0,
    };
    firewall.hooks.insert(name, (hook, order.first().map_or(0, base) + more));
}

fn rule(
    firewall: &mut Firewall,
    is_last: bool,
    family: &str,
    chain: &str,
    words: &[Word],
    line: Place,
) -> Result<(), Fault> {
    let table = chain.split('/').next().unwrap_or("");
    let Some(mut step) = step(words, table, line)? else { return Ok(()) };
    step.is_idle |= family == "ip6";
    let steps = firewall.chains.entry(format!("nft:{chain}")).or_default();
    steps.insert(if is_last { steps.len() } else { 0 }, step);
    Ok(())
}

/// Returns a rule; `None` if it neither changes packets nor has a verdict.
fn step(words: &[Word], table: &str, line: Place) -> Result<Option<Step>, Fault> {
    let mut given = Words::new(words);
    let mut step = Step { line, ..Step::default() };
    while let Some(word) = given.next() {
        match word.text.as_str() {
            "counter" => {
                while let Some(key) = given.next_if(|word| matches!(word, "packets" | "bytes")) {
                    given.value(key)?;
                }
            }
            "comment" => {
                given.value(word)?;
            }
            "oif" | "oifname" | "iif" | "iifname" => {
                let name = given.value(word)?;
                if matches!(name.text.as_str(), "{" | "!" | "!=") {
                    let why = format!("`{} {}` is not supported", word.text, name.text);
                    return Err(word.fault(why));
                }
                if word.text.starts_with('o') {
                    step.device = Some(name.text.clone());
                }
            }
            "accept" => step.verdict = Verdict::Accept,
            "return" => step.verdict = Verdict::Return,
            "jump" | "goto" => {
                let chain = format!("nft:{table}/{}", given.value(word)?.text);
                let jumps = word.is("jump");
                step.verdict = if jumps { Verdict::Jump(chain) } else { Verdict::Goto(chain) };
            }
            // Packets here are IPv4.
            "ip6" => return Ok(Some(Step { line, is_idle: true, ..Step::default() })),
            _ => match expression(word, &mut given)? {
                Part::Tests(tests) => step.tests.extend(tests),
                Part::Change(change) => step.changes.push(change),
            },
        }
    }
    let is_empty = step.changes.is_empty() && step.verdict == Verdict::Continue;
    Ok((!is_empty).then_some(step))
}

fn expression(word: &Word, given: &mut Words<'_>) -> Result<Part, Fault> {
    let key = given.value(word)?;
    let sets = |given: &mut Words<'_>| given.next_if(|word| word == "set").is_some();
    let one_of = |values: Vec<Word>, test: &dyn Fn(&Word) -> Result<Match, Fault>| {
        let tests = values.iter().map(test).collect::<Result<Vec<_>, _>>()?;
        Ok(Part::Tests(vec![tests]))
    };
    match (word.text.as_str(), key.text.as_str()) {
        ("meta", "l4proto") | ("ip", "protocol") => one_of(values(key, given)?, &protocol),
        ("ip", "saddr") => one_of(values(key, given)?, &|value| network(value, 12)),
        ("ip", "daddr") => one_of(values(key, given)?, &|value| network(value, 16)),
        ("tcp" | "udp" | "th", "sport" | "dport") => {
            let end = if key.is("sport") { End::Source } else { End::Destination };
            let tests = values(key, given)?;
            let tests = tests.iter().map(|value| ports(value, end, &value.text, '-'));
            let mut all = vec![tests.collect::<Result<Vec<_>, _>>()?];
            if !word.is("th") {
                all.insert(0, vec![protocol(word)?]);
            }
            Ok(Part::Tests(all))
        }
        ("ip", "dscp") if sets(given) => {
            Ok(Part::Change(Change::Dscp(code_point(given.value(key)?)?)))
        }
        ("ip", "dscp") => one_of(values(key, given)?, &|value| Ok(dscp(code_point(value)?))),
        ("meta", "mark") => mark(key, given),
        ("meta", "priority") if sets(given) => {
            Ok(Part::Change(Change::Class(Name::of(given.value(key)?)?)))
        }
        (one, other) => Err(word.fault(format!("`{one} {other}` is not supported"))),
    }
}

/// Reads `meta mark set N`, `set mark or N`, `set mark and N`, and the tests `meta mark N` and
/// `meta mark and M == N`.
fn mark(key: &Word, given: &mut Words<'_>) -> Result<Part, Fault> {
    if given.next_if(|word| word == "set").is_some() {
        let reads_mark = given.peek().is_some_and(|w| matches!(w.text.as_str(), "mark" | "meta"));
        let words: Vec<&Word> = std::iter::from_fn(|| {
            given.next_if(|word| !matches!(word, "counter" | "accept" | "return" | "comment"))
        })
        .collect();
        let others =
            words.iter().filter(|w| !reads_mark || !matches!(w.text.as_str(), "meta" | "mark"));
        let others: Vec<&Word> = others.copied().collect();
        let change = match others.as_slice() {
            [value] if !reads_mark => Change::Mark { value: number(value)?, mask: u32::MAX },
            [op, value] if reads_mark && matches!(op.text.as_str(), "or" | "|") => {
                Change::Mark { value: number(value)?, mask: number(value)? }
            }
            [op, value] if reads_mark && matches!(op.text.as_str(), "and" | "&") => {
                Change::Mark { value: 0, mask: !number(value)? }
            }
            _ => return Err(key.fault("this form of `mark set` is not supported")),
        };
        return Ok(Part::Change(change));
    }
    if given.next_if(|word| matches!(word, "and" | "&")).is_some() {
        let bits = number(given.value(key)?)?;
        let operator = given.value(key)?;
        if !operator.is("==") {
            return Err(operator.fault("a comparison of a mark other than `==` is not supported"));
        }
        let value = number(given.value(key)?)?;
        return Ok(Part::Tests(vec![vec![Match::Mark { value, mask: bits }]]));
    }
    let tests = values(key, given)?;
    let tests = tests.iter().map(|one| Ok(Match::Mark { value: number(one)?, mask: u32::MAX }));
    Ok(Part::Tests(vec![tests.collect::<Result<_, Fault>>()?]))
}

/// Returns the values of a test: a single value, or the values of a set in braces.
fn values(key: &Word, given: &mut Words<'_>) -> Result<Vec<Word>, Fault> {
    given.next_if(|word| word == "==");
    let first = given.value(key)?;
    if OPERATORS.contains(&first.text.as_str()) || first.text.starts_with(['@', '$']) {
        return Err(first.fault(format!("a test by `{}` is not supported", first.text)));
    }
    if !first.is("{") {
        return Ok(vec![first.clone()]);
    }
    let mut found = Vec::new();
    loop {
        let word = given.value(key)?;
        match word.text.as_str() {
            "}" => return Ok(found),
            "," => {}
            _ => found.push(word.clone()),
        }
    }
}
