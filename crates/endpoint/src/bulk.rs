//! Endless transfers over TCP, with samples of their connections from the kernel.
//!
//! At each end of a flow, one thread writes a super-packet, or reads and discards up to 1 MiB, per
//! system call. The thread waits within the kernel, so that it does not need a system call for each
//! packet. The thread of the host samples both ends at multiples of [`SAMPLE`] after the run's
//! start: it logs `TCP_INFO` of the sender, and the bytes that the receiver has received in order.

use crate::log::Kind;
use crate::net::{self, Ends, World};
use crate::sys;
use rustix::event::epoll::EventFlags;
use rustix::net::{Shutdown, sockopt};
use sojourn_units::{EPOCH, MILLISECOND, Nanos};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Time between two samples of a connection, in nanoseconds.
pub const SAMPLE: Nanos = 100 * MILLISECOND;
/// Size in bytes of the stack of a thread; it is small since the thread only repeats one system
/// call.
const STACK: usize = 64 << 10;

/// Returns the first multiple of [`SAMPLE`] after `now`. The multiples are counted from the run's
/// start.
fn next_sample(now: Nanos) -> Nanos {
    let since = now.saturating_sub(EPOCH);
    EPOCH + (since / SAMPLE + 1) * SAMPLE
}

/// Repeats `call` on a socket in a separate thread, until `call` fails or returns 0.
///
/// Returns the socket, and a cell with the number of the error that ended the thread; the cell is 0
/// while there was no error.
fn drive(
    socket: OwnedFd,
    call: impl Fn(&OwnedFd) -> io::Result<usize> + Send + 'static,
) -> io::Result<(Arc<OwnedFd>, Arc<AtomicU32>)> {
    rustix::io::ioctl_fionbio(&socket, false)?;
    let (socket, failed) = (Arc::new(socket), Arc::new(AtomicU32::new(0)));
    let (its, tells) = (Arc::clone(&socket), Arc::clone(&failed));
    thread::Builder::new().stack_size(STACK).spawn(move || {
        loop {
            match call(&its) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return tells.store(net::number(&error), Ordering::Relaxed),
            }
        }
    })?;
    Ok((socket, failed))
}

/// The sending end of a flow with an endless transfer.
#[derive(Debug)]
pub struct Sender {
    ends: Ends,
    tcp: sojourn_tcp::Params,
    stop: Nanos,
    state: State,
    /// Time when the sender must act next (open, take a sample or close); `None` if only an event
    /// of the socket can start an action.
    at: Option<Nanos>,
}

#[derive(Debug)]
enum State {
    /// The connection was not opened yet.
    Idle,
    /// The connection is being opened.
    Opening(OwnedFd),
    /// The connection is open, and a thread writes into the socket. The second value is the error
    /// number of the thread, or 0.
    Open(Arc<OwnedFd>, Arc<AtomicU32>),
    /// The application has written its last byte. The socket stays open so that the kernel can
    /// retransmit.
    Closed(Arc<OwnedFd>),
    /// The connection has failed, or the flow never starts.
    Gone,
}

impl Sender {
    /// Returns a sender that opens its connection at `start` and writes until `stop`. If `stop` is
    /// not after `start`, the sender does nothing.
    pub fn new(ends: Ends, tcp: sojourn_tcp::Params, start: Nanos, stop: Nanos) -> Self {
        let begins = start < stop;
        let state = if begins { State::Idle } else { State::Gone };
        Self { ends, tcp, stop, state, at: begins.then_some(start) }
    }

    /// Returns the time when [`due`](Self::due) must be called; `None` if only an event of the
    /// socket can start an action.
    pub fn deadline(&self) -> Option<Nanos> {
        self.at
    }

    /// Opens the connection, or takes a sample; from the stop time on, also closes an open
    /// connection.
    pub fn due(&mut self, world: &mut World, token: u64) {
        let outcome = match &self.state {
            State::Idle => self.open(world, token),
            State::Open(socket, failed) => match failed.load(Ordering::Relaxed) {
                0 => self.sample(world, socket).and_then(|()| self.close(world)),
                number => Err(io::Error::from_raw_os_error(number as i32)),
            },
            State::Closed(socket) => self.sample(world, socket),
            State::Opening(_) | State::Gone => Ok(()),
        };
        self.settle(world, outcome);
        self.at = match self.state {
            State::Opening(_) | State::Open(..) => Some(next_sample(world.now()).min(self.stop)),
            State::Closed(_) => Some(next_sample(world.now())),
            State::Idle | State::Gone => None,
        };
    }

