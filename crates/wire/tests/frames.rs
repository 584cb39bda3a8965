//! Splits and merges super-packets, and verifies the results with independently computed checksums.
#![cfg(target_os = "linux")]

use proptest::prelude::*;
use sojourn_queue::TcpView;
use sojourn_wire::coalesce::Coalescer;
use sojourn_wire::headers::{Framing, Headers, Transport};
use sojourn_wire::segment::{Piece, Segments};
use sojourn_wire::vnet::{Gso, LENGTH, Partial, VnetHeader};

/// The headers of a connection.
#[derive(Clone, Debug)]
struct Flow {
    v6: bool,
    ethernet: bool,
    tos: u8,
    ports: (u16, u16),
    id: u16,
    sequence: u32,
    flags: u8,
    timestamps: bool,
}

impl Flow {
    fn framing(&self) -> Framing {
        if self.ethernet { Framing::Ethernet } else { Framing::Ip }
    }

    fn ip_at(&self) -> usize {
        if self.ethernet { 14 } else { 0 }
    }

    fn transport_at(&self) -> usize {
        self.ip_at() + if self.v6 { 40 } else { 20 }
    }

    fn payload_at(&self) -> usize {
        self.transport_at() + if self.timestamps { 32 } else { 20 }
    }

    /// Returns a frame of the connection, whose transport checksum field contains the sum of the
    /// pseudo-header.
    fn frame(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.ethernet {
            bytes.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
            bytes.extend(if self.v6 { [0x86, 0xdd] } else { [8, 0] });
        }
        let segment = self.payload_at() - self.transport_at() + payload.len();
        if self.v6 {
            bytes.extend([0x60 | self.tos >> 4, self.tos << 4, 0, 0]);
            bytes.extend((segment as u16).to_be_bytes());
            bytes.extend([6, 64]);
            bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        } else {
            bytes.extend([0x45, self.tos]);
            bytes.extend((20 + segment as u16).to_be_bytes());
            bytes.extend(self.id.to_be_bytes());
            bytes.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            let at = self.ip_at();
            let sum = !ones_sum(&bytes[at..at + 20], 0);
            bytes[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
        }
        bytes.extend(self.ports.0.to_be_bytes());
        bytes.extend(self.ports.1.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(77_u32.to_be_bytes());
        let words = if self.timestamps { 8 } else { 5 };
        bytes.extend([words << 4, self.flags, 1, 0, 0, 0, 0, 0]);
        if self.timestamps {
            bytes.extend([1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6]);
        }
        bytes.extend(payload);
        let sum = ones_sum(&[], self.pseudo(&bytes, segment));
        let at = self.transport_at() + 16;
        bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    fn pseudo(&self, frame: &[u8], segment: usize) -> u64 {
        let addresses = if self.v6 { 8..40 } else { 12..20 };
        let at = self.ip_at();
        let addresses = &frame[at + addresses.start..at + addresses.end];
        addresses.chunks(2).map(|p| u64::from(p[0]) << 8 | u64::from(p[1])).sum::<u64>()
            + 6
            + segment as u64
    }

    fn partial(&self) -> Partial {
        Partial { start: self.transport_at() as u16, offset: 16 }
    }

    /// Returns whether all checksums of a complete frame are correct.
    fn verifies(&self, frame: &[u8]) -> bool {
        let (ip, transport) = (self.ip_at(), self.transport_at());
        let header = self.v6 || ones_sum(&frame[ip..transport], 0) == 0xffff;
        let segment = frame.len() - transport;
        header && ones_sum(&frame[transport..], self.pseudo(frame, segment)) == 0xffff
    }
}

/// Returns the sum of RFC 1071, computed differently than in the crate.
fn ones_sum(bytes: &[u8], start: u64) -> u16 {
    let mut sum = start;
    for (i, &byte) in bytes.iter().enumerate() {
        sum += u64::from(byte) << if i % 2 == 0 { 8 } else { 0 };
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

fn flows() -> impl Strategy<Value = Flow> {
    let numbers = (any::<u8>(), any::<(u16, u16)>(), any::<u16>(), any::<u32>());
    (any::<(bool, bool, bool)>(), numbers, 0_u8..8).prop_map(|(which, numbers, extra)| {
        let (v6, ethernet, timestamps) = which;
        let (tos, ports, id, sequence) = numbers;
        let mut flags = TcpView::ACK;
        for (bit, flag) in [(1, TcpView::PSH), (2, TcpView::FIN), (4, TcpView::CWR)] {
            flags |= if extra & bit != 0 { flag } else { 0 };
        }
        Flow { v6, ethernet, tos, ports, id, sequence, flags, timestamps }
    })
}

fn split(flow: &Flow, frame: &[u8], size: usize) -> Vec<(Piece, Vec<u8>)> {
    let vnet = VnetHeader {
        partial: Some(flow.partial()),
        gso: if flow.v6 { Gso::TcpV6 } else { Gso::TcpV4 },
        ecn: false,
        header_length: flow.payload_at() as u16,
        segment_size: size as u16,
    };
    let mut segments = Segments::new(flow.framing(), &vnet, frame);
    let mut pieces = Vec::new();
    while let Some(length) = segments.next_length() {
        let mut slot = vec![0xaa; length + 3];
        let piece = segments.write_next(&mut slot).expect("the slot is long enough");
        assert_eq!(piece.length, length);
        assert_eq!(slot[length..], [0xaa; 3], "written past the packet's end");
        slot.truncate(length);
        pieces.push((piece, slot));
    }
    pieces
}

/// Returns the device header and the frame of each group of a batch, as they would be written.
fn written(batch: &Coalescer, frames: &[Vec<u8>]) -> Vec<(VnetHeader, Vec<u8>)> {
    let group = |group| {
        let front = sojourn_wire::coalesce::Group::front(group);
        let mut bytes = front.as_slice().to_vec();
        for member in batch.members(group) {
            bytes.extend(&frames[member][front.from..]);
        }
        let frame = bytes.split_off(LENGTH);
        (VnetHeader::parse(*bytes.first_chunk().unwrap()), frame)
    };
    batch.groups().map(group).collect()
}

proptest! {
    #[test]
    fn pieces_are_the_whole_and_every_checksum_holds(
        flow in flows(),
        payload in prop::collection::vec(any::<u8>(), 1..20_000),
        size in 400_usize..1449,
    ) {
        let frame = flow.frame(&payload);
        let pieces = split(&flow, &frame, size);
        prop_assert_eq!(pieces.len(), payload.len().div_ceil(size));
        let mut joined: Vec<u8> = Vec::new();
        for (number, (piece, bytes)) in pieces.iter().enumerate() {
            let tcp = *piece.headers.tcp().unwrap();
            prop_assert_eq!(tcp.sequence, flow.sequence.wrapping_add(joined.len() as u32));
            let (first, last) = (number == 0, number + 1 == pieces.len());
            let has = |flag| tcp.flags & flag != 0;
            let asked = |flag| flow.flags & flag != 0;
            prop_assert_eq!(has(TcpView::CWR), first && asked(TcpView::CWR));
            prop_assert_eq!(has(TcpView::FIN), last && asked(TcpView::FIN));
            prop_assert_eq!(has(TcpView::PSH), last && asked(TcpView::PSH));
            // The returned headers of a piece must equal the headers in its bytes.
            prop_assert_eq!(piece.headers, Headers::parse(flow.framing(), bytes));
            let mut finished = bytes.clone();
            piece.partial.unwrap().finish(&mut finished);
            prop_assert!(flow.verifies(&finished), "piece {}", number);
            prop_assert!(piece.headers.verify(&finished));
            joined.extend(&bytes[flow.payload_at()..]);
        }
        prop_assert_eq!(joined, payload);
    }

    #[test]
    fn split_packets_merge_to_the_original(
        flow in flows(),
        payload in prop::collection::vec(any::<u8>(), 1000..20_000),
        size in 500_usize..1449,
    ) {
        let flow = Flow { flags: TcpView::ACK, ..flow };
        let pieces = split(&flow, &flow.frame(&payload), size);
        let mut batch = Coalescer::new(100, false);
        for (piece, bytes) in &pieces {
            batch.add(bytes, &piece.headers, piece.partial);
        }
        let frames: Vec<_> = pieces.into_iter().map(|(_, bytes)| bytes).collect();
        let last = payload.len() % size;
        let written = written(&batch, &frames);
        // A last segment of fewer than eight bytes may stay separate, since the kernel does not
        // split off such short segments.
        prop_assert!(written.len() == 1 || written.len() == 2 && last < 8, "{}", written.len());
        let joined: Vec<u8> =
            written.iter().flat_map(|(_, f)| f[flow.payload_at()..].to_vec()).collect();
        prop_assert_eq!(&joined, &payload);
        let (vnet, frame) = &written[0];
        if frames.len() > written.len() {
            prop_assert_eq!(vnet.segment_size as usize, size);
        }
        let mut finished = frame.clone();
        vnet.partial.unwrap().finish(&mut finished);
        prop_assert!(flow.verifies(&finished));
        // Splitting again gives the same bytes, if no segment stayed separate.
        if written.len() == 1 && frames.len() > 1 {
            let again: Vec<_> = split(&flow, frame, size).into_iter().map(|(_, b)| b).collect();
            prop_assert_eq!(again, frames);
        }
    }

    #[test]
    fn different_packets_are_not_merged(
        flow in flows(), payload in prop::collection::vec(any::<u8>(), 100..1400), how in 0..8,
    ) {
        let flow = Flow { flags: TcpView::ACK, timestamps: true, ..flow };
        let first = flow.frame(&payload);
        let next = flow.sequence.wrapping_add(payload.len() as u32);
        let follower = Flow { sequence: next, id: flow.id.wrapping_add(1), ..flow.clone() };
        let mut other = follower.clone();
        match how {
            0 => other.tos ^= 1,
            1 => other.tos ^= 4,
            2 => other.sequence = next.wrapping_add(1),
            3 => other.flags |= TcpView::FIN,
            4 => other.flags |= TcpView::CWR,
            5 => other.flags |= TcpView::SYN,
            6 => other.ports.0 ^= 1,
            _ => other.timestamps = false,
        }
        let count = |second: &Flow| {
            let mut batch = Coalescer::new(10, false);
            for (flow, bytes) in [(&flow, first.clone()), (second, second.frame(&payload))] {
                let headers = Headers::parse(flow.framing(), &bytes);
                batch.add(&bytes, &headers, Some(flow.partial()));
            }
            batch.groups().count()
        };
        prop_assert_eq!(count(&follower), 1);
        prop_assert_eq!(count(&other), 2);
    }

    #[test]
    fn no_bytes_are_too_strange(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        head in any::<[u8; LENGTH]>(),
        ethernet in any::<bool>(),
        v4 in any::<bool>(),
    ) {
        let framing = if ethernet { Framing::Ethernet } else { Framing::Ip };
        let mut bytes = bytes;
        let at = if ethernet { 14 } else { 0 };
        if let Some(first) = bytes.get_mut(at) {
            // Without a valid version, most of the frames would not be IP.
            *first = if v4 { 0x45 } else { 0x60 };
        }
        let vnet = VnetHeader::parse(head);
        let mut headers = Headers::parse(framing, &bytes);
        let _ = headers.flow_hash(3);
        let _ = headers.tcp_view(&bytes, (1, 2));
        let _ = headers.verify(&bytes);
        let mut copy = bytes.clone();
        headers.set_tos(&mut copy, 0xff);
        let mut segments = Segments::new(framing, &vnet, &bytes);
        let mut slot = vec![0; 300];
        let mut batch = Coalescer::new(400, true);
        while let Some(piece) = segments.write_next(&mut slot) {
            prop_assert!(piece.length <= bytes.len());
            if batch.is_full() {
                break;
            }
            batch.add(&slot[..piece.length], &piece.headers, piece.partial);
        }
        for group in batch.groups() {
            let _ = group.front();
        }
    }

    #[test]
    fn a_mark_keeps_the_header_valid(flow in flows(), tos in any::<u8>()) {
        let mut frame = flow.frame(&[1; 100]);
        let mut headers = Headers::parse(flow.framing(), &frame);
        headers.set_tos(&mut frame, tos);
        flow.partial().finish(&mut frame);
        prop_assert!(flow.verifies(&frame));
        let found = Headers::parse(flow.framing(), &frame);
        prop_assert_eq!(found.ip.unwrap().tos, tos);
        prop_assert_eq!(found, headers);
    }
}

#[test]
fn headers_of_a_known_frame() {
    let flow = Flow {
        v6: false,
        ethernet: false,
        tos: 0xb9,
        ports: (443, 50_000),
        id: 9,
        sequence: 1_000_000,
        flags: TcpView::ACK | TcpView::PSH,
        timestamps: true,
    };
    let frame = flow.frame(&[7; 11]);
    let headers = Headers::parse(Framing::Ip, &frame);
    // Queues also count the Ethernet header, which the frames of a TUN device do not have.
    assert_eq!(headers.length, 14 + 20 + 32 + 11);
    let ip = headers.ip.unwrap();
    assert_eq!(
        (ip.source.to_string(), ip.destination.to_string()),
        ("10.0.0.1".into(), "10.0.0.2".into())
    );
    let Transport::Tcp(tcp) = headers.transport else { panic!("it is TCP") };
    assert_eq!((tcp.ports, tcp.payload, tcp.acknowledgement), ((443, 50_000), 11, 77));
    let view = headers.tcp_view(&frame, (4, 5)).unwrap();
    assert_eq!((view.hosts, view.timestamps), ((4, 5), Some((5, 6))));
    // The opposite direction has another hash. Equal headers have equal hashes.
    let back = Flow { ports: (50_000, 443), ..flow.clone() }.frame(&[]);
    let other = Headers::parse(Framing::Ip, &back).flow_hash(1);
    assert_ne!(headers.flow_hash(1), other);
    assert_eq!(headers.flow_hash(1), Headers::parse(Framing::Ip, &flow.frame(&[])).flow_hash(1));
}
