//! A tuner that runs: a thread that looks every few milliseconds, and what it tells.

use crate::core::Core;
use crate::drops::Split;
use crate::need::Need;
use crate::refusal::Refusal;
use crate::restore::{self, Outcome};
use crate::settings::Settings;
use crate::target::Who;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use sojourn_units::declare::Choices;
use sojourn_units::{Bytes, MILLISECOND, Nanos, SECOND};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A socket, for views. Sizes are bytes as the kernel counts.
#[derive(Clone, Debug, Serialize)]
pub struct SocketState {
    /// Inode.
    pub inode: u64,
    /// Number that no other socket of this boot ever has.
    pub cookie: Option<u64>,
    /// Address and port it is bound to.
    pub local: SocketAddr,
    /// A process that has it open, and its name.
    pub pid: Option<u32>,
    /// Name of that process.
    pub process: String,
    /// Unit of systemd that the process runs in; empty if none.
    pub unit: String,
    /// First digits of the identifier of the container that it runs in; empty if none.
    pub container: String,
    /// What it holds.
    pub occupied: Bytes,
    /// Most that it held.
    pub peak_occupied: Bytes,
    /// What it may hold, if known.
    pub size: Option<Bytes>,
    /// Largest size that it had.
    pub peak_size: Bytes,
    /// What its bursts needed, as far as can be told.
    pub need: Need,
    /// What it had before, if it has been changed.
    pub before: Option<Bytes>,
    /// What it would be given.
    pub wanted: Bytes,
    /// Why: a policy's reason, or `budget`.
    pub reason: &'static str,
    /// Packets dropped since it is followed, by reason.
    pub drops: Split,
    /// How often it was changed.
    pub changes: u64,
    /// Why it is watched only.
    pub refusal: Option<Refusal>,
    /// Largest occupancy and drops in each of the last quarters of a second.
    pub recent: Vec<(Bytes, u64)>,
}

/// What a tuner knows at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Seconds since it began.
    pub seconds: f64,
    /// The sockets that are followed.
    pub sockets: Vec<SocketState>,
    /// Processes that are followed.
    pub processes: usize,
    /// Bytes that all sockets together may be sized for.
    pub budget: Bytes,
    /// What bounds the budget: `given`, `cgroup`, `udp_mem` or `available`.
    pub budget_bound: &'static str,
    /// Share of time waited for memory; `None` if the kernel does not tell.
    pub pressure: Option<f64>,
    /// Memory is short: sizes go down.
    pub short: bool,
    /// Most that all sockets together held and might hold.
    pub peak_occupied: Bytes,
    /// Largest sum of sizes.
    pub peak_size: Bytes,
    /// Packets dropped by CPUs' backlogs since it began, before any socket.
    pub softnet_drops: u64,
    /// Packets dropped by devices since it began.
    pub device_drops: u64,
    /// CPU seconds that the tuner has taken.
    pub cpu: f64,
    /// Looks so far, and how many began late by more than the interval.
    pub looks: u64,
    /// Looks that began late by more than the interval.
    pub late: u64,
    /// What is missing.
    pub notes: Vec<Refusal>,
    /// Sockets that there was no room for.
    pub left_out: usize,
}

#[derive(Debug)]
struct Shared {
    core: Mutex<Core>,
    stop: AtomicBool,
    done: AtomicBool,
    start: Instant,
    cpu: AtomicU64,
    looks: AtomicU64,
    late: AtomicU64,
}

impl Shared {
    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, interval: Nanos) {
        let mut next = Instant::now();
        let step = Duration::from_nanos(interval);
        while !self.stop.load(Ordering::Acquire) {
            let over = {
                let mut core = self.core();
                // Nothing of ours happens at 0.
                core.step(self.start.elapsed().as_nanos() as Nanos + SECOND);
                core.over
            };
            let cpu = clock_gettime(ClockId::ThreadCPUTime);
            self.cpu.store(cpu.tv_sec as u64 * SECOND + cpu.tv_nsec as u64, Ordering::Relaxed);
            self.looks.fetch_add(1, Ordering::Relaxed);
            if over {
                break;
            }
            next += step;
            let now = Instant::now();
            if now > next + step {
                self.late.fetch_add(1, Ordering::Relaxed);
                next = now;
            }
            std::thread::park_timeout(next.saturating_duration_since(now));
        }
        self.done.store(true, Ordering::Release);
    }
}

/// A tuner at work. It puts everything back when it is stopped or dropped.
#[derive(Debug)]
pub struct Tuner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    outcomes: Vec<Outcome>,
    /// What tuners before us had left changed, and what became of it.
    pub recovered: Vec<Outcome>,
}

