//! Emulation of a plan's links on real packets.

use crate::errors::PlanError;
use crate::own::{self, Faults};
use crate::simulate::{Record, read};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::Deserialize;
use sojourn_wire::capture::Order;
use sojourn_wire::control::{Handle, Inbox, connect};
use sojourn_wire::device::Options;
use sojourn_wire::{Attachment, Device, Outcome, Settings, Wire as Links, WireError};
use std::fs::File;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

fn raise(error: WireError) -> PyErr {
    match error {
        WireError::Plan(error) => PlanError::new_err(error.to_string()),
        WireError::Io(what, error) => {
            let text = format!("{what}: {error}");
            error.raw_os_error().map_or_else(
                || PyOSError::new_err(text.clone()),
                |number| PyOSError::new_err((number, text.clone())),
            )
        }
        WireError::Conservation(error) => PyRuntimeError::new_err(error.to_string()),
    }
}

/// A device to be opened at the edge of the network.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    node: usize,
    /// Path of the device's network namespace; `None` for that of this process.
    #[serde(default)]
    network: Option<String>,
    kind: Kind,
    name: String,
    #[serde(default)]
    addresses: Vec<IpAddr>,
    /// Index of the device at the other end of the cable.
    #[serde(default)]
    peer: Option<usize>,
    /// Whether the device belongs to a switch.
    #[serde(default)]
    passing: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Tun,
    Tap,
    /// An existing interface.
    Interface,
}

impl Wanted {
    fn open(&self) -> PyResult<Attachment> {
        let path = self.network.as_deref();
        let network = path.map(File::open).transpose()?;
        let network = network.as_ref().map(AsFd::as_fd);
        let device = match self.kind {
            Kind::Tun => Device::tun(&Options::new(&self.name), network),
            Kind::Tap => Device::tap(&Options::new(&self.name), network),
            Kind::Interface => Device::packet(&self.name, network),
        };
        let device = device.map_err(|e| match e.source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, e.to_string())),
            None => PyOSError::new_err(e.to_string()),
        })?;
        Ok(Attachment {
            device: Arc::new(device),
            node: self.node,
            addresses: self.addresses.clone(),
            peer: self.peer,
            passing: self.passing,
        })
    }
}

/// Links of a plan between real devices. The constructor opens the devices. A wire can run only
/// once.
#[pyclass(module = "sojourn._core")]
pub(crate) struct Wire {
    parts: Mutex<Option<(Links, Inbox)>>,
    handle: Handle,
    /// Errors of users' policies; `None` if the plan has no such policy.
    faults: Option<Arc<Faults>>,
}

