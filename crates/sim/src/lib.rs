//! The simulator: virtual time, hosts, traffic, probes.
//!
//! [`run`] runs a plan with a seed and returns a [`Record`]; [`Stepwise`] does the same in steps.
//! See [`engine`] for the order of events.
//!
//! The engine contains no code of particular applications. [`world`] holds the services that
//! applications use. [`engine`] notifies an application ([`app::App`]) when its timer is due and of
//! events of its connections. A new application is one file in [`apps`] with one line in the list
//! there. Its `try_new` returns an application for the declarations of its kind and `None` for all
//! others.

mod app;
mod apps;
mod captures;
pub mod causes;
mod channels;
mod emitter;
mod engine;
mod flow_report;
mod load;
mod monitor;
mod observers;
mod progress;
mod qlog;
mod report;
mod schedule;
mod series;
pub mod server;
mod stepwise;
mod world;

pub use apps::store;
pub use engine::EARLY;
pub use observers::PacketEvent;
pub use progress::{Control, Progress, RunError};
pub use sojourn_network::{Options, Record};
use sojourn_plan::Plan;
use sojourn_traffic::App;
pub use stepwise::Stepwise;

/// Runs a plan with a seed. `progress` is called about 200 times at equal steps of simulated time,
/// and additionally after about every 4 million events.
///
/// # Errors
/// If the plan cannot be run, or an internal check of the simulator fails.
pub fn run(
    plan: &Plan,
    seed: u64,
    progress: &mut dyn FnMut(Progress) -> Control,
) -> Result<Record, RunError> {
    run_with(plan, seed, options(plan), progress)
}

/// Returns the network's options for a simulation of this plan.
fn options(plan: &Plan) -> Options {
    Options {
        trace: plan.observe.trace_hash,
        probes: true,
        monitor: plan.observe.monitor,
        adjustable: false,
        fused: true,
    }
}

/// Returns the record of a run before its start, with the sample of time 0. Its tables have all
/// columns; the user's own programs count as bulk transfers.
///
/// # Errors
/// If the plan cannot be run.
pub fn blank(plan: &Plan, seed: u64) -> Result<Record, RunError> {
    let mut plan = plan.clone();
    for group in &mut plan.groups {
        if matches!(group.app, App::Command(_)) {
            group.app = App::Bulk(sojourn_traffic::bulk::Params::default());
        }
    }
    let mut engine = engine::Engine::new(&plan, seed, options(&plan))?;
    if plan.observe.series_interval > 0 {
        engine.series.sample(&engine.world);
    }
    Ok(report::record(engine))
}

/// Runs a plan as [`run`] does, with other options of the network, for tests and benchmarks.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    plan: &Plan,
    seed: u64,
    options: Options,
    progress: &mut dyn FnMut(Progress) -> Control,
) -> Result<Record, RunError> {
    let mut engine = engine::Engine::new(plan, seed, options)?;
    engine.run(progress)?;
    Ok(report::record(engine))
}
