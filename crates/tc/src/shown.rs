//! The text output of `tc qdisc show`, `tc class show` and `tc filter show`, of iproute2 4 to 7.

use crate::device::{Class, Discipline};
use crate::filter::Filter;
use crate::name::{Name, handle, number};
use crate::place::{Fault, Place, Word, Words, among};
use crate::reading::Reading;
use crate::table;
use crate::tree::CLASSFUL;
use std::net::Ipv4Addr;

/// Classes and filters that were printed, each with the device of the command that printed them.
#[derive(Default)]
pub(crate) struct Printed {
    classes: Vec<(Class, Option<String>)>,
    filters: Vec<(Filter, Option<String>)>,
    /// Devices that the user chose; classes whose device is not printed belong to these.
    chosen: Vec<String>,
}

/// A printed entry: its first line, and the lines that follow it.
pub(crate) struct Entry {
    pub line: Place,
    pub words: Vec<Word>,
    pub more: Vec<Vec<Word>>,
}

/// Whether a line seems to begin an entry.
fn begins_entry(words: &[Word]) -> bool {
    matches!(words[0].text.as_str(), "qdisc" | "class" | "filter") && words.len() > 1
}

/// Whether a line begins an entry of the output.
pub(crate) fn is_entry(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(3).collect();
    let is_number = |text: &str| {
        let (major, minor) = text.split_once(':').unwrap_or((text, "x"));
        major.bytes().chain(minor.bytes()).all(|b| b.is_ascii_hexdigit())
    };
    match words.as_slice() {
        ["qdisc" | "class", kind, name, ..] => {
            let is_kind = kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            is_kind && *kind != "parent" && is_number(name)
        }
        ["filter", "parent" | "protocol" | "ingress" | "egress" | "block", ..] => true,
        _ => false,
    }
}

/// Reads the output in one text. `name` is the name of the text, which is used as the device if the
/// output names none.
pub(crate) fn read(
    reading: &mut Reading,
    printed: &mut Printed,
    name: &str,
    lines: &[(Place, Vec<Word>)],
) {
    let mut device: Option<String> = None;
    let mut current: Option<Entry> = None;
    for (line, words) in lines {
        let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let begins = begins_entry(words);
        let command = text.iter().position(|word| *word == "tc" || word.ends_with("/tc"));
        let names = command.and_then(|at| text[at..].windows(2).find(|pair| pair[0] == "dev"));
        if !begins && names.is_none() && !(command.is_some() && text.contains(&"show")) {
            if let Some(entry) = &mut current {
                entry.more.push(words.clone());
            }
            continue;
        }
        if let Some(entry) = current.take() {
            self::entry(reading, printed, name, &mut device, &entry);
        }
        if begins {
            current = Some(Entry { line: *line, words: words.clone(), more: Vec::new() });
        } else if let Some(pair) = names {
            device = Some(pair[1].to_owned());
        }
    }
    if let Some(entry) = current {
        self::entry(reading, printed, name, &mut device, &entry);
    }
}

/// Reads an entry; adds a problem if that is not possible. `device` is the device of the command that
/// printed it.
pub(crate) fn entry(
    reading: &mut Reading,
    printed: &mut Printed,
    name: &str,
    device: &mut Option<String>,
    entry: &Entry,
) {
    let result = match entry.words[0].text.as_str() {
        "qdisc" => qdisc(reading, name, device, entry),
        "class" => class(printed, device.as_ref(), entry),
        _ => filter(printed, device.as_ref(), entry),
    };
    if let Err(fault) = result {
        reading.problem(entry.line, fault);
    }
}

