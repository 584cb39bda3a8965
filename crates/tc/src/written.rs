//! The commands that set up a device, in the words of the texts.
//!
//! A queue that was read, and then perhaps changed in part, is written with the user's own numbers,
//! words and filters. Only what changed is written in the words of its parameters.

use crate::device::{Class, Device, Discipline, SEATED};
use crate::filter::Filter;
use crate::name::Name;
use crate::place::Word;
use crate::reading::Reading;
use crate::rules::Hosts;
use crate::tree::{IMPLICIT, decimal_default};
use crate::{cbq, mq, values};
use sojourn_queue::{Command, Commands, NoKernelEquivalent, Number, Object, Params, Place};
use std::collections::{BTreeMap, BTreeSet};

impl Reading {
    /// Returns the commands that set up `wanted`, the queue of a device or a variant of it; `None`
    /// without such a device. Other arguments are those of [`Reading::build`].
    ///
    /// # Errors
    /// If Linux lacks a discipline of a changed part.
    pub fn commands(
        &self,
        name: &str,
        hosts: &Hosts,
        passed: bool,
        on: &sojourn_queue::Device,
        wanted: &Params,
        place: &Place<'_>,
    ) -> Option<Result<Commands, NoKernelEquivalent>> {
        let own = Own::new(self.found(name)?, place);
        let read = self.build(name, hosts, passed, on)?.queue;
        if !own.is_complete() {
            return Some(wanted.commands(place));
        }
        if read.as_ref() == Some(wanted) {
            return Some(Ok(own.all()));
        }
        let wanted = wanted.commands(place);
        let read = read.and_then(|queue| queue.commands(place).ok());
        Some(
            wanted.map(|wanted| read.and_then(|read| own.merged(&read, &wanted)).unwrap_or(wanted)),
        )
    }

    /// Returns the commands that redirect incoming packets of a device to other devices.
    pub fn redirections(&self, name: &str) -> Vec<Command> {
        let filters = self.devices.iter().filter(|device| device.name == name);
        let filters = filters.flat_map(|device| &device.filters);
        let ingress = filters.filter(|one| one.parent.major == Name::INGRESS);
        ingress.map(|one| filter(one, Some((Name::INGRESS, 0)))).collect()
    }

    /// Returns the numbers of a device's disciplines.
    pub fn handles(&self, name: &str) -> BTreeSet<u16> {
        self.found(name).map(|device| device.handles.into_keys().collect()).unwrap_or_default()
    }
}

/// A device whose disciplines, classes and filters are written in its own words.
struct Own<'a> {
    device: Device,
    place: &'a Place<'a>,
}

impl<'a> Own<'a> {
    fn new(mut device: Device, place: &'a Place<'a>) -> Self {
        cbq::replaced(&mut device, &mut Vec::new());
        mq::counted(&mut device, &mut Vec::new());
        Self { device, place }
    }

    /// Whether the texts have the classes of a root discipline that cannot be without classes.
    fn is_complete(&self) -> bool {
        self.device.root().is_none_or(|root| {
            let needs_classes = matches!(root.kind.text.as_str(), "htb" | "hfsc" | "drr");
            !root.shown || !needs_classes || !self.device.classes.is_empty()
        })
    }

    fn all(&self) -> Commands {
        let mut commands = Vec::new();
        if let Some(root) = self.device.root() {
            self.discipline(root, &mut commands);
        }
        Commands { txqueuelen: self.device.length, commands }
    }

    /// Returns the number that a discipline has in the commands.
    fn number(&self, one: &Discipline) -> Option<u16> {
        one.handle.or_else(|| self.place.handle.filter(|_| one.parent == Name::ROOT))
    }

    fn discipline(&self, one: &Discipline, into: &mut Vec<Command>) {
        into.push(self.qdisc(one));
        let Some(handle) = self.number(one) else { return };
        // Classes of some disciplines exist without a command.
        let exists = |class: &&Class| IMPLICIT.contains(&class.kind.text.as_str());
        let (classes, _) = self.device.parents_first(handle);
        let classes = classes.into_iter().filter(|one| !(exists(one) && one.words.is_empty()));
        into.extend(classes.map(|class| Self::class(one, class)));
        for inner in self.device.inside(handle) {
            self.discipline(inner, into);
        }
        into.extend(self.filters(handle));
    }

