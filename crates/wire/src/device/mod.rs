//! Devices from which real packets are read and to which they are written.
//!
//! The wire creates a TUN or TAP device inside a network namespace; unless persistent, the device
//! vanishes when it is closed. A packet socket receives and sends on an existing interface. Both
//! are opened by a short-lived thread that enters the namespace, so the caller's own namespace does
//! not change. Afterwards any thread may use the device. Every frame has a [`VnetHeader`] in front.
//! No call blocks: wait for readiness by the descriptor.

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

/// Size of the buffer for [`Device::read`], in bytes: device header, spare room for a VLAN tag,
/// Ethernet header with tags, and the longest datagram.
pub const BUFFER: usize = vnet::LENGTH + 4 + 22 + 65535 + 40;

/// A frame that was read.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The device's header of the frame.
    pub vnet: VnetHeader,
    /// Offset of the frame in the buffer, after the device's header.
    pub start: usize,
    /// Bytes of the frame.
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
    /// Creates a TUN device, or attaches to one, in `namespace` or in the caller's own. Frames of a
    /// TUN device begin with the IP header.
    ///
    /// # Errors
    /// If the name is invalid, the rights are missing, a new device's name is in use, or a
    /// persistent device does not exist.
    pub fn tun(options: &Options<'_>, namespace: Option<BorrowedFd<'_>>) -> Result<Self, Error> {
        Self::with(options, Framing::Ip, namespace)
    }

    /// Creates a TAP device, or attaches to one. Frames of a TAP device begin with the Ethernet
    /// header.
    ///
    /// # Errors
    /// As for [`Device::tun`].
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

    /// Opens a packet socket on the existing interface `name`, and sets the interface promiscuous
    /// as long as the socket is open. The host's own network stack receives the packets too, unless
    /// the interface has no addresses.
    ///
    /// # Errors
    /// If the name is invalid, the rights are missing, or no interface has this name.
    pub fn packet(name: &str, namespace: Option<BorrowedFd<'_>>) -> Result<Self, Error> {
        check_name(name)?;
        let socket = within(namespace, || packet::Socket::open(name))
            .map_err(Error::at(name, namespace::ENTERING))??;
        // The interface's driver might not handle UDP super-packets correctly.
        let kind = Kind::Packet(socket);
        Ok(Self { name: name.to_owned(), framing: Framing::Ethernet, takes_udp: false, kind })
    }

    /// Returns the interface's name in its namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the first header of the device's frames.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns whether the device accepts super-packets of UDP datagrams (Linux 6.2 and later).
    pub fn takes_udp(&self) -> bool {
        self.takes_udp
    }

    /// Reads the next frame into `buffer` of [`BUFFER`] bytes; returns `None` if no frame waits.
    ///
    /// # Errors
    /// The system's error; `InvalidData` for a frame that did not fit into the buffer or had no
    /// device header. This frame is discarded, and the next call reads the following one.
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
                        "the frame has no device header",
                    ));
                };
                let mut vnet = VnetHeader::parse(*header);
                // The kernel's position of the checksum does not include the VLAN tag that was put
                // back.
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

    /// Writes a frame with its device header.
    ///
    /// # Errors
    /// `WouldBlock` or `ENOBUFS` if the interface's queue is full, `EIO` if the interface is down,
    /// `EINVAL` if the bytes are not a packet.
    pub fn write(&self, vnet: &VnetHeader, frame: &[u8]) -> io::Result<()> {
        self.write_vectored(&[IoSlice::new(&vnet.to_bytes()), IoSlice::new(frame)])
    }

    /// Writes one frame, given as `parts`. The first part begins with the device's header.
    ///
    /// # Errors
    /// As for [`Device::write`].
    pub fn write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        rustix::io::writev(self, parts)?;
        Ok(())
    }

    /// Returns the kernel's counters of a packet socket; `None` for TUN and TAP devices.
    ///
    /// # Errors
    /// The system's error.
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
