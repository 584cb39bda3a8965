//! The text output of `tc qdisc show`, `tc class show` and `tc filter show`, of iproute2 4 to 7.

use crate::device::{Class, Discipline};
use crate::filter::Filter;
use crate::name::{Name, handle, number};
use crate::place::{Fault, Place, Word};
use crate::reading::Reading;
use crate::table;
use crate::tree::CLASSFUL;

/// Classes and filters that were printed, each with the device of the command that printed them.
#[derive(Default)]
pub(crate) struct Printed {
    classes: Vec<(Class, Option<String>)>,
    filters: Vec<(Filter, Option<String>)>,
    /// Devices that the user chose; classes whose device is not printed belong to these.
    chosen: Vec<String>,
}

/// A printed entry: its first line, and the lines that follow it.
struct Entry {
    line: Place,
    words: Vec<Word>,
    more: Vec<Vec<Word>>,
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

fn entry(
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
    add_qdisc(reading, &device, one)
}

/// Returns the words before counters, which follow on the same line if line ends were lost.
fn without_counters(words: &[Word]) -> &[Word] {
    let begins =
        |pair: &[Word]| pair[0].is("Sent") && pair[1].text.bytes().all(|b| b.is_ascii_digit());
    &words[..words.windows(2).position(begins).unwrap_or(words.len())]
}

/// Adds a printed discipline to its device.
pub(crate) fn add_qdisc(reading: &mut Reading, device: &str, one: Discipline) -> Result<(), Fault> {
    let device = reading.device(device);
    if one.kind.is("ingress") || one.kind.is("clsact") {
        device.ingress = Some(one.line);
        return Ok(());
    }
    device.check_depth(&one)?;
    device.put(one);
    Ok(())
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

fn filter(printed: &mut Printed, device: Option<&String>, entry: &Entry) -> Result<(), Fault> {
    let mut new = Filter::new(Word::default(), Name::ROOT, entry.line);
    let (mut pref, mut is_table) = (None, false);
    let mut rest = entry.words[1..].iter().peekable();
    let mut tests: Vec<Word> = Vec::new();
    while let Some(key) = rest.next() {
        // iproute2 6 marks the target of a filter that selects a class by itself: `*flowid`, and
        // prints `???` for one that leads to none.
        let name = key.text.trim_start_matches('*');
        match name {
            "parent" => new.parent = Name::of(rest.next().unwrap_or(key))?,
            "ingress" => new.parent = Name::new(Name::INGRESS, 0),
            "egress" => new.parent = Name::new(Name::INGRESS, Name::EGRESS),
            "protocol" => new.protocol.clone_from(&rest.next().unwrap_or(key).text),
            "pref" => pref = Some(number(rest.next().unwrap_or(key))?),
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
                    new.table.seat = value.map(table::seat).transpose()?;
                } else if name == "key" && value.is_some_and(|value| value.is("ht")) {
                    rest.next();
                }
            }
            "ht" => is_table = true,
            "divisor" if is_table => {
                let count = rest.next().and_then(|word| word.text.parse().ok());
                new.table.divisor = count.filter(|count| *count > 1);
            }
            "link" => new.table.link = rest.next().map(table::seat).transpose()?.map(|to| to.0),
            "flowid" | "classid" => {
                new.target = rest.next().filter(|value| !value.text.starts_with('?')).cloned();
            }
            "not_in_hw" | "in_hw" | "skip_hw" | "skip_sw" | "(rule" | "in_hw_count" | "" => {}
            _ if new.kind.text.is_empty() && pref.is_some() => new.kind = key.clone(),
            _ => {
                tests.push(key.clone());
                tests.extend(rest.by_ref().cloned());
            }
        }
    }
    new.prio = pref;
    let kind = new.kind.text.clone();
    let has_content = new.target.is_some() || !tests.is_empty() || !entry.more.is_empty();
    if new.table.divisor.is_some() {
        printed.add_filter(new, device.cloned());
        return Ok(());
    }
    if pref.is_none() || kind.is_empty() || is_table && !has_content {
        return Ok(());
    }
    // The first line of each filter names only its kind.
    let is_whole = matches!(kind.as_str(), "fw" | "matchall") && new.handle.is_some();
    if !(has_content || is_whole) {
        return Ok(());
    }
    if is_table && new.target.is_none() && entry.more.is_empty() {
        return Ok(());
    }
    if kind == "flow" {
        flow(&mut new, &tests)?;
        tests.clear();
    }
    if kind == "fw"
        && let Some(handle) = new.handle.clone()
    {
        new.tests.push(crate::filter::marked(&handle)?);
    }
    for words in std::iter::once(&tests).chain(&entry.more).filter(|words| !words.is_empty()) {
        new.read_shown(words)?;
    }
    printed.add_filter(new, device.cloned());
    Ok(())
}

/// Reads what `tc` prints of a filter `flow`: `hash keys src,dst divisor 4 baseclass 1:1`.
fn flow(new: &mut Filter, words: &[Word]) -> Result<(), Fault> {
    let mut rest = words.iter();
    let mut others = Vec::new();
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            "hash" => {}
            "map" => new.flow.map = true,
            "keys" => new.flow.keys.clone_from(&rest.next().unwrap_or(word).text),
            "divisor" => new.flow.divisor = rest.next().cloned(),
            "baseclass" => new.flow.base = rest.next().cloned(),
            _ => others.push(word.clone()),
        }
    }
    new.read_shown(&others)
}

impl Printed {
    pub fn new(chosen: &[String]) -> Self {
        Self { chosen: chosen.to_vec(), ..Self::default() }
    }

    /// Adds a class that has parameters; the flows of `fq_codel` are classes without any.
    pub fn add_class(&mut self, class: Class, device: Option<String>) {
        if CLASSFUL.contains(&class.kind.text.as_str()) && class.name.minor != 0 {
            self.classes.push((class, device));
        }
    }

    pub fn add_filter(&mut self, mut filter: Filter, device: Option<String>) {
        filter.end_shown();
        self.filters.push((filter, device));
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
