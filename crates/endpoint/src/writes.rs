//! Packet sources over TCP: each packet of the source is a write into the stream of one connection.
//!
//! The rules are those of the simulator. The send buffer contains the written data that are not yet
//! acknowledged. A write enters the send buffer completely or not at all. If a send buffer that is
//! not empty has no space for a write, the write is refused; on a `blocking` socket it waits for
//! space instead, and the writes that become due in the meantime follow it. Data that the kernel
//! does not accept at once, for lack of memory, stay in the sender and count as written.

use crate::log::Kind;
use crate::net::{self, Ends, World, ZEROS};
use crate::sys;
use rustix::event::epoll::EventFlags;
use rustix::net::{SendFlags, Shutdown, sockopt};
use sojourn_traffic::{Emission, PacketSource};
use sojourn_units::{MILLISECOND, Nanos};
use std::io;
use std::os::fd::OwnedFd;

/// Time between two checks for space in the send buffer while the application waits, in
/// nanoseconds. The checks are necessary since the kernel's notification does not follow the
/// simulator's rules for the send buffer.
const LOOK: Nanos = MILLISECOND / 2;
/// Maximum number of writes, or of calls that receive, before the other flows of the host are
/// served.
const TURN: usize = 64;

/// The sending end of a flow.
#[derive(Debug)]
pub struct Sender {
    ends: Ends,
    tcp: sojourn_tcp::Params,
    source: PacketSource,
    next: Emission,
    seq: u64,
    start: Nanos,
    stop: Nanos,
    end: Nanos,
    state: State,
    /// Number of written bytes that the kernel has not accepted yet.
    pending: u64,
    /// Time of the next check for space in the send buffer; `None` unless the application waits.
    look: Option<Nanos>,
}

#[derive(Debug)]
enum State {
    /// The connection was not opened yet.
    Idle,
    /// The connection is open or being opened.
    Open(OwnedFd),
    /// The application has closed the stream. The sender shuts the connection down after the kernel
    /// has accepted all data.
    Closing(OwnedFd),
    /// The connection is shut down. The socket stays open so that the kernel can retransmit.
    Closed(OwnedFd),
    /// The connection has failed, or no write is due in the run.
    Gone,
}

impl Sender {
    /// Returns a sender that opens its connection at `start`. If the first write is not due before
    /// `stop` and `end`, the sender does nothing.
    pub fn new(
        ends: Ends,
        tcp: sojourn_tcp::Params,
        mut source: PacketSource,
        (start, stop, end): (Nanos, Nanos, Nanos),
    ) -> Self {
        let next = source.next_packet();
        let state = if next.at < stop.min(end) { State::Idle } else { State::Gone };
        Self { ends, tcp, source, next, seq: 0, start, stop, end, state, pending: 0, look: None }
    }

    /// Returns the time when [`due`](Self::due) must be called next before the run's end; `None`
    /// without such a time.
    pub fn deadline(&self) -> Option<Nanos> {
        let at = match &self.state {
            State::Idle => self.start,
            State::Open(_) => self.look.unwrap_or(self.next.at),
            State::Closing(_) | State::Closed(_) | State::Gone => return None,
        };
        (at < self.end).then_some(at)
    }

    /// Opens the connection, or makes the writes that are due.
    pub fn due(&mut self, world: &mut World, token: u64) {
        let outcome = match &self.state {
            State::Idle => self.open(world, token).and_then(|()| self.write(world)),
            State::Open(_) => self.write(world),
            _ => Ok(()),
        };
        self.settle(world, outcome);
    }

    /// Handles an event of the socket: the connection has opened, can be written again, or has
    /// failed.
    pub fn ready(&mut self, world: &mut World) {
        let outcome = self.flush().and_then(|()| self.write(world));
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
        // Events are edge-triggered: there is no event while the socket stays writable.
        world.watch(&socket, token, EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET)?;
        self.state = State::Open(socket);
        Ok(())
    }

