//! A client with its socket, which sends messages and reports progress.

use crate::io::{Inbox, SEGMENTS, Socket};
use crate::packet::{Code, DIGEST};
use crate::sender::{Counters, End, Part, Sender, Settings};
use crate::serve::random;
use sojourn_units::{EPOCH, MILLISECOND, Nanos};
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;

/// Longest wait without a check whether to continue.
const NAP: Nanos = 50 * MILLISECOND;
/// Largest length of one train: that of an IP packet.
const LONGEST: usize = 65_000;
/// Trains that are sent between two checks for received datagrams.
const TRAINS: usize = 4;
/// The kernel's receive buffer for acknowledgements, in bytes.
const ACKS: usize = 256 << 10;

/// Progress of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Counters.
    pub counters: Counters,
    /// Smoothed round-trip time; 0 before the first.
    pub rtt: Nanos,
    /// Congestion window in bytes.
    pub cwnd: u64,
}

/// Reason of a failure.
#[derive(Debug)]
pub enum SendError {
    /// The socket or the source of messages failed.
    Io(io::Error),
    /// The server does not answer.
    Silence,
    /// The server ended the connection.
    Server(Code),
    /// The server accepts messages up to this length only.
    TooLong(u32),
    /// The caller stopped the transfer.
    Stopped,
}

impl std::fmt::Display for SendError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Silence => {
                f.write_str("the server does not answer (is `sojourn udp serve` running there?)")
            }
            Self::Server(code) => f.write_str(code.text()),
            Self::TooLong(most) => {
                write!(f, "the server takes messages of up to {most} bytes only")
            }
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for SendError {}

impl From<io::Error> for SendError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Sends messages to a server until `next` has no more, and returns the server's checksum.
///
/// `next` writes one message of at most `length` bytes into the given memory, which may hold an
/// earlier message, and returns whether there was one. `progress` is called from time to time and
/// stops the transfer by returning `false`.
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
    let (mut told, mut more) = (0, true);
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
        if now - told >= NAP {
            told = now;
            if !progress(&client.progress()) {
                client.sender.abandon();
            }
        }
        if let Some(end) = client.sender.end() {
            // The server need not wait for more.
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

/// A client with its socket and clock.
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
            // Only acknowledgements arrive.
            socket: Socket::bind(here, ACKS)?,
            sender: Sender::new(u64::from_be_bytes(random()?), settings),
            inbox: Inbox::new(2),
            train: Train::default(),
            start: Instant::now(),
        })
    }

    /// Returns the time of the client's own clock, which does not begin at 0.
    pub(crate) fn now(&self) -> Nanos {
        self.start.elapsed().as_nanos() as Nanos + EPOCH
    }

    /// Returns the progress.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            counters: self.sender.counters(),
            rtt: self.sender.rtt(),
            cwnd: self.sender.cwnd(),
        }
    }

    /// Sends due datagrams and reads received ones; waits at most `most` if there are neither.
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

    /// Sends datagrams of one length in one call; the last may be shorter. Returns false if none
    /// was due.
    fn transmit(&mut self, now: Nanos) -> io::Result<bool> {
        self.train.fill(&mut self.sender, now, self.socket.train());
        self.train.send(&self.sender, &self.socket, self.to)?;
        Ok(!self.train.parts.is_empty())
    }
}

/// Datagrams of one length for one call; the last may be shorter. Payloads are not copied: the
/// kernel gathers them.
#[derive(Default)]
struct Train {
    heads: Vec<u8>,
    /// End of each datagram's head, its payload and its length.
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
            // A shorter datagram can only be the last; a longer one is sent alone.
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