#[pymethods]
impl Wire {
    #[new]
    #[pyo3(signature = (
        plan_json, seed, devices_json, *, mtu=1500, journals=Vec::new(), captures=Vec::new(),
        capture_size=1 << 30,
    ))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python class")]
    fn new(
        py: Python<'_>,
        plan_json: &str,
        seed: u64,
        devices_json: &str,
        mtu: usize,
        journals: Vec<usize>,
        captures: Vec<(usize, PathBuf)>,
        capture_size: u64,
    ) -> PyResult<Self> {
        let mut plan = read(plan_json)?;
        let faults = own::bind(py, &mut plan)?;
        let wanted: Vec<Wanted> = serde_json::from_str(devices_json).map_err(|e| {
            PyValueError::new_err(format!("the JSON is not a list of devices: {e}"))
        })?;
        let attachments = wanted.iter().map(Wanted::open).collect::<PyResult<Vec<_>>>()?;
        let captures = captures
            .into_iter()
            .map(|(link, path)| {
                let file = File::options().write(true).open(path)?;
                Ok(Order { link, file, largest: capture_size })
            })
            .collect::<std::io::Result<_>>()?;
        let settings = Settings { mtu, ..Settings::default() };
        let links =
            Links::new(plan, seed, attachments, &journals, captures, settings).map_err(raise)?;
        Self::ready(links, faults)
    }

    /// Returns another wire with the same devices and its own links. The wires must run one after
    /// another.
    #[pyo3(signature = (plan_json, seed, /, *, mtu=1500))]
    fn sharing(&self, py: Python<'_>, plan_json: &str, seed: u64, mtu: usize) -> PyResult<Self> {
        let parts = self.parts.lock().ok();
        let parts = parts.as_ref().and_then(|parts| parts.as_ref());
        let gone = || {
            PyRuntimeError::new_err("this wire has run or was closed, so its devices are closed")
        };
        let (links, _) = parts.ok_or_else(gone)?;
        let settings = Settings { mtu, ..Settings::default() };
        let attachments = links.attachments();
        let mut plan = read(plan_json)?;
        let faults = own::bind(py, &mut plan)?;
        let other = Links::new(plan, seed, attachments, &[], Vec::new(), settings);
        Self::ready(other.map_err(raise)?, faults)
    }

    /// Runs from `start`, in nanoseconds of the machine's monotonic clock, until the plan's end,
    /// without holding the interpreter. Then packets are carried for another `linger` nanoseconds.
    /// After a call of `stop` the run ends at once.
    #[pyo3(signature = (start, /, *, linger=0))]
    fn run(&self, py: Python<'_>, start: u64, linger: u64) -> PyResult<WireOutcome> {
        let parts = self.parts.lock().ok().and_then(|mut parts| parts.take());
        let Some((links, mut inbox)) = parts else {
            return Err(PyRuntimeError::new_err(
                "this wire has already run or was closed, and a wire can run only once",
            ));
        };
        let outcome = py.detach(|| links.run(start, linger, &mut inbox)).map_err(raise)?;
        if let Some(error) = self.faults.as_ref().and_then(|faults| faults.take()) {
            return Err(error);
        }
        Ok(WireOutcome { outcome })
    }

    /// Stops the run. Returns `False` if the run has already ended.
    fn stop(&self) -> bool {
        self.handle.stop()
    }

    /// Closes the devices of a wire that will not run. A wire that has run has closed its devices
    /// itself.
    fn close(&self) {
        drop(self.parts.lock().ok().and_then(|mut parts| parts.take()));
    }

    /// Returns all counters as JSON; `None` if the run has ended.
    fn counters(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let handle = self.handle.clone();
        let snapshot = py.detach(|| handle.counters());
        snapshot.map(|s| to_json(&s)).transpose()
    }

    /// Changes a link, as described by JSON. Raises `ValueError` with the reason if the change is
    /// not possible.
    #[pyo3(signature = (change_json, /))]
    fn set(&self, py: Python<'_>, change_json: &str) -> PyResult<()> {
        let change = serde_json::from_str(change_json).map_err(|e| {
            PyValueError::new_err(format!("the JSON is not a change of a link: {e}"))
        })?;
        let handle = self.handle.clone();
        py.detach(|| handle.set(change)).map_err(PyValueError::new_err)
    }
}

fn to_json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

impl Wire {
    fn ready(links: Links, faults: Option<Arc<Faults>>) -> PyResult<Self> {
        let (handle, inbox) = connect()?;
        if let Some(faults) = &faults {
            let handle = handle.clone();
            faults.on_fault(move || {
                handle.stop();
            });
        }
        Ok(Self { parts: Mutex::new(Some((links, inbox))), handle, faults })
    }
}

/// The results of a wire.
#[pyclass(frozen, module = "sojourn._core")]
pub(crate) struct WireOutcome {
    outcome: Outcome,
}

#[pymethods]
impl WireOutcome {
    /// Returns the record of results, in the form of a simulated run's.
    #[getter]
    fn record(&self) -> Record {
        Record::new(self.outcome.record.clone())
    }

    /// Returns measurements that show whether the run is valid, as JSON.
    #[getter]
    fn health(&self) -> PyResult<String> {
        to_json(&self.outcome.health.report())
    }

    /// Returns the result of each capture as JSON: link, captured packets, omitted packets, and
    /// error.
    #[getter]
    fn captures(&self) -> PyResult<String> {
        to_json(&self.outcome.captures)
    }

    /// Returns the result of replaying each link's journal with a new, simulated link, as JSON:
    /// link, whether the replay agrees, counts, and the first difference.
    #[getter]
    fn agreements(&self) -> PyResult<String> {
        to_json(&self.outcome.agreements)
    }
}
