//! The commands that give a device a queue.
//!
//! Source: tc(8), the manual pages of disciplines and filters, ip-link(8).
//!
//! One command sets each discipline, class and filter, the outer ones first. Names are stable: a
//! discipline with classes keeps its number where it is free, any other one has the number of its
//! class, times 16 if that is taken. Each filter has an order of its own, so that filters are tried
//! in the order of the description.

use crate::classes::{FilterCommand, Name, commands_of};
use crate::params::Params;
use crate::tc::{Inside, Nested, NoKernelEquivalent, TXQUEUELEN};
use std::collections::BTreeSet;

/// The largest number of a discipline: `ffff:` is the ingress of a device.
const LAST: u16 = 0xfffe;

/// Where a queue is that is in no class.
const ROOT: &str = "root";

/// Where a queue is put.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The device.
    pub device: &'a str,
    /// The class that gets the queue, with the number of its discipline; without it, the queue is the device's
    /// root.
    pub parent: Option<Name>,
    /// The number that the queue gets; without it, its own.
    pub handle: Option<u16>,
}

impl Params {
    /// Returns the commands by which the kernel gives the same queue: of `tc`, and of `ip` where
    /// the device's `txqueuelen` is not the usual one.
    ///
    /// # Errors
    /// Where the kernel has none, and for what.
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

/// Gathers the numbers that the disciplines inside have of their own and can keep.
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

/// Returns the name of a class, or of a discipline.
fn name_of(major: u16, minor: u16) -> String {
    if minor == 0 { format!("{major:x}:") } else { format!("{major:x}:{minor:x}") }
}

/// The commands in the making.
struct Writer<'a> {
    device: &'a str,
    /// Numbers of disciplines.
    taken: BTreeSet<u16>,
    /// The length of the device's queue, for classes without a discipline.
    txqueuelen: Option<u32>,
    lines: Vec<String>,
}

impl Writer<'_> {
    /// Returns the number `wanted`, or the next one that is free.
    fn take(&mut self, wanted: u16) -> u16 {
        let free = (wanted.max(1)..=LAST).chain(1..wanted).find(|n| !self.taken.contains(n));
        let number = free.unwrap_or(LAST);
        self.taken.insert(number);
        number
    }

    fn add(&mut self, object: &str, words: &str) {
        self.lines.push(format!("tc {object} replace dev {} {words}", self.device));
    }

    /// Writes a discipline and all that is inside. `place` is the class that it is in, `kept` the numbers that
    /// disciplines inside keep.
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
            let why = "Linux takes it at a device's root only, where another discipline is";
            return Err(located(NoKernelEquivalent::new(params.name(), why)));
        }
        self.add("qdisc", &format!("{at} handle {} {words}", name_of(handle, 0)));
        let Some(inside) = inside else { return Ok(()) };
        if let Some(packets) = inside.txqueuelen
            && *self.txqueuelen.get_or_insert(packets) != packets
        {
            let why = "a device has one `txqueuelen`, and disciplines around it have another";
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