    fn qdisc(&self, one: &Discipline) -> Command {
        let kind = &one.kind.text;
        let mut words = match kind.as_str() {
            // The number of transmit queues is that of the device.
            "mq" => Vec::new(),
            _ if one.shown && kind != "netem" => values::printed(kind, &one.words).0,
            _ => one.words.clone(),
        };
        if let Some(at) = words.iter().position(|word| word.is("default"))
            && let Some(value) = words.get_mut(at + 1)
            && let Some(decimal) = decimal_default(&self.device, one, &value.text)
        {
            value.text = format!("{decimal:x}");
        }
        let stab =
            if one.stab.is_empty() { String::new() } else { format!("stab {} ", texts(&one.stab)) };
        let parent = match one.parent {
            Name::ROOT => self.place.parent,
            parent => Some((parent.major, parent.minor)),
        };
        let number = self.number(one).map(|handle| (handle, 0));
        let words = format!("{stab}{kind} {}", texts(&words)).trim_end().to_owned();
        Command { object: Object::Qdisc, parent, number, words }
    }

    fn class(holder: &Discipline, class: &Class) -> Command {
        let kind = &class.kind.text;
        let words = if holder.shown {
            values::printed_class(kind, &class.words)
        } else {
            class.words.clone()
        };
        Command {
            object: Object::Class,
            parent: Some((class.parent.major, class.parent.minor)),
            number: Some((class.name.major, class.name.minor)),
            words: format!("{kind} {}", texts(&words)).trim_end().to_owned(),
        }
    }

    /// Returns the filters that the discipline with this number evaluates, in their order.
    fn filters(&self, handle: u16) -> Vec<Command> {
        let root = self.device.root().and_then(|root| self.number(root));
        let parent = |one: &Filter| match one.parent {
            Name::ROOT => root.map(|root| (root, 0)),
            parent => Some((parent.major, parent.minor)),
        };
        let of = |one: &&Filter| parent(one).is_some_and(|(major, _)| major == handle);
        let filters = self.device.filters.iter().filter(of);
        filters.map(|one| filter(one, parent(one))).collect()
    }

    /// Returns the commands for `wanted`: those that it shares with the queue `read` in the words
    /// of the texts. Returns `None` if the numbers of both do not fit together.
    fn merged(&self, read: &Commands, wanted: &Commands) -> Option<Commands> {
        if self.device.root()?.kind.is("netem") {
            return None;
        }
        let mut own = BTreeMap::new();
        for one in self.all().commands {
            if one.object != Object::Filter {
                own.insert(self.key(&one), one);
            }
        }
        let majors: BTreeSet<Option<u16>> =
            wanted.commands.iter().map(|one| one.parent.map(|(major, _)| major)).collect();
        let filters = |all: &Commands, parent| {
            let of = all.commands.iter().filter(move |one| one.object == Object::Filter);
            of.filter(|one| one.parent == parent).cloned().collect::<Vec<_>>()
        };
        let mut commands: Vec<Command> = Vec::new();
        let mut done = BTreeSet::new();
        for one in &wanted.commands {
            if one.object == Object::Filter {
                if !done.insert(one.parent) {
                    continue;
                }
                let new = filters(wanted, one.parent);
                let is_same = new == filters(read, one.parent);
                let handle = one.parent.map_or(0, |(major, _)| major);
                commands.extend(if is_same { self.filters(handle) } else { new });
                continue;
            }
            let same = own.get(&self.key(one));
            match same {
                Some(same) if read.commands.contains(one) => commands.push(same.clone()),
                // Linux chooses the number of a discipline without classes.
                _ if one.object == Object::Qdisc
                    && !majors.contains(&one.number.map(|(major, _)| major)) =>
                {
                    commands.push(Command { number: None, ..one.clone() });
                }
                _ => commands.push(one.clone()),
            }
        }
        let mut known: BTreeSet<u16> = self.place.parent.iter().map(|(major, _)| *major).collect();
        for one in &commands {
            if one.parent.is_some_and(|(major, _)| !known.contains(&major)) {
                return None;
            }
            if let (Object::Qdisc, Some((major, _))) = (one.object, one.number)
                && !known.insert(major)
            {
                return None;
            }
        }
        Some(Commands { txqueuelen: wanted.txqueuelen, commands })
    }

    /// Returns what a command sets up: a class by its number, a discipline by its place.
    fn key(&self, one: &Command) -> (Object, Option<Number>) {
        let place = match (one.object, one.parent) {
            (Object::Qdisc, Some((major, _)))
                if self
                    .device
                    .by_handle(major)
                    .is_some_and(|holder| SEATED.contains(&holder.kind.text.as_str())) =>
            {
                Some((major, 0))
            }
            (Object::Qdisc, parent) => parent,
            _ => one.number,
        };
        (one.object, place)
    }
}

fn filter(one: &Filter, parent: Option<Number>) -> Command {
    let words = one.words().iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    Command { object: Object::Filter, parent, number: None, words }
}

fn texts(words: &[Word]) -> String {
    words.iter().map(|word| quoted(&word.text)).collect::<Vec<_>>().join(" ")
}

/// Returns a word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
