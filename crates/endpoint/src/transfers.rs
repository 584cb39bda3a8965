//! Transfers over TCP: one after another, each on a new connection.
//!
//! The sender opens the connection when the transfer is due, writes the data, and shuts down its
//! direction of the connection, so that the last data have the FIN as in the simulator. The
//! receiver answers with the arrival time of the last byte. The completion time is defined as in
//! the simulator: it begins when the transfer is due, includes the opening of the connection, and
//! ends with the arrival of the last byte. The think time also begins with this arrival, although
//! the sender receives the answer half a round-trip time later.

use crate::log::Kind;
use crate::net::{self, Ends, World, ZEROS};
use crate::writes::{Taken, take};
use rustix::event::epoll::EventFlags;
use rustix::net::{RecvFlags, SendFlags, Shutdown, sockopt};
use sojourn_traffic::transfer::{Job, Transfers};
use sojourn_units::Nanos;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

/// Size in bytes of the receiver's answer, which is a time of the run's clock in nanoseconds.
const ANSWER: usize = 8;

/// The sending end of a flow with transfers.
#[derive(Debug)]
pub struct Sender {
    ends: Ends,
    tcp: sojourn_tcp::Params,
    jobs: Transfers,
    job: Option<Job>,
    /// Time from which on no transfer starts.
    last: Nanos,
    count: u32,
    active: Option<Active>,
}

#[derive(Debug)]
struct Active {
    socket: OwnedFd,
    left: u64,
    connected: bool,
    said: bool,
    answer: [u8; ANSWER],
    answered: usize,
}

impl Sender {
    /// Returns a sender of the transfers in `jobs` that are due from `start` on and before `last`.
    pub fn new(
        ends: Ends,
        tcp: sojourn_tcp::Params,
        mut jobs: Transfers,
        start: Nanos,
        last: Nanos,
    ) -> Self {
        let job = jobs.after(start).filter(|job| job.at < last);
        Self { ends, tcp, jobs, job, last, count: 0, active: None }
    }

    /// Returns the time when the next transfer is due; `None` while a transfer is active, or after
    /// the last one.
    pub fn deadline(&self) -> Option<Nanos> {
        if self.active.is_some() { None } else { self.job.map(|job| job.at) }
    }

    /// Starts the transfer that is due.
    pub fn due(&mut self, world: &mut World, token: u64) {
        let Some(job) = self.job.filter(|job| self.active.is_none() && job.at <= world.now())
        else {
            return;
        };
        world.log(self.ends.flow, Kind::Due, job.bytes, self.count, job.at);
        let flags = EventFlags::OUT | EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        let opened = net::connect(&self.ends, &self.tcp)
            .and_then(|socket| world.watch(&socket, token, flags).map(|()| socket));
        match opened {
            Ok(socket) => {
                self.active = Some(Active {
                    socket,
                    left: job.bytes,
                    connected: false,
                    said: false,
                    answer: [0; ANSWER],
                    answered: 0,
                });
            }
            Err(error) => self.failed(world, &error),
        }
    }

    /// Handles an event of the socket: the connection has opened, can be written again, has an
    /// answer to read, or has failed.
    pub fn ready(&mut self, world: &mut World) {
        let Some(active) = &mut self.active else { return };
        match active.go_on() {
            Ok(opened) => {
                if opened {
                    world.log(self.ends.flow, Kind::Connected, 0, self.count, world.now());
                }
                if active.answered == ANSWER {
                    let finished = u64::from_be_bytes(active.answer);
                    self.next(finished);
                }
            }
            Err(error) => self.failed(world, &error),
        }
    }

    /// Logs the failure of the active transfer, and prepares the next transfer.
    fn failed(&mut self, world: &mut World, error: &io::Error) {
        let now = world.now();
        let number = u64::from(self.count);
        world.log(self.ends.flow, Kind::Failed, number, net::number(error), now);
        self.next(now);
    }

    fn next(&mut self, finished: Nanos) {
        self.active = None;
        self.count += 1;
        self.job = self.jobs.after(finished).filter(|job| job.at < self.last);
    }
}

impl Active {
    /// Writes the data that the kernel accepts, and reads the answer. Returns whether the
    /// connection has just opened.
    fn go_on(&mut self) -> io::Result<bool> {
        sockopt::socket_error(&self.socket)??;
        if !self.connected && rustix::net::getpeername(&self.socket).is_err() {
            return Ok(false);
        }
        let opened = !std::mem::replace(&mut self.connected, true);
        while self.left > 0 {
            let part = &ZEROS[..self.left.min(ZEROS.len() as u64) as usize];
            // The kernel waits with a part of a segment, which the FIN then joins.
            match rustix::net::send(&self.socket, part, SendFlags::NOSIGNAL | SendFlags::MORE) {
                Ok(taken) => self.left -= taken as u64,
                Err(error) if net::would_block(error) => return Ok(opened),
                Err(error) => return Err(error.into()),
            }
        }
        if !std::mem::replace(&mut self.said, true) {
            rustix::net::shutdown(&self.socket, Shutdown::Write)?;
        }
        while self.answered < ANSWER {
            let rest = &mut self.answer[self.answered..];
            match rustix::net::recv(&self.socket, rest, RecvFlags::empty()) {
                Ok((0, _)) => return Err(rustix::io::Errno::CONNRESET.into()),
                Ok((bytes, _)) => self.answered += bytes,
                Err(error) if net::would_block(error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(opened)
    }
}

/// The receiving end of a flow with transfers.
#[derive(Debug)]
pub struct Receiver {
    ends: Ends,
    listener: OwnedFd,
    open: BTreeMap<u32, Incoming>,
    accepted: u32,
}

#[derive(Debug)]
struct Incoming {
    socket: OwnedFd,
    delivered: u64,
    last: Nanos,
}

impl Receiver {
    /// Returns a receiver that listens from this call on.
    pub fn new(ends: Ends) -> io::Result<Self> {
        Ok(Self { ends, listener: net::listener(&ends)?, open: BTreeMap::new(), accepted: 0 })
    }

    /// Returns the listening socket.
    pub fn socket(&self) -> &OwnedFd {
        &self.listener
    }

    /// Accepts all waiting connections.
    pub fn ready(&mut self, world: &mut World, token: impl Fn(u32) -> u64) -> io::Result<()> {
        while let Some(socket) = net::accept(&self.listener)? {
            let number = self.accepted;
            self.accepted += 1;
            world.watch(&socket, token(number), EventFlags::IN | EventFlags::RDHUP)?;
            let last = world.now();
            self.open.insert(number, Incoming { socket, delivered: 0, last });
        }
        Ok(())
    }

    /// Receives data from connection `number`, and sends the answer when the transfer is complete.
    pub fn take(&mut self, world: &mut World, number: u32) {
        let Some(incoming) = self.open.get_mut(&number) else { return };
        let before = incoming.delivered;
        let flow = self.ends.flow;
        let now = world.now();
        let taken = take(&incoming.socket, world, flow, number, &mut incoming.delivered);
        if incoming.delivered > before {
            incoming.last = now;
        }
        if let Taken::End(whole) = taken {
            if whole {
                let (bytes, last) = (incoming.delivered, incoming.last);
                world.log(flow, Kind::Completed, bytes, number, last);
                // The send buffer of this socket is empty, so it has space for the eight bytes of
                // the answer.
                let answer = last.to_be_bytes();
                let _ = rustix::net::send(&incoming.socket, &answer, SendFlags::NOSIGNAL);
            }
            self.open.remove(&number);
        }
    }
}