fn qdisc(
    reading: &mut Reading,
    name: &str,
    device: &mut Option<String>,
    entry: &Entry,
) -> Result<(), Fault> {
    let [_, kind, number, rest @ ..] = entry.words.as_slice() else {
        return Err(entry.words[0].fault("this is not a discipline as `tc` prints it"));
    };
    let not_printed = |_| number.fault("this is not a discipline as `tc` prints it");
    let own = handle(number).map_err(not_printed)?;
    let (mut parent, mut at, mut named) = (Name::ROOT, 0, None);
    while let Some(key) = rest.get(at) {
        let value = rest.get(at + 1);
        match (key.text.as_str(), value) {
            ("root" | "offloaded", _) => at += 1,
            ("dev", Some(value)) => {
                named = Some(value.text.clone());
                at += 2;
            }
            ("parent", Some(value)) => {
                parent = Name::of(value)?;
                at += 2;
            }
            ("refcnt" | "ingress_block" | "egress_block", Some(_)) => at += 2,
            _ => break,
        }
    }
    let of_file = || name.rsplit('/').next().unwrap_or_default().to_owned();
    let device = named.unwrap_or_else(|| device.get_or_insert_with(of_file).clone());
    // `linklayer atm overhead -4 mtu 2047 tsize 512` below the discipline is its size table.
    let stab = entry.more.iter().find(|words| words[0].is("linklayer"));
    let one = Discipline {
        kind: kind.clone(),
        parent,
        handle: Some(own).filter(|own| *own != 0),
        words: without_counters(&rest[at..]).to_vec(),
        stab: stab.cloned().unwrap_or_default(),
        line: entry.line,
        shown: true,
    };
    let device = reading.device(&device);
    if one.kind.is("ingress") || one.kind.is("clsact") {
        device.ingress = Some(one.line);
        return Ok(());
    }
    device.check_depth(&one)?;
    device.put(one);
    Ok(())
}

/// Returns the words before counters, which follow on the same line if line ends were lost.
fn without_counters(words: &[Word]) -> &[Word] {
    let begins =
        |pair: &[Word]| pair[0].is("Sent") && pair[1].text.bytes().all(|b| b.is_ascii_digit());
    &words[..words.windows(2).position(begins).unwrap_or(words.len())]
}

fn class(printed: &mut Printed, device: Option<&String>, entry: &Entry) -> Result<(), Fault> {
    let [_, kind, id, rest @ ..] = entry.words.as_slice() else {
        return Err(entry.words[0].fault("this is not a class as `tc` prints it"));
    };
    let name = Name::of(id)?;
    let (mut parent, mut at) = (Name::new(name.major, 0), 0);
    while let Some(key) = rest.get(at) {
        match (key.text.as_str(), rest.get(at + 1)) {
            ("root", _) => at += 1,
            ("parent", Some(value)) => {
                parent = Name::of(value)?;
                at += 2;
            }
            ("leaf", Some(_)) => at += 2,
            _ => break,
        }
    }
    let words = without_counters(&rest[at..]).to_vec();
    printed.add_class(
        Class { kind: kind.clone(), name, parent, words, line: entry.line },
        device.cloned(),
    );
    Ok(())
}

