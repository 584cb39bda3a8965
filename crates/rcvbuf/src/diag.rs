//! What the kernel tells of UDP sockets: `sock_diag`, or `/proc/PID/net/udp` where that is not to be had.

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

/// Bytes that one message of the kernel's may have; a dump has at most 32 KiB in each.
const MESSAGE: usize = 1 << 16;

/// A UDP socket as the kernel tells of it. Sizes are bytes of memory charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Inode of the socket, which no other open socket has.
    pub inode: u64,
    /// Number that no other socket of this boot ever has, if known.
    pub cookie: Option<u64>,
    /// Address and port it is bound to.
    pub local: SocketAddr,
    /// Its peer; the unspecified address if it has none.
    pub remote: SocketAddr,
    /// Number of the device that it is bound to; 0 if to none.
    pub interface: u32,
    /// What it holds (`sk_rmem_alloc`).
    pub occupied: u64,
    /// What it may hold (`sk_rcvbuf`), if known.
    pub size: Option<u64>,
    /// Packets dropped for any reason since it was made (`sk_drops`, 32 bits that wrap).
    pub drops: u32,
}

/// Where readings come from.
#[derive(Debug)]
pub enum Source {
    /// `sock_diag`, from inside the network namespace.
    Diag(Diag),
    /// The tables of a process in the namespace: they lack sizes and cookies.
    Table(PathBuf),
}

impl Source {
    /// Appends the UDP sockets of `families`, bound to `port` if given.
    ///
    /// # Errors
    /// If the kernel does not tell.
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

    /// Appends one socket, by address, in time that does not depend on how many there are. False if it is
    /// not there, or cannot be told from others on its port.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn read_one(&mut self, of: &Reading, out: &mut Vec<Reading>) -> io::Result<bool> {
        match self {
            Self::Diag(diag) => diag.read_one(of, out),
            Self::Table(_) => Ok(false),
        }
    }

    /// Whether sizes and cookies are among what it tells.
    pub fn tells_sizes(&self) -> bool {
        matches!(self, Self::Diag(_))
    }
}

/// Families of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Families {
    /// IPv4.
    pub v4: bool,
    /// IPv6, which sockets of both have.
    pub v6: bool,
}

impl Families {
    /// Both.
    pub const BOTH: Self = Self { v4: true, v6: true };

    /// Adds that of an address.
    pub fn add(&mut self, address: SocketAddr) {
        match address {
            SocketAddr::V4(_) => self.v4 = true,
            SocketAddr::V6(_) => self.v6 = true,
        }
    }
}

/// A netlink socket that belongs to one network namespace, wherever its owner goes.
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
    /// One in our own network namespace.
    ///
    /// # Errors
    /// If the kernel has no `sock_diag`, or a filter denies it.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&NetlinkAddr::new(0, 0))?;
        let mut diag = Self { socket, sequence: 0, buffer: vec![0; MESSAGE] };
        // Without `udp_diag` the socket opens, but nothing is told.
        diag.read(Families { v4: true, v6: false }, Some(1), &mut Vec::new())?;
        Ok(diag)
    }

    /// One in the network namespace of `/proc/PID/ns/net`, by a thread that goes there and ends.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN` there and here.
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
        // The kernel looks it up as for a packet: from the peer, to the socket.
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
            // Nobody, or another one.
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

    /// Reads until the end of a dump, or the `one` socket asked for.
    fn answer(&mut self, out: &mut Vec<Reading>, one: bool) -> io::Result<()> {
        let strange = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        loop {
            let length = self.socket.recv(&mut &mut self.buffer[..], 0)?;
            let mut rest = &self.buffer[..length];
            while !rest.is_empty() {
                let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)
                    .map_err(|error| strange(format!("sock_diag: {error}")))?;
                let step = (message.header.length as usize).next_multiple_of(4).max(16);
                // What is left of an earlier answer that was given up.
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
        // A kernel without IPv6 has no such file.
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
    fn tells_of_a_socket() {
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
