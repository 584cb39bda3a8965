//! The commands that set up a queue on a Linux device.
//!
//! Source: tc(8), the manual pages of disciplines and filters, ip-link(8).
//!
//! Each discipline and class has one command, each filter one or more. Commands for outer
//! disciplines come first. Numbers are stable: a discipline with classes keeps its number, if the
//! number is free. Any other discipline gets the number of its class; if such a number is already
//! taken, these disciplines get 16 times the number of their class. Each filter command has its own
//! order number, so that Linux tries filters in the order of the description.

use crate::classes::{FilterCommand, commands_of};
use crate::params::Params;
use crate::tc::{Inside, Nested, NoKernelEquivalent, TXQUEUELEN};
use std::collections::BTreeSet;

/// The largest number of a discipline; `ffff:` is the ingress discipline of a device.
const LAST: u16 = 0xfffe;

/// The position and number of a queue on a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// Class that receives the queue; `None` for the root of the device.
    pub parent: Option<Number>,
    /// Number of the queue's discipline; `None` to use the number in its parameters, or 1.
    pub handle: Option<u16>,
    /// Addresses of the hosts in filters; `None` for the addresses in captures.
    pub addresses: Option<&'a [String]>,
}

/// Object that a command sets up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// A discipline.
    Qdisc,
    /// A class.
    Class,
    /// A filter.
    Filter,
}

/// Major and minor number of a class; with the minor number 0, of a discipline.
pub type Number = (u16, u16);

/// A command of `tc` without its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Object of the command.
    pub object: Object,
    /// Discipline or class that contains the object; `None` for the root of the device.
    pub parent: Option<Number>,
    /// Number of the discipline or class; `None` for a filter, or if Linux chooses the number.
    pub number: Option<Number>,
    /// Kind and parameters, for a filter after its protocol and order.
    pub words: String,
}

impl Command {
    /// Returns the command for a device.
    pub fn text(&self, device: &str) -> String {
        let parent = match self.parent {
            Some((major, minor)) => format!("parent {}", name_of(major, minor)),
            None => "root".to_owned(),
        };
        let (object, key) = match self.object {
            Object::Qdisc => ("qdisc", "handle"),
            Object::Class => ("class", "classid"),
            Object::Filter => ("filter", "handle"),
        };
        let number = self
            .number
            .map_or_else(String::new, |(major, minor)| format!("{key} {} ", name_of(major, minor)));
        format!("tc {object} replace dev {device} {parent} {number}{}", self.words)
    }
}

/// The commands that set up a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Transmit queue length of the device in packets; `None` to leave it unchanged.
    pub txqueuelen: Option<u32>,
    /// Commands of `tc`, those for outer disciplines first.
    pub commands: Vec<Command>,
}

impl Commands {
    /// Returns the commands for a device.
    pub fn texts(&self, device: &str) -> Vec<String> {
        let length = self.txqueuelen;
        let length = length.map(|packets| format!("ip link set dev {device} txqueuelen {packets}"));
        length.into_iter().chain(self.commands.iter().map(|one| one.text(device))).collect()
    }
}

impl Params {
    /// Returns the commands that set up this queue in Linux: commands of `tc`, and one of `ip`
    /// if `txqueuelen` is not the default of 1000 packets.
    ///
    /// # Errors
    /// If the kernel lacks a discipline or does not allow it in its class: class and reason.
    pub fn commands(&self, place: &Place<'_>) -> Result<Commands, NoKernelEquivalent> {
        let mut taken = BTreeSet::from([0]);
        taken.extend(place.parent.map(|(major, _)| major));
        taken.extend(place.handle);
        let inside = self.inside();
        let own = inside.as_ref().map(|inside| inside.handle).filter(|handle| *handle != 0);
        let mut writer =
            Writer { addresses: place.addresses, taken, txqueuelen: None, commands: Vec::new() };
        let handle = place.handle.unwrap_or_else(|| writer.take(own.unwrap_or(1)));
        let mut kept = BTreeSet::new();
        keep_numbers(&inside.unwrap_or_default(), &mut kept, &writer.taken);
        writer.taken.extend(&kept);
        writer.discipline(self, place.parent, None, handle, &mut kept)?;
        let txqueuelen = writer.txqueuelen.filter(|packets| *packets != TXQUEUELEN);
        Ok(Commands { txqueuelen, commands: writer.commands })
    }
}