/// Reads a filter as the command that adds it.
fn filter(printed: &mut Printed, device: Option<&String>, entry: &Entry) -> Result<(), Fault> {
    let mut new = Filter::new(Word::default(), Name::ROOT, entry.line);
    let mut is_table = false;
    let mut rest = entry.words[1..].iter().peekable();
    let (mut words, mut target, mut tests) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(key) = rest.next() {
        // iproute2 6 marks the target of a filter that selects a class by itself: `*flowid`, and
        // prints `???` for one that leads to none.
        let name = key.text.trim_start_matches('*');
        match name {
            "parent" => new.parent = Name::of(rest.next().unwrap_or(key))?,
            "ingress" => new.parent = Name::new(Name::INGRESS, 0),
            "egress" => new.parent = Name::new(Name::INGRESS, Name::EGRESS),
            "protocol" => new.protocol.clone_from(&rest.next().unwrap_or(key).text),
            "pref" => new.prio = Some(number(rest.next().unwrap_or(key))?),
            "chain" => {
                if let Some(chain) = rest.next().filter(|chain| !chain.is("0")) {
                    return Err(chain.fault("only filters of chain 0 are evaluated here"));
                }
            }
            "handle" => new.handle = rest.next().cloned(),
            "fh" | "order" | "key" | "bkt" | "block" | "terminal"
                if new.kind.is("u32") || name == "block" =>
            {
                let value = rest.next();
                if name == "fh" {
                    new.handle = value.cloned();
                } else if name == "key" && value.is_some_and(|value| value.is("ht")) {
                    rest.next();
                }
            }
            "ht" => is_table = true,
            "divisor" if is_table => {
                let count = rest.next().filter(|count| !count.is("1"));
                words.extend(count.into_iter().flat_map(|count| [key.clone(), count.clone()]));
            }
            "link" => words.extend([key].into_iter().chain(rest.next()).cloned()),
            "flowid" | "classid" => {
                let class = rest.next().filter(|class| !class.text.starts_with('?'));
                target = class
                    .map_or(Vec::new(), |class| vec![said("flowid", key.place), class.clone()]);
            }
            "not_in_hw" | "in_hw" | "skip_hw" | "skip_sw" | "(rule" | "in_hw_count" | "" => {}
            _ if new.kind.text.is_empty() && new.prio.is_some() => new.kind = key.clone(),
            _ => {
                tests.push(key.clone());
                tests.extend(rest.by_ref().cloned());
            }
        }
    }
    let kind = new.kind.text.clone();
    let has_tests = !tests.is_empty() || !entry.more.is_empty();
    // The first line of each filter names only its kind.
    let is_whole = !among(&kind, "u32 flower basic flow") && new.handle.is_some();
    let has_content = !target.is_empty() || has_tests || is_whole;
    let creates_table = words.iter().any(|word: &Word| word.is("divisor"));
    if !creates_table {
        if new.prio.is_none() || kind.is_empty() || !has_content {
            return Ok(());
        }
        if let Some(handle) = new.handle.take_if(|_| kind == "u32") {
            let (table, bucket) = table::seat(&handle)?;
            if table < table::ROOT {
                let seat = Word::new(format!("{table:x}:{bucket:x}:"), handle.place);
                words.splice(0..0, [said("ht", handle.place), seat]);
            }
        }
    }
    let mut actions = Vec::new();
    for line in std::iter::once(&tests).chain(&entry.more) {
        commanded(&mut new, line, &mut words, &mut actions)?;
    }
    new.prio = new.prio.filter(|prio| *prio != 0);
    if kind != "flow" {
        words.extend(target);
    }
    new.read(&[words, actions].concat())?;
    printed.filters.push((new, device.cloned()));
    Ok(())
}

/// Words of a filter and its actions that show its state.
const STATE: &str = "not_in_hw in_hw in_hw_count skip_hw skip_sw used_hw_stats hw_stats index ref \
                     random Action Sent backlog cookie no_percpu hw_tc Skip_hw (rule hit (success";

/// Kinds of filters whose printed words are all known.
pub(crate) const KINDS: &str = "u32 fw flow flower basic matchall";

/// Message about a filter of the packets that arrived on one device.
pub(crate) const NOT_BY_DEVICE: &str =
    "a filter by the device on which packets arrive (`indev`) is not modelled";

fn said(text: &str, place: Place) -> Word {
    Word::new(text, place)
}

