//! Capture files in all formats that can be read, damaged files, and other files.

use proptest::prelude::*;
use sojourn_capture::frames::{Frame, Frames, TcpHeader};
use sojourn_capture::pcapng::{Block, ETHERNET};
use sojourn_capture::{Capture, CaptureError, Endpoint, Packet, Select, read};

/// A capture file that is being written, with the given byte order.
#[derive(Clone, Debug)]
struct File {
    bytes: Vec<u8>,
    big: bool,
}

impl File {
    fn put<const N: usize>(&mut self, big: [u8; N]) {
        let mut bytes = big;
        if !self.big {
            bytes.reverse();
        }
        self.bytes.extend(bytes);
    }

    fn u16(&mut self, value: u16) {
        self.put(value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.put(value.to_be_bytes());
    }

    fn u32s(&mut self, values: &[u32]) {
        for value in values {
            self.u32(*value);
        }
    }

    fn pcap(big: bool, magic: u32, network: u32) -> Self {
        let mut file = Self { bytes: Vec::new(), big };
        file.u32(magic);
        file.u16(2);
        file.u16(4);
        file.u32s(&[0, 0, 65_535, network]);
        file
    }

    fn record(&mut self, seconds: u32, fraction: u32, length: u32, data: &[u8]) {
        self.u32s(&[seconds, fraction, data.len() as u32, length]);
        self.bytes.extend(data);
    }

    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Self)) {
        self.u32(kind);
        let start = self.bytes.len();
        self.u32(0);
        body(self);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let total = (self.bytes.len() - start + 8) as u32;
        let mut length = Self { bytes: Vec::new(), big: self.big };
        length.u32(total);
        self.bytes[start..start + 4].copy_from_slice(&length.bytes);
        self.u32(total);
    }

    fn section(big: bool) -> Self {
        let mut file = Self { bytes: Vec::new(), big };
        file.begin_section();
        file
    }

    fn begin_section(&mut self) {
        self.block(0x0a0d_0d0a, |f| {
            f.u32(0x1a2b_3c4d);
            f.u16(1);
            f.u16(0);
            f.put((-1i64).to_be_bytes());
        });
    }

    fn interface(&mut self, link: u16, options: &[(u16, &[u8])]) {
        self.block(1, |f| {
            f.u16(link);
            f.u16(0);
            f.u32(0);
            for (code, value) in options {
                f.u16(*code);
                f.u16(value.len() as u16);
                let mut value = value.to_vec();
                if !f.big {
                    value.reverse();
                }
                value.resize(value.len().next_multiple_of(4), 0);
                f.bytes.extend(value);
            }
        });
    }

    fn packet(&mut self, interface: u32, ticks: u64, length: u32, data: &[u8]) {
        self.block(6, |f| {
            let fields = [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, length];
            f.u32s(&fields);
            f.bytes.extend(data);
        });
    }
}

fn all(file: &File) -> Result<Vec<Packet>, CaptureError> {
    read(&file.bytes, &Select::default(), 1000).map(|capture| capture.packets)
}

fn packet(time: u64, frame: u32) -> Packet {
    Packet { time, frame }
}

/// Returns the position and the message of the error for a file.
fn refused(file: &File) -> (usize, String) {
    let error = all(file).unwrap_err();
    (error.at, error.message)
}

#[test]
fn pcap_in_both_orders_and_units() {
    for big in [false, true] {
        for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let mut file = File::pcap(big, magic, 1);
            file.record(1, 500, 1514, &[0; 60]);
            file.record(2, 999_999, 60, &[0; 60]);
            let expected = [
                packet(1_000_000_000 + 500 * unit, 1514),
                packet(2_000_000_000 + 999_999 * unit, 60),
            ];
            assert_eq!(all(&file).unwrap(), expected);
        }
    }
}

#[test]
fn a_packet_has_its_length_on_the_wire() {
    let mut file = File::pcap(false, 0xa1b2_c3d4, 1);
    file.record(0, 0, 9000, &[]);
    assert_eq!(all(&file).unwrap(), [packet(0, 9000)]);
}

