//! Balancing policies written in Python.

use super::faults::Faults;
use super::loaded::{Loaded, alone};
use super::views::{Draws, shown};
use super::watch::Asked as Called;
use crate::errors::word_error;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sojourn_balance::external::{self, Policy, ServerInfo};
use sojourn_balance::{Flow, Limit, Params};
use sojourn_units::external::{Code, Fault};
use sojourn_units::{EPOCH, Nanos, Rate};
use std::sync::Arc;

/// Returns the code of a user's class for balancing policies.
pub(crate) fn code(loaded: Loaded) -> Code<dyn external::Factory> {
    Code::new(Arc::new(Factory(Arc::new(loaded))))
}

/// Returns the parameters of a policy. `text` is either the one line of a built-in policy, or the
/// JSON of a user's policy and its sources.
pub(crate) fn read(py: Python<'_>, text: &str, faults: &Arc<Faults>) -> PyResult<Params> {
    let Some((mut params, sources)) = alone::<external::Params>(text)? else {
        return Params::parse(text).map_err(|e| word_error(py, text, &e));
    };
    params.code = code(Loaded::new(py, &params.spec, &sources, faults)?);
    Ok(Params::External(params))
}

struct Factory(Arc<Loaded>);

impl external::Factory for Factory {
    fn create(
        &self,
        params: &external::Params,
        _servers: usize,
        key: u64,
    ) -> Result<Box<dyn Policy>, Fault> {
        let policy = self.0.make(|py| {
            let draws = Bound::new(py, Draws::keyed(key))?.into_any();
            let object = self.0.instance(py, &params.spec.params, &PyDict::new(py), Some(draws))?;
            Ok(PyPolicy::new(&object, self.0.clone()))
        })?;
        Ok(Box::new(policy))
    }

    fn on_fault(&self, fault: &Fault) {
        self.0.faults.report(&self.0.name, "__init__", EPOCH, &fault.0);
    }
}

/// A server, as a user's policy reads it.
#[pyclass(frozen, module = "sojourn._core")]
pub(crate) struct BalancerServer {
    /// Position in the list of servers.
    #[pyo3(get)]
    index: usize,
    info: ServerInfo,
}

#[pymethods]
impl BalancerServer {
    /// Returns a hash of the server's name, which is the same in every run.
    #[getter]
    fn id(&self) -> u64 {
        self.info.id
    }

    /// Returns the server's weight relative to the other servers, at least 1.
    #[getter]
    fn weight(&self) -> u32 {
        self.info.weight
    }

    /// Returns whether the server is up, so that it may be chosen.
    #[getter]
    fn up(&self) -> bool {
        self.info.is_up
    }

    /// Number of the server's flows that have not finished; `None` if the policy does not count
    /// them.
    #[getter]
    fn open(&self) -> Option<u32> {
        self.info.open
    }

    /// Returns the time of the latest reading of the server's port in nanoseconds; `None` without a
    /// reading.
    #[getter]
    fn read_at(&self) -> Option<Nanos> {
        let backlog = self.info.backlog.map(|(at, _)| at);
        backlog.or(self.info.counters.map(|(at, _)| at))
    }

    /// Number of packets in the queue of the server's port; `None` without a reading.
    #[getter]
    fn packets(&self) -> Option<u64> {
        self.info.backlog.map(|(_, backlog)| backlog.packets)
    }

    /// Number of bytes in the queue of the server's port; `None` without a reading.
    #[getter]
    fn bytes(&self) -> Option<u64> {
        self.info.backlog.map(|(_, backlog)| backlog.bytes)
    }

    /// Limit in packets of the queue at the server's port; `None` if unknown or in bytes.
    #[getter]
    fn limit(&self) -> Option<u64> {
        match self.info.backlog?.1.limit? {
            Limit::Packets(packets) => Some(packets),
            Limit::Bytes(_) => None,
        }
    }

    /// Limit in bytes of the queue at the server's port; `None` if unknown or in packets.
    #[getter]
    fn limit_bytes(&self) -> Option<u64> {
        match self.info.backlog?.1.limit? {
            Limit::Bytes(bytes) => Some(bytes),
            Limit::Packets(_) => None,
        }
    }

    /// Returns the rate of the server's port in bits per second; `None` if unknown.
    #[getter]
    fn rate(&self) -> Option<u64> {
        self.info.backlog?.1.rate.map(Rate::bits)
    }

    /// Number of packets that the server's port has sent; `None` without a reading.
    #[getter]
    fn sent_packets(&self) -> Option<u64> {
        self.info.counters.map(|(_, counters)| counters.packets)
    }

    /// Number of bytes that the server's port has sent; `None` without a reading.
    #[getter]
    fn sent_bytes(&self) -> Option<u64> {
        self.info.counters.map(|(_, counters)| counters.bytes)
    }

    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    fn __repr__(&self) -> String {
        let down = if self.info.is_up { "" } else { ", down" };
        format!("<server {}{down}>", self.index)
    }
}

/// A new flow, for which a server must be chosen.
#[pyclass(frozen, module = "sojourn._core")]
pub(crate) struct BalancerFlow {
    /// A hash of the header fields that all packets of the flow share: addresses, protocol and
    /// ports.
    #[pyo3(get)]
    hash: u64,
}

