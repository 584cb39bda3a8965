//! Parsers of texts that users write. Each calls the crate that defines the text's meaning.

use crate::errors::{NoKernelEquivalent, word_error};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sojourn_plan::{Moments, Starts, dscp, store};
use sojourn_queue::classes::filter;
use sojourn_traffic::Carrier;
use sojourn_units::declare::Choices;
use sojourn_units::dimension::{Dimension, Quantity};
use sojourn_units::quantity::{self, Rate};

/// Parses a quantity. Returns an integer in its base unit (ns, bit/s, B, packets), or a float for a
/// probability.
#[pyfunction(signature = (kind, text, /))]
pub(crate) fn parse_quantity(py: Python<'_>, kind: &str, text: &str) -> PyResult<Py<PyAny>> {
    let text = text.trim();
    let Some(dimension) = Dimension::named(kind) else {
        return Err(PyValueError::new_err(format!("unknown kind of quantity: {kind}")));
    };
    match dimension.read(text).map_err(|error| word_error(py, text, &error))? {
        Quantity::Whole(value) => value.into_py_any(py),
        Quantity::Part(value) => value.into_py_any(py),
    }
}

/// Parses a time or a distribution of times such as `exp(5ms)`. Returns the distribution in
/// nanoseconds as JSON.
#[pyfunction(signature = (text, /))]
pub(crate) fn parse_span(py: Python<'_>, text: &str) -> PyResult<String> {
    let text = text.trim();
    let parsed = sojourn_random::Distribution::parse(text, sojourn_random::Unit::Time);
    let parsed = parsed.map_err(|error| {
        let at = 0..text.len();
        let (message, found) = (error.message, error.found);
        let (allowed, nearest) = (error.allowed, error.nearest);
        word_error(
            py,
            text,
            &sojourn_units::words::WordError { message, at, found, allowed, nearest },
        )
    })?;
    json(&parsed)
}

/// Returns the shortest text that `parse_quantity` parses to `value`.
#[pyfunction(signature = (kind, value, /))]
pub(crate) fn format_quantity(kind: &str, value: u64) -> PyResult<String> {
    match kind {
        "time" => Ok(quantity::format_time(value)),
        "rate" => Rate::new(value)
            .map(quantity::format_rate)
            .ok_or_else(|| PyValueError::new_err("the rate must be above 0")),
        "size" => Ok(quantity::format_size(value)),
        "packets" => Ok(format!("{value}p")),
        _ => Err(PyValueError::new_err(format!("unknown kind of quantity: {kind}"))),
    }
}

/// Returns the candidate most similar to `word`; `None` if no candidate is similar.
#[pyfunction(signature = (word, candidates, /))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
pub(crate) fn nearest(word: &str, candidates: Vec<String>) -> Option<String> {
    sojourn_units::words::nearest(word, candidates.iter().map(String::as_str)).map(str::to_owned)
}

/// Returns `value` as JSON.
pub(crate) fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Returns the value that JSON contains; raises `ValueError` for other JSON.
pub(crate) fn from_json<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|e| PyValueError::new_err(e.to_string()))
}

fn device(mtu: u32, hz: u32, rate: Option<u64>) -> sojourn_queue::Device {
    sojourn_queue::Device { psched_mtu: mtu, hz, rate: rate.and_then(Rate::new) }
}

/// Parses a queue in `tc` syntax, and returns its parameters as JSON.
#[pyfunction(signature = (text, /, mtu=1514, hz=1000, rate=None))]
pub(crate) fn parse_queue(
    py: Python<'_>,
    text: &str,
    mtu: u32,
    hz: u32,
    rate: Option<u64>,
) -> PyResult<String> {
    let queue = sojourn_tc::queue(text, &device(mtu, hz, rate));
    json(&queue.map_err(|e| word_error(py, text, &e))?.params)
}

/// Returns notices about a valid queue: assumptions, and values that `tc` warns about.
#[pyfunction(signature = (text, /, mtu=1514, hz=1000, rate=None))]
pub(crate) fn queue_warnings(text: &str, mtu: u32, hz: u32, rate: Option<u64>) -> Vec<String> {
    sojourn_tc::queue(text, &device(mtu, hz, rate)).map(|queue| queue.notices).unwrap_or_default()
}

/// Returns the warm-up in ns for a run of `duration`. Its share is the same as that of `warmup` in
/// a run of `before`.
#[pyfunction(signature = (warmup, before, duration, /))]
pub(crate) fn scaled_warmup(warmup: u64, before: u64, duration: u64) -> u64 {
    sojourn_plan::scaled_warmup(warmup, before, duration)
}

