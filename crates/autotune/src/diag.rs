//! Readings of UDP sockets from the kernel: by `sock_diag`, or from `/proc/PID/net/udp` if
//! `sock_diag` is not available.

use crate::procfs;
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_UDP};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags, nlas::Nla,
};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr as NetlinkAddr};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{File, read_to_string};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;

/// Size of the buffer for the kernel's messages in bytes. A message of a dump has at most 32 KiB.
const MESSAGE: usize = 1 << 16;

/// The kernel's report of a UDP socket. Sizes are in bytes of charged memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Inode of the socket, which is unique among open sockets.
    pub inode: u64,
    /// Cookie of the socket, which is unique among all sockets since the boot; `None` if unknown.
    pub cookie: Option<u64>,
    /// Local address and port.
    pub local: SocketAddr,
    /// Address and port of the peer; the unspecified address if the socket is not connected.
    pub remote: SocketAddr,
    /// Index of the device to which the socket is bound; 0 without a device.
    pub interface: u32,
    /// Memory of the packets in the receive buffer, in bytes (`sk_rmem_alloc`).
    pub occupied: u64,
    /// Size of the receive buffer in bytes (`sk_rcvbuf`); `None` if unknown.
    pub size: Option<u64>,
    /// Packets dropped for any reason since the socket was created (`sk_drops`, a 32-bit counter
    /// that wraps around).
    pub drops: u32,
}

/// Source of readings.
#[derive(Debug)]
pub enum Source {
    /// `sock_diag`, through a netlink socket inside the network namespace.
    Diag(Diag),
    /// The tables in the folder `/proc/PID/net` of a process in the namespace, which lack sizes and
    /// cookies.
    Table(PathBuf),
}

impl Source {
    /// Appends the UDP sockets of `families` to `out`. If `port` is given, only sockets bound to
    /// this port are appended.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn read(
        &mut self,
        families: Families,
        port: Option<u16>,
        out: &mut Vec<Reading>,
    ) -> io::Result<()> {
        match self {
            Self::Diag(diag) => diag.read(families, port, out),
            Self::Table(net) => table(net, families, port, out),
        }
    }

    /// Appends the socket of an earlier reading to `out`. The search by address takes the same time
    /// for any number of sockets. Returns false if the search finds no socket or another one, or if
    /// cookies are unknown.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn read_one(&mut self, of: &Reading, out: &mut Vec<Reading>) -> io::Result<bool> {
        match self {
            Self::Diag(diag) => diag.read_one(of, out),
            Self::Table(_) => Ok(false),
        }
    }

    /// Returns whether readings contain sizes and cookies.
    pub fn tells_sizes(&self) -> bool {
        matches!(self, Self::Diag(_))
    }
}

/// A set of address families.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Families {
    /// IPv4.
    pub v4: bool,
    /// IPv6, including sockets that receive packets of both families.
    pub v6: bool,
}

impl Families {
    /// Both families.
    pub const BOTH: Self = Self { v4: true, v6: true };

    /// Adds the family of an address to the set.
    pub fn add(&mut self, address: SocketAddr) {
        match address {
            SocketAddr::V4(_) => self.v4 = true,
            SocketAddr::V6(_) => self.v6 = true,
        }
    }
}

