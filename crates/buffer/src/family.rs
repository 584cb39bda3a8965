//! Any policy: one type over all of them, and over their parameters.

use crate::contract::{PolicyParams, Sizing};
use crate::observation::{Decision, Observation, Reason};
use serde::{Deserialize, Serialize};
use sojourn_units::words::{self, WordError};
use sojourn_units::{Bytes, each, family};

policies!(family! (
    /// Which policy, and its settings.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case", tag = "name")]
    pub enum Params by PolicyParams;

    /// A policy by static dispatch.
    #[derive(Clone, Debug)]
    pub enum Policy of Policy;
));

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
    /// The policy that `params` describes.
    pub fn new(params: &Params) -> Self {
        policies!(each! (Params to Policy, params, (params, policy) => policy(params.build())))
    }

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
