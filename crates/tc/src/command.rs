//! Commands of `tc`, and their effects on devices.
//!
//! Sources: tc(8), and the order in which iproute2's `matches` compares abbreviations.

use crate::device::{Class, Device, Discipline, placed};
use crate::filter::Filter;
use crate::name::{Name, handle, hexadecimal, number};
use crate::place::{Fault, Place, Word, Words, among};
use crate::reading::Reading;
use crate::wrapper::located;
use std::collections::BTreeMap;

const OBJECTS: &str = "qdisc class filter";
/// Other objects of `tc`, which set up no queue.
const OTHERS: &str = "actions chain monitor exec";
const STAB: &str = "mtu mpu tsize overhead linklayer";

/// Effect of a command on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Add,
    Change,
    Replace,
    Delete,
    Print,
}

const VERBS: [(&str, Verb); 10] = [
    ("add", Verb::Add),
    ("change", Verb::Change),
    ("replace", Verb::Replace),
    ("link", Verb::Replace),
    ("delete", Verb::Delete),
    ("list", Verb::Print),
    ("show", Verb::Print),
    ("ls", Verb::Print),
    ("get", Verb::Print),
    ("help", Verb::Print),
];

/// Returns the first of the words that `word` abbreviates.
fn begins<'a>(word: &str, whole: &'a str) -> Option<&'a str> {
    whole.split(' ').find(|one| !word.is_empty() && one.starts_with(word))
}

/// Returns object and verb of the words after `tc` and its options; `None` if they do not concern
/// queues.
pub(crate) fn object_of(words: &[&str]) -> Option<(&'static str, Verb)> {
    let object = begins(words.first()?, OBJECTS)?;
    let Some(word) = words.get(1) else { return Some((object, Verb::Print)) };
    let verb = VERBS.iter().find(|(name, _)| !word.is_empty() && name.starts_with(word));
    verb.filter(|(name, _)| object == "qdisc" || *name != "link").map(|(_, verb)| (object, *verb))
}

/// A command after `tc`: its words, its line, and the place where it is run.
pub(crate) struct Command<'a> {
    pub words: &'a [Word],
    pub line: Place,
    /// Network namespace, container or host in which the command is run; empty for this one.
    pub location: String,
}

/// Applies one command to the devices of a reading; adds a problem if it is invalid.
pub(crate) fn run(reading: &mut Reading, command: Command<'_>) {
    let line = command.line;
    if let Err(fault) = applied(reading, command) {
        reading.problem(line, fault);
    }
}

fn applied(reading: &mut Reading, command: Command<'_>) -> Result<(), Fault> {
    let mut given = Words::new(command.words);
    let mut location = command.location;
    while let Some(option) = given.next_if(|word| word.starts_with('-')) {
        if matches!(option.text.as_str(), "-n" | "-netns" | "-net") {
            location = located(&location, &given.value(option)?.text);
        } else if matches!(option.text.as_str(), "-c" | "-cf" | "-conf" | "-nm" | "-rate")
            && option.is("-conf")
        {
            given.value(option)?;
        }
    }
    let texts: Vec<&str> = given.rest().iter().map(|word| word.text.as_str()).collect();
    let Some(first) = given.next() else { return Ok(()) };
    if let Some(other) = begins(&first.text, OTHERS)
        && begins(&first.text, OBJECTS).is_none()
    {
        if texts.get(1).is_some_and(|verb| matches!(*verb, "add" | "replace" | "change")) {
            let message =
                format!("`{}` is ignored: `tc {other}` sets up no queue", texts.join(" "));
            reading.note(command.line, message);
        }
        return Ok(());
    }
    let Some((object, verb)) = object_of(&texts) else {
        let verbs: Vec<&str> = VERBS.iter().map(|(name, _)| *name).collect();
        if let (Some(object), Some(verb)) = (begins(&first.text, OBJECTS), given.next()) {
            let why = format!("unknown command `{}` for `tc {object}`", verb.text);
            return Err(verb.unknown(why, &verbs));
        }
        let objects: Vec<&str> = OBJECTS.split(' ').collect();
        let known = objects.join(", ");
        let why = format!("unknown word `{}` for `tc`; known words: {known}", first.text);
        return Err(first.unknown(why, &objects));
    };
    given.next();
    if verb == Verb::Print {
        return Ok(());
    }
    let at = At { line: command.line, location: &location, verb: first };
    match object {
        "qdisc" => qdisc(reading, verb, given, &at),
        "class" => class(reading, verb, given, &at),
        _ => filter(reading, verb, given, &at),
    }
}

