//! System calls for which neither `nix` nor `rustix` has a safe wrapper.
#![expect(unsafe_code, reason = "calls of the C library whose pointers are valid during the call")]

use nix::libc;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Returns the number of bytes that were written into a TCP socket and are not yet acknowledged
/// (`SIOCOUTQ`).
pub fn unacknowledged(socket: impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one int to `bytes`.
    let status = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(bytes as u64) }
}

/// Turns on the kernel's pacing for a TCP socket, with a maximum of `rate` bytes per second.
pub fn set_max_pacing_rate(socket: impl AsFd, rate: u32) -> io::Result<()> {
    // SAFETY: the call reads one 32-bit integer from `rate`.
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

/// State of a connection in the kernel (`TCP_INFO`).
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    /// Congestion window in bytes.
    pub window: u32,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Smoothed round-trip time in nanoseconds.
    pub smoothed_rtt: u64,
    /// Number of segments retransmitted since the connection was opened.
    pub retransmitted: u32,
    /// Number of times that the retransmission timer has expired since the connection was opened;
    /// `None` if the kernel does not count them (Linux does since version 6.7).
    pub timeouts: Option<u32>,
    /// Number of bytes received in order since the connection was opened.
    pub received: u64,
}

/// Returns the state of a connection (`TCP_INFO`).
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    // `WORDS` is the length of `struct tcp_info` in 32-bit words, up to the word whose first half
    // is `tcpi_total_rto`. The other constants are indices of words.
    const WORDS: usize = 61;
    const RECEIVED: usize = 32;
    const TIMEOUTS: usize = 60;
    const MSS: usize = 4;
    const RTT: usize = 17;
    const WINDOW: usize = 20;
    const RETRANSMITTED: usize = 25;
    let mut words = [0u32; WORDS];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the call writes at most `length` bytes to `words`.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo {
        window: words[WINDOW].saturating_mul(words[MSS]),
        mss: words[MSS],
        smoothed_rtt: u64::from(words[RTT]) * 1000,
        retransmitted: words[RETRANSMITTED],
        timeouts: (length as usize >= size_of_val(&words)).then(|| lower_half(words[TIMEOUTS])),
        received: u64::from(words[RECEIVED]) | u64::from(words[RECEIVED + 1]) << 32,
    })
}

/// Returns the half of a word that comes first in memory.
fn lower_half(word: u32) -> u32 {
    let [first, second, ..] = word.to_ne_bytes();
    u16::from_ne_bytes([first, second]).into()
}

/// Maximum number of bytes of one call of [`discard`].
const CALL: usize = 1 << 20;
/// Data that [`fill`] writes: the payload of the largest super-packet (`GSO_LEGACY_MAX_SIZE` less
/// `MAX_TCP_HEADER`).
static CONTENT: [u8; 65_215] = [0; 65_215];

/// Writes the whole segments of `mss` bytes that the largest super-packet has into a blocking
/// socket, and waits until the kernel has taken them. Returns the number of bytes written.
///
/// The kernel compares the memory of the data with the send buffer only when it begins a
/// super-packet. A longer call can exceed the buffer by its length if its data leave at once, and a
/// part of a segment would leave at the end of the call.
pub fn fill(socket: &OwnedFd, mss: u32) -> io::Result<usize> {
    let segment = (mss as usize).clamp(1, CONTENT.len());
    let content = &CONTENT[..CONTENT.len() / segment * segment];
    Ok(rustix::net::send(socket, content, rustix::net::SendFlags::NOSIGNAL)?)
}

/// Discards received data of a blocking socket without a copy to the process. Returns the number of
/// bytes discarded, or 0 at the end of the stream.
///
/// The kernel discards data as they arrive, but the call returns only after [`CALL`] bytes or at
/// the end of the stream (`MSG_WAITALL` and `MSG_TRUNC`; see tcp(7)).
pub fn discard(socket: &OwnedFd) -> io::Result<usize> {
    // SAFETY: with `MSG_TRUNC` the kernel writes nothing to the buffer of a TCP socket, so a null
    // pointer is valid.
    let bytes = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            CALL,
            libc::MSG_TRUNC | libc::MSG_WAITALL,
        )
    };
    if bytes < 0 { Err(io::Error::last_os_error()) } else { Ok(bytes as usize) }
}

/// Returns a new descriptor for the open file with the descriptor number `fd`.
///
/// # Errors
/// If `fd` is not the number of an open file.
pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes integers only.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
