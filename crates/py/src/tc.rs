//! Configurations of `tc`, as [`sojourn_tc`] reads them.

use pyo3::prelude::*;
use sojourn_queue::Device;
use sojourn_tc::{Built, DeviceFacts, Hosts, Notice, Place, Problem, Reading};
use sojourn_units::Rate;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A message about a part of the texts, with its place.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub(crate) struct TcMessage {
    message: String,
    /// Name of the text; `None` for a message about all texts.
    file: Option<String>,
    /// Number of the line, from 1.
    line: u32,
    /// First column and the column behind the last, in characters from 0; equal for a whole line.
    columns: (u32, u32),
    /// The line.
    source: String,
    /// The text that causes a problem; empty for a whole line.
    found: String,
    allowed: Vec<String>,
    nearest: Option<String>,
}

impl TcMessage {
    fn new(reading: &Reading, message: &str, place: Option<Place>) -> Self {
        let at = place.unwrap_or_default();
        Self {
            message: message.to_owned(),
            file: place.and_then(|at| reading.names.get(at.file as usize)).cloned(),
            line: at.line,
            columns: (at.begin, at.end),
            source: place.map_or("", |at| reading.line(at)).to_owned(),
            found: String::new(),
            allowed: Vec::new(),
            nearest: None,
        }
    }

    fn problem(reading: &Reading, problem: &Problem) -> Self {
        Self {
            found: problem.found.clone(),
            allowed: problem.allowed.clone(),
            nearest: problem.nearest.clone(),
            ..Self::new(reading, &problem.message, Some(problem.place))
        }
    }

    fn notice(reading: &Reading, notice: &Notice) -> Self {
        Self::new(reading, &notice.message, notice.place)
    }
}

/// Facts about a device.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub(crate) struct TcDevice {
    name: String,
    root: Option<String>,
    is_configured: bool,
    holds: bool,
    has_ingress: bool,
    redirects: Vec<String>,
}

impl From<DeviceFacts> for TcDevice {
    fn from(facts: DeviceFacts) -> Self {
        let DeviceFacts { name, root, is_configured, holds, has_ingress, redirects } = facts;
        Self { name, root, is_configured, holds, has_ingress, redirects }
    }
}

/// The filters of a queue that replace one filter of the texts.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub(crate) struct TcSelection {
    file: String,
    line: u32,
    /// The command of the filter.
    source: String,
    /// Number of the discipline that evaluates the filters.
    handle: u16,
    /// The filters as statements.
    statements: Vec<String>,
}

/// The queue of a device.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub(crate) struct TcBuilt {
    /// Description of the queue.
    queue: Option<String>,
    /// Rate to which the queue limits all its packets, in bit/s.
    rate: Option<u64>,
    /// Rate of all classes of an `htb` in bit/s, also if packets may bypass them.
    classes_rate: Option<u64>,
    /// Impairments in netem's words.
    netem: Option<String>,
    problems: Vec<Py<TcMessage>>,
    notices: Vec<Py<TcMessage>>,
    filters: Vec<Py<TcSelection>>,
    /// Whether the classes of the root discipline are not in the texts.
    lacks_classes: bool,
}

/// The devices that texts set up.
#[pyclass(frozen, module = "sojourn._core")]
pub(crate) struct TcReading {
    reading: Reading,
    /// Arguments of [`read_tc`], from which another process reads the texts again.
    arguments: Arguments,
}

type Arguments = (Vec<(String, Vec<u8>)>, BTreeMap<String, String>, Vec<String>);

fn messages(
    py: Python<'_>,
    found: impl Iterator<Item = TcMessage>,
) -> PyResult<Vec<Py<TcMessage>>> {
    found.map(|message| Py::new(py, message)).collect()
}

#[pymethods]
impl TcReading {
    #[getter]
    fn problems(&self, py: Python<'_>) -> PyResult<Vec<Py<TcMessage>>> {
        messages(py, self.reading.problems.iter().map(|one| TcMessage::problem(&self.reading, one)))
    }

    #[getter]
    fn notices(&self, py: Python<'_>) -> PyResult<Vec<Py<TcMessage>>> {
        messages(py, self.reading.notices.iter().map(|one| TcMessage::notice(&self.reading, one)))
    }

    /// Variables of scripts that have no value.
    #[getter]
    fn asked(&self) -> Vec<String> {
        self.reading.asked.clone()
    }