/// The call of a policy that is in progress, for error messages.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Method(&'static str),
    /// Choice of a server for a flow, which is given with its number.
    Choice(u64, Flow),
    /// Report of the end of a flow at a server, which is given by its index.
    Finished(usize),
}

/// An instance of a user's class for balancing policies.
struct PyPolicy {
    loaded: Arc<Loaded>,
    object: Py<PyAny>,
    /// Number of flows so far.
    flows: u64,
    asked: Asked,
}

impl PyPolicy {
    fn new(object: &Bound<'_, PyAny>, loaded: Arc<Loaded>) -> Self {
        let object = object.clone().unbind();
        Self { loaded, object, flows: 0, asked: Asked::Method("__init__") }
    }

    /// Calls a method with the arguments `first` and the list of servers. Returns `None` if the
    /// class does not have the method.
    fn call(
        &self,
        method: &'static str,
        first: impl FnOnce(Python<'_>) -> PyResult<Vec<Py<PyAny>>>,
        servers: &[ServerInfo],
    ) -> Result<Option<Py<PyAny>>, Fault> {
        Python::attach(|py| {
            let call = || {
                let Some(method) = self.object.bind(py).getattr_opt(method)? else {
                    return Ok(None);
                };
                let mut arguments = first(py)?;
                let server = |(index, &info)| Bound::new(py, BalancerServer { index, info });
                let seen: Vec<_> =
                    servers.iter().enumerate().map(server).collect::<PyResult<_>>()?;
                arguments.push(seen.into_pyobject(py)?.unbind());
                method.call1(PyTuple::new(py, arguments)?).map(|answer| Some(answer.unbind()))
            };
            let number = Some(self.flows);
            self.loaded.call(py, Called { method, number, now: EPOCH }, call)
        })
    }
}

/// Converts the return value of `choose` to the index of a server.
fn chosen(answer: &Bound<'_, PyAny>) -> Result<Option<usize>, Fault> {
    if let Ok(server) = answer.cast::<BalancerServer>() {
        return Ok(Some(server.get().index));
    }
    answer.extract().map_err(|_| {
        let found = shown(answer);
        Fault(format!("returned {found}: return a server, its index, or None to refuse the flow"))
    })
}

impl Policy for PyPolicy {
    fn observe(&mut self, now: Nanos, servers: &[ServerInfo]) -> Result<(), Fault> {
        self.asked = Asked::Method("observe");
        self.call("observe", |py| Ok(vec![now.into_py_any(py)?]), servers).map(|_| ())
    }

    fn choose(
        &mut self,
        now: Nanos,
        flow: Flow,
        servers: &[ServerInfo],
    ) -> Result<Option<usize>, Fault> {
        self.flows += 1;
        self.asked = Asked::Choice(self.flows, flow);
        let arguments = |py: Python<'_>| {
            let flow = Py::new(py, BalancerFlow { hash: flow.hash })?.into_any();
            Ok(vec![now.into_py_any(py)?, flow])
        };
        let answer = self.call("choose", arguments, servers)?;
        answer.map_or(Ok(None), |answer| Python::attach(|py| chosen(answer.bind(py))))
    }

    fn finished(
        &mut self,
        now: Nanos,
        server: usize,
        latency: Option<Nanos>,
        servers: &[ServerInfo],
    ) -> Result<(), Fault> {
        self.asked = Asked::Finished(server);
        let arguments = |py: Python<'_>| {
            let latency =
                latency.map_or_else(|| Ok(py.None()), |latency| latency.into_py_any(py))?;
            Ok(vec![now.into_py_any(py)?, server.into_py_any(py)?, latency])
        };
        self.call("finished", arguments, servers).map(|_| ())
    }

    fn changed(&mut self, servers: &[ServerInfo]) -> Result<(), Fault> {
        self.asked = Asked::Method("changed");
        self.call("changed", |_| Ok(Vec::new()), servers).map(|_| ())
    }

    fn state(&self, visit: &mut dyn FnMut(usize, &str, f64)) {
        Python::attach(|py| {
            for (name, values) in self.loaded.state(self.object.bind(py)).into_iter().flatten() {
                let (name, values) = (name.extract::<String>(), values.extract::<Vec<f64>>());
                if let (Ok(name), Ok(values)) = (name, values) {
                    for (server, value) in values.into_iter().enumerate() {
                        visit(server, &name, value);
                    }
                }
            }
        });
    }

    fn copy(&self) -> Box<dyn Policy> {
        Python::attach(|py| {
            let object = self.loaded.copy(self.object.bind(py));
            Box::new(Self { flows: self.flows, ..Self::new(&object, self.loaded.clone()) }) as _
        })
    }

    fn on_fault(&mut self, now: Nanos, fault: &Fault) {
        let place = match self.asked {
            Asked::Method(method) => method.to_owned(),
            Asked::Choice(number, flow) => {
                format!("choose for flow {number} (hash {:016x})", flow.hash)
            }
            Asked::Finished(server) => format!("finished of a flow at server {server}"),
        };
        self.loaded.faults.report(&self.loaded.name, &place, now, &fault.0);
    }
}
