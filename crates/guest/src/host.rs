//! The process that plays the plan's traffic of one host, and the process of the job's shell.

use crate::job::{FILE, Job, Shell};
use crate::machine::{Outcome, at, enter_host};
use rustix::termios::Winsize;
use sojourn_endpoint::Endpoint;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Line that a process prints when it is ready for the run.
pub const READY: &str = "ready";

/// Returns the path of the log of host `number`.
pub fn log_of(number: usize) -> String {
    format!("/run/host-{number}")
}

/// Reads the job from its file.
pub fn job() -> Outcome<Job> {
    let text = at(FILE, std::fs::read(FILE))?;
    at(FILE, serde_json::from_slice(&text))
}

/// Runs the endpoints of the host whose number is the only argument. Prints [`READY`], reads the
/// time of the run's start from standard input, and returns at the end of the run.
pub fn run(words: &[OsString]) -> Outcome<()> {
    let word =
        words.first().and_then(|word| word.to_str()).ok_or("the number of the host is missing")?;
    let number: usize = at("host", word.parse())?;
    enter_host(number)?;
    let job = job()?;
    let node = job
        .hosts
        .get(number)
        .and_then(|host| host.node)
        .ok_or("the job has no host with this number, or the host is not a node")?;
    let mut endpoint = at("sockets", Endpoint::new(&job.plan, job.seed, node, true))?;
    println!("{READY}");
    at("output", io::stdout().flush())?;
    let mut line = String::new();
    at("input", io::stdin().read_line(&mut line))?;
    let start: u64 = at("start", line.trim().parse())?;
    let path = log_of(number);
    let log = at(&path, File::create(&path))?;
    // Standard input has no further lines. It closes when the guest's first process ends; then the
    // endpoints stop.
    at("traffic", endpoint.run(start, log, io::stdin()))
}

/// Replaces this process with the job's shell on the console.
pub fn shell() -> Outcome<()> {
    let job = job()?;
    let Shell { host: number, rows, columns } = job.shell.ok_or("the job has no shell")?;
    enter_host(number)?;
    let node = job.hosts.get(number).and_then(|host| host.node).and_then(|n| job.plan.nodes.get(n));
    let name =
        node.ok_or("the job has no host with this number, or the host is not a node")?.name.clone();
    // After `setsid`, the first terminal that is opened becomes the controlling terminal of the
    // session. Therefore keys such as Ctrl-C reach the programs of the shell.
    at("shell", rustix::process::setsid())?;
    let terminal = at(CONSOLE, File::options().read(true).write(true).open(CONSOLE))?;
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    at(CONSOLE, rustix::termios::tcsetwinsize(&terminal, size))?;
    let mut command = Command::new("/bin/sh");
    let handed = || at(CONSOLE, terminal.try_clone());
    command.stdin(handed()?).stdout(handed()?).stderr(handed()?);
    command.env("PATH", "/programs:/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/tmp");
    command.env("PS1", format!("{name}# "));
    Err(format!("/bin/sh: {}", command.exec()).into())
}

/// Console of the guest, as a terminal that can control a session.
const CONSOLE: &str = "/dev/tty0";
