//! Web sessions of a plan, for a browser that requests the same objects as the simulator's users.

use crate::errors::PlanError;
use crate::simulate::read;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sojourn_plan::address;
use sojourn_traffic::App;
use sojourn_traffic::web::{ObjectId, Session};
use sojourn_units::EPOCH;

/// A user of the Web: the objects that the user requests and the times of the requests, depending
/// on the times at which earlier objects arrived.
///
/// Times are in nanoseconds since the run's start.
#[pyclass(module = "sojourn._core")]
pub(crate) struct WebSession {
    session: Session,
    /// Number of the session's flow in the plan.
    #[pyo3(get)]
    flow: u32,
    /// Port at which the session's servers listen.
    #[pyo3(get)]
    port: u16,
    /// Indices of the nodes of the session's servers.
    #[pyo3(get)]
    servers: Vec<usize>,
    /// Time after which the session requests no more objects.
    #[pyo3(get)]
    stop: u64,
    /// Objects that have been requested and have not arrived.
    asked: Vec<ObjectId>,
}

#[pymethods]
impl WebSession {
    /// Returns when the next request is due, if before `stop`; `None` if it waits for an object.
    fn next_event(&self) -> Option<u64> {
        self.session.next_event().map(|at| at.saturating_sub(EPOCH)).filter(|&at| at < self.stop)
    }

    /// Returns the next request that is due by `now`: the time when it was due, the numbers of its
    /// page and object, the node of its server, and the bytes of request and answer. Returns `None`
    /// if no request is due.
    #[pyo3(signature = (now, /))]
    fn poll(&mut self, now: u64) -> Option<(u64, u32, u32, usize, u64, u64)> {
        if now >= self.stop {
            return None;
        }
        let request = self.session.poll(EPOCH + now)?;
        self.asked.push(request.object);
        let ObjectId { page, object } = request.object;
        let server = self.servers[request.server as usize];
        Some((request.at - EPOCH, page, object, server, request.request, request.bytes))
    }

    /// Reports that an object has arrived, or will never arrive. If the object completes its page,
    /// returns the page's number, start time and object count.
    #[pyo3(signature = (now, page, object, /))]
    fn complete(&mut self, now: u64, page: u32, object: u32) -> PyResult<Option<(u32, u64, u32)>> {
        let id = ObjectId { page, object };
        let asked = self.asked.iter().position(|&other| other == id);
        let asked = asked.ok_or_else(|| PyValueError::new_err("this object was not requested"))?;
        self.asked.swap_remove(asked);
        let page = self.session.complete(EPOCH + now, id);
        Ok(page.map(|page| (page.number, page.started - EPOCH, page.objects)))
    }

    /// Returns whether the session will request no more objects.
    #[getter]
    fn finished(&self) -> bool {
        self.session.is_finished()
    }
}

/// Returns the Web sessions of the client at the node `node`, except sessions that never start.
#[pyfunction(signature = (plan_json, seed, node, /))]
pub(crate) fn web_sessions(plan_json: &str, seed: u64, node: usize) -> PyResult<Vec<WebSession>> {
    let plan = read(plan_json)?;
    plan.validate().map_err(|e| PlanError::new_err(e.to_string()))?;
    let mut sessions = Vec::new();
    let mut number = 0;
    for group in &plan.groups {
        for flow in group.flows(seed, plan.duration) {
            let mine = number;
            number += 1;
            let (App::Web(params), Some(start), true) =
                (&group.app, flow.start, flow.pair.1 == node)
            else {
                continue;
            };
            let servers = group.servers(node);
            let port = address::port(mine);
            let port = port.ok_or_else(|| {
                PyValueError::new_err(
                    "the plan has too many flows: no port is free for a Web session",
                )
            })?;
            let session = Session::new(params, flow.key, servers.len() as u32, start);
            let stop = group.stop.map_or(plan.duration, |stop| stop.min(plan.duration));
            sessions.push(WebSession {
                session,
                flow: mine,
                port,
                servers,
                stop,
                asked: Vec::new(),
            });
        }
    }
    Ok(sessions)
}
