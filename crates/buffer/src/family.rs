//! The family of receive buffer policies: one enumeration of all policies, and one of their
//! parameters.

use crate::contract::{PolicyParams, Sizing};
use crate::observation::{Decision, Observation, Reason};
use sojourn_units::words::{self, WordError};
use sojourn_units::{Bytes, each, family};

policies!(family! (
    /// Parameters of a policy; the variant determines the policy.
    #[derive(Clone, Debug, PartialEq)]
    #[serde(rename_all = "kebab-case", tag = "name")]
    pub enum Params by PolicyParams;

    /// A policy, called with static dispatch.
    #[derive(Clone, Debug)]
    pub enum Policy of Policy;
));

impl Params {
    /// Parses a description such as `elastic ceiling 64mb target 50ms`.
    ///
    /// # Errors
    /// If the description is invalid: the place and the reason.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let (table, given) = words::describe("buffer policy", tables(), text)?;
        let mut params = Self::named(table.name).expect("each table belongs to a policy");
        policies!(each! (Params, &mut params, params => params.read(&given)))?;
        Ok(params)
    }

    /// Returns the initial size of a buffer in bytes.
    pub fn initial(&self) -> Bytes {
        policies!(each! (Params, self, params => params.initial()))
    }

    /// Returns the minimum and the maximum size in bytes.
    pub fn bounds(&self) -> (Bytes, Bytes) {
        policies!(each! (Params, self, params => params.bounds()))
    }

    /// Returns the size in bytes that a buffer with the current `size`, decided for `reason`, could
    /// have immediately. Senders may rely on it.
    pub fn potential(&self, size: Bytes, reason: Reason) -> Bytes {
        policies!(each! (Params, self, params => params.potential(size, reason))).max(size)
    }
}

/// Writes the description, which [`Params::parse`] can parse.
impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&policies!(each! (Params, self, params => params.text())))
    }
}

impl Policy {
    /// Returns a new policy with these parameters.
    pub fn new(params: &Params) -> Self {
        policies!(each! (Params to Policy, params, (params, policy) => policy(params.build())))
    }

    /// See [`Sizing::observe`].
    pub fn observe(&mut self, seen: &Observation) -> Decision {
        policies!(each! (Policy, self, policy => policy.observe(seen)))
    }

    /// See [`Sizing::state`].
    pub fn state(&self, visit: &mut dyn FnMut(&str, f64)) {
        policies!(each! (Policy, self, policy => policy.state(visit)));
    }
}