    /// Takes the last sample, at the end of the run.
    pub fn end(&mut self, world: &mut World) {
        if let State::Open(socket, _) | State::Closed(socket) = &self.state {
            let outcome = self.sample(world, socket);
            self.settle(world, outcome);
        }
    }

    /// Handles an event of the socket: the connection has opened or failed.
    pub fn ready(&mut self, world: &mut World) {
        let outcome = self.begin(world);
        self.settle(world, outcome);
    }

    fn settle(&mut self, world: &mut World, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            world.log(self.ends.flow, Kind::Failed, 0, net::number(&error), world.now());
            self.state = State::Gone;
        }
    }

    fn open(&mut self, world: &mut World, token: u64) -> io::Result<()> {
        let socket = net::connect(&self.ends, &self.tcp)?;
        world.watch(&socket, token, EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET)?;
        self.state = State::Opening(socket);
        Ok(())
    }

    /// Starts the writing thread, if the connection is open.
    fn begin(&mut self, world: &World) -> io::Result<()> {
        let State::Opening(socket) = &self.state else { return Ok(()) };
        sockopt::socket_error(socket)??;
        if rustix::net::getpeername(socket).is_err() {
            return Ok(());
        }
        world.forget(socket)?;
        if let State::Opening(socket) = std::mem::replace(&mut self.state, State::Gone) {
            let mss = sys::tcp_info(&socket)?.mss;
            let (socket, failed) = drive(socket, move |socket| sys::fill(socket, mss))?;
            self.state = State::Open(socket, failed);
        }
        Ok(())
    }

    fn sample(&self, world: &mut World, socket: &OwnedFd) -> io::Result<()> {
        let (flow, now) = (self.ends.flow, world.now());
        let info = sys::tcp_info(socket)?;
        world.log(flow, Kind::Window, u64::from(info.window), info.mss, now);
        world.log(flow, Kind::RoundTrip, info.smoothed_rtt, 0, now);
        world.log(flow, Kind::Retransmitted, u64::from(info.retransmitted), 0, now);
        if let Some(timeouts) = info.timeouts {
            world.log(flow, Kind::TimedOut, u64::from(timeouts), 0, now);
        }
        Ok(())
    }

    fn close(&mut self, world: &mut World) -> io::Result<()> {
        if world.now() < self.stop {
            return Ok(());
        }
        if let State::Open(socket, _) = std::mem::replace(&mut self.state, State::Gone) {
            world.log(self.ends.flow, Kind::Closed, 0, 0, world.now());
            rustix::net::shutdown(&socket, Shutdown::Write)?;
            self.state = State::Closed(socket);
        }
        Ok(())
    }
}

/// The receiving end of a flow with an endless transfer. It accepts one connection and counts the
/// received bytes.
#[derive(Debug)]
pub struct Receiver {
    ends: Ends,
    listener: OwnedFd,
    connection: Option<Arc<OwnedFd>>,
    /// Received bytes in the last log record.
    logged: u64,
    /// Time of the next sample; `None` without a connection.
    at: Option<Nanos>,
}

impl Receiver {
    /// Returns a receiver that listens from this call on.
    pub fn new(ends: Ends) -> io::Result<Self> {
        let listener = net::listener(&ends)?;
        Ok(Self { ends, listener, connection: None, logged: 0, at: None })
    }

    /// Returns the listening socket.
    pub fn socket(&self) -> &OwnedFd {
        &self.listener
    }

    /// Returns the time when [`due`](Self::due) must be called; `None` without a connection.
    pub fn deadline(&self) -> Option<Nanos> {
        self.at
    }

    /// Takes a sample of the connection; logs the received bytes if the number has changed.
    pub fn due(&mut self, world: &mut World) {
        let Some(connection) = &self.connection else { return };
        // If `TCP_INFO` fails, the connection has ended and delivers no more data.
        self.at = None;
        if let Ok(info) = sys::tcp_info(connection) {
            if info.received != self.logged {
                self.logged = info.received;
                world.log(self.ends.flow, Kind::Delivered, info.received, 0, world.now());
            }
            self.at = Some(next_sample(world.now()));
        }
    }

    /// Accepts the connection and starts the reading thread; later connections are not accepted.
    pub fn ready(&mut self, world: &mut World, token: u64) -> io::Result<()> {
        let Some(socket) = net::accept(&self.listener)? else { return Ok(()) };
        world.rewatch(&self.listener, token, EventFlags::empty())?;
        let (socket, _) = drive(socket, sys::discard)?;
        self.connection = Some(socket);
        self.at = Some(next_sample(world.now()));
        Ok(())
    }
}