struct At<'a> {
    line: Place,
    location: &'a str,
    verb: &'a Word,
}

impl At<'_> {
    /// Returns the device that a command names.
    fn device<'r>(
        &self,
        reading: &'r mut Reading,
        name: Option<&Word>,
    ) -> Result<&'r mut Device, Fault> {
        let name = name.ok_or_else(|| self.verb.fault("`dev` is missing, such as `dev eth0`"))?;
        Ok(reading.device(&placed(self.location, &name.text)))
    }
}

/// Options of a command before the kind of its object: values by name.
#[derive(Default)]
struct Options {
    values: BTreeMap<&'static str, Word>,
    stab: Vec<Word>,
    kind: Option<Word>,
}

impl Options {
    /// Reads the options up to the first word that is none of `known`, which is the kind.
    fn read(
        given: &mut Words<'_>,
        known: impl Fn(&str) -> Option<&'static str>,
    ) -> Result<Self, Fault> {
        let mut options = Self::default();
        while let Some(key) = given.next() {
            let Some(name) = known(&key.text) else {
                options.kind = Some(key.clone());
                break;
            };
            let parent = match name {
                "root" => "root",
                "ingress" => "ffff:",
                "egress" => "ffff:fff3",
                _ => "",
            };
            if !parent.is_empty() {
                options.values.insert("parent", Word::new(parent, key.place));
            } else if name == "estimator" {
                given.value(key)?;
                given.value(key)?;
            } else if name == "stab" {
                while let Some(word) = given.next_if(|word| among(word, STAB)) {
                    options.stab.extend([word.clone(), given.value(word)?.clone()]);
                }
            } else {
                let name = if matches!(name, "preference" | "priority") { "prio" } else { name };
                options.values.insert(name, given.value(key)?.clone());
            }
        }
        Ok(options)
    }

    fn get(&self, name: &str) -> Option<&Word> {
        self.values.get(name)
    }

    fn parent(&self) -> Result<Option<Name>, Fault> {
        self.get("parent").map(Name::of).transpose()
    }
}

