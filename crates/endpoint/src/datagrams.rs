//! Packet sources over UDP: senders and receivers of datagrams.

use crate::log::Kind;
use crate::net::{self, Ends, World};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use rustix::net::SendFlags;
use sojourn_traffic::{Emission, PacketSource};
use sojourn_units::{Nanos, SECOND};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};

/// Length in bytes of the datagram's number, at the start of the payload.
pub const NUMBER: usize = 8;
/// Longest plausible waiting time of a datagram in a socket, in nanoseconds. A longer time means
/// that the wall clock was set in the meantime; then the time of receiving is used as arrival time.
const LONGEST_WAIT: u64 = 60 * SECOND;
/// Maximum number of datagrams that one flow sends or receives before the other flows of the host
/// are served.
const TURN: usize = 64;

/// The sending end of a flow over UDP.
#[derive(Debug)]
pub struct Sender {
    ends: Ends,
    socket: OwnedFd,
    source: PacketSource,
    next: Emission,
    seq: u64,
    /// Time from which on the sender sends no more datagrams.
    last: Nanos,
    buffer: Vec<u8>,
}

impl Sender {
    /// Returns a sender of those packets of `source` that are due before `last`. `longest` is the
    /// largest payload in bytes.
    pub fn new(
        ends: Ends,
        mut source: PacketSource,
        last: Nanos,
        longest: u32,
    ) -> io::Result<Self> {
        let socket = net::datagram_sender(&ends)?;
        let next = source.next_packet();
        let buffer = vec![0; longest.max(1) as usize];
        Ok(Self { ends, socket, source, next, seq: 0, last, buffer })
    }

    /// Returns the time when the next datagram is due; `None` after the last one.
    pub fn deadline(&self) -> Option<Nanos> {
        (self.next.at < self.last).then_some(self.next.at)
    }

    /// Sends the datagrams that are due, at most [`TURN`].
    pub fn due(&mut self, world: &mut World) {
        for _ in 0..TURN {
            let now = world.now();
            if self.next.at > now || self.next.at >= self.last {
                return;
            }
            let length = (self.next.payload as usize).min(self.buffer.len());
            let datagram = &mut self.buffer[..length];
            write_number(datagram, self.seq);
            let flow = self.ends.flow;
            match send(&self.socket, datagram) {
                Ok(()) => world.log(flow, Kind::Sent, self.seq, length as u32, now),
                Err(error) => {
                    let number = error.raw_os_error() as u32;
                    world.log(flow, Kind::NotSent, self.seq, number, now);
                }
            }
            self.seq += 1;
            self.next = self.source.next_packet();
        }
    }
}

/// Sends a datagram. The error "connection refused" belongs to an earlier datagram, for whose port
/// there was no listener. The call has then sent nothing, so the datagram is sent again.
fn send(socket: &OwnedFd, datagram: &[u8]) -> rustix::io::Result<()> {
    match rustix::net::send(socket, datagram, SendFlags::NOSIGNAL) {
        Err(rustix::io::Errno::CONNREFUSED) => {
            rustix::net::send(socket, datagram, SendFlags::NOSIGNAL).map(|_| ())
        }
        other => other.map(|_| ()),
    }
}

/// Writes the number `seq` at the beginning of the datagram in network byte order; a datagram with
/// fewer than [`NUMBER`] bytes carries only the low bytes of `seq`.
fn write_number(datagram: &mut [u8], seq: u64) {
    let room = datagram.len().min(NUMBER);
    datagram[..room].copy_from_slice(&seq.to_be_bytes()[NUMBER - room..]);
}

/// Returns the number that the bytes `carried` contain. With fewer than eight bytes, the high bytes
/// of the number are missing and count as 0.
fn read_number(carried: &[u8]) -> u64 {
    carried.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The receiving end of a flow over UDP.
#[derive(Debug)]
pub struct Receiver {
    ends: Ends,
    socket: OwnedFd,
    control: Vec<u8>,
    overflowed: u32,
}

impl Receiver {
    /// Returns a receiver that listens from this call on.
    pub fn new(ends: Ends) -> io::Result<Self> {
        let socket = net::datagram_receiver(&ends)?;
        let control = nix::cmsg_space!(nix::sys::time::TimeSpec, u32);
        Ok(Self { ends, socket, control, overflowed: 0 })
    }

    /// Returns the socket that receives the datagrams.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Receives and logs the datagrams that wait in the socket, at most [`TURN`].
    pub fn ready(&mut self, world: &mut World) -> io::Result<()> {
        for _ in 0..TURN {
            let mut carried = [0; NUMBER];
            let mut parts = [IoSliceMut::new(&mut carried)];
            // With `MSG_TRUNC`, `message.bytes` is the length of the datagram, even if it is larger
            // than the buffer.
            let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
            let fd = self.socket.as_raw_fd();
            let message = match recvmsg::<()>(fd, &mut parts, Some(&mut self.control), flags) {
                Ok(message) => message,
                Err(nix::errno::Errno::EAGAIN) => return Ok(()),
                Err(nix::errno::Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let (now, wall) = (world.now(), net::wall());
            let length = message.bytes;
            let (mut at, mut overflowed) = (now, self.overflowed);
            for control in message.cmsgs()? {
                match control {
                    // The kernel's timestamp is in wall-clock time, but the log uses the run's
                    // clock. Therefore only the age of the datagram is taken from the timestamp.
                    ControlMessageOwned::ScmTimestampns(time) => {
                        let came = time.tv_sec() as u64 * SECOND + time.tv_nsec() as u64;
                        let ago = wall.saturating_sub(came);
                        at = if ago < LONGEST_WAIT { now.saturating_sub(ago) } else { now };
                    }
                    ControlMessageOwned::RxqOvfl(count) => overflowed = count,
                    _ => {}
                }
            }
            let flow = self.ends.flow;
            let seq = read_number(&carried[..length.min(NUMBER)]);
            world.log(flow, Kind::Received, seq, length as u32, at);
            if overflowed != self.overflowed {
                self.overflowed = overflowed;
                world.log(flow, Kind::Overflowed, u64::from(overflowed), 0, at);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_there_is_room() {
        let mut datagram = [9; 12];
        write_number(&mut datagram, 0x0102_0304_0506_0708);
        assert_eq!(datagram, [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9]);
        assert_eq!(read_number(&datagram[..8]), 0x0102_0304_0506_0708);
        write_number(&mut datagram[..3], 0x0102_0304_0506_0708);
        assert_eq!(read_number(&datagram[..3]), 0x06_0708);
        write_number(&mut [], 1);
        assert_eq!(read_number(&[]), 0);
    }
}
