//! Parses the headers of frames that were written by hand.
#![cfg(target_os = "linux")]

mod common;

use common::Packet;
use proptest::prelude::*;
use sojourn_queue::{Ecn, TcpView};
use sojourn_wire::headers::{Fragment, Framing, Headers, Transport};
use sojourn_wire::vnet::Partial;

/// A segment of an HTTP answer as in a capture: Ethernet, IPv4, and TCP with timestamps.
const CAPTURED: [u8; 70] = [
    0x02, 0x42, 0xac, 0x11, 0x00, 0x02, 0x02, 0x42, 0x5b, 0x0e, 0x1d, 0x01, 0x08,
    0x00, // Ethernet
    0x45, 0x02, 0x00, 0x38, 0x1c, 0x46, 0x40, 0x00, 0x40, 0x06, 0x00, 0x00, // IPv4
    0xc0, 0xa8, 0x00, 0x68, 0xc0, 0xa8, 0x00, 0x01, // 192.168.0.104 to 192.168.0.1
    0x00, 0x50, 0xd4, 0x31, 0x01, 0x02, 0x03, 0x04, 0x0a, 0x0b, 0x0c, 0x0d, 0x80, 0x18, 0x01, 0xf5,
    0xbe, 0xef, 0x00, 0x00, // TCP: 80 to 54321, ACK and PSH
    0x01, 0x01, 0x08, 0x0a, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, // time stamps
    b'a', b'b', b'c', b'd',
];

#[test]
fn ipv4_tcp_with_time_stamps() {
    let headers = Headers::parse(Framing::Ethernet, &CAPTURED);
    assert_eq!(headers.length, 70);
    let ip = headers.ip.unwrap();
    assert_eq!((ip.at, ip.header, ip.total, ip.ttl, ip.protocol), (14, 20, 56, 64, 6));
    assert_eq!(ip.source.to_string(), "192.168.0.104");
    assert_eq!(ip.destination.to_string(), "192.168.0.1");
    assert_eq!((headers.dscp(), headers.ecn()), (0, Ecn::Ect0));
    let tcp = headers.tcp().unwrap();
    assert_eq!((tcp.at, tcp.header, tcp.ports), (34, 32, (80, 54321)));
    assert_eq!((tcp.sequence, tcp.acknowledgement), (0x0102_0304, 0x0a0b_0c0d));
    assert_eq!((tcp.flags, tcp.window, tcp.payload), (0x18, 501, 4));
    assert_eq!(headers.payload_at(), Some(66));
    let view = headers.tcp_view(&CAPTURED, (3, 4)).unwrap();
    assert_eq!(view.hosts, (3, 4));
    assert_eq!(view.timestamps, Some((0x1122_3344, 0x5566_7788)));
    assert_eq!((view.ack, view.flags, view.payload), (0x0a0b_0c0d, 0x18, 4));
    assert!(!view.other_options);
}

#[test]
fn the_same_without_ethernet_counts_it() {
    let headers = Headers::parse(Framing::Ip, &CAPTURED[14..]);
    assert_eq!(headers.length, 70);
    assert_eq!(headers.ip.unwrap().at, 0);
    assert_eq!(headers.tcp().unwrap().at, 20);
    let with = Headers::parse(Framing::Ethernet, &CAPTURED);
    assert_eq!(headers.flow_hash(1), with.flow_hash(1));
}

#[test]
fn vlan_tags_are_stepped_over() {
    let tagged: [&[u8]; 3] = [&CAPTURED[..12], &[0x81, 0, 0, 5], &CAPTURED[12..]];
    let twice: [&[u8]; 3] = [&CAPTURED[..12], &[0x88, 0xa8, 0, 6, 0x81, 0, 0, 5], &CAPTURED[12..]];
    for (frame, length, at) in [(tagged.concat(), 74, 18), (twice.concat(), 78, 22)] {
        let headers = Headers::parse(Framing::Ethernet, &frame);
        assert_eq!(headers.length, length);
        assert_eq!(headers.ip.unwrap().at, at);
        assert_eq!(headers.ports(), Some((80, 54321)));
    }
}

#[test]
fn padding_is_not_payload() {
    let mut frame = CAPTURED.to_vec();
    frame.extend([0; 9]);
    let headers = Headers::parse(Framing::Ethernet, &frame);
    assert_eq!(headers.length, 79);
    assert_eq!(headers.tcp().unwrap().payload, 4);
}

#[test]
fn ipv6_udp() {
    let mut frame = vec![0x6b, 0x81, 0x23, 0x45, 0x00, 0x0c, 17, 63];
    frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    frame.extend([0x4e, 0x20, 0x00, 0x35, 0x00, 0x0c, 0, 0, 1, 2, 3, 4]);
    let headers = Headers::parse(Framing::Ip, &frame);
    let ip = headers.ip.unwrap();
    assert_eq!((ip.header, ip.total, ip.ttl, ip.protocol, ip.tos), (40, 52, 63, 17, 0xb8));
    assert_eq!(ip.source.to_string(), "fd00::1");
    assert_eq!(ip.destination.to_string(), "fd00::2");
    assert_eq!((headers.dscp(), headers.ecn()), (46, Ecn::NotEct));
    assert_eq!(headers.ports(), Some((20000, 53)));
    assert_eq!(headers.length, 66);
}

