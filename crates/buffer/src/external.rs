//! External receive buffer policies, whose code is outside this crate.
//!
//! A [`Policy`] returns a size. [`External`] limits the size to the bounds of the parameters, but
//! not below the occupied bytes. If a policy returns a [`Fault`], [`Policy::on_fault`] is called
//! once, the policy is not called again, and the buffer keeps its size.
//!
//! `examples/policies/` contains a complete policy with its own `main`.

use crate::contract::{PolicyParams, Sizing, bytes, within};
use crate::observation::{Decision, Observation, Reason};
use sojourn_units::declare::unset;
use sojourn_units::external::{Code, Fault, Spec};
use sojourn_units::{Bytes, Nanos, params};
use std::sync::Arc;

/// An external receive buffer policy.
///
/// # Contract
/// - The first observation is the baseline of the counters; the buffer may already be in use.
/// - If the time or a counter has decreased, it counts as unchanged.
/// - The same observations lead to the same decisions.
pub trait Policy: Send + Sync {
    /// Returns the size that the buffer must have from now on, in bytes.
    ///
    /// # Errors
    /// If the policy's code fails.
    fn observe(&mut self, seen: &Observation) -> Result<Bytes, Fault>;

    /// Calls `visit` for each variable of the policy's state, with its name and value.
    fn state(&self, visit: &mut dyn FnMut(&str, f64));

    /// Returns a copy of the policy in its current state.
    fn copy(&self) -> Box<dyn Policy>;

    /// Called once, after the first fault. The policy is not called again.
    fn on_fault(&mut self, now: Nanos, fault: &Fault);
}

/// Creates instances of a policy with its parameters, one for each buffer.
pub trait Factory: Send + Sync {
    /// Returns the policy of a new buffer.
    ///
    /// # Errors
    /// If the policy's code fails.
    fn create(&self, params: &Params) -> Result<Box<dyn Policy>, Fault>;

    /// Called after [`Factory::create`] failed. The buffer keeps its size.
    fn on_fault(&self, fault: &Fault);
}

params! {
    "external": "";

    /// An external policy and its parameters.
    #[derive(Clone, Debug, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Name of the policy and values of its parameters.
        spec: Spec = unset(),
        /// Minimum and initial size.
        floor: Bytes = bytes("64kb"),
        /// Maximum size.
        ceiling: Bytes = bytes("256mb"),
        /// Code of the policy, to which the parameters must be bound before a run.
        #[serde(skip)]
        code: Code<dyn Factory> = unset(),
    }
}

impl Params {
    /// Returns the parameters of a policy that a user wrote in Rust.
    pub fn bound(name: &str, factory: Arc<dyn Factory>) -> Self {
        Self { spec: Spec::named(name), code: Code::new(factory), ..Self::default() }
    }
}

impl PolicyParams for Params {
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

/// An external policy with the bounds of the size.
pub struct External {
    floor: Bytes,
    ceiling: Bytes,
    /// The policy; `None` after a fault.
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
