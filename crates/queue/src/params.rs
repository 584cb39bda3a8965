//! Parsed descriptions of queues: the parameters of any discipline.

use crate::classes::statements::END;
use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::Sink;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::queue::Queue;
use crate::tc::{Inside, NoKernelEquivalent};
use crate::typed::{Typed, unmodelled};
use sojourn_units::declare::Parameters;
use sojourn_units::words::{self, Given, Table, Text, Token, Value, WordError};
use sojourn_units::written::Written;
use sojourn_units::{Nanos, Rate, each};
use std::sync::LazyLock;

macro_rules! family {
    ($($(#[$serde:meta])? $module:ident::$Queue:ident $(in $Box:ident $open:tt $close:tt)?,)*) => {
        /// Name and parameters of a queue discipline.
        #[sojourn_units::data]
        #[derive(Clone, Debug, PartialEq)]
        #[serde(tag = "name", rename_all = "snake_case")]
        pub enum Params {
            $(
                #[doc = concat!("See [`", stringify!($module), "`](crate::", stringify!($module), ").")]
                $(#[$serde])?
                $Queue(crate::$module::Params),
            )*
        }

        static TABLES: LazyLock<Vec<&Table>> = LazyLock::new(|| {
            let tables: &[&[&Table]] =
                &[$(<crate::$module::Params as DisciplineParams>::TABLES,)*];
            tables.concat().into_iter().filter(|table| table.is_named()).collect()
        });

        static CLASSES: LazyLock<Vec<&Table>> = LazyLock::new(|| {
            let tables = [$(<crate::$module::Params as DisciplineParams>::CLASS,)*];
            tables.into_iter().flatten().filter(|table| !table.words.is_empty()).collect()
        });

        impl Params {
            /// Returns the parameters of the discipline with the name in `table`.
            fn read(table: &Table, given: &Given, device: &Device) -> Result<Self, WordError> {
                $(
                    if let Some(params) = read_as(table, given, device) {
                        return params.map(Self::$Queue);
                    }
                )*
                unreachable!("no discipline has the name `{}`", table.name)
            }

            /// Returns an empty queue, created at time `now`.
            ///
            /// # Panics
            /// If the parameters are of RED or CHOKe and [`Params::parse`] would reject them.
            pub fn build<P: Packet>(&self, now: Nanos) -> Queue<P> {
                match self {
                    $(Self::$Queue(params) => {
                        Queue::$Queue(crate::$module::$Queue::new(params.clone(), now).into())
                    })*
                }
            }
        }

        impl<P: Packet> Queue<P> {
            /// Replaces the parameters, as `tc qdisc change`. Packets that exceed the new limit are
            /// dropped if the kernel drops them.
            ///
            /// # Errors
            /// If `params` are of another discipline; the queue is unchanged.
            pub fn change(
                &mut self,
                params: &Params,
                now: Nanos,
                sink: &mut impl Sink<P>,
            ) -> Result<(), OtherDiscipline> {
                if self.name() != params.name() {
                    return Err(OtherDiscipline { queue: self.name(), requested: params.name() });
                }
                match (self, params) {
                    $((Self::$Queue(queue), Params::$Queue(params)) => {
                        queue.change(params.clone(), now, sink);
                    })*
                    _ => unreachable!("each discipline has its own name"),
                }
                Ok(())
            }
        }
    };
}

disciplines!(family!);

/// Returns the words of each discipline.
pub fn tables() -> &'static [&'static Table] {
    &TABLES
}

/// Returns a table of class words, under the discipline's name, for each discipline whose classes
/// have words.
pub fn class_tables() -> &'static [&'static Table] {
    &CLASSES
}

fn is_called<D: DisciplineParams>(name: &str) -> bool {
    D::TABLES.iter().any(|table| table.name == name)
}

fn read_as<D: DisciplineParams>(
    table: &Table,
    given: &Given,
    device: &Device,
) -> Option<Result<D, WordError>> {
    is_called::<D>(table.name).then(|| D::named(table, device).with(given, device))
}

/// A description: its discipline, its words, and the text as typed.
struct Description {
    table: &'static Table,
    given: Given,
    typed: Typed,
}

fn describe(tables: &[&'static Table], text: &str) -> Result<Description, WordError> {
    let typed = Typed::read(text, tables)?;
    let read = words::describe("queue", tables, &typed.text);
    let (table, given) = read.map_err(|error| typed.placed(error))?;
    Ok(Description { table, given, typed })
}

impl Params {
    /// Reads a description such as `codel limit 300p ecn`.
    ///
    /// # Errors
    /// What is wrong in the text, and its position.
    pub fn parse(text: &str, device: &Device) -> Result<Self, WordError> {
        let Description { table, given, typed } = describe(tables(), text)?;
        Self::read(table, &given, device).map_err(|error| typed.placed(error))
    }

    /// Reads the discipline `name` from its words, without classes. `inner` is a discipline that
    /// another reader has read, for a discipline that holds exactly one other. Positions of errors
    /// are those of the words; `end` is the position behind the last word.
    ///
    /// # Errors
    /// What is wrong in the words, and its position.
    pub fn from_words(
        name: Token<'_>,
        words: &[Token<'_>],
        end: usize,
        holds: bool,
        device: &Device,
    ) -> Result<Self, WordError> {
        let Some(table) = tables().iter().find(|table| table.name == name.text) else {
            let known = tables().iter().map(|table| table.name.to_owned()).collect();
            let unknown = || name.error(format!("unknown queue `{}`", name.text), known);
            return Err(unmodelled(name, tables()).unwrap_or_else(unknown));
        };
        let mut given = words::read(table, words, end)?;
        if holds {
            given.add("child", Value::Text("pfifo".to_owned()));
        }
        Self::read(table, &given, device)
    }

    /// Returns the words of `text`; only their names are checked, not their values.
    ///
    /// # Errors
    /// What is wrong in the text, and its position.
    pub fn written(text: &str) -> Result<Written, WordError> {
        let Description { table, typed, .. } = describe(tables(), text)?;
        Ok(Written::read(table, &typed.text))
    }

    /// Returns the names of the classes that hold packets and that the description states, or whose
    /// discipline it states; the names are those of [`Discipline::leaves`](crate::Discipline::leaves).
    /// The transmit queues of a device are none: the device selects them.
    pub fn stated_classes(&self) -> Vec<String> {
        let mut names = Vec::new();
        if let Some(inside) = self.inside() {
            inside.name_stated("", &mut names);
        }
        names
    }

    /// Returns warnings about a valid description: assumptions, words without effect, values about
    /// which `tc` warns. A description that is not valid has none.
    pub fn warnings(text: &str, device: &Device) -> Vec<String> {
        let Ok(Description { table, given, typed }) = describe(tables(), text) else {
            return Vec::new();
        };
        let Ok(params) = Self::read(table, &given, device) else { return Vec::new() };
        let mut warnings = typed.notices;
        warnings.extend(disciplines!(each! (Params, params, params => params.warnings(&given))));
        warnings
    }

    /// Reads the words of a `tc qdisc change`, such as `codel limit 300p`. A value that they do not
    /// name is kept, unless `tc` states all values anew (such as `red` with `limit`).
    ///
    /// # Errors
    /// What is wrong in the text, and its position; another discipline; a value that cannot be
    /// changed.
    pub fn change(&self, text: &str, device: &Device) -> Result<Self, WordError> {
        let Description { given, .. } = describe(&[self.table()], text)?;
        disciplines!(each! (Params to Params, self, (params, changed) => {
            params.changed(&given, device).map(changed)
        }))
    }

    /// Reads the description of an inner discipline: a change of `present` if it names the same
    /// discipline.
    pub(crate) fn read_within(
        present: Option<&Self>,
        text: &str,
        device: &Device,
    ) -> Result<Self, WordError> {
        let name = text.split_whitespace().next().unwrap_or("").trim_end_matches(END);
        match present {
            Some(present) if present.name() == name => present.change(text, device),
            _ => Self::parse(text, device),
        }
    }

    /// Returns whether this discipline, or an inner one, has classes with the major number
    /// `handle`.
    pub(crate) fn has_handle(&self, handle: u16) -> bool {
        disciplines!(each! (Params, self, params => params.has_handle(handle)))
    }

    /// Returns whether the discipline holds each packet until its requested departure time
    /// (`SK_PACING_FQ`).
    pub fn paces(&self) -> bool {
        disciplines!(each! (Params, self, params => params.paces()))
    }

    /// Returns the table of this discipline's words.
    pub fn table(&self) -> &'static Table {
        disciplines!(each! (Params, self, params => params.table()))
    }

    /// Returns the name of this discipline.
    pub fn name(&self) -> &'static str {
        self.table().name
    }

    /// Returns the name that users see. For a policy of the user's own it is the policy's file and
    /// class, such as `mine.py:Mine`.
    pub fn label(&self) -> String {
        match self {
            Self::External(params) => params.spec.policy.clone(),
            other => other.name().to_owned(),
        }
    }

    /// Returns the unit and the value of the limit of all packets in the queue; `None` if there is
    /// no such limit, or only one of memory.
    pub fn limit(&self) -> Option<(Unit, u32)> {
        disciplines!(each! (Params, self, params => params.limit()))
    }

    /// Visits derived numbers on which decisions depend, under the names in recordings.
    pub fn derived(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        disciplines!(each! (Params, self, params => params.derived(visit)));
    }

    /// Returns a description that [`Params::parse`] reads as these parameters.
    pub fn to_text(&self) -> String {
        let text = Text::new(self.name());
        disciplines!(each! (Params, self, params => params.write(text).done()))
    }

    /// Returns the rate to which the discipline limits all its packets; `None` if it does not
    /// shape.
    pub fn rate(&self) -> Option<Rate> {
        disciplines!(each! (Params, self, params => params.rate()))
    }

    /// Returns the parts of the discipline that need separate commands; `None` without such parts.
    pub(crate) fn inside(&self) -> Option<Inside<'_>> {
        disciplines!(each! (Params, self, params => params.inside()))
    }

    /// Returns the words for `tc` that create this discipline, without its classes, inner
    /// disciplines and filters.
    pub(crate) fn own_words(&self) -> Result<String, NoKernelEquivalent> {
        let in_kernel = disciplines!(each! (Params, self, params => params.in_kernel()));
        in_kernel.map_err(|reason| NoKernelEquivalent::new(self.label(), reason))?;
        Ok(disciplines!(each! (Params, self, params => params.to_tc())))
    }

    /// Returns the words for `tc` that create the same queue with one command.
    ///
    /// # Errors
    /// If the kernel has no equivalent, or needs several commands ([`Params::commands`]).
    pub fn to_tc(&self) -> Result<String, NoKernelEquivalent> {
        if self.inside().is_some_and(|inside| !inside.is_empty()) {
            let why = "`tc` needs a separate command for each class, inner discipline and filter";
            return Err(NoKernelEquivalent::new(self.label(), why));
        }
        self.own_words()
    }
}

/// Error: a change names a discipline other than the queue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{queue}` cannot be changed into `{requested}`")]
pub struct OtherDiscipline {
    /// Name of the queue's discipline.
    pub queue: &'static str,
    /// Name of the discipline in the change.
    pub requested: &'static str,
}
