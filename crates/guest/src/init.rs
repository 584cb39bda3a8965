//! The guest's first process, which sets up the hosts and controls the run.

use crate::captures::Capture;
use crate::host::{READY, job, log_of};
use crate::job::{Done, FILE, Facts, Job, OUTPUTS};
use crate::machine::{
    Namespaces, Outcome, at, check_memory, execute, give_memory, mount_all, plain_packets, show,
    sysctl,
};
use crate::packets::Journal;
use crate::programs::Programs;
use crate::queues::Sampler;
use crate::wire;
use rustix::system::{RebootCommand, reboot};
use rustix::time::{ClockId, Timespec, clock_gettime};
use sojourn_units::{MILLISECOND, SECOND};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Time from the readiness of all hosts to the start of the run, in nanoseconds. The kernel may
/// take a second to notice that a device is connected, and drops all packets of the device until
/// then.
const LEAD: u64 = 2 * SECOND;
/// Size in bytes of the buffer of a journal. A large buffer is useful since each write to the
/// outputs is a write on the host machine.
const WRITTEN: usize = 1 << 20;
/// Interval at which the guest reports its time to the host machine, in nanoseconds.
const PROGRESS: u64 = 100 * MILLISECOND;
/// Longest time after the run's end for hosts to write their logs, in nanoseconds.
const GRACE: u64 = SECOND;

/// Runs the guest and powers it off. With a job it plays the run or opens the shell; without one it
/// writes facts about the kernel.
pub fn main() -> ! {
    let outcome =
        mount_all().and_then(|()| if Path::new(FILE).exists() { play() } else { facts() });
    if let Err(error) = outcome {
        let done = Done { error: Some(error.to_string()), start: 0, wall: 0 };
        if write_json("done.json", &done).is_err() {
            eprintln!("{error}");
        }
    }
    rustix::fs::sync();
    // The call returns only if it fails. Then the end of this first process stops the kernel.
    let _ = reboot(RebootCommand::PowerOff);
    std::process::exit(1)
}

fn write_json(name: &str, what: &impl serde::Serialize) -> Outcome<()> {
    let path = Path::new(OUTPUTS).join(name);
    let bytes = at(name, serde_json::to_vec(what))?;
    at(path.display(), fs::write(&path, bytes))
}

fn nanos(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    tv_sec as u64 * SECOND + tv_nsec as u64
}

fn sleep_until(at: u64) {
    let now = nanos(ClockId::Monotonic);
    if at > now {
        std::thread::sleep(std::time::Duration::from_nanos(at - now));
    }
}