/// Returns the description of a queue in `text`, without the other parts of a line of `tc`.
#[pyfunction(signature = (text, /))]
pub(crate) fn queue_description(py: Python<'_>, text: &str) -> PyResult<String> {
    let queue = sojourn_tc::queue(text, &device(1514, 1000, None));
    Ok(queue.map_err(|e| word_error(py, text, &e))?.text)
}

/// Returns a message if `name` is a discipline of Linux that is not modelled; `None` for other
/// names.
#[pyfunction(signature = (name, /))]
pub(crate) fn not_modelled(name: &str) -> Option<String> {
    sojourn_queue::not_modelled(name)
}

/// Returns the queue in `tc` syntax. Raises `NoKernelEquivalent` if no single command expresses it.
#[pyfunction(signature = (params_json, /))]
pub(crate) fn queue_to_tc(params_json: &str) -> PyResult<String> {
    queue(params_json)?.to_tc().map_err(no_equivalent)
}

/// Returns the commands of `tc` and `ip` that set a queue on a device: at its root, or in the class
/// `parent`.
///
/// `handle` is the queue's number, such as `10:`; by default the number in the parameters, or `1:`.
/// `addresses` are those of the hosts in filters, by default the addresses in captures.
#[pyfunction(signature = (params_json, device, /, parent=None, handle=None, addresses=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
pub(crate) fn queue_commands(
    params_json: &str,
    device: &str,
    parent: Option<&str>,
    handle: Option<&str>,
    addresses: Option<Vec<String>>,
) -> PyResult<Vec<String>> {
    let place = place(parent, handle, addresses.as_deref())?;
    Ok(queue(params_json)?.commands(&place).map_err(no_equivalent)?.texts(device))
}

/// Returns a place from the names of its class and discipline.
pub(crate) fn place<'a>(
    parent: Option<&str>,
    handle: Option<&str>,
    addresses: Option<&'a [String]>,
) -> PyResult<sojourn_queue::Place<'a>> {
    let name = |text: &str| {
        let found = sojourn_queue::classes::Name::read(text);
        found.and_then(|name| Some((name.major?, name.minor))).ok_or_else(|| {
            PyValueError::new_err(format!("`{text}` must be a complete name such as 1:10"))
        })
    };
    let parent = parent.map(name).transpose()?;
    let handle = handle.map(name).transpose()?.map(|(major, _)| major);
    Ok(sojourn_queue::Place { parent, handle, addresses })
}

#[expect(clippy::needless_pass_by_value, reason = "this is a conversion of errors")]
pub(crate) fn no_equivalent(error: sojourn_queue::NoKernelEquivalent) -> PyErr {
    NoKernelEquivalent::new_err(error.to_string())
}

/// Returns the rate in bit/s to which a queue with these parameters limits all packets; `None` if
/// it does not limit them.
#[pyfunction(signature = (params_json, /))]
pub(crate) fn queue_rate(params_json: &str) -> PyResult<Option<u64>> {
    Ok(queue(params_json)?.rate().map(Rate::bits))
}

pub(crate) fn queue(params_json: &str) -> PyResult<sojourn_queue::Params> {
    from_json(params_json)
}

/// Parses impairments in netem's syntax. Returns a link's `delay` and `impairments` as JSON.
#[pyfunction(signature = (text, /))]
pub(crate) fn parse_netem(py: Python<'_>, text: &str) -> PyResult<String> {
    let netem = sojourn_tc::netem(text).map_err(|e| word_error(py, text, &e))?.params;
    json(&serde_json::json!({ "delay": netem.delay, "impairments": netem.impairments }))
}

/// Returns the impairments in `text`, without the other parts of a line of `tc`.
#[pyfunction(signature = (text, /))]
pub(crate) fn netem_description(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(sojourn_tc::netem(text).map_err(|e| word_error(py, text, &e))?.text)
}

/// Returns notices about valid impairments: numbers without a unit, and words without effect.
#[pyfunction(signature = (text, /))]
pub(crate) fn netem_warnings(text: &str) -> Vec<String> {
    sojourn_tc::netem(text).map(|netem| netem.notices).unwrap_or_default()
}

/// Parses a shared medium in one line, and returns its parameters as JSON.
#[pyfunction(signature = (text, /))]
pub(crate) fn parse_medium(py: Python<'_>, text: &str) -> PyResult<String> {
    json(&sojourn_link::csma::Params::parse(text).map_err(|e| word_error(py, text, &e))?)
}

/// Parses a host's delays in serving a queue, and returns the parameters as JSON. Files are named
/// but not read.
#[pyfunction(signature = (text, /))]
pub(crate) fn parse_host(py: Python<'_>, text: &str) -> PyResult<String> {
    json(&sojourn_link::host::Params::parse(text).map_err(|e| word_error(py, text, &e))?)
}

