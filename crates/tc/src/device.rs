//! A device as the texts set it up: disciplines, classes and filters.

use crate::filter::Filter;
use crate::name::Name;
use crate::place::{Fault, Place, Word};
use std::collections::{BTreeMap, BTreeSet};

/// Disciplines that hold exactly one inner discipline.
pub(crate) const SEATED: [&str; 2] = ["tbf", "netem"];
/// Largest depth of nested disciplines.
const DEPTH: usize = 16;

/// Returns the name of a device at a place: a network namespace, container or host.
pub(crate) fn placed(location: &str, name: &str) -> String {
    if location.is_empty() { name.to_owned() } else { format!("{location}:{name}") }
}

/// A discipline: its kind, place in the device, and the words after its kind.
#[derive(Clone, Debug)]
pub(crate) struct Discipline {
    pub kind: Word,
    pub parent: Name,
    pub handle: Option<u16>,
    pub words: Vec<Word>,
    /// Words of the size table (`stab`).
    pub stab: Vec<Word>,
    pub line: Place,
    /// Whether `tc` printed the discipline; otherwise a command set it up.
    pub shown: bool,
}

/// A class of a discipline.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub kind: Word,
    pub name: Name,
    pub parent: Name,
    pub words: Vec<Word>,
    pub line: Place,
}

/// A device after all commands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Device {
    pub name: String,
    /// Disciplines by the place where each is attached ([`Device::seat`]).
    pub seats: BTreeMap<Name, Discipline>,
    /// Places of the disciplines that have a handle.
    pub handles: BTreeMap<u16, Name>,
    /// Classes, in the order of their names; `order` has the order of their creation.
    pub classes: BTreeMap<Name, Class>,
    pub order: Vec<Name>,
    pub filters: Vec<Filter>,
    /// Place where the ingress discipline was set up.
    pub ingress: Option<Place>,
    /// Queue length of the device in packets (`txqueuelen`), if the texts set it.
    pub length: Option<u32>,
}

impl Device {
    pub fn root(&self) -> Option<&Discipline> {
        self.seats.get(&Name::ROOT)
    }

    pub fn by_handle(&self, handle: u16) -> Option<&Discipline> {
        self.handles.get(&handle).and_then(|seat| self.seats.get(seat))
    }

    /// Whether a user set up the root discipline; false if it is Linux's default.
    pub fn is_configured(&self) -> bool {
        self.root().is_some_and(|root| !root.shown || root.handle.is_some())
    }

    /// Whether the device has a queue: a root discipline other than `noqueue` and `noop`.
    pub fn holds(&self) -> bool {
        self.root().is_some_and(|root| !matches!(root.kind.text.as_str(), "noqueue" | "noop"))
    }

    /// Names of the devices to which incoming packets are redirected.
    pub fn redirects(&self) -> Vec<&str> {
        let ingress = self.filters.iter().filter(|f| f.parent.major == Name::INGRESS);
        let mut names: Vec<_> = ingress.filter_map(|f| f.redirect.as_deref()).collect();
        names.dedup();
        names
    }

    /// Returns where a discipline with this parent is attached. TBF and netem have one place for an
    /// inner discipline, regardless of the minor number of its parent.
    pub fn seat(&self, parent: Name) -> Name {
        let holder = (parent != Name::ROOT).then(|| self.by_handle(parent.major)).flatten();
        match holder {
            Some(holder) if SEATED.contains(&holder.kind.text.as_str()) => {
                Name::new(parent.major, 0)
            }
            _ => parent,
        }
    }

    /// Checks that a discipline is not in itself, and not in more than [`DEPTH`] disciplines.
    pub fn check_depth(&self, new: &Discipline) -> Result<(), Fault> {
        let (mut parent, mut depth) = (new.parent, 0);
        while parent != Name::ROOT
            && let Some(above) = self.by_handle(parent.major)
        {
            depth += 1;
            let kind = &new.kind.text;
            if Some(parent.major) == new.handle {
                return Err(new.kind.fault(format!("`{kind}` would contain itself")));
            }
            if depth > DEPTH {
                let why = format!("`{kind}` is nested in more than {DEPTH} disciplines");
                return Err(new.kind.fault(why));
            }
            parent = above.parent;
        }
        Ok(())
    }

