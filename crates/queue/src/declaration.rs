//! The traits of a discipline's parameters, by which all disciplines form one family.

use crate::device::Device;
use crate::discipline::{Discipline, Sink};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::tc::Inside;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{Given, Table, Text, WordError};
use sojourn_units::{Nanos, Rate};

/// The parameters of a discipline, and the facts that code for all disciplines needs.
pub trait DisciplineParams: Parameters<On = Device> + Clone {
    /// Tables with a name and its words; several if the discipline has several names.
    const TABLES: &'static [&'static Table] = &[&Self::TABLE];

    /// Table of the words of the discipline's classes; `None` without classes.
    const CLASS: Option<&'static Table> = None;

    /// Reason why the kernel lacks this discipline; `None` for a discipline of the kernel.
    const NOT_IN_KERNEL: Option<&'static str> = None;

    /// Returns the unit and the value of the limit of all packets in the queue; `None` if there is
    /// no such limit, or only one of memory.
    fn limit(&self) -> Option<(Unit, u32)>;

    /// Returns the table of the name under which the parameters were given.
    fn table(&self) -> &'static Table {
        Self::TABLES[0]
    }

    /// Returns the default parameters of the name of `table`.
    fn named(_table: &Table, device: &Device) -> Self {
        Self::new(device)
    }

    /// Computes values that depend on other values, after all given words are read.
    ///
    /// # Errors
    /// Values that contradict each other.
    fn settle(&mut self, _given: &Given, _device: &Device) -> Result<(), WordError> {
        Ok(())
    }

    /// Returns the parameters after a change. A value that the change does not name is kept, unless
    /// `tc` states all values anew.
    ///
    /// # Errors
    /// A value that cannot be changed, or values that contradict each other.
    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        if given.has("flows") {
            return Err(given.error("flows", "`flows` cannot be changed"));
        }
        self.clone().with(given, device)
    }

    /// Returns these parameters with the given words read into them.
    ///
    /// # Errors
    /// A value that is not allowed.
    fn with(mut self, given: &Given, device: &Device) -> Result<Self, WordError> {
        self.set(given)?;
        self.settle(given, device)?;
        Ok(self)
    }

    /// Returns whether this discipline, or one in its classes, has classes with the major number
    /// `_handle`.
    fn has_handle(&self, _handle: u16) -> bool {
        false
    }

    /// Returns the rate to which the discipline limits all its packets; `None` if it does not
    /// shape.
    fn rate(&self) -> Option<Rate> {
        None
    }

    /// Returns the parts of the discipline that need separate commands; `None` without such parts.
    fn inside(&self) -> Option<Inside<'_>> {
        None
    }

    /// Returns whether the discipline holds each packet until its requested departure time, so that
    /// TCP on the same host paces without a timer of its own (`SK_PACING_FQ`).
    fn paces(&self) -> bool {
        false
    }

    /// Returns warnings about a valid description.
    fn warnings(&self, _given: &Given) -> Vec<String> {
        Vec::new()
    }

    /// Checks whether the kernel has the discipline with these values; inner disciplines are not
    /// checked.
    ///
    /// # Errors
    /// The feature that the kernel lacks.
    fn in_kernel(&self) -> Result<(), &'static str> {
        Self::NOT_IN_KERNEL.map_or(Ok(()), Err)
    }

    /// Returns the words for `tc` that create this discipline, without its classes, inner
    /// disciplines and filters.
    fn to_tc(&self) -> String {
        self.write(Text::new(self.table().name)).done()
    }

    /// Visits derived numbers on which decisions depend, under the names in recordings.
    fn derived(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}
}

/// A queue whose parameters have the type `D`.
pub trait Configured<P: Packet, D>: Discipline<P> + Sized {
    /// Creates an empty queue at time `now`.
    fn new(params: D, now: Nanos) -> Self;

    /// Returns the queue's parameters.
    fn params(&self) -> &D;

    /// Replaces the parameters, as `tc qdisc change`.
    fn change(&mut self, params: D, now: Nanos, sink: &mut impl Sink<P>);
}