#[test]
fn every_link_becomes_ethernet() {
    for (link, length) in
        [(1, 100), (101, 86), (12, 86), (228, 86), (113, 102), (276, 106), (0, 90)]
    {
        let mut file = File::pcap(false, 0xa1b2_c3d4, link);
        file.record(0, 0, length, &[0; 20]);
        assert_eq!(all(&file).unwrap(), [packet(0, 100)], "link type {link}");
    }
    // The header states a frame check sequence of four bytes, in units of 16 bits.
    let mut file = File::pcap(false, 0xa1b2_c3d4, 1 | 1 << 26 | 2 << 28);
    file.record(0, 0, 104, &[]);
    assert_eq!(all(&file).unwrap(), [packet(0, 100)]);
}

#[test]
fn pcapng_has_interfaces_with_clocks_of_their_own() {
    for big in [false, true] {
        let mut file = File::section(big);
        file.interface(1, &[]);
        file.interface(101, &[(9, &[9]), (14, &10i64.to_be_bytes())]);
        file.interface(1, &[(9, &[0x8a]), (13, &[4]), (0, &[])]);
        // An unknown link type without packets is ignored, and so are unknown blocks.
        file.interface(147, &[(2, b"eth0")]);
        file.block(5, |f| f.u32(7));
        file.packet(0, 1_500_000, 1514, &[0; 61]);
        file.packet(1, 5, 86, &[0; 3]);
        file.packet(2, 1536, 104, &[]);
        let expected =
            [packet(1_500_000_000, 1514), packet(10_000_000_005, 100), packet(1_500_000_000, 100)];
        assert_eq!(all(&file).unwrap(), expected);
        // A new section has no interfaces yet, and has its own byte order.
        file.big = !big;
        file.begin_section();
        file.interface(1, &[(9, &[3])]);
        file.packet(0, 2, 60, &[]);
        assert_eq!(all(&file).unwrap()[3], packet(2_000_000, 60));
        file.packet(1, 2, 60, &[]);
        assert_eq!(refused(&file).1, "there is no interface 1");
    }
}

#[test]
fn the_obsolete_packet_block() {
    let mut file = File::section(false);
    file.interface(1, &[]);
    file.block(2, |f| {
        f.u16(0);
        f.u16(3);
        f.u32s(&[0, 7, 0, 60]);
    });
    assert_eq!(all(&file).unwrap(), [packet(7000, 60)]);
}

#[test]
fn an_unreadable_file_is_refused_with_the_place() {
    let error = |bytes: &[u8]| read(bytes, &Select::default(), 10).unwrap_err().to_string();
    assert_eq!(error(b""), "the file is too short for a capture file (byte 0 of the file)");
    assert_eq!(
        error(b"# a text"),
        "the file is neither a pcap nor a pcapng file (byte 0 of the file)"
    );

    let mut file = File::pcap(false, 0xa1b2_c3d4, 1);
    file.bytes.truncate(20);
    assert_eq!(refused(&file), (0, "the file ends within its header".into()));

    let mut file = File::pcap(false, 0xa1b2_c3d4, 1);
    file.record(0, 0, 60, &[0; 60]);
    file.bytes.pop();
    assert_eq!(refused(&file), (24, "the file ends within a packet".into()));

    let mut file = File::pcap(false, 0xa1b2_c3d4, 1);
    file.u32s(&[0, 0, u32::MAX, 60]);
    assert_eq!(
        refused(&file),
        (32, "a packet must not have more than 67108864 captured bytes, found 4294967295".into())
    );

    let (at, message) = refused(&File::pcap(true, 0xa1b2_c3d4, 105));
    assert_eq!(at, 20);
    assert!(message.starts_with("unsupported link type 105: use Ethernet (1)"), "{message}");

    let mut file = File::section(false);
    file.block(3, |f| f.u32(60));
    assert_eq!(
        refused(&file),
        (28, "packets must have times; a simple packet block has none".into())
    );

    let mut file = File::section(false);
    file.u32(1);
    file.u32(14);
    assert_eq!(refused(&file), (32, "the length of a block is invalid: 14 bytes".into()));

    let mut file = File::section(false);
    file.interface(1, &[(9, &[40])]);
    assert_eq!(refused(&file), (44, "the unit of time is too small: 10^-40 s".into()));

    let mut file = File::section(false);
    file.interface(1, &[(14, &i64::MIN.to_be_bytes())]);
    file.packet(0, 0, 60, &[]);
    assert_eq!(refused(&file).1, "the packet's time is out of range");

    let mut file = File::pcap(false, 0xa1b2_c3d4, 1);
    (0..3).for_each(|i| file.record(i, 0, 60, &[]));
    let few = read(&file.bytes, &Select::default(), 2).unwrap_err();
    assert_eq!(
        (few.at, few.message.as_str()),
        (56, "the file must not contain more than 2 selected packets")
    );
}

