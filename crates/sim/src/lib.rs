//! The simulator: virtual time, hosts, traffic, probes.
//!
//! [`run`] takes a plan and a seed and gives a [`Record`]; [`Stepwise`] does so in steps. See [`engine`] for the order of events.
//!
//! The engine knows no application. [`world`] holds the services that applications use, and
//! [`engine`] notifies each of them ([`app::App`]) when its timer is due and of events of its
//! connections. A new application is one file in [`apps`], with its line in the list there: its
//! `try_new` takes a plan's declaration, if it is of its kind; all others pass it on.

mod app;
mod apps;
mod captures;
mod channels;
mod emitter;
mod engine;
mod flow_report;
mod load;
mod monitor;
mod observers;
mod pcap;
mod progress;
mod report;
mod schedule;
mod series;
pub mod server;
mod stepwise;
mod world;

pub use apps::store;
pub use observers::PacketEvent;
pub use progress::{Control, Progress, RunError};
pub use sojourn_network::{Options, Record};
use sojourn_plan::Plan;
pub use stepwise::Stepwise;

/// Runs a plan with a seed. `progress` is called now and then, as simulated time and events decide.
///
/// # Errors
/// If the plan cannot be run, or the simulator finds that it is wrong.
pub fn run(
    plan: &Plan,
    seed: u64,
    progress: &mut dyn FnMut(Progress) -> Control,
) -> Result<Record, RunError> {
    run_with(plan, seed, options(plan), progress)
}

/// The options that a plan asks for.
fn options(plan: &Plan) -> Options {
    Options {
        trace: plan.observe.trace_hash,
        probes: true,
        monitor: plan.observe.monitor,
        adjustable: false,
        fused: true,
    }
}

/// [`run`] with other options than the plan's, for benchmarks.
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
