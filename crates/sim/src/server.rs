//! Runs of the simulated UDP server, an application without a network.

use crate::app::Declared;
use crate::apps::AnyApp;
pub use crate::apps::server::{Acknowledged, Load, Outcome, Params, Sample, handler};
use crate::engine::Engine;
use crate::progress::Control;
use sojourn_network::Options;
use sojourn_plan::{Bottleneck, Observe, Plan};
use std::collections::BTreeMap;

/// Simulates a server for `params.duration`.
///
/// # Errors
/// If `params` are not valid; the text says why.
pub fn run(params: &Params, seed: u64) -> Result<Outcome, String> {
    let policy = sojourn_buffer::Params::parse(&params.policy).map_err(|e| e.to_string())?;
    run_with(params, &policy, seed)
}

/// Simulates a server as [`run`] does, with `policy` instead of `params.policy`.
///
/// # Errors
/// If `params` are not valid; the text says why.
pub fn run_with(
    params: &Params,
    policy: &sojourn_buffer::Params,
    seed: u64,
) -> Result<Outcome, String> {
    params.check()?;
    let plan = Plan {
        duration: params.duration,
        warmup: params.warmup,
        nodes: Vec::new(),
        media: Vec::new(),
        links: Vec::new(),
        balancers: Vec::new(),
        groups: Vec::new(),
        apps: Vec::new(),
        observe: Observe {
            bottleneck: Bottleneck { name: String::new(), links: Vec::new() },
            series_interval: 0,
            per_flow_histograms: false,
            monitor: false,
            capture: Vec::new(),
            qlog: Vec::new(),
            snaplen: 0,
            trace_hash: false,
        },
        sources: BTreeMap::new(),
    };
    let server = Declared::Server(params, policy);
    let options = Options { trace: false, probes: false, ..crate::options(&plan) };
    let mut engine = Engine::with(&plan, seed, options, Some(server)).map_err(|e| e.to_string())?;
    engine.run(&mut |_| Control::Continue).map_err(|e| e.to_string())?;
    match engine.apps.pop() {
        Some(AnyApp::Server(server)) => Ok(server.outcome()),
        _ => unreachable!("the server is the only application"),
    }
}
