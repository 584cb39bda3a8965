//! A user's description of a queue, resolved to numbers.

use crate::classes::statements::END;
use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::Sink;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::queue::Queue;
use crate::tc::{Inside, NoKernelEquivalent};
use crate::typed::Typed;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::Parameters;
use sojourn_units::words::{self, Given, Table, Text, WordError};
use sojourn_units::written::Written;
use sojourn_units::{Nanos, Rate, each};
use std::fmt;
use std::sync::LazyLock;

macro_rules! family {
    ($($(#[$serde:meta])? $module:ident::$Queue:ident $(in $Box:ident $open:tt $close:tt)?,)*) => {
        /// A queue and its parameters, by name.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
            /// Returns the parameters under the name of `table`.
            fn read(table: &Table, given: &Given, device: &Device) -> Result<Self, WordError> {
                $(
                    if let Some(params) = read_as(table, given, device) {
                        return params.map(Self::$Queue);
                    }
                )*
                unreachable!("`{}` is of no discipline", table.name)
            }

            /// Returns an empty queue, created at `now`.
            ///
            /// # Panics
            /// On parameters of RED or CHOKe that [`Params::parse`] would refuse.
            pub fn build<P: Packet>(&self, now: Nanos) -> Queue<P> {
                match self {
                    $(Self::$Queue(params) => {
                        Queue::$Queue(crate::$module::$Queue::new(params.clone(), now).into())
                    })*
                }
            }
        }

        impl<P: Packet> Queue<P> {
            /// Replaces the parameters, as `tc qdisc change` does. Packets that no longer fit are dropped
            /// where the kernel drops them.
            ///
            /// # Errors
            /// If `params` are another discipline's; nothing has changed then.
            pub fn change(
                &mut self,
                params: &Params,
                now: Nanos,
                sink: &mut impl Sink<P>,
            ) -> Result<(), OtherDiscipline> {
                if self.name() != params.name() {
                    return Err(OtherDiscipline { queue: self.name(), asked: params.name() });
                }
                match (self, params) {
                    $((Self::$Queue(queue), Params::$Queue(params)) => {
                        queue.change(params.clone(), now, sink);
                    })*
                    _ => unreachable!("disciplines of one name are one"),
                }
                Ok(())
            }
        }
    };
}

disciplines!(family!);

/// Returns the words of every discipline.
pub fn tables() -> &'static [&'static Table] {
    &TABLES
}

/// Returns the words of a class of each discipline whose classes have any, under the discipline's
/// name.
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

