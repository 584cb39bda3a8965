//! Faults of a user's policy: the first fault ends the run, with its place.

use super::package::package;
use crate::errors::PolicyError;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use sojourn_units::time::seconds;
use sojourn_units::{EPOCH, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The first fault of a run's policies.
#[derive(Default)]
pub(crate) struct Faults {
    any: AtomicBool,
    first: Mutex<Option<PyErr>>,
    stop: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Faults {
    /// Returns whether there is one, so that the run is to stop.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Has `stop` called at each fault, for a run that does not look at [`Faults::any`].
    pub(crate) fn on_fault(&self, stop: impl Fn() + Send + Sync + 'static) {
        let _ = self.stop.set(Box::new(stop));
    }

    fn keep(&self, error: PyErr) {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.any.store(true, Ordering::Relaxed);
        if let Some(stop) = self.stop.get() {
            stop();
        }
    }

    /// A policy broke its contract or raised an exception: `name` is its name, `place` what it was
    /// asked.
    pub(crate) fn report(&self, name: &str, place: &str, now: Nanos, message: &str) {
        let at = seconds(now.saturating_sub(EPOCH));
        self.keep(PolicyError::new_err(format!("{name} failed at {at} s in {place}: {message}")));
    }

    /// Returns the fault as an exception, once.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns an exception of the user's code as a message; an exception that is not its error,
    /// such as an interrupt, ends the run unchanged.
    pub(crate) fn explain(&self, py: Python<'_>, error: PyErr) -> String {
        if !error.is_instance_of::<PyException>(py) {
            self.keep(error);
            return String::new();
        }
        let text = error.to_string();
        // With its traceback, which contains the user's line.
        let value = error.into_value(py);
        let told = package(py)
            .and_then(|package| package.call_method1("explain", (value,)))
            .and_then(|text| text.extract());
        told.unwrap_or(text)
    }
}
