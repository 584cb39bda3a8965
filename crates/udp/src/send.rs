//! A client with its socket, which sends messages and reports progress.

use crate::io::{Inbox, SEGMENTS, Socket};
use crate::packet::{Code, DIGEST};
use crate::sender::{Counters, End, Part, Sender, Settings};
use crate::serve::random;
use sojourn_units::{EPOCH, MILLISECOND, Nanos};
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;

/// Minimum time between two calls of `progress`, and maximum wait for a datagram, in nanoseconds.
const NAP: Nanos = 50 * MILLISECOND;
/// Maximum length of a train in bytes, so that it fits into one IP packet.
const LONGEST: usize = 65_000;
/// Maximum number of trains sent between two checks for received datagrams.
const TRAINS: usize = 4;
/// Size of the kernel's receive buffer, which holds only acknowledgements, in bytes.
const ACKS: usize = 256 << 10;

/// Progress of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Counters of the client.
    pub counters: Counters,
    /// Smoothed round-trip time in nanoseconds; 0 before the first sample.
    pub rtt: Nanos,
    /// Congestion window in bytes.
    pub cwnd: u64,
}

/// Reason why a transfer failed.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The socket or the source of messages failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server does not answer.
    #[error("the server does not answer; check that `sojourn udp serve` runs at this address")]
    Silence,
    /// The server ended the connection.
    #[error("{}", .0.text())]
    Server(Code),
    /// A message is longer than the server accepts; the value is the maximum length in bytes.
    #[error("the server accepts only messages of up to {0} bytes")]
    TooLong(u32),
    /// The caller stopped the transfer.
    #[error("the transfer was stopped")]
    Stopped,
}

/// Sends messages to a server until `next` returns no more, and returns the checksum of the
/// server's handler.
///
/// `next` writes one message of at most `length` bytes into the given memory, which may contain an
/// earlier message, and returns whether there was a message. `progress` is called about every 50
/// ms. If it returns false, the transfer stops.
///
/// # Errors
/// See [`SendError`].
pub fn send(
    to: SocketAddr,
    settings: Settings,
    length: usize,
    mut next: impl FnMut(&mut Vec<u8>) -> io::Result<bool>,
    mut progress: impl FnMut(&Progress) -> bool,
) -> Result<([u8; DIGEST], Progress), SendError> {
    let mut client = Client::new(to, settings)?;
    let (mut reported, mut more) = (0, true);
    loop {
        let now = client.now();
        while more && client.sender.has_room(length) {
            let mut message = client.sender.spare();
            if next(&mut message)? {
                let pushed = client.sender.push(message);
                pushed.map_err(|_| SendError::TooLong(length as u32))?;
            } else {
                client.sender.finish();
                more = false;
            }
        }
        if now - reported >= NAP {
            reported = now;
            if !progress(&client.progress()) {
                client.sender.abandon();
            }
        }
        if let Some(end) = client.sender.end() {
            // Sends a message that ends the connection, so the server need not wait for a timeout.
            client.transmit(now)?;
            return match end {
                End::Server(Code::Done, digest) => Ok((digest, client.progress())),
                End::Server(code, _) => Err(SendError::Server(code)),
                End::Silence => Err(SendError::Silence),
                End::Abandoned => Err(SendError::Stopped),
                End::TooLong(most) => Err(SendError::TooLong(most)),
            };
        }
        client.step(now, NAP)?;
    }
}

/// A client with its socket and its clock.
pub(crate) struct Client {
    to: SocketAddr,
    socket: Socket,
    pub(crate) sender: Sender,
    inbox: Inbox,
    train: Train,
    start: Instant,
}

impl Client {
    pub(crate) fn new(to: SocketAddr, settings: Settings) -> io::Result<Self> {
        let here: SocketAddr = if to.is_ipv4() {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        };
        Ok(Self {
            to,
            // The client receives only acknowledgements.
            socket: Socket::bind(here, ACKS)?,
            sender: Sender::new(u64::from_be_bytes(random()?), settings),
            inbox: Inbox::new(2),
            train: Train::default(),
            start: Instant::now(),
        })
    }

