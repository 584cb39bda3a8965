//! TUN and TAP devices: Linux `drivers/net/tun.c`.
//!
//! `tun-rs` creates them. Its own handling of offloads copies every packet and coalesces for VPNs, so
//! frames are read and written by the descriptor, and offloads that it does not ask for are added.

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

/// Requirements for a device before it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nothing of that name: it is created, and vanishes when it is closed.
    New,
    /// A persistent device of that name and kind: we attach to it, and it stays.
    Persistent,
}

/// How to open a device.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The interface's name.
    pub name: &'a str,
    /// Whether it is created.
    pub presence: Presence,
    /// The interface's MTU in bytes, of the IP packet; `None` leaves it as it is (1500 if new).
    pub mtu: Option<u16>,
    /// How many frames the kernel holds until they are read; beyond that it drops. `None` leaves it as
    /// it is (500 if new).
    pub queue: Option<u32>,
    /// Whether to bring it up.
    pub up: bool,
}

impl<'a> Options<'a> {
    /// Returns a new device, left down.
    pub fn new(name: &'a str) -> Self {
        Self { name, presence: Presence::New, mtu: None, queue: None, up: false }
    }
}

/// An open device.
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
    /// Opens it in the namespace of the calling thread.
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
        device.set_nonblocking(true).map_err(Error::at(name, "making it non-blocking"))?;
        // A persistent device may have been used with another length.
        system::set_header_length(device.as_fd(), vnet::LENGTH)
            .map_err(Error::at(name, "setting the length of its headers"))?;
        let takes_udp =
            set_offloads(device.as_fd()).map_err(Error::at(name, "setting its offloads"))?;
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

/// `TUNSETIFF` would silently attach to a persistent device or create a missing one.
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

/// Asks for all super-packets that we can split; true if UDP's are among them.
fn set_offloads(device: BorrowedFd<'_>) -> io::Result<bool> {
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
    if system::set_offloads(device, tcp | udp).is_ok() {
        return Ok(true);
    }
    system::set_offloads(device, tcp)?;
    Ok(false)
}
