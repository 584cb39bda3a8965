//! The tuner: a thread that reads the sockets every few milliseconds, and its snapshots.

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

/// State of a socket, for views. Sizes are in bytes as the kernel counts them.
#[derive(Clone, Debug, Serialize)]
pub struct SocketState {
    /// Inode of the socket.
    pub inode: u64,
    /// Cookie: a number that is unique among the sockets of this boot.
    pub cookie: Option<u64>,
    /// Local address and port.
    pub local: SocketAddr,
    /// Process that has the socket open.
    pub pid: Option<u32>,
    /// Name of that process.
    pub process: String,
    /// systemd unit of the process; empty without a unit.
    pub unit: String,
    /// First digits of the identifier of the process's container; empty outside a container.
    pub container: String,
    /// Memory of the received packets in the buffer, in bytes.
    pub occupied: Bytes,
    /// Largest observed occupancy, in bytes.
    pub peak_occupied: Bytes,
    /// Size of the receive buffer in bytes, if known.
    pub size: Option<Bytes>,
    /// Largest size of the buffer so far, in bytes.
    pub peak_size: Bytes,
    /// Size that its bursts needed, as bounds.
    pub need: Need,
    /// Size before the first change, in bytes, if the tuner has changed it.
    pub before: Option<Bytes>,
    /// Size that the policy and the budget give, in bytes.
    pub wanted: Bytes,
    /// Reason of the size: a policy's reason, or `budget`.
    pub reason: &'static str,
    /// Packets dropped since the tuner began to follow the socket, by reason.
    pub drops: Split,
    /// Number of changes.
    pub changes: u64,
    /// Reason why the socket is only observed.
    pub refusal: Option<Refusal>,
    /// Largest occupancy in bytes, and dropped packets, in each of the latest quarters of a second.
    pub recent: Vec<(Bytes, u64)>,
}

/// State of a tuner at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Seconds since the tuner's start.
    pub seconds: f64,
    /// Sockets that the tuner follows.
    pub sockets: Vec<SocketState>,
    /// Number of processes that the tuner follows.
    pub processes: usize,
    /// Limit of the sum of all sizes, in bytes.
    pub budget: Bytes,
    /// Limit that determines the budget: `given`, `cgroup`, `udp_mem` or `available`.
    pub budget_bound: &'static str,
    /// Share of time in which tasks waited for memory; `None` if the kernel does not report it.
    pub pressure: Option<f64>,
    /// Whether memory is short, so that sizes shrink.
    pub short: bool,
    /// Largest sum of the occupancy of all sockets, in bytes.
    pub peak_occupied: Bytes,
    /// Largest sum of all sizes, in bytes.
    pub peak_size: Bytes,
    /// Packets dropped since the start because a CPU's backlog was full, before they reached a
    /// socket.
    pub softnet_drops: u64,
    /// Packets dropped by devices since the start.
    pub device_drops: u64,
    /// CPU time of the tuner's thread, in seconds.
    pub cpu: f64,
    /// Number of passes over the sockets.
    pub looks: u64,
    /// Number of passes that began late by more than the interval.
    pub late: u64,
    /// Missing permissions and features.
    pub notes: Vec<Refusal>,
    /// Number of sockets not followed because the limit of sockets was reached.
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
                // The policies' clock begins at 1 s: no event has time 0.
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

/// A running tuner. It restores all sockets when it is stopped or dropped.
#[derive(Debug)]
pub struct Tuner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    outcomes: Vec<Outcome>,
    /// Outcomes of the sockets that earlier tuners had left changed.
    pub recovered: Vec<Outcome>,
}

impl Tuner {
    /// Starts a tuner. First restores the sockets that a killed tuner left changed.
    ///
    /// # Errors
    /// A target that does not exist, or a journal folder that cannot be used.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let recovered =
            if settings.dry_run { Vec::new() } else { restore::restore(&settings.state)? };
        let interval = settings.interval.max(MILLISECOND);
        let mut core = Core::new(settings)?;
        let start = Instant::now();
        // A first pass at once, so that the first snapshot has sockets and notes.
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

    /// Returns whether the tuner has ended by itself because the followed process has ended.
    pub fn is_over(&self) -> bool {
        self.shared.done.load(Ordering::Acquire)
    }

    /// Returns the tuner's present state.
    pub fn snapshot(&self) -> Snapshot {
        let core = self.shared.core();
        let nanos = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let before = core.spaces.values().map(crate::space::Space::dropped_before);
        let (softnet, device) = before.fold((0, 0), |sum, one| (one.0.max(sum.0), sum.1 + one.1));
        let mut notes = core.notes.clone();
        match core.settings.target.who {
            // No notes: a search by port finds many processes without permission to inspect them,
            // most of them unrelated.
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

    /// Stops the tuner, restores all sockets and returns their outcomes. A second call returns the
    /// same outcomes.
    pub fn stop(&mut self) -> &[Outcome] {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was reported on standard error; the sockets are restored in any
            // case.
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