/// Returns an Ethernet frame with IPv4 or IPv6 and ports, and with a VLAN tag if `vlan`.
fn frame(vlan: bool, six: bool, protocol: u8, ports: (u16, u16)) -> Vec<u8> {
    let mut data = vec![0; 12];
    if vlan {
        data.extend([0x81, 0, 0, 7]);
    }
    if six {
        data.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 16, 0, 64]);
        for last in [1, 2] {
            data.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        // A hop-by-hop header comes before the transport header.
        data.extend([protocol, 0, 1, 4, 0, 0, 0, 0]);
    } else {
        data.extend([0x08, 0, 0x46, 0, 0, 32, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
        data.extend([10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 1]);
    }
    data.extend(ports.0.to_be_bytes());
    data.extend(ports.1.to_be_bytes());
    data
}

#[test]
fn packets_are_selected_by_their_headers() {
    let mut file = File::pcap(false, 0xa1b2_c3d4, 1);
    let frames = [
        frame(false, false, 17, (5000, 53)),
        frame(true, false, 6, (5000, 443)),
        frame(false, true, 17, (5000, 53)),
        // A fragment that is not the first has no ports; ARP has no IP addresses.
        {
            let mut f = frame(false, false, 17, (5000, 53));
            f[21] = 9;
            f
        },
        [vec![0; 12], vec![0x08, 0x06], vec![0; 28]].concat(),
        frame(false, false, 17, (5000, 53))[..36].to_vec(),
    ];
    for (i, data) in frames.iter().enumerate() {
        file.record(i as u32, 0, 100, data);
    }
    let chosen = |source: &str, destination: &str, protocol: Option<u8>| -> Vec<u64> {
        let end = |text: &str| (!text.is_empty()).then(|| Endpoint::parse(text).unwrap());
        let select = Select { source: end(source), destination: end(destination), protocol };
        let Capture { packets, seen } = read(&file.bytes, &select, 10).unwrap();
        assert_eq!(seen, 6);
        packets.iter().map(|packet| packet.time / 1_000_000_000).collect()
    };
    assert_eq!(chosen("", "", None), [0, 1, 2, 3, 4, 5]);
    assert_eq!(chosen("10.0.0.1", "", None), [0, 1, 3, 5]);
    assert_eq!(chosen("", "10.0.0.1", None), [0u64; 0]);
    assert_eq!(chosen("2001:db8::1", "", None), [2]);
    assert_eq!(chosen("", "[2001:db8::2]:53", None), [2]);
    assert_eq!(chosen("10.0.0.1:5000", "10.0.0.2:443", Some(6)), [1]);
    assert_eq!(chosen(":5000", "", Some(17)), [0, 2]);
    assert_eq!(chosen("", "", Some(17)), [0, 2, 3, 5]);
}

#[test]
fn endpoints_read_back() {
    for text in ["10.0.0.1", "10.0.0.1:80", ":80", "2001:db8::1", "[2001:db8::1]:80"] {
        assert_eq!(Endpoint::parse(text).unwrap().to_string(), text);
    }
    for text in ["", "10.0.0", "10.0.0.1:", ":70000", "host", "host:80"] {
        assert_eq!(Endpoint::parse(text), None, "{text}");
    }
}

fn any_file() -> impl Strategy<Value = File> {
    let packets = prop::collection::vec(
        (any::<u64>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..80)),
        0..8,
    );
    (any::<[bool; 2]>(), 0..300u32, packets).prop_map(|([big, ng], link, packets)| {
        let mut file = if ng { File::section(big) } else { File::pcap(big, 0xa1b2_c3d4, link) };
        if ng {
            file.interface(link as u16, &[(9, &[link as u8])]);
        }
        for (time, length, data) in packets {
            if ng {
                file.packet(0, time, length, &data);
            } else {
                file.record((time >> 32) as u32, time as u32, length, &data);
            }
        }
        file
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes, &Select::default(), 10);
    }

    /// Valid files with a few changed bytes, truncated anywhere: they reach more of the code than
    /// random bytes.
    #[test]
    fn damaged_files_are_read_or_refused(
        file in any_file(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        whole: bool,
        protocol in prop::option::of(any::<u8>()),
    ) {
        let mut bytes = file.bytes;
        for (place, value) in damage {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        let source = Endpoint::parse(":53");
        let select = Select { source, destination: None, protocol };
        for select in [Select::default(), select] {
            match read(&bytes, &select, 100) {
                Ok(capture) => prop_assert!(capture.packets.len() as u64 <= capture.seen),
                Err(error) => prop_assert!(error.at <= bytes.len(), "{}", error),
            }
        }
    }
}

/// Any frame of a simulated link, and its time.
fn any_frame() -> impl Strategy<Value = (u64, Frame)> {
    let tcp = (any::<u8>(), 0..1500u32, prop::option::of(any::<(u32, u32)>())).prop_map(
        |(flags, payload, timestamps)| TcpHeader {
            flags,
            payload,
            timestamps,
            ..TcpHeader::default()
        },
    );
    let nodes = (0..70_000u32, 0..70_000u32);
    let fields = (nodes, any::<(u16, u16)>(), any::<u8>(), 74..9000u32, prop::option::of(tcp));
    (0..u64::from(u32::MAX) * 1_000_000_000, fields).prop_map(
        |(time, (nodes, ports, tos, len, tcp))| {
            (time, Frame { nodes, ports, tos, len, id: 0, tcp })
        },
    )
}

proptest! {
    #[test]
    fn written_frames_are_read_with_their_times_lengths_and_headers(
        frames in prop::collection::vec(any_frame(), 1..20),
        snaplen in 60..2000u32,
    ) {
        let mut file = Frames::new(snaplen);
        for (time, frame) in &frames {
            file.add(*time, frame);
        }
        let bytes = file.into_bytes();
        let expected: Vec<_> = frames.iter().map(|(time, frame)| packet(*time, frame.len)).collect();
        prop_assert_eq!(read(&bytes, &Select::default(), 100).unwrap().packets, expected);
        let (_, first) = frames[0];
        let end = |node: u32, port: u16| Endpoint {
            address: Some(std::net::Ipv4Addr::from(0x0a00_0001 + node).into()),
            port: Some(port),
        };
        let select = Select {
            source: Some(end(first.nodes.0, first.ports.0)),
            destination: Some(end(first.nodes.1, first.ports.1)),
            protocol: Some(if first.tcp.is_some() { 6 } else { 17 }),
        };
        let same = |frame: &Frame| {
            (frame.nodes, frame.ports) == (first.nodes, first.ports)
                && frame.tcp.is_some() == first.tcp.is_some()
        };
        let selected = frames.iter().filter(|(_, frame)| same(frame)).count();
        prop_assert_eq!(read(&bytes, &select, 100).unwrap().packets.len(), selected);
    }

    #[test]
    fn written_blocks_are_read_with_their_times_and_lengths(
        packets in prop::collection::vec(
            (0..1u64 << 63, prop::collection::vec(any::<u8>(), 0..80), any::<bool>()), 0..20),
    ) {
        let mut block = Block::default();
        let mut bytes = Vec::new();
        block.section("a test");
        bytes.extend(block.end());
        block.interface("a link", ETHERNET, 80);
        bytes.extend(block.end());
        for (time, data, is_dropped) in &packets {
            let comment = is_dropped.then_some(("refused by the queue: ", "overflow"));
            block.packet(0, *time, data, 1514, comment);
            bytes.extend(block.end());
        }
        block.statistics(0, 0, packets.len() as u64, 1);
        bytes.extend(block.end());
        let expected: Vec<_> = packets.iter().map(|(time, ..)| packet(*time, 1514)).collect();
        prop_assert_eq!(read(&bytes, &Select::default(), 100).unwrap().packets, expected);
    }
}
