//! What a run in a guest is: written by `sojourn.linux`, read by the guest's first process.

use serde::{Deserialize, Serialize};
use sojourn_plan::Plan;
use sojourn_units::Nanos;

/// Where the first process finds it.
pub const FILE: &str = "/job.json";
/// Where outputs go.
pub const OUTPUTS: &str = "/out";

/// A run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Seed of the traffic's draws; the kernel's own follow from `SOJOURN_SEED`.
    pub seed: u64,
    /// The plan, with the probes beside its flows.
    pub plan: Plan,
    /// Network namespaces.
    pub hosts: Vec<Host>,
    /// Programs that set up links, addresses, routes and queue disciplines, in their order.
    pub commands: Vec<Command>,
    /// Our own links between the hosts; without them the links are those that the commands make.
    pub wire: Option<Wire>,
    /// A shell at the console, in place of the plan's traffic.
    pub shell: Option<Shell>,
    /// Programs of the user's own.
    #[serde(default)]
    pub programs: Vec<Program>,
    /// Indices of hosts whose packets are written down as they send and take them.
    #[serde(default)]
    pub taps: Vec<usize>,
    /// Queue disciplines to be sampled.
    pub queues: Vec<Queue>,
    /// Time between two samples of queues.
    pub interval: Nanos,
    /// Folders of the machine outside that are shown at the same place, to be read only.
    pub folders: Vec<String>,
}

/// A network namespace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its node in the plan; none for a namespace that only holds queues.
    pub node: Option<usize>,
    /// Whether one of the node's flows is played.
    pub plays: bool,
    /// Sysctls: paths below `/proc/sys`, and values.
    pub sysctls: Vec<(String, String)>,
    /// Devices whose offloads are turned off.
    pub devices: Vec<String>,
}

/// The plan's links as our own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// The largest packet.
    pub mtu: usize,
    /// Links whose arrivals are written down and replayed at the end.
    pub journals: Vec<usize>,
    /// Links whose packets are written to a file.
    pub captures: Vec<usize>,
}

/// A program of the guest's root and its standard input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Index of the host in whose namespace it runs; none is the namespace of the first process.
    pub host: Option<usize>,
    /// The program's path and arguments.
    pub words: Vec<String>,
    /// Its standard input.
    pub input: String,
    /// Whether it runs before the devices' offloads are turned off.
    pub early: bool,
}

/// An interactive shell.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shell {
    /// Index of the host in which it runs.
    pub host: usize,
    /// Lines of the terminal.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// A program of the user's own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// What it is called in messages.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// The program's path and arguments.
    pub words: Vec<String>,
    /// Its folder, of the machine outside and to be read only.
    pub folder: String,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// When it is started, after the run's start; none is before the run.
    pub start: Option<Nanos>,
    /// When it is told to stop, after the run's start.
    pub stop: Nanos,
    /// A port on which it listens before the run begins.
    pub port: Option<u16>,
}

/// A queue discipline.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Index of its host.
    pub host: usize,
    /// Its device, where packets leave it.
    pub device: String,
    /// The device where packets come to it, if they are to be seen.
    pub arrivals: Option<String>,
    /// Its handle, such as 0x100000 for `10:`.
    pub handle: u32,
    /// Index of its link, if its packets are written to a file.
    #[serde(default)]
    pub capture: Option<usize>,
}

/// What a kernel is: written in place of a run's outputs if there is no job.
#[derive(Debug, Serialize)]
pub struct Facts {
    /// As `uname -r` prints it.
    pub release: String,
    /// Loaded congestion controls.
    pub controls: Vec<String>,
    /// Parameters of the module `tcp_cubic`.
    pub cubic: Vec<(String, String)>,
    /// Names below `net/ipv4` that a host may set.
    pub sysctls: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Serialize)]
pub struct Done {
    /// What failed, if anything did.
    pub error: Option<String>,
    /// Nanoseconds of the monotonic clock at the run's start.
    pub start: u64,
    /// The wall clock at the run's start, in nanoseconds.
    pub wall: u64,
}
