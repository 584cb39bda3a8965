//! A test bench for a queue, which `sojourn check` and `sojourn judge` control step by step.

use super::faults::Faults;
use super::loaded::Loaded;
use super::queue::{code, read_params};
use pyo3::prelude::*;
use sojourn_link::StreamDraws;
use sojourn_queue::{
    Call, Dequeue, Discipline, DropReason, Ecn, Headers, MarkReason, Packet, Params, Queue, Sink,
    TcpView, View,
};
use sojourn_random::Key;
use sojourn_units::{EPOCH, Nanos};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A packet of a test schedule.
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
        self.ecn.mark()
    }
}

/// Packets that were dropped or marked in a step, by their numbers.
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

/// Result of a step: number of the packet that left, time in nanoseconds before which no packet may
/// leave, dropped packets with their reasons, and marked packets.
type Step = (Option<u64>, Option<Nanos>, Vec<(u64, &'static str)>, Vec<u64>);

/// A queue without a link, for tests: built-in, or of a user's class.
#[pyclass(module = "sojourn._core")]
pub(crate) struct QueueBench {
    queue: Queue<Given>,
    draws: StreamDraws,
    faults: Arc<Faults>,
}

impl QueueBench {
    fn step(&self, left: Option<u64>, wait: Option<Nanos>, lost: Lost) -> PyResult<Step> {
        self.faults.check((left, wait, lost.dropped, lost.marked))
    }
}

#[pymethods]
impl QueueBench {
    #[new]
    #[pyo3(signature = (queue_json, sources_json, seed=1, /))]
    fn new(py: Python<'_>, queue_json: &str, sources_json: &str, seed: u64) -> PyResult<Self> {
        let mut params = read_params(queue_json)?;
        let faults = Arc::new(Faults::default());
        if let Params::External(own) = &mut params {
            own.code = code(Loaded::alone(py, &own.spec, sources_json, &faults)?);
        }
        let draws = StreamDraws(Key::new(seed, "check").stream("queue"));
        Ok(Self { queue: params.build(EPOCH), draws, faults })
    }

    /// Adds a packet to the queue at the time `now`, in nanoseconds.
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
        let mut call = Call { now, draws: &mut self.draws, sink: &mut lost };
        self.queue.enqueue(packet, &mut call);
        self.step(None, None, lost)
    }

    /// Removes the next packet from the queue at the time `now`, in nanoseconds.
    #[pyo3(signature = (now, /))]
    fn dequeue(&mut self, now: Nanos) -> PyResult<Step> {
        let mut lost = Lost::default();
        let mut call = Call { now, draws: &mut self.draws, sink: &mut lost };
        match self.queue.dequeue(&mut call) {
            Dequeue::Packet(packet) => self.step(Some(packet.number), None, lost),
            Dequeue::Empty => self.step(None, None, lost),
            Dequeue::NotBefore(time) => self.step(None, Some(time), lost),
        }
    }

    /// Returns the time of the next call of the periodic task in nanoseconds; `None` without a
    /// periodic task.
    #[getter]
    fn timer(&self) -> Option<Nanos> {
        self.queue.next_timer()
    }

    /// Calls the periodic task.
    #[pyo3(signature = (now, /))]
    fn on_timer(&mut self, now: Nanos) -> PyResult<Step> {
        self.queue.on_timer(now);
        self.step(None, None, Lost::default())
    }

    /// Returns the queue's internal state by the names of the kernel, or of the class's method
    /// `state`.
    fn state(&self) -> PyResult<BTreeMap<String, i128>> {
        let mut found = BTreeMap::new();
        self.queue.state(&mut |name, value| _ = found.insert(name.to_owned(), value));
        self.faults.check(found)
    }

    /// Number of packets in the queue.
    fn __len__(&self) -> usize {
        self.queue.packets()
    }

    /// Number of bytes in the queue.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Returns an independent copy of the queue in its current state.
    fn copy(&self) -> PyResult<Self> {
        let (queue, draws) = (self.queue.clone(), self.draws.clone());
        self.faults.check(Self { queue, draws, faults: self.faults.clone() })
    }
}
