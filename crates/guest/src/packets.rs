//! Journals of the packets that arrive at and leave queues, or that hosts send and receive.
//!
//! A queue has two packet sockets (packet(7)): one receives the packets that arrive at the router
//! of the queue, the other the packets that have left the queue. Each record of the journal
//! contains the kernel's timestamp, a key that identifies the same packet in both sockets, the
//! length of the packet, and whether it carries Congestion Experienced. The key excludes the fields
//! that queues and routers change: the ECN field, the time to live, and checksums. It includes TCP's
//! options, since the acknowledgements of a closed connection differ only in their timestamps. A
//! record of a host also contains the first bytes of the packet.

use crate::job::Queue;
use crate::machine::{Outcome, at};
use nix::libc;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockType,
    recvmmsg, setsockopt, socket, sockopt,
};
use rustix::fd::{AsRawFd, OwnedFd};
use std::io::{IoSliceMut, Write};

/// Largest number of packets that one system call receives.
pub const BATCH: usize = 64;
/// Number of bytes of each packet that are read: the headers of Ethernet, IPv4 and TCP with options.
const SEEN: usize = ETHERNET + IP + 60;
/// Lengths of the headers of Ethernet and of IPv4 without options, in bytes.
const ETHERNET: usize = 14;
const IP: usize = 20;
/// Number of bytes of the IPv4 packet in a record of a host.
const WRITTEN: usize = IP + 20;
/// Size of a socket's receive buffer in bytes. If it is too small, packets are missing in the
/// journal, which is an error.
const ROOM: usize = 64 << 20;

/// One packet socket, which observes the packets of one device.
#[derive(Debug)]
struct Tap {
    socket: OwnedFd,
    /// Value for the last word of each record: for a queue, its number, with the flag [`LEAVES`] at
    /// the device after the queue; for a host, the number of its node.
    place: u32,
    /// Whether the socket observes a host's device. Then the direction of each packet, as stated by
    /// the kernel, sets the flag [`LEAVES`].
    host: bool,
}

/// Journal of the packets at the queues of one host, or of the packets that one host sends and
/// receives.
pub struct Journal {
    taps: Vec<Tap>,
    /// Wall-clock time of the run's start, in nanoseconds.
    shift: u64,
    headers: MultiHeaders<LinkAddr>,
    buffers: Vec<[u8; SEEN]>,
}

/// Packet type of the kernel for packets that the host itself sends (`PACKET_OUTGOING`).
const OUTGOING: u8 = libc::PACKET_OUTGOING;
/// Flags of a record's last word: the packet leaves the queue or the host, it carries Congestion
/// Experienced, and it is a UDP packet. The low 16 bits are the number of the queue or node.
const LEAVES: u32 = 1 << 16;
const CONGESTED: u32 = 1 << 17;
const UDP: u32 = 1 << 18;

impl Journal {
    /// Returns a journal of the packets at these queues. The caller must be in the network
    /// namespace of the host with the queues.
    pub fn new(queues: &[(usize, &Queue)]) -> Outcome<Self> {
        let mut taps = Vec::new();
        for (number, queue) in queues {
            let Some(arrivals) = &queue.arrivals else { continue };
            taps.push(Tap { socket: tap(arrivals)?, place: *number as u32, host: false });
            let place = *number as u32 | LEAVES;
            taps.push(Tap { socket: tap(&queue.device)?, place, host: false });
        }
        Ok(Self::of(taps))
    }

    /// Returns a journal of the packets that the host at node `node` sends and receives on these
    /// devices. The caller must be in the network namespace of the host.
    pub fn of_host(node: usize, devices: &[String]) -> Outcome<Self> {
        let place = node as u32;
        let tap = |device: &String| Ok(Tap { socket: tap(device)?, place, host: true });
        Ok(Self::of(devices.iter().map(tap).collect::<Outcome<_>>()?))
    }

    fn of(taps: Vec<Tap>) -> Self {
        Self { taps, shift: 0, headers: headers(), buffers: vec![[0; SEEN]; BATCH] }
    }

