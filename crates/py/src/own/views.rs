//! Objects that users' policies read: packets, queues and random draws.

use crate::errors::PolicyError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use sojourn_queue::external::{Backlog, Draws as Stream, Fault, Id, PacketInfo};
use sojourn_queue::{Draws as _, DropReason, Ecn, MarkReason};
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};

pub(super) fn raise(fault: Fault) -> PyErr {
    PolicyError::new_err(fault.0)
}

/// A packet in a queue, as a user's policy reads it.
#[pyclass(frozen, dict, weakref, module = "sojourn._core")]
pub(crate) struct Packet {
    pub(super) id: Id,
    /// Time of arrival in nanoseconds.
    #[pyo3(get)]
    at: u64,
    /// Number of packets that arrived at the queue before this one.
    #[pyo3(get)]
    number: u64,
    /// Length in bytes, including the Ethernet header.
    #[pyo3(get)]
    bytes: u32,
    /// Memory that the packet occupies, in bytes.
    #[pyo3(get)]
    truesize: u32,
    /// Hash of the flow, which is equal for all packets of a flow.
    #[pyo3(get)]
    flow: u32,
    /// Number of the sending host.
    #[pyo3(get)]
    source: u32,
    /// Number of the receiving host.
    #[pyo3(get)]
    destination: u32,
    /// Source port; 0 if unknown.
    #[pyo3(get)]
    source_port: u16,
    /// Destination port; 0 if unknown.
    #[pyo3(get)]
    destination_port: u16,
    /// Protocol of the IP header: 6 is TCP, 17 UDP.
    #[pyo3(get)]
    protocol: u8,
    /// Differentiated services code point.
    #[pyo3(get)]
    dscp: u8,
    /// Firewall mark.
    #[pyo3(get)]
    mark: u32,
    ecn: AtomicU8,
    class: AtomicU16,
}

impl Packet {
    pub(super) fn new(id: Id, info: &PacketInfo) -> Self {
        Self {
            id,
            at: info.at,
            number: info.number,
            bytes: info.len,
            truesize: info.truesize,
            flow: info.flow,
            source: info.hosts.0,
            destination: info.hosts.1,
            source_port: info.ports.0,
            destination_port: info.ports.1,
            protocol: info.protocol,
            dscp: info.dscp,
            mark: info.mark,
            ecn: AtomicU8::new(info.ecn as u8),
            class: AtomicU16::new(info.class),
        }
    }

    pub(super) fn class(&self) -> u16 {
        self.class.load(Ordering::Relaxed)
    }

    pub(super) fn set_ce(&self) {
        self.ecn.store(Ecn::Ce as u8, Ordering::Relaxed);
    }
}

#[pymethods]
impl Packet {
    /// Returns the ECN field: 0 for not ECN-capable, 1 for ECT(1), 2 for ECT(0), 3 for congestion
    /// experienced.
    #[getter]
    fn ecn(&self) -> u8 {
        self.ecn.load(Ordering::Relaxed)
    }

    /// Returns the number of the class within the queue that holds the packet. It may be set in
    /// `enqueue`.
    #[getter]
    fn classid(&self) -> u16 {
        self.class()
    }

    #[setter]
    fn set_classid(&self, class: u16) {
        self.class.store(class, Ordering::Relaxed);
    }

    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    fn __repr__(&self) -> String {
        format!("<packet {}: {} bytes, flow {:08x}>", self.number, self.bytes, self.flow)
    }
}

/// The queue of a user's policy, available during each call. Packets are in the order of their
/// arrival.
#[pyclass(module = "sojourn._core")]
#[derive(Default)]
pub(crate) struct Queue {
    pub(super) backlog: Backlog,
    pub(super) packets: Vec<Option<Py<Packet>>>,
}

impl Queue {
    pub(super) fn put(&mut self, slot: usize, packet: Py<Packet>) {
        if self.packets.len() <= slot {
            self.packets.resize_with(slot + 1, || None);
        }
        self.packets[slot] = Some(packet);
    }

    fn packet(&self, py: Python<'_>, id: Option<Id>) -> Option<Py<Packet>> {
        let packet = self.packets.get(id?.slot())?.as_ref()?;
        Some(packet.clone_ref(py))
    }
}

fn drop_reason(name: &str) -> PyResult<DropReason> {
    let known = [DropReason::Early, DropReason::Forced, DropReason::Overflow];
    known.into_iter().find(|reason| reason.name() == name).ok_or_else(|| {
        PolicyError::new_err(format!(
            "the reason of a drop must be early, forced or overflow, found `{name}`"
        ))
    })
}

