//! A socket of the calling program with an adaptive receive buffer.
//!
//! No permissions are needed, but sizes above twice `net.core.rmem_max` require `CAP_NET_ADMIN`.

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

/// Policy of one socket. The program calls [`Buffer::observe`] before it receives a batch, or every
/// 10 ms.
///
/// ```
/// # use sojourn_rcvbuf::own::Buffer;
/// # use sojourn_rcvbuf::buffer::Params;
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
    /// Returns a policy for a socket with its present setting.
    ///
    /// # Errors
    /// A descriptor that is not a UDP socket.
    pub fn new(socket: impl AsFd, policy: &Params) -> io::Result<Self> {
        if !socket::is_udp(&socket)? {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a UDP socket"));
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

    /// Returns the original size in bytes.
    pub fn before(&self) -> Bytes {
        self.before.size
    }

    /// Calls the policy and applies its decision. `now` is the time in nanoseconds of any monotonic
    /// clock. The size in the returned decision is the size that the kernel has given.
    ///
    /// # Errors
    /// A socket that cannot be read or changed.
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

    /// Restores the original setting; returns true if the setting is now exactly the original.
    ///
    /// # Errors
    /// A setting that the kernel refuses.
    pub fn restore(&self, socket: impl AsFd) -> io::Result<bool> {
        socket::restore(socket, self.before)
    }
}

/// State of a socket that a thread adapts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Memory of the packets in the buffer, in bytes.
    pub occupied: Bytes,
    /// Largest observed occupancy, in bytes.
    pub peak_occupied: Bytes,
    /// Present size in bytes.
    pub size: Bytes,
    /// Largest size so far, in bytes.
    pub peak_size: Bytes,
    /// Original size in bytes.
    pub before: Bytes,
    /// Packets dropped since the socket's creation.
    pub drops: u32,
}

/// A thread that adapts a socket's receive buffer until it is stopped or dropped; then it restores
/// the original setting.
///
/// The thread has a copy of the descriptor: the port stays bound until both descriptors are closed.
#[derive(Debug)]
pub struct Adaptive {
    stop: Arc<AtomicBool>,
    stats: Arc<Mutex<Stats>>,
    thread: Option<JoinHandle<io::Result<bool>>>,
}

impl Adaptive {
    /// Starts the thread; it observes the socket every `interval` nanoseconds (at least 1 ms).
    ///
    /// # Errors
    /// A descriptor that is not a UDP socket.
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
        let (theirs, told) = (Arc::clone(&stop), Arc::clone(&stats));
        let step = Duration::from_nanos(interval.max(MILLISECOND));
        let thread = std::thread::Builder::new().name("rcvbuf".into()).spawn(move || {
            let start = Instant::now();
            while !theirs.load(Ordering::Acquire) {
                let decision =
                    buffer.observe(&copy, start.elapsed().as_nanos() as Nanos + SECOND)?;
                let (occupied, _, drops) = socket::memory(&copy)?;
                {
                    let mut stats = told.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Returns the present state of the socket.
    pub fn stats(&self) -> Stats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the thread; returns true if the setting is exactly the original.
    ///
    /// # Errors
    /// The error that ended the thread earlier.
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
