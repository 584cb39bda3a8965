//! Merges consecutive packets of a flow into super-packets before they are written.
//!
//! Merges packets as Linux does with received packets (`tcp_gro_receive`, `udp_gro_receive`,
//! `inet_gro_receive`, `ipv6_gro_receive`), under conditions that are at least as strict. Merged
//! packets have equal addresses, ports, time to live, traffic class, flow label and "don't
//! fragment" bit. They have one size, and only the last one may be shorter. TCP segments also have
//! equal flags (PSH only in the last one), acknowledgement number, window and options, and follow
//! each other without a gap. These packets are not merged: packets with SYN, FIN, RST, URG or
//! Congestion Window Reduced, pure acknowledgements, fragments, and packets with IP options or VLAN
//! tags. Nor are packets with a complete checksum, since it has not been verified and a merged
//! packet would hide an error.
//!
//! A batch holds the packets that are written to one device at one moment. Packets of several flows
//! may be merged at the same time, since a fair queue sends flows in turns. Packets of one flow
//! stay in order; packets of different flows may be reordered within a batch, as by a network card.
//! No packet waits for a later batch.

use sojourn_queue::TcpView;

use crate::headers::{ETHERNET, Fragment, Headers, Transport, UDP, pseudo_header};
use crate::vnet::{self, Gso, Partial, VnetHeader};
use sojourn_capture::checksum;

/// Maximum number of packets in a super-packet.
pub const MAX_PACKETS: usize = 64;

/// Maximum number of groups in a batch that can still accept packets.
const OPEN: usize = 8;

/// Maximum length of an IP datagram in bytes, since its length field has 16 bits.
const MAX_DATAGRAM: u32 = 65535;

/// Minimum segment size in bytes of a TCP super-packet that Linux splits (`TCP_MIN_GSO_SIZE`).
const MIN_SEGMENT: u32 = 8;

/// Maximum length in bytes of the headers of a packet that can be merged: Ethernet, IPv6, and TCP
/// with all options.
const MAX_HEADERS: usize = ETHERNET + 40 + 60;

const NONE: u16 = u16::MAX;

/// The bytes of a group that precede its packets' payloads.
#[derive(Clone, Copy, Debug)]
pub struct Front {
    bytes: [u8; vnet::LENGTH + MAX_HEADERS],
    length: usize,
    /// Offset in each of the group's frames at which the part to be written begins: the length of
    /// the headers in a super-packet, 0 in a single packet.
    pub from: usize,
}

impl Front {
    /// Returns the device's header, followed by the headers of the super-packet if the group is
    /// one.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Packets that are written as one super-packet, or a single packet.
#[derive(Clone, Debug)]
pub struct Group {
    first: u16,
    last: u16,
    count: u16,
    /// Sum of the payloads of all packets, in bytes.
    payload: u32,
    /// Payload of every packet but the last, in bytes.
    segment: u32,
    /// Offset of the payload in each frame; 0 if the packet cannot be merged.
    payload_at: u16,
    /// Difference between IPv4 identifications of consecutive packets; `None` while the group has
    /// one packet, and for IPv6.
    step: Option<u16>,
    headers: Headers,
    partial: Option<Partial>,
    /// Copy of the first packet's headers.
    bytes: [u8; MAX_HEADERS],
}

/// Divides the packets of a batch into groups.
#[derive(Clone, Debug)]
pub struct Coalescer {
    groups: Vec<Group>,
    /// For each packet of the batch, the next packet in its group; `NONE` after the last one.
    next: Vec<u16>,
    /// Groups that can still accept packets. If all are in use, the one at `turn` is replaced next.
    open: [u16; OPEN],
    turn: usize,
    udp: bool,
}

impl Coalescer {
    /// Returns an empty batch for up to `capacity` packets, but at most 65 535. With `udp`,
    /// datagrams of one flow and one size are merged too. This requires a device that accepts UDP
    /// super-packets (`Device::takes_udp`).
    pub fn new(capacity: usize, udp: bool) -> Self {
        let capacity = capacity.min(usize::from(NONE));
        Self {
            groups: Vec::with_capacity(capacity),
            next: Vec::with_capacity(capacity),
            open: [NONE; OPEN],
            turn: 0,
            udp,
        }
    }

    /// Returns the number of packets in the batch.
    pub fn len(&self) -> usize {
        self.next.len()
    }

    /// Returns whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Returns whether the batch is full. A full batch must be written before another packet is
    /// added.
    pub fn is_full(&self) -> bool {
        self.next.len() == self.next.capacity().min(usize::from(NONE))
    }

    /// Begins a new batch.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.next.clear();
        self.open = [NONE; OPEN];
    }

