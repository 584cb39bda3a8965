//! Splitting and merging of frames: no data change, and only packets that fit together are merged.
#![cfg(target_os = "linux")]

mod common;

use common::{Packet, ones};
use proptest::prelude::*;
use sojourn_queue::TcpView;
use sojourn_wire::coalesce::{Coalescer, MAX_PACKETS};
use sojourn_wire::headers::{Framing, Headers};
use sojourn_wire::segment::{Piece, Segments};
use sojourn_wire::vnet::{self, Gso, Partial, VnetHeader};

/// Returns the header of a super-packet, as the kernel would write it.
fn super_header(packet: &Packet, segment: u16) -> VnetHeader {
    VnetHeader {
        partial: Some(Partial {
            start: packet.transport_at() as u16,
            offset: if packet.udp { 6 } else { 16 },
        }),
        gso: match (packet.udp, packet.v6) {
            (true, _) => Gso::UdpL4,
            (false, false) => Gso::TcpV4,
            (false, true) => Gso::TcpV6,
        },
        ecn: packet.flags & TcpView::CWR != 0,
        header_length: packet.payload_at() as u16,
        segment_size: segment,
    }
}

fn split(framing: Framing, vnet: &VnetHeader, frame: &[u8]) -> Vec<(Vec<u8>, Piece)> {
    let mut segments = Segments::new(framing, vnet, frame);
    let mut all = Vec::new();
    while let Some(length) = segments.next_length() {
        // The slot is longer than the packet, and contains other data.
        let mut slot = vec![0xaa; length + 13];
        let piece = segments.write_next(&mut slot).expect("the slot is long enough");
        assert_eq!(piece.length, length);
        assert!(slot[length..].iter().all(|byte| *byte == 0xaa), "written past the end");
        slot.truncate(length);
        all.push((slot, piece));
    }
    assert_eq!(segments.write_next(&mut [0; 2000]), None);
    all
}

/// Returns the header and the frame of each group, as they are written to the device.
fn coalesce(frames: &[(Vec<u8>, Piece)], udp: bool) -> Vec<(VnetHeader, Vec<u8>)> {
    let mut coalescer = Coalescer::new(frames.len(), udp);
    for (frame, piece) in frames {
        coalescer.add(frame, &piece.headers, piece.partial);
    }
    let mut all = Vec::new();
    let mut seen = 0;
    for group in coalescer.groups() {
        let front = group.front();
        let mut written = front.as_slice().to_vec();
        let members: Vec<usize> = coalescer.members(group).collect();
        assert_eq!(members.len(), group.packets());
        seen += members.len();
        for member in members {
            written.extend(&frames[member].0[front.from..]);
        }
        let (header, frame) = written.split_first_chunk::<{ vnet::LENGTH }>().unwrap();
        all.push((VnetHeader::parse(*header), frame.to_vec()));
    }
    assert_eq!(seen, frames.len(), "every packet is in one group");
    all
}

/// Returns a packet with a partial checksum, and the piece that describes it.
fn offered(packet: &Packet) -> (Vec<u8>, Piece) {
    let frame = packet.frame(true);
    let place =
        Partial { start: packet.transport_at() as u16, offset: if packet.udp { 6 } else { 16 } };
    let headers = Headers::parse(packet.framing, &frame);
    let piece = Piece { headers, length: frame.len(), partial: Some(place) };
    (frame, piece)
}

/// Returns the number of groups of two packets.
fn groups(first: &Packet, second: &Packet) -> usize {
    coalesce(&[offered(first), offered(second)], true).len()
}