    /// Sets the wall-clock time of the run's start. Earlier packets are not written, and the times
    /// of records count from it.
    pub fn begin(&mut self, wall: u64) {
        self.shift = wall;
    }

    /// Writes the packets that were observed since the last call.
    pub fn write(&mut self, to: &mut impl Write) -> Outcome<()> {
        for tap in &self.taps {
            while drain(tap, self.shift, &mut self.headers, &mut self.buffers, to)? == BATCH {}
        }
        Ok(())
    }

    /// Fails if a packet is missing because the receive buffer of a socket was full.
    pub fn check(&self) -> Outcome<()> {
        self.taps.iter().try_for_each(|tap| whole(&tap.socket, "the journal"))
    }
}

/// Fails if a socket has dropped packets since its last check. The error says that packets are
/// missing in `what`.
pub fn whole(socket: &OwnedFd, what: &str) -> Outcome<()> {
    match lost(socket)? {
        0 => Ok(()),
        lost => Err(format!("{lost} packets are missing in {what}").into()),
    }
}

/// Opens a socket that receives all packets of a device.
pub fn tap(device: &str) -> Outcome<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    // The socket has no protocol yet, so that it receives no packets before it is bound to the
    // device.
    let socket = at("packet socket", socket(AddressFamily::Packet, SockType::Raw, flags, None))?;
    at("packet socket", setsockopt(&socket, sockopt::RcvBufForce, &ROOM))?;
    at("packet socket", setsockopt(&socket, sockopt::ReceiveTimestampns, &true))?;
    let index = at(device, rustix::net::netdevice::name_to_index(&socket, device))?;
    at(device, bind(&socket, index))?;
    Ok(socket)
}

#[expect(unsafe_code, reason = "no library builds addresses of packet sockets")]
fn bind(socket: &OwnedFd, index: u32) -> std::io::Result<()> {
    // SAFETY: zero is a valid value for all fields of the structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    // SAFETY: the kernel reads one address with the given length.
    let status = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    };
    if status < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the number of packets that a socket has dropped since the last call
/// (`PACKET_STATISTICS`).
#[expect(unsafe_code, reason = "no library has this option of packet sockets")]
fn lost(socket: &OwnedFd) -> Outcome<u32> {
    let mut counts = [0u32; 2];
    let mut length = size_of_val(&counts) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `counts`.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            counts.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok(counts[1])
}

/// A packet that a packet socket received.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// Wall-clock time at which the kernel saw the packet, in nanoseconds.
    pub at: u64,
    /// Complete length of the packet in bytes, with its Ethernet header.
    pub length: u32,
    /// Whether the host itself sent the packet.
    outgoing: bool,
}

/// Receives up to [`BATCH`] packets from a socket. Packets longer than the buffers are truncated.
/// Returns the number of packets.
pub fn take(
    socket: &OwnedFd,
    headers: &mut MultiHeaders<LinkAddr>,
    buffers: &mut [impl AsMut<[u8]>],
    taken: &mut [Taken; BATCH],
) -> Outcome<usize> {
    let mut slices: Vec<[IoSliceMut<'_>; 1]> =
        buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer.as_mut())]).collect();
    // With `MSG_TRUNC` the reported length is the complete length of a packet, even if the packet
    // is truncated.
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
    let messages = match recvmmsg(socket.as_raw_fd(), headers, slices.iter_mut(), flags, None) {
        Ok(messages) => messages,
        Err(nix::errno::Errno::EAGAIN) => return Ok(0),
        Err(error) => return Err(format!("packet socket: {error}").into()),
    };
    let mut count = 0;
    for message in messages {
        let time = at("timestamp", message.cmsgs())?.find_map(|one| match one {
            ControlMessageOwned::ScmTimestampns(time) => Some(time),
            _ => None,
        });
        let time = time.ok_or("the kernel gave no timestamp for a packet")?;
        taken[count] = Taken {
            at: time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64,
            length: message.bytes as u32,
            outgoing: message.address.is_some_and(|a| a.pkttype() == OUTGOING),
        };
        count += 1;
    }
    Ok(count)
}

