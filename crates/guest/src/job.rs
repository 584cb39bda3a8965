//! The job of a guest: written by `sojourn.linux`, read by the guest's first process.

use serde::{Deserialize, Serialize};
use sojourn_plan::Plan;
use sojourn_units::Nanos;

/// Path of the job.
pub const FILE: &str = "/job.json";
/// Folder of the outputs.
pub const OUTPUTS: &str = "/out";

/// A run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Seed of the traffic's draws; the kernel's own draws follow from `SOJOURN_SEED`.
    pub seed: u64,
    /// Plan, including probes next to its flows.
    pub plan: Plan,
    /// Network namespaces.
    pub hosts: Vec<Host>,
    /// Commands that set up links, addresses, routes and queue disciplines, in order.
    pub commands: Vec<Command>,
    /// Links by this project's wire; `None` if the commands create the links.
    pub wire: Option<Wire>,
    /// Shell at the console, in place of the plan's traffic.
    pub shell: Option<Shell>,
    /// The user's programs.
    #[serde(default)]
    pub programs: Vec<Program>,
    /// Indices of hosts whose sent and received packets are recorded.
    #[serde(default)]
    pub taps: Vec<usize>,
    /// Queue disciplines to sample.
    pub queues: Vec<Queue>,
    /// Time between two samples of queues, in nanoseconds.
    pub interval: Nanos,
    /// Folders of the host machine that are mounted at the same path, read-only.
    pub folders: Vec<String>,
}

/// A network namespace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Node in the plan; `None` for a namespace that only has queues.
    pub node: Option<usize>,
    /// Whether the host has traffic of the plan.
    pub plays: bool,
    /// Sysctls: paths below `/proc/sys`, and values.
    pub sysctls: Vec<(String, String)>,
    /// Devices whose offloads are disabled.
    pub devices: Vec<String>,
}

/// The plan's links, emulated by this project's wire.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// Largest packet in bytes.
    pub mtu: usize,
    /// Links whose arrivals are recorded and replayed at the end.
    pub journals: Vec<usize>,
    /// Links whose packets are written to a file.
    pub captures: Vec<usize>,
}

/// A program of the guest's root file system, with its standard input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Index of the host in whose namespace it runs; `None` is the namespace of the first process.
    pub host: Option<usize>,
    /// Path and arguments of the program.
    pub words: Vec<String>,
    /// Standard input.
    pub input: String,
    /// Whether it runs before the devices' offloads are disabled.
    pub early: bool,
}

/// An interactive shell.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shell {
    /// Index of its host.
    pub host: usize,
    /// Number of lines of the terminal.
    pub rows: u16,
    /// Number of characters per line.
    pub columns: u16,
}

/// A program of the user.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name in messages.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// Path and arguments of the program.
    pub words: Vec<String>,
    /// Its folder on the host machine, mounted read-only.
    pub folder: String,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// Start in nanoseconds after the run's start; `None` starts it before the run.
    pub start: Option<Nanos>,
    /// Stop in nanoseconds after the run's start.
    pub stop: Nanos,
    /// Port on which it listens before the run begins.
    pub port: Option<u16>,
}

/// A queue discipline.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Index of its host.
    pub host: usize,
    /// Device at which packets leave the queue.
    pub device: String,
    /// Device at which packets arrive, if arrivals are recorded.
    pub arrivals: Option<String>,
    /// Handle, such as 0x100000 for `10:`.
    pub handle: u32,
    /// Index of its link, if its packets are written to a file.
    #[serde(default)]
    pub capture: Option<usize>,
}

/// Facts about a kernel: written in place of a run's outputs if there is no job.
#[derive(Debug, Serialize)]
pub struct Facts {
    /// Release, as printed by `uname -r`.
    pub release: String,
    /// Loaded congestion controls.
    pub controls: Vec<String>,
    /// Parameters of the module `tcp_cubic`.
    pub cubic: Vec<(String, String)>,
    /// Names below `net/ipv4` that a host may set.
    pub sysctls: Vec<String>,
}

/// End of a run.
#[derive(Debug, Serialize)]
pub struct Done {
    /// Error, if the run failed.
    pub error: Option<String>,
    /// Monotonic clock at the run's start, in nanoseconds.
    pub start: u64,
    /// Wall clock at the run's start, in nanoseconds.
    pub wall: u64,
}