/// Adds the words by which a command states what a line of `tc filter show` prints: tests, and actions.
fn commanded(
    filter: &mut Filter,
    line: &[Word],
    tests: &mut Vec<Word>,
    actions: &mut Vec<Word>,
) -> Result<(), Fault> {
    let kind = filter.kind.text.clone();
    let mut given = Words::new(line);
    while let Some(word) = given.next() {
        let words = |text: String| -> Vec<Word> {
            text.split(' ').map(|text| said(text, word.place)).collect()
        };
        match (kind.as_str(), word.text.as_str()) {
            ("flow", "hash" | "map") => tests.push(word.clone()),
            ("flow", "keys" | "divisor" | "baseclass") => {
                tests.extend([word, given.value(word)?].map(Word::clone));
            }
            (_, "match") => tests.extend(words(matched(word, &mut given)?)),
            // `action order 1: gact action drop`
            (_, "action") if given.next_if(|word| word == "order").is_some() => {
                let order = given.value(word)?;
                if given.peek().is_some_and(|kind| matches!(&*kind.text, "mirred" | "police")) {
                    continue;
                }
                let rest = given.rest();
                filter.clone().action(order, &mut given)?;
                actions.push(word.clone());
                actions.extend_from_slice(&rest[..rest.len() - given.rest().len()]);
                return Ok(());
            }
            (_, "mark") => {
                if let (Some(value), Some(bits)) = (given.next(), given.next()) {
                    let (value, bits) = (number(value)?, number(bits)?);
                    tests.extend(words(format!("match mark {value:#x} {bits:#x}")));
                }
            }
            (_, "police") => filter.police(word, &mut given)?,
            // `mirred (Egress Redirect to device ifb0) stolen`
            (_, "mirred") => {
                let texts: Vec<_> = given.rest().iter().map(|w| w.text.as_str()).take(5).collect();
                match texts.as_slice() {
                    ["(Egress", "Redirect", "to", "device", name] => {
                        let name = name.trim_end_matches(')');
                        actions.extend(words(format!("action mirred egress redirect dev {name}")));
                    }
                    ["(Egress", "Mirror", ..] => {
                        return Err(word.fault("a copy of a packet (mirror) is not modelled"));
                    }
                    _ => {
                        let why = format!("`mirred {}` is not modelled", texts.join(" "));
                        return Err(word.fault(why));
                    }
                }
            }
            (_, "input") if given.peek().is_some_and(|next| next.is("dev")) => {
                return Err(word.fault(NOT_BY_DEVICE));
            }
            (_, key) if among(key, STATE) => return Ok(()),
            ("flower", "eth_type") => filter.protocol.clone_from(&given.value(word)?.text),
            ("flower", _) => tests.extend([word, given.value(word)?].map(Word::clone)),
            // `hash mask 000000ff at 16`
            ("u32", "hash") => {
                tests.push(said("hashkey", word.place));
                while let Some(key) = given.next_if(|word| matches!(word, "mask" | "at")) {
                    tests.extend([key, given.value(key)?].map(Word::clone));
                }
            }
            ("u32", "offset") => {
                return Err(word.fault("`offset` of a hash table is not supported here"));
            }
            ("basic" | "flow", joint @ ("OR" | "NOT")) => {
                let why = format!("an expression with `{joint}` is not supported");
                return Err(word.fault(why));
            }
            ("basic" | "flow", key) if key.contains('(') => {
                let is_first = !tests.iter().any(|word| word.is("match"));
                tests.push(said(if is_first { "match" } else { "and" }, word.place));
                let rest = std::iter::once(word).chain(given.rest());
                let text: Vec<_> = rest.map(|word| word.text.as_str()).collect();
                tests.push(said(&text.join(" "), word.place));
                return Ok(());
            }
            ("basic" | "flow", "AND") => {}
            (kind, key) if among(kind, KINDS) => {
                let why = format!("`{key}` in a printed filter of {kind} is not known here");
                return Err(word.fault(why));
            }
            _ => {} // a filter of another kind is refused as a whole
        }
    }
    Ok(())
}

/// Returns a test as a command states it. It is printed raw, such as `00000050/0000ffff at 20`, or
/// pretty, such as `IP dport 80`.
fn matched(word: &Word, given: &mut Words<'_>) -> Result<String, Fault> {
    let first = given.value(word)?;
    let hexadecimal = |text: &str| u32::from_str_radix(text, 16).ok();
    if let Some((value, bits)) = first.text.split_once('/')
        && let (Some(value), Some(bits)) = (hexadecimal(value), hexadecimal(bits))
    {
        let at = given.value(word)?;
        let place = given.value(at)?.text.as_str();
        let is_network = bits.leading_ones() + bits.trailing_zeros() == 32;
        return Ok(match place {
            "12" | "16" if is_network => {
                let key = if place == "12" { "src" } else { "dst" };
                format!("match ip {key} {}/{}", Ipv4Addr::from(value), bits.leading_ones())
            }
            _ => format!("match u32 {value:#010x} {bits:#010x} at {place}"),
        });
    }
    let of = if first.is("IP6") { "ip6" } else { "ip" };
    let key = if first.text.starts_with("IP") { given.value(first)? } else { first };
    let value = &given.value(key)?.text;
    let bits = match key.text.as_str() {
        "src" | "dst" => "",
        "sport" | "dport" => " 0xffff",
        _ => " 0xff",
    };
    while given.next_if(|_| of == "ip6").is_some() {}
    Ok(format!("match {of} {} {value}{bits}", key.text))
}