/// Returns the message headers that [`take`] needs, with space for the timestamps of packets.
pub fn headers() -> MultiHeaders<LinkAddr> {
    MultiHeaders::preallocate(BATCH, Some(nix::cmsg_space!(libc::timespec)))
}

fn drain(
    tap: &Tap,
    shift: u64,
    headers: &mut MultiHeaders<LinkAddr>,
    buffers: &mut [[u8; SEEN]],
    to: &mut impl Write,
) -> Outcome<usize> {
    let mut taken = [Taken::default(); BATCH];
    let count = take(&tap.socket, headers, buffers, &mut taken)?;
    for (Taken { at: nanos, length, outgoing }, packet) in taken[..count].iter().zip(buffers) {
        // Behind a short packet, the buffer has bytes of an earlier one.
        packet[SEEN.min(*length as usize)..].fill(0);
        let Some((key, mut bits)) = identity(packet) else { continue };
        if tap.host && *outgoing {
            bits |= LEAVES;
        }
        // Packets before the run's start are not written, since the run's clock has no negative
        // times.
        let Some(now) = nanos.checked_sub(shift) else { continue };
        at("journal", to.write_all(&now.to_le_bytes()))?;
        at("journal", to.write_all(&key.to_le_bytes()))?;
        at("journal", to.write_all(&length.to_le_bytes()))?;
        at("journal", to.write_all(&(tap.place | bits).to_le_bytes()))?;
        if tap.host {
            at("journal", to.write_all(&packet[ETHERNET..][..WRITTEN]))?;
        }
    }
    Ok(count)
}

/// Returns the key of a packet and its flags; `None` if the packet is not IPv4 or has IP options.
fn identity(frame: &[u8; SEEN]) -> Option<(u64, u32)> {
    let ip = &frame[ETHERNET..];
    if frame[12..14] != [8, 0] || ip[0] != 0x45 {
        return None;
    }
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    // The hash covers total length, identification, protocol and addresses, the first 16 bytes
    // after the IP header, without UDP's checksum, and TCP's options.
    add(&ip[2..6]);
    add(&ip[9..10]);
    add(&ip[12..20]);
    let udp = ip[9] == libc::IPPROTO_UDP as u8;
    if udp {
        add(&ip[20..26]);
        add(&ip[28..36]);
    } else {
        add(&ip[20..36]);
        add(ip[..IP + 4 * usize::from(ip[32] >> 4)].get(WRITTEN..).unwrap_or_default());
    }
    let mut bits = 0;
    if ip[1] & 3 == 3 {
        bits |= CONGESTED;
    }
    if udp {
        bits |= UDP;
    }
    Some((hash, bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(change: impl Fn(&mut [u8; SEEN])) -> [u8; SEEN] {
        let mut bytes = [0; SEEN];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = i as u8;
        }
        bytes[12..14].copy_from_slice(&[8, 0]);
        bytes[14] = 0x45;
        bytes[15] = 2;
        bytes[23] = 6;
        bytes[46] = 8 << 4; // twelve bytes of TCP's options
        change(&mut bytes);
        bytes
    }

    #[test]
    fn a_packet_is_recognised_behind_a_queue() {
        let before = identity(&frame(|_| ())).unwrap();
        let behind = identity(&frame(|bytes| {
            bytes[15] = 3; // marked
            bytes[22] = 63; // routed
            bytes[24] = 99; // checksum
        }));
        assert_eq!(behind, Some((before.0, CONGESTED)));
        let another = identity(&frame(|bytes| bytes[39] ^= 1)).unwrap();
        assert_ne!(another.0, before.0);
        let later = identity(&frame(|bytes| bytes[65] ^= 1)).unwrap(); // a timestamp
        assert_ne!(later.0, before.0);
        assert_eq!(identity(&frame(|bytes| bytes[66] ^= 1)), Some(before)); // data
        assert_eq!(identity(&frame(|bytes| bytes[23] = 17)).unwrap().1, UDP);
        assert_eq!(identity(&frame(|bytes| bytes[13] = 6)), None);
    }
}