    /// Makes up to [`TURN`] due writes; closes the stream at `stop`, or before if no write remains.
    fn write(&mut self, world: &mut World) -> io::Result<()> {
        self.look = None;
        for _ in 0..TURN {
            let State::Open(socket) = &self.state else { break };
            let now = world.now();
            if self.next.at.max(now) >= self.stop {
                return self.close(world, now);
            }
            if self.next.at > now {
                return Ok(());
            }
            let payload = u64::from(self.next.payload);
            let held = self.pending + sys::unacknowledged(socket)?;
            let fits = held == 0 || held + payload <= self.tcp.send_buffer;
            if !fits && self.tcp.blocking {
                self.look = Some(now + LOOK);
                return Ok(());
            }
            let kind = if fits { Kind::Written } else { Kind::Refused };
            world.log(self.ends.flow, kind, self.seq, self.next.payload, now);
            self.seq += 1;
            self.next = self.source.next_packet();
            if fits {
                self.pending += payload;
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Closes the stream, since the application has made all its writes.
    fn close(&mut self, world: &mut World, now: Nanos) -> io::Result<()> {
        if let State::Open(socket) = std::mem::replace(&mut self.state, State::Gone) {
            world.log(self.ends.flow, Kind::Closed, self.seq, 0, now);
            self.state = State::Closing(socket);
        }
        self.flush()
    }

    /// Passes pending data to the kernel until it accepts no more.
    fn flush(&mut self) -> io::Result<()> {
        let (State::Open(socket) | State::Closing(socket) | State::Closed(socket)) = &self.state
        else {
            return Ok(());
        };
        sockopt::socket_error(socket)??;
        while self.pending > 0 {
            let part = &ZEROS[..self.pending.min(ZEROS.len() as u64) as usize];
            match rustix::net::send(socket, part, SendFlags::NOSIGNAL) {
                Ok(taken) => self.pending -= taken as u64,
                Err(error) if net::would_block(error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        if let State::Closing(socket) = &self.state {
            // A connection that is not open cannot be shut down.
            if rustix::net::getpeername(socket).is_err() {
                return Ok(());
            }
            rustix::net::shutdown(socket, Shutdown::Write)?;
            if let State::Closing(socket) = std::mem::replace(&mut self.state, State::Gone) {
                self.state = State::Closed(socket);
            }
        }
        Ok(())
    }
}

/// The receiving end of a flow. It accepts one connection and counts the received bytes.
#[derive(Debug)]
pub struct Receiver {
    ends: Ends,
    listener: OwnedFd,
    connection: Option<OwnedFd>,
    delivered: u64,
}

impl Receiver {
    /// Returns a receiver that listens from this call on.
    pub fn new(ends: Ends) -> io::Result<Self> {
        Ok(Self { ends, listener: net::listener(&ends)?, connection: None, delivered: 0 })
    }

    /// Returns the listening socket.
    pub fn socket(&self) -> &OwnedFd {
        &self.listener
    }

    /// Accepts a connection if none is open yet, and receives data from it.
    pub fn ready(&mut self, world: &mut World, token: u64) -> io::Result<()> {
        if self.connection.is_none() {
            let Some(socket) = net::accept(&self.listener)? else { return Ok(()) };
            world.watch(&socket, token, EventFlags::IN | EventFlags::RDHUP)?;
            self.connection = Some(socket);
        }
        let Some(socket) = &self.connection else { return Ok(()) };
        match take(socket, world, self.ends.flow, 0, &mut self.delivered) {
            Taken::More => Ok(()),
            Taken::End(_) => {
                // The flow has only one connection, so the listener must accept no other.
                world.rewatch(&self.listener, token, EventFlags::empty())?;
                self.connection = None;
                Ok(())
            }
        }
    }
}

/// Result of receiving from a connection.
pub enum Taken {
    /// The connection is still open.
    More,
    /// The connection has ended; true if its sender closed it regularly, false after an error.
    End(bool),
}

/// Receives data from a connection, and logs the total number of received bytes after each part.
pub fn take(
    socket: &OwnedFd,
    world: &mut World,
    flow: u32,
    connection: u32,
    delivered: &mut u64,
) -> Taken {
    let mut scratch = [0; 16 << 10];
    for _ in 0..TURN {
        match rustix::net::recv(socket, &mut scratch, rustix::net::RecvFlags::empty()) {
            Ok((0, _)) => return Taken::End(true),
            Ok((bytes, _)) => {
                *delivered += bytes as u64;
                world.log(flow, Kind::Delivered, *delivered, connection, world.now());
            }
            Err(error) if net::would_block(error) => return Taken::More,
            // The sender logs the cause of the error.
            Err(_) => return Taken::End(false),
        }
    }
    Taken::More
}
