//! The description of a discipline's classes: their parameters, their disciplines, and the filters.

use super::filter::Filter;
use super::statements::{self, END, Statement};
use crate::device::Device;
use crate::discipline::Sink;
use crate::fifo;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::params::{Params, tables};
use crate::tc::{Inside, Nested, TXQUEUELEN};
use crate::typed::with_unit;
use sojourn_units::data;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{self, Given, Kind, Table, Text, Token, Word, WordError};
use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Words that every classful discipline has.
pub(crate) const TREE: &[Word] = sojourn_units::words! {
    "handle", Kind::Name, "1:", "Number of the discipline, in hexadecimal: the names of its classes begin with it.";
    "txqueuelen", Kind::Packets, "1000p", "Limit in packets of each class without its own discipline; in Linux a property of the device.";
    ";", Kind::Rest, "", "Statements class, qdisc and filter, each after a semicolon; their words are listed below.";
};

/// Optional word between a class's own words and its discipline.
const CHILD: &str = "child";

/// Parameters of one class of a discipline.
pub trait ClassParams: Parameters<On = Device> + Clone + PartialEq {
    /// Name of the discipline.
    const DISCIPLINE: &'static str;

    /// Whether a class may contain other classes.
    const NESTED: bool = false;

    /// Whether each band has a class without a statement.
    const IMPLICIT: bool = false;

    /// Whether filters may send packets to the classes.
    const FILTERED: bool = true;

    /// Whether Linux allows the discipline only at the root of a device.
    const AT_ROOT: bool = false;

    /// Whether a statement about an existing class resets the values that it does not name.
    const RESTATED: bool = false;

    /// Words allowed inside the value of another word; each has a value.
    const INNER: &'static [&'static str] = &[];

    /// Computes values that depend on other values.
    ///
    /// # Errors
    /// Values that contradict each other.
    fn settle(&mut self, _given: &Given, _device: &Device) -> Result<(), WordError> {
        Ok(())
    }
}

/// A class of a discipline.
#[data]
#[derive(Clone, Debug, PartialEq)]
pub struct Class<C> {
    /// Minor number of the class.
    pub id: u16,
    /// Minor number of the class that contains this class; 0 for the discipline itself.
    pub parent: u16,
    /// Parameters of the class.
    #[serde(flatten)]
    pub words: C,
    /// Discipline of the class; `None` means a pfifo with a limit of [`Tree::txqueuelen`].
    pub child: Option<Box<Params>>,
}

impl<C: ClassParams> Class<C> {
    /// Returns whether a description needs a statement about the class: bands with default values
    /// exist without one.
    fn needs_statement(&self) -> bool {
        !C::IMPLICIT || !self.words.write(Text::new("")).done().is_empty()
    }
}

/// Classes of a discipline, and the filters that send packets to them.
#[data]
#[derive(Clone, Debug, PartialEq)]
pub struct Tree<C> {
    /// Number of the discipline, which is the major number of its classes' names.
    pub handle: u16,
    /// Limit in packets of a class without its own discipline.
    pub txqueuelen: u32,
    /// Classes, in the order of creation.
    pub classes: Vec<Class<C>>,
    /// Filters, in the order in which they are tried.
    pub filters: Vec<Filter>,
    #[serde(skip)]
    index: Index,
}

/// Where the classes are, and which contain classes; computed at the first use after a change.
#[derive(Clone, Debug, Default)]
struct Index(OnceLock<(BTreeMap<u16, usize>, BTreeSet<u16>)>);

impl PartialEq for Index {
    /// Equal classes have equal indices.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl<C> Default for Tree<C> {
    fn default() -> Self {
        Self {
            handle: 1,
            txqueuelen: TXQUEUELEN,
            classes: Vec::new(),
            filters: Vec::new(),
            index: Index::default(),
        }
    }
}

/// A fault of a complete description of classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The part that causes the fault.
    pub about: About,
    /// Message in one sentence.
    pub message: String,
}

/// A part of a description of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The class with this minor number, or its discipline.
    Class(u16),
    /// The filter with this index.
    Filter(usize),
}

/// The inner discipline to whose classes a statement belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// The discipline that the statement with this index sets.
    Statement(usize),
    /// The discipline of the class with this index.
    Class(usize),
}