    /// Returns the time of the client's own clock, which begins at [`EPOCH`].
    pub(crate) fn now(&self) -> Nanos {
        self.start.elapsed().as_nanos() as Nanos + EPOCH
    }

    /// Returns the client's progress.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            counters: self.sender.counters(),
            rtt: self.sender.rtt(),
            cwnd: self.sender.cwnd(),
        }
    }

    /// Sends datagrams that are due, and processes received datagrams. If no datagram was sent,
    /// waits for a datagram for at most `most` nanoseconds.
    pub(crate) fn step(&mut self, now: Nanos, most: Nanos) -> io::Result<()> {
        let mut sent = false;
        for _ in 0..TRAINS {
            if !self.transmit(now)? {
                break;
            }
            sent = true;
        }
        let wait = match self.sender.wake() {
            _ if sent => 0,
            Some(wake) => wake.saturating_sub(now).min(most),
            None => 0,
        };
        if wait > 0 && !self.socket.wait(wait)? {
            return Ok(());
        }
        let n = self.inbox.receive(&self.socket)?;
        if n > 0 {
            let now = self.now();
            for (_, datagrams) in self.inbox.trains(n).filter(|(from, _)| *from == self.to) {
                for datagram in datagrams {
                    self.sender.handle(now, datagram);
                }
            }
        }
        Ok(())
    }

    /// Sends a train of datagrams in one call. Returns false if no datagram was due.
    fn transmit(&mut self, now: Nanos) -> io::Result<bool> {
        self.train.fill(&mut self.sender, now, self.socket.train());
        self.train.send(&self.sender, &self.socket, self.to)?;
        Ok(!self.train.parts.is_empty())
    }
}

/// A train: datagrams of one length for one call, of which the last may be shorter. Payloads are
/// not copied; the kernel collects them.
#[derive(Default)]
struct Train {
    heads: Vec<u8>,
    /// For each datagram: end of its head in `heads`, its payload, and its total length in bytes.
    parts: Vec<(usize, Part, usize)>,
}

impl Train {
    fn fill(&mut self, sender: &mut Sender, now: Nanos, most: usize) {
        self.heads.clear();
        self.parts.clear();
        let (mut segment, mut sum) = (0, 0);
        while self.parts.len() < most && sum + segment <= LONGEST {
            let start = self.heads.len();
            let Some(part) = sender.poll_head(now, &mut self.heads) else { break };
            let length = self.heads.len() - start + part.length();
            self.parts.push((self.heads.len(), part, length));
            if segment == 0 {
                segment = length;
            }
            sum += length;
            // A shorter datagram must be the last of the train. A longer one is sent by itself.
            if length != segment {
                break;
            }
        }
    }

    fn send(&self, sender: &Sender, socket: &Socket, to: SocketAddr) -> io::Result<()> {
        let Some(&(_, _, segment)) = self.parts.first() else { return Ok(()) };
        let longer = self.parts.last().is_some_and(|&(_, _, length)| length > segment);
        let (together, alone) = self.parts.split_at(self.parts.len() - usize::from(longer));
        let mut start = 0;
        for parts in [together, alone] {
            let mut slices = [IoSlice::new(&[]); 2 * SEGMENTS];
            let (mut count, mut sum) = (0, 0);
            for &(end, part, length) in parts {
                slices[count] = IoSlice::new(&self.heads[start..end]);
                count += 1;
                if part.length() > 0 {
                    slices[count] = IoSlice::new(sender.payload(part));
                    count += 1;
                }
                (start, sum) = (end, sum + length);
            }
            if let Some(&(_, _, segment)) = parts.first() {
                socket.send_train(to, &slices[..count], segment, sum)?;
            }
        }
        Ok(())
    }
}