#[test]
fn ipv6_extension_headers() {
    let start = |next: u8, length: u8| {
        let mut frame = vec![0x60, 0, 0, 0, 0, length, next, 64];
        frame.extend([0xfd; 32]);
        frame
    };
    // Hop-by-hop options, then destination options of 16 bytes, then UDP.
    let mut frame = start(0, 32);
    frame.extend([60, 0, 1, 4, 0, 0, 0, 0]);
    frame.extend([17, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend([0, 7, 0, 9, 0, 8, 0, 0]);
    let headers = Headers::parse(Framing::Ip, &frame);
    assert_eq!(headers.ip.unwrap().header, 64);
    assert_eq!(headers.ports(), Some((7, 9)));

    // A first fragment has ports, but its hash does not include them; a later fragment has no
    // ports.
    let mut first = start(44, 16);
    first.extend([17, 0, 0, 1, 0, 0, 0, 5]);
    first.extend([0, 7, 0, 9, 0, 8, 0, 0]);
    let mut later = start(44, 16);
    later.extend([17, 0, 0, 8, 0, 0, 0, 5]);
    later.extend([1, 2, 3, 4, 5, 6, 7, 8]);
    let (first, later) = (Headers::parse(Framing::Ip, &first), Headers::parse(Framing::Ip, &later));
    assert_eq!(first.ip.unwrap().fragment, Fragment::First);
    assert_eq!(later.ip.unwrap().fragment, Fragment::Later);
    assert_eq!((first.ports(), later.ports()), (Some((7, 9)), None));
    assert_eq!(first.flow_hash(9), later.flow_hash(9));

    // If an extension header exceeds the packet, its transport is unknown.
    let mut cut = start(0, 8);
    cut.extend([17, 200, 1, 4, 0, 0, 0, 0]);
    let headers = Headers::parse(Framing::Ip, &cut);
    assert_eq!((headers.ip.unwrap().header, headers.transport), (40, Transport::Opaque));
}

#[test]
fn echo_requests_differ_by_identifier() {
    let echo = |identifier: u8, sequence: u8| {
        let mut frame = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        frame.extend([8, 0, 0, 0, 0, identifier, 0, sequence]);
        Headers::parse(Framing::Ip, &frame)
    };
    let Transport::Icmp(icmp) = echo(5, 1).transport else { panic!("not ICMP") };
    assert_eq!((icmp.kind, icmp.code, icmp.echo), (8, 0, Some((5, 1))));
    assert_eq!(echo(5, 1).flow_hash(0), echo(5, 2).flow_hash(0));
    assert_ne!(echo(5, 1).flow_hash(0), echo(6, 1).flow_hash(0));
}

#[test]
fn the_code_point_is_set_and_checksums_still_hold() {
    for v6 in [false, true] {
        for framing in [Framing::Ip, Framing::Ethernet] {
            let packet = Packet { v6, framing, tos: 0x02, ..Packet::tcp(&[1; 100]) };
            let mut frame = packet.frame(false);
            for tos in [0x03, 0xb8, 0x00, 0xff, 0x01] {
                let mut headers = Headers::parse(framing, &frame);
                headers.set_tos(&mut frame, tos);
                assert_eq!(frame, Packet { tos, ..packet.clone() }.frame(false), "{tos:#x}");
                assert_eq!(headers, Headers::parse(framing, &frame));
                assert!(headers.verify(&frame));
            }
        }
    }
}

#[test]
fn a_partial_checksum_is_finished() {
    for v6 in [false, true] {
        for udp in [false, true] {
            let base = if udp { Packet::udp(b"odd") } else { Packet::tcp(b"seven b") };
            let packet = Packet { v6, framing: Framing::Ethernet, ..base };
            let mut frame = packet.frame(true);
            let headers = Headers::parse(Framing::Ethernet, &frame);
            assert!(!headers.verify(&frame));
            let start = packet.transport_at() as u16;
            Partial { start, offset: if udp { 6 } else { 16 } }.finish(&mut frame);
            assert_eq!(frame, packet.frame(false));
            assert!(headers.verify(&frame));
            *frame.last_mut().unwrap() ^= 4;
            assert!(!headers.verify(&frame), "a flipped bit is noticed");
        }
    }
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_its_other_form() {
    // Find a payload whose computed checksum is zero, which UDP transmits as 0xffff.
    let packet = (0..=u16::MAX)
        .map(|word| Packet::udp(&word.to_be_bytes()))
        .find(|packet| packet.frame(false)[26..28] == [0xff, 0xff])
        .unwrap();
    let mut frame = packet.frame(true);
    Partial { start: 20, offset: 6 }.finish(&mut frame);
    assert_eq!(frame[26..28], [0xff, 0xff]);
}

#[test]
fn flow_hashes_are_spread() {
    // The 1024 buckets have 16 flows each on average, and no bucket may have several times as many.
    let mut buckets = vec![0u32; 1024];
    for flow in 0..16384u32 {
        let packet = Packet {
            ports: (20000 + (flow & 0x3fff) as u16, 80),
            hosts: ((flow >> 10) as u8, 2),
            ..Packet::udp(&[])
        };
        let hash = Headers::parse(Framing::Ip, &packet.frame(true)).flow_hash(42);
        buckets[((u64::from(hash) * 1024) >> 32) as usize] += 1;
    }
    assert!(buckets.iter().all(|count| *count < 48), "{:?}", buckets.iter().max());
    let chi: f64 = buckets.iter().map(|n| (f64::from(*n) - 16.0).powi(2) / 16.0).sum();
    // With 1023 degrees of freedom the mean is 1023 and the standard deviation 45.
    assert!((800.0..1250.0).contains(&chi), "{chi}");
}

proptest! {
    #[test]
    fn directions_and_seeds_differ(ports: (u16, u16), hosts in (1u8..100, 100u8..200), v6: bool) {
        let there = Packet { v6, hosts, ports, ..Packet::tcp(&[]) };
        let back = Packet { ports: (ports.1, ports.0), hosts: (hosts.1, hosts.0), ..there.clone() };
        let hash = |packet: &Packet, seed| {
            Headers::parse(Framing::Ip, &packet.frame(true)).flow_hash(seed)
        };
        prop_assert_eq!(hash(&there, 1), hash(&Packet { sequence: 9, ..there.clone() }, 1));
        prop_assert_ne!(hash(&there, 1), hash(&back, 1));
        prop_assert_ne!(hash(&there, 1), hash(&there, 2));
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        ethertype in prop::option::of(prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100])),
        version in prop::option::of(prop::sample::select(vec![0x45u8, 0x46, 0x60])),
        tos: u8,
    ) {
        if let (Some(ethertype), true) = (ethertype, bytes.len() > 14) {
            bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        }
        for framing in [Framing::Ip, Framing::Ethernet] {
            let at = if framing == Framing::Ip { 0 } else { 14 };
            if let (Some(version), true) = (version, bytes.len() > at) {
                bytes[at] = version;
            }
            if bytes.len() > at + 40 {
                bytes[at + 2] = 0;
                bytes[at + 4] = 0;
            }
            let mut headers = Headers::parse(framing, &bytes);
            headers.verify(&bytes);
            headers.tcp_view(&bytes, (0, 0));
            headers.flow_hash(7);
            headers.hosts();
            let before = bytes.clone();
            headers.set_tos(&mut bytes, tos);
            if headers.ip.is_none() {
                prop_assert_eq!(before, bytes.clone());
            } else {
                prop_assert_eq!(Headers::parse(framing, &bytes), headers);
            }
        }
    }

    #[test]
    fn a_cut_frame_is_opaque(cut in 0usize..132, v6: bool) {
        let packet = Packet { v6, framing: Framing::Ethernet, ..Packet::tcp(&[5; 66]) };
        let frame = packet.frame(false);
        let headers = Headers::parse(Framing::Ethernet, &frame[..cut.min(frame.len() - 1)]);
        prop_assert_eq!((headers.ip, headers.transport), (None, Transport::Opaque));
    }
}

#[test]
fn flags_are_the_field_s() {
    let packet = Packet { flags: TcpView::SYN | TcpView::ECE | TcpView::CWR, ..Packet::tcp(&[]) };
    let headers = Headers::parse(Framing::Ip, &packet.frame(false));
    assert_eq!(headers.tcp().unwrap().flags, 0xc2);
}

/// Returns the fields that are read from a segment's options.
fn view(options: &[u8]) -> TcpView {
    let packet = Packet { options: options.to_vec(), ..Packet::tcp(&[]) };
    let frame = packet.frame(false);
    Headers::parse(Framing::Ip, &frame).tcp_view(&frame, (0, 0)).unwrap()
}

#[test]
fn sack_blocks_with_time_stamps() {
    let mut options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 26];
    for edge in [10u32, 20, 30, 40, 50, 60] {
        options.extend(edge.to_be_bytes());
    }
    let view = view(&options);
    assert_eq!(view.timestamps, Some((1, 2)));
    assert_eq!(view.sack.as_slice(), [(10, 20), (30, 40), (50, 60)]);
    assert!(!view.other_options);
}

#[test]
fn other_options_are_reported() {
    // The options of a SYN: maximum segment size, SACK permitted, timestamps, and window scale.
    let syn = view(&[2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7]);
    assert_eq!((syn.timestamps, syn.other_options), (Some((9, 0)), true));
    // MD5 is none of the known options. Options after the end of the list are ignored.
    let mut md5 = vec![19, 18];
    md5.extend([7; 16]);
    md5.extend([0, 99]);
    assert!(!view(&md5).other_options);
}

#[test]
fn malformed_options_are_others() {
    for options in [[1, 1, 1, 8], [8, 0, 0, 0], [8, 1, 0, 0], [8, 10, 1, 2], [5, 2, 1, 1]] {
        let view = view(&options);
        assert!(view.other_options, "{options:?}");
        assert_eq!((view.timestamps, view.sack.as_slice()), (None, &[][..]), "{options:?}");
    }
}
