//! Errors in users' policies. The first error ends the run and is reported with its place.

use super::package::package;
use crate::errors::PolicyError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use sojourn_units::time::seconds;
use sojourn_units::{EPOCH, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The first error in the policies of a run.
#[derive(Default)]
pub(crate) struct Faults {
    any: AtomicBool,
    first: Mutex<Option<PyErr>>,
    stop: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Faults {
    /// Returns whether an error has occurred, so that the run must stop.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Sets a function that is called at each error, for a run that does not check [`Faults::any`].
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

    /// Records that the policy `name` violated its contract or raised an exception. `place` names
    /// the call, `now` is its time.
    pub(crate) fn report(&self, name: &str, place: &str, now: Nanos, message: &str) {
        let at = seconds(now.saturating_sub(EPOCH));
        self.keep(PolicyError::new_err(format!("{name} failed at {at} s in {place}: {message}")));
    }

    /// Returns the error as an exception, and removes it.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns `value`, or the error as an exception, which is removed.
    pub(crate) fn check<T>(&self, value: T) -> PyResult<T> {
        self.take().map_or(Ok(value), Err)
    }

    /// Returns a message for an exception of the user's code. An interrupt of the user ends the run
    /// and is raised unchanged.
    pub(crate) fn explain(&self, py: Python<'_>, error: PyErr) -> String {
        let text = error.to_string();
        let value = error.clone_ref(py).into_value(py);
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            let asked = package(py).and_then(|p| p.call_method1("interrupted", (&value,)));
            if asked.is_ok_and(|asked| asked.is_truthy().unwrap_or(true)) {
                self.keep(error);
                return String::new();
            }
        }
        // The package's function adds the traceback, which contains the line of the user's code.
        let explained = package(py)
            .and_then(|package| package.call_method1("explain", (value,)))
            .and_then(|text| text.extract());
        explained.unwrap_or(text)
    }
}