/// Returns the names of a kind: consistency levels (`consistency`), policies for coordinators
/// (`coordinator`), code points (`dscp`), kinds of requests (`request`), distributions of keys
/// (`keys`), or words in conditions of filters (`filter`).
#[pyfunction(signature = (kind, /))]
pub(crate) fn names(kind: &str) -> PyResult<Vec<&'static str>> {
    use sojourn_replication::{Level, Policy};
    match kind {
        "consistency" => Ok(Level::NAMES.to_vec()),
        "coordinator" => Ok(Policy::NAMES.to_vec()),
        "dscp" => Ok(dscp::NAMES.iter().map(|(name, _)| *name).collect()),
        "filter" => Ok(filter::CONDITIONS.to_vec()),
        "request" => Ok(store::REQUESTS.to_vec()),
        "keys" => Ok(store::Keys::NAMES.to_vec()),
        _ => Err(PyValueError::new_err(format!("unknown kind of names: {kind}"))),
    }
}

/// Returns the named workloads of a store. Each has a name, the shares of the kinds of requests,
/// and the distribution of keys.
#[pyfunction]
pub(crate) fn workloads() -> Vec<(&'static str, [f64; 5], &'static str)> {
    store::WORKLOADS.iter().map(|(name, shares, keys)| (*name, *shares, keys.name())).collect()
}

/// Parses the start times of flows. Returns three times in ns: first start, range of the random
/// delay, and interval between flows.
#[pyfunction(signature = (text, /))]
pub(crate) fn parse_starts(py: Python<'_>, text: &str) -> PyResult<(u64, u64, u64)> {
    let starts = Starts::parse(text).map_err(|e| word_error(py, text, &e))?;
    Ok((starts.first, starts.spread, starts.every))
}

/// Parses the times of an event. Returns two times in ns: the first time, and the period of
/// repetition (0 for a single time).
#[pyfunction(signature = (text, /))]
pub(crate) fn parse_moments(py: Python<'_>, text: &str) -> PyResult<(u64, u64)> {
    let moments = Moments::parse(text).map_err(|e| word_error(py, text, &e))?;
    Ok((moments.first, moments.every))
}

/// Parses a differentiated services code point, and returns its number.
#[pyfunction(signature = (text, /))]
pub(crate) fn parse_dscp(py: Python<'_>, text: &str) -> PyResult<u8> {
    dscp::parse(text).map_err(|e| word_error(py, text, &e))
}

/// Parses a transport in one line, and returns TCP's parameters as JSON.
#[pyfunction(signature = (text, /))]
pub(crate) fn parse_tcp(py: Python<'_>, text: &str) -> PyResult<String> {
    let params = sojourn_tcp::Params::parse(text).map_err(|e| word_error(py, text, &e))?;
    json(&params)
}

/// Parses an application in one line, and returns its parameters as JSON.
#[pyfunction(signature = (text, /))]
pub(crate) fn parse_app(py: Python<'_>, text: &str) -> PyResult<String> {
    let app = sojourn_traffic::App::parse(text).map_err(|e| word_error(py, text, &e))?;
    json(&app)
}

/// Reads the packets of a capture, which the application `replay` names, from `data`. Returns the
/// complete parameters as JSON.
#[pyfunction(signature = (app_json, data, /))]
pub(crate) fn load_capture(app_json: &str, data: &[u8]) -> PyResult<String> {
    let fail = |why: String| PyValueError::new_err(why);
    let app = serde_json::from_str(app_json).map_err(|e| fail(e.to_string()))?;
    let sojourn_traffic::App::Replay(params) = app else {
        return Err(fail(
            "the application must be `replay`, since no other one has a capture".to_owned(),
        ));
    };
    let most = sojourn_traffic::replay::MOST_PACKETS;
    let capture = sojourn_capture::read(data, &params.select, most);
    let capture = capture.map_err(|e| fail(e.to_string()))?;
    let loaded = params.load(capture.packets).map_err(fail)?;
    json(&sojourn_traffic::App::Replay(loaded))
}

/// Returns the transports that an application can use, `tcp` or `udp`, with the default one first.
#[pyfunction(signature = (text, /))]
pub(crate) fn app_carriers(py: Python<'_>, text: &str) -> PyResult<Vec<&'static str>> {
    let carriers = sojourn_traffic::App::carriers(text).map_err(|e| word_error(py, text, &e))?;
    let name = |carrier: &Carrier| match carrier {
        Carrier::Tcp => "tcp",
        Carrier::Udp => "udp",
    };
    Ok(carriers.iter().map(name).collect())
}
