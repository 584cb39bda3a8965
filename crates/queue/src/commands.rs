//! The commands that set up a queue on a Linux device.
//!
//! Source: tc(8), the manual pages of disciplines and filters, ip-link(8).
//!
//! Each discipline and class has one command, each filter one or more. Commands for outer
//! disciplines come first. Numbers are stable: a discipline with classes keeps its number, if the
//! number is free. Any other discipline gets the number of its class; if such a number is already
//! taken, these disciplines get 16 times the number of their class. Each filter command has its own
//! order number, so that Linux tries filters in the order of the description.

use crate::classes::{FilterCommand, Name, commands_of};
use crate::params::Params;
use crate::tc::{Inside, Nested, NoKernelEquivalent, TXQUEUELEN};
use std::collections::BTreeSet;

/// The largest number of a discipline; `ffff:` is the ingress discipline of a device.
const LAST: u16 = 0xfffe;

/// `tc`'s word for the position of a queue that is in no class.
const ROOT: &str = "root";

/// The position and number of a queue on a device.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Name of the device.
    pub device: &'a str,
    /// Class that receives the queue, with the number of its discipline; `None` for the root of the
    /// device.
    pub parent: Option<Name>,
    /// Number of the queue's discipline; `None` to use the number in its parameters, or 1.
    pub handle: Option<u16>,
}

impl Params {
    /// Returns the commands that set up this queue in Linux: commands of `tc`, and one of `ip`
    /// if `txqueuelen` is not the default of 1000 packets.
    ///
    /// # Errors
    /// If the kernel lacks a discipline or does not allow it in its class: class and reason.
    pub fn commands(&self, place: &Place<'_>) -> Result<Vec<String>, NoKernelEquivalent> {
        let mut taken = BTreeSet::from([0]);
        taken.extend(place.parent.and_then(|name| name.major));
        taken.extend(place.handle);
        let inside = self.inside();
        let own = inside.as_ref().map(|inside| inside.handle).filter(|handle| *handle != 0);
        let mut writer =
            Writer { device: place.device, taken, txqueuelen: None, lines: Vec::new() };
        let handle = place.handle.unwrap_or_else(|| writer.take(own.unwrap_or(1)));
        let mut kept = BTreeSet::new();
        keep_numbers(&inside.unwrap_or_default(), &mut kept, &writer.taken);
        writer.taken.extend(&kept);
        let at = match place.parent {
            Some(name) => format!("parent {}", name_of(name.major.unwrap_or_default(), name.minor)),
            None => ROOT.to_owned(),
        };
        writer.discipline(self, &at, None, handle, &mut kept)?;
        if let Some(packets) = writer.txqueuelen.filter(|packets| *packets != TXQUEUELEN) {
            let command = format!("ip link set dev {} txqueuelen {packets}", place.device);
            writer.lines.insert(0, command);
        }
        Ok(writer.lines)
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
    device: &'a str,
    /// Numbers of disciplines that are in use.
    taken: BTreeSet<u16>,
    /// Transmit queue length of the device in packets, for classes without a discipline; `None`
    /// until such a class needs it.
    txqueuelen: Option<u32>,
    lines: Vec<String>,
}

impl Writer<'_> {
    /// Returns and reserves the number `wanted` or, if it is taken, the next free number.
    fn take(&mut self, wanted: u16) -> u16 {
        let free = (wanted.max(1)..=LAST).chain(1..wanted).find(|n| !self.taken.contains(n));
        let number = free.unwrap_or(LAST);
        self.taken.insert(number);
        number
    }

    fn add(&mut self, object: &str, words: &str) {
        self.lines.push(format!("tc {object} replace dev {} {words}", self.device));
    }

    /// Writes the commands of a discipline, its classes, inner disciplines and filters. `at` is its
    /// position in words of `tc`, `place` the name of its class (`None` at the root), and `kept`
    /// the set of numbers that inner disciplines keep.
    fn discipline(
        &mut self,
        params: &dyn Nested,
        at: &str,
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
        if at != ROOT && inside.as_ref().is_some_and(|inside| inside.at_root) {
            let why = "Linux allows it only at the root of a device, and here it is in a class";
            return Err(located(NoKernelEquivalent::new(params.name(), why)));
        }
        self.add("qdisc", &format!("{at} handle {} {words}", name_of(handle, 0)));
        let Some(inside) = inside else { return Ok(()) };
        if let Some(packets) = inside.txqueuelen
            && *self.txqueuelen.get_or_insert(packets) != packets
        {
            let why = "all disciplines of a device have the same `txqueuelen`, and an outer one has another value";
            return Err(located(NoKernelEquivalent::new(params.name(), why)));
        }
        for (id, parent, words) in &inside.classes {
            let (class, parent) = (name_of(handle, *id), name_of(handle, *parent));
            self.add("class", &format!("parent {parent} classid {class} {words}"));
        }
        let is_taken = |id: u16| self.taken.contains(&id);
        let scale = if inside.children.iter().any(|(id, _)| is_taken(*id)) { 16 } else { 1 };
        for (id, child) in &inside.children {
            let class = name_of(handle, *id);
            let own = child.inside().map(|inner| inner.handle);
            let number = match own.filter(|own| kept.remove(own)) {
                Some(own) => own,
                None => self.take(id.saturating_mul(scale)),
            };
            self.discipline(*child, &format!("parent {class}"), Some(&class), number, kept)?;
        }
        let mut order = 0;
        for filter in inside.filters {
            for FilterCommand { protocol, words } in
                commands_of(filter, |minor| name_of(handle, minor))
            {
                order += 1;
                let parent = name_of(handle, 0);
                let lead = format!("parent {parent} protocol {protocol} pref {order}");
                self.add("filter", &format!("{lead} {words}"));
            }
        }
        Ok(())
    }
}
