//! Packet sources over TCP: each emission is a write into the stream of one connection.
//!
//! The rules are the simulator's. A write goes into the send buffer whole, which holds what is
//! written and not yet acknowledged; one that finds no room is refused, or, if the socket is to be
//! `blocking`, waits for room and then makes up for those that were due meanwhile. What the kernel
//! does not take at once, for want of memory, is kept here and counts as written.

use crate::log::Kind;
use crate::net::{self, Ends, World, ZEROS};
use crate::sys;
use rustix::event::epoll::EventFlags;
use rustix::net::{SendFlags, Shutdown, sockopt};
use sojourn_traffic::{Emission, PacketSource};
use sojourn_units::{MILLISECOND, Nanos};
use std::io;
use std::os::fd::OwnedFd;

/// How often room is looked for while the application waits: nothing tells that there is some.
const LOOK: Nanos = MILLISECOND / 2;
/// Writes made before other flows have their turn.
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
    /// Bytes that the kernel has not taken yet.
    pending: u64,
    /// Since when it waits for room: when to look again.
    look: Option<Nanos>,
}

#[derive(Debug)]
enum State {
    /// Not begun.
    Idle,
    /// Open, or about to be.
    Open(OwnedFd),
    /// The last write was made; it goes when all is with the kernel.
    Closing(OwnedFd),
    /// Everything is said; the socket stays open for the kernel to repeat.
    Closed(OwnedFd),
    /// Failed.
    Gone,
}

impl Sender {
    /// A flow whose connection opens at `start`, if there is a write before `stop` and `end`.
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

    /// When it acts next, if nothing else happens.
    pub fn deadline(&self) -> Option<Nanos> {
        let at = match &self.state {
            State::Idle => self.start,
            State::Open(_) => self.look.unwrap_or(self.next.at),
            State::Closing(_) | State::Closed(_) | State::Gone => return None,
        };
        (at < self.end).then_some(at)
    }

    /// Acts: opens the connection, makes the writes that are due.
    pub fn due(&mut self, world: &mut World, token: u64) {
        let outcome = match &self.state {
            State::Idle => self.open(world, token).and_then(|()| self.write(world)),
            State::Open(_) => self.write(world),
            _ => Ok(()),
        };
        self.settle(world, outcome);
    }

    /// The socket is open, takes bytes again, or is broken.
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
        // Edges only: a socket that has room is of no interest until it had none.
        world.watch(&socket, token, EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET)?;
        self.state = State::Open(socket);
        Ok(())
    }

    /// Makes the writes that are due.
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

    /// The application has written all.
    fn close(&mut self, world: &mut World, now: Nanos) -> io::Result<()> {
        if let State::Open(socket) = std::mem::replace(&mut self.state, State::Gone) {
            world.log(self.ends.flow, Kind::Closed, self.seq, 0, now);
            self.state = State::Closing(socket);
        }
        self.flush()
    }

    /// Hands the kernel what it takes.
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
            // Nothing may be said before the connection is open.
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

/// The receiving end of a flow: it takes one connection, and counts what it brings.
#[derive(Debug)]
pub struct Receiver {
    ends: Ends,
    listener: OwnedFd,
    connection: Option<OwnedFd>,
    delivered: u64,
}

impl Receiver {
    /// It listens from now on.
    pub fn new(ends: Ends) -> io::Result<Self> {
        Ok(Self { ends, listener: net::listener(&ends)?, connection: None, delivered: 0 })
    }

    /// Its listening socket.
    pub fn socket(&self) -> &OwnedFd {
        &self.listener
    }

    /// Takes the connection, or what has come by it.
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
                // No other connection is its own.
                world.rewatch(&self.listener, token, EventFlags::empty())?;
                self.connection = None;
                Ok(())
            }
        }
    }
}

/// What a connection gave.
pub enum Taken {
    /// More may come.
    More,
    /// Nothing will; whether its sender said so.
    End(bool),
}

/// Takes what has come by a connection, and logs how much it is in all.
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
            // Its sender knows why.
            Err(_) => return Taken::End(false),
        }
    }
    Taken::More
}
