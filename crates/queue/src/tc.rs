//! Conversions between `tc`'s text and the kernel's numbers, and the classes, inner disciplines and
//! filters for the commands of `tc`.

use crate::classes::Filter;
use std::collections::BTreeMap;
use std::fmt;

/// Error: the kernel has no equivalent of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoKernelEquivalent {
    /// Name of the discipline or filter.
    pub what: String,
    /// Name of the class that contains the discipline; `None` at the root.
    pub place: Option<String>,
    /// The feature that the kernel lacks.
    pub reason: &'static str,
}

impl NoKernelEquivalent {
    /// Returns an error without a class.
    pub(crate) fn new(what: impl Into<String>, reason: &'static str) -> Self {
        Self { what: what.into(), place: None, reason }
    }
}

impl fmt::Display for NoKernelEquivalent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no kernel equivalent of this `{}`", self.what)?;
        if let Some(place) = &self.place {
            write!(f, " in `{place}`")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for NoKernelEquivalent {}

/// A discipline inside a class, for the commands of `tc`.
pub(crate) trait Nested: fmt::Debug {
    /// Returns the name of the discipline.
    fn name(&self) -> &'static str;

    /// Returns the parts of the discipline that need separate commands; `None` without such parts.
    fn inside(&self) -> Option<Inside<'_>>;

    /// Returns the words for `tc` that create the discipline, without the parts of [`Self::inside`].
    ///
    /// # Errors
    /// If the kernel has no such discipline.
    fn own_words(&self) -> Result<String, NoKernelEquivalent>;
}

/// Classes, inner disciplines and filters of a discipline, for the commands of `tc`.
#[derive(Clone, Debug, Default)]
pub struct Inside<'a> {
    /// Number of the discipline, which is the major number of its classes; 0 if it is not stated.
    pub(crate) handle: u16,
    /// Limit in packets of a class without its own discipline; `None` if there cannot be such a
    /// class.
    pub(crate) txqueuelen: Option<u32>,
    /// Classes that need a command: minor number, minor number of the parent, words.
    pub(crate) classes: Vec<(u16, u16, String)>,
    /// Inner disciplines, each with the minor number of its class.
    pub(crate) children: Vec<(u16, &'a dyn Nested)>,
    /// Filters, in the order in which Linux tries them.
    pub(crate) filters: &'a [Filter],
    /// Whether Linux allows the discipline only at the root of a device.
    pub(crate) at_root: bool,
    /// Whether the description determines the class of a packet, and not the device.
    pub(crate) selects: bool,
}

impl Inside<'_> {
    /// Returns whether one command without classes and filters describes the discipline.
    pub(crate) fn is_empty(&self) -> bool {
        self.handle <= 1
            && self.txqueuelen.is_none_or(|packets| packets == TXQUEUELEN)
            && self.classes.is_empty()
            && self.children.is_empty()
            && self.filters.is_empty()
    }

    /// Appends the names of the classes that the description states and that hold packets, each
    /// after `prefix`.
    pub(crate) fn name_stated(&self, prefix: &str, names: &mut Vec<String>) {
        if self.txqueuelen.is_none() {
            let inner = self.children.iter().filter_map(|(_, child)| child.inside());
            inner.for_each(|inside| inside.name_stated(prefix, names));
            return;
        }
        let mut stated: BTreeMap<_, _> = self.classes.iter().map(|(id, ..)| (*id, None)).collect();
        stated.extend(self.children.iter().map(|(id, child)| (*id, Some(child))));
        self.classes.iter().for_each(|(_, parent, _)| _ = stated.remove(parent));
        for (id, child) in stated.into_iter().filter(|_| self.selects) {
            let name = format!("{prefix}{:x}:{id:x}", self.handle);
            let before = names.len();
            if let Some(inside) = child.and_then(|child| child.inside()) {
                inside.name_stated(&format!("{name}/"), names);
            }
            if names.len() == before {
                names.push(name);
            }
        }
    }
}

/// Default transmit queue length of a device, in packets.
pub(crate) const TXQUEUELEN: u32 = 1000;

/// Returns a time in microseconds as text that `tc` reads without rounding.
pub(crate) fn time_text(micros: u32) -> String {
    if micros.is_multiple_of(1000) { format!("{}ms", micros / 1000) } else { format!("{micros}us") }
}

/// Returns a probability in units of 2^-32, rounded down; 1 becomes 2^32 - 1.
pub(crate) fn probability_q32(p: f64) -> u32 {
    (p * 4_294_967_296.0) as u32
}

/// Returns a probability in units of 2^-32 as text that is read as the same number.
pub(crate) fn q32_text(p: u32) -> String {
    fraction_text(f64::from(p) / 4_294_967_296.0, |text| probability_q32(text) == p)
}

/// Returns the shortest decimal fraction below 1 near `p` for which `reads` is true.
pub(crate) fn fraction_text(p: f64, reads: impl Fn(f64) -> bool) -> String {
    for digits in 1..=12 {
        let scale = 10u64.pow(digits);
        let below = (p * scale as f64) as u64;
        // Of the two neighbours of `p`, a reader that rounds needs the nearer one, and a reader
        // that truncates the upper one.
        for numerator in [below, below + 1] {
            let text = format!("0.{numerator:0width$}", width = digits as usize);
            if numerator < scale && text.parse().is_ok_and(&reads) {
                return text;
            }
        }
    }
    format!("{p:.12}")
}
