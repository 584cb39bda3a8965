//! Packet sources over UDP: senders and receivers of datagrams.

use crate::log::Kind;
use crate::net::{self, Ends, World};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use rustix::net::SendFlags;
use sojourn_traffic::{Emission, PacketSource};
use sojourn_units::{Nanos, SECOND};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes of a datagram that carry its number.
pub const NUMBER: usize = 8;
/// Longest plausible wait of a datagram in a socket, in nanoseconds: a longer wait means that the
/// wall clock was set.
const LONGEST_WAIT: u64 = 60 * SECOND;
/// Datagrams that one flow sends or receives before other flows have their turn.
const TURN: usize = 64;

/// The sending end of a flow.
#[derive(Debug)]
pub struct Sender {
    ends: Ends,
    socket: OwnedFd,
    source: PacketSource,
    next: Emission,
    seq: u64,
    /// Time before which it sends.
    last: Nanos,
    buffer: Vec<u8>,
}

impl Sender {
    /// Returns the sender of the packets from `source` that are due before `last`; `longest` is the
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

    /// Returns the time of the next datagram.
    pub fn deadline(&self) -> Option<Nanos> {
        (self.next.at < self.last).then_some(self.next.at)
    }

    /// Sends the datagrams that are due.
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

/// Sends a datagram. A reported refusal belongs to an earlier datagram, which found no listener, so
/// the datagram is sent again.
fn send(socket: &OwnedFd, datagram: &[u8]) -> rustix::io::Result<()> {
    match rustix::net::send(socket, datagram, SendFlags::NOSIGNAL) {
        Err(rustix::io::Errno::CONNREFUSED) => {
            rustix::net::send(socket, datagram, SendFlags::NOSIGNAL).map(|_| ())
        }
        other => other.map(|_| ()),
    }
}

/// Writes the low bytes of a number at the beginning of the datagram, as many as fit.
fn write_number(datagram: &mut [u8], seq: u64) {
    let room = datagram.len().min(NUMBER);
    datagram[..room].copy_from_slice(&seq.to_be_bytes()[NUMBER - room..]);
}

/// Returns the number in `carried`; fewer than eight bytes lack its high bytes.
fn read_number(carried: &[u8]) -> u64 {
    carried.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The receiving end of a flow.
#[derive(Debug)]
pub struct Receiver {
    ends: Ends,
    socket: OwnedFd,
    control: Vec<u8>,
    overflowed: u32,
}

impl Receiver {
    /// Returns a receiver that listens from now on.
    pub fn new(ends: Ends) -> io::Result<Self> {
        let socket = net::datagram_receiver(&ends)?;
        let control = nix::cmsg_space!(nix::sys::time::TimeSpec, u32);
        Ok(Self { ends, socket, control, overflowed: 0 })
    }

    /// Returns the socket.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Receives the waiting datagrams and logs them.
    pub fn ready(&mut self, world: &mut World) -> io::Result<()> {
        for _ in 0..TURN {
            let mut carried = [0; NUMBER];
            let mut parts = [IoSliceMut::new(&mut carried)];
            // With `MSG_TRUNC` the length is that of the datagram, although the buffer is smaller.
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
                    // The timestamp is from the wall clock: only the age of the datagram is used.
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