fn any_packet() -> impl Strategy<Value = Packet> {
    (any::<(bool, bool, bool, u8, u16, u32, u16)>(), 0usize..4, prop::sample::select(vec![0u8, 8]))
        .prop_map(|((v6, ethernet, psh, tos, identification, sequence, window), stamps, extra)| {
            let mut options = Vec::new();
            for _ in 0..stamps {
                options.extend([1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, extra]);
            }
            Packet {
                v6,
                framing: if ethernet { Framing::Ethernet } else { Framing::Ip },
                flags: 0x10 | if psh { TcpView::PSH } else { 0 },
                tos,
                identification,
                sequence,
                window,
                options,
                ..Packet::tcp(&[])
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn tcp_is_split_as_written_by_hand(
        packet in any_packet(),
        payload in prop::collection::vec(any::<u8>(), 1..20000),
        segment in 500u16..1500,
        flags in prop::sample::select(vec![0u8, TcpView::FIN, TcpView::CWR, TcpView::CWR | TcpView::FIN]),
    ) {
        let whole = Packet { payload, flags: packet.flags | flags, ..packet };
        let pieces = split(whole.framing, &super_header(&whole, segment), &whole.frame(true));
        let chunks: Vec<_> = whole.payload.chunks(usize::from(segment)).collect();
        prop_assert_eq!(pieces.len(), chunks.len());
        for (i, ((mut frame, piece), chunk)) in pieces.into_iter().zip(&chunks).enumerate() {
            let mut flags = whole.flags;
            if i > 0 {
                flags &= !TcpView::CWR;
            }
            if i + 1 < chunks.len() {
                flags &= !(TcpView::FIN | TcpView::PSH);
            }
            let expected = Packet {
                payload: chunk.to_vec(),
                sequence: whole.sequence.wrapping_add((i * usize::from(segment)) as u32),
                identification: whole.identification.wrapping_add(i as u16),
                flags,
                ..whole.clone()
            };
            prop_assert_eq!(&frame, &expected.frame(true));
            prop_assert_eq!(piece.headers, Headers::parse(whole.framing, &frame));
            piece.partial.unwrap().finish(&mut frame);
            prop_assert_eq!(&frame, &expected.frame(false));
            prop_assert!(piece.headers.verify(&frame));
        }
    }

    #[test]
    fn coalescing_restores_what_was_split(
        packet in any_packet(),
        payload in prop::collection::vec(any::<u8>(), 20..40000),
        segment in 700u16..1500,
        udp: bool,
    ) {
        let mut whole = Packet { udp, payload, ..packet };
        if udp {
            whole.options.clear();
        }
        // A last segment of fewer than eight bytes is not merged, so it is removed here.
        let rest = whole.payload.len() % usize::from(segment);
        if (1..8).contains(&rest) {
            whole.payload.truncate(whole.payload.len() - rest);
        }
        prop_assume!(!whole.payload.is_empty());
        let frame = whole.frame(true);
        let pieces = split(whole.framing, &super_header(&whole, segment), &frame);
        let merged = coalesce(&pieces, true);
        prop_assert_eq!(merged.len(), 1);
        let (header, bytes) = &merged[0];
        prop_assert_eq!(bytes, &frame);
        if pieces.len() > 1 {
            prop_assert_eq!(header, &super_header(&whole, segment));
        } else {
            prop_assert_eq!(header, &VnetHeader::single(pieces[0].1.partial));
        }
    }

    /// Packets of several flows in any order are merged and split again. Each flow then has the
    /// same packets in the same order.
    #[test]
    fn flows_keep_their_packets_and_their_order(
        steps in prop::collection::vec((0u8..12, 0u8..8, 1usize..1400), 1..150),
        udp: bool,
    ) {
        let mut flows: Vec<Packet> = (0..12)
            .map(|flow| {
                let base = if flow < 9 { Packet::tcp(&[]) } else { Packet::udp(&[]) };
                Packet {
                    v6: flow % 3 == 1,
                    ports: (1000 + flow, 80),
                    dont_fragment: flow % 2 == 0,
                    ..base
                }
            })
            .collect();
        let mut frames = Vec::new();
        for (flow, kind, length) in steps {
            let packet = &mut flows[usize::from(flow)];
            // Most packets are full segments, which can be merged. The others are shorter, have
            // flags, are out of order, or have no data.
            let length = match kind {
                0..4 => 1400,
                4 => 0,
                _ => length,
            };
            packet.payload = vec![kind; length];
            packet.flags = match kind {
                5 => 0x18,
                6 => 0x11,
                _ => 0x10,
            };
            frames.push(offered(packet));
            packet.sequence += length as u32 + u32::from(kind == 7);
            packet.identification += 1;
        }
        let mut after = Vec::new();
        for (header, frame) in coalesce(&frames, udp) {
            prop_assert!(frame.len() <= 65535);
            after.extend(split(Framing::Ip, &header, &frame).into_iter().map(|(frame, _)| frame));
        }
        prop_assert_eq!(after.len(), frames.len());
        let flow = |frame: &[u8]| Headers::parse(Framing::Ip, frame).ports().unwrap().0 - 1000;
        for number in 0..12 {
            let of = |frames: &mut dyn Iterator<Item = Vec<u8>>| -> Vec<Vec<u8>> {
                frames.filter(|frame| flow(frame) == number).collect()
            };
            let before = of(&mut frames.iter().map(|(frame, _)| frame.clone()));
            prop_assert_eq!(before, of(&mut after.clone().into_iter()));
        }
    }

    #[test]
    fn any_bytes_are_split_and_coalesced_without_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        header: [u8; vnet::LENGTH],
        at_version in prop::sample::select(vec![0x45u8, 0x4f, 0x60, 0x13]),
        protocol in prop::sample::select(vec![6u8, 17, 1, 44]),
        plausible: bool,
    ) {
        if bytes.len() > 60 {
            bytes[0] = at_version;
            if at_version == 0x60 {
                bytes[4] = 0;
                bytes[6] = protocol;
            } else {
                bytes[2] = 0;
                bytes[6] = 0;
                bytes[7] = 0;
                bytes[9] = protocol;
            }
        }
        let mut header = VnetHeader::parse(header);
        if plausible {
            header.gso = if protocol == 6 { Gso::TcpV4 } else { Gso::UdpL4 };
            header.segment_size %= 50;
        }
        for framing in [Framing::Ip, Framing::Ethernet] {
            let pieces = split(framing, &header, &bytes);
            for (frame, piece) in &pieces {
                let mut frame = frame.clone();
                if let Some(partial) = piece.partial {
                    partial.finish(&mut frame);
                }
            }
            if !pieces.is_empty() {
                coalesce(&pieces, true);
            }
        }
    }
}

#[test]
fn a_single_packet_comes_out_as_it_is() {
    for (frame, vnet) in [
        (Packet::tcp(&[1; 10]).frame(false), VnetHeader::default()),
        (vec![0x13, 0x37], VnetHeader::default()),
        // The header describes a super-packet, but the frame is not even IP.
        (vec![0; 60], VnetHeader { gso: Gso::TcpV4, segment_size: 20, ..VnetHeader::default() }),
    ] {
        let pieces = split(Framing::Ip, &vnet, &frame);
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].0, frame);
        assert_eq!(pieces[0].1.partial, None);
    }
}

