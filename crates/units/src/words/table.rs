//! Declarations of components: names, words, and the kinds of their values.

use serde::Serialize;

/// A name that can be the value of a word, and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Meaning {
    /// The name.
    pub name: &'static str,
    /// Meaning of the name, in one sentence.
    pub doc: &'static str,
}

/// Kind of the value that follows a word.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Kind {
    /// The word has no value: it is a flag, which the word sets.
    Flag,
    /// The word has no value: it sets a switch, which a second word clears.
    Switch {
        /// Word that clears the switch.
        off: &'static str,
    },
    /// One of these words is written alone; the name of the [`Word`] does not occur in
    /// descriptions.
    OneOf {
        /// Words to choose from.
        of: &'static [&'static str],
    },
    /// A number of packets, such as `300` or `300p`.
    Packets,
    /// A size in bytes, such as `1500` or `30kb`.
    Size,
    /// A duration with its unit, such as `5ms`.
    Time,
    /// A rate with its unit, such as `10mbit`.
    Rate,
    /// An integer within bounds.
    Integer {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// A signed integer within bounds.
    Signed {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
    },
    /// A real number within bounds.
    Real {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// A probability as a fraction or percentage, such as `0.02` or `2%`.
    Probability,
    /// One of several names.
    Choice {
        /// Allowed names.
        of: &'static [&'static str],
    },
    /// One of several names, each with an explanation.
    Named {
        /// Allowed names.
        of: &'static [Meaning],
    },
    /// One or more of several names, joined by `+`; or `all`, or `none`.
    List {
        /// Allowed names.
        of: &'static [Meaning],
    },
    /// One or more integers, such as `0 1 2`.
    Numbers {
        /// Maximum number of integers.
        most: usize,
        /// Greatest value of each integer.
        max: u64,
    },
    /// Any single word, which the component checks.
    Name,
    /// All remaining words of the text, which describe another component.
    Rest,
}

/// One word of a table.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Word {
    /// Name of the word.
    pub name: &'static str,
    /// Kind of the word's value.
    #[serde(flatten)]
    pub kind: Kind,
    /// Default as a user would write it; empty if there is no default.
    pub default: &'static str,
    /// Meaning of the word, in one sentence.
    pub doc: &'static str,
}

/// Declares words. Each has a name, the kind of its value, its default, and its meaning.
#[macro_export]
macro_rules! words {
    ($($name:expr, $kind:expr, $default:expr, $doc:expr;)*) => {
        &[$($crate::words::Word { name: $name, kind: $kind, default: $default, doc: $doc }),*]
    };
}

/// Declares names that can be the value of a word, each with its meaning.
#[macro_export]
macro_rules! meanings {
    ($($name:literal, $doc:literal;)*) => {
        &[$($crate::words::Meaning { name: $name, doc: $doc }),*]
    };
}

impl Word {
    /// Returns all spellings of the word in descriptions.
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        let (name, others): (_, &'static [&'static str]) = match self.kind {
            Kind::OneOf { of } => (None, of),
            _ => (Some(self.name), &[]),
        };
        let off = match self.kind {
            Kind::Switch { off } => Some(off),
            _ => None,
        };
        name.into_iter().chain(off).chain(others.iter().copied())
    }

    /// Returns whether a value follows the word.
    pub fn takes_value(&self) -> bool {
        !matches!(self.kind, Kind::Flag | Kind::Switch { .. } | Kind::OneOf { .. })
    }
}

/// The name and words of a component.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Table {
    /// Name of the component, which is the first word of a description.
    pub name: &'static str,
    /// Summary of the component in one line; empty only for an external component, whose words are
    /// declared in its own code.
    pub summary: &'static str,
    /// Source of the component: RFC, paper or kernel file.
    pub source: &'static str,
    /// Words of the component.
    pub words: &'static [Word],
}

impl Table {
    /// Returns whether descriptions can name the component.
    pub const fn is_named(&self) -> bool {
        !self.summary.is_empty()
    }
}