    /// Adds the next packet: its frame, its headers, and the position of its checksum if the
    /// checksum is partial. Packets are numbered from 0 in the order of the calls.
    ///
    /// # Panics
    /// If the batch is full.
    pub fn add(&mut self, frame: &[u8], headers: &Headers, partial: Option<Partial>) {
        assert!(!self.is_full(), "the batch is full");
        let index = self.next.len() as u16;
        self.next.push(NONE);
        let candidate = Candidate::new(frame, headers, partial, self.udp);
        if let Some(place) = self.open.iter().position(|open| {
            self.groups.get(usize::from(*open)).is_some_and(|group| group.is_same_flow(headers))
        }) {
            let group = &mut self.groups[usize::from(self.open[place])];
            if let Some(candidate) = &candidate
                && group.accepts(candidate)
            {
                self.next[usize::from(group.last)] = index;
                if group.join(index, candidate) {
                    self.open[place] = NONE;
                }
                return;
            }
            // A later packet of the flow must not join the group before this packet.
            self.open[place] = NONE;
        } else if headers.ports().is_none() {
            // A packet without ports, such as a fragment, may belong to any of the flows.
            self.open = [NONE; OPEN];
        }
        if let Some(candidate) = &candidate
            && !candidate.is_pushed
        {
            let place = self.open.iter().position(|open| *open == NONE).unwrap_or_else(|| {
                self.turn = (self.turn + 1) % OPEN;
                self.turn
            });
            self.open[place] = self.groups.len() as u16;
        }
        self.groups.push(Group::new(index, headers, partial, candidate.as_ref()));
    }

    /// Returns the batch's groups in the order in which they must be written.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }

    /// Returns the numbers of a group's packets, in the order of the calls of [`Coalescer::add`].
    pub fn members(&self, group: &Group) -> impl Iterator<Item = usize> {
        let mut next = group.first;
        std::iter::from_fn(move || {
            let index = usize::from(next);
            next = *self.next.get(index)?;
            Some(index)
        })
    }
}

/// A packet that may be merged with others.
struct Candidate<'a> {
    frame: &'a [u8],
    ip_at: usize,
    transport_at: usize,
    payload_at: usize,
    payload: u32,
    is_ipv4: bool,
    is_pushed: bool,
    tcp: bool,
}

impl<'a> Candidate<'a> {
    fn new(
        frame: &'a [u8],
        headers: &Headers,
        partial: Option<Partial>,
        udp: bool,
    ) -> Option<Self> {
        const DATA: u8 = TcpView::ACK | TcpView::PSH | TcpView::ECE;
        let ip = headers.ip.as_ref()?;
        let is_ipv4 = ip.source.is_ipv4();
        let (payload, is_pushed, tcp) = match &headers.transport {
            Transport::Tcp(tcp) if tcp.flags & TcpView::ACK != 0 && tcp.flags & !DATA == 0 => {
                (tcp.payload, tcp.flags & TcpView::PSH != 0, true)
            }
            Transport::Udp(packet) if udp => {
                let length = usize::from(packet.at) + 4;
                let length = u16::from_be_bytes([*frame.get(length)?, *frame.get(length + 1)?]);
                if u32::from(length) != packet.payload + 8 {
                    return None;
                }
                (packet.payload, false, false)
            }
            _ => return None,
        };
        let (ip_at, payload_at) = (usize::from(ip.at), headers.payload_at()?);
        let is_plain = ip.fragment == Fragment::Whole
            && usize::from(ip.header) == if is_ipv4 { 20 } else { 40 }
            && matches!(ip_at, 0 | ETHERNET)
            && ip_at + ip.total as usize == frame.len()
            && payload >= MIN_SEGMENT
            && partial.is_some()
            && partial == headers.checksum_place();
        is_plain.then_some(Self {
            frame,
            ip_at,
            transport_at: ip_at + usize::from(ip.header),
            payload_at,
            payload,
            is_ipv4,
            is_pushed,
            tcp,
        })
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.frame[at], self.frame[at + 1]])
    }
}

impl Group {
    fn new(
        index: u16,
        headers: &Headers,
        partial: Option<Partial>,
        candidate: Option<&Candidate<'_>>,
    ) -> Self {
        let mut group = Self {
            first: index,
            last: index,
            count: 1,
            payload: 0,
            segment: 0,
            payload_at: 0,
            step: None,
            headers: *headers,
            partial,
            bytes: [0; MAX_HEADERS],
        };
        if let Some(candidate) = candidate {
            group.payload = candidate.payload;
            group.segment = candidate.payload;
            group.payload_at = candidate.payload_at as u16;
            group.bytes[..candidate.payload_at]
                .copy_from_slice(&candidate.frame[..candidate.payload_at]);
        }
        group
    }

    /// Returns the number of packets in the group.
    pub fn packets(&self) -> usize {
        usize::from(self.count)
    }

    fn is_same_flow(&self, headers: &Headers) -> bool {
        let flow = |headers: &Headers| {
            let ip = headers.ip.as_ref()?;
            Some((ip.source, ip.destination, ip.protocol, headers.ports()?))
        };
        flow(&self.headers) == flow(headers)
    }