impl Nested for Params {
    fn name(&self) -> &'static str {
        self.table().name
    }

    fn inside(&self) -> Option<Inside<'_>> {
        self.inside()
    }

    fn own_words(&self) -> Result<String, NoKernelEquivalent> {
        self.own_words()
    }
}

/// Adds to `kept` the numbers of inner disciplines that are not in `taken`.
fn keep_numbers(inside: &Inside<'_>, kept: &mut BTreeSet<u16>, taken: &BTreeSet<u16>) {
    for (_, child) in &inside.children {
        if let Some(inner) = child.inside() {
            if !taken.contains(&inner.handle) {
                kept.insert(inner.handle);
            }
            keep_numbers(&inner, kept, taken);
        }
    }
}

/// Returns the name of a class; minor number 0 gives the name of a discipline.
fn name_of(major: u16, minor: u16) -> String {
    if minor == 0 { format!("{major:x}:") } else { format!("{major:x}:{minor:x}") }
}

/// Collects the commands.
struct Writer<'a> {
    addresses: Option<&'a [String]>,
    /// Numbers of disciplines that are in use.
    taken: BTreeSet<u16>,
    /// Transmit queue length of the device in packets, for classes without a discipline; `None`
    /// until such a class needs it.
    txqueuelen: Option<u32>,
    commands: Vec<Command>,
}

impl Writer<'_> {
    /// Returns and reserves the number `wanted` or, if it is taken, the next free number.
    fn take(&mut self, wanted: u16) -> u16 {
        let free = (wanted.max(1)..=LAST).chain(1..wanted).find(|n| !self.taken.contains(n));
        let number = free.unwrap_or(LAST);
        self.taken.insert(number);
        number
    }

    /// Writes the commands of a discipline, its classes, inner disciplines and filters. `parent` is
    /// its position, `place` the name of its class (`None` for the queue itself), and `kept` the
    /// set of numbers that inner disciplines keep.
    fn discipline(
        &mut self,
        params: &dyn Nested,
        parent: Option<Number>,
        place: Option<&str>,
        handle: u16,
        kept: &mut BTreeSet<u16>,
    ) -> Result<(), NoKernelEquivalent> {
        let located = |error: NoKernelEquivalent| NoKernelEquivalent {
            place: place.map(str::to_owned),
            ..error
        };
        let words = params.own_words().map_err(located)?;
        let inside = params.inside();
        if parent.is_some() && inside.as_ref().is_some_and(|inside| inside.at_root) {
            let why = "Linux allows it only at the root of a device, and here it is in a class";
            return Err(located(NoKernelEquivalent::new(params.name(), why)));
        }
        let own = Some((handle, 0));
        self.commands.push(Command { object: Object::Qdisc, parent, number: own, words });
        let Some(inside) = inside else { return Ok(()) };
        if let Some(packets) = inside.txqueuelen
            && *self.txqueuelen.get_or_insert(packets) != packets
        {
            let why = "all disciplines of a device have the same `txqueuelen`, and an outer one has another value";
            return Err(located(NoKernelEquivalent::new(params.name(), why)));
        }
        self.commands.extend(inside.classes.into_iter().map(|(id, parent, words)| Command {
            object: Object::Class,
            parent: Some((handle, parent)),
            number: Some((handle, id)),
            words,
        }));
        let is_taken = |id: u16| self.taken.contains(&id);
        let scale = if inside.children.iter().any(|(id, _)| is_taken(*id)) { 16 } else { 1 };
        for (id, child) in &inside.children {
            let own = child.inside().map(|inner| inner.handle);
            let number = match own.filter(|own| kept.remove(own)) {
                Some(own) => own,
                None => self.take(id.saturating_mul(scale)),
            };
            let class = name_of(handle, *id);
            self.discipline(*child, Some((handle, *id)), Some(&class), number, kept)?;
        }
        let mut order = 0;
        for filter in inside.filters {
            let name = |minor| name_of(handle, minor);
            for FilterCommand { protocol, words } in commands_of(filter, name, self.addresses) {
                order += 1;
                self.commands.push(Command {
                    object: Object::Filter,
                    parent: own,
                    number: None,
                    words: format!("protocol {protocol} pref {order} {words}"),
                });
            }
        }
        Ok(())
    }
}
