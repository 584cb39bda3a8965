//! Commands and files of `nft` (nft(8)): rules that set marks, code points and classes.

use crate::firewall::{Firewall, HOOKS, Step, Verdict};
use crate::iptables;
use crate::nft_json;
use crate::place::{Fault, Place, Word, Words, among};
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
const OPERATORS: &str = "! != < > <= >= and & map vmap";

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
    let lines: Vec<_> = lines.collect();
    let text: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
    let text = text.join("\n");
    if nft_json::is_nft(&text) {
        return listed(firewall, &text, lines[0].1);
    }
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

/// Applies the commands in the JSON of `nft -j`; returns those that are not supported.
fn listed(firewall: &mut Firewall, text: &str, place: Place) -> Vec<(Place, Fault, String)> {
    let commands = match nft_json::commands(text) {
        Ok(commands) => commands,
        Err(why) => {
            return vec![(place, Fault::new(format!("this is not JSON: {why}")), String::new())];
        }
    };
    let refused = commands.into_iter().filter_map(|words| {
        let why = command(firewall, &words_of(&words, place), place).err()?;
        let message = format!("`{words}`: {}", why.message);
        Some((place, Fault { message, ..why }, words))
    });
    refused.collect()
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
    let mut step = match spoken(words)? {
        Some(words) => iptables::step(&words, &format!("nft:{table}"), line)?,
        None => Step { line, is_idle: true, ..Step::default() },
    };
    if !step.is_idle && step.changes.is_empty() && step.verdict == Verdict::Continue {
        return Ok(());
    }
    step.is_idle |= family == "ip6";
    let steps = firewall.chains.entry(format!("nft:{chain}")).or_default();
    steps.insert(if is_last { steps.len() } else { 0 }, step);
    Ok(())
}

/// Returns a rule in the words of `iptables`, which has the same tests and changes; `None` for a rule
/// of IPv6, because packets here are IPv4.
fn spoken(words: &[Word]) -> Result<Option<Vec<Word>>, Fault> {
    let mut given = Words::new(words);
    let mut found = Vec::new();
    while let Some(word) = given.next() {
        let mut add = |words: &[&str]| {
            found.extend(words.iter().map(|text| Word::new(*text, word.place)));
        };
        match word.text.as_str() {
            "counter" => {
                while let Some(key) = given.next_if(|word| matches!(word, "packets" | "bytes")) {
                    given.value(key)?;
                }
            }
            "comment" => _ = given.value(word)?,
            "oif" | "oifname" | "iif" | "iifname" => {
                given.next_if(|word| word == "==");
                let name = given.value(word)?;
                if matches!(name.text.as_str(), "{" | "!" | "!=") {
                    let why = format!("`{} {}` is not supported", word.text, name.text);
                    return Err(word.fault(why));
                }
                add(&[if word.text.starts_with('o') { "-o" } else { "-i" }, &name.text]);
            }
            "accept" => add(&["-j", "ACCEPT"]),
            "return" => add(&["-j", "RETURN"]),
            "jump" => add(&["-j", &given.value(word)?.text]),
            "goto" => add(&["-g", &given.value(word)?.text]),
            "ip6" => return Ok(None),
            one => {
                let key = given.value(word)?;
                let sets = given.next_if(|word| word == "set").is_some();
                match (one, key.text.as_str(), sets) {
                    ("meta", "l4proto", false) | ("ip", "protocol", false) => {
                        add(&["-p", &values(key, &mut given)?]);
                    }
                    ("ip", "saddr", false) => add(&["-s", &values(key, &mut given)?]),
                    ("ip", "daddr", false) => add(&["-d", &values(key, &mut given)?]),
                    ("tcp" | "udp" | "th", end @ ("sport" | "dport"), false) => {
                        if one != "th" {
                            add(&["-p", one]);
                        }
                        let ports = values(key, &mut given)?.replace('-', ":");
                        add(&[&format!("--{end}"), &ports]);
                    }
                    ("ip", "dscp", false) => add(&["--dscp", &values(key, &mut given)?]),
                    ("ip", "dscp", true) => {
                        add(&["-j", "DSCP", "--set-dscp", &given.value(key)?.text]);
                    }
                    ("meta", "mark", false) => add(&["--mark", &mark(key, &mut given)?]),
                    ("meta", "mark", true) => {
                        let (option, value) = set_mark(key, &mut given)?;
                        add(&["-j", "MARK", option, &value.text]);
                    }
                    ("meta", "priority", true) => {
                        add(&["-j", "CLASSIFY", "--set-class", &given.value(key)?.text]);
                    }
                    (one, other, _) => {
                        return Err(word.fault(format!("`{one} {other}` is not supported")));
                    }
                }
            }
        }
    }
    Ok(Some(found))
}

/// Reads `N`, `mark or N` or `mark and N` behind `meta mark set`.
fn set_mark<'w>(key: &Word, given: &mut Words<'w>) -> Result<(&'static str, &'w Word), Fault> {
    let reads_mark = given.next_if(|word| matches!(word, "mark" | "meta")).is_some();
    given.next_if(|word| reads_mark && word == "mark");
    let operator = if reads_mark { given.value(key)?.text.as_str() } else { "" };
    let value = given.value(key)?;
    let ends = |word: &str| matches!(word, "counter" | "accept" | "return" | "comment");
    match operator {
        _ if given.peek().is_some_and(|word| !ends(&word.text)) || value.text.contains('/') => {}
        "" => return Ok(("--set-mark", value)),
        "or" | "|" => return Ok(("--or-mark", value)),
        "and" | "&" => return Ok(("--and-mark", value)),
        _ => {}
    }
    Err(key.fault("this form of `mark set` is not supported"))
}

/// Reads a test of the mark: values, or `and M == N`.
fn mark(key: &Word, given: &mut Words<'_>) -> Result<String, Fault> {
    if given.next_if(|word| matches!(word, "and" | "&")).is_none() {
        return values(key, given);
    }
    let bits = given.value(key)?;
    let operator = given.value(key)?;
    if !operator.is("==") {
        return Err(operator.fault("a comparison of a mark other than `==` is not supported"));
    }
    Ok(format!("{}/{}", given.value(key)?.text, bits.text))
}

/// Returns the values of a test, separated by commas: a single value, or those of a set in braces.
fn values(key: &Word, given: &mut Words<'_>) -> Result<String, Fault> {
    given.next_if(|word| word == "==");
    let first = given.value(key)?;
    if among(&first.text, OPERATORS) || first.text.starts_with(['@', '$']) {
        return Err(first.fault(format!("a test by `{}` is not supported", first.text)));
    }
    let mut found = first.text.clone();
    if first.is("{") {
        found.clear();
        while let Some(word) = given.next_if(|word| word != "}") {
            let is_joined = found.is_empty() || found.ends_with([',', '-']);
            if !is_joined && !word.text.starts_with([',', '-']) {
                return Err(word.fault("commas must separate the values of a set"));
            }
            found.push_str(&word.text);
        }
        found.truncate(found.trim_end_matches(',').len());
        given.value(key)?;
    }
    Ok(found)
}
