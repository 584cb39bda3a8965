//! Receive buffer policies for Python programs, which call them step by step.

use crate::errors::word_error;
use crate::own::{self, Faults};
use crate::parse::json;
use pyo3::prelude::*;
use sojourn_buffer::{Memory, Observation, Params, Policy, Reason};
use sojourn_units::declare::Choices;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parses a receive buffer policy in one line, and returns its parameters as JSON.
#[pyfunction(signature = (text, /))]
pub(crate) fn parse_buffer(py: Python<'_>, text: &str) -> PyResult<String> {
    json(&Params::parse(text).map_err(|e| word_error(py, text, &e))?)
}

/// A policy for the size of a receive buffer, such as `BufferPolicy("elastic ceiling 64mb")`.
///
/// Call `observe` with the state of the buffer before a packet is added, or about every 10 ms; it
/// returns the buffer's new size. Sizes are in bytes as the buffer counts them, times in
/// nanoseconds of any clock that does not go back. The first observation is the baseline for the
/// counters.
#[pyclass(module = "sojourn._core")]
#[derive(Clone)]
pub(crate) struct BufferPolicy {
    params: Params,
    policy: Policy,
    size: u64,
    reason: Reason,
    faults: Arc<Faults>,
}

#[pymethods]
impl BufferPolicy {
    #[new]
    #[pyo3(signature = (text, /))]
    fn new(py: Python<'_>, text: &str) -> PyResult<Self> {
        let faults = Arc::new(Faults::default());
        let params = own::buffer::read(py, text, &faults)?;
        let (policy, size) = (Policy::new(&params), params.initial());
        faults.check(())?;
        Ok(Self { params, policy, size, reason: Reason::Hold, faults })
    }

    /// Returns the policy's name.
    #[getter]
    fn name(&self) -> &'static str {
        self.params.name()
    }

    /// Returns the policy with all parameters, in one line.
    #[getter]
    fn text(&self) -> String {
        self.params.to_string()
    }

    /// Returns the size of the last decision; before the first observation, the policy's initial
    /// size.
    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    /// Returns the minimum and the maximum size.
    #[getter]
    fn bounds(&self) -> (u64, u64) {
        self.params.bounds()
    }

    /// Returns the reason of the size: `hold`, `demand`, `discards`, `rate`, `idle`, `standing`,
    /// `bound`, `pressure` or `policy`.
    #[getter]
    fn reason(&self) -> &'static str {
        self.reason.name()
    }

    /// Returns the policy's state: the values of its variables by name. Sizes are in bytes.
    #[getter]
    fn state(&self) -> BTreeMap<String, f64> {
        let mut state = BTreeMap::new();
        self.policy.state(&mut |name, value| {
            state.insert(name.to_owned(), value);
        });
        state
    }

    /// Returns the buffer's new size.
    ///
    /// `discarded` and `processed` are counters of bytes, which may begin at any value. `size` is
    /// the buffer's current size, if it differs from the last decision. `needed` is the size of a
    /// packet that is about to be added. `memory` is a pair of total and available memory.
    #[pyo3(signature = (now, occupied, discarded, *, size=None, needed=0, processed=None, memory=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python method")]
    fn observe(
        &mut self,
        now: u64,
        occupied: u64,
        discarded: u64,
        size: Option<u64>,
        needed: u64,
        processed: Option<u64>,
        memory: Option<(u64, u64)>,
    ) -> PyResult<u64> {
        let memory = memory.map(|(total, available)| Memory { total, available });
        let decision = self.policy.observe(&Observation {
            now,
            size: size.unwrap_or(self.size),
            occupied,
            reserved: 0,
            needed,
            discarded,
            processed,
            memory,
        });
        (self.size, self.reason) = (decision.size, decision.reason);
        self.faults.check(self.size)
    }

    /// Returns an independent copy of the policy in its current state.
    fn copy(&self) -> Self {
        self.clone()
    }
}
