//! System calls of devices for which no library has a safe interface. All unsafe code of this crate
//! is in this file.
#![expect(unsafe_code, reason = "ioctl and recvmsg with control data have no safe form")]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;
use nix::sys::socket::{LinkAddr, SockaddrLike};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};

sockopt_impl!(
    /// Whether every frame has a device header (`vnet`).
    PacketVnetHdr, SetOnly, libc::SOL_PACKET, libc::PACKET_VNET_HDR, libc::c_int
);
sockopt_impl!(
    /// Whether VLAN tags are delivered as control data.
    PacketAuxdata, SetOnly, libc::SOL_PACKET, libc::PACKET_AUXDATA, libc::c_int
);
sockopt_impl!(
    /// Whether frames that this host sends are not received (Linux 4.20 and later).
    PacketIgnoreOutgoing, SetOnly, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, libc::c_int
);
sockopt_impl!(
    /// Membership by which a socket receives all frames that pass an interface.
    PacketMembership, SetOnly, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, libc::packet_mreq
);
sockopt_impl!(
    /// Frames received and dropped since the last reading.
    PacketStatistics, GetOnly, libc::SOL_PACKET, libc::PACKET_STATISTICS, libc::tpacket_stats
);

/// Returns the membership that receives all frames that pass an interface.
pub(super) fn promiscuous(interface: u32) -> libc::packet_mreq {
    libc::packet_mreq {
        mr_ifindex: interface as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    }
}

/// Returns the socket address for frames of all protocols on an interface.
pub(super) fn every_packet(interface: u32) -> io::Result<LinkAddr> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: interface as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer is to a whole `sockaddr_ll` of that length, which is copied.
    unsafe { LinkAddr::from_raw((&raw const address).cast(), Some(length)) }
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Sets the super-packets and partial checksums that the device may pass (`TUNSETOFFLOAD`).
pub(super) fn set_offloads(device: BorrowedFd<'_>, offloads: libc::c_uint) -> io::Result<()> {
    // SAFETY: the request takes its argument by value and accesses no memory of this process.
    let result = unsafe {
        libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads))
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the length in bytes of the device header (`TUNSETVNETHDRSZ`).
pub(super) fn set_header_length(device: BorrowedFd<'_>, length: usize) -> io::Result<()> {
    let length = length as libc::c_int;
    // SAFETY: the request reads one `int`, to which the pointer is valid for the call.
    let result =
        unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A frame received by a packet socket.
pub(super) struct Received {
    /// Number of bytes written to the buffer.
    pub length: usize,
    /// Whether the frame was longer than the buffer.
    pub is_cut: bool,
    /// Ethertype and value of the VLAN tag that the kernel removed; `None` for an untagged frame.
    pub vlan: Option<[u16; 2]>,
}

/// Receives a frame and its VLAN tag.
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    /// Buffer for one message of auxiliary data, with the alignment that its header needs.
    #[repr(align(8))]
    struct Control([MaybeUninit<u8>; 64]);
    let mut control = Control([MaybeUninit::uninit(); 64]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: `msghdr` is plain data, for which zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: `message` points to one part that is the caller's buffer, exclusively borrowed, and to
    // control data of the given length; all outlive the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut vlan = None;
    // SAFETY: the kernel has set `msg_controllen` to what it has written.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: if not null, it points to a whole header within the control data.
    if let Some(header) = unsafe { header.as_ref() }
        && (header.cmsg_level, header.cmsg_type) == (libc::SOL_PACKET, libc::PACKET_AUXDATA)
    {
        // SAFETY: a message of this type holds a `tpacket_auxdata`; it need not be aligned.
        let data =
            unsafe { libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned() };
        if data.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
            let has_kind = data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            vlan = Some([if has_kind { data.tp_vlan_tpid } else { 0x8100 }, data.tp_vlan_tci]);
        }
    }
    Ok(Received { length: length as usize, is_cut: message.msg_flags & libc::MSG_TRUNC != 0, vlan })
}