impl Printed {
    pub fn new(chosen: &[String]) -> Self {
        Self { chosen: chosen.to_vec(), ..Self::default() }
    }

    /// Adds a class that has parameters; the flows of `fq_codel` are classes without any.
    fn add_class(&mut self, class: Class, device: Option<String>) {
        if CLASSFUL.contains(&class.kind.text.as_str()) && class.name.minor != 0 {
            self.classes.push((class, device));
        }
    }

    /// Assigns classes and filters to devices, because `tc` prints them without their device.
    pub fn end(self, reading: &mut Reading) {
        let chosen = self.chosen;
        for (class, name) in self.classes {
            match owner(reading, class.name.major, name.as_deref(), &chosen) {
                Ok(device) => reading.device(&device).put_class(class),
                Err(fault) => reading.problem(class.line, fault),
            }
        }
        let mut seen: Vec<(Option<String>, u16, u16, Filter)> = Vec::new();
        for (mut filter, name) in self.filters {
            let mut major = filter.parent.major;
            if filter.parent == Name::ROOT {
                let target = filter.target.as_ref().or(filter.flow.base.as_ref());
                major = target.and_then(|word| Name::read(&word.text)).map_or(0, |name| name.major);
            }
            // `tc filter show` and `tc filter show ... parent 1:` both print the root's filters, but
            // only the first command prints their parent.
            let minor = if filter.parent == Name::ROOT { 0 } else { filter.parent.minor };
            let is_same = |(device, of, class, other): &(Option<String>, u16, u16, Filter)| {
                *device == name
                    && (*of, *class) == (major, minor)
                    && (other.prio, &other.flow, &other.tests)
                        == (filter.prio, &filter.flow, &filter.tests)
                    && other.target.as_ref().map(|word| &word.text)
                        == filter.target.as_ref().map(|word| &word.text)
            };
            if seen.iter().any(is_same) {
                continue;
            }
            seen.push((name.clone(), major, minor, filter.clone()));
            if major == Name::INGRESS {
                let entrances = reading.devices.iter().filter(|device| device.ingress.is_some());
                let mut entrances = entrances.map(|device| device.name.clone());
                let (first, second) = (entrances.next(), entrances.next());
                let known = name.filter(|name| reading.devices.iter().any(|d| d.name == *name));
                if let Some(device) = known.or(first.filter(|_| second.is_none())) {
                    reading.device(&device).filters.push(filter);
                }
                continue;
            }
            match owner(reading, major, name.as_deref(), &chosen) {
                Ok(device) => {
                    let device = reading.device(&device);
                    let is_root = device.root().is_some_and(|root| root.handle == Some(major));
                    if filter.parent == Name::ROOT && !is_root {
                        // `tc filter show ... parent 20:` does not print this parent.
                        filter.parent = Name::new(major, 0);
                    }
                    device.filters.push(filter);
                }
                Err(fault) => reading.problem(filter.line, fault),
            }
        }
    }
}

/// Returns the name of the device that has the discipline `major`.
fn owner(
    reading: &Reading,
    major: u16,
    name: Option<&str>,
    chosen: &[String],
) -> Result<String, Fault> {
    if let Some(name) = name.filter(|name| reading.devices.iter().any(|d| d.name == *name)) {
        return Ok(name.to_owned());
    }
    let mut able: Vec<&str> = reading
        .devices
        .iter()
        .filter(|device| device.handles.contains_key(&major))
        .map(|device| device.name.as_str())
        .collect();
    if able.len() > 1 && !chosen.is_empty() {
        able.retain(|name| chosen.iter().any(|one| one == name));
    }
    match able.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => Err(Fault::new(format!("the files have no discipline `{major:x}:`"))),
        [first, ..] => Err(Fault::new(format!(
            "several devices have a discipline `{major:x}:`: {}; put the command that printed \
             these lines before them, such as `tc class show dev {first}`, or choose a device by \
             --device",
            able.join(", ")
        ))),
    }
}