impl Tuner {
    /// Begins. What a tuner that was killed has left behind is put back first.
    ///
    /// # Errors
    /// If the target does not exist, or the journal cannot be had.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let recovered =
            if settings.dry_run { Vec::new() } else { restore::restore(&settings.state)? };
        let interval = settings.interval.max(MILLISECOND);
        let mut core = Core::new(settings)?;
        let start = Instant::now();
        // So that there is something to see, and to complain of, at once.
        core.step(SECOND);
        let shared = Arc::new(Shared {
            core: Mutex::new(core),
            stop: AtomicBool::new(false),
            done: AtomicBool::new(false),
            start,
            cpu: AtomicU64::new(0),
            looks: AtomicU64::new(0),
            late: AtomicU64::new(0),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("rcvbuf".into())
            .spawn(move || theirs.run(interval))?;
        Ok(Self { shared, thread: Some(thread), outcomes: Vec::new(), recovered })
    }

    /// Whether it has ended by itself, since the process it follows has.
    pub fn is_over(&self) -> bool {
        self.shared.done.load(Ordering::Acquire)
    }

    /// What it knows.
    pub fn snapshot(&self) -> Snapshot {
        let core = self.shared.core();
        let nanos = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let before = core.spaces.values().map(crate::space::Space::dropped_before);
        let (softnet, device) = before.fold((0, 0), |sum, one| (one.0.max(sum.0), sum.1 + one.1));
        let mut notes = core.notes.clone();
        match core.settings.target.who {
            // Who looks for a port meets many whom he may not look into, and who are no matter of his.
            Who::Anybody => {}
            Who::Everybody => {
                if let Some(one) = core.holders.refused.values().next() {
                    let text = format!(
                        "{} processes may not be looked into, so sockets of theirs have no process, unit \
                         and container; for one, {one}",
                        core.holders.refused.len()
                    );
                    notes.push(Refusal::new(one.missing, text));
                }
            }
            _ => notes.extend(core.holders.refused.values().take(4).cloned()),
        }
        notes.extend(core.spaces.values().filter_map(|space| space.refusal.clone()));
        Snapshot {
            seconds: self.shared.start.elapsed().as_secs_f64(),
            sockets: core.sockets.values().map(|(_, socket)| state(&core, socket)).collect(),
            processes: core.holders.processes().count(),
            budget: core.room.budget,
            budget_bound: core.room.bound,
            pressure: core.room.pressure,
            short: core.room.short,
            peak_occupied: core.peaks.0,
            peak_size: core.peaks.1,
            softnet_drops: softnet,
            device_drops: device,
            cpu: nanos(&self.shared.cpu) as f64 / SECOND as f64,
            looks: nanos(&self.shared.looks),
            late: nanos(&self.shared.late),
            notes,
            left_out: core.left_out,
        }
    }

    /// Ends it and puts everything back; what became of each socket. A second time tells the same.
    pub fn stop(&mut self) -> &[Outcome] {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has been told on standard error; what it knew is put back all the same.
            let _ = thread.join();
            self.outcomes = self.shared.core().finish();
        }
        &self.outcomes
    }
}

impl Drop for Tuner {
    fn drop(&mut self) {
        self.stop();
    }
}

fn state(core: &Core, socket: &crate::tracked::Tracked) -> SocketState {
    let holder = core.holders.holder(socket.reading.inode);
    let place = holder.map(crate::process::Process::place).unwrap_or_default();
    SocketState {
        inode: socket.reading.inode,
        cookie: socket.cookie,
        local: socket.reading.local,
        pid: holder.map(|process| process.pid),
        process: holder.map(crate::process::Process::name).unwrap_or_default(),
        unit: place.unit,
        container: place.container,
        occupied: socket.reading.occupied,
        peak_occupied: socket.peak_occupied,
        size: socket.size,
        peak_size: socket.peak_size,
        need: socket.need.need(),
        before: socket.before.map(|before| before.size),
        wanted: socket.wanted,
        reason: if socket.curbed { "budget" } else { socket.reason.name() },
        drops: socket.drops,
        changes: socket.changes,
        refusal: socket.refusal.clone(),
        recent: socket.recent.iter().copied().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Places;
    use crate::restore::Action;
    use crate::socket::setting;
    use crate::target::Target;
    use sojourn_buffer::Params;
    use std::fs;
    use std::net::UdpSocket;

    fn wait(mut what: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !what() {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn gives_back_under_memory_pressure_and_in_the_end() {
        let root = std::env::temp_dir().join(format!("sojourn-pressure-{}", std::process::id()));
        fs::create_dir_all(root.join("pressure")).unwrap();
        fs::write(root.join("meminfo"), "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n")
            .unwrap();
        let press = |percent: u32| {
            let text = format!("some avg10={percent}.00 avg60=0.00 avg300=0.00 total=0\n");
            fs::write(root.join("pressure/memory"), text).unwrap();
        };
        press(0);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = socket.local_addr().unwrap();
        let before = setting(&socket).unwrap();
        let target = Target { who: Who::Pid(std::process::id()), port: Some(local.port()) };
        let policy = Params::parse("on-demand budget 8mb").unwrap();
        let settings = Settings {
            places: Places { proc: root.clone(), cgroup: root.join("cgroup") },
            ..Settings::new(target, policy, root.join("state"))
        };
        let mut tuner = Tuner::start(settings).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        wait(|| {
            for _ in 0..200 {
                sender.send_to(&[0; 1000], local).unwrap();
            }
            setting(&socket).unwrap().size >= 4 * before.size
        });
        let grown = setting(&socket).unwrap().size;
        // What is held stays possible; so it is taken out first.
        socket.set_nonblocking(true).unwrap();
        while socket.recv(&mut [0; 2000]).is_ok() {}
        press(50);
        wait(|| tuner.snapshot().short && setting(&socket).unwrap().size < grown / 2);
        assert!(setting(&socket).unwrap().size >= before.size);
        let outcomes = tuner.stop();
        assert_eq!(outcomes.iter().map(|o| o.action).collect::<Vec<_>>(), [Action::Restored]);
        assert_eq!(setting(&socket).unwrap(), before);
        fs::remove_dir_all(root).unwrap();
    }
}
