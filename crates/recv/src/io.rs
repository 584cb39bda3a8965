//! The socket: many datagrams a call (recvmmsg, GRO, GSO).

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sojourn_units::{Nanos, SECOND};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

/// Bytes of one receive buffer: a whole train of datagrams that the kernel has put together.
const TRAIN: usize = 1 << 16;
/// Kernel's receive buffer that is asked for; the machine's `net.core.rmem_max` bounds it.
const KERNEL_BUFFER: usize = 4 << 20;

/// A bound UDP socket.
pub(crate) struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let udp = UdpSocket::bind(address)?;
        let state = UdpSocketState::new(UdpSockRef::from(&udp))?;
        let socket = Self { udp, state };
        let reference = socket2::SockRef::from(&socket.udp);
        reference.set_recv_buffer_size(KERNEL_BUFFER)?;
        reference.set_send_buffer_size(KERNEL_BUFFER)?;
        Ok(socket)
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Size that the kernel gave the receive buffer.
    pub(crate) fn kernel_buffer(&self) -> usize {
        self.state.recv_buffer_size(UdpSockRef::from(&self.udp)).unwrap_or(0)
    }

    /// Datagrams of one length that one call sends at most.
    pub(crate) fn train(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    /// Waits until something has come, at most this long. True if it has.
    pub(crate) fn wait(&self, most: Nanos) -> io::Result<bool> {
        let span = Timespec { tv_sec: (most / SECOND) as i64, tv_nsec: (most % SECOND) as i64 };
        let mut fds = [PollFd::new(&self.udp, PollFlags::IN)];
        match poll(&mut fds, Some(&span)) {
            Ok(n) => Ok(n > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Datagrams of length `segment` (the last may be shorter) to one address, in one call. What the
    /// kernel has no room for is lost, as on any path.
    pub(crate) fn send(&self, to: SocketAddr, contents: &[u8], segment: usize) -> io::Result<()> {
        let sent = self.state.try_send(
            UdpSockRef::from(&self.udp),
            &Transmit {
                destination: to,
                ecn: None,
                contents,
                segment_size: (contents.len() > segment).then_some(segment),
                src_ip: None,
            },
        );
        match sent {
            Err(error) if is_passing(&error) => Ok(()),
            other => other,
        }
    }
}

/// Errors that concern one datagram, not the socket: no room, nobody there, an address that a client
/// made up.
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

/// Memory that datagrams are received into.
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    metas: Vec<RecvMeta>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; TRAIN * BATCH_SIZE], metas: vec![RecvMeta::default(); BATCH_SIZE] }
    }

    /// Receives what is there without waiting, in one call. False if nothing was.
    pub(crate) fn receive(&mut self, socket: &Socket) -> io::Result<usize> {
        let mut slices: Vec<IoSliceMut> =
            self.bytes.chunks_exact_mut(TRAIN).map(IoSliceMut::new).collect();
        match socket.state.recv(UdpSockRef::from(&socket.udp), &mut slices, &mut self.metas) {
            Ok(n) => Ok(n),
            Err(error) if is_passing(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// The datagrams of the first `n` trains received.
    pub(crate) fn datagrams(&self, n: usize) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let trains = self.metas[..n].iter().zip(self.bytes.chunks_exact(TRAIN));
        trains.flat_map(|(meta, bytes)| {
            let train = &bytes[..meta.len.min(TRAIN)];
            train.chunks(meta.stride.max(1)).map(|datagram| (meta.addr, datagram))
        })
    }
}
