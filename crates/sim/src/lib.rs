//! The simulator: virtual time, hosts, traffic, probes.
//!
//! [`run`] takes a plan and a seed and gives a [`Record`]. See [`engine`] for the order of events.

pub mod balance;
mod browse;
pub mod captures;
mod channel;
pub mod engine;
pub mod flow;
mod flow_report;
pub mod load;
pub mod monitor;
pub mod pcap;
pub mod progress;
mod report;
pub mod series;
pub mod server;
pub mod store;
pub mod stream;
pub mod tcp_host;

pub use progress::{Control, Progress, RunError};
pub use sojourn_network::{Options, Record};
use sojourn_plan::Plan;

/// Runs a plan with a seed. `progress` is called now and then, as simulated time and events decide.
///
/// # Errors
/// If the plan cannot be run, or the simulator finds that it is wrong.
pub fn run(
    plan: &Plan,
    seed: u64,
    progress: &mut dyn FnMut(Progress) -> Control,
) -> Result<Record, RunError> {
    let options = Options {
        trace: plan.observe.trace_hash,
        probes: true,
        monitor: plan.observe.monitor,
        adjustable: false,
    };
    run_with(plan, seed, options, progress)
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
    Ok(engine.into_record())
}
