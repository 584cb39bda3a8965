//! The queue of a device, from its disciplines, classes and filters.

use crate::bucket::flattened;
use crate::device::{Class, Device, Discipline, SEATED};
use crate::filter::Filter;
use crate::firewall::{Firewall, Rewriter, Step, Verdict, Ways};
use crate::name::{Name, hexadecimal, minor};
use crate::place::{Fault, Notice, Place, Problem, Word, value_of};
use crate::rules::{Hosts, Rule, Test, descended, meaning, spread};
use crate::values::{self, Remark};
use crate::{cbq, mq};
use sojourn_link::Netem;
use sojourn_queue::classes::{About, ClassBuilder, classes_mut, hold};
use sojourn_queue::{Params, classes};
use sojourn_units::words::{Token, WordError};
use std::collections::{BTreeMap, BTreeSet};

/// Disciplines whose classes have parameters.
pub(crate) const CLASSFUL: [&str; 5] = ["htb", "hfsc", "drr", "ets", "prio"];
/// Disciplines that have a default class for packets without a matching filter.
const DEFAULT: [&str; 2] = ["htb", "hfsc"];
/// Disciplines whose classes exist without a statement.
pub(crate) const IMPLICIT: [&str; 3] = ["prio", "ets", "mq"];
/// Order that Linux gives to the first filter whose command states no order. Each later filter
/// without a stated order gets the next lower number.
const AUTOMATIC: u32 = 0xc000;
/// Number that Linux gives to the first discipline without a handle.
const UNNAMED: u16 = 0x8001;

/// The filters of the queue that replace one filter of the texts.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Place of the filter in the texts.
    pub line: Place,
    /// Number of the discipline that evaluates the filters.
    pub handle: u16,
    /// The filters, in the order of evaluation.
    pub filters: Vec<classes::Filter>,
}

/// The queue of a device, with problems and notices.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// The queue; `None` if the device has impairments only, or nothing can be read.
    pub queue: Option<Params>,
    /// The description of the queue, in the words of the texts.
    pub text: String,
    /// Impairments of the device in netem's words; `None` without any.
    pub netem: Option<String>,
    /// Parts that cannot be read.
    pub problems: Vec<Problem>,
    /// Messages on how parts were read.
    pub notices: Vec<Notice>,
    /// Filters of the texts, those of one discipline in the order of evaluation.
    pub filters: Vec<Selection>,
    /// Whether the classes of the root discipline are not in the texts.
    pub lacks_classes: bool,
}

/// Words at their positions in one text, from which the places of errors are found.
#[derive(Default)]
struct Arena {
    text: String,
    words: Vec<(usize, Word)>,
}

impl Arena {
    fn of<'w>(words: impl IntoIterator<Item = &'w Word>) -> Self {
        let mut arena = Self::default();
        for word in words {
            arena.words.push((arena.text.len(), word.clone()));
            arena.text.push_str(&word.text);
            arena.text.push(' ');
        }
        arena
    }

    fn tokens(&self) -> Vec<Token<'_>> {
        let token = |(at, word): &(usize, Word)| Token {
            text: &self.text[*at..*at + word.text.len()],
            at: *at,
        };
        self.words.iter().map(token).collect()
    }

    fn fault(&self, error: WordError) -> Fault {
        let at = self.words.iter().rfind(|(at, _)| *at <= error.at.start);
        let is_inside = error.at.start < self.text.trim_end().len();
        Fault::of(error, at.filter(|_| is_inside).map(|(_, word)| word))
    }
}

/// Returns the queue of a device. `rules` is the firewall that packets pass before the queue.
pub(crate) fn build(
    device: &Device,
    hosts: &Hosts,
    rules: Option<&Firewall>,
    on: &sojourn_queue::Device,
) -> Built {
    let mut device = device.clone();
    let mut built = Built::default();
    cbq::replaced(&mut device, &mut built.notices);
    mq::counted(&mut device, &mut built.notices);
    let none = Firewall::default();
    let mut builder = Builder {
        parents: device.classes.values().map(|class| class.parent).collect(),
        filters: by_major(&device),
        device: &device,
        hosts,
        firewall: rules.unwrap_or(&none),
        ways: BTreeMap::new(),
        on,
        built,
        strangers: BTreeMap::new(),
        unnamed: UNNAMED,
    };
    builder.root();
    builder.built
}

/// Returns the filters by the number of the discipline that evaluates them, with their order.
fn by_major(device: &Device) -> BTreeMap<Option<u16>, Vec<(usize, &Filter)>> {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for (n, filter) in device.filters.iter().enumerate() {
        let major = (filter.parent != Name::ROOT).then_some(filter.parent.major);
        found.entry(major).or_default().push((n, filter));
    }
    found
}

/// A discipline that was read: its parameters, and its description in two parts.
struct Part {
    params: Params,
    /// Name and own words.
    head: String,
    /// Statements of its classes, of their disciplines, and of its filters.
    statements: Vec<String>,
}