/// Returns the option of this name.
fn exactly(word: &str, known: &'static str) -> Option<&'static str> {
    known.split(' ').find(|name| *name == word)
}

// Disciplines

fn qdisc(
    reading: &mut Reading,
    verb: Verb,
    mut given: Words<'_>,
    at: &At<'_>,
) -> Result<(), Fault> {
    const KEYS: &str = "dev handle parent root classid ingress_block egress_block estimator stab";
    let whole = given.rest();
    let known =
        |word: &str| exactly(word, KEYS).filter(|name| verb == Verb::Add || *name != "classid");
    let mut options = Options::read(&mut given, known)?;
    if options.get("classid").is_some() && verb == Verb::Add {
        let message = "`tc qdisc` has no `classid`, so Linux rejects this command; it is read as \
                       `tc class`";
        reading.note(at.line, message);
        return class(reading, verb, Words::new(whole), at);
    }
    let own = options.get("handle").map(handle).transpose()?.filter(|handle| *handle != 0);
    let parent = options.parent()?;
    // The device, the handle and the place may also follow `ingress`.
    let mut rest = given.rest().to_vec();
    let is_ingress = options.kind.as_ref().is_some_and(|k| k.is("ingress") || k.is("clsact"));
    if options.get("dev").is_none()
        && is_ingress
        && let Some(n) = rest.iter().position(|word| word.is("dev"))
    {
        options.values.extend(rest.get(n + 1).map(|device| ("dev", device.clone())));
        rest.clear();
    }
    let to_ingress = parent == Some(Name::new(Name::INGRESS, 0xfff1));
    let line = at.line;
    let device = at.device(reading, options.get("dev"))?;
    if is_ingress || own == Some(Name::INGRESS) || to_ingress {
        device.clear_ingress();
        device.ingress = (verb != Verb::Delete).then_some(line);
        return Ok(());
    }
    if verb == Verb::Delete {
        remove(device, parent, own);
        return Ok(());
    }
    let Some(kind) = options.kind else {
        return Err(at.verb.fault("the kind of discipline is missing, such as `fq_codel`"));
    };
    let is_rootless = parent.is_none();
    let new = Discipline {
        kind,
        parent: parent.unwrap_or(Name::ROOT),
        handle: own,
        words: rest,
        stab: options.stab,
        line,
        shown: false,
    };
    let notices = put(device, verb, new)?;
    if is_rootless {
        let message =
            "`root` is missing, so Linux rejects this command; it is read as if it had `root`";
        reading.note(line, message);
    }
    for message in notices {
        reading.note(line, message);
    }
    Ok(())
}

fn remove(device: &mut Device, parent: Option<Name>, handle: Option<u16>) {
    if parent.is_none_or(|parent| parent == Name::ROOT) && handle.is_none() {
        return device.clear();
    }
    let by_handle = handle.and_then(|handle| device.handles.get(&handle).copied());
    if let Some(seat) = by_handle.or_else(|| parent.map(|parent| device.seat(parent))) {
        device.take_out(seat);
    }
}

/// Attaches a discipline; returns notices.
fn put(device: &mut Device, verb: Verb, mut new: Discipline) -> Result<Vec<String>, Fault> {
    let seat = device.seat(new.parent);
    device.check_depth(&new)?;
    let mut notices = Vec::new();
    let Some(old) = device.seats.get(&seat) else {
        if let Some(handle) = new.handle.filter(|handle| device.handles.contains_key(handle)) {
            let name = &device.name;
            let why = format!("two disciplines of `{name}` have the handle `{handle:x}:`");
            return Err(new.kind.fault(why));
        }
        if verb == Verb::Change {
            notices.push(
                "this command changes a discipline that these files do not set up; parameters \
                 that it does not set have their defaults"
                    .to_owned(),
            );
        }
        device.put(new);
        return Ok(notices);
    };
    // A new class has a default discipline, which `add` may replace.
    if verb == Verb::Add && !old.shown {
        return Err(new.kind.fault(format!(
            "line {} has already added a discipline here, so Linux rejects this command",
            old.line.line
        )));
    }
    let is_same = old.kind.text == new.kind.text;
    if is_same && (new.handle.is_none() || new.handle == old.handle) {
        new.handle = old.handle;
        // A change keeps the values that it does not state; `replace` of the same discipline is a
        // change, too.
        if matches!(verb, Verb::Change | Verb::Replace) && !old.shown {
            new.words = changed(&new.kind.text, &old.words, &new.words);
            if new.stab.is_empty() {
                new.stab.clone_from(&old.stab);
            }
        }
    } else {
        device.take_out(seat);
    }
    device.put(new);
    Ok(notices)
}

/// Returns the words of a discipline after a change: values that the change does not state are kept,
/// unless `tc` states all values anew.
fn changed(kind: &str, old: &[Word], new: &[Word]) -> Vec<Word> {
    // Disciplines for which `tc` sends all parameters, or whose words depend on their order.
    const ANEW: &str = "netem tbf red choke gred prio ets htb hfsc pfifo bfifo sfq";
    if among(kind, ANEW) || old.is_empty() {
        return new.to_vec();
    }
    [old, new].concat()
}

// Classes

fn class(
    reading: &mut Reading,
    verb: Verb,
    mut given: Words<'_>,
    at: &At<'_>,
) -> Result<(), Fault> {
    let known = |word: &str| exactly(word, "dev classid parent root estimator");
    let options = Options::read(&mut given, known)?;
    let line = at.line;
    let device = at.device(reading, options.get("dev"))?;
    let id = options.get("classid");
    let id = id.ok_or_else(|| at.verb.fault("`classid` is missing, such as `classid 1:10`"))?;
    let mut name = Name::of(id)?;
    let parent = options.parent()?;
    if let Some(parent) = parent.filter(|parent| name.major == 0 && *parent != Name::ROOT) {
        name.major = parent.major;
    }
    if verb == Verb::Delete {
        if let Some(message) = delete_class(device, name) {
            reading.note(line, message);
        }
        return Ok(());
    }
    let old = device.classes.get(&name);
    if let Some(old) = old.filter(|_| verb == Verb::Add) {
        return Err(id.fault(format!(
            "line {} has already added `{name}`, so Linux rejects this command",
            old.line.line
        )));
    }
    let above = old.map_or(Name::new(name.major, 0), |old| old.parent);
    let parent = parent.filter(|parent| *parent != Name::ROOT).unwrap_or(above);
    let Some(kind) = options.kind.or_else(|| old.map(|old| old.kind.clone())) else {
        return Err(at.verb.fault("the kind of discipline is missing, such as `htb`"));
    };
    let words = given.rest().to_vec();
    device.put_class(Class { kind, name, parent, words, line });
    Ok(())
}

/// Deletes a class with its discipline and filters; returns why a class in use is kept.
fn delete_class(device: &mut Device, name: Name) -> Option<String> {
    let targets = |filter: &Filter| {
        filter.target.as_ref().and_then(|word| Name::read(&word.text)) == Some(name)
    };
    let why = if device.classes.values().any(|class| class.parent == name) {
        "has child classes"
    } else if device.filters.iter().any(targets) {
        "is the target of filters"
    } else {
        device.remove_class(name);
        device.take_out(name);
        device.filters.retain(|filter| filter.parent != name);
        return None;
    };
    Some(format!("`{name}` {why}: Linux rejects this, and the class is not deleted"))
}

// Filters

fn filter(
    reading: &mut Reading,
    verb: Verb,
    mut given: Words<'_>,
    at: &At<'_>,
) -> Result<(), Fault> {
    const KEYS: &str = "dev root ingress egress parent handle preference prio protocol chain \
                        estimator block priority";
    let mut options = Options::read(&mut given, |word| begins(word, KEYS))?;
    let line = at.line;
    let device = at.device(reading, options.get("dev"))?;
    let parent = options.parent()?.unwrap_or(Name::ROOT);
    let prio = options.get("prio").map(number).transpose()?.filter(|prio| *prio != 0);
    if verb == Verb::Delete {
        let of_handle = options.get("handle").map(|handle| of_handle(device, handle));
        let mut n = 0;
        device.filters.retain(|one| {
            n += 1;
            let is_here = one.parent == parent && prio.is_none_or(|prio| one.prio == Some(prio));
            !(is_here && of_handle.as_ref().is_none_or(|found| found.contains(&(n - 1))))
        });
        return Ok(());
    }
    if let Some(chain) = options.get("chain").filter(|chain| !chain.is("0")) {
        return Err(chain.fault("only filters of chain 0 are evaluated here"));
    }
    let Some(kind) = options.kind else {
        return Err(at.verb.fault("the kind of filter is missing, such as `u32`"));
    };
    let mut new = Filter { prio, ..Filter::new(kind, parent, line) };
    new.handle = options.values.remove("handle");
    if let Some(protocol) = options.values.remove("protocol") {
        new.protocol = protocol.text;
    }
    new.read(given.rest())?;
    device.filters.push(new);
    Ok(())
}

/// Returns the indices of the filters with a handle. A filter of `u32` whose command states no
/// handle has one by its order: `800::800`, `800::801`.
fn of_handle(device: &Device, handle: &Word) -> Vec<usize> {
    let has = |filter: &Filter| filter.handle.as_ref().is_some_and(|own| own.text == handle.text);
    let with = |is_meant: &dyn Fn(&Filter) -> bool| -> Vec<usize> {
        let all = device.filters.iter().enumerate();
        all.filter(|(_, filter)| is_meant(filter)).map(|(n, _)| n).collect()
    };
    let given = with(&has);
    if !given.is_empty() {
        return given;
    }
    let own = with(&|filter| filter.kind.is("u32") && filter.handle.is_none());
    let last = handle.text.rsplit(':').next().and_then(hexadecimal);
    let index = last.and_then(|last| last.checked_sub(0x800)).map(usize::from);
    let index = index.filter(|_| handle.text.contains("::"));
    index.and_then(|index| own.get(index)).copied().into_iter().collect()
}