/// A netlink socket that belongs to one network namespace. The namespace of the process that uses
/// it may be another one.
pub struct Diag {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Diag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Diag").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl Diag {
    /// Opens a netlink socket in the network namespace of this process.
    ///
    /// # Errors
    /// If the kernel has no `sock_diag` for UDP, or a seccomp filter or security module forbids it.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&NetlinkAddr::new(0, 0))?;
        let mut diag = Self { socket, sequence: 0, buffer: vec![0; MESSAGE] };
        // Without the module `udp_diag` the socket opens, but the kernel refuses queries. This
        // query tests whether the module exists.
        diag.read(Families { v4: true, v6: false }, Some(1), &mut Vec::new())?;
        Ok(diag)
    }

    /// Opens a netlink socket in the network namespace of `/proc/PID/ns/net`, on a temporary thread
    /// that enters the namespace.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN` in the user namespaces of this process and of `namespace`.
    pub fn open_in(namespace: &Path) -> io::Result<Self> {
        let namespace = File::open(namespace)?;
        thread::scope(|scope| {
            let entered =
                thread::Builder::new().name("namespace".into()).spawn_scoped(scope, || {
                    use std::os::fd::AsFd;
                    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
                    Self::open()
                })?;
            entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn read(
        &mut self,
        families: Families,
        port: Option<u16>,
        out: &mut Vec<Reading>,
    ) -> io::Result<()> {
        for (wanted, family) in [(families.v4, AF_INET), (families.v6, AF_INET6)] {
            if wanted {
                self.ask(family, port)?;
                self.answer(out, false)?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, family: u8, port: Option<u16>) -> io::Result<()> {
        let any = if family == AF_INET { SocketId::new_v4() } else { SocketId::new_v6() };
        let id = SocketId { source_port: port.unwrap_or(0), ..any };
        self.request(NLM_F_REQUEST | NLM_F_DUMP, family, id)
    }

    fn read_one(&mut self, of: &Reading, out: &mut Vec<Reading>) -> io::Result<bool> {
        let Some(cookie) = of.cookie else { return Ok(false) };
        // The kernel searches for the socket as for a received packet, whose source is the peer.
        let id = SocketId {
            source_port: of.remote.port(),
            destination_port: of.local.port(),
            source_address: of.remote.ip(),
            destination_address: of.local.ip(),
            interface_id: of.interface,
            cookie: cookie.to_ne_bytes(),
        };
        self.request(NLM_F_REQUEST, if of.local.is_ipv4() { AF_INET } else { AF_INET6 }, id)?;
        match self.answer(out, true) {
            Ok(()) => Ok(true),
            // No socket has this address, or a socket with another cookie has it.
            Err(error)
                if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::STALE)) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn request(&mut self, flags: u16, family: u8, socket_id: SocketId) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let request = InetRequest {
            family,
            protocol: IPPROTO_UDP,
            extensions: ExtensionFlags::SKMEMINFO,
            states: StateFlags::all(),
            socket_id,
        };
        let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
        message.finalize();
        let length = message.buffer_len();
        message.serialize(&mut self.buffer[..length]);
        self.socket.send(&self.buffer[..length], 0)?;
        Ok(())
    }

    /// Reads an answer of the kernel: until the end of a dump, or if `one`, until the one requested
    /// socket.
    fn answer(&mut self, out: &mut Vec<Reading>, one: bool) -> io::Result<()> {
        let strange = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        loop {
            let length = self.socket.recv(&mut &mut self.buffer[..], 0)?;
            let mut rest = &self.buffer[..length];
            while !rest.is_empty() {
                let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)
                    .map_err(|error| strange(format!("sock_diag: {error}")))?;
                let step = (message.header.length as usize).next_multiple_of(4).max(16);
                // Messages with other sequence numbers belong to an earlier answer, which was not
                // read to its end.
                let ours = message.header.sequence_number == self.sequence;
                match message.payload {
                    NetlinkPayload::Done(_) if ours => return Ok(()),
                    NetlinkPayload::Error(error) if ours => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(found)) if ours => {
                        out.extend(reading(&found));
                        if one {
                            return Ok(());
                        }
                    }
                    _ => {}
                }
                rest = rest.get(step..).unwrap_or_default();
            }
        }
    }
}

fn reading(found: &InetResponse) -> Option<Reading> {
    let header = &found.header;
    let id = &header.socket_id;
    let memory = found.nlas.iter().find_map(|nla| match nla {
        Nla::MemInfo(memory) => Some(memory),
        _ => None,
    })?;
    Some(Reading {
        inode: header.inode.into(),
        cookie: Some(u64::from_ne_bytes(id.cookie)),
        local: SocketAddr::new(id.source_address, id.source_port),
        remote: SocketAddr::new(id.destination_address, id.destination_port),
        interface: id.interface_id,
        occupied: memory.receive_queue.into(),
        size: Some(memory.receive_queue_max.into()),
        drops: memory.drops,
    })
}

fn table(
    net: &Path,
    families: Families,
    port: Option<u16>,
    out: &mut Vec<Reading>,
) -> io::Result<()> {
    let texts = [
        families.v4.then(|| read_to_string(net.join("udp"))).transpose()?,
        // A kernel without IPv6 has no file `udp6`.
        families.v6.then(|| read_to_string(net.join("udp6")).unwrap_or_default()),
    ];
    let lines = texts.iter().flatten().flat_map(|text| procfs::sockets(text));
    out.extend(lines.filter(|line| port.is_none_or(|port| line.local.port() == port)).map(
        |line| Reading {
            inode: line.inode,
            cookie: None,
            local: line.local,
            remote: line.remote,
            interface: 0,
            occupied: line.occupied,
            size: None,
            drops: line.drops,
        },
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::{
        set_socket_recv_buffer_size, socket_cookie, socket_recv_buffer_size,
    };
    use std::net::UdpSocket;

    fn find(source: &mut Source, port: Option<u16>, local: SocketAddr) -> Reading {
        let mut all = Vec::new();
        source.read(Families::BOTH, port, &mut all).unwrap();
        all.into_iter().find(|reading| reading.local == local).unwrap()
    }

    #[test]
    fn a_socket_is_described() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(socket) = UdpSocket::bind(address) else { continue };
            set_socket_recv_buffer_size(&socket, 50_000).unwrap();
            let local = socket.local_addr().unwrap();
            for _ in 0..200 {
                UdpSocket::bind(address).unwrap().send_to(&[0; 1000], local).unwrap();
            }
            let mut diag = Source::Diag(Diag::open().unwrap());
            let here = find(&mut diag, Some(local.port()), local);
            assert_eq!(here.cookie, Some(socket_cookie(&socket).unwrap()));
            assert_eq!(here.size, Some(socket_recv_buffer_size(&socket).unwrap() as u64));
            assert!(here.drops > 0 && here.drops < 200 && here.remote.port() == 0);
            assert!(here.occupied > 50_000 && here.occupied <= 110_000);
            assert_eq!(find(&mut diag, None, local), here);
            let mut table = Source::Table("/proc/self/net".into());
            assert_eq!(find(&mut table, None, local), Reading { cookie: None, size: None, ..here });
            let mut one = Vec::new();
            assert!(diag.read_one(&here, &mut one).unwrap());
            assert_eq!(one, [here]);
            let other = Reading { cookie: Some(u64::MAX >> 1), ..here };
            assert!(!diag.read_one(&other, &mut one).unwrap());
            drop(socket);
            assert!(!diag.read_one(&here, &mut one).unwrap() && one.len() == 1);
        }
    }

    #[test]
    fn finds_one_bound_to_any_address_or_connected() {
        let mut diag = Source::Diag(Diag::open().unwrap());
        for (bound, peer) in [("0.0.0.0:0", None), ("127.0.0.1:0", Some("127.0.0.1:9"))] {
            let socket = UdpSocket::bind(bound).unwrap();
            if let Some(peer) = peer {
                socket.connect(peer).unwrap();
            }
            let local = socket.local_addr().unwrap();
            let here = find(&mut diag, Some(local.port()), local);
            assert_eq!(here.remote.port() != 0, peer.is_some());
            let mut one = Vec::new();
            assert!(diag.read_one(&here, &mut one).unwrap(), "{bound}");
            assert_eq!(one, [here]);
        }
    }
}
