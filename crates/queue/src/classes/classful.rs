//! Traits for the parameters of a classful discipline. Parameters that implement [`Classful`] also
//! implement `DisciplineParams`.

use super::statements::Name;
use super::tree::{ClassParams, Fault, Tree};
use crate::declaration::DisciplineParams;
use crate::device::Device;
use crate::limit::Unit;
use crate::tc::Inside;
use sojourn_units::Rate;
use sojourn_units::declare::{Param, Parameters};
use sojourn_units::words::{Given, Kind, Table, Text, Value, WordError};

/// Parameters of a classful discipline.
pub trait Classful: Parameters<On = Device> + Clone {
    /// Parameters of a class.
    type Class: ClassParams;

    /// Returns the classes and filters.
    fn tree(&self) -> &Tree<Self::Class>;

    /// Returns the classes and filters, mutable.
    fn tree_mut(&mut self) -> &mut Tree<Self::Class>;

    /// Returns the words for `tc` that create the discipline, without its classes and filters.
    fn own_words(&self) -> String {
        let mut bare = self.clone();
        *bare.tree_mut() = Tree::default();
        bare.write(Text::new(Self::TABLE.name)).done()
    }

    /// Returns the rate to which the discipline limits all its packets; `None` if it does not
    /// shape.
    fn total_rate(&self) -> Option<Rate> {
        None
    }

    /// Fate of packets without a class, after their name; empty if each packet has one.
    const UNCLASSIFIED: &'static str = "";

    /// Returns the minor number of the class of packets that no filter matches; 0 without one.
    fn default_class(&self) -> u16 {
        0
    }

    /// Returns warnings about values of words that Linux accepts, and that act otherwise than their
    /// words say.
    fn surprises(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the minor numbers of the classes that hold packets.
    fn leaves(&self) -> Vec<u16> {
        let tree = self.tree();
        tree.ids().into_iter().filter(|id| tree.is_leaf(*id)).collect()
    }

    /// Computes values that depend on other words, before the statements are read.
    ///
    /// # Errors
    /// Values that contradict each other.
    fn prepare(&mut self, _given: &Given, _device: &Device) -> Result<(), WordError> {
        Ok(())
    }

    /// Computes values that depend on the classes; returns the faults of classes and filters.
    fn finish(&mut self, given: &Given, device: &Device) -> Vec<Fault>;

    /// Returns the values to which a change is applied: the present values, except that values
    /// which `tc` does not keep have their defaults.
    #[must_use]
    fn restated(&self, _given: &Given, _device: &Device) -> Self {
        self.clone()
    }

    /// Checks whether the discipline can change from `before` to these parameters.
    ///
    /// # Errors
    /// A change that the kernel rejects.
    fn check_change(&self, before: &Self, given: &Given) -> Result<(), WordError> {
        self.tree().check_change(before.tree(), given)
    }
}

impl<D: Classful> DisciplineParams for D {
    const CLASS: Option<&'static Table> = Some(&Table {
        name: D::TABLE.name,
        summary: "words of a class",
        source: D::TABLE.source,
        words: <D::Class as Parameters>::WORDS,
    });

    /// Returns `None`: each class has its own limit.
    fn limit(&self) -> Option<(Unit, u32)> {
        None
    }

    fn settle(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        self.prepare(given, device)?;
        self.tree_mut().read(given, device)?;
        if let Some(fault) = self.finish(given, device).into_iter().next() {
            return Err(self.tree().placed(given, fault));
        }
        self.tree_mut().remove_defaults();
        Ok(())
    }

    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        let changed = self.restated(given, device).with(given, device)?;
        changed.check_change(self, given)?;
        Ok(changed)
    }

    fn has_handle(&self, handle: u16) -> bool {
        self.tree().has_handle(handle)
    }

    fn rate(&self) -> Option<Rate> {
        self.total_rate()
    }

    fn inside(&self) -> Option<Inside<'_>> {
        Some(self.tree().inside())
    }

    fn warnings(&self, _given: &Given) -> Vec<String> {
        let (tree, default, fate) = (self.tree(), self.default_class(), Self::UNCLASSIFIED);
        let has_default = self.leaves().contains(&default);
        let missing = match default {
            _ if fate.is_empty() || has_default => None,
            _ if tree.classes.is_empty() => {
                Some(format!("`{}` has no class here: all packets {fate}", Self::TABLE.name))
            }
            0 => None,
            id => Some(format!(
                "`default {id:x}`: `{}` is no class with packets: those that no filter matches {fate}",
                tree.name(id)
            )),
        };
        missing.into_iter().chain(self.surprises()).collect()
    }

    fn to_tc(&self) -> String {
        self.own_words()
    }

    /// Returns whether the disciplines of all leaves pace packets. The class of a packet is unknown
    /// before its arrival.
    fn paces(&self) -> bool {
        let leaves = self.leaves();
        !leaves.is_empty() && leaves.into_iter().all(|id| self.tree().child(id).paces())
    }
}

/// Returns the parameter `default`: the class of packets that no filter sends to a class; 0 for no
/// class.
pub(crate) const fn default_class<On>() -> Param<u16, On> {
    let from = |value: &Value| {
        class(value.text())
            .ok_or_else(|| "needs a class in hexadecimal, such as 10 or 1:10".to_owned())
    };
    let to = |class: &u16| (*class != 0).then(|| Value::Text(format!("{class:x}")));
    Param::word(Kind::Name, "0", from, to)
}

/// Reads the minor number of a class, with or without the number of its discipline.
fn class(text: &str) -> Option<u16> {
    match Name::read(text) {
        Some(name) => Some(name.minor),
        None => u16::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok(),
    }
}

/// Implements [`Classful::tree`] for parameters with the field `tree`, whose classes have the given
/// parameters.
macro_rules! tree_of {
    ($Class:ident) => {
        type Class = $Class;

        fn tree(&self) -> &$crate::classes::Tree<$Class> {
            &self.tree
        }

        fn tree_mut(&mut self) -> &mut $crate::classes::Tree<$Class> {
            &mut self.tree
        }
    };
}
pub(crate) use tree_of;
