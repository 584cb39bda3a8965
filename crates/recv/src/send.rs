//! A client with its socket: sends what it reads, and tells how far it is.

use crate::io::{Inbox, Socket};
use crate::packet::{Code, DIGEST};
use crate::sender::{Counters, End, Sender, Settings};
use crate::serve::random;
use sojourn_units::{MILLISECOND, Nanos, SECOND};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;

/// Longest wait without a look at whether to go on.
const NAP: Nanos = 50 * MILLISECOND;

/// How far a client is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What it has counted.
    pub counters: Counters,
    /// Smoothed round-trip time; 0 before the first.
    pub rtt: Nanos,
    /// Congestion window in bytes.
    pub cwnd: u64,
}

/// Why sending failed.
#[derive(Debug)]
pub enum SendError {
    /// The socket, or what was to be sent, failed.
    Io(io::Error),
    /// The server is silent.
    Silence,
    /// The server ended it.
    Server(Code),
    /// The server takes messages up to this length only.
    TooLong(u32),
    /// The caller did not want to go on.
    Stopped,
}

impl std::fmt::Display for SendError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Silence => f.write_str("the server does not answer"),
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

/// Sends messages to a server until `next` has no more, and gives the server's checksum.
///
/// `next` makes one message of at most `length` bytes; `progress` is called now and then, and ends
/// it by `false`.
///
/// # Errors
/// See [`SendError`].
pub fn send(
    to: SocketAddr,
    settings: Settings,
    length: usize,
    mut next: impl FnMut() -> io::Result<Option<Vec<u8>>>,
    mut progress: impl FnMut(&Progress) -> bool,
) -> Result<([u8; DIGEST], Progress), SendError> {
    let here: SocketAddr = if to.is_ipv4() {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    let socket = Socket::bind(here)?;
    let mut sender = Sender::new(u64::from_be_bytes(random()?), settings);
    let (mut inbox, mut train) = (Inbox::new(), Vec::with_capacity(1 << 16));
    let start = Instant::now();
    let mut told = 0;
    let mut more = true;
    loop {
        let now = start.elapsed().as_nanos() as Nanos + SECOND;
        while more && sender.has_room(length) {
            if let Some(message) = next()? {
                sender.push(message).map_err(|_| SendError::TooLong(length as u32))?;
            } else {
                sender.finish();
                more = false;
            }
        }
        let state =
            Progress { counters: sender.counters(), rtt: sender.rtt(), cwnd: sender.cwnd() };
        if now - told >= NAP {
            told = now;
            if !progress(&state) {
                sender.abandon();
            }
        }
        if let Some(end) = sender.end() {
            // The server need not wait for more.
            send_train(&socket, &mut sender, now, to, &mut train)?;
            return match end {
                End::Server(Code::Done, digest) => Ok((digest, state)),
                End::Server(code, _) => Err(SendError::Server(code)),
                End::Silence => Err(SendError::Silence),
                End::Abandoned => Err(SendError::Stopped),
                End::TooLong(most) => Err(SendError::TooLong(most)),
            };
        }
        let sent = send_train(&socket, &mut sender, now, to, &mut train)?;
        let wait = match sender.wake(now) {
            _ if sent => 0,
            Some(wake) => wake.saturating_sub(now).min(NAP),
            None => 0,
        };
        if wait > 0 && !socket.wait(wait)? {
            continue;
        }
        let n = inbox.receive(&socket)?;
        let now = start.elapsed().as_nanos() as Nanos + SECOND;
        for (from, datagram) in inbox.datagrams(n) {
            if from == to {
                sender.handle(now, datagram);
            }
        }
    }
}

/// Sends datagrams of one length in one call, the last possibly shorter. False if none was due.
fn send_train(
    socket: &Socket,
    sender: &mut Sender,
    now: Nanos,
    to: SocketAddr,
    train: &mut Vec<u8>,
) -> io::Result<bool> {
    train.clear();
    let (mut segment, mut start) = (0, 0);
    for _ in 0..socket.train() {
        if !sender.poll(now, train) {
            break;
        }
        let length = train.len() - start;
        if segment == 0 {
            segment = length;
        }
        if length > segment {
            // Longer than those before: they go first, and it goes alone.
            socket.send(to, &train[..start], segment)?;
            train.drain(..start);
            segment = length;
            break;
        }
        start = train.len();
        if length < segment || train.len() + segment > 65_000 {
            break;
        }
    }
    if train.is_empty() {
        return Ok(false);
    }
    socket.send(to, train, segment)?;
    Ok(true)
}
