//! Balancing policies for Python programs, which call them step by step.

use crate::errors::word_error;
use crate::own::{self, Faults};
use crate::parse::json;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use sojourn_balance::{self, Backlog, Counters, Freshness, Limit, MOST_SERVERS, Params, Reading};
use sojourn_random::Stream;
use sojourn_units::Rate;
use sojourn_units::declare::Choices;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parses a balancing policy in one line, and returns its parameters as JSON.
#[pyfunction(signature = (text, /))]
pub(crate) fn parse_balancer(py: Python<'_>, text: &str) -> PyResult<String> {
    let params = Params::parse(text).map_err(|e| word_error(py, text, &e))?;
    json(&params)
}

/// Returns the line for parameters that `parse_balancer` returned.
#[pyfunction(signature = (params_json, /))]
pub(crate) fn format_balancer(params_json: &str) -> PyResult<String> {
    let params: Params = serde_json::from_str(params_json)
        .map_err(|e| PyValueError::new_err(format!("the JSON is not a balancing policy: {e}")))?;
    Ok(params.to_string())
}

/// A server's name, with an optional weight.
#[derive(FromPyObject)]
enum Server {
    Weighted(String, u32),
    Named(String),
}

/// A balancing policy with its servers: `Balancer("iqlb", ["a", "b"])`, or with weights
/// `Balancer("iqlb", [("a", 3), ("b", 1)])`.
///
/// `choose` returns the server for a new flow. The choice depends on the reports of `observe` and
/// `finished`; `needs` states which reports are needed, and when. Servers are numbered by their
/// positions in the list. Times are in nanoseconds of any clock that does not go back. `seed`
/// determines the random draws.
#[pyclass(module = "sojourn._core")]
#[derive(Clone)]
pub(crate) struct Balancer {
    params: Params,
    inner: sojourn_balance::Balancer,
    names: Vec<String>,
    draws: Stream,
    last: Option<sojourn_balance::Choice>,
    faults: Arc<Faults>,
}

impl Balancer {
    /// Raises the error of a user's policy, if the policy has failed.
    fn sound(&self) -> PyResult<()> {
        self.faults.check(())
    }

    fn check(&self, server: usize) -> PyResult<()> {
        if server < self.names.len() {
            return Ok(());
        }
        let all = self.names.len();
        Err(PyIndexError::new_err(format!(
            "there is no server {server}; the number of servers is {all}"
        )))
    }
}

fn fitting<T>(
    what: &str,
    given: Option<Vec<Option<T>>>,
    servers: usize,
) -> PyResult<Vec<Option<T>>> {
    let Some(given) = given else { return Ok((0..servers).map(|_| None).collect()) };
    if given.len() == servers {
        return Ok(given);
    }
    let found = given.len();
    Err(PyValueError::new_err(format!(
        "`{what}` must have one value for each of the {servers} servers, found {found}"
    )))
}

#[pymethods]
impl Balancer {
    #[new]
    #[pyo3(signature = (text, /, servers, *, seed=0))]
    fn new(py: Python<'_>, text: &str, servers: Vec<Server>, seed: u64) -> PyResult<Self> {
        let faults = Arc::new(Faults::default());
        let params = own::balancer::read(py, text, &faults)?;
        if servers.is_empty() || servers.len() > MOST_SERVERS {
            let message = format!(
                "the number of servers must be 1 to {MOST_SERVERS}, found {}",
                servers.len()
            );
            return Err(PyValueError::new_err(message));
        }
        let mut names = Vec::with_capacity(servers.len());
        let mut known = Vec::with_capacity(servers.len());
        for server in servers {
            let (name, weight) = match server {
                Server::Weighted(name, weight) => (name, weight),
                Server::Named(name) => (name, 1),
            };
            if weight == 0 {
                let message = format!("the weight of `{name}` must be at least 1, found 0");
                return Err(PyValueError::new_err(message));
            }
            if names.contains(&name) {
                return Err(PyValueError::new_err(format!(
                    "the name `{name}` must belong to only one server"
                )));
            }
            known.push(sojourn_balance::Server::new(&name, weight));
            names.push(name);
        }
        params.check().map_err(PyValueError::new_err)?;
        let key = Stream::new(seed, "balancer", "policy").next_u64();
        let balancer = Self {
            inner: sojourn_balance::Balancer::new(&params, &known, key),
            params,
            names,
            draws: Stream::new(seed, "balancer", "choice"),
            last: None,
            faults,
        };
        balancer.sound()?;
        Ok(balancer)
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

    /// Returns the servers' names.
    #[getter]
    fn servers(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Returns the policy's needs as a dictionary. `look` is `nothing`, `connections` or `latency`
    /// (reported by `finished`), `counters` or `backlog` (reported by `observe`). `fresh` is
    /// `unread`, `now` (call `observe` before each choice), `sampled` or `averaged` (call `observe`
    /// once every `period` nanoseconds). `period` is 0 with `now` and -1 with `unread`. `limits`,
    /// `rates` and `weights` state whether the policy uses queue limits, rates and weights.
    #[getter]
    fn needs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        let needs = self.inner.needs();
        let fresh = match needs.freshness {
            Freshness::Unread => "unread",
            Freshness::Now => "now",
            Freshness::Sampled { .. } => "sampled",
            Freshness::Averaged { .. } => "averaged",
        };
        let dict = pyo3::types::PyDict::new(py);
        dict.set_item("look", needs.signal.name())?;
        dict.set_item("fresh", fresh)?;
        dict.set_item("period", needs.freshness.period().map_or(-1, |period| period as i64))?;
        dict.set_item("limits", needs.limits)?;
        dict.set_item("rates", needs.rates)?;
        dict.set_item("weights", needs.weights)?;
        Ok(dict)
    }

    /// Returns the reason of the last choice; `None` before the first choice, or if no server was
    /// available.
    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.last.map(|choice| choice.reason.name())
    }

