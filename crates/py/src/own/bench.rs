//! A user's queue by itself, to be driven step by step: what `sojourn check` tries it with.

use super::faults::Faults;
use super::loaded::Loaded;
use super::queue::{code, queue_params};
use pyo3::prelude::*;
use sojourn_link::StreamDraws;
use sojourn_queue::external::External;
use sojourn_queue::{
    Configured, Dequeue, Discipline, DropReason, Ecn, Headers, MarkReason, Packet, Sink, TcpView,
    View,
};
use sojourn_random::Key;
use sojourn_units::{EPOCH, Nanos};
use std::sync::Arc;

/// A packet as a schedule has it.
#[derive(Clone, Copy, Debug)]
struct Given {
    number: u64,
    bytes: u32,
    flow: u32,
    ecn: Ecn,
    dscp: u8,
}

impl Packet for Given {
    fn len(&self) -> u32 {
        self.bytes
    }

    fn truesize(&self) -> u32 {
        (self.bytes + 384).next_power_of_two() + 256
    }

    fn flow_hash(&self) -> u32 {
        self.flow.wrapping_mul(0x9e37_79b1)
    }

    fn hosts(&self) -> (u32, u32) {
        (self.flow, 0)
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }

    fn set_ce(&mut self) -> bool {
        let capable = self.ecn != Ecn::NotEct;
        if capable {
            self.ecn = Ecn::Ce;
        }
        capable
    }
}

/// Packets dropped and marked in a step, by their numbers.
#[derive(Default)]
struct Lost {
    dropped: Vec<(u64, &'static str)>,
    marked: Vec<u64>,
}

impl Sink<Given> for Lost {
    fn dropped(&mut self, packet: Given, reason: DropReason, _queued: bool) {
        self.dropped.push((packet.number, reason.name()));
    }

    fn marked(&mut self, packet: &Given, _reason: MarkReason) {
        self.marked.push(packet.number);
    }

    fn tcp(&self, _packet: &Given) -> Option<TcpView> {
        None
    }

    fn headers(&self, packet: &Given) -> Headers {
        Headers { protocol: Headers::UDP, ports: (packet.flow as u16, 5001), mark: 0 }
    }
}

/// The number of the packet that left, the time to wait for, packets dropped with their reasons, and
/// packets marked.
type Step = (Option<u64>, Option<Nanos>, Vec<(u64, &'static str)>, Vec<u64>);

/// A queue of a user's class, alone.
#[pyclass(module = "sojourn._core")]
pub(crate) struct QueueBench {
    queue: External<Given>,
    draws: StreamDraws,
    faults: Arc<Faults>,
}

impl QueueBench {
    fn step(&self, left: Option<u64>, wait: Option<Nanos>, lost: Lost) -> PyResult<Step> {
        match self.faults.take() {
            Some(error) => Err(error),
            None => Ok((left, wait, lost.dropped, lost.marked)),
        }
    }
}

#[pymethods]
impl QueueBench {
    #[new]
    #[pyo3(signature = (queue_json, sources_json, seed=1, /))]
    fn new(py: Python<'_>, queue_json: &str, sources_json: &str, seed: u64) -> PyResult<Self> {
        let mut params = queue_params(queue_json)?;
        let faults = Arc::new(Faults::default());
        params.code = code(Loaded::alone(py, &params.spec, sources_json, &faults)?);
        let draws = StreamDraws(Key::new(seed, "check").stream("queue"));
        Ok(Self { queue: External::new(params, EPOCH), draws, faults })
    }

    /// Offers a packet.
    #[pyo3(signature = (now, number, nbytes, flow=0, ecn=0, dscp=0, /))]
    fn enqueue(
        &mut self,
        now: Nanos,
        number: u64,
        nbytes: u32,
        flow: u32,
        ecn: u8,
        dscp: u8,
    ) -> PyResult<Step> {
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(ecn & 3)];
        let mut lost = Lost::default();
        let packet = Given { number, bytes: nbytes, flow, ecn, dscp };
        self.queue.enqueue(now, packet, &mut self.draws, &mut lost);
        self.step(None, None, lost)
    }

    /// Asks for a packet.
    #[pyo3(signature = (now, /))]
    fn dequeue(&mut self, now: Nanos) -> PyResult<Step> {
        let mut lost = Lost::default();
        match self.queue.dequeue(now, &mut self.draws, &mut lost) {
            Dequeue::Packet(packet) => self.step(Some(packet.number), None, lost),
            Dequeue::Empty => self.step(None, None, lost),
            Dequeue::NotBefore(time) => self.step(None, Some(time), lost),
        }
    }

    /// Returns when the periodic task is due, if there is one.
    #[getter]
    fn timer(&self) -> Option<Nanos> {
        self.queue.next_timer()
    }

    /// Runs the periodic task.
    #[pyo3(signature = (now, /))]
    fn on_timer(&mut self, now: Nanos) -> PyResult<Step> {
        self.queue.on_timer(now);
        self.step(None, None, Lost::default())
    }

    /// Packets queued.
    fn __len__(&self) -> usize {
        self.queue.packets()
    }

    /// Bytes queued.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Returns a queue in the same state, independent of this one.
    fn copy(&self) -> PyResult<Self> {
        let (queue, draws) = (self.queue.clone(), self.draws.clone());
        match self.faults.take() {
            Some(error) => Err(error),
            None => Ok(Self { queue, draws, faults: self.faults.clone() }),
        }
    }
}
