//! A server with its socket. One thread receives datagrams, a buffer holds messages, and another
//! thread processes them.

use crate::io::{Inbox, KERNEL_BUFFER, Socket};
use crate::memory::memory;
use crate::packet::{Code, DIGEST, Id};
use crate::server::{Counters, Job, Limits, Message, Out, Server};
use rustix::time::{ClockId, clock_gettime};
use sojourn_buffer::{Reason, receive_buffer};
use sojourn_measure::Histogram;
use sojourn_units::{Bytes, MILLISECOND, Nanos, SECOND};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum wait of an idle thread in nanoseconds, and therefore the maximum time until it stops.
const NAP: Nanos = 100 * MILLISECOND;
/// Time in nanoseconds after which a busy thread's CPU time is read again.
const LOOK: Nanos = 10 * MILLISECOND;
/// Maximum number of trains of datagrams that one call receives.
const TRAINS: usize = 8;

/// Processor of messages. All calls come from one thread.
pub trait Handler: Send {
    /// Processes a message. The messages of a connection arrive once each, in any order.
    ///
    /// # Errors
    /// The reason why the connection must be ended.
    fn message(&mut self, message: &Message) -> Result<(), Code>;

    /// Called when all messages of a connection have been processed. Returns the outcome and a
    /// checksum for the client.
    fn finish(&mut self, connection: Id) -> (Code, [u8; DIGEST]);

    /// Called when a connection has ended. Its incomplete objects will not be completed.
    fn gone(&mut self, connection: Id);
}

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address on which the server listens.
    pub bind: SocketAddr,
    /// Policy of the receive buffer.
    pub policy: sojourn_buffer::Params,
    /// Limits on connections and messages.
    pub limits: Limits,
    /// Requested size of the kernel's receive buffer in bytes. `net.core.rmem_max` limits it.
    pub kernel_buffer: usize,
}

impl Settings {
    /// Returns settings with default limits.
    pub fn new(bind: SocketAddr, policy: sojourn_buffer::Params) -> Self {
        Self { bind, policy, limits: Limits::default(), kernel_buffer: KERNEL_BUFFER }
    }
}

/// Counters and measurements of a server.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    /// Counters of the buffer: messages, and bytes including [`crate::packet::CHARGE`] for each
    /// message.
    pub buffer: receive_buffer::Counters,
    /// Counters of datagrams and connections.
    pub transport: Counters,
    /// Size of the buffer in bytes.
    pub size: Bytes,
    /// Reason of the policy for the current size.
    pub reason: Reason,
    /// Occupied part of the buffer in bytes.
    pub occupied: Bytes,
    /// Greatest size and greatest occupied part so far, in bytes.
    pub peaks: (Bytes, Bytes),
    /// Number of open connections.
    pub connections: usize,
    /// Median and 99th percentile of the time that messages spend in the buffer, in seconds; NaN
    /// before the first message.
    pub sojourn: (f64, f64),
    /// CPU time of the receiving thread and of the processing thread, in seconds.
    pub cpu: (f64, f64),
    /// Size of the kernel's receive buffer in bytes, as the kernel counts it.
    pub kernel_buffer: usize,
}

struct Core {
    server: Server,
    sojourn: Histogram,
    /// Whether the processing thread waits for a wake-up.
    idle: bool,
}

struct Shared {
    socket: Socket,
    core: Mutex<Core>,
    work: Condvar,
    stop: AtomicBool,
    start: Instant,
    cpu: [AtomicU64; 2],
    failure: Mutex<Option<String>>,
}

impl Shared {
    fn now(&self) -> Nanos {
        // The clock begins at 1 s, since a time of 0 is not allowed.
        self.start.elapsed().as_nanos() as Nanos + SECOND
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        // The core is consistent between calls, so a panic of the other thread does not matter.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, out: &mut Out) -> io::Result<()> {
        for (to, bytes) in out.drain(..) {
            self.socket.send(to, &bytes)?;
        }
        Ok(())
    }

    fn note_cpu(&self, thread: usize) {
        self.cpu[thread].store(thread_cpu(), Ordering::Relaxed);
    }