/// Writes facts about the kernel to `facts.json`.
fn facts() -> Outcome<()> {
    let read = |path: &str| at(path, fs::read_to_string(path));
    let names = |path: &str| -> Outcome<Vec<String>> {
        let mut found = Vec::new();
        for entry in at(path, fs::read_dir(path))? {
            found.push(at(path, entry)?.file_name().to_string_lossy().into_owned());
        }
        found.sort();
        Ok(found)
    };
    let module = "/sys/module/tcp_cubic/parameters";
    let mut cubic = Vec::new();
    if Path::new(module).exists() {
        for name in names(module)? {
            let value = read(&format!("{module}/{name}"))?.trim().to_owned();
            cubic.push((name, value));
        }
    }
    let controls = read("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    let mut controls: Vec<_> = controls.split_whitespace().map(str::to_owned).collect();
    controls.sort();
    let facts = Facts {
        release: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        controls,
        cubic,
        sysctls: names("/proc/sys/net/ipv4")?,
    };
    write_json("facts.json", &facts)
}

/// File of the queues' samples during the run.
const SAMPLES: &str = "/run/queues";

/// A process that takes part in the run: the traffic of a host, or the wire.
struct Player {
    name: String,
    process: Child,
    input: ChildStdin,
}

fn play() -> Outcome<()> {
    let job = job()?;
    job.folders.iter().try_for_each(|folder| show(folder))?;
    give_memory()?;
    let namespaces = Namespaces::new(job.hosts.len())?;
    // The wire creates the devices of the hosts, so it must start before the devices are set up.
    let mut running = vec!["the guest's first process".to_owned()];
    write_running(&running)?;
    let mut wire = job.wire.as_ref().map(|_| player("wire", &["wire"])).transpose()?;
    running.extend(wire.as_ref().map(|_| "the wire".to_owned()));
    set_up(&job, &namespaces, &running)?;
    if job.shell.is_some() {
        return shell(wire);
    }
    let (samplers, journals) = queues(&job, &namespaces)?;
    let captures = captures(&job, &namespaces)?;
    let mut players = Vec::new();
    for (number, host) in job.hosts.iter().enumerate() {
        if host.plays {
            let name = format!("host {number}");
            players.push(player(&name, &["host", &number.to_string()])?);
            running.push(format!("the traffic of {}", name_of(&job, number)));
            write_running(&running)?;
        }
    }
    let hosts = tapped(&job, &namespaces)?;
    let mut programs = Programs::new(&job, || nanos(ClockId::Monotonic));
    programs.serve(&namespaces)?;
    let now = nanos(ClockId::Monotonic);
    let start = now + LEAD;
    let wall = nanos(ClockId::Realtime) + LEAD;
    for player in players.iter_mut().chain(&mut wire) {
        at(&player.name, writeln!(player.input, "{start}"))?;
    }
    let mut recording = Recording::new(wall, samplers, journals, hosts, captures)?;
    sleep_until(start);
    let before = statistics(&namespaces, &job)?;
    write_text("tc-start.json", &before)?;
    let warm = start + job.plan.warmup;
    let end = start + job.plan.duration;
    let mut warmed = job.plan.warmup == 0;
    let mut next = start;
    // Time of the last report of progress to the host machine, on the monotonic clock.
    let mut reported = start;
    loop {
        programs.wait(start, next, sleep_until)?;
        recording.write(next - start)?;
        if !warmed && next >= warm {
            warmed = true;
            write_text("tc-warm.json", &statistics(&namespaces, &job)?)?;
        }
        if next >= reported + PROGRESS {
            reported = next;
            write_text("now", (next - start).to_string().as_bytes())?;
        }
        if next >= end {
            break;
        }
        next = (next + job.interval).min(end);
    }
    write_text("tc-end.json", &statistics(&namespaces, &job)?)?;
    for number in 0..job.hosts.len() {
        at(name_of(&job, number), namespaces.within(Some(number), check_memory))?;
    }
    recording.finish()?;
    programs.finish(start, sleep_until)?;
    for player in &mut players {
        finish(&player.name, &mut player.process, end + GRACE)?;
    }
    if let Some(Player { name, mut process, input }) = wire {
        // The devices of the wire disappear when the wire ends, so their counters are read first.
        write_json("dropped.json", &dropped(&job, &namespaces)?)?;
        drop(input);
        finish(&name, &mut process, nanos(ClockId::Monotonic) + GRACE)?;
        at("wire", fs::copy(wire::OUTCOME, Path::new(OUTPUTS).join("wire")))?;
    }
    for (number, _) in job.hosts.iter().enumerate().filter(|(_, host)| host.plays) {
        let name = format!("host-{number}");
        at(&name, fs::copy(log_of(number), Path::new(OUTPUTS).join(&name)))?;
    }
    at(SAMPLES, fs::copy(SAMPLES, Path::new(OUTPUTS).join("queues")))?;
    write_json("done.json", &Done { error: None, start, wall })
}

/// The records of queues and hosts in a run, and the files that they are written to.
struct Recording {
    samplers: Vec<Sampler>,
    journals: Vec<Journal>,
    hosts: Vec<Journal>,
    captures: Vec<Capture>,
    samples: BufWriter<File>,
    packets: BufWriter<File>,
    ends: BufWriter<File>,
}

impl Recording {
    /// Begins the records of a run that starts at the wall-clock time `wall`.
    fn new(
        wall: u64,
        samplers: Vec<Sampler>,
        mut journals: Vec<Journal>,
        mut hosts: Vec<Journal>,
        mut captures: Vec<Capture>,
    ) -> Outcome<Self> {
        for journal in journals.iter_mut().chain(&mut hosts) {
            journal.begin(wall);
        }
        for capture in &mut captures {
            capture.begin(wall);
        }
        let (packets, ends) = (output("packets")?, output("ends")?);
        let samples = BufWriter::new(at(SAMPLES, File::create(SAMPLES))?);
        Ok(Self { samplers, journals, hosts, captures, samples, packets, ends })
    }

    /// Writes the samples and the packets up to the time `now` since the run's start.
    fn write(&mut self, now: u64) -> Outcome<()> {
        self.samplers.iter_mut().try_for_each(|s| s.sample(now, &mut self.samples))?;
        self.journals.iter_mut().try_for_each(|journal| journal.write(&mut self.packets))?;
        self.hosts.iter_mut().try_for_each(|host| host.write(&mut self.ends))?;
        self.captures.iter_mut().try_for_each(Capture::write)
    }

    /// Completes the files.
    fn finish(mut self) -> Outcome<()> {
        at(SAMPLES, self.samples.flush())?;
        at("packets", self.packets.flush())?;
        at("ends", self.ends.flush())?;
        self.journals.iter().chain(&self.hosts).try_for_each(Journal::check)?;
        if !self.captures.is_empty() {
            let captured: Outcome<Vec<_>> =
                self.captures.into_iter().map(Capture::finish).collect();
            write_json("captures.json", &captured?)?;
        }
        Ok(())
    }
}

/// Returns the samplers of the queues, and the journals of the packets at the queues: one sampler
/// and one journal per host with queues.
fn queues(job: &Job, namespaces: &Namespaces) -> Outcome<(Vec<Sampler>, Vec<Journal>)> {
    let mut by_host: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for (number, queue) in job.queues.iter().enumerate() {
        by_host.entry(queue.host).or_default().push((number, queue));
    }
    let mut samplers = Vec::new();
    let mut journals = Vec::new();
    for (host, queues) in &by_host {
        samplers.push(namespaces.within(Some(*host), || Sampler::new(queues))?);
        journals.push(namespaces.within(Some(*host), || Journal::new(queues))?);
    }
    Ok((samplers, journals))
}

/// Returns the captures of the queues that the plan requests, in the order of the plan's links.
fn captures(job: &Job, namespaces: &Namespaces) -> Outcome<Vec<Capture>> {
    let mut queues: Vec<_> = job.queues.iter().filter(|queue| queue.capture.is_some()).collect();
    queues.sort_by_key(|queue| queue.capture);
    let mut captures = Vec::new();
    for queue in queues {
        captures.extend(namespaces.within(Some(queue.host), || Capture::new(&job.plan, queue))?);
    }
    Ok(captures)
}

/// Returns the journals of the packets that hosts send and receive, one for each host of `taps`.
fn tapped(job: &Job, namespaces: &Namespaces) -> Outcome<Vec<Journal>> {
    let journal = |&host: &usize| {
        let described = &job.hosts[host];
        let node = described.node.ok_or(
            "the packets of a host can be recorded only if the host is a node of the plan",
        )?;
        namespaces.within(Some(host), || Journal::of_host(node, &described.devices))
    };
    job.taps.iter().map(journal).collect()
}

/// Creates a file in the folder of the outputs, with a buffer.
fn output(name: &str) -> Outcome<BufWriter<File>> {
    let path = Path::new(OUTPUTS).join(name);
    Ok(BufWriter::with_capacity(WRITTEN, at(path.display(), File::create(&path))?))
}

fn write_text(name: &str, text: &[u8]) -> Outcome<()> {
    at(name, fs::write(Path::new(OUTPUTS).join(name), text))
}

/// Starts the job's shell, and waits until it ends.
fn shell(mut wire: Option<Player>) -> Outcome<()> {
    let start = nanos(ClockId::Monotonic);
    if let Some(wire) = &mut wire {
        at(&wire.name, writeln!(wire.input, "{start}"))?;
    }
    let mut command = Command::new("/init");
    command.arg("shell").stderr(Stdio::piped());
    let process = at("shell", command.spawn())?;
    // The shell itself uses the console. Output on standard error is therefore an error that
    // occurred before the shell started.
    let output = at("shell", process.wait_with_output())?;
    if !output.stderr.is_empty() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into());
    }
    write_json("done.json", &Done { error: None, start, wall: 0 })
}

