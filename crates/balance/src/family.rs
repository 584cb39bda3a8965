//! Any policy: one type over all of them, and over their parameters.

use crate::contract::{Ask, Policy, PolicyParams};
use crate::facts::Flow;
use crate::needs::Needs;
use crate::pick::{Draws, Pick};
use crate::sight::{Known, Sight};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{self, Table, WordError};

macro_rules! family {
    ($($module:ident::$Policy:ident,)*) => {
        /// Which policy, and its settings.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", tag = "name")]
        pub enum Params {
            $(
                #[doc = concat!("See [`", stringify!($module), "`](crate::", stringify!($module), ").")]
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

            /// The words of its policy.
            pub fn table(&self) -> &'static Table {
                match self {
                    $(Self::$Policy(_) => &<crate::$module::Params as PolicyParams>::TABLE,)*
                }
            }
        }

        /// A policy by static dispatch.
        #[derive(Clone, Debug)]
        pub(crate) enum Any {
            $($Policy(<crate::$module::Params as PolicyParams>::Policy),)*
        }

        impl Any {
            pub(crate) fn new(params: &Params, servers: usize, key: u64) -> Self {
                match params {
                    $(Params::$Policy(params) => Self::$Policy(params.build(servers, key)),)*
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
    /// Reads a description such as `iqlb threshold 80% period 100ms`.
    ///
    /// # Errors
    /// Where and why it cannot be read.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let (table, given) = words::describe("balancing policy", tables(), text)?;
        let mut params = Self::named(table.name).expect("each table is a policy's");
        policies!(each! (Params, &mut params, params => params.set(&given)))?;
        Ok(params)
    }

    /// The policy's name.
    pub fn name(&self) -> &'static str {
        self.table().name
    }

    /// Checks parameters that do not come from a text.
    ///
    /// # Errors
    /// A value outside its bounds.
    pub fn check(&self) -> Result<(), String> {
        policies!(each! (Params, self, params => params.check()))
    }

    /// What the policy needs of the program that drives it.
    pub fn needs(&self) -> Needs {
        policies!(each! (Params, self, params => params.needs()))
    }
}

/// The description that [`Params::parse`] reads back.
impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&policies!(each! (Params, self, params => params.text())))
    }
}

impl Any {
    pub(crate) fn observe(&mut self, now: Nanos, servers: &[Known]) {
        policies!(each! (Any, self, policy => policy.observe(now, &Sight::new(servers))));
    }

    pub(crate) fn choose(
        &mut self,
        now: Nanos,
        flow: Flow,
        servers: &[Known],
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        policies!(each! (Any, self, policy => {
            policy.choose(Ask { now, flow, sight: Sight::new(servers), draws })
        }))
    }

    pub(crate) fn finished(
        &mut self,
        now: Nanos,
        server: usize,
        latency: Option<Nanos>,
        servers: &[Known],
    ) {
        policies!(each! (Any, self, policy => {
            policy.finished(now, server, latency, &Sight::new(servers));
        }));
    }

    pub(crate) fn changed(&mut self, servers: &[Known]) {
        policies!(each! (Any, self, policy => policy.changed(&Sight::new(servers))));
    }

    pub(crate) fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        policies!(each! (Any, self, policy => policy.state(visit)));
    }
}