    fn accepts(&self, packet: &Candidate<'_>) -> bool {
        let at = packet.payload_at;
        at == usize::from(self.payload_at)
            && packet.payload <= self.segment
            && self.payload + packet.payload + (at - packet.ip_at) as u32 <= MAX_DATAGRAM
            && usize::from(self.count) < MAX_PACKETS
            && self.has_same_network(packet)
            && if packet.tcp { self.continues_segment(packet) } else { self.is_datagram(packet) }
    }

    /// Returns whether all bytes before the transport header agree, except lengths and IPv4's
    /// header checksum. IPv4's identification must increase by one, or with DF may be constant, as
    /// in Linux, so that splitting the super-packet restores it.
    fn has_same_network(&self, packet: &Candidate<'_>) -> bool {
        let (ours, theirs) = (&self.bytes, packet.frame);
        let ip = packet.ip_at;
        let same = |from: usize, to: usize| ours[from..to] == theirs[from..to];
        if !packet.is_ipv4 {
            return same(0, ip + 4) && same(ip + 6, ip + 40);
        }
        let has_fixed_form = same(0, ip + 2) && same(ip + 6, ip + 10) && same(ip + 12, ip + 20);
        let is_atomic = ours[ip + 6] & 0x40 != 0;
        let distance = self.distance(packet);
        let is_in_step = match self.step {
            Some(step) => distance == step.wrapping_mul(self.count),
            None => distance == 1 || distance == 0 && is_atomic,
        };
        has_fixed_form && is_in_step
    }

    fn distance(&self, packet: &Candidate<'_>) -> u16 {
        let at = packet.ip_at + 4;
        packet.word(at).wrapping_sub(u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    fn continues_segment(&self, packet: &Candidate<'_>) -> bool {
        let (ours, theirs) = (&self.bytes, packet.frame);
        let at = packet.transport_at;
        let same = |from: usize, to: usize| ours[at + from..at + to] == theirs[at + from..at + to];
        let sequence = |bytes: &[u8]| {
            u32::from_be_bytes([bytes[at + 4], bytes[at + 5], bytes[at + 6], bytes[at + 7]])
        };
        sequence(theirs) == sequence(ours).wrapping_add(self.payload)
            && same(0, 4)
            && same(8, 13)
            && ours[at + 13] == theirs[at + 13] & !TcpView::PSH
            && same(14, 16)
            && same(18, packet.payload_at - at)
    }

    fn is_datagram(&self, packet: &Candidate<'_>) -> bool {
        let at = packet.transport_at;
        self.bytes[at..at + 4] == packet.frame[at..at + 4]
    }

    /// Adds the packet to the group. Returns true if the group accepts no further packet.
    fn join(&mut self, index: u16, packet: &Candidate<'_>) -> bool {
        if self.count == 1 && packet.is_ipv4 {
            self.step = Some(self.distance(packet));
        }
        self.last = index;
        self.count += 1;
        self.payload += packet.payload;
        if packet.is_pushed {
            self.bytes[packet.transport_at + 13] |= TcpView::PSH;
        }
        packet.is_pushed || packet.payload < self.segment
    }

    /// Returns the bytes that precede the payloads of the group's packets.
    pub fn front(&self) -> Front {
        let mut front =
            Front { bytes: [0; vnet::LENGTH + MAX_HEADERS], length: vnet::LENGTH, from: 0 };
        let header = match self.headers.ip.as_ref() {
            Some(ip) if self.count > 1 => {
                let payload_at = usize::from(self.payload_at);
                front.from = payload_at;
                front.length += payload_at;
                let bytes = &mut front.bytes[vnet::LENGTH..][..payload_at];
                bytes.copy_from_slice(&self.bytes[..payload_at]);
                let at = usize::from(ip.at);
                let transport_at = at + usize::from(ip.header);
                let total = payload_at - at + self.payload as usize;
                let mut put =
                    |at: usize, word: u16| bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
                if ip.source.is_ipv4() {
                    put(at + 2, total as u16);
                    put(at + 10, 0);
                } else {
                    put(at + 4, (total - 40) as u16);
                }
                let datagram = (at + total - transport_at) as u16;
                if ip.protocol == UDP {
                    put(transport_at + 4, datagram);
                }
                let place = self.headers.checksum_place();
                let pseudo = pseudo_header(bytes, ip) + u64::from(datagram);
                if let Some(place) = place {
                    let field = usize::from(place.start + place.offset);
                    bytes[field..field + 2].copy_from_slice(&checksum::fold(pseudo).to_be_bytes());
                }
                if ip.source.is_ipv4() {
                    let sum = !checksum::fold(checksum::sum(&bytes[at..transport_at]));
                    bytes[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
                }
                VnetHeader {
                    partial: place,
                    gso: match (ip.protocol, ip.source.is_ipv4()) {
                        (UDP, _) => Gso::UdpL4,
                        (_, true) => Gso::TcpV4,
                        (_, false) => Gso::TcpV6,
                    },
                    ecn: false,
                    header_length: self.payload_at,
                    segment_size: self.segment as u16,
                }
            }
            _ => VnetHeader::single(self.partial),
        };
        front.bytes[..vnet::LENGTH].copy_from_slice(&header.to_bytes());
        front
    }
}