/// Writes the names of the running processes, in the order of their starts. If the guest's time
/// stops, the host machine uses the list to identify the process that never sleeps.
fn write_running(running: &[String]) -> Outcome<()> {
    write_text("running", running.join("\n").as_bytes())
}

/// Returns the name of host `number`: that of its node, or `hNUMBER` without a node.
fn name_of(job: &Job, number: usize) -> String {
    let node = job.hosts[number].node.and_then(|node| job.plan.nodes.get(node));
    node.map_or_else(|| format!("h{number}"), |node| node.name.clone())
}

/// Sets sysctls, and executes the job's commands, which set up links, addresses, routes and queue
/// disciplines. `running` contains the names of the running processes.
fn set_up(job: &Job, namespaces: &Namespaces, running: &[String]) -> Outcome<()> {
    for (number, host) in job.hosts.iter().enumerate() {
        namespaces.within(Some(number), || {
            host.sysctls.iter().try_for_each(|(path, value)| sysctl(path, value))
        })?;
    }
    for early in [true, false] {
        for command in job.commands.iter().filter(|command| command.early == early) {
            let place = command.host.map(|host| format!(" in {}", name_of(job, host)));
            let name = format!("`{}`{}", command.words.join(" "), place.unwrap_or_default());
            write_running(&[running, &[name]].concat())?;
            namespaces.within(command.host, || execute(&command.words, &command.input))?;
        }
        if early {
            for (number, host) in job.hosts.iter().enumerate() {
                namespaces.within(Some(number), || {
                    host.devices
                        .iter()
                        .try_for_each(|device| plain_packets(device, host.splits.contains(device)))
                })?;
            }
        }
    }
    Ok(())
}

