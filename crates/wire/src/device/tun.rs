//! TUN and TAP devices: Linux `drivers/net/tun.c`.
//!
//! `tun-rs` creates the devices. Its own handling of offloads copies every packet and merges
//! packets for VPNs. Therefore frames are read and written through the descriptor, and further
//! offloads are enabled.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use nix::libc;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use super::error::{Error, OPENING};
use super::system;
use crate::headers::Framing;
use crate::vnet;

/// Whether a device must exist before it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// No interface has this name. The device is created, and vanishes when it is closed.
    New,
    /// A persistent device of this name and kind exists. The wire attaches to it; closing the
    /// device does not remove it.
    Persistent,
}

/// Options for opening a device.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The interface's name.
    pub name: &'a str,
    /// Whether the device is created or must exist.
    pub presence: Presence,
    /// MTU of the interface in bytes (length of the IP packet). `None` leaves it unchanged (1500 if
    /// new).
    pub mtu: Option<u16>,
    /// Number of frames that the kernel queues until they are read; it drops further frames. `None`
    /// leaves it unchanged (500 if new).
    pub queue: Option<u32>,
    /// Whether to set the interface up. False leaves its state unchanged.
    pub up: bool,
}

impl<'a> Options<'a> {
    /// Returns options for a new device that is not set up.
    pub fn new(name: &'a str) -> Self {
        Self { name, presence: Presence::New, mtu: None, queue: None, up: false }
    }
}

/// An open TUN or TAP device.
pub(super) struct Tun {
    device: SyncDevice,
    takes_udp: bool,
}

impl std::fmt::Debug for Tun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tun").field("takes_udp", &self.takes_udp).finish_non_exhaustive()
    }
}

impl Tun {
    /// Opens the device in the namespace of the calling thread.
    pub(super) fn open(options: &Options<'_>, framing: Framing) -> Result<Self, Error> {
        let name = options.name;
        check_presence(options).map_err(Error::at(name, OPENING))?;
        let mut builder = DeviceBuilder::new()
            .name(name)
            .layer(match framing {
                Framing::Ip => Layer::L3,
                Framing::Ethernet => Layer::L2,
            })
            .offload(true)
            .inherit_enable_state();
        if let Some(mtu) = options.mtu {
            builder = builder.mtu(mtu);
        }
        if let Some(queue) = options.queue {
            builder = builder.tx_queue_len(queue);
        }
        if options.up {
            builder = builder.enable(true);
        }
        let device = builder.build_sync().map_err(Error::at(name, OPENING))?;
        device.set_nonblocking(true).map_err(Error::at(name, "setting the device non-blocking"))?;
        // A persistent device may have been used with another header length.
        system::set_header_length(device.as_fd(), vnet::LENGTH)
            .map_err(Error::at(name, "setting the length of the device's headers"))?;
        let takes_udp = set_offloads(device.as_fd())
            .map_err(Error::at(name, "setting the device's offloads"))?;
        Ok(Self { device, takes_udp })
    }

    pub(super) fn takes_udp(&self) -> bool {
        self.takes_udp
    }

    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<Range<usize>> {
        Ok(0..rustix::io::read(self, buffer)?)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Returns an error if the device does not have the required presence. `TUNSETIFF` would silently
/// attach to a persistent device or create a missing one.
fn check_presence(options: &Options<'_>) -> io::Result<()> {
    let any = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let found = netdevice::name_to_index(&any, options.name).is_ok();
    match (options.presence, found) {
        (Presence::New, true) => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, "an interface of this name exists"))
        }
        (Presence::Persistent, false) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no such interface"))
        }
        _ => Ok(()),
    }
}

/// Enables all super-packets that [`crate::segment`] can split. Returns whether UDP super-packets
/// are among them.
fn set_offloads(device: BorrowedFd<'_>) -> io::Result<bool> {
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
    if system::set_offloads(device, tcp | udp).is_ok() {
        return Ok(true);
    }
    system::set_offloads(device, tcp)?;
    Ok(false)
}
