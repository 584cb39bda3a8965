//! Sockets of flows, the run's clock, and the state that a host's senders and receivers share.

use crate::log::{Event, Kind, Log};
use crate::sys;
use nix::sys::socket::{setsockopt, sockopt};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt as options};
use rustix::time::{ClockId, clock_gettime};
use sojourn_plan::address;
use sojourn_tcp::params::Pacing;
use sojourn_units::{EPOCH, Nanos, SECOND};
use std::fs::File;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};

/// Payload that is sent; the receivers never evaluate its content.
pub static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Size of the receive buffer of a datagram socket in bytes. Without the necessary privilege, the
/// kernel may limit the size.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Largest 32-bit rate that the kernel takes as a limit, in bytes per second. It turns pacing on,
/// but is too high to limit a connection.
const PACED: u32 = u32::MAX - 1;

/// The receiver and the class of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Number of the flow in the plan, counted from 0.
    pub flow: u32,
    /// Node of the receiver. The receiver's port follows from the number of the flow.
    pub receiver: usize,
    /// Type of service byte of the flow's packets.
    pub tos: u8,
}

impl Ends {
    /// Returns the address and port to which the flow's data are sent.
    pub fn to(&self) -> io::Result<SocketAddrV4> {
        let port = address::port(self.flow).ok_or_else(|| {
            io::Error::other("the plan has too many flows: no port is free for this flow")
        })?;
        Ok(SocketAddrV4::new(address::ipv4(self.receiver), port))
    }
}

/// The run's clock and log, and the set of watched sockets, which all roles of a host share.
#[derive(Debug)]
pub struct World {
    /// Difference between the machine's monotonic clock and the run's clock, in nanoseconds.
    shift: u64,
    /// End of the run on the run's clock.
    pub end: Nanos,
    log: Log<File>,
    epoll: OwnedFd,
}

impl World {
    /// Creates the shared state of a run. `start` is the time of the run's start on the machine's
    /// monotonic clock, in nanoseconds.
    pub fn new(start: u64, duration: Nanos, log: File) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            shift: start.wrapping_sub(EPOCH),
            end: EPOCH + duration,
            log: Log::new(log),
            epoll,
        })
    }

    /// Returns the present time on the run's clock.
    pub fn now(&self) -> Nanos {
        monotonic().wrapping_sub(self.shift)
    }

    /// Converts a time `at` of the run's clock to the machine's monotonic clock, in nanoseconds.
    pub fn monotonic(&self, at: Nanos) -> u64 {
        at.wrapping_add(self.shift)
    }

    /// Logs an event with the time `at`, which is the present or a past time.
    #[inline]
    pub fn log(&mut self, flow: u32, kind: Kind, number: u64, length: u32, at: Nanos) {
        // An error is not lost: the log keeps the records that it could not write, and `flush`
        // tries to write them again.
        let _ = self.log.add(&Event { flow, kind, length, number, at });
    }

    /// Writes the events that are still in the buffer of the log.
    pub fn flush(&mut self) -> io::Result<()> {
        self.log.flush()
    }

    /// Watches `socket`. Each event of `socket` carries `token`.
    pub fn watch(&self, socket: impl AsFd, token: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)?)
    }

    /// Changes the events for which a watched socket is watched.
    pub fn rewatch(&self, socket: impl AsFd, token: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(token), flags)?)
    }

    /// Stops watching `socket`.
    pub fn forget(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, socket)?)
    }

    /// Waits until at least one event has happened, and stores the events in `events`. After an
    /// interrupted wait `events` is empty.
    pub fn wait(&self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the time of the machine's monotonic clock in nanoseconds.
pub fn monotonic() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Returns the time of the machine's wall clock in nanoseconds.
pub fn wall() -> u64 {
    nanos(ClockId::Realtime)
}

#[inline]
fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

fn open(kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let protocol = if kind == SocketType::STREAM { ipproto::TCP } else { ipproto::UDP };
    Ok(rustix::net::socket_with(AddressFamily::INET, kind, flags, Some(protocol))?)
}

/// Returns the error with the address at the start of its message.
fn at(address: SocketAddrV4, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{address}: {error}"))
}

/// Creates a socket that sends a flow's datagrams.
pub fn datagram_sender(ends: &Ends) -> io::Result<OwnedFd> {
    let socket = open(SocketType::DGRAM)?;
    let to = ends.to()?;
    options::set_ip_tos(&socket, ends.tos)?;
    rustix::net::connect(&socket, &to).map_err(|e| at(to, e))?;
    Ok(socket)
}

/// Creates a socket that receives a flow's datagrams. The kernel adds their times of arrival and
/// the number of dropped datagrams.
pub fn datagram_receiver(ends: &Ends) -> io::Result<OwnedFd> {
    let socket = open(SocketType::DGRAM)?;
    let to = ends.to()?;
    if options::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
        options::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)?;
    }
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    setsockopt(&socket, sockopt::RxqOvfl, &1)?;
    rustix::net::bind(&socket, &to).map_err(|e| at(to, e))?;
    Ok(socket)
}

/// Creates a socket that accepts a flow's connections.
pub fn listener(ends: &Ends) -> io::Result<OwnedFd> {
    let socket = open(SocketType::STREAM)?;
    let to = ends.to()?;
    options::set_socket_reuseaddr(&socket, true)?;
    // Accepted sockets inherit the type of service, so that acknowledgements have the class of the
    // flow too.
    options::set_ip_tos(&socket, ends.tos)?;
    rustix::net::bind(&socket, &to).map_err(|e| at(to, e))?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket)
}

/// Accepts a waiting connection; returns `None` if no connection waits or if it was aborted.
pub fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    match rustix::net::accept_with(listener, flags) {
        Ok(socket) => Ok(Some(socket)),
        Err(e) if would_block(e) || e == rustix::io::Errno::CONNABORTED => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Starts to open a connection for a flow's data, and returns its socket, which may not be open
/// yet.
pub fn connect(ends: &Ends, tcp: &sojourn_tcp::Params) -> io::Result<OwnedFd> {
    let socket = open(SocketType::STREAM)?;
    let to = ends.to()?;
    options::set_tcp_congestion(&socket, tcp.congestion.name())?;
    setsockopt(&socket, sockopt::TcpMaxSeg, &tcp.mss)?;
    options::set_tcp_nodelay(&socket, !tcp.nagle)?;
    options::set_ip_tos(&socket, ends.tos)?;
    if tcp.pacing == Pacing::On {
        sys::set_max_pacing_rate(&socket, PACED)?;
    }
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(e) => Err(at(to, e)),
    }
}

/// Returns whether an error only means that the call must be repeated later.
pub fn would_block(error: rustix::io::Errno) -> bool {
    error == rustix::io::Errno::AGAIN || error == rustix::io::Errno::INTR
}

/// Returns the operating system's number of an error; 0 if it has none.
pub fn number(error: &io::Error) -> u32 {
    error.raw_os_error().unwrap_or(0) as u32
}
