//! How `tc` reads and prints the kernel's numbers, and what it takes of a queue.

use crate::classes::Filter;
use std::fmt;

/// The reason why the kernel cannot have a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoKernelEquivalent {
    /// The discipline or the filter.
    pub what: String,
    /// The class that it is in; none at the root.
    pub place: Option<String>,
    /// The feature that the kernel lacks.
    pub reason: &'static str,
}

impl NoKernelEquivalent {
    /// Returns an error about the root, or about no place yet.
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

/// A discipline in a class, as commands of `tc` state it.
pub(crate) trait Nested: fmt::Debug {
    /// Returns the name of the discipline.
    fn name(&self) -> &'static str;

    /// Returns its content; `None` for a discipline without classes.
    fn inside(&self) -> Option<Inside<'_>>;

    /// Returns the words of the discipline itself, without its content.
    ///
    /// # Errors
    /// If the kernel has no such discipline.
    fn own_words(&self) -> Result<String, NoKernelEquivalent>;
}

/// Content of a discipline, as commands of `tc` state it.
#[derive(Clone, Debug, Default)]
pub struct Inside<'a> {
    /// Its number, with which the names of its classes begin; 0 where nothing depends on it.
    pub(crate) handle: u16,
    /// Packets that fit in a class without a discipline, if there may be such a class.
    pub(crate) txqueuelen: Option<u32>,
    /// Classes that need a command: number, that of the parent, kind and words.
    pub(crate) classes: Vec<(u16, u16, String)>,
    /// Disciplines by the number of their class.
    pub(crate) children: Vec<(u16, &'a dyn Nested)>,
    /// Filters, in the order in which they are asked.
    pub(crate) filters: &'a [Filter],
    /// Whether it can only be a device's root.
    pub(crate) at_root: bool,
}

impl Inside<'_> {
    /// Returns whether one command says it all.
    pub(crate) fn is_empty(&self) -> bool {
        self.handle <= 1
            && self.txqueuelen.is_none_or(|packets| packets == TXQUEUELEN)
            && self.classes.is_empty()
            && self.children.is_empty()
            && self.filters.is_empty()
    }
}

/// Default length of devices' transmit queues, in packets.
pub(crate) const TXQUEUELEN: u32 = 1000;

/// Microseconds as `tc` reads them exactly.
pub(crate) fn time_text(micros: u32) -> String {
    if micros.is_multiple_of(1000) { format!("{}ms", micros / 1000) } else { format!("{micros}us") }
}

/// Returns a probability as a fraction of 2^32, rounded down; one is all but one part.
pub(crate) fn probability_q32(p: f64) -> u32 {
    (p * 4_294_967_296.0) as u32
}

/// Returns the shortest decimal fraction near `p` that `reads` back, below one.
pub(crate) fn fraction_text(p: f64, reads: impl Fn(f64) -> bool) -> String {
    for digits in 1..=12 {
        let scale = 10u64.pow(digits);
        let below = (p * scale as f64) as u64;
        // A reader that rounds takes the nearer of the two, one that cuts the upper.
        for numerator in [below, below + 1] {
            let text = format!("0.{numerator:0width$}", width = digits as usize);
            if numerator < scale && text.parse().is_ok_and(&reads) {
                return text;
            }
        }
    }
    format!("{p:.12}")
}