#[pymethods]
impl Queue {
    /// Number of packets in the queue.
    fn __len__(&self) -> usize {
        self.backlog.packets()
    }

    /// Returns whether the queue contains a packet.
    fn __bool__(&self) -> bool {
        self.backlog.packets() > 0
    }

    /// Number of bytes in the queue.
    #[getter]
    fn bytes(&self) -> u64 {
        self.backlog.bytes()
    }

    /// Returns the first packet of the queue, or of a class; `None` if the queue or class is empty.
    #[pyo3(signature = (classid=None))]
    fn head(&self, py: Python<'_>, classid: Option<u16>) -> Option<Py<Packet>> {
        let id =
            classid.map_or_else(|| self.backlog.head(), |class| self.backlog.class_head(class));
        self.packet(py, id)
    }

    /// Returns the last packet of the queue; `None` if the queue is empty.
    fn tail(&self, py: Python<'_>) -> Option<Py<Packet>> {
        self.packet(py, self.backlog.tail())
    }

    /// Number of packets in a class.
    fn packets_of(&self, classid: u16) -> usize {
        self.backlog.class_packets(classid)
    }

    /// Number of bytes in a class.
    fn bytes_of(&self, classid: u16) -> u64 {
        self.backlog.class_bytes(classid)
    }

    /// Returns all packets of the queue in the order of their arrival.
    fn packets(&self, py: Python<'_>) -> Vec<Py<Packet>> {
        self.backlog.iter().filter_map(|id| self.packet(py, Some(id))).collect()
    }

    /// Removes the first packet of the queue, or of a class, and returns it. The policy must return
    /// it from `dequeue` or drop it. Returns `None` if the queue or class is empty.
    #[pyo3(signature = (classid=None))]
    fn pop(&mut self, py: Python<'_>, classid: Option<u16>) -> PyResult<Option<Py<Packet>>> {
        let id = match classid {
            None => self.backlog.pop().map_err(raise)?,
            Some(class) => match self.backlog.class_head(class) {
                Some(id) => Some(self.backlog.take(id).map_err(raise)?),
                None => None,
            },
        };
        Ok(self.packet(py, id))
    }

    /// Drops a packet that is in the queue or was removed by `pop`.
    #[pyo3(signature = (packet, reason=None))]
    fn drop(&mut self, packet: &Packet, reason: Option<&str>) -> PyResult<()> {
        let reason = reason.map_or(Ok(DropReason::Early), drop_reason)?;
        self.backlog.drop(packet.id, reason).map_err(raise)?;
        if let Some(place) = self.packets.get_mut(packet.id.slot()) {
            *place = None;
        }
        Ok(())
    }

    /// Sets congestion experienced (CE) on a packet. Returns `False` and does nothing if the packet
    /// is not ECN-capable.
    fn mark(&mut self, packet: &Packet) -> PyResult<bool> {
        let done = self.backlog.mark(packet.id, MarkReason::Early).map_err(raise)?;
        if done {
            packet.set_ce();
        }
        Ok(done)
    }
}

/// Random draws for one policy. Each policy has its own stream of the run's random numbers.
#[pyclass(module = "sojourn._core")]
pub(crate) struct Draws {
    pub(super) stream: Stream,
}

impl Draws {
    /// Returns the stream with the key `key`.
    pub(super) fn keyed(key: u64) -> Self {
        Self { stream: Stream::keyed(key) }
    }
}

#[pymethods]
impl Draws {
    /// Returns 16 random bits.
    fn u16(&mut self) -> u16 {
        self.stream.draw_u16()
    }

    /// Returns 32 random bits.
    fn u32(&mut self) -> u32 {
        self.stream.draw_u32()
    }

    /// Returns 64 random bits.
    fn u64(&mut self) -> u64 {
        self.stream.draw_u64()
    }

    /// Returns a random integer from 0 to n - 1.
    fn below(&mut self, n: u32) -> PyResult<u32> {
        if n == 0 {
            return Err(PolicyError::new_err("the limit must be above 0"));
        }
        Ok(self.stream.draw_below(n))
    }

    /// Returns a random real number between 0 and 1, excluding both.
    fn uniform(&mut self) -> f64 {
        self.stream.uniform()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        Self { stream: self.stream.clone() }
    }
}

/// Returns the text of a Python object for messages, cut after 60 characters.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().ok().map(|text: Bound<'_, PyString>| text.to_string());
    let text = text.unwrap_or_else(|| "an object that cannot be printed".to_owned());
    if text.chars().count() > 60 { text.chars().take(60).collect::<String>() + "…" } else { text }
}
