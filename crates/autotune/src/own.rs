//! Adaptive receive buffers for sockets of the calling program.
//!
//! No permissions are needed, except that sizes above twice `net.core.rmem_max` require
//! `CAP_NET_ADMIN`.

use crate::PACKET;
use crate::drops::{Counters, split};
use crate::memory::Places;
use crate::socket::{self, GREATEST, Setting};
use sojourn_buffer::{Decision, Memory, Observation, Params, Policy};
use sojourn_units::{Bytes, MILLISECOND, Nanos, SECOND};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A policy for one socket. The program calls [`Buffer::observe`] before it receives a batch of
/// datagrams, or every 10 ms.
///
/// ```
/// # use sojourn_autotune::own::Buffer;
/// # use sojourn_autotune::buffer::Params;
/// let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
/// let mut buffer = Buffer::new(&socket, &Params::parse("elastic ceiling 16mb").unwrap())?;
/// let start = std::time::Instant::now();
/// // in the loop that receives:
/// let decision = buffer.observe(&socket, start.elapsed().as_nanos() as u64)?;
/// assert!(decision.size >= buffer.before());
/// buffer.restore(&socket)?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Buffer {
    policy: Policy,
    before: Setting,
    size: Bytes,
    most: Bytes,
    drops: u32,
    discarded: Bytes,
    counted: Counters,
    memory: Option<Memory>,
    refreshed: Option<Nanos>,
}

impl Buffer {
    /// Returns a policy for a socket. The socket's current setting becomes the original setting.
    ///
    /// # Errors
    /// If the descriptor is not a UDP socket.
    pub fn new(socket: impl AsFd, policy: &Params) -> io::Result<Self> {
        if !socket::is_udp(&socket)? {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the descriptor is not a UDP socket",
            ));
        }
        let before = socket::setting(&socket)?;
        let (_, size, drops) = socket::memory(&socket)?;
        Ok(Self {
            policy: Policy::new(policy),
            before,
            size,
            most: GREATEST,
            drops,
            discarded: 0,
            counted: Counters::default(),
            memory: None,
            refreshed: None,
        })
    }

    /// Returns the original size of the receive buffer in bytes.
    pub fn before(&self) -> Bytes {
        self.before.size
    }

    /// Calls the policy and applies its decision. `now` is in nanoseconds of any monotonic clock.
    /// Returns the decision with the size that the kernel has set.
    ///
    /// # Errors
    /// If the socket cannot be read or changed.
    pub fn observe(&mut self, socket: impl AsFd, now: Nanos) -> io::Result<Decision> {
        let net = Path::new("/proc/self/net");
        if self.refreshed.is_none_or(|at| now.saturating_sub(at) >= SECOND) {
            self.refreshed = Some(now);
            self.counted = Counters::read(net).unwrap_or_default();
            let me = [std::process::id()];
            self.memory = Places::default().room(&me, None, 1.0, 0).ok().map(|room| room.memory);
        }
        let (occupied, size, drops) = socket::memory(&socket)?;
        let dropped = u64::from(drops.wrapping_sub(self.drops));
        self.drops = drops;
        if dropped > 0 {
            let counted = Counters::read(net).unwrap_or_default().since(self.counted);
            self.discarded += split(dropped, counted).buffer.saturating_mul(PACKET);
        }
        let seen = Observation {
            now,
            size,
            occupied,
            reserved: 0,
            needed: 0,
            discarded: self.discarded,
            processed: None,
            memory: self.memory,
        };
        let mut decision = self.policy.observe(&seen);
        let least = self.before.size;
        let wanted = (decision.size.clamp(least, self.most.max(least)) + 1) & !1;
        self.size = size;
        if wanted != size {
            let granted = socket::resize(&socket, wanted)?;
            if granted.bounded && granted.size < wanted {
                self.most = granted.size.max(least);
            }
            self.size = granted.size;
        }
        decision.size = self.size;
        Ok(decision)
    }

    /// Restores the original setting. Returns whether the size is now exactly the original one.
    ///
    /// # Errors
    /// If the kernel refuses the setting.
    pub fn restore(&self, socket: impl AsFd) -> io::Result<bool> {
        socket::restore(socket, self.before)
    }
}

/// State of a socket that a thread adapts. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Memory of the packets in the receive buffer.
    pub occupied: Bytes,
    /// Largest observed memory of packets in the receive buffer.
    pub peak_occupied: Bytes,
    /// Current size of the receive buffer.
    pub size: Bytes,
    /// Largest size of the receive buffer so far.
    pub peak_size: Bytes,
    /// Original size of the receive buffer.
    pub before: Bytes,
    /// Packets dropped since the socket was created.
    pub drops: u32,
}

/// A thread that adapts a socket's receive buffer until it is stopped or dropped. It then restores
/// the original setting.
///
/// The thread has a copy of the descriptor, so the port stays bound until both descriptors are
/// closed.
#[derive(Debug)]
pub struct Adaptive {
    stop: Arc<AtomicBool>,
    stats: Arc<Mutex<Stats>>,
    thread: Option<JoinHandle<io::Result<bool>>>,
}

impl Adaptive {
    /// Starts the thread, which observes the socket every `interval` nanoseconds (at least 1 ms).
    ///
    /// # Errors
    /// If the descriptor is not a UDP socket, or the thread cannot be started.
    pub fn start(socket: impl AsFd, policy: &Params, interval: Nanos) -> io::Result<Self> {
        let copy: OwnedFd = socket.as_fd().try_clone_to_owned()?;
        let mut buffer = Buffer::new(&copy, policy)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stats = Arc::new(Mutex::new(Stats {
            size: buffer.before(),
            peak_size: buffer.before(),
            before: buffer.before(),
            ..Stats::default()
        }));
        let (stop_request, published) = (Arc::clone(&stop), Arc::clone(&stats));
        let step = Duration::from_nanos(interval.max(MILLISECOND));
        let thread = std::thread::Builder::new().name("rcvbuf".into()).spawn(move || {
            let start = Instant::now();
            while !stop_request.load(Ordering::Acquire) {
                let decision =
                    buffer.observe(&copy, start.elapsed().as_nanos() as Nanos + SECOND)?;
                let (occupied, _, drops) = socket::memory(&copy)?;
                {
                    let mut stats = published.lock().unwrap_or_else(PoisonError::into_inner);
                    *stats = Stats {
                        occupied,
                        peak_occupied: stats.peak_occupied.max(occupied),
                        size: decision.size,
                        peak_size: stats.peak_size.max(decision.size),
                        drops,
                        ..*stats
                    };
                }
                std::thread::park_timeout(step);
            }
            buffer.restore(&copy)
        })?;
        Ok(Self { stop, stats, thread: Some(thread) })
    }

    /// Returns the current state of the socket.
    pub fn stats(&self) -> Stats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the thread. Returns whether the size is now exactly the original one.
    ///
    /// # Errors
    /// If an error has ended the thread earlier: this error.
    pub fn stop(&mut self) -> io::Result<bool> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ok(true) };
        thread.thread().unpark();
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread has panicked")))
    }
}

impl Drop for Adaptive {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
