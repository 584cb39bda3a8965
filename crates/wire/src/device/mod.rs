//! Devices that real packets come from and go to.
//!
//! A TUN or TAP device is created by us inside a network namespace and vanishes with us; a packet socket
//! listens and sends on an interface that exists. Both are opened by a short-lived thread that enters the
//! namespace, so the caller's own namespace never changes; a device works from any thread afterwards.
//! Every frame has a [`VnetHeader`] in front. Nothing blocks: wait for readiness by the descriptor.

mod error;
mod namespace;
mod packet;
mod system;
mod tun;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use crate::headers::Framing;
use crate::vnet::{self, VnetHeader};
use error::check_name;

pub use error::Error;
pub use namespace::within;
pub use packet::Statistics;
pub use tun::{Options, Presence};

/// Bytes that a buffer for [`Device::read`] must have: header, spare room for a VLAN tag, Ethernet
/// header with tags, and the longest datagram.
pub const BUFFER: usize = vnet::LENGTH + 4 + 22 + 65535 + 40;

/// A frame that was read.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Its header.
    pub vnet: VnetHeader,
    /// Where in the buffer the frame itself begins, behind the header.
    pub start: usize,
    /// The frame.
    pub bytes: &'a mut [u8],
}

/// An open device.
#[derive(Debug)]
pub struct Device {
    name: String,
    framing: Framing,
    takes_udp: bool,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Tun(tun::Tun),
    Packet(packet::Socket),
}

impl Device {
    /// Creates, or attaches to, a TUN device (frames begin with the IP header) in the namespace, or in
    /// that of the caller.
    ///
    /// # Errors
    /// A bad name; without the rights; if the name is in use, or not there to attach to.
    pub fn tun(options: &Options<'_>, namespace: Option<BorrowedFd<'_>>) -> Result<Self, Error> {
        Self::with(options, Framing::Ip, namespace)
    }

    /// Creates, or attaches to, a TAP device (frames begin with the Ethernet header).
    ///
    /// # Errors
    /// As [`Device::tun`].
    pub fn tap(options: &Options<'_>, namespace: Option<BorrowedFd<'_>>) -> Result<Self, Error> {
        Self::with(options, Framing::Ethernet, namespace)
    }

    fn with(
        options: &Options<'_>,
        framing: Framing,
        namespace: Option<BorrowedFd<'_>>,
    ) -> Result<Self, Error> {
        check_name(options.name)?;
        let tun = within(namespace, || tun::Tun::open(options, framing))
            .map_err(Error::at(options.name, namespace::ENTERING))??;
        Ok(Self {
            name: options.name.to_owned(),
            framing,
            takes_udp: tun.takes_udp(),
            kind: Kind::Tun(tun),
        })
    }

    /// Opens a packet socket on the interface `name`, which must exist, and sets it promiscuous for as
    /// long as the socket is open. The host's own stack sees received packets too, unless the interface
    /// has no addresses.
    ///
    /// # Errors
    /// A bad name; without the rights; if there is no such interface.
    pub fn packet(name: &str, namespace: Option<BorrowedFd<'_>>) -> Result<Self, Error> {
        check_name(name)?;
        let socket = within(namespace, || packet::Socket::open(name))
            .map_err(Error::at(name, namespace::ENTERING))??;
        // Sending UDP super-packets would rely on what the interface's driver makes of them.
        let kind = Kind::Packet(socket);
        Ok(Self { name: name.to_owned(), framing: Framing::Ethernet, takes_udp: false, kind })
    }

    /// Returns the interface's name in its namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the header of its frames.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns whether it takes super-packets of UDP datagrams (Linux 6.2 and later).
    pub fn takes_udp(&self) -> bool {
        self.takes_udp
    }

    /// Reads the next frame into `buffer` of [`BUFFER`] bytes; returns `None` if no frame waits.
    ///
    /// # Errors
    /// What the system says; `InvalidData` for a frame that did not fit or came without its header,
    /// which is thrown away: the next call reads the one after it.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<Frame<'b>>> {
        let read = match &self.kind {
            Kind::Tun(tun) => tun.read(buffer),
            Kind::Packet(socket) => socket.read(buffer),
        };
        match read {
            Ok(range) => {
                let tagged = range.start == 0;
                let start = range.start + vnet::LENGTH;
                let bytes = &mut buffer[range];
                let Some((header, bytes)) = bytes.split_first_chunk_mut::<{ vnet::LENGTH }>()
                else {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "a frame without header",
                    ));
                };
                let mut vnet = VnetHeader::parse(*header);
                // The kernel's place is that in the frame without the tag that was put back.
                if let (Kind::Packet(_), true, Some(partial)) =
                    (&self.kind, tagged, &mut vnet.partial)
                {
                    partial.start = partial.start.saturating_add(packet::TAG as u16);
                }
                Ok(Some(Frame { vnet, start, bytes }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a frame with its header.
    ///
    /// # Errors
    /// `WouldBlock` or `ENOBUFS` if the interface's queue is full, `EIO` if it is down, `EINVAL` for what
    /// is no packet at all.
    pub fn write(&self, vnet: &VnetHeader, frame: &[u8]) -> io::Result<()> {
        self.write_vectored(&[IoSlice::new(&vnet.to_bytes()), IoSlice::new(frame)])
    }

    /// Writes a frame that lies in parts, the first of which begins with its header.
    ///
    /// # Errors
    /// As [`Device::write`].
    pub fn write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        rustix::io::writev(self, parts)?;
        Ok(())
    }

    /// Returns the kernel's counters of a packet socket; `None` for other devices.
    ///
    /// # Errors
    /// What the system says.
    pub fn statistics(&mut self) -> io::Result<Option<Statistics>> {
        match &mut self.kind {
            Kind::Packet(socket) => socket.statistics().map(Some),
            Kind::Tun(_) => Ok(None),
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Tun(tun) => tun.as_fd(),
            Kind::Packet(socket) => socket.as_fd(),
        }
    }
}
