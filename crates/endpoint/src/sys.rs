//! What neither `nix` nor `rustix` has without `unsafe`.
#![expect(unsafe_code, reason = "calls of the C library, each with a value of ours behind it")]

use nix::libc;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Bytes written into a TCP socket and not yet acknowledged (`SIOCOUTQ`).
pub fn unacknowledged(socket: impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one int, to where `bytes` stands.
    let status = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(bytes as u64) }
}

/// Has the kernel pace a TCP socket, at `rate` bytes per second at most.
pub fn set_max_pacing_rate(socket: impl AsFd, rate: u32) -> io::Result<()> {
    // SAFETY: the call reads one int, from where `rate` stands.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A descriptor of one's own for the open file behind number `fd`.
///
/// # Errors
/// If there is none behind it.
pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers only.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was made just now, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
