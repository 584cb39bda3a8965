//! A UDP socket that receives and sends many datagrams per system call (recvmmsg, GRO, GSO).

use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg_addr};
use sojourn_units::{Nanos, SECOND};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::slice::Chunks;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Size in bytes of one receive buffer. It holds a train, which is a sequence of datagrams that the
/// kernel has merged.
const TRAIN: usize = 1 << 16;
/// Maximum number of datagrams in one call. The kernel may have a lower limit.
pub(crate) const SEGMENTS: usize = 64;
/// Default size of the kernel's send and receive buffers in bytes. `net.core.rmem_max` limits the
/// receive buffer.
pub const KERNEL_BUFFER: usize = 4 << 20;

/// A bound UDP socket.
pub(crate) struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
    /// Length of the datagrams into which the kernel currently splits trains, in bytes; 0 if it
    /// splits none.
    segment: AtomicUsize,
    /// Maximum number of datagrams that one call sends.
    segments: AtomicUsize,
}

impl Socket {
    /// Binds a socket to `address`, and requests a kernel receive buffer of `buffer` bytes.
    pub(crate) fn bind(address: SocketAddr, buffer: usize) -> io::Result<Self> {
        let udp = UdpSocket::bind(address)?;
        let state = UdpSocketState::new(UdpSockRef::from(&udp))?;
        let segments = AtomicUsize::new(state.max_gso_segments().clamp(1, SEGMENTS));
        let socket = Self { udp, state, segment: AtomicUsize::new(0), segments };
        let reference = socket2::SockRef::from(&socket.udp);
        reference.set_recv_buffer_size(buffer)?;
        reference.set_send_buffer_size(KERNEL_BUFFER)?;
        Ok(socket)
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Returns the size of the kernel's receive buffer in bytes; 0 if it cannot be read.
    pub(crate) fn kernel_buffer(&self) -> usize {
        self.state.recv_buffer_size(UdpSockRef::from(&self.udp)).unwrap_or(0)
    }

    /// Returns the maximum number of datagrams in a train.
    pub(crate) fn train(&self) -> usize {
        self.segments.load(Ordering::Relaxed)
    }

    /// Sends a train in one call: datagrams of length `segment`, of which the last may be shorter.
    /// `parts` are its bytes, `length` in total. Datagrams that do not fit into the kernel's buffer
    /// are lost, as on any path. Must not be mixed with [`Socket::send`], since the kernel would
    /// split those datagrams too.
    pub(crate) fn send_train(
        &self,
        to: SocketAddr,
        parts: &[IoSlice],
        segment: usize,
        length: usize,
    ) -> io::Result<()> {
        let set = self.segment.load(Ordering::Relaxed);
        if segment != set && (length > segment || set > 0 && length > set) {
            setsockopt(&self.udp, UdpGsoSegment, &(segment as i32))?;
            self.segment.store(segment, Ordering::Relaxed);
        }
        let mut control = SendAncillaryBuffer::default();
        match sendmsg_addr(&self.udp, &to, parts, &mut control, SendFlags::empty()) {
            Ok(_) => Ok(()),
            // The device cannot split trains: send one datagram per call from now on.
            Err(rustix::io::Errno::IO | rustix::io::Errno::INVAL) if length > segment => {
                self.segments.store(1, Ordering::Relaxed);
                setsockopt(&self.udp, UdpGsoSegment, &0)?;
                self.segment.store(0, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => match io::Error::from(error) {
                error if is_passing(&error) => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Waits until a datagram has arrived, for at most `most` nanoseconds. Returns whether one has
    /// arrived.
    pub(crate) fn wait(&self, most: Nanos) -> io::Result<bool> {
        let span = Timespec { tv_sec: (most / SECOND) as i64, tv_nsec: (most % SECOND) as i64 };
        let mut fds = [PollFd::new(&self.udp, PollFlags::IN)];
        match poll(&mut fds, Some(&span)) {
            Ok(n) => Ok(n > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends one datagram. If it does not fit into the kernel's buffer, it is lost, as on any path.
    pub(crate) fn send(&self, to: SocketAddr, contents: &[u8]) -> io::Result<()> {
        let sent = self.state.try_send(
            UdpSockRef::from(&self.udp),
            &Transmit { destination: to, ecn: None, contents, segment_size: None, src_ip: None },
        );
        match sent {
            Err(error) if is_passing(&error) => Ok(()),
            other => other,
        }
    }
}

/// Returns whether an error concerns one datagram and not the socket, such as a full buffer or a
/// wrong address.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::WouldBlock
            | Kind::Interrupted
            | Kind::ConnectionRefused
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::PermissionDenied
            | Kind::InvalidInput
            | Kind::AddrNotAvailable
    )
}

/// Buffers for received datagrams.
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    metas: Vec<RecvMeta>,
}

impl Inbox {
    /// Returns buffers for `trains` trains.
    pub(crate) fn new(trains: usize) -> Self {
        Self { bytes: vec![0; TRAIN * trains], metas: vec![RecvMeta::default(); trains] }
    }

    /// Receives waiting datagrams in one call, without blocking. Returns the number of received
    /// trains.
    pub(crate) fn receive(&mut self, socket: &Socket) -> io::Result<usize> {
        let mut slices: Vec<IoSliceMut> =
            self.bytes.chunks_exact_mut(TRAIN).map(IoSliceMut::new).collect();
        match socket.state.recv(UdpSockRef::from(&socket.udp), &mut slices, &mut self.metas) {
            Ok(n) => Ok(n),
            Err(error) if is_passing(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Returns the sender and the datagrams of each of the first `n` received trains.
    pub(crate) fn trains(&self, n: usize) -> impl Iterator<Item = (SocketAddr, Chunks<'_, u8>)> {
        let trains = self.metas[..n].iter().zip(self.bytes.chunks_exact(TRAIN));
        trains.map(|(meta, bytes)| {
            (meta.addr, bytes[..meta.len.min(TRAIN)].chunks(meta.stride.max(1)))
        })
    }
}
