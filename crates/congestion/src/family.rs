//! Any congestion control: one type over all of them, and over their parameters.

use crate::control::{Control, ControlParams, EcnUse};
use crate::external;
use crate::hystart;
use crate::reno;
use crate::window::{Ack, Window};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::Parameters;
use sojourn_units::words::{Given, Table, WordError};
use std::ops::{Deref, DerefMut};

macro_rules! family {
    ($($module:ident::$Control:ident,)*) => {
        /// Which control, and its settings.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case", tag = "name")]
        pub enum Params {
            $(
                #[doc = concat!("See [`", stringify!($module), "`](crate::", stringify!($module), ").")]
                $Control(crate::$module::Params),
            )*
            /// See [`external`](crate::external).
            External(Box<external::Params>),
        }

        /// The names and words of all controls.
        pub const TABLES: &[&Table] = &[$(&<crate::$module::Params as ControlParams>::TABLE,)*];

        impl Params {
            /// The control called `name`, with its defaults.
            pub fn named(name: &str) -> Option<Self> {
                let all = [$(Self::$Control(crate::$module::Params::default()),)*];
                all.into_iter().find(|params| params.name() == name)
            }

            /// The control's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Control(_) => <crate::$module::Params as ControlParams>::TABLE.name,)*
                    Self::External(_) => "external",
                }
            }

            /// What of ECN it asks for.
            pub fn ecn(&self) -> EcnUse {
                match self {
                    $(Self::$Control(_) => <crate::$module::Params as ControlParams>::ECN,)*
                    Self::External(params) => params.ecn(),
                }
            }

            /// Whether slow start ends without a loss, as the host has it.
            pub fn has_hystart(&self) -> bool {
                match self {
                    $(Self::$Control(_) => <crate::$module::Params as ControlParams>::HYSTART,)*
                    Self::External(_) => false,
                }
            }

            /// Takes over the values that are given.
            ///
            /// # Errors
            /// A value that is not allowed.
            pub fn set(&mut self, given: &Given) -> Result<(), WordError> {
                match self {
                    $(Self::$Control(params) => params.set(given),)*
                    // Its words are read where its code is.
                    Self::External(_) => Ok(()),
                }
            }
        }

        /// A congestion control of any kind.
        ///
        /// It is seen as a [`Control`]; the methods that are called for each segment are dispatched
        /// statically.
        #[derive(Clone, Debug)]
        #[allow(
            clippy::large_enum_variant,
            reason = "one per connection, and boxing costs each ACK a miss"
        )]
        pub enum Congestion {
            $(
                #[doc = concat!("See [`", stringify!($module), "`](crate::", stringify!($module), ").")]
                $Control(crate::$module::$Control),
            )*
            /// See [`external`](crate::external).
            External(external::External),
        }

        impl Congestion {
            /// The control that `params` describes, with `slow_start` where it has one.
            pub fn new(params: &Params, slow_start: hystart::Params, window: &Window) -> Self {
                match params {
                    $(Params::$Control(params) => Self::$Control(params.build(slow_start, window)),)*
                    Params::External(params) => Self::External(params.build()),
                }
            }

            /// See [`Control::on_ack`].
            #[inline]
            pub fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
                match self {
                    $(Self::$Control(control) => control.on_ack(window, ack),)*
                    Self::External(control) => control.on_ack(window, ack),
                }
            }

            /// See [`Control::pacing_rate`].
            #[inline]
            pub fn pacing_rate(&self) -> Option<u64> {
                match self {
                    $(Self::$Control(control) => control.pacing_rate(),)*
                    Self::External(control) => control.pacing_rate(),
                }
            }
        }

        impl Deref for Congestion {
            type Target = dyn Control;

            #[inline]
            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$Control(control) => control,)*
                    Self::External(control) => control,
                }
            }
        }

        impl DerefMut for Congestion {
            #[inline]
            fn deref_mut(&mut self) -> &mut Self::Target {
                match self {
                    $(Self::$Control(control) => control,)*
                    Self::External(control) => control,
                }
            }
        }
    };
}

controls!(family!);

impl From<external::Params> for Params {
    fn from(params: external::Params) -> Self {
        Self::External(Box::new(params))
    }
}

impl Params {
    /// What runs on a connection whose peer echoes each mark, or does not: L4S needs it to, and gives
    /// way to Reno otherwise.
    #[must_use]
    pub fn agreed(&self, is_exact: bool) -> &Self {
        const RENO: &Params = &Params::Reno(reno::Params {});
        if self.ecn() == EcnUse::L4s && !is_exact { RENO } else { self }
    }
}
