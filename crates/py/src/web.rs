//! Web sessions of a plan, for a browser that is to behave as the simulator's users do.

use crate::errors::PlanError;
use crate::simulate::read;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sojourn_plan::address;
use sojourn_traffic::App;
use sojourn_traffic::web::{ObjectId, Session};
use sojourn_units::EPOCH;

/// A user of the Web: what he asks for, and when, given when he got what he asked for before.
///
/// Times are nanoseconds since the run's start.
#[pyclass(module = "sojourn._core")]
pub(crate) struct WebSession {
    session: Session,
    /// Number of the flow in the plan.
    #[pyo3(get)]
    flow: u32,
    /// Port at which its servers listen.
    #[pyo3(get)]
    port: u16,
    /// Nodes of its servers.
    #[pyo3(get)]
    servers: Vec<usize>,
    /// When it asks for nothing more.
    #[pyo3(get)]
    stop: u64,
    /// Objects asked for that have not come.
    asked: Vec<ObjectId>,
}

#[pymethods]
impl WebSession {
    /// Returns the time of the next request, if time alone decides.
    fn next_event(&self) -> Option<u64> {
        self.session.next_event().map(|at| at.saturating_sub(EPOCH)).filter(|&at| at < self.stop)
    }

    /// Returns the next request that is due by `now`: when it was due, the numbers of its page and
    /// object, the node of its server, bytes of the request, bytes of the answer.
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

    /// Returns an object has come, or never will. Gives the page that it completes: number, start,
    /// objects.
    #[pyo3(signature = (now, page, object, /))]
    fn complete(&mut self, now: u64, page: u32, object: u32) -> PyResult<Option<(u32, u64, u32)>> {
        let id = ObjectId { page, object };
        let asked = self.asked.iter().position(|&other| other == id);
        let asked = asked.ok_or_else(|| PyValueError::new_err("no such object was asked for"))?;
        self.asked.swap_remove(asked);
        let page = self.session.complete(EPOCH + now, id);
        Ok(page.map(|page| (page.number, page.started - EPOCH, page.objects)))
    }

    /// Returns whether there is nothing more to come.
    #[getter]
    fn finished(&self) -> bool {
        self.session.is_finished()
    }
}

/// Returns the Web sessions of the client at node `node`, those that ever start.
#[pyfunction]
#[pyo3(signature = (plan_json, seed, node, /))]
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
            let port =
                port.ok_or_else(|| PyValueError::new_err("no port is left for a session"))?;
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
