//! The job of a guest, which `sojourn.linux` writes and the guest's first process reads, and the
//! results that the guest writes.

use serde::{Deserialize, Serialize};
use sojourn_plan::Plan;
use sojourn_units::Nanos;

/// Path of the file with the job, in the guest.
pub const FILE: &str = "/job.json";
/// Path of the folder with the outputs, in the guest.
pub const OUTPUTS: &str = "/out";

/// The job of a guest: one run, or one shell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Seed of the random draws of the plan's traffic. The draws of the kernel depend on
    /// `SOJOURN_SEED` instead.
    pub seed: u64,
    /// Plan of the run. Its flows include the probes.
    pub plan: Plan,
    /// Network namespaces; all indices of hosts refer to this list.
    pub hosts: Vec<Host>,
    /// Commands that set up links, addresses, routes and queue disciplines, in the order of their
    /// execution.
    pub commands: Vec<Command>,
    /// Settings of this project's wire, if it emulates the links; `None` if the kernel emulates
    /// them and the commands create them.
    pub wire: Option<Wire>,
    /// Shell that is opened at the console instead of a run of the plan's traffic; `None` for a
    /// run.
    pub shell: Option<Shell>,
    /// Programs of the user that run in hosts.
    #[serde(default)]
    pub programs: Vec<Program>,
    /// Indices of the hosts whose sent and received packets are recorded.
    #[serde(default)]
    pub taps: Vec<usize>,
    /// Queue disciplines that are sampled during the run.
    pub queues: Vec<Queue>,
    /// Time between two samples of the queues, in nanoseconds.
    pub interval: Nanos,
    /// Folders of the host machine that are mounted in the guest at the same path, read-only.
    pub folders: Vec<String>,
}

/// A network namespace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Index of the host's node in the plan; `None` for a namespace that contains only queues.
    pub node: Option<usize>,
    /// Whether the host sends or receives traffic of the plan.
    pub plays: bool,
    /// Sysctls that are set in the host: paths below `/proc/sys`, and values.
    pub sysctls: Vec<(String, String)>,
    /// Names of the devices whose offloads are disabled.
    pub devices: Vec<String>,
    /// Those of them that take super-packets from their queue and send the frames, which share the
    /// memory of the super-packet.
    #[serde(default)]
    pub splits: Vec<String>,
}

/// Settings of this project's wire, which emulates the plan's links.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// Largest packet in bytes, with its IP header.
    pub mtu: usize,
    /// Indices of the links whose arrivals are recorded; after the run the arrivals are replayed in
    /// a simulation of the link.
    pub journals: Vec<usize>,
    /// Indices of the links whose packets are written to a capture file.
    pub captures: Vec<usize>,
}

/// A program of the guest's root file system that is executed once before the run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Index of the host in whose network namespace the program runs; `None` for the namespace of
    /// the first process.
    pub host: Option<usize>,
    /// Path and arguments of the program.
    pub words: Vec<String>,
    /// Text that the program reads from standard input.
    pub input: String,
    /// Whether the program runs before the offloads of the devices are disabled; otherwise it runs
    /// afterwards.
    pub early: bool,
}

/// An interactive shell at the console.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shell {
    /// Index of the host in which the shell runs.
    pub host: usize,
    /// Number of lines of the terminal.
    pub rows: u16,
    /// Number of characters per line of the terminal.
    pub columns: u16,
}

/// A program of the user that runs in a host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name of the program in messages.
    pub name: String,
    /// Index of the host in which the program runs.
    pub host: usize,
    /// Path and arguments of the program.
    pub words: Vec<String>,
    /// Working folder of the program: a folder of the host machine, mounted read-only in the guest.
    pub folder: String,
    /// Environment variables of the program: names and values. The program gets no others except
    /// `SOJOURN_PROGRAM`.
    pub environment: Vec<(String, String)>,
    /// Time of the start in nanoseconds since the run's start; `None` for a server that starts
    /// before the run.
    pub start: Option<Nanos>,
    /// Time of the stop in nanoseconds since the run's start.
    pub stop: Nanos,
    /// TCP or UDP port on which the program must listen before the run begins; `None` if the run
    /// does not wait for a port.
    pub port: Option<u16>,
}

/// A queue discipline of the kernel that is sampled.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Index of the host that contains the queue.
    pub host: usize,
    /// Device at which packets leave the queue, and to which the queue discipline belongs.
    pub device: String,
    /// Device at which the packets of the queue arrive; `None` if the packets are not recorded.
    pub arrivals: Option<String>,
    /// Handle of the queue discipline as a number, such as 0x100000 for `10:`.
    pub handle: u32,
    /// Index of the queue's link in the plan if its packets are written to a capture file,
    /// otherwise `None`.
    #[serde(default)]
    pub capture: Option<usize>,
}

/// Facts about a kernel, which the guest writes if there is no job.
#[derive(Debug, Serialize)]
pub struct Facts {
    /// Release of the kernel, as printed by `uname -r`.
    pub release: String,
    /// Names of the available TCP congestion controls.
    pub controls: Vec<String>,
    /// Parameters of the kernel module `tcp_cubic`: names and values.
    pub cubic: Vec<(String, String)>,
    /// Names of the sysctls below `net/ipv4` that exist in this kernel.
    pub sysctls: Vec<String>,
}

/// Result of a run or a shell.
#[derive(Debug, Serialize)]
pub struct Done {
    /// Text of the error, if the run failed, otherwise `None`.
    pub error: Option<String>,
    /// Time of the run's start on the guest's monotonic clock, in nanoseconds; 0 after an error.
    pub start: u64,
    /// Time of the run's start on the guest's wall clock, in nanoseconds; 0 after an error or for a
    /// shell.
    pub wall: u64,
}
