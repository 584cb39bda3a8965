//! Policies for receive buffers from outside this crate.
//!
//! A [`Policy`] returns a size; [`External`] limits it to the bounds of its parameters, but not
//! below the occupied size. A policy that returns a [`Fault`] is informed once
//! ([`Policy::on_fault`]) and not called again; the buffer then keeps its size.
//!
//! `examples/policies/` has a complete policy with its own `main`.

use crate::contract::{PolicyParams, Sizing, bytes, within};
use crate::observation::{Decision, Observation, Reason};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::unset;
use sojourn_units::external::{Code, Fault, Spec};
use sojourn_units::words::Table;
use sojourn_units::{Bytes, Nanos, params};
use std::sync::Arc;

/// A policy's decisions.
///
/// # Contract
/// - The first observation is the baseline: the buffer may be in use. Time and counters that go back
///   count as standing still.
/// - Same observations give same decisions.
pub trait Policy: Send + Sync {
    /// Returns the size of the buffer from now on, in bytes.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn observe(&mut self, seen: &Observation) -> Result<Bytes, Fault>;

    /// Visits the state that the policy exposes.
    fn state(&self, visit: &mut dyn FnMut(&str, f64));

    /// Returns a copy of the policy in its present state.
    fn copy(&self) -> Box<dyn Policy>;

    /// Called once, after the first fault.
    fn on_fault(&mut self, now: Nanos, fault: &Fault);
}

/// Creates policies of one class with its parameters, one for each buffer.
pub trait Factory: Send + Sync {
    /// Returns the policy of a new buffer.
    ///
    /// # Errors
    /// A fault in the policy's code.
    fn create(&self, params: &Params) -> Result<Box<dyn Policy>, Fault>;

    /// Called after [`Factory::create`] failed; the buffer keeps its size.
    fn on_fault(&self, fault: &Fault);
}

params! {
    /// An external policy and its parameters.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// The policy and its values.
        spec: Spec = unset(),
        /// Least and initial size.
        floor: Bytes = bytes("64kb"),
        /// Greatest size.
        ceiling: Bytes = bytes("256mb"),
        /// The code.
        #[serde(skip)]
        code: Code<dyn Factory> = unset(),
    }
}

impl Params {
    /// A user's policy in Rust.
    pub fn bound(name: &str, factory: Arc<dyn Factory>) -> Self {
        Self { spec: Spec::named(name), code: Code::new(factory), ..Self::default() }
    }
}

impl PolicyParams for Params {
    const TABLE: Table = Table::external("external");

    type Policy = External;

    fn build(&self) -> External {
        let factory = self.code.of(&self.spec);
        let policy = factory.create(self).inspect_err(|fault| factory.on_fault(fault));
        External { floor: self.floor, ceiling: self.ceiling, policy: policy.ok() }
    }

    fn sizes(&self) -> Vec<(&'static str, Bytes)> {
        vec![("floor", self.floor), ("ceiling", self.ceiling)]
    }

    fn text(&self) -> String {
        self.spec.policy.clone()
    }
}

/// An external policy with its bounds.
pub struct External {
    floor: Bytes,
    ceiling: Bytes,
    /// `None` after a fault.
    policy: Option<Box<dyn Policy>>,
}

impl Clone for External {
    fn clone(&self) -> Self {
        Self { policy: self.policy.as_ref().map(|policy| policy.copy()), ..*self }
    }
}

impl std::fmt::Debug for External {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("External").field("failed", &self.policy.is_none()).finish_non_exhaustive()
    }
}

impl Sizing for External {
    fn observe(&mut self, seen: &Observation) -> Decision {
        let fits = |size| within(size, self.floor, self.ceiling, seen.occupied);
        let answer = self.policy.as_mut().map(|policy| {
            policy.observe(seen).inspect_err(|fault| policy.on_fault(seen.now, fault))
        });
        let Some(Ok(size)) = answer else {
            self.policy = None;
            return Decision { size: fits(seen.size), reason: Reason::Hold };
        };
        let reason = match fits(size) {
            bounded if bounded != size => Reason::Bound,
            same if same == seen.size => Reason::Hold,
            _ => Reason::Policy,
        };
        Decision { size: fits(size), reason }
    }

    fn state(&self, visit: &mut dyn FnMut(&str, f64)) {
        if let Some(policy) = &self.policy {
            policy.state(visit);
        }
    }
}
