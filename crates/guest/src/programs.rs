//! The user's programs: each runs in its own session and mount namespace.
//!
//! For each program, one thread waits for its end and two threads read its output. Therefore the
//! time of the end is exact in the guest's time, and a full pipe delays no program. Servers start
//! before the run, and the run begins only when those with a port listen. All other programs start
//! at their time in the run. Each program is stopped at its time with SIGTERM, and with SIGKILL if
//! it still runs after a grace period.

use crate::host::job;
use crate::job::{Job, OUTPUTS, Program};
use crate::machine::{Namespaces, Outcome, at, enter_host, private_mounts};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use sojourn_units::{MILLISECOND, Nanos, SECOND};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of bytes kept from the end of each output stream.
const KEPT: usize = 64 << 10;
/// Longest time from the start of the servers until they listen, in nanoseconds.
const PATIENCE: Nanos = 30 * SECOND;
/// Time from SIGTERM to SIGKILL, in nanoseconds.
const GRACE: Nanos = SECOND;
/// Environment variable with the program's name. The host machine reads it to identify a process
/// that never sleeps.
const NAME: &str = "SOJOURN_PROGRAM";

/// Result of a program: one entry of the list in `programs.json`, which has the order of the job.
/// Times are in nanoseconds since the run's start, and negative before it.
#[derive(Debug, Serialize)]
struct End {
    /// Exit status of the program, or minus the number of the signal that ended it; `None` if it
    /// was not started or did not end in time.
    status: Option<i32>,
    /// Time of the start; `None` if the program was not started.
    started: Option<i64>,
    /// Time of the end; `None` if the program was not started or did not end in time.
    ended: Option<i64>,
    /// Time when SIGTERM was sent; `None` if it was not sent.
    stopped: Option<i64>,
    /// Whether SIGKILL was sent after the grace period.
    killed: bool,
}

/// A program that was started. Times are from the monotonic clock.
struct Running {
    process: Pid,
    started: Nanos,
    ended: Arc<Mutex<Option<(ExitStatus, Nanos)>>>,
    streams: [Arc<Mutex<VecDeque<u8>>>; 2],
    stopped: Option<Nanos>,
    killed: Option<Nanos>,
}

/// All programs of a run, in the order of the job.
pub struct Programs<'a> {
    job: &'a Job,
    now: fn() -> Nanos,
    running: Vec<Option<Running>>,
}