#[test]
fn a_slot_too_short_leaves_its_packet_out() {
    let whole = Packet::tcp(&[3; 300]);
    let frame = whole.frame(true);
    let mut segments = Segments::new(Framing::Ip, &super_header(&whole, 100), &frame);
    let mut slot = [0; 200];
    assert!(segments.write_next(&mut slot).is_some());
    assert!(segments.write_next(&mut slot[..100]).is_none());
    let last = segments.write_next(&mut slot).unwrap();
    assert_eq!(last.headers.tcp().unwrap().sequence, whole.sequence + 200);
    assert_eq!(segments.next_length(), None);
}

#[test]
fn padding_of_a_super_packet_is_left_out() {
    let whole = Packet { framing: Framing::Ethernet, ..Packet::tcp(&[3; 30]) };
    let mut frame = whole.frame(true);
    frame.extend([0xee; 5]);
    let pieces = split(Framing::Ethernet, &super_header(&whole, 20), &frame);
    assert_eq!(pieces.len(), 2);
    let payload: Vec<u8> =
        pieces.iter().flat_map(|(frame, _)| frame[whole.payload_at()..].to_vec()).collect();
    assert_eq!(payload, whole.payload);
}

/// Returns two packets that can be merged; the tests then change one property at a time.
fn pair() -> (Packet, Packet) {
    let first = Packet::tcp(&[1; 1000]);
    let second = Packet { sequence: first.sequence + 1000, identification: 8, ..first.clone() };
    (first, second)
}