    /// Names of files that scripts read but that were not given.
    #[getter]
    fn absent(&self) -> Vec<String> {
        self.reading.absent.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Why a root discipline is not modelled; `None` if all are.
    #[getter]
    fn unmodelled(&self) -> Option<String> {
        self.reading.unmodelled()
    }

    #[getter]
    fn devices(&self) -> Vec<TcDevice> {
        self.reading.devices().into_iter().map(TcDevice::from).collect()
    }

    /// The rules of the firewall that change packets, and whether any of them sets a code point.
    #[getter]
    fn firewall(&self, py: Python<'_>) -> PyResult<(Vec<Py<TcMessage>>, bool)> {
        let (places, sets_dscp) = self.reading.firewall_changes();
        let found = places.into_iter().map(|place| TcMessage::new(&self.reading, "", Some(place)));
        Ok((messages(py, found)?, sets_dscp))
    }

    /// Returns the queue of a device, or of one of its transmit queues, such as `eth0:1`; `None`
    /// without such a device. `hosts` has the number of the node with each IPv4
    /// address, `rate` is that of the link in bit/s.
    #[pyo3(signature = (device, hosts, passed, rate=None, /))]
    fn build(
        &self,
        py: Python<'_>,
        device: &str,
        hosts: BTreeMap<u32, u32>,
        passed: bool,
        rate: Option<u64>,
    ) -> PyResult<Option<TcBuilt>> {
        let (hosts, on) = (numbered(hosts), with_rate(rate));
        let Some(built) = self.reading.build(device, &hosts, passed, &on) else { return Ok(None) };
        let Built { queue, text, netem, problems, notices, filters, lacks_classes } = built;
        let selection = |one: &sojourn_tc::Selection| {
            let statement = |filter: &sojourn_queue::classes::Filter| filter.statement(one.handle);
            TcSelection {
                file: self.reading.names[one.line.file as usize].clone(),
                line: one.line.line,
                source: self.reading.command(one.line),
                handle: one.handle,
                statements: one.filters.iter().map(statement).collect(),
            }
        };
        let filters: PyResult<Vec<_>> =
            filters.iter().map(|one| Py::new(py, selection(one))).collect();
        Ok(Some(TcBuilt {
            rate: queue.as_ref().and_then(sojourn_queue::Params::rate).map(Rate::bits),
            classes_rate: match &queue {
                Some(sojourn_queue::Params::Htb(htb)) => htb.classes_rate().map(Rate::bits),
                _ => None,
            },
            queue: queue.is_some().then_some(text),
            netem,
            problems: messages(
                py,
                problems.iter().map(|one| TcMessage::problem(&self.reading, one)),
            )?,
            notices: messages(py, notices.iter().map(|one| TcMessage::notice(&self.reading, one)))?,
            filters: filters?,
            lacks_classes,
        }))
    }

    /// Returns the commands that set up a queue, the one of a device or a variant of it, in the
    /// words of the texts. `name`, `hosts`, `passed` and `rate` are those of `build`; `device`,
    /// `parent` and `addresses` those of `queue_commands`.
    #[pyo3(signature = (
        name, hosts, passed, rate, params_json, device, /, parent=None, addresses=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "the arguments of two functions")]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
    fn commands(
        &self,
        name: &str,
        hosts: BTreeMap<u32, u32>,
        passed: bool,
        rate: Option<u64>,
        params_json: &str,
        device: &str,
        parent: Option<&str>,
        addresses: Option<Vec<String>>,
    ) -> PyResult<Vec<String>> {
        let (hosts, on) = (numbered(hosts), with_rate(rate));
        let place = crate::parse::place(parent, None, addresses.as_deref())?;
        let wanted = crate::parse::queue(params_json)?;
        let own = self.reading.commands(name, &hosts, passed, &on, &wanted, &place);
        let commands = own.unwrap_or_else(|| wanted.commands(&place));
        Ok(commands.map_err(crate::parse::no_equivalent)?.texts(device))
    }

    /// Returns the commands that redirect incoming packets of a device to other devices; `device`
    /// is its name in the commands.
    #[pyo3(signature = (name, device, /))]
    fn redirections(&self, name: &str, device: &str) -> Vec<String> {
        self.reading.redirections(name).iter().map(|command| command.text(device)).collect()
    }

    /// Returns the numbers of a device's disciplines.
    #[pyo3(signature = (name, /))]
    fn handles(&self, name: &str) -> Vec<u16> {
        self.reading.handles(name).into_iter().collect()
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Arguments)> {
        let read = py.import("sojourn._core")?.getattr("read_tc")?;
        Ok((read.unbind(), self.arguments.clone()))
    }
}

fn numbered(hosts: BTreeMap<u32, u32>) -> Hosts {
    hosts.into_iter().map(|(address, host)| (Ipv4Addr::from(address), host)).collect()
}

fn with_rate(rate: Option<u64>) -> Device {
    Device { rate: rate.and_then(Rate::new), ..Device::default() }
}

/// Reads texts: files of `tc`, scripts, printed output, rules of a firewall. `given` has values of
/// script variables, `chosen` names of devices to which printed classes belong.
#[pyfunction(signature = (texts, given, chosen, /))]
pub(crate) fn read_tc(
    py: Python<'_>,
    texts: Vec<(String, Vec<u8>)>,
    given: BTreeMap<String, String>,
    chosen: Vec<String>,
) -> TcReading {
    let reading = py.detach(|| sojourn_tc::read(&texts, &given, &chosen));
    TcReading { reading, arguments: (texts, given, chosen) }
}