impl<C> Tree<C> {
    /// Returns the class with the minor number `id`.
    pub fn class(&self, id: u16) -> Option<&Class<C>> {
        self.index().0.get(&id).map(|place| &self.classes[*place])
    }

    fn class_mut(&mut self, id: u16) -> Option<&mut Class<C>> {
        self.index().0.get(&id).copied().map(|place| &mut self.classes[place])
    }

    fn index(&self) -> &(BTreeMap<u16, usize>, BTreeSet<u16>) {
        self.index.0.get_or_init(|| {
            let classes = self.classes.iter();
            let places = classes.clone().enumerate().map(|(place, class)| (class.id, place));
            (places.collect(), classes.map(|class| class.parent).collect())
        })
    }

    fn push(&mut self, class: Class<C>) {
        if let Some((places, parents)) = self.index.0.get_mut() {
            places.insert(class.id, self.classes.len());
            parents.insert(class.parent);
        }
        self.classes.push(class);
    }

    fn retain(&mut self, stays: impl FnMut(&Class<C>) -> bool) {
        self.classes.retain(stays);
        self.index = Index::default();
    }

    /// Returns the minor numbers of the classes, in the order of creation.
    pub(crate) fn ids(&self) -> Vec<u16> {
        self.classes.iter().map(|class| class.id).collect()
    }

    /// Removes the classes of bands above `bands`.
    pub(crate) fn keep_bands(&mut self, bands: u16) {
        self.retain(|class| class.id <= bands);
    }

    /// Returns the class to which the first matching filter sends a packet; `None` if no filter
    /// matches.
    pub(crate) fn filtered<P: Packet>(&self, packet: &P, sink: &impl Sink<P>) -> Option<u16> {
        // Most filters need no headers: request them only when needed.
        let headers = LazyCell::new(|| sink.headers(packet));
        self.filters.iter().find_map(|filter| filter.class(packet, || *headers))
    }

    /// Returns whether the class with the minor number `id` contains no classes.
    pub fn is_leaf(&self, id: u16) -> bool {
        !self.index().1.contains(&id)
    }

    /// Returns the parameters of the discipline in the class with the minor number `id`.
    pub(crate) fn child(&self, id: u16) -> Params {
        match self.class(id).and_then(|class| class.child.as_deref()) {
            Some(child) => child.clone(),
            None => Params::Fifo(fifo::Params { unit: Unit::Packets, limit: self.txqueuelen }),
        }
    }

    /// Returns whether this discipline, or an inner one, has the number `handle`.
    pub(crate) fn has_handle(&self, handle: u16) -> bool {
        let within =
            |class: &Class<C>| class.child.as_ref().is_some_and(|child| child.has_handle(handle));
        self.handle == handle || self.classes.iter().any(within)
    }

    /// Returns whether the classes of `self` that still exist in `after` have the same parents
    /// there, and are leaves there exactly if they are leaves here.
    pub(crate) fn keeps_shape(&self, after: &Self) -> bool {
        self.classes.iter().all(|class| {
            after.class(class.id).is_none_or(|other| {
                let is_leaf = self.is_leaf(class.id);
                other.parent == class.parent && after.is_leaf(class.id) == is_leaf
            })
        })
    }

    /// Returns the name of the class with the minor number `id`; 0 gives the name of the
    /// discipline.
    pub(crate) fn name(&self, id: u16) -> String {
        match id {
            0 => format!("{:x}:", self.handle),
            id => format!("{:x}:{id:x}", self.handle),
        }
    }

    /// Reads the words before the statements.
    pub(crate) fn set(&mut self, given: &Given) -> Result<(), WordError> {
        if let Some(text) = given.text("handle") {
            let name = statements::Name::read(text).filter(|name| name.minor == 0);
            let major = name.and_then(|name| name.major).filter(|major| *major != 0);
            self.handle = major.ok_or_else(|| {
                given.error(
                    "handle",
                    format!("`{text}` is not a number of a discipline, such as 1:"),
                )
            })?;
        }
        if let Some(packets) = given.integer("txqueuelen") {
            self.txqueuelen = u32::try_from(packets).unwrap_or(u32::MAX);
        }
        Ok(())
    }
}

