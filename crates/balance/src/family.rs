//! The family of balancing policies: one enumeration of all policies, and one of their parameters.

use crate::contract::{Policy, PolicyParams, Request};
use crate::facts::Flow;
use crate::needs::Needs;
use crate::pick::{Draws, Pick};
use crate::view::{Known, Servers};
use sojourn_units::declare::Parameters;
use sojourn_units::words::{self, WordError};
use sojourn_units::{Nanos, each, family};

policies!(family! (
    /// Parameters of a policy; the variant determines the policy.
    #[derive(Clone, Debug, PartialEq)]
    #[serde(rename_all = "kebab-case", tag = "name")]
    pub enum Params by PolicyParams;

    /// A policy, called with static dispatch.
    #[derive(Clone, Debug)]
    pub(crate) enum Any of Policy;
));

impl Params {
    /// Parses a description such as `iqlb threshold 80% period 100ms`.
    ///
    /// # Errors
    /// If the description is invalid: the place and the reason.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let (table, given) = words::describe("balancing policy", tables(), text)?;
        let mut params = Self::named(table.name).expect("each table belongs to a policy");
        policies!(each! (Params, &mut params, params => params.set(&given)))?;
        Ok(params)
    }

    /// Checks parameters that did not come from a text.
    ///
    /// # Errors
    /// If a value is outside its bounds.
    pub fn check(&self) -> Result<(), String> {
        policies!(each! (Params, self, params => params.check()))
    }

    /// Returns the information that the policy needs from its caller.
    pub fn needs(&self) -> Needs {
        policies!(each! (Params, self, params => params.needs()))
    }
}

/// Writes the description, which [`Params::parse`] can parse.
impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&policies!(each! (Params, self, params => params.text())))
    }
}

impl Any {
    pub(crate) fn new(params: &Params, servers: usize, key: u64) -> Self {
        policies!(each! (Params to Any, params, (params, any) => any(params.build(servers, key))))
    }

    pub(crate) fn observe(&mut self, now: Nanos, servers: &[Known]) {
        policies!(each! (Any, self, policy => policy.observe(now, &Servers::new(servers))));
    }

    pub(crate) fn choose(
        &mut self,
        now: Nanos,
        flow: Flow,
        servers: &[Known],
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        policies!(each! (Any, self, policy => {
            policy.choose(Request { now, flow, servers: Servers::new(servers), draws })
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
            policy.finished(now, server, latency, &Servers::new(servers));
        }));
    }

    pub(crate) fn changed(&mut self, servers: &[Known]) {
        policies!(each! (Any, self, policy => policy.changed(&Servers::new(servers))));
    }

    pub(crate) fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        policies!(each! (Any, self, policy => policy.state(visit)));
    }
}