/// Returns the statistics of all queue disciplines of the hosts with queues, as a JSON list with
/// one list of `tc` per host.
fn statistics(namespaces: &Namespaces, job: &Job) -> Outcome<Vec<u8>> {
    let mut text = b"[".to_vec();
    let words: Vec<_> =
        ["/programs/tc", "-s", "-j", "qdisc", "show"].iter().map(|&word| word.to_owned()).collect();
    let mut hosts: Vec<_> = job.queues.iter().map(|queue| queue.host).collect();
    hosts.dedup();
    for (i, host) in hosts.into_iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        text.extend(namespaces.within(Some(host), || execute(&words, ""))?);
    }
    text.push(b']');
    Ok(text)
}

/// Returns for each host the number of packets that its device dropped because the wire did not
/// read them in time.
fn dropped(job: &Job, namespaces: &Namespaces) -> Outcome<Vec<u64>> {
    let file = "/proc/self/net/dev";
    let count = || {
        let text = at(file, fs::read_to_string(file))?;
        let line = text.lines().find_map(|line| line.trim().strip_prefix(wire::DEVICE));
        let words = line.ok_or("the host has no device")?.trim_start_matches(':');
        // Position of the transmit drop counter: the device transmits to the wire.
        let word = words
            .split_whitespace()
            .nth(11)
            .ok_or("the device has no counter of dropped packets")?;
        at(file, word.parse())
    };
    (0..job.hosts.len()).map(|number| namespaces.within(Some(number), count)).collect()
}

fn player(name: &str, words: &[&str]) -> Outcome<Player> {
    let mut process = at(
        name,
        Command::new("/init")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn(),
    )?;
    let input = process.stdin.take().ok_or("the process has no standard input")?;
    let output = process.stdout.take().ok_or("the process has no standard output")?;
    let mut line = String::new();
    at(name, BufReader::new(output).read_line(&mut line))?;
    let mut player = Player { name: name.to_owned(), process, input };
    if line.trim() == READY { Ok(player) } else { Err(failure(name, &mut player.process)) }
}

/// Waits until a process has ended. Fails if it ended with an error or has not ended by `deadline`,
/// a time of the monotonic clock in nanoseconds.
fn finish(name: &str, process: &mut Child, deadline: u64) -> Outcome<()> {
    loop {
        match at(name, process.try_wait())? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => return Err(failure(name, process)),
            None if nanos(ClockId::Monotonic) > deadline => {
                return Err(format!("{name}: the process did not end in time").into());
            }
            None => std::thread::sleep(std::time::Duration::from_nanos(MILLISECOND)),
        }
    }
}

fn failure(name: &str, process: &mut Child) -> Box<dyn std::error::Error> {
    let mut said = String::new();
    if let Some(errors) = &mut process.stderr
        && let Err(error) = errors.read_to_string(&mut said)
    {
        return format!("{name}: {error}").into();
    }
    format!("{name}: {}", said.trim()).into()
}
