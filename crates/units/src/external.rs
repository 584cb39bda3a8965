//! Policies from outside the engine: how a plan names one, and what binds it to its code.
//!
//! A plan holds a [`Spec`]: which class of which source, with which values. The program that runs the
//! plan binds each spec to its code: a [`Code`] around the family's factory. An unbound spec can be
//! read, compared and written, but not run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A value of one parameter, in base units: nanoseconds, bytes, bits per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A flag.
    Flag(bool),
    /// A time, size, rate, number of packets or whole number.
    Integer(i64),
    /// A real number or a probability.
    Real(f64),
    /// A word.
    Text(String),
}

/// Which policy, with which parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Its name as the user writes it, `mine.py:Mine`.
    pub policy: String,
    /// Digest of its source, by which the plan has the text; empty if its code is compiled in.
    #[serde(default)]
    pub source: String,
    /// Its parameters by name.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
}

impl Spec {
    /// A policy that is compiled in.
    pub fn named(policy: &str) -> Self {
        Self { policy: policy.to_owned(), ..Self::default() }
    }
}

/// Why a policy cannot go on: it broke its contract, or its own code failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// The code that a spec is bound to, `F` being the family's factory. It is no part of a plan's data:
/// it is neither written nor compared.
pub struct Code<F: ?Sized>(Option<Arc<F>>);

impl<F: ?Sized> Code<F> {
    /// Code to run.
    pub fn new(factory: Arc<F>) -> Self {
        Self(Some(factory))
    }

    /// The factory, if the spec is bound.
    pub fn get(&self) -> Option<&Arc<F>> {
        self.0.as_ref()
    }

    /// The factory of a policy that is to run.
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
