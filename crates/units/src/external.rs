//! External policies: their representation in plans, and the binding to their code.
//!
//! A plan contains a [`Spec`]: the policy's name, a digest of its source, and the values of its
//! parameters. The program that runs the plan binds each spec to a [`Code`] with the family's
//! factory. An unbound spec can be read, compared and written, but not run.

use crate::data;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Value of one parameter, in base units: nanoseconds, bytes, bits per second.
#[data]
#[derive(Clone, Debug, PartialEq)]
#[serde(untagged)]
pub enum Value {
    /// A flag.
    Flag(bool),
    /// A time, size, rate, number of packets or integer.
    Integer(i64),
    /// A real number or a probability.
    Real(f64),
    /// A text.
    Text(String),
}

/// An external policy and the values of its parameters.
#[data]
#[derive(Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Name of the policy as the user writes it, such as `mine.py:Mine`.
    pub policy: String,
    /// Digest of the policy's source text, which is also the key of this text in the plan; empty
    /// for compiled code.
    #[serde(default)]
    pub source: String,
    /// Values of the parameters, by name.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
}

impl Spec {
    /// Returns the spec of a compiled policy with default parameters.
    pub fn named(policy: &str) -> Self {
        Self { policy: policy.to_owned(), ..Self::default() }
    }
}

/// Reason why a policy cannot continue: it violated its contract, or its code failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

/// The code to which a spec is bound; `F` is the family's factory. The code is not part of a plan's
/// data, so it is neither written nor compared.
pub struct Code<F: ?Sized>(Option<Arc<F>>);

impl<F: ?Sized> Code<F> {
    /// Returns the code of a bound spec.
    pub fn new(factory: Arc<F>) -> Self {
        Self(Some(factory))
    }

    /// Returns the factory; `None` if the spec is not bound.
    pub fn get(&self) -> Option<&Arc<F>> {
        self.0.as_ref()
    }

    /// Returns the factory of a policy that is to run.
    ///
    /// # Panics
    /// If `spec` was not bound to its code.
    pub fn of(&self, spec: &Spec) -> &F {
        self.0.as_deref().unwrap_or_else(|| panic!("`{}` is not bound to its code", spec.policy))
    }
}

impl<F: ?Sized> Default for Code<F> {
    fn default() -> Self {
        Self(None)
    }
}

impl<F: ?Sized> Clone for Code<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F: ?Sized> fmt::Debug for Code<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "bound" } else { "unbound" })
    }
}

impl<F: ?Sized> PartialEq for Code<F> {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}
