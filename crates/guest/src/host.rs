//! The traffic of one host, in a separate process.

use crate::job::{FILE, Job, Shell};
use crate::machine::{Outcome, at, enter_host};
use rustix::termios::Winsize;
use sojourn_endpoint::Endpoint;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Output of a process that is ready.
pub const READY: &str = "ready";

/// Returns the path of the log of host `number`.
pub fn log_of(number: usize) -> String {
    format!("/run/host-{number}")
}

/// Reads the job.
pub fn job() -> Outcome<Job> {
    let text = at(FILE, std::fs::read(FILE))?;
    at(FILE, serde_json::from_slice(&text))
}

/// Runs the endpoints of a host, whose number is the only argument. Reports readiness, reads the
/// time of the run's start, and ends with the run.
pub fn run(words: &[OsString]) -> Outcome<()> {
    let word = words.first().and_then(|word| word.to_str()).ok_or("which host?")?;
    let number: usize = at("host", word.parse())?;
    enter_host(number)?;
    let job = job()?;
    let node = job.hosts.get(number).and_then(|host| host.node).ok_or("no such host")?;
    let mut endpoint = at("sockets", Endpoint::new(&job.plan, job.seed, node, true))?;
    println!("{READY}");
    at("output", io::stdout().flush())?;
    let mut line = String::new();
    at("input", io::stdin().read_line(&mut line))?;
    let start: u64 = at("start", line.trim().parse())?;
    let path = log_of(number);
    let log = at(&path, File::create(&path))?;
    // No further input follows; standard input closes when the first process ends.
    at("traffic", endpoint.run(start, log, io::stdin()))
}

/// Executes the job's shell at the console.
pub fn shell() -> Outcome<()> {
    let job = job()?;
    let Shell { host: number, rows, columns } = job.shell.ok_or("the job has no shell")?;
    enter_host(number)?;
    let node = job.hosts.get(number).and_then(|host| host.node).and_then(|n| job.plan.nodes.get(n));
    let name = node.ok_or("no such host")?.name.clone();
    // The first terminal of a session becomes its controlling terminal: keys such as Ctrl-C reach
    // its programs.
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

/// Console as a terminal that can control a session.
const CONSOLE: &str = "/dev/tty0";