#[test]
fn packets_of_one_flow_are_merged() {
    let (first, second) = pair();
    assert_eq!(groups(&first, &second), 1);
    let merged = [
        ("shorter at the end", Packet { payload: vec![1; 8], ..second.clone() }),
        ("pushed at the end", Packet { flags: 0x18, ..second.clone() }),
        ("the same identification", Packet { identification: 7, ..second.clone() }),
        ("wrong byte in the payload", Packet { payload: vec![9; 1000], ..second.clone() }),
    ];
    for (what, second) in merged {
        assert_eq!(groups(&first, &second), 1, "{what}");
    }
}

#[test]
fn packets_that_differ_are_not_merged() {
    let (first, second) = pair();
    let alone = [
        ("another ECN field", Packet { tos: 1, ..second.clone() }),
        ("another code point", Packet { tos: 0xb8, ..second.clone() }),
        ("another time to live", Packet { ttl: 63, ..second.clone() }),
        ("fragmentation allowed", Packet { dont_fragment: false, ..second.clone() }),
        ("an identification that jumps", Packet { identification: 9, ..second.clone() }),
        ("another port", Packet { ports: (40001, 20000), ..second.clone() }),
        ("another host", Packet { hosts: (1, 3), ..second.clone() }),
        ("FIN", Packet { flags: 0x11, ..second.clone() }),
        ("SYN", Packet { flags: 0x12, ..second.clone() }),
        ("RST", Packet { flags: 0x14, ..second.clone() }),
        ("URG", Packet { flags: 0x30, ..second.clone() }),
        ("ECE", Packet { flags: 0x50, ..second.clone() }),
        ("CWR", Packet { flags: 0x90, ..second.clone() }),
        ("no ACK", Packet { flags: 0x00, ..second.clone() }),
        ("a gap", Packet { sequence: second.sequence + 1, ..second.clone() }),
        ("an overlap", Packet { sequence: second.sequence - 1, ..second.clone() }),
        ("the same again", first.clone()),
        ("another acknowledgement", Packet { acknowledgement: 5001, ..second.clone() }),
        ("another window", Packet { window: 501, ..second.clone() }),
        ("no options", Packet { options: vec![], ..second.clone() }),
        (
            "another time stamp",
            Packet { options: vec![1, 1, 8, 10, 0, 0, 0, 10, 0, 0, 0, 8], ..second.clone() },
        ),
        ("longer than the first", Packet { payload: vec![1; 1001], ..second.clone() }),
        ("no data", Packet { payload: vec![], ..second.clone() }),
        ("hardly any data", Packet { payload: vec![1; 7], ..second.clone() }),
        ("another protocol", Packet { udp: true, ..second.clone() }),
        ("another version", Packet { v6: true, ..second.clone() }),
    ];
    for (what, second) in alone {
        assert_eq!(groups(&first, &second), 2, "{what}");
    }
}

#[test]
fn packets_with_final_flags_begin_no_super_packet() {
    let (first, second) = pair();
    let alone = [
        ("PSH", Packet { flags: 0x18, ..first.clone() }),
        ("SYN", Packet { flags: 0x02, ..first.clone() }),
        ("CWR", Packet { flags: 0x90, ..first.clone() }),
        (
            "shorter than the second",
            Packet { payload: vec![1; 999], sequence: 1001, ..first.clone() },
        ),
    ];
    for (what, first) in alone {
        let second = Packet { flags: first.flags & !0x08 | 0x10, ..second.clone() };
        assert_eq!(groups(&first, &second), 2, "{what}");
    }
    // Equal identifications prevent merging if the packets may be fragmented.
    let first = Packet { dont_fragment: false, ..first };
    assert_eq!(groups(&first, &Packet { dont_fragment: false, ..second.clone() }), 1);
    let still = Packet { dont_fragment: false, identification: 7, ..second };
    assert_eq!(groups(&first, &still), 2);
}