    /// Runs the work of a thread. When it ends, the server stops; the reason of a failure is
    /// stored.
    fn guard(&self, work: impl FnOnce() -> io::Result<()>) {
        if let Err(error) = work() {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
        self.stop.store(true, Ordering::Release);
        self.work.notify_all();
    }

    fn receive(&self) -> io::Result<()> {
        let (mut inbox, mut out) = (Inbox::new(TRAINS), Out::new());
        let (mut looked, mut wait) = (0, NAP);
        while !self.stop.load(Ordering::Acquire) {
            self.socket.wait(wait)?;
            let now = self.now();
            if now - looked > NAP {
                looked = now;
                let memory = memory();
                let mut core = self.core();
                core.server.buffer_mut().set_memory(memory);
                core.server.buffer_mut().tick(now);
                core.server.sweep(now);
                self.note_cpu(0);
            }
            let n = inbox.receive(&self.socket)?;
            let mut core = self.core();
            for (from, datagrams) in inbox.trains(n) {
                core.server.handle_all(now, from, datagrams, &mut out);
            }
            core.server.acks(now, &mut out);
            wait = core.server.wake().map_or(NAP, |wake| wake.saturating_sub(now).clamp(1, NAP));
            let needed = core.idle && core.server.has_work();
            core.idle &= !needed;
            drop(core);
            if needed {
                self.work.notify_one();
            }
            self.send(&mut out)?;
        }
        Ok(())
    }

    fn handle(&self, handler: &mut dyn Handler) -> io::Result<()> {
        let mut out = Out::new();
        let mut noted = 0;
        let mut core = self.core();
        while !self.stop.load(Ordering::Acquire) {
            let Some(job) = core.server.next_job() else {
                self.note_cpu(1);
                core.server.acks(self.now(), &mut out);
                if out.is_empty() {
                    let nap = Duration::from_nanos(NAP);
                    core.idle = true;
                    let woken = self.work.wait_timeout(core, nap);
                    core = woken.unwrap_or_else(PoisonError::into_inner).0;
                    core.idle = false;
                } else {
                    drop(core);
                    self.send(&mut out)?;
                    core = self.core();
                }
                continue;
            };
            if let Job::Message { arrived, .. } = job {
                core.sojourn.record(self.now().saturating_sub(arrived));
            }
            drop(core);
            match job {
                Job::Message { message, .. } => {
                    let handled = handler.message(&message);
                    let now = self.now();
                    if now - noted > LOOK {
                        noted = now;
                        self.note_cpu(1);
                    }
                    core = self.core();
                    let connection = message.connection;
                    core.server.processed(message);
                    if let Err(code) = handled {
                        core.server.finished(connection, code, [0; DIGEST], &mut out);
                    }
                    core.server.acks(now, &mut out);
                }
                Job::Finish(id) => {
                    let (code, digest) = handler.finish(id);
                    core = self.core();
                    core.server.finished(id, code, digest, &mut out);
                }
                Job::Gone(id) => {
                    handler.gone(id);
                    core = self.core();
                }
            }
            if !out.is_empty() {
                drop(core);
                self.send(&mut out)?;
                core = self.core();
            }
        }
        Ok(())
    }
}

/// A server that runs until it is stopped or dropped.
pub struct Running {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    address: SocketAddr,
}

impl Running {
    /// Binds the socket and starts the threads.
    ///
    /// # Errors
    /// If the address cannot be bound, or a thread cannot be started.
    pub fn start(settings: &Settings, handler: impl Handler + 'static) -> io::Result<Self> {
        let socket = Socket::bind(settings.bind, settings.kernel_buffer)?;
        let address = socket.address()?;
        let server = Server::new(settings.limits, settings.policy.clone(), random()?);
        let shared = Arc::new(Shared {
            socket,
            core: Mutex::new(Core { server, sojourn: Histogram::new(), idle: false }),
            work: Condvar::new(),
            stop: AtomicBool::new(false),
            start: Instant::now(),
            cpu: [AtomicU64::new(0), AtomicU64::new(0)],
            failure: Mutex::new(None),
        });
        let mut running = Self { shared, threads: Vec::new(), address };
        let shared = Arc::clone(&running.shared);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.to_owned()).spawn(work)
        };
        running
            .threads
            .push(spawn("udp-receive", Box::new(move || shared.guard(|| shared.receive())))?);
        let shared = Arc::clone(&running.shared);
        let mut handler = handler;
        running.threads.push(spawn(
            "udp-handle",
            Box::new(move || shared.guard(|| shared.handle(&mut handler))),
        )?);
        Ok(running)
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the policy of the buffer.
    pub fn set_policy(&self, policy: sojourn_buffer::Params) {
        let now = self.shared.now();
        self.shared.core().server.buffer_mut().set_policy(now, policy);
    }

    /// Returns counters and measurements.
    pub fn stats(&self) -> Stats {
        let seconds = |i: usize| self.shared.cpu[i].load(Ordering::Relaxed) as f64 / SECOND as f64;
        let kernel_buffer = self.shared.socket.kernel_buffer();
        let core = self.shared.core();
        let buffer = core.server.buffer();
        let quantile = |q| core.sojourn.quantile(q) / SECOND as f64;
        Stats {
            buffer: *buffer.counters(),
            transport: core.server.counters(),
            size: buffer.size(),
            reason: buffer.reason(),
            occupied: buffer.occupied(),
            peaks: (buffer.peak_size(), buffer.peak_occupied()),
            connections: core.server.connections(),
            sojourn: (quantile(0.5), quantile(0.99)),
            cpu: (seconds(0), seconds(1)),
            kernel_buffer,
        }
    }

    /// Returns the reason of a failure; `None` if the server has not failed.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops the server and waits for the end of its threads.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the CPU time of the calling thread in nanoseconds.
pub(crate) fn thread_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// Returns cryptographically secure random bytes from the kernel.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let n = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if n < N {
        return Err(io::Error::other("the kernel returned too few random bytes"));
    }
    Ok(bytes)
}