/// The parameters that `text` gives to the discipline of `tables` that it names, and how it
/// was read.
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
    /// Reads a description such as `codel limit 300p ecn`, a command of `tc` that sets a discipline,
    /// or one that `tc qdisc show` has printed.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str, device: &Device) -> Result<Self, WordError> {
        let Description { table, given, typed } = describe(tables(), text)?;
        Self::read(table, &given, device).map_err(|error| typed.placed(error))
    }

    /// Returns the description in `text` alone, without the line of `tc` around it.
    ///
    /// # Errors
    /// A line of `tc` without a discipline, or with several.
    pub fn description(text: &str) -> Result<String, WordError> {
        Typed::description(text, tables())
    }

    /// Returns the words of `text`, of which only the names are checked.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn written(text: &str) -> Result<Written, WordError> {
        let Description { table, typed, .. } = describe(tables(), text)?;
        Ok(Written::read(table, &typed.text))
    }

    /// Returns notices about a description that [`Params::parse`] reads: assumptions, words without
    /// effect, values that `tc` warns of.
    pub fn warnings(text: &str, device: &Device) -> Vec<String> {
        let Ok(Description { table, given, typed }) = describe(tables(), text) else {
            return Vec::new();
        };
        let Ok(params) = Self::read(table, &given, device) else { return Vec::new() };
        let mut warnings = typed.notices;
        warnings.extend(disciplines!(each! (Params, params, params => params.warnings(&given))));
        warnings
    }

    /// Reads what `tc qdisc change` would be given, such as `codel limit 300p`: what is not named
    /// keeps its value, unless `tc` states it anew (`red` and `choke` with `limit`, `sfb`).
    ///
    /// # Errors
    /// What is wrong with it, and where; another discipline than this; what cannot be changed.
    pub fn change(&self, text: &str, device: &Device) -> Result<Self, WordError> {
        let Description { given, .. } = describe(&[self.table()], text)?;
        disciplines!(each! (Params to Params, self, (params, changed) => {
            params.changed(&given, device).map(changed)
        }))
    }

    /// Reads the description of a discipline within another one: a change of `present`, if that is of the
    /// same kind.
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

    /// Returns whether it, or a discipline within it, has classes under this number.
    pub(crate) fn has_handle(&self, handle: u16) -> bool {
        disciplines!(each! (Params, self, params => params.has_handle(handle)))
    }

    /// Returns whether it holds each packet of its host's sockets until its departure time.
    pub fn paces(&self) -> bool {
        disciplines!(each! (Params, self, params => params.paces()))
    }

    /// Returns the words of this discipline.
    pub fn table(&self) -> &'static Table {
        disciplines!(each! (Params, self, params => params.table()))
    }

    /// Returns the name of this discipline.
    pub fn name(&self) -> &'static str {
        self.table().name
    }

    /// Returns the name as a user knows it: of a policy of the user's own, its place, such as
    /// `mine.py:Mine`.
    pub fn label(&self) -> String {
        match self {
            Self::External(params) => params.spec.policy.clone(),
            other => other.name().to_owned(),
        }
    }

    /// Returns the unit of its limit, and its size; `None` if the limit is one of memory only.
    pub fn limit(&self) -> Option<(Unit, u32)> {
        disciplines!(each! (Params, self, params => params.limit()))
    }

    /// Visits the numbers used for decisions in addition to the parameters, as in recordings.
    pub fn derived(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        disciplines!(each! (Params, self, params => params.derived(visit)));
    }

    /// Returns the words that describe it.
    pub fn to_text(&self) -> String {
        let text = Text::new(self.name());
        disciplines!(each! (Params, self, params => params.write(text).done()))
    }

    /// Returns the rate that it holds all packets to; none if it does not.
    pub fn rate(&self) -> Option<Rate> {
        disciplines!(each! (Params, self, params => params.rate()))
    }

    /// Returns its content; `None` for a discipline without classes.
    pub(crate) fn inside(&self) -> Option<Inside<'_>> {
        disciplines!(each! (Params, self, params => params.inside()))
    }

    /// Returns the words by which the kernel gives the discipline itself, without what is inside.
    pub(crate) fn own_words(&self) -> Result<String, NoKernelEquivalent> {
        let in_kernel = disciplines!(each! (Params, self, params => params.in_kernel()));
        in_kernel.map_err(|reason| NoKernelEquivalent::new(self.label(), reason))?;
        Ok(disciplines!(each! (Params, self, params => params.to_tc())))
    }

    /// Returns the words by which the kernel gives the same queue in one command.
    ///
    /// # Errors
    /// Where the kernel has none, or needs several commands ([`Params::commands`]).
    pub fn to_tc(&self) -> Result<String, NoKernelEquivalent> {
        if self.inside().is_some_and(|inside| !inside.is_empty()) {
            let why = "`tc` gives classes, their disciplines and filters by commands of their own";
            return Err(NoKernelEquivalent::new(self.label(), why));
        }
        self.own_words()
    }
}

/// A change that names another discipline than the queue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherDiscipline {
    /// The present discipline.
    pub queue: &'static str,
    /// The requested discipline.
    pub asked: &'static str,
}

impl fmt::Display for OtherDiscipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a `{}` cannot be changed into a `{}`", self.queue, self.asked)
    }
}

impl std::error::Error for OtherDiscipline {}
