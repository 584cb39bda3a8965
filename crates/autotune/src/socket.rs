//! Reading and changing a UDP socket through a descriptor, which may be a copy from another
//! process.
#![expect(
    unsafe_code,
    reason = "no library has a safe function for two socket options and for duplicating a descriptor by number"
)]

use nix::libc;
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, socket_cookie, socket_domain,
    socket_protocol, socket_recv_buffer_size, socket_type,
};
use rustix::net::{AddressFamily, SocketType, ipproto};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};

/// Maximum size of a receive buffer that the kernel can set, in bytes.
pub const GREATEST: u64 = (i32::MAX - 1) as u64;
/// Bit of `SO_BUF_LOCK` for the receive buffer: a program has set the size, so the kernel does not
/// change it.
pub const LOCKED: u32 = 2;
/// Number of values in `SO_MEMINFO` (`SK_MEMINFO_VARS`).
const VARS: usize = 9;

sockopt_impl!(
    /// Buffers whose size a program has set (Linux 5.15 and later).
    BufLock, Both, libc::SOL_SOCKET, libc::SO_BUF_LOCK, u32
);
sockopt_impl!(
    /// Memory of the socket (Linux 4.12 and later).
    MemInfo, GetOnly, libc::SOL_SOCKET, libc::SO_MEMINFO, [u32; VARS]
);

/// Returns a new descriptor for the open file with the descriptor number `fd`.
///
/// # Errors
/// If no open file has this number.
pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes only numbers.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Setting of a socket's receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Setting {
    /// Size in bytes, as `getsockopt` returns it for `SO_RCVBUF`.
    pub size: u64,
    /// Whether a program has set the size (`SO_BUF_LOCK`); `None` if the kernel does not report it.
    pub locked: Option<bool>,
}

/// Returns whether the descriptor is a UDP socket over IPv4 or IPv6.
///
/// # Errors
/// If the descriptor is not a socket.
pub fn is_udp(socket: impl AsFd) -> io::Result<bool> {
    let family = socket_domain(&socket)?;
    Ok((family == AddressFamily::INET || family == AddressFamily::INET6)
        && socket_type(&socket)? == SocketType::DGRAM
        && socket_protocol(&socket)? == Some(ipproto::UDP))
}

/// Returns the inode of an open file.
///
/// # Errors
/// Never in practice.
pub fn inode(socket: impl AsFd) -> io::Result<u64> {
    Ok(fstat(socket)?.st_ino)
}

/// Returns the cookie of the socket, which is unique among all sockets since the boot.
///
/// # Errors
/// Before Linux 4.12.
pub fn cookie(socket: impl AsFd) -> io::Result<u64> {
    Ok(socket_cookie(socket)?)
}

/// Returns the current setting of the receive buffer.
///
/// # Errors
/// If the descriptor is not a socket.
pub fn setting(socket: impl AsFd) -> io::Result<Setting> {
    let locked = getsockopt(&socket.as_fd(), BufLock).ok().map(|bits| bits & LOCKED != 0);
    Ok(Setting { size: socket_recv_buffer_size(socket)? as u64, locked })
}

/// Returns three values of the receive buffer: memory of its packets in bytes, size in bytes, and
/// number of packets dropped since the socket was created.
///
/// # Errors
/// Before Linux 4.12.
pub fn memory(socket: impl AsFd) -> io::Result<(u64, u64, u32)> {
    let memory = getsockopt(&socket.as_fd(), MemInfo)?;
    Ok((memory[0].into(), memory[1].into(), memory[8]))
}

/// Result of a change of the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// New size in bytes, as `getsockopt` returns it.
    pub size: u64,
    /// Whether `net.core.rmem_max` limited the size, because `CAP_NET_ADMIN` is missing.
    pub bounded: bool,
}

/// Sets the size in bytes. The size may exceed twice `net.core.rmem_max` if this process has
/// `CAP_NET_ADMIN`.
///
/// # Errors
/// If the descriptor is not a socket.
pub fn resize(socket: impl AsFd, size: u64) -> io::Result<Granted> {
    // The kernel doubles the requested size.
    let half = (size.min(GREATEST) / 2) as usize;
    let bounded = match set_socket_recv_buffer_size_force(&socket, half) {
        Ok(()) => false,
        Err(Errno::PERM) => {
            set_socket_recv_buffer_size(&socket, half)?;
            true
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Granted { size: socket_recv_buffer_size(&socket)? as u64, bounded })
}

/// Restores a setting. Returns whether the size is now exactly that of `before`.
///
/// # Errors
/// If the kernel refuses the setting.
pub fn restore(socket: impl AsFd, before: Setting) -> io::Result<bool> {
    let granted = resize(&socket, before.size)?;
    if let Some(locked) = before.locked {
        // The bit of the send buffer belongs to the program, so it is not changed.
        let bits = getsockopt(&socket.as_fd(), BufLock)? & !LOCKED;
        setsockopt(&socket.as_fd(), BufLock, &(bits | if locked { LOCKED } else { 0 }))?;
    }
    Ok(granted.size == before.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn changed_and_put_back_exactly() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(is_udp(&socket).unwrap());
        let before = setting(&socket).unwrap();
        assert_eq!(before.locked, Some(false));
        let granted = resize(&socket, before.size / 2).unwrap();
        assert_eq!(granted.size, before.size / 2);
        assert_eq!(setting(&socket).unwrap(), Setting { size: granted.size, locked: Some(true) });
        assert_eq!(memory(&socket).unwrap(), (0, granted.size, 0));
        assert!(restore(&socket, before).unwrap());
        assert_eq!(setting(&socket).unwrap(), before);
    }

    #[test]
    fn the_send_buffers_lock_is_left_alone() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let before = setting(&socket).unwrap();
        resize(&socket, 100_000).unwrap();
        rustix::net::sockopt::set_socket_send_buffer_size(&socket, 100_000).unwrap();
        restore(&socket, before).unwrap();
        assert_eq!(getsockopt(&socket.as_fd(), BufLock).unwrap(), 1);
    }

    #[test]
    fn other_files_are_no_udp_sockets() {
        assert!(!is_udp(TcpListener::bind("127.0.0.1:0").unwrap()).unwrap());
        assert!(is_udp(std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