struct Builder<'a> {
    device: &'a Device,
    hosts: &'a Hosts,
    firewall: &'a Firewall,
    /// Conditions by which packets match each rule of the firewall.
    ways: BTreeMap<(String, usize), Ways>,
    on: &'a sojourn_queue::Device,
    /// Classes that contain classes.
    parents: BTreeSet<Name>,
    filters: BTreeMap<Option<u16>, Vec<(usize, &'a Filter)>>,
    built: Built,
    /// Addresses in filters that no host has, and where.
    strangers: BTreeMap<String, Place>,
    /// Number of the next discipline without a handle.
    unnamed: u16,
}

impl Builder<'_> {
    fn note(&mut self, line: Place, message: impl Into<String>) {
        let notice = Notice { place: Some(line), message: message.into() };
        if !self.built.notices.contains(&notice) {
            self.built.notices.push(notice);
        }
    }

    fn fault(&mut self, line: Place, fault: Fault) {
        self.built.problems.push(fault.problem(line));
    }

    fn remark(&mut self, remarks: Vec<Remark>) {
        for (word, message) in remarks {
            self.note(word.place, message);
        }
    }

    fn root(&mut self) {
        let Some(root) = self.device.root() else { return };
        let mut root = root.clone();
        for (_, filter) in self.filters.get(&Some(Name::INGRESS)).cloned().into_iter().flatten() {
            self.idle(filter);
            if filter.parent.minor == Name::EGRESS {
                let why = "filters at the egress of `clsact` are not modelled: give the filter to \
                           the root discipline, by `parent`";
                self.fault(filter.line, filter.kind.fault(why));
            }
        }
        let has_queues = !mq::transmit_queues(self.device).is_empty();
        if root.kind.is("mqprio") || root.kind.is("mq") && root.shown && !has_queues {
            match mq::single(self.device) {
                Ok((one, count)) => {
                    if count > 1 {
                        let message = format!(
                            "{count} transmit queues with equal disciplines are read as one"
                        );
                        self.note(root.line, message);
                    }
                    root = Discipline { parent: Name::ROOT, ..one };
                }
                Err(fault) => return self.fault(root.line, fault),
            }
        }
        if root.kind.is("netem") {
            self.built.netem = self.netem(&root);
            match self.seated(&root).cloned() {
                Some(inner) => root = inner,
                None => return,
            }
        }
        if root.kind.is("cake_mq") {
            let message =
                "`cake_mq` is read as one `cake` with the whole rate, on a single transmit queue";
            self.note(root.line, message);
        }
        if matches!(root.kind.text.as_str(), "noqueue" | "noop") {
            return;
        }
        root = self.without_classes(root);
        self.firewall_ways();
        if let Some(part) = self.discipline(&root, true) {
            self.built.text =
                std::iter::once(part.head).chain(part.statements).collect::<Vec<_>>().join(" ; ");
            self.built.queue = Some(part.params);
        }
        self.tell_strangers();
    }

    /// Returns the discipline of the default class, if only `tc qdisc show` was given, which does
    /// not print classes.
    fn without_classes(&mut self, root: Discipline) -> Discipline {
        let handle = root.handle.unwrap_or(0);
        let has_classes = self.device.order.iter().any(|name| name.major == handle);
        let minor = value_of(&root.words, "default").and_then(|word| minor(&word.text));
        let Some(minor) = minor.filter(|minor| {
            *minor != 0 && root.shown && !has_classes && self.device.filters.is_empty()
        }) else {
            return root;
        };
        let name = Name::new(handle, minor);
        let fifo = Word::new("pfifo", root.kind.place);
        let inner = self.device.seats.get(&name).cloned().unwrap_or_else(|| Discipline {
            kind: fifo,
            handle: None,
            words: Vec::new(),
            ..root.clone()
        });
        let message = format!(
            "the classes of `{handle:x}:` are not in these lines: all packets wait in the `{}` of \
             its default class `{name}`, without a limit of its rate; add the output of `tc class \
             show dev {}`",
            inner.kind.text, self.device.name
        );
        self.note(root.line, message);
        self.built.lacks_classes = true;
        Discipline { parent: Name::ROOT, ..inner }
    }

    fn tell_strangers(&mut self) {
        let Some((_, line)) = self.strangers.iter().min_by_key(|(_, line)| **line) else { return };
        let line = *line;
        let mut known: Vec<_> = self.strangers.iter().collect();
        known.sort_by_key(|(_, line)| **line);
        let listed: Vec<_> = known.iter().take(4).map(|(address, _)| address.as_str()).collect();
        let more =
            if known.len() > 4 { format!(" and {} more", known.len() - 4) } else { String::new() };
        let message = format!(
            "no host has {}{more}: filters with these addresses match no packet; --host \
             ADDRESS=NODE assigns an address",
            listed.join(", ")
        );
        self.note(line, message);
    }

    // Impairments

    /// Returns the discipline in a discipline that holds exactly one.
    fn seated(&self, holder: &Discipline) -> Option<&Discipline> {
        if !SEATED.contains(&holder.kind.text.as_str()) {
            return None;
        }
        self.device.inside(holder.handle?).next()
    }

    /// Returns the impairments of a netem. As in Linux, it holds at most 1000 packets without a
    /// stated limit.
    fn netem(&mut self, one: &Discipline) -> Option<String> {
        let mut words = one.words.clone();
        if !words.is_empty() && !words.iter().any(|word| word.is("limit")) {
            let place = one.kind.place;
            words.extend([Word::new("limit", place), Word::new("1000", place)]);
        }
        let arena = Arena::of(&words);
        let text = arena.text.trim_end().to_owned();
        if text.is_empty() {
            return None;
        }
        match Netem::parse(&text) {
            Ok(_) => {
                let message = "netem becomes the impairments of the link, which follow its queue";
                self.note(one.line, message);
                for message in Netem::warnings(&text) {
                    self.note(one.line, message);
                }
                Some(text)
            }
            Err(error) => {
                let mut fault = arena.fault(error);
                fault.message = format!("netem: {}", fault.message);
                self.fault(one.line, fault);
                None
            }
        }
    }

    // Disciplines

    /// Returns a discipline with everything in it.
    fn discipline(&mut self, one: &Discipline, at_root: bool) -> Option<Part> {
        let mut kind = one.kind.clone();
        if kind.is("cake_mq") {
            "cake".clone_into(&mut kind.text);
        }
        let name = kind.text.clone();
        let mut words = if one.shown {
            let (words, remark) = values::printed(&name, &one.words);
            if let Some(remark) = remark {
                self.note(one.line, remark);
            }
            words
        } else {
            one.words.clone()
        };
        if let Some(packets) = self.device.length.filter(|_| name == "pfifo_fast") {
            words.extend(pair("limit", packets, one.line));
        }
        if name == "tbf" {
            words.extend(self.framing(one, &words));
        } else if name != "htb" && !one.stab.is_empty() {
            let message =
                "the size table `stab` has no effect here: set the link's `overhead` and `cells`";
            self.note(one.line, message);
        }
        let mut default_word = None;
        if DEFAULT.contains(&name.as_str()) {
            default_word = self.default_word(one, &mut words);
        }
        let inner = self.seated(one).cloned();
        let mut held = None;
        if let Some(inner) = inner.as_ref() {
            if inner.kind.is("netem") {
                if at_root {
                    self.built.netem = self.netem(inner);
                } else {
                    self.misplaced_netem(inner);
                }
            } else {
                held = self.discipline(inner, false);
                self.without_limit(one.shown, inner, &mut words);
            }
        }
        let mut remarks = Vec::new();
        let words = values::read(&name, &words, &mut remarks);
        self.remark(remarks);
        let arena = Arena::of(std::iter::once(&kind).chain(&words));
        let tokens = arena.tokens();
        let (first, rest) = tokens.split_first()?;
        let mut head = arena.text.trim_end().to_owned();
        let mut statements = Vec::new();
        let held = held.map(|part: Part| {
            head = format!("{head} child {}", part.head);
            statements = part.statements;
            part.params
        });
        let end = arena.text.trim_end().len();
        let read = Params::from_words(*first, rest, end, held.is_some(), self.on);
        let mut params = read.map_err(|error| self.fault(one.line, arena.fault(error))).ok()?;
        if !at_root && classes_mut(&mut params).is_none() {
            // A discipline with classes has them only later.
            let description = arena.text.trim_end();
            for message in Params::warnings(description, self.on) {
                self.note(one.line, message);
            }
        }
        if let Some(held) = held {
            hold(&mut params, held);
        }
        if classes_mut(&mut params).is_some() {
            let handle = one.handle.unwrap_or_else(|| {
                if at_root {
                    return 1;
                }
                self.unnamed += 1;
                self.unnamed - 1
            });
            if handle != 1 || !at_root {
                head = head.replacen(&name, &format!("{name} handle {handle:x}:"), 1);
            }
            if let Some(packets) = self.device.length {
                head = format!("{head} txqueuelen {packets}p");
            }
            let into = classes_mut(&mut params)?;
            self.inside(one, handle, default_word, into, &mut statements);
        } else if inner.is_none() {
            self.ignored_filters(one.handle.unwrap_or(0), at_root, &name);
        }
        Some(Part { params, head, statements })
    }

    /// Removes the limits of a discipline whose inner discipline holds the packets.
    fn without_limit(&mut self, shown: bool, inner: &Discipline, words: &mut Vec<Word>) {
        for key in ["limit", "latency"] {
            let Some(at) = words.iter().position(|word| word.is(key)) else { continue };
            let gone: Vec<_> = words.drain(at..(at + 2).min(words.len())).collect();
            if let Some(value) = gone.get(1).filter(|_| !shown) {
                let message = format!(
                    "`{key} {}` has no effect: the inner `{}` holds the packets",
                    value.text, inner.kind.text
                );
                self.note(value.place, message);
            }
        }
    }

    /// Adds notices on the filters of a discipline that evaluates none.
    fn ignored_filters(&mut self, handle: u16, at_root: bool, name: &str) {
        let keys = [Some(Some(handle)), at_root.then_some(None)];
        let found: Vec<&Filter> = keys
            .iter()
            .flatten()
            .filter_map(|key| self.filters.get(key))
            .flat_map(|filters| filters.iter().map(|(_, filter)| *filter))
            .collect();
        for filter in found {
            let message = format!(
                "filters of `{name}` are ignored: it distinguishes flows by its own hash here \
                 (`{}`)",
                filter.words().join(" ")
            );
            self.note(filter.line, message);
        }
    }

    /// Returns the words of a shaper that are equivalent to the size table of its discipline.
    fn framing(&mut self, one: &Discipline, words: &[Word]) -> Vec<Word> {
        let mut found = Vec::new();
        for pair in one.stab.chunks(2) {
            let [key, value] = pair else { continue };
            let is_new = !words.iter().any(|word| word.is(&key.text));
            match key.text.as_str() {
                "overhead" if value.text.starts_with('-') => {
                    let message =
                        format!("the overhead of {} bytes in `stab` is ignored", value.text);
                    self.note(value.place, message);
                }
                "overhead" | "mpu" if is_new && value.text != "0" => {
                    found.extend([key.clone(), value.clone()]);
                }
                "linklayer" if is_new && matches!(value.text.as_str(), "atm" | "adsl") => {
                    found.extend([key.clone(), Word { text: "atm".to_owned(), ..*value }]);
                }
                "mtu" | "tsize" if !one.shown => {
                    let message = format!(
                        "`{} {}` of `stab` only sizes a table of `tc`",
                        key.text, value.text
                    );
                    self.note(value.place, message);
                }
                _ => {}
            }
        }
        found
    }

    // Classes

    /// Returns the default class of a discipline, and the word that names it. Removes the word if
    /// there is no such class.
    fn default_word(&mut self, one: &Discipline, words: &mut [Word]) -> Option<Name> {
        let at = words.iter().position(|word| word.is("default"))?;
        let value = words.get(at + 1)?.clone();
        let major = one.handle.unwrap_or(1);
        let digits = value.text.rsplit(':').next().unwrap_or_default();
        // 0 is the discipline itself: packets bypass all classes.
        let minor = hexadecimal(digits).filter(|minor| *minor != 0)?;
        let exists = |minor| self.device.classes.contains_key(&Name::new(major, minor));
        if exists(minor) {
            return Some(Name::new(major, minor));
        }
        if let Some(decimal) = decimal_default(self.device, one, digits) {
            let name = Name::new(major, decimal);
            words[at + 1].text = format!("{decimal:x}");
            let message = format!("`default {digits}` is read as decimal: class `{name}`");
            self.note(value.place, message);
            return Some(name);
        }
        let name = Name::new(major, minor);
        let fate = if one.kind.is("htb") { "are sent without a limit" } else { "are dropped" };
        let has_classes = self.device.order.iter().any(|name| name.major == major);
        if has_classes {
            let message = format!(
                "the default class `{name}` does not exist: packets that no filter selects {fate}"
            );
            self.note(value.place, message);
        }
        None
    }

    fn inside(
        &mut self,
        one: &Discipline,
        handle: u16,
        default: Option<Name>,
        into: &mut dyn ClassBuilder,
        statements: &mut Vec<String>,
    ) {
        into.number(handle);
        if let Some(packets) = self.device.length {
            into.txqueuelen(packets);
        }
        let kind = one.kind.text.as_str();
        let mut lines = BTreeMap::new();
        if CLASSFUL.contains(&kind) {
            self.classes(one, handle, into, &mut lines, statements);
        }
        let is_empty = lines.is_empty() && !IMPLICIT.contains(&kind);
        if is_empty {
            self.no_classes(one, handle);
        }
        let children: Vec<Discipline> = if one.handle.is_none() && one.shown {
            Vec::new()
        } else {
            self.device.inside(handle).cloned().collect()
        };
        for child in &children {
            self.child(one, handle, child, into, &mut lines, statements);
        }
        let rules = if !CLASSFUL.contains(&kind) {
            self.ignored_filters(handle, one.parent == Name::ROOT, kind);
            Vec::new()
        } else if is_empty && one.shown {
            Vec::new()
        } else {
            self.rules(one, handle, default.unwrap_or(Name::new(handle, 0)))
        };
        let mut places = Vec::new();
        for rule in rules {
            let conditions = rule.tests.iter().filter_map(|test| match test {
                Test::Packet(condition) => Some(*condition),
                Test::Class(_) => None,
            });
            let filter = classes::Filter {
                conditions: conditions.collect(),
                divisor: rule.divisor,
                class: rule.target.minor,
            };
            places.push(rule.line);
            statements.push(filter.statement(handle));
            let same = self
                .built
                .filters
                .iter_mut()
                .find(|known| known.line == rule.line && known.handle == handle);
            match same {
                Some(known) => known.filters.push(filter.clone()),
                None => self.built.filters.push(Selection {
                    line: rule.line,
                    handle,
                    filters: vec![filter.clone()],
                }),
            }
            into.filter(filter);
        }
        for fault in into.finish(self.on) {
            let line = match fault.about {
                About::Class(id) => lines.get(&id).copied(),
                About::Filter(n) => places.get(n).copied(),
            };
            self.fault(line.unwrap_or(one.line), Fault::new(fault.message));
        }
        if one.parent == Name::ROOT || is_empty {
            return;
        }
        // Those of the root discipline belong to the whole queue. A notice names a missing default.
        let is_known = |message: &String| default.is_none() && message.starts_with("`default");
        for message in into.warnings().into_iter().filter(|message| !is_known(message)) {
            self.note(one.line, message);
        }
    }

    /// Adds the classes of a discipline, parents first.
    fn classes(
        &mut self,
        holder: &Discipline,
        handle: u16,
        into: &mut dyn ClassBuilder,
        lines: &mut BTreeMap<u16, Place>,
        statements: &mut Vec<String>,
    ) {
        let (classes, circular) = self.device.parents_first(handle);
        for class in classes {
            lines.insert(class.name.minor, class.line);
            match self.class(holder, class, into) {
                Ok(statement) => statements.extend(statement),
                Err(fault) => self.fault(class.line, fault),
            }
        }
        for class in circular {
            let why = format!("`{}` would contain itself", class.name);
            self.fault(class.line, Fault::new(why));
        }
    }

    fn class(
        &mut self,
        holder: &Discipline,
        class: &Class,
        into: &mut dyn ClassBuilder,
    ) -> Result<Option<String>, Fault> {
        let kind = holder.kind.text.as_str();
        if !class.kind.is(kind) {
            let why = format!("a class of `{}` cannot be in `{kind}`", class.kind.text);
            return Err(class.kind.fault(why));
        }
        let mut parent = class.parent.minor;
        let exists = class.parent.major == class.name.major
            && self.device.classes.contains_key(&class.parent);
        if parent != 0 && !exists && kind == "htb" {
            let message = format!(
                "the parent `{}` does not exist: as in Linux, the class is below the root",
                class.parent
            );
            self.note(class.line, message);
            parent = 0;
        }
        let mut words = if holder.shown {
            values::printed_class(kind, &class.words)
        } else {
            self.remark(values::without_unit(&class.words).collect());
            class.words.clone()
        };
        if kind == "htb" {
            words.extend(self.framing(holder, &words));
            words = self.of_htb(words);
        }
        if IMPLICIT.contains(&kind) && words.is_empty() {
            return Ok(None);
        }
        let arena = Arena::of(&words);
        into.class(class.name.minor, parent, &arena.text, &arena.tokens(), self.on)
            .map_err(|error| arena.fault(error))?;
        let mut text = format!("class {}", class.name);
        if DEFAULT.contains(&kind) {
            text = format!("{text} parent {}", Name::new(class.name.major, parent));
        }
        Ok(Some(format!("{text} {}", arena.text).trim_end().to_owned()))
    }

    /// Returns the words of a class of HTB without those that have no effect, as in Linux.
    fn of_htb(&mut self, words: Vec<Word>) -> Vec<Word> {
        let mut kept: Vec<Word> = Vec::new();
        let mut rest = words.into_iter().peekable();
        while let Some(word) = rest.next() {
            let value = rest.peek().cloned().unwrap_or_default();
            match word.text.as_str() {
                // The kernel has priorities 0 to 7, and reads larger ones as 7.
                "prio" if value.text.parse::<u32>().is_ok_and(|rank| rank > 7) => {
                    let message = format!("`prio {}` is read as 7, as by Linux", value.text);
                    self.note(value.place, message);
                    rest.next();
                    kept.extend([word, Word { text: "7".to_owned(), ..value }]);
                }
                "mtu" => {
                    rest.next();
                    let message = format!(
                        "`mtu {}` of a class only sizes a rate table of `tc`, which Linux ignores",
                        value.text
                    );
                    self.note(value.place, message);
                }
                // `tc` uses its default for a burst of 0.
                "burst" | "cburst" | "buffer" | "cbuffer" | "maxburst" | "cmaxburst"
                    if matches!(
                        value.text.trim_end_matches(|c: char| c.is_ascii_alphabetic()),
                        "0" | "00"
                    ) =>
                {
                    rest.next();
                }
                "burst" | "cburst" | "buffer" | "cbuffer" | "maxburst" | "cmaxburst" => {
                    rest.next();
                    let mut remarks = Vec::new();
                    let size = values::without_cell(&word, &value, &mut remarks);
                    self.remark(remarks);
                    kept.extend([word, size]);
                }
                "estimator" | "est" => {
                    let (interval, decay) = (rest.next(), rest.next());
                    if let (Some(interval), Some(decay)) = (interval, decay) {
                        let message = format!(
                            "the estimator `{} {}` measures only",
                            interval.text, decay.text
                        );
                        self.note(interval.place, message);
                    }
                }
                _ => kept.push(word),
            }
        }
        kept
    }

    fn no_classes(&mut self, holder: &Discipline, handle: u16) {
        let kind = &holder.kind.text;
        if holder.shown {
            let why = format!(
                "the classes of `{handle:x}:` are not in these lines: add the output of `tc class \
                 show dev {}`",
                self.device.name
            );
            return self.fault(holder.line, Fault::new(why));
        }
        let does = if kind == "htb" {
            "sends every packet without a rate limit"
        } else {
            "drops every packet"
        };
        self.note(holder.line, format!("`{kind}` has no class: it {does}"));
    }

    /// Whether all packets of the device pass through a class.
    fn is_only_leaf(&self, holder: &Discipline, handle: u16, name: Name) -> bool {
        let mut leaves =
            self.device.order.iter().filter(|n| n.major == handle && !self.parents.contains(n));
        let default = value_of(&holder.words, "default").and_then(|word| minor(&word.text));
        holder.parent == Name::ROOT
            && leaves.next() == Some(&name)
            && leaves.next().is_none()
            && default == Some(name.minor)
    }

    fn child(
        &mut self,
        holder: &Discipline,
        handle: u16,
        one: &Discipline,
        into: &mut dyn ClassBuilder,
        lines: &mut BTreeMap<u16, Place>,
        statements: &mut Vec<String>,
    ) {
        let name = Name::new(handle, one.parent.minor);
        let kind = holder.kind.text.as_str();
        if DEFAULT.contains(&kind) && self.parents.contains(&name) {
            let message =
                format!("`{name}` has child classes, so Linux ignores the discipline in it");
            return self.note(one.line, message);
        }
        let child = if one.kind.is("netem") {
            match self.netem_in_class(holder, handle, one, name) {
                Some(child) => child,
                None => return,
            }
        } else {
            let Some(child) = self.discipline(one, false) else { return };
            child
        };
        if into.child(name.minor, child.params, self.on) {
            lines.insert(name.minor, one.line);
            statements.push(format!("qdisc parent {name} {}", child.head));
            statements.extend(child.statements);
        } else if one.parent.minor == 0 {
            let why = format!("`qdisc` needs a class, such as `parent {handle:x}:10`");
            self.fault(one.line, Fault::new(why));
        } else if lines.contains_key(&name.minor) {
            let message = format!("ignored, because the class `{name}` cannot be read");
            self.note(one.line, message);
        } else {
            let why = format!("class `{name}` does not exist");
            self.fault(one.line, Fault::new(why));
        }
    }

    /// Returns the FIFO that a netem without impairments is; otherwise sets the device's
    /// impairments, or adds a problem.
    fn netem_in_class(
        &mut self,
        holder: &Discipline,
        handle: u16,
        one: &Discipline,
        name: Name,
    ) -> Option<Part> {
        if !one.words.iter().step_by(2).any(|word| !word.is("limit")) {
            let message = "netem without impairments is read as a pfifo with its limit";
            self.note(one.line, message);
            let limit = one.words.get(1).map_or("1000", |word| word.text.as_str());
            let head = format!("pfifo limit {limit}");
            let params = Params::parse(&head, self.on).ok()?;
            return Some(Part { params, head, statements: Vec::new() });
        }
        if self.is_only_leaf(holder, handle, name) && self.seated(one).is_none() {
            self.built.netem = self.netem(one);
            return None;
        }
        self.misplaced_netem(one);
        None
    }

    /// Adds a problem about impairments of a part of the packets.
    fn misplaced_netem(&mut self, one: &Discipline) {
        let words: Vec<&str> = one.words.iter().map(|word| word.text.as_str()).collect();
        let why = format!(
            "netem in a class is not modelled: delay is a property of a link. Let the flows of `{}` \
             pass a link of their own that has `netem = \"{}\"`, and remove this line",
            one.parent,
            words.join(" ")
        );
        self.fault(one.line, one.kind.fault(why));
    }

    // Filters

    /// Returns the rules of a discipline, including those of its inner classes.
    fn rules(&mut self, holder: &Discipline, handle: u16, default: Name) -> Vec<Rule> {
        let mut filters: Vec<(usize, &Filter)> =
            self.filters.get(&Some(handle)).cloned().unwrap_or_default();
        if holder.parent == Name::ROOT {
            filters.extend(self.filters.get(&None).into_iter().flatten());
        }
        filters.sort_by_key(|(n, _)| *n);
        let mut automatic = AUTOMATIC;
        let mut ordered: Vec<(u32, &Filter)> = Vec::new();
        for (_, filter) in filters {
            let order = filter.prio.unwrap_or_else(|| {
                automatic -= 1;
                automatic + 1
            });
            ordered.push((order, filter));
        }
        ordered.sort_by_key(|(order, _)| *order);
        let (mut rules, mut of_class) = (Vec::new(), BTreeMap::<Name, Vec<Rule>>::new());
        let mut ordered: Vec<&Filter> = ordered.into_iter().map(|(_, filter)| filter).collect();
        let whole = flattened(&ordered).unwrap_or_else(|failure| {
            let (line, fault) = *failure;
            self.fault(line, fault);
            Some(Vec::new())
        });
        if let Some(whole) = &whole {
            ordered = whole.iter().collect();
        }
        for filter in ordered {
            let found = self.of_filter(holder, handle, default, filter);
            if filter.parent != Name::ROOT && filter.parent.minor != 0 {
                of_class.entry(filter.parent).or_default().extend(found);
            } else {
                rules.extend(found);
            }
        }
        let kind = holder.kind.text.as_str();
        if DEFAULT.contains(&kind) {
            rules = self.descended(handle, default, &rules, &of_class);
        } else if let Some(rule) = of_class.values().flatten().next() {
            let why = format!("classes of `{kind}` cannot have filters: Linux rejects them");
            self.fault(rule.line, Fault::new(why));
        }
        if self.ways.is_empty() {
            return rules;
        }
        let rewriter = Rewriter {
            firewall: self.firewall,
            device: &self.device.name,
            default: DEFAULT.contains(&kind).then_some(default),
            ways: &self.ways,
        };
        match rewriter.rewritten(&rules, handle) {
            Ok(rules) => rules,
            Err(fault) => {
                let line = self.firewall.changes().first().map_or(holder.line, |step| step.line);
                self.fault(line, fault);
                rules
            }
        }
    }

    fn beyond(default: Name) -> String {
        match default.minor {
            0 => "past all classes, without a limit".to_owned(),
            _ => format!("the default class `{default}`"),
        }
    }

    fn descended(
        &mut self,
        handle: u16,
        default: Name,
        rules: &[Rule],
        of_class: &BTreeMap<Name, Vec<Rule>>,
    ) -> Vec<Rule> {
        let is_inner = |name: &&Name| {
            name.major == handle && name.minor != 0 && self.device.classes.contains_key(name)
        };
        let inner: BTreeSet<Name> = self.parents.iter().filter(is_inner).copied().collect();
        let all = rules.iter().chain(of_class.values().flatten());
        let reached: BTreeSet<Name> = all.map(|rule| rule.target).collect();
        for (name, own) in of_class {
            if !reached.contains(name) || !inner.contains(name) {
                let message = format!(
                    "no filter leads to `{name}`, so Linux does not evaluate the filters of this class"
                );
                if let Some(rule) = own.first() {
                    self.note(rule.line, message);
                }
            }
        }
        for rule in rules {
            if inner.contains(&rule.target) && !of_class.contains_key(&rule.target) {
                let message = format!(
                    "`{}` has child classes and no filters of its own: packets go to {}",
                    rule.target,
                    Self::beyond(default)
                );
                self.note(rule.line, message);
            }
        }
        match descended(rules, of_class, &inner, default) {
            Ok(rules) => rules,
            Err(fault) => {
                if let Some(rule) = rules.first() {
                    self.fault(rule.line, fault);
                }
                Vec::new()
            }
        }
    }

    fn idle(&mut self, filter: &Filter) {
        for (word, why) in &filter.idle {
            self.note(word.place, format!("`{}` has no effect: {why}", word.text));
        }
    }

    /// Returns the rules for a filter of `tc`: one for each alternative of its tests.
    fn of_filter(
        &mut self,
        holder: &Discipline,
        handle: u16,
        default: Name,
        filter: &Filter,
    ) -> Vec<Rule> {
        self.idle(filter);
        let is_flow = filter.kind.is("flow");
        if filter.target.is_none() && !is_flow {
            self.note(filter.line, "this filter leads to no class: it has no effect here");
            return Vec::new();
        }
        let target = if is_flow {
            spread(filter, handle)
        } else {
            self.target(holder, handle, default, filter).map(|name| (name, 1))
        };
        let found = target.and_then(|target| Ok((target, meaning(filter, self.hosts)?)));
        match found {
            Ok(((target, divisor), meaning)) => {
                for note in meaning.notes {
                    self.note(filter.line, note);
                }
                for address in meaning.strangers {
                    self.strangers.entry(address).or_insert(filter.line);
                }
                let rule = |conditions: Vec<_>| Rule {
                    tests: conditions.into_iter().map(Test::Packet).collect(),
                    target,
                    line: filter.line,
                    divisor,
                };
                meaning.alternatives.into_iter().map(rule).collect()
            }
            Err(fault) => {
                self.fault(filter.line, fault);
                Vec::new()
            }
        }
    }

    fn target(
        &mut self,
        holder: &Discipline,
        handle: u16,
        default: Name,
        filter: &Filter,
    ) -> Result<Name, Fault> {
        let word = filter.target.as_ref().ok_or_else(Fault::default)?;
        let named = Name::of(word)?;
        let target = Name::new(handle, named.minor);
        if IMPLICIT.contains(&holder.kind.text.as_str()) {
            return Ok(target);
        }
        let is_known = target.minor == 0 || self.device.classes.contains_key(&target);
        let is_here = named.major == 0 || named.major == handle;
        if DEFAULT.contains(&holder.kind.text.as_str()) && !(is_known && is_here) {
            let message = format!(
                "the class `{named}` does not exist: packets go to {}",
                Self::beyond(default)
            );
            self.note(filter.line, message);
            return Ok(default);
        }
        Ok(target)
    }

    /// Names the rules that act on packets of one incoming device only, which is not compared.
    fn note_inputs(&mut self) {
        let chains = &self.firewall.chains;
        let table = |chain: &str| chain.split_once('/').map(|(table, _)| table.to_owned());
        let changes = |steps: &[Step]| steps.iter().any(|step| !step.changes.is_empty());
        let changing: Vec<_> =
            chains.iter().filter(|one| changes(one.1)).map(|one| table(one.0)).collect();
        let steps =
            chains.iter().filter(|one| changing.contains(&table(one.0))).flat_map(|one| one.1);
        let acts = |step: &&Step| !step.changes.is_empty() || step.verdict != Verdict::Continue;
        let mut named =
            steps.filter(acts).filter_map(|step| Some((step.input.as_ref()?, step.line)));
        let Some((input, line)) = named.next() else { return };
        let rules = match named.count() {
            0 => "this rule acts".to_owned(),
            more => format!("this rule and {more} with such a word act"),
        };
        let message = format!(
            "`{input}`, the incoming device, is not compared: {rules} on packets from all devices"
        );
        self.note(line, message);
    }

    /// Finds the conditions by which packets match each rule of the firewall, if rules change
    /// packets.
    fn firewall_ways(&mut self) {
        if self.firewall.changes().is_empty() {
            return;
        }
        self.note_inputs();
        for (chain, steps) in &self.firewall.chains {
            for (n, step) in steps.iter().enumerate() {
                let mut ways = Ways::new();
                let mut alternatives = if step.is_idle { Vec::new() } else { vec![Vec::new()] };
                for choices in &step.tests {
                    let with = |one: &Vec<_>| {
                        let one = one.clone();
                        choices.iter().map(move |choice| [one.as_slice(), &[*choice]].concat())
                    };
                    alternatives = alternatives.iter().flat_map(with).collect();
                }
                for tests in alternatives {
                    let rule = Filter {
                        protocol: "ip".to_owned(),
                        tests,
                        ..Filter::new(Word::default(), Name::ROOT, step.line)
                    };
                    match meaning(&rule, self.hosts) {
                        Ok(meaning) => {
                            for address in meaning.strangers {
                                self.strangers.entry(address).or_insert(step.line);
                            }
                            ways.extend(meaning.alternatives);
                        }
                        Err(fault) => {
                            ways.clear();
                            let message =
                                format!("this line of the firewall is ignored: {}", fault.message);
                            self.note(step.line, message);
                            break;
                        }
                    }
                }
                self.ways.insert((chain.clone(), n), ways);
            }
        }
    }
}

/// Returns the default class of a printed discipline whose number is decimal, as iproute2 4.17 and
/// 4.18 printed it; `None` for a hexadecimal number.
pub(crate) fn decimal_default(device: &Device, one: &Discipline, digits: &str) -> Option<u16> {
    let digits = digits.rsplit(':').next().unwrap_or_default();
    let exists = |minor| device.classes.contains_key(&Name::new(one.handle.unwrap_or(1), minor));
    let is_hexadecimal = hexadecimal(digits).is_none_or(|minor| minor == 0 || exists(minor));
    let decimal = digits.parse().ok().filter(|minor| exists(*minor));
    decimal.filter(|_| one.shown && !is_hexadecimal)
}

fn pair(key: &str, value: u32, line: Place) -> [Word; 2] {
    [Word::new(key, line), Word::new(value.to_string(), line)]
}
