//! The tuner: a thread that reads and adapts sockets at a fixed interval, and snapshots of its
//! state.

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

/// State of a socket in a snapshot. Sizes are in bytes as the kernel counts them.
#[derive(Clone, Debug, Serialize)]
pub struct SocketState {
    /// Inode of the socket.
    pub inode: u64,
    /// Cookie of the socket, which is unique among all sockets since the boot; `None` if unknown.
    pub cookie: Option<u64>,
    /// Local address and port.
    pub local: SocketAddr,
    /// PID of a process that has the socket open; `None` if unknown.
    pub pid: Option<u32>,
    /// Name of this process; empty if unknown.
    pub process: String,
    /// systemd unit of the process; empty if it is in no unit.
    pub unit: String,
    /// First twelve digits of the identifier of the process's container; empty without a
    /// container.
    pub container: String,
    /// Memory of the received packets in the buffer, in bytes.
    pub occupied: Bytes,
    /// Largest observed memory of packets in the receive buffer, in bytes.
    pub peak_occupied: Bytes,
    /// Size of the receive buffer in bytes; `None` if unknown.
    pub size: Option<Bytes>,
    /// Largest size of the receive buffer so far, in bytes.
    pub peak_size: Bytes,
    /// Lower and upper bound of the size that would have prevented all drops.
    pub need: Need,
    /// Size to restore at the end, in bytes; `None` if the tuner has not changed the socket.
    pub before: Option<Bytes>,
    /// Size of the latest decision in bytes, after the division of the budget.
    pub wanted: Bytes,
    /// Reason of the latest decision: that of the policy, or `budget` if the budget limits the
    /// size.
    pub reason: &'static str,
    /// Packets dropped since the tuner began to follow the socket, by reason.
    pub drops: Split,
    /// Number of changes of the size by the tuner.
    pub changes: u64,
    /// Why the socket is only observed; `None` if it is tuned.
    pub refusal: Option<Refusal>,
    /// For each of the latest quarters of a second: largest memory of packets in bytes, and number
    /// of dropped packets.
    pub recent: Vec<(Bytes, u64)>,
}

/// State of a tuner at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Time since the tuner's start, in seconds.
    pub seconds: f64,
    /// Sockets that the tuner follows.
    pub sockets: Vec<SocketState>,
    /// Number of processes that the tuner follows.
    pub processes: usize,
    /// Limit on the sum of all receive buffers, in bytes.
    pub budget: Bytes,
    /// Name of the limit that determines the budget: `given`, `cgroup`, `udp_mem` or `available`.
    pub budget_bound: &'static str,
    /// Share of the last ten seconds in which tasks waited for memory, 0 to 1; `None` if the kernel
    /// does not report it.
    pub pressure: Option<f64>,
    /// Whether memory is short, so that the tuner reduces the sizes.
    pub short: bool,
    /// Largest sum of the memory of packets in all receive buffers, in bytes.
    pub peak_occupied: Bytes,
    /// Largest sum of the sizes of all receive buffers, in bytes.
    pub peak_size: Bytes,
    /// Packets dropped since the tuner's start because a CPU's backlog was full. They did not reach
    /// a socket.
    pub softnet_drops: u64,
    /// Packets dropped by devices since the tuner's start.
    pub device_drops: u64,
    /// CPU time of the tuner's thread, in seconds.
    pub cpu: f64,
    /// Number of passes over the sockets.
    pub looks: u64,
    /// Number of passes that were late by more than the interval.
    pub late: u64,
    /// Missing permissions and kernel features that concern the whole tuner.
    pub notes: Vec<Refusal>,
    /// Number of sockets that are not followed because the limit on their number was reached.
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
                // The policies' clock begins at 1 s, since a time of 0 is not allowed.
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
    /// Outcomes for the sockets whose tuner was killed.
    pub recovered: Vec<Outcome>,
}

impl Tuner {
    /// Restores sockets whose tuner was killed (not in a dry run), and starts a tuner.
    ///
    /// # Errors
    /// If the target does not exist, or the journal's folder cannot be used.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let recovered =
            if settings.dry_run { Vec::new() } else { restore::restore(&settings.state)? };
        let interval = settings.interval.max(MILLISECOND);
        let mut core = Core::new(settings)?;
        let start = Instant::now();
        // The first pass runs before the thread starts, so that the first snapshot contains sockets
        // and notes.
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

    /// Returns whether the tuner was stopped, or all processes of its target have ended.
    pub fn is_over(&self) -> bool {
        self.shared.done.load(Ordering::Acquire)
    }

    /// Returns the tuner's current state.
    pub fn snapshot(&self) -> Snapshot {
        let core = self.shared.core();
        let nanos = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let before = core.spaces.values().map(crate::space::Space::dropped_before);
        let (softnet, device) = before.fold((0, 0), |sum, one| (one.0.max(sum.0), sum.1 + one.1));
        let mut notes = core.notes.clone();
        match core.settings.target.who {
            // No notes: a search by port finds many unrelated processes that may not be inspected.
            Who::Anybody => {}
            Who::Everybody => {
                if let Some(one) = core.holders.refused.values().next() {
                    let text = format!(
                        "{} processes cannot be inspected, so process, unit and container of their sockets \
                         are unknown; an example: {one}",
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

    /// Stops the tuner, restores all sockets, and returns the outcome for each. A second call
    /// returns the same outcomes.
    pub fn stop(&mut self) -> &[Outcome] {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was reported on standard error. The sockets are restored
            // nevertheless.
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
        // The buffer must be emptied first: its size never falls below the memory of its packets.
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
