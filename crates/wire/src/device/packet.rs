//! Packet sockets on existing interfaces: `packet(7)`, Linux `net/packet/af_packet.c`.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, SndBuf, SndBufForce};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, bind, getsockopt, setsockopt, socket};
use rustix::net::netdevice;

use super::error::Error;
use super::system;
use crate::vnet;

/// Size of the socket's send and receive buffers, in bytes. The default of 208 KiB holds only three
/// super-packets.
const SOCKET_BUFFER: usize = 16 << 20;

/// Bytes reserved in front of a received frame, so that a VLAN tag can be reinserted.
pub(super) const TAG: usize = 4;

/// The kernel's counters since the socket was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames that arrived, including dropped frames.
    pub received: u64,
    /// Frames dropped because the socket's receive buffer was full.
    pub dropped: u64,
}

/// An open packet socket.
#[derive(Debug)]
pub(super) struct Socket {
    socket: OwnedFd,
    statistics: Statistics,
}

impl Socket {
    /// Opens a socket on the interface `name` in the namespace of the calling thread.
    pub(super) fn open(name: &str) -> Result<Self, Error> {
        let open = || -> io::Result<OwnedFd> {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            // Without a protocol the socket receives nothing until it is bound to the interface.
            Ok(socket(AddressFamily::Packet, SockType::Raw, flags, None)?)
        };
        let socket = open().map_err(Error::at(name, "opening a packet socket"))?;
        let interface = netdevice::name_to_index(&socket, name)
            .map_err(|error| Error::at(name, "looking for the interface")(error.into()))?;
        set_up(&socket, interface).map_err(Error::at(name, "setting up its packet socket"))?;
        Ok(Self { socket, statistics: Statistics::default() })
    }

    /// Reads a frame and reinserts a VLAN tag, which the kernel delivers separately.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<Range<usize>> {
        const FRONT: usize = vnet::LENGTH + 12;
        let received = system::receive(self.as_fd(), &mut buffer[TAG..])?;
        if received.is_cut {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the frame is longer than the buffer",
            ));
        }
        let end = TAG + received.length;
        match received.vlan {
            Some([kind, tag]) if received.length >= FRONT => {
                buffer.copy_within(TAG..TAG + FRONT, 0);
                buffer[FRONT..FRONT + 2].copy_from_slice(&kind.to_be_bytes());
                buffer[FRONT + 2..FRONT + 4].copy_from_slice(&tag.to_be_bytes());
                Ok(0..end)
            }
            _ => Ok(TAG..end),
        }
    }

    /// Returns the counters since the socket was opened. Reading the kernel's counters clears them,
    /// so they are added up here.
    pub(super) fn statistics(&mut self) -> io::Result<Statistics> {
        let now = getsockopt(&self.socket, system::PacketStatistics)?;
        self.statistics.received += u64::from(now.tp_packets);
        self.statistics.dropped += u64::from(now.tp_drops);
        Ok(self.statistics)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn set_up(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    setsockopt(socket, system::PacketVnetHdr, &1)?;
    setsockopt(socket, system::PacketAuxdata, &1)?;
    setsockopt(socket, system::PacketIgnoreOutgoing, &1)?;
    // Exceeding the system's limit needs CAP_NET_ADMIN in the initial user namespace.
    if setsockopt(socket, RcvBufForce, &SOCKET_BUFFER).is_err() {
        setsockopt(socket, RcvBuf, &SOCKET_BUFFER)?;
    }
    if setsockopt(socket, SndBufForce, &SOCKET_BUFFER).is_err() {
        setsockopt(socket, SndBuf, &SOCKET_BUFFER)?;
    }
    setsockopt(socket, system::PacketMembership, &system::promiscuous(interface))?;
    bind(socket.as_raw_fd(), &system::every_packet(interface)?)?;
    Ok(())
}