#[test]
fn nothing_follows_a_shorter_packet_a_push_or_a_changed_step() {
    let first = Packet::tcp(&[1; 100]);
    let train = |lengths: [usize; 3], flags: [u8; 3], identifications: [u16; 3]| {
        let mut sequence = first.sequence;
        let mut frames = Vec::new();
        for i in 0..3 {
            let packet = Packet {
                payload: vec![1; lengths[i]],
                flags: flags[i],
                identification: identifications[i],
                sequence,
                ..first.clone()
            };
            sequence += lengths[i] as u32;
            frames.push(offered(&packet));
        }
        coalesce(&frames, true).len()
    };
    assert_eq!(train([100; 3], [0x10; 3], [7, 8, 9]), 1);
    assert_eq!(train([100, 50, 50], [0x10; 3], [7, 8, 9]), 2);
    assert_eq!(train([100; 3], [0x10, 0x18, 0x10], [7, 8, 9]), 2);
    assert_eq!(train([100; 3], [0x10; 3], [7, 8, 8]), 2);
    assert_eq!(train([100; 3], [0x10; 3], [7, 7, 8]), 2);
}

#[test]
fn complete_checksums_tags_and_trailers_stay_alone() {
    let (first, second) = pair();
    for spoil in 0..3 {
        let frames: Vec<_> = [&first, &second]
            .map(|packet| {
                let packet = Packet { framing: Framing::Ethernet, ..packet.clone() };
                let (mut frame, mut piece) = offered(&packet);
                match spoil {
                    0 => {
                        piece.partial.take().unwrap().finish(&mut frame);
                    }
                    1 => {
                        frame.splice(12..12, [0x81, 0, 0, 5]);
                        piece.partial = Some(Partial { start: 38, offset: 16 });
                    }
                    _ => frame.push(0),
                }
                piece.headers = Headers::parse(Framing::Ethernet, &frame);
                (frame, piece)
            })
            .into();
        let written = coalesce(&frames, true);
        assert_eq!(written.len(), 2, "{spoil}");
        for ((header, bytes), (frame, piece)) in written.iter().zip(&frames) {
            assert_eq!(bytes, frame);
            assert_eq!(header, &VnetHeader::single(piece.partial));
        }
    }
}

#[test]
fn super_packets_are_not_longer_than_a_datagram_may_be() {
    let mut frames = Vec::new();
    let mut packet = Packet::tcp(&[1; 1448]);
    for _ in 0..50 {
        frames.push(offered(&packet));
        packet.sequence += 1448;
        packet.identification += 1;
    }
    let merged = coalesce(&frames, true);
    assert_eq!(merged.len(), 2);
    assert_eq!(merged[0].1.len(), 52 + 45 * 1448);

    let mut frames = Vec::new();
    let mut packet = Packet::tcp(&[1; 20]);
    for _ in 0..=MAX_PACKETS {
        frames.push(offered(&packet));
        packet.sequence += 20;
        packet.identification += 1;
    }
    assert_eq!(coalesce(&frames, true).len(), 2);
}

#[test]
fn datagrams_are_merged_only_if_asked() {
    let first = Packet::udp(&[1; 300]);
    let second = Packet { identification: 8, ..first.clone() };
    let frames = [offered(&first), offered(&second)];
    assert_eq!(coalesce(&frames, false).len(), 2);
    let merged = coalesce(&frames, true);
    assert_eq!(merged.len(), 1);
    assert_eq!(merged[0].0.segment_size, 300);
    // The checksum of the merged IP header is correct.
    assert_eq!(ones(&merged[0].1[..20]), 0xffff);
}

#[test]
fn a_fragment_is_not_overtaken() {
    let (first, second) = pair();
    let mut fragment = Packet::udp(&[1; 50]).frame(false);
    fragment[6..8].copy_from_slice(&[0x20, 4]);
    let piece = Piece {
        headers: Headers::parse(Framing::Ip, &fragment),
        length: fragment.len(),
        partial: None,
    };
    let written = coalesce(&[offered(&first), (fragment.clone(), piece), offered(&second)], true);
    assert_eq!(written.len(), 3);
    assert_eq!(written[1].1, fragment);
}
