//! A plan's flows as a list, for programs that generate the same traffic as the simulator.

use crate::errors::{PlanError, word_error};
use crate::simulate::read;
use pyo3::prelude::*;
use serde::Serialize;
use sojourn_network::Selected;
use sojourn_plan::Transport;
use sojourn_queue::classes::filter;
use sojourn_traffic::App;
use sojourn_units::{EPOCH, Nanos};

/// A flow. Times are in nanoseconds since the run's start.
#[derive(Serialize)]
struct Planned<'a> {
    flow: u32,
    group: u32,
    name: &'a str,
    number: u32,
    from: usize,
    to: usize,
    servers: Vec<usize>,
    start: Option<Nanos>,
    stop: Nanos,
    dscp: u8,
    app: &'static str,
    payload: u32,
    tcp: Option<&'a sojourn_tcp::Params>,
    command: Option<&'a sojourn_traffic::command::Params>,
}

/// Returns the flows of a plan's run with this seed as JSON, ordered by group.
///
/// The fields of a flow are: `flow`, its number in the plan; `group`, the index of its group;
/// `name`, the group's name; `number`, its number in the group; its nodes `from` and `to`;
/// `servers`, the servers of a Web session; `start`, drawn as in the simulator, and null if the
/// flow never starts; `stop`, the latest end of its application; `dscp`; `app`, the name of its
/// application; `payload`, its longest UDP payload in bytes; `tcp`, the parameters of TCP, null
/// over UDP; and `command`, the parameters of a user's program, null for other applications.
#[pyfunction]
#[pyo3(signature = (plan_json, seed, /))]
pub(crate) fn plan_flows(plan_json: &str, seed: u64) -> PyResult<String> {
    let plan = read(plan_json)?;
    plan.validate().map_err(|e| PlanError::new_err(e.to_string()))?;
    let mut flows = Vec::new();
    for (g, group) in plan.groups.iter().enumerate() {
        for flow in group.flows(seed, plan.duration) {
            let web = matches!(group.app, App::Web(_));
            flows.push(Planned {
                flow: flows.len() as u32,
                group: g as u32,
                name: &group.name,
                number: flow.number,
                from: flow.pair.0,
                to: flow.pair.1,
                servers: if web { group.servers(flow.pair.1) } else { Vec::new() },
                start: flow.start.map(|at| at - EPOCH),
                stop: group.stop.map_or(plan.duration, |stop| stop.min(plan.duration)),
                dscp: group.dscp,
                app: group.app.name(),
                payload: group.app.longest_payload(),
                tcp: match &group.transport {
                    Transport::Tcp(params) => Some(params),
                    Transport::Udp => None,
                },
                command: match &group.app {
                    App::Command(params) => Some(params),
                    _ => None,
                },
            });
        }
    }
    Ok(serde_json::to_string(&flows).expect("all keys of a flow are strings"))
}

/// Returns the groups whose packets each filter of a link's queue selects. `filters` are the filter
/// statements of one discipline, in their order. The result has for each filter a list of pairs:
/// the name of a group, and whether the selected packets go from the receiver of the group's data
/// to the sender.
#[pyfunction]
#[pyo3(signature = (plan_json, link, filters, /))]
pub(crate) fn selected_flows(
    py: Python<'_>,
    plan_json: &str,
    link: &str,
    filters: &str,
) -> PyResult<Vec<Vec<(String, bool)>>> {
    let plan = read(plan_json)?;
    plan.validate().map_err(|e| PlanError::new_err(e.to_string()))?;
    let filters = filter::read(filters).map_err(|e| word_error(py, filters, &e))?;
    let Some(link) = plan.links.iter().position(|one| one.name == link) else {
        return Err(PlanError::new_err(format!("there is no link `{link}`")));
    };
    let name = |one: &Selected| (plan.groups[one.group].name.clone(), one.answers);
    let found = sojourn_network::selected(&plan, link, &filters);
    Ok(found.iter().map(|groups| groups.iter().map(name).collect()).collect())
}
