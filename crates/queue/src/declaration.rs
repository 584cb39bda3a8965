//! The declaration of a discipline by its parameters, for the family of disciplines.

use crate::device::Device;
use crate::discipline::{Discipline, Sink};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::tc::Inside;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{Given, Table, Text, WordError};
use sojourn_units::{Nanos, Rate};

/// The parameters of one discipline, and what the family needs to know of it.
pub trait DisciplineParams: Parameters<On = Device> + Clone {
    /// Its name and words; several for a discipline of several names.
    const TABLES: &'static [&'static Table];

    /// The words of its classes, under its name, if it has classes.
    const CLASS: Option<&'static Table> = None;

    /// The kernel's alternative, if the kernel does not have this discipline.
    const NOT_IN_KERNEL: Option<&'static str> = None;

    /// Returns the unit of the limit, and its size; `None` if the limit is one of memory only.
    fn limit(&self) -> Option<(Unit, u32)>;

    /// Returns its name and words.
    fn table(&self) -> &'static Table {
        Self::TABLES[0]
    }

    /// Returns the defaults under the name of `table`.
    fn named(_table: &Table, device: &Device) -> Self {
        Self::new(device)
    }

    /// Settles values that depend on each other, once all that is given is taken over.
    ///
    /// # Errors
    /// Values that contradict each other.
    fn settle(&mut self, _given: &Given, _device: &Device) -> Result<(), WordError> {
        Ok(())
    }

    /// Returns the parameters after a change: what is not named keeps its value, unless `tc` states
    /// it anew.
    ///
    /// # Errors
    /// What cannot be changed, or contradicts.
    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        if given.has("flows") {
            return Err(given.error("flows", "`flows` cannot be changed"));
        }
        self.clone().with(given, device)
    }

    /// Returns these parameters with the given values.
    ///
    /// # Errors
    /// A value that is not allowed.
    fn with(mut self, given: &Given, device: &Device) -> Result<Self, WordError> {
        self.set(given)?;
        self.settle(given, device)?;
        Ok(self)
    }

    /// Returns whether it, or a discipline in one of its classes, has classes under this number.
    fn has_handle(&self, _handle: u16) -> bool {
        false
    }

    /// Returns the rate that it holds all packets to; none if it does not.
    fn rate(&self) -> Option<Rate> {
        None
    }

    /// Returns its content; `None` for a discipline without classes.
    fn inside(&self) -> Option<Inside<'_>> {
        None
    }

    /// Returns whether it holds each packet until its departure time, so that TCP on its host needs
    /// no timer to pace (`SK_PACING_FQ`).
    fn paces(&self) -> bool {
        false
    }

    /// Returns notices about a valid description.
    fn warnings(&self, _given: &Given) -> Vec<String> {
        Vec::new()
    }

    /// Returns the features of a queue with these values that the kernel lacks, in addition to all
    /// inside.
    ///
    /// # Errors
    /// It lacks something.
    fn in_kernel(&self) -> Result<(), &'static str> {
        Self::NOT_IN_KERNEL.map_or(Ok(()), Err)
    }

    /// Returns the words by which the kernel gives the same queue, if it has it, without what is
    /// inside.
    fn to_tc(&self) -> String {
        self.write(Text::new(self.table().name)).done()
    }

    /// Visits the numbers used for decisions in addition to the fields, as in recordings.
    fn derived(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}
}

/// A queue with parameters of type `D`.
pub trait Configured<P: Packet, D>: Discipline<P> + Sized {
    /// Makes an empty queue, created at `now`.
    fn new(params: D, now: Nanos) -> Self;

    /// Returns its parameters.
    fn params(&self) -> &D;

    /// Replaces the parameters, as `tc qdisc change` does.
    fn change(&mut self, params: D, now: Nanos, sink: &mut impl Sink<P>);
}