    pub fn put(&mut self, one: Discipline) {
        let seat = self.seat(one.parent);
        if let Some(handle) = one.handle {
            self.handles.insert(handle, seat);
        }
        self.seats.insert(seat, one);
    }

    /// Returns the parts whose discipline the texts do not set up, each with its place and the
    /// number of the discipline. Linux rejects such commands.
    pub fn strays(&self) -> Vec<(Place, u16)> {
        let is_known = |number: &u16| {
            self.handles.contains_key(number)
                || *number == Name::INGRESS
                || *number == 0 && self.root().is_some_and(|root| root.handle.is_none())
        };
        let disciplines = self.seats.values().map(|one| (one.line, one.parent.major));
        let classes = self.classes.values().map(|one| (one.line, one.name.major));
        let filters = self.filters.iter().map(|one| (one.line, one.parent.major));
        let mut found: Vec<_> =
            disciplines.chain(classes).chain(filters).filter(|(_, n)| !is_known(n)).collect();
        found.sort_unstable();
        found
    }

    pub fn put_class(&mut self, class: Class) {
        let name = class.name;
        if self.classes.insert(name, class).is_none() {
            self.order.push(name);
        }
    }

    pub fn remove_class(&mut self, name: Name) {
        self.classes.remove(&name);
        self.order.retain(|one| *one != name);
    }

    /// Returns the disciplines that are attached below the discipline with this number.
    pub fn inside(&self, handle: u16) -> impl Iterator<Item = &Discipline> {
        let range = Name::new(handle, 0)..=Name::new(handle, u16::MAX);
        self.seats.range(range).map(|(_, one)| one).filter(|one| one.parent != Name::ROOT)
    }

    /// Returns the classes of the discipline with this number, in the order of their creation.
    pub fn classes_of(&self, handle: u16) -> Vec<&Class> {
        let of = self.order.iter().filter(|name| name.major == handle);
        of.filter_map(|name| self.classes.get(name)).collect()
    }

    /// Returns the classes of the discipline with this number, each behind its parent, and those that
    /// would contain themselves.
    pub fn parents_first(&self, handle: u16) -> (Vec<&Class>, Vec<&Class>) {
        let (mut waiting, mut found) = (self.classes_of(handle), Vec::new());
        let mut pending: BTreeSet<Name> = waiting.iter().map(|class| class.name).collect();
        let mut before = 0;
        while waiting.len() != before {
            before = waiting.len();
            waiting.retain(|class| {
                let waits = class.parent.minor != 0 && pending.contains(&class.parent);
                if !waits {
                    pending.remove(&class.name);
                    found.push(*class);
                }
                waits
            });
        }
        (found, waiting)
    }

    /// Removes the discipline at a place with everything in it: disciplines, classes and filters.
    pub fn take_out(&mut self, seat: Name) {
        let mut waiting = vec![seat];
        while let Some(seat) = waiting.pop() {
            let Some(gone) = self.seats.remove(&seat) else { continue };
            let Some(handle) = gone.handle else { continue };
            self.handles.remove(&handle);
            let inner = self
                .seats
                .iter()
                .filter(|(_, d)| d.parent != Name::ROOT && d.parent.major == handle);
            waiting.extend(inner.map(|(seat, _)| *seat));
            self.classes.retain(|name, _| name.major != handle);
            self.order.retain(|name| name.major != handle);
            self.filters.retain(|filter| filter.parent.major != handle);
        }
    }

    /// Removes everything except the ingress discipline and its filters.
    pub fn clear(&mut self) {
        let ingress = std::mem::take(&mut self.filters);
        *self = Self {
            name: std::mem::take(&mut self.name),
            ingress: self.ingress,
            length: self.length,
            filters: ingress.into_iter().filter(|f| f.parent.major == Name::INGRESS).collect(),
            ..Self::default()
        };
    }

    /// Removes the filters of the ingress discipline.
    pub fn clear_ingress(&mut self) {
        self.ingress = None;
        self.filters.retain(|filter| filter.parent.major != Name::INGRESS);
    }
}
