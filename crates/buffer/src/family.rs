//! Any policy: one type over all of them, and over their parameters.

use crate::contract::{PolicyParams, Sizing};
use crate::observation::{Decision, Observation, Reason};
use serde::{Deserialize, Serialize};
use sojourn_units::Bytes;
use sojourn_units::words::{self, Table, WordError};

macro_rules! family {
    ($($module:ident::$Policy:ident,)*) => {
        /// Which policy, and its settings.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", tag = "name")]
        pub enum Params {
            $(
                #[doc = concat!("See [`mod@", stringify!($module), "`](crate::", stringify!($module), ").")]
                $Policy(crate::$module::Params),
            )*
        }

        const TABLES: &[&Table] = &[$(&<crate::$module::Params as PolicyParams>::TABLE,)*];

        impl Params {
            /// The policy called `name`, with its defaults.
            fn named(name: &str) -> Option<Self> {
                let all = [$(Self::$Policy(crate::$module::Params::default()),)*];
                all.into_iter().find(|params| params.name() == name)
            }

            /// The policy's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Policy(_) => <crate::$module::Params as PolicyParams>::TABLE.name,)*
                }
            }
        }

        /// A policy by static dispatch.
        #[derive(Clone, Debug)]
        pub enum Policy {
            $(
                #[doc = concat!("See [`mod@", stringify!($module), "`](crate::", stringify!($module), ").")]
                $Policy(<crate::$module::Params as PolicyParams>::Policy),
            )*
        }

        impl Policy {
            /// The policy that `params` describes.
            pub fn new(params: &Params) -> Self {
                match params {
                    $(Params::$Policy(params) => Self::$Policy(params.build()),)*
                }
            }
        }
    };
}

policies!(family!);

macro_rules! each {
    (($Any:ident, $self:expr, $inner:ident => $body:expr) $($module:ident::$Policy:ident,)*) => {
        match $self {
            $($Any::$Policy($inner) => $body,)*
        }
    };
}

/// The words of every policy, but for those from outside, which stand last.
pub fn tables() -> &'static [&'static Table] {
    TABLES.split_last().map_or(&[], |(_, ours)| ours)
}

impl Params {
    /// Reads a description such as `elastic ceiling 64mb target 50ms`.
    ///
    /// # Errors
    /// Where and why it cannot be read.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let (table, given) = words::describe("buffer policy", tables(), text)?;
        let mut params = Self::named(table.name).expect("each table is a policy's");
        policies!(each! (Params, &mut params, params => params.read(&given)))?;
        Ok(params)
    }

    /// Size of a buffer that begins.
    pub fn initial(&self) -> Bytes {
        policies!(each! (Params, self, params => params.initial()))
    }

    /// Least and greatest size.
    pub fn bounds(&self) -> (Bytes, Bytes) {
        policies!(each! (Params, self, params => params.bounds()))
    }

    /// The size that a buffer, which has `size` for `reason`, could have at once if it were asked for:
    /// what a sender may be told.
    pub fn potential(&self, size: Bytes, reason: Reason) -> Bytes {
        policies!(each! (Params, self, params => params.potential(size, reason))).max(size)
    }
}

/// The description that [`Params::parse`] reads back.
impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&policies!(each! (Params, self, params => params.text())))
    }
}

impl Policy {
    /// See [`Sizing::observe`].
    #[inline]
    pub fn observe(&mut self, seen: &Observation) -> Decision {
        policies!(each! (Policy, self, policy => policy.observe(seen)))
    }

    /// See [`Sizing::state`].
    pub fn state(&self, visit: &mut dyn FnMut(&str, f64)) {
        policies!(each! (Policy, self, policy => policy.state(visit)));
    }
}
