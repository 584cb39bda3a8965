//! Queue disciplines written in Python.

use super::loaded::{Loaded, params as params_object, visit_state};
use super::package::package;
use super::views::{Draws, Packet, Queue, shown};
use super::watch::Asked as Called;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_queue::external::{
    self, Backlog, Draws as Stream, Fault, Id, Next, Params, Policy, Verdict,
};
use sojourn_queue::{DropReason, MarkReason};
use sojourn_units::Nanos;
use sojourn_units::external::Code;
use std::sync::Arc;

/// Creates instances of a user's class for queue disciplines.
struct Factory {
    loaded: Arc<Loaded>,
}

/// Returns the code of a user's class for queue disciplines.
pub(crate) fn code(loaded: Loaded) -> Code<dyn external::Factory> {
    Code::new(Arc::new(Factory { loaded: Arc::new(loaded) }))
}

fn others<'py>(py: Python<'py>, params: &Params) -> PyResult<Bound<'py, PyDict>> {
    let others = PyDict::new(py);
    others.set_item("mtu", params.mtu)?;
    Ok(others)
}

impl external::Factory for Factory {
    fn create(
        &self,
        params: &Params,
        _now: Nanos,
        draws: Stream,
    ) -> Result<Box<dyn Policy>, Fault> {
        let policy = self.loaded.make(|py| {
            let draws = Bound::new(py, Draws { stream: draws })?.into_any();
            let others = others(py, params)?;
            let object = self.loaded.instance(py, &params.spec.params, &others, Some(draws))?;
            PyPolicy::new(py, &object, self.loaded.clone(), params.period)
        })?;
        Ok(Box::new(policy))
    }

    fn on_fault(&self, now: Nanos, fault: &Fault) {
        self.loaded.faults.report(&self.loaded.name, "__init__", now, &fault.0);
    }
}

/// The call of a policy that is in progress, for error messages.
#[derive(Clone, Copy, Debug)]
struct Asked {
    method: &'static str,
    packet: Option<(u64, u32)>,
}

/// An instance of a user's class for queue disciplines.
struct PyPolicy {
    loaded: Arc<Loaded>,
    object: Py<PyAny>,
    enqueue: Py<PyAny>,
    dequeue: Py<PyAny>,
    queue: Py<Queue>,
    /// The objects `sojourn.DROP`, `ACCEPT` and `MARK`, in the order of their values.
    verdicts: [Py<PyAny>; 3],
    period: Nanos,
    timer: Option<Nanos>,
    asked: Asked,
}

impl PyPolicy {
    fn new(
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        loaded: Arc<Loaded>,
        period: Nanos,
    ) -> PyResult<Self> {
        Ok(Self {
            loaded,
            enqueue: object.getattr("enqueue")?.unbind(),
            dequeue: object.getattr("dequeue")?.unbind(),
            object: object.clone().unbind(),
            queue: Py::new(py, Queue::default())?,
            verdicts: package(py)?.getattr("VERDICTS")?.extract()?,
            period,
            timer: None,
            asked: Asked { method: "__init__", packet: None },
        })
    }

    /// Makes the backlog available to Python while `call` runs at the time `now`.
    fn lend<T>(
        &self,
        py: Python<'_>,
        now: Nanos,
        backlog: &mut Backlog,
        call: impl FnOnce() -> PyResult<T>,
    ) -> Result<T, Fault> {
        std::mem::swap(&mut self.queue.borrow_mut(py).backlog, backlog);
        let Asked { method, packet } = self.asked;
        let called = Called { method, number: packet.map(|(number, _)| number), now };
        let result = self.loaded.call(py, called, call);
        std::mem::swap(&mut self.queue.borrow_mut(py).backlog, backlog);
        result
    }

    /// Converts the return value of `enqueue` to a decision about the arriving packet.
    fn verdict(&self, answer: &Bound<'_, PyAny>) -> Result<Verdict, Fault> {
        // Compare the objects first, since reading the value of an enumeration is slow.
        let known = self.verdicts.iter().position(|verdict| verdict.is(answer));
        match known.map_or_else(|| answer.extract(), |known| Ok(known as u8)) {
            Ok(0) => Ok(Verdict::Drop(DropReason::Early)),
            Ok(1) => Ok(Verdict::Accept),
            Ok(2) => Ok(Verdict::Mark(MarkReason::Early)),
            _ => Err(Fault(format!(
                "returned {}: return sojourn.ACCEPT, sojourn.DROP or sojourn.MARK (or True or \
                 False)",
                shown(answer)
            ))),
        }
    }

    /// Converts the return value of `dequeue` to the next departure.
    fn next(&self, answer: &Bound<'_, PyAny>) -> Result<Next, Fault> {
        if let Ok(packet) = answer.cast::<Packet>() {
            let id = packet.get().id;
            let mut queue = self.queue.borrow_mut(answer.py());
            let known = match queue.packets.get_mut(id.slot()) {
                Some(place) => place.take_if(|known| known.is(packet)),
                None => None,
            };
            return match known {
                Some(_) => Ok(Next::Packet(id)),
                None => Err(Fault(format!(
                    "returned {}, which is not in the queue: it has already left or was dropped",
                    shown(answer)
                ))),
            };
        }
        if answer.is_none() {
            return Ok(Next::Empty);
        }
        answer.extract::<u64>().map(Next::NotBefore).map_err(|_| {
            Fault(format!(
                "returned {}: return a packet of the queue, None if it is empty, or the time \
                 (int, nanoseconds) before which no packet may leave",
                shown(answer)
            ))
        })
    }
}

