//! Replay of recorded decisions of queue disciplines.

use crate::own::Faults;
use crate::own::loaded::Loaded;
use crate::own::queue::{code, queue_params};
use crate::parse::json;
use pyo3::prelude::*;
use sojourn_queue::external::{Factory, Params};
use sojourn_units::external::Code;
use std::sync::Arc;

/// Replays one vector file, and returns the report as JSON. `name` is the scenario's name in the
/// report if the text has none.
#[pyfunction(signature = (name, text, /))]
pub(crate) fn verify(py: Python<'_>, name: &str, text: &str) -> PyResult<String> {
    json(&py.detach(|| sojourn_vectors::replay(name, text)))
}

/// Replays one vector file with a user's queue, and returns the report as JSON. `make(words, mtu)`
/// returns the queue's parameters and source code, each as JSON. `words` is a text of `tc` without
/// the discipline's name. The replay calls `make` again for each change of parameters.
#[pyfunction(signature = (name, text, make, /))]
pub(crate) fn verify_own(
    py: Python<'_>,
    name: &str,
    text: &str,
    make: Py<PyAny>,
) -> PyResult<String> {
    let mut own = Own { make, faults: Arc::new(Faults::default()), code: Code::default() };
    json(&py.detach(|| sojourn_vectors::replay_own(name, text, &mut own)))
}

struct Own {
    make: Py<PyAny>,
    faults: Arc<Faults>,
    code: Code<dyn Factory>,
}

impl sojourn_vectors::Own for Own {
    fn params(&mut self, words: &str, mtu: u32) -> Result<Params, String> {
        Python::attach(|py| {
            let message = |error: PyErr| error.value(py).to_string();
            let (queue, sources): (String, String) = self
                .make
                .bind(py)
                .call1((words, mtu))
                .and_then(|made| made.extract())
                .map_err(message)?;
            let mut params = queue_params(&queue).map_err(message)?;
            if self.code.get().is_none() {
                let loaded = Loaded::alone(py, &params.spec, &sources, &self.faults);
                self.code = code(loaded.map_err(message)?);
            }
            params.code = self.code.clone();
            Ok(params)
        })
    }

    fn fault(&mut self) -> Option<String> {
        let error = self.faults.take()?;
        Some(Python::attach(|py| error.value(py).to_string()))
    }
}