    /// Returns the age in nanoseconds of the policy's information about the last chosen server: 0
    /// for open flows and latencies, `None` without information or before the first reading.
    #[getter]
    fn age(&self) -> Option<u64> {
        self.last.and_then(|choice| choice.age)
    }

    /// Number of flows of each server that have not finished.
    #[getter]
    fn open(&self) -> Vec<u32> {
        (0..self.names.len()).map(|i| self.inner.open(i)).collect()
    }

    /// Returns for each server whether it is up.
    #[getter]
    fn up(&self) -> Vec<bool> {
        (0..self.names.len()).map(|i| self.inner.is_up(i)).collect()
    }

    /// Returns the policy's state: for the name of each variable, the value of each server that has
    /// the variable, by the server's number.
    #[getter]
    fn state(&self) -> BTreeMap<String, BTreeMap<usize, f64>> {
        let mut state: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        self.inner.state(&mut |server, name, value| {
            state.entry(name.to_owned()).or_default().insert(server, value);
        });
        state
    }

    /// Reports readings of all servers' ports at one time, in the order of the servers; `None` is a
    /// failed reading. `backlog` has pairs of packets and bytes, `limit` the queues' limits in
    /// packets (`limit_bytes`: in bytes), `rate` rates in bit/s, and `counters` pairs of bytes and
    /// packets sent so far.
    #[pyo3(signature = (now, *, backlog=None, limit=None, limit_bytes=None, rate=None, counters=None))]
    fn observe(
        &mut self,
        now: u64,
        backlog: Option<Vec<Option<(u64, u64)>>>,
        limit: Option<Vec<Option<u64>>>,
        limit_bytes: Option<Vec<Option<u64>>>,
        rate: Option<Vec<Option<u64>>>,
        counters: Option<Vec<Option<(u64, u64)>>>,
    ) -> PyResult<()> {
        let n = self.names.len();
        let backlog = fitting("backlog", backlog, n)?;
        let limit = fitting("limit", limit, n)?;
        let limit_bytes = fitting("limit_bytes", limit_bytes, n)?;
        let rate = fitting("rate", rate, n)?;
        let counters = fitting("counters", counters, n)?;
        let readings: Vec<Reading> = (0..n)
            .map(|i| Reading {
                backlog: backlog[i].map(|(packets, bytes)| Backlog {
                    packets,
                    bytes,
                    limit: limit[i].map(Limit::Packets).or(limit_bytes[i].map(Limit::Bytes)),
                    rate: rate[i].and_then(Rate::new),
                }),
                counters: counters[i].map(|(bytes, packets)| Counters { bytes, packets }),
            })
            .collect();
        self.inner.observe(now, &readings);
        self.sound()
    }

    /// Returns the number of the server for a new flow, which counts as open from now on; `None` if
    /// all servers are down or the policy refuses the flow. `flow` contains the header fields that
    /// all packets of the flow share: addresses, protocol and ports.
    #[pyo3(signature = (now, flow=None))]
    fn choose(&mut self, now: u64, flow: Option<&[u8]>) -> PyResult<Option<usize>> {
        let flow =
            sojourn_balance::Flow { hash: sojourn_balance::hash_of(flow.unwrap_or_default()) };
        let draws = &mut self.draws;
        self.last = self.inner.choose(now, &flow, &mut |n| draws.below(n));
        self.sound()?;
        Ok(self.last.map(|choice| choice.server))
    }

    /// Assigns a flow to `server` without a choice, and counts it as open. Used for flows that are
    /// older than this balancer, or that must use the server of their client's other flows.
    fn adopt(&mut self, server: usize) -> PyResult<()> {
        self.check(server)?;
        self.inner.adopt(server);
        Ok(())
    }

    /// Reports that a flow at `server` has ended. `latency` is the duration of its request in
    /// nanoseconds, if known.
    #[pyo3(signature = (now, server, latency=None))]
    fn finished(&mut self, now: u64, server: usize, latency: Option<u64>) -> PyResult<()> {
        self.check(server)?;
        self.inner.finished(now, server, latency);
        self.sound()
    }

    /// Reports whether a server is up. A server that is down is never chosen.
    fn set_up(&mut self, server: usize, up: bool) -> PyResult<()> {
        self.check(server)?;
        self.inner.set_up(server, up);
        self.sound()
    }

    /// Returns an independent copy of the balancer in its current state.
    fn copy(&self) -> Self {
        self.clone()
    }
}