/// Locks a mutex that is shared with a thread. If the thread has panicked, the value is still
/// consistent, so the lock is taken anyway.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Programs<'a> {
    /// Returns the programs of the job before their start. `now` returns the time of the monotonic
    /// clock.
    pub fn new(job: &'a Job, now: fn() -> Nanos) -> Self {
        Self { job, now, running: job.programs.iter().map(|_| None).collect() }
    }

    /// Starts the servers, and waits until each server with a port listens on it. Fails if a server
    /// ends or does not listen in time.
    pub fn serve(&mut self, namespaces: &Namespaces) -> Outcome<()> {
        let servers = |job: &Job| {
            let all = job.programs.iter().enumerate();
            all.filter(|(_, p)| p.start.is_none()).map(|(i, _)| i).collect::<Vec<_>>()
        };
        let servers = servers(self.job);
        for &number in &servers {
            self.start(number)?;
        }
        let last = (self.now)() + PATIENCE;
        for number in servers {
            let program = &self.job.programs[number];
            let Some(port) = program.port else { continue };
            while !namespaces.within(Some(program.host), || listened(port))? {
                let name = &program.name;
                if let Some(status) = self.status(number) {
                    // A pause gives the threads time to read the rest of the server's output.
                    pause(MILLISECOND);
                    let said = self.last_line(number);
                    return Err(format!(
                        "{name}: the program ended before it listened on port {port}: {status}{said}"
                    )
                    .into());
                }
                if (self.now)() > last {
                    let seconds = PATIENCE / SECOND;
                    return Err(format!(
                        "{name}: the program must listen on port {port} within {seconds} s"
                    )
                    .into());
                }
                pause(MILLISECOND);
            }
        }
        Ok(())
    }

    fn status(&self, number: usize) -> Option<ExitStatus> {
        let running = self.running[number].as_ref()?;
        locked(&running.ended).map(|(status, _)| status)
    }

    fn last_line(&self, number: usize) -> String {
        let Some(running) = &self.running[number] else { return String::new() };
        let bytes: Vec<u8> = locked(&running.streams[1]).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        text.trim().lines().last().map_or_else(String::new, |line| format!(": {line}"))
    }

    fn start(&mut self, number: usize) -> Outcome<()> {
        let program = &self.job.programs[number];
        let mut command = Command::new("/init");
        command.arg("program").arg(number.to_string()).stdin(Stdio::null());
        let mut child =
            at(&program.name, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())?;
        let process = Pid::from_child(&child);
        let streams = [
            child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
            child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        ]
        .map(|stream| {
            let kept = Arc::new(Mutex::new(VecDeque::new()));
            if let Some(stream) = stream {
                let to = Arc::clone(&kept);
                std::thread::spawn(move || keep(stream, &to));
            }
            kept
        });
        let ended = Arc::new(Mutex::new(None));
        let (noted, now) = (Arc::clone(&ended), self.now);
        std::thread::spawn(move || {
            if let Ok(status) = child.wait() {
                *locked(&noted) = Some((status, now()));
            }
        });
        let started = now();
        self.running[number] =
            Some(Running { process, started, ended, streams, stopped: None, killed: None });
        Ok(())
    }

    /// Returns the time of the next start, stop or kill of a program; `None` without one. `start`
    /// is the time of the run's start.
    fn due(&self, start: Nanos) -> Option<Nanos> {
        let programs = self.job.programs.iter().zip(&self.running);
        let due = programs.filter_map(|(program, running)| match running {
            None => program.start.map(|at| start + at),
            Some(running) if locked(&running.ended).is_some() => None,
            Some(Running { stopped: None, .. }) => Some(start + program.stop),
            Some(Running { stopped: Some(at), killed: None, .. }) => Some(at + GRACE),
            Some(_) => None,
        });
        due.min()
    }

    /// Until the time `until`, starts and stops the programs that are due, and sleeps in between.
    pub fn wait(&mut self, start: Nanos, until: Nanos, sleep: impl Fn(Nanos)) -> Outcome<()> {
        while let Some(due) = self.due(start).filter(|&due| due <= until) {
            sleep(due);
            self.act(start)?;
        }
        sleep(until);
        Ok(())
    }

    fn act(&mut self, start: Nanos) -> Outcome<()> {
        let now = (self.now)();
        for (number, program) in self.job.programs.iter().enumerate() {
            match &mut self.running[number] {
                None if program.start.is_some_and(|at| start + at <= now) => self.start(number)?,
                Some(running) if locked(&running.ended).is_none() => match running.stopped {
                    None if start + program.stop <= now => {
                        running.stopped = Some(now);
                        signal(running.process, Signal::TERM);
                    }
                    Some(at) if running.killed.is_none() && at + GRACE <= now => {
                        running.killed = Some(now);
                        signal(running.process, Signal::KILL);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits until all programs have ended or were stopped at their time, and writes the results
    /// and the last output of all programs.
    pub fn finish(&mut self, start: Nanos, sleep: impl Fn(Nanos)) -> Outcome<()> {
        if self.job.programs.is_empty() {
            return Ok(());
        }
        while let Some(due) = self.due(start) {
            // The sleep is at most a millisecond, so that the end of a program is noticed early.
            sleep(due.min((self.now)() + MILLISECOND));
            self.act(start)?;
        }
        // Kill the processes that programs have left in their groups, and give these processes
        // time to end.
        for running in self.running.iter().flatten() {
            signal(running.process, Signal::KILL);
        }
        pause(10 * MILLISECOND);
        let mut all = Vec::new();
        for (number, running) in self.running.iter().enumerate() {
            all.push(written(number, running.as_ref(), start)?);
        }
        let path = Path::new(OUTPUTS).join("programs.json");
        at(path.display(), fs::write(&path, at("programs", serde_json::to_vec(&all))?))
    }
}

/// Writes the last bytes of a program's output streams to files, and returns the program's result.
fn written(number: usize, running: Option<&Running>, start: Nanos) -> Outcome<End> {
    let Some(running) = running else {
        return Ok(End { status: None, started: None, ended: None, stopped: None, killed: false });
    };
    for (suffix, stream) in ["out", "err"].iter().zip(&running.streams) {
        let bytes: Vec<u8> = locked(stream).iter().copied().collect();
        if !bytes.is_empty() {
            let path = Path::new(OUTPUTS).join(format!("program-{number}.{suffix}"));
            at(path.display(), fs::write(&path, bytes))?;
        }
    }
    let since = |at: Nanos| at as i64 - start as i64;
    let end = *locked(&running.ended);
    let code = |status: ExitStatus| status.code().or_else(|| status.signal().map(|n| -n));
    Ok(End {
        status: end.and_then(|(status, _)| code(status)),
        started: Some(since(running.started)),
        ended: end.map(|(_, at)| since(at)),
        stopped: running.stopped.map(since),
        killed: running.killed.is_some(),
    })
}

/// Sends a signal to all processes in the group of a program. An error is ignored, since it means
/// that all of them have ended.
fn signal(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

fn pause(nanos: Nanos) {
    std::thread::sleep(Duration::from_nanos(nanos));
}

/// Reads a stream until its end, and keeps its last [`KEPT`] bytes.
fn keep(mut stream: impl Read, to: &Mutex<VecDeque<u8>>) {
    let mut buffer = vec![0; KEPT];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let mut kept = locked(to);
        kept.extend(&buffer[..count]);
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }
}

/// Returns whether a socket in the present network namespace listens on the TCP port `port`, or is
/// bound to the UDP port `port`.
fn listened(port: u16) -> Outcome<bool> {
    // States of the kernel in hexadecimal (`include/net/tcp_states.h`): TCP_LISTEN, and TCP_CLOSE
    // for a bound UDP socket.
    for (name, state) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
        let path = format!("/proc/thread-self/net/{name}");
        if !Path::new(&path).exists() {
            continue; // The kernel has no IPv6.
        }
        let text = at(&path, fs::read_to_string(&path))?;
        let wanted = format!(":{port:04X}");
        let found = text.lines().skip(1).any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let (local, of) = (fields.next(), fields.nth(1));
            of == Some(state) && local.is_some_and(|address| address.ends_with(&wanted))
        });
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Executes a program of the job; the only argument is the program's number.
pub fn run(words: &[OsString]) -> Outcome<()> {
    let word = words
        .first()
        .and_then(|word| word.to_str())
        .ok_or("the number of the program is missing")?;
    let number: usize = at("program", word.parse())?;
    let job = job()?;
    let program = job.programs.get(number).ok_or("the job has no program with this number")?;
    at("program", rustix::process::setsid())?;
    enter_host(program.host)?;
    private_mounts(&program.folder, &job.folders)?;
    let (first, rest) = program.words.split_first().ok_or("the program has no command")?;
    let mut command = command(program, first, rest);
    Err(format!("{first}: {}", command.exec()).into())
}

fn command(program: &Program, first: &str, rest: &[String]) -> Command {
    let mut command = Command::new(first);
    command.args(rest).current_dir(&program.folder).env_clear();
    command.envs(program.environment.iter().map(|(name, value)| (name, value)));
    command.env(NAME, &program.name);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept() {
        let text: Vec<u8> = (0..KEPT + 1000).map(|i| (i / 1000) as u8).collect();
        let kept = Mutex::default();
        keep(&text[..], &kept);
        assert_eq!(locked(&kept).iter().copied().collect::<Vec<_>>(), text[1000..]);
    }
}