impl Policy for PyPolicy {
    fn enqueue(&mut self, now: Nanos, id: Id, backlog: &mut Backlog) -> Result<Verdict, Fault> {
        let Some(info) = backlog.get(id).copied() else {
            return Err(Fault("enqueue was called without an arriving packet".to_owned()));
        };
        self.asked = Asked { method: "enqueue", packet: Some((info.number, info.len)) };
        Python::attach(|py| {
            let packet = Py::new(py, Packet::new(id, &info))
                .map_err(|error| Fault(self.loaded.faults.explain(py, error)))?;
            self.queue.borrow_mut(py).put(id.slot(), packet.clone_ref(py));
            let verdict = self.lend(py, now, backlog, || {
                self.enqueue.bind(py).call1((now, packet.bind(py), self.queue.bind(py)))
            });
            let verdict = verdict.and_then(|answer| self.verdict(&answer))?;
            match verdict {
                Verdict::Accept => {}
                Verdict::Mark(_) if info.ecn as u8 != 0 => packet.get().set_ce(),
                Verdict::Mark(_) | Verdict::Drop(_) => {
                    self.queue.borrow_mut(py).packets[id.slot()] = None;
                    return Ok(verdict);
                }
            }
            backlog.set_class(id, packet.get().class())?;
            Ok(verdict)
        })
    }

    fn dequeue(&mut self, now: Nanos, backlog: &mut Backlog) -> Result<Next, Fault> {
        let head = backlog.head().and_then(|id| backlog.get(id));
        self.asked = Asked { method: "dequeue", packet: head.map(|info| (info.number, info.len)) };
        Python::attach(|py| {
            let call = || self.dequeue.bind(py).call1((now, self.queue.bind(py)));
            let answer = self.lend(py, now, backlog, call)?;
            self.next(&answer)
        })
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn on_timer(&mut self, now: Nanos, queue: &Backlog) -> Result<(), Fault> {
        self.asked = Asked { method: "on_timer", packet: None };
        self.timer = Some(now + self.period);
        let mut lent = queue.clone();
        Python::attach(|py| {
            self.lend(py, now, &mut lent, || {
                let queue = self.queue.bind(py);
                self.object.bind(py).call_method1("on_timer", (now, queue)).map(|_| ())
            })
        })
    }

    fn change(&mut self, params: &Params) -> Result<(), Fault> {
        self.asked = Asked { method: "change", packet: None };
        Python::attach(|py| {
            let change = || -> PyResult<()> {
                let object = self.object.bind(py);
                if !object.hasattr("change")? {
                    return Err(crate::errors::PolicyError::new_err(
                        "the class has no method `change`, so its parameters cannot be changed",
                    ));
                }
                let params = params_object(py, &params.spec.params, &others(py, params)?)?;
                object.call_method1("change", (params,)).map(|_| ())
            };
            self.loaded.call(py, Called::of("change"), change)
        })
    }

    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        Python::attach(|py| visit_state(&self.loaded, self.object.bind(py), visit));
    }

    fn copy(&self) -> Box<dyn Policy> {
        Python::attach(|py| {
            let copy = self.loaded.copy(self.object.bind(py));
            let here = self.queue.borrow(py);
            let packets = here.packets.iter().map(|p| p.as_ref().map(|p| p.clone_ref(py)));
            let made = Self::new(py, &copy, self.loaded.clone(), self.period);
            let policy = made.expect("an instance has its class's methods");
            policy.queue.borrow_mut(py).packets = packets.collect();
            Box::new(Self { timer: self.timer, ..policy })
        })
    }

    fn on_fault(&mut self, now: Nanos, fault: &Fault) {
        let place = match self.asked {
            Asked { method: "enqueue", packet: Some((number, bytes)) } => {
                format!("enqueue of packet {number} ({bytes} bytes)")
            }
            Asked { method, packet: Some((number, bytes)) } => {
                format!("{method} with packet {number} ({bytes} bytes) at the head")
            }
            Asked { method, packet: None } => method.to_owned(),
        };
        self.loaded.faults.report(&self.loaded.name, &place, now, &fault.0);
    }
}

/// Returns the parameters of a queue discipline from their JSON.
pub(crate) fn read_params(json: &str) -> PyResult<sojourn_queue::Params> {
    serde_json::from_str(json).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
}

/// Returns the parameters of a user's queue discipline from their JSON.
pub(crate) fn queue_params(json: &str) -> PyResult<Params> {
    match read_params(json)? {
        sojourn_queue::Params::External(params) => Ok(params),
        other => Err(pyo3::exceptions::PyValueError::new_err(format!(
            "`{}` is a built-in queue discipline, not a user's",
            other.name()
        ))),
    }
}
