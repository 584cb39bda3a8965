//! Construction of a discipline from parts that another reader has read.

use super::classful::Classful;
use super::filter::Filter;
use super::tree::Fault;
use crate::declaration::DisciplineParams;
use crate::device::Device;
use crate::params::Params;
use sojourn_units::words::{Given, Token, WordError};

/// Construction of a discipline's classes from parts that another reader has read.
pub trait ClassBuilder {
    /// Sets the number of the discipline, which is the major number of its classes' names.
    fn number(&mut self, handle: u16);

    /// Sets the limit in packets of classes without a discipline.
    fn txqueuelen(&mut self, packets: u32);

    /// Adds the class `id` in the class `parent` (0 for the discipline itself), or changes it. The
    /// words are in `text`.
    ///
    /// # Errors
    /// What is wrong in the words, and its position in `text`.
    fn class(
        &mut self,
        id: u16,
        parent: u16,
        text: &str,
        words: &[Token<'_>],
        device: &Device,
    ) -> Result<(), WordError>;

    /// Gives the class `id` a discipline; returns false if there is no such class.
    fn child(&mut self, id: u16, child: Params, device: &Device) -> bool;

    /// Adds a filter behind the others.
    fn filter(&mut self, filter: Filter);

    /// Completes the description; returns the faults of classes and filters.
    fn finish(&mut self, device: &Device) -> Vec<Fault>;

    /// Returns warnings about the complete description, as [`Params::warnings`].
    fn warnings(&self) -> Vec<String>;
}

impl<D: Classful> ClassBuilder for D {
    fn number(&mut self, handle: u16) {
        self.tree_mut().handle = handle;
    }

    fn txqueuelen(&mut self, packets: u32) {
        self.tree_mut().txqueuelen = packets;
    }

    fn class(
        &mut self,
        id: u16,
        parent: u16,
        text: &str,
        words: &[Token<'_>],
        device: &Device,
    ) -> Result<(), WordError> {
        self.tree_mut().add_class((id, parent), text, words, device)
    }

    fn child(&mut self, id: u16, child: Params, device: &Device) -> bool {
        self.tree_mut().add_child(id, child, device)
    }

    fn filter(&mut self, filter: Filter) {
        self.tree_mut().filters.push(filter);
    }

    fn finish(&mut self, device: &Device) -> Vec<Fault> {
        let faults = Classful::finish(self, &Given::default(), device);
        self.tree_mut().remove_defaults();
        faults
    }

    fn warnings(&self) -> Vec<String> {
        DisciplineParams::warnings(self, &Given::default())
    }
}

/// Returns access to a discipline's classes; `None` without classes.
pub fn classes_mut(params: &mut Params) -> Option<&mut dyn ClassBuilder> {
    match params {
        Params::Prio(params) => Some(params),
        Params::Drr(params) => Some(params),
        Params::Ets(params) => Some(params),
        Params::Mq(params) => Some(params),
        Params::Htb(params) => Some(params),
        Params::Hfsc(params) => Some(params),
        _ => None,
    }
}

/// Puts a discipline into one that holds exactly one, in place of the one that it has. Others are
/// unchanged.
pub fn hold(params: &mut Params, inner: Params) {
    if let Params::Tbf(tbf) = params {
        tbf.child = Some(Box::new(inner));
    }
}