impl<C: ClassParams> Tree<C> {
    /// Returns classes, inner disciplines and filters, for the commands of `tc`.
    pub(crate) fn inside(&self) -> Inside<'_> {
        let words = |class: &Class<C>| class.words.write(Text::new(C::DISCIPLINE)).done();
        let classes = self.classes.iter().filter(|class| class.needs_statement());
        Inside {
            handle: self.handle,
            txqueuelen: Some(self.txqueuelen),
            classes: classes.map(|class| (class.id, class.parent, words(class))).collect(),
            children: self
                .classes
                .iter()
                .filter_map(|c| Some((c.id, c.child.as_deref()? as &dyn Nested)))
                .collect(),
            filters: &self.filters,
            at_root: C::AT_ROOT,
            selects: C::FILTERED,
        }
    }

    /// Reads the statements: each creates, changes or deletes a class, a discipline or filters.
    ///
    /// # Errors
    /// A statement that cannot be read, or that contradicts the others.
    pub(crate) fn read(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        let Some(text) = given.text(END) else { return Ok(()) };
        statements::read(text)
            .and_then(|all| self.apply(text, &all, device))
            .map_err(|error| given.within(END, error))
    }

    /// Returns the faults of the whole: filters must send packets only to classes that hold packets,
    /// only such classes have inner disciplines, and bands must exist. `is_leaf` returns whether a
    /// class holds packets.
    pub(crate) fn faults(&self, is_leaf: impl Fn(u16) -> bool) -> Vec<Fault> {
        let mut faults = Vec::new();
        let leaves: BTreeSet<u16> =
            self.filters.iter().flat_map(Filter::classes).filter(|id| is_leaf(*id)).collect();
        for (n, filter) in self.filters.iter().enumerate() {
            if let Some(id) = filter.classes().find(|id| !leaves.contains(id)) {
                let message = format!(
                    "a filter sends packets to `{}`, which is not a class that holds packets",
                    self.name(id)
                );
                faults.push(Fault { about: About::Filter(n), message });
            }
        }
        for class in self.classes.iter().filter(|class| C::IMPLICIT || class.child.is_some()) {
            if is_leaf(class.id) {
                continue;
            }
            let name = self.name(class.id);
            let message = if C::IMPLICIT {
                format!("class `{name}` does not exist")
            } else {
                format!("`{name}` holds no packets and cannot have a discipline")
            };
            faults.push(Fault { about: About::Class(class.id), message });
        }
        faults
    }

    /// Returns the minor numbers of the classes that contain classes, and of the discipline.
    pub(crate) fn parents(&self) -> BTreeSet<u16> {
        self.index().1.clone()
    }

    /// Removes the bands that have default values, since they exist without a statement.
    pub(crate) fn remove_defaults(&mut self) {
        self.retain(|class| class.child.is_some() || class.needs_statement());
    }

    /// Returns a fault as an error whose position is the last statement about the class or filter.
    pub(crate) fn placed(&self, given: &Given, fault: Fault) -> WordError {
        let all = given.text(END).and_then(|text| statements::read(text).ok()).unwrap_or_default();
        let is_about = |one: &Statement<'_>| match fault.about {
            About::Class(id) => {
                let name = if one.object.text == "qdisc" { one.parent } else { one.class };
                name.is_some_and(|(name, _)| name.minor == id)
            }
            About::Filter(n) => {
                one.object.text == "filter"
                    && Filter::read(one, self.handle).is_ok_and(|read| read == self.filters[n])
            }
        };
        match all.iter().rfind(|one| self.major(one) == self.handle && is_about(one)) {
            Some(statement) => given.within(END, statement.error(fault.message)),
            None => given.error(END, fault.message),
        }
    }

    /// Checks that the discipline keeps its number, and leaves and inner classes keep their role.
    ///
    /// # Errors
    /// The discipline's number changes, a leaf gets classes, or an inner class loses its last
    /// class.
    pub(crate) fn check_change(&self, before: &Self, given: &Given) -> Result<(), WordError> {
        if self.handle != before.handle {
            return Err(given.error("handle", "`handle` cannot be changed"));
        }
        for class in &self.classes {
            let was_there = before.class(class.id).is_some();
            if was_there && before.is_leaf(class.id) != self.is_leaf(class.id) {
                let name = self.name(class.id);
                let message = format!("`{name}` cannot gain its first class or lose its last one");
                return Err(given.error(END, message));
            }
        }
        Ok(())
    }

    fn major(&self, statement: &Statement<'_>) -> u16 {
        let name =
            if statement.object.text == "class" { statement.class } else { statement.parent };
        name.and_then(|(name, _)| name.major).unwrap_or(self.handle)
    }

    /// Returns the owner of the discipline with the number `major`: the statement or class that
    /// contains it, directly or inside another discipline. `sets` has the statement that sets each
    /// discipline with a number.
    fn owner(
        &self,
        major: u16,
        all: &[Statement<'_>],
        sets: &BTreeMap<u16, usize>,
    ) -> Option<Owner> {
        let mut handle = major;
        for _ in 0..=all.len() {
            let Some(&n) = sets.get(&handle) else {
                let has = |class: &Class<C>| {
                    class.child.as_ref().is_some_and(|child| child.has_handle(handle))
                };
                return self.classes.iter().position(has).map(Owner::Class);
            };
            let above = self.major(&all[n]);
            if above == self.handle {
                return Some(Owner::Statement(n));
            }
            handle = above;
        }
        None
    }

    fn apply(
        &mut self,
        text: &str,
        all: &[Statement<'_>],
        device: &Device,
    ) -> Result<(), WordError> {
        let mut sets = BTreeMap::new();
        for (n, statement) in all.iter().enumerate() {
            if let Some(handle) = statement.handle
                && (handle == self.handle || sets.insert(handle, n).is_some())
            {
                return Err(statement.error(format!(
                    "two disciplines have the number `{handle:x}:`; numbers must differ"
                )));
            }
        }
        let mut inner = BTreeMap::<Owner, Vec<&Statement<'_>>>::new();
        for statement in all {
            let major = self.major(statement);
            if major == self.handle {
                continue;
            }
            let owner = self.owner(major, all, &sets).ok_or_else(|| {
                statement.error(format!("no inner discipline has the number `{major:x}:`"))
            })?;
            inner.entry(owner).or_default().push(statement);
        }
        for (owner, statements) in &inner {
            if let Owner::Class(n) = owner
                && let Some(child) = self.classes[*n].child.as_deref_mut()
            {
                let change = format!("{}{}", child.name(), joined(statements));
                let changed = child.change(&change, device);
                *child = changed.map_err(|error| statements[0].error(error.to_string()))?;
            }
        }
        for (n, statement) in all.iter().enumerate() {
            if self.major(statement) != self.handle {
                continue;
            }
            let within = inner.get(&Owner::Statement(n)).map_or(&[][..], Vec::as_slice);
            match statement.object.text {
                "class" => self.set_class(text, statement, within, device)?,
                "qdisc" => self.set_child(statement, within, device)?,
                _ if !C::FILTERED => {
                    let message = format!("`{}` has no filters", C::DISCIPLINE);
                    return Err(statement.error(message));
                }
                _ if statement.deletes => self.filters.clear(),
                _ => {
                    if let Some((name, token)) = statement.parent
                        && name.minor != 0
                    {
                        let message =
                            "filters of classes are not modelled; set the discipline as parent";
                        return Err(token.error(message.to_owned(), Vec::new()));
                    }
                    self.filters.push(Filter::read(statement, self.handle)?);
                }
            }
        }
        Ok(())
    }

    fn set_class(
        &mut self,
        text: &str,
        statement: &Statement<'_>,
        within: &[&Statement<'_>],
        device: &Device,
    ) -> Result<(), WordError> {
        let Some((name, token)) = statement.class.filter(|(name, _)| name.minor != 0) else {
            return Err(
                statement.error(format!("`class` needs a name, such as {:x}:10", self.handle))
            );
        };
        let refuse = |message: String| Err(token.error(message, Vec::new()));
        let id = name.minor;
        if statement.deletes {
            if self.class(id).is_none() || C::IMPLICIT {
                return refuse(format!(
                    "class `{}` does not exist or cannot be deleted",
                    token.text
                ));
            }
            if !self.is_leaf(id) {
                return refuse(format!("`{}` contains classes; delete them first", token.text));
            }
            self.retain(|class| class.id != id);
            return Ok(());
        }
        let present = self.class(id);
        let given_parent = statement.parent.map(|(parent, _)| parent.minor);
        let parent = given_parent.or(present.map(|class| class.parent)).unwrap_or_default();
        if present.is_some_and(|class| class.parent != parent) {
            return refuse(format!("`{}` cannot move to another class", token.text));
        }
        if parent != 0 && (!C::NESTED || parent == id || self.class(parent).is_none()) {
            let parent = self.name(parent);
            return refuse(format!("`{}` cannot be in `{parent}`", token.text));
        }
        let (own, child) = split::<C>(text, &statement.words);
        self.put_class(id, parent, &own, statement.end(), device)?;
        match child.split_first() {
            Some((first, rest)) => self.put_child(id, first, rest, &joined(within), device),
            None => Ok(()),
        }
    }

    /// Sets the parameters of the class `id` from its words; creates it in `parent` if it is new.
    fn put_class(
        &mut self,
        id: u16,
        parent: u16,
        own: &[Token<'_>],
        end: usize,
        device: &Device,
    ) -> Result<(), WordError> {
        let values = with_units::<C>(own);
        let own: Vec<_> =
            own.iter().zip(&values).map(|(token, text)| Token { text, at: token.at }).collect();
        let table = Table { name: "class", summary: "", source: "", words: C::WORDS };
        let given = words::read(&table, &own, end)?;
        let present = self.class(id).filter(|_| !C::RESTATED).map(|class| class.words.clone());
        let mut class = present.unwrap_or_else(|| C::new(device));
        class.set(&given)?;
        class.settle(&given, device)?;
        match self.class_mut(id) {
            Some(present) => present.words = class,
            None => self.push(Class { id, parent, words: class, child: None }),
        }
        Ok(())
    }

    /// Adds the class that a [`super::ClassBuilder`] describes.
    pub(super) fn add_class(
        &mut self,
        (id, parent): (u16, u16),
        text: &str,
        words: &[Token<'_>],
        device: &Device,
    ) -> Result<(), WordError> {
        let (own, others) = split::<C>(text, words);
        let own = [own, others].concat();
        self.put_class(id, parent, &own, text.len(), device)
    }

    /// Gives the class `id` a discipline; creates the class of a band.
    pub(super) fn add_child(&mut self, id: u16, child: Params, device: &Device) -> bool {
        if self.class(id).is_none() && C::IMPLICIT {
            self.push(Class { id, parent: 0, words: C::new(device), child: None });
        }
        let class = self.class_mut(id);
        class.map(|class| class.child = Some(Box::new(child))).is_some()
    }

    fn set_child(
        &mut self,
        statement: &Statement<'_>,
        within: &[&Statement<'_>],
        device: &Device,
    ) -> Result<(), WordError> {
        let Some((name, token)) = statement.parent.filter(|(name, _)| name.minor != 0) else {
            return Err(statement
                .error(format!("`qdisc` needs a class, such as `parent {:x}:10`", self.handle)));
        };
        let id = name.minor;
        if self.class(id).is_none() {
            if !C::IMPLICIT {
                let message = format!("class `{}` does not exist", token.text);
                return Err(token.error(message, Vec::new()));
            }
            self.push(Class { id, parent: 0, words: C::new(device), child: None });
        }
        if statement.deletes {
            if let Some(class) = self.class_mut(id) {
                class.child = None;
            }
            return Ok(());
        }
        let Some((first, rest)) = statement.words.split_first() else {
            return Err(statement.error("`qdisc` needs a discipline, such as `fq_codel`"));
        };
        let has_classes = |table: &Table| table.words.iter().any(|word| word.name == "handle");
        let is_tree = tables().iter().any(|table| table.name == first.text && has_classes(table));
        let has_handle = rest.iter().any(|token| token.text == "handle");
        let mut more = match statement.handle {
            Some(handle) if is_tree && !has_handle => format!(" handle {handle:x}:"),
            _ => String::new(),
        };
        more.push_str(&joined(within));
        self.put_child(id, first, rest, &more, device)
    }

    /// Gives the class `id` the discipline that the words `first` and `rest` describe; `more` is
    /// appended to their text.
    fn put_child(
        &mut self,
        id: u16,
        first: &Token<'_>,
        rest: &[Token<'_>],
        more: &str,
        device: &Device,
    ) -> Result<(), WordError> {
        let (text, at) = words::untouched(*first, rest);
        let Some(class) = self.class_mut(id) else { return Ok(()) };
        let whole = format!("{text}{more}");
        let read = Params::read_within(class.child.as_deref(), &whole, device);
        let child = read.map_err(|error| {
            // An error in appended text is shown at the end of the statement's own words.
            let place = |n: usize| at.start + n.min(text.len());
            WordError { at: place(error.at.start)..place(error.at.end), ..error }
        })?;
        class.child = Some(Box::new(child));
        Ok(())
    }

    /// Creates missing classes from 1 to `last`, and gives `child` to each class without a
    /// discipline.
    pub(crate) fn fill(&mut self, last: u16, device: &Device, child: &Params) {
        for id in 1..=last {
            if self.class(id).is_none() {
                self.push(Class { id, parent: 0, words: C::new(device), child: None });
            }
        }
        for class in &mut self.classes {
            class.child.get_or_insert_with(|| Box::new(child.clone()));
        }
        self.classes.sort_by_key(|class| class.id);
        self.index = Index::default();
    }

    /// Appends `handle`, `txqueuelen`, classes, inner disciplines and filters to a description.
    pub(crate) fn write(&self, mut text: Text) -> Text {
        if self.handle != 1 {
            text = text.value("handle", self.name(0));
        }
        if self.txqueuelen != TXQUEUELEN {
            text = text.value("txqueuelen", self.txqueuelen);
        }
        for class in self.classes.iter().filter(|class| class.needs_statement()) {
            text = text.flag(END).value("class", self.name(class.id));
            if C::NESTED {
                text = text.value("parent", self.name(class.parent));
            }
            text = class.words.write(text);
        }
        for class in &self.classes {
            if let Some(child) = &class.child {
                text = text.flag(END).value("qdisc parent", self.name(class.id));
                text = text.flag(&child.to_text());
            }
        }
        for filter in &self.filters {
            text = filter.write(self.handle, text.flag(END).value("filter parent", self.name(0)));
        }
        text
    }
}

/// Returns statements as text, each after a semicolon.
fn joined(statements: &[&Statement<'_>]) -> String {
    let mut text = String::new();
    for statement in statements {
        let (first, rest) = (statement.all[0], &statement.all[1..]);
        text.extend([" ", END, " ", &words::untouched(first, rest).0]);
    }
    text
}

/// Returns the texts of a class's words; values without a unit get the unit that `tc` assumes.
fn with_units<'a, C: ClassParams>(words: &[Token<'a>]) -> Vec<Cow<'a, str>> {
    let kind = |name: &str| C::WORDS.iter().find(|word| word.name == name).map(|word| word.kind);
    let before = std::iter::once(None).chain(words.iter().map(|token| kind(token.text)));
    let value = |(kind, token): (Option<Kind>, &Token<'a>)| match kind {
        Some(kind) => with_unit(kind, token.text),
        None => token.text.into(),
    };
    before.zip(words).map(value).collect()
}

/// Splits the words of a statement into those of the class and those of its discipline.
fn split<'a, C: ClassParams>(
    text: &'a str,
    words: &[Token<'a>],
) -> (Vec<Token<'a>>, Vec<Token<'a>>) {
    let known = |token: &str| C::WORDS.iter().find(|word| word.spellings().any(|s| s == token));
    let mut own = Vec::new();
    let mut n = 0;
    if words.first().is_some_and(|word| word.text == C::DISCIPLINE && known(word.text).is_none()) {
        n = 1;
    }
    while let Some(token) = words.get(n) {
        if token.text == CHILD {
            return (own, words[n + 1..].to_vec());
        }
        let Some(word) = known(token.text) else {
            if tables().iter().any(|table| table.name == token.text) {
                return (own, words[n..].to_vec());
            }
            own.push(*token);
            n += 1;
            continue;
        };
        own.push(*token);
        n += 1;
        if !word.takes_value() {
            continue;
        }
        let begin = n;
        while words.get(n).is_some_and(|word| C::INNER.contains(&word.text)) {
            n += 2;
        }
        n = n.max(begin + 1).min(words.len());
        if let (Some(first), Some(last)) = (words.get(begin), words.get(n - 1)) {
            own.push(Token { text: &text[first.at..last.range().end], at: first.at });
        }
    }
    (own, Vec::new())
}
