//! Policies for receive buffers, asked step by step.

use crate::errors::word_error;
use crate::own::{self, Faults};
use crate::parse::json;
use pyo3::prelude::*;
use sojourn_buffer::{Memory, Observation, Params, Policy, Reason};
use sojourn_units::declare::Choices;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns a policy for a receive buffer, in one line, as the JSON of its parameters.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn parse_buffer(py: Python<'_>, text: &str) -> PyResult<String> {
    json(&Params::parse(text).map_err(|e| word_error(py, text, &e))?)
}

/// A policy for the size of a receive buffer: `BufferPolicy("elastic ceiling 64mb")`.
///
/// `observe` takes the state of a buffer, before a packet is added or every 10 ms or so, and
/// returns the buffer's new size. Sizes are bytes as the buffer counts them, times nanoseconds of
/// any clock that does not go back. The first observation is the baseline.
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
        faults.take().map_or(Ok(()), Err)?;
        Ok(Self { params, policy, size, reason: Reason::Hold, faults })
    }

    /// Returns the policy's name.
    #[getter]
    fn name(&self) -> &'static str {
        self.params.name()
    }

    /// Returns the policy with all its settings, in one line.
    #[getter]
    fn text(&self) -> String {
        self.params.to_string()
    }

    /// Returns the size last decided on; before the first observation, that of a buffer that
    /// begins.
    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    /// Returns the least and greatest size.
    #[getter]
    fn bounds(&self) -> (u64, u64) {
        self.params.bounds()
    }

    /// Returns the reason of the size: `hold`, `demand`, `discards`, `rate`, `idle`, `standing`, `bound`
    /// or `pressure`.
    #[getter]
    fn reason(&self) -> &'static str {
        self.reason.name()
    }

    /// Returns the policy's state by name; sizes in bytes.
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
    /// `discarded` and `processed` count bytes from any beginning; `size` is the size in force if it
    /// is not the one last decided on; `needed` are the bytes of a packet about to be put in;
    /// `memory` is all memory and what of it is available.
    #[pyo3(signature = (now, occupied, discarded, *, size=None, needed=0, processed=None, memory=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
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
        self.faults.take().map_or(Ok(self.size), Err)
    }

    /// Returns a policy in the same state, independent of this one.
    fn copy(&self) -> Self {
        self.clone()
    }
}
