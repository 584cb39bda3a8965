//! Frames for the tests, whose checksums are computed independently of the crate.
#![allow(dead_code, reason = "each test uses its part")]

use sojourn_wire::headers::Framing;

/// A packet that is written as a frame.
#[derive(Clone, Debug)]
pub struct Packet {
    pub framing: Framing,
    pub v6: bool,
    pub udp: bool,
    pub hosts: (u8, u8),
    pub ports: (u16, u16),
    pub tos: u8,
    pub ttl: u8,
    pub identification: u16,
    pub dont_fragment: bool,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
    pub window: u16,
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Packet {
    pub fn tcp(payload: &[u8]) -> Self {
        Self {
            framing: Framing::Ip,
            v6: false,
            udp: false,
            hosts: (1, 2),
            ports: (40000, 20000),
            tos: 0,
            ttl: 64,
            identification: 7,
            dont_fragment: true,
            sequence: 1000,
            acknowledgement: 5000,
            flags: 0x10,
            window: 500,
            options: vec![1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8],
            payload: payload.to_vec(),
        }
    }

    pub fn udp(payload: &[u8]) -> Self {
        Self { udp: true, options: vec![], ..Self::tcp(payload) }
    }

    pub fn ip_at(&self) -> usize {
        if self.framing == Framing::Ip { 0 } else { 14 }
    }

    pub fn transport_at(&self) -> usize {
        self.ip_at() + if self.v6 { 40 } else { 20 }
    }

    pub fn checksum_at(&self) -> usize {
        self.transport_at() + if self.udp { 6 } else { 16 }
    }

    pub fn payload_at(&self) -> usize {
        self.transport_at() + if self.udp { 8 } else { 20 + self.options.len() }
    }

    fn addresses(&self) -> (Vec<u8>, Vec<u8>) {
        let address = |host: u8| {
            let mut bytes = if self.v6 { vec![0xfd; 16] } else { vec![10, 0, 0, 0] };
            *bytes.last_mut().unwrap() = host;
            bytes
        };
        (address(self.hosts.0), address(self.hosts.1))
    }

    fn pseudo(&self) -> Vec<u8> {
        let (source, destination) = self.addresses();
        let length = (self.payload_at() - self.transport_at() + self.payload.len()) as u32;
        let protocol = if self.udp { 17 } else { 6 };
        [source, destination, length.to_be_bytes().to_vec(), vec![0, 0, 0, protocol]].concat()
    }

    /// Returns the frame. With `partial`, the transport checksum field contains the sum of the
    /// pseudo-header, otherwise the checksum.
    pub fn frame(&self, partial: bool) -> Vec<u8> {
        let mut transport = Vec::new();
        transport.extend(self.ports.0.to_be_bytes());
        transport.extend(self.ports.1.to_be_bytes());
        if self.udp {
            transport.extend((self.payload.len() as u16 + 8).to_be_bytes());
            transport.extend([0, 0]);
        } else {
            transport.extend(self.sequence.to_be_bytes());
            transport.extend(self.acknowledgement.to_be_bytes());
            transport.push((5 + self.options.len() as u8 / 4) << 4);
            transport.push(self.flags);
            transport.extend(self.window.to_be_bytes());
            transport.extend([0, 0, 0, 0]);
            transport.extend(&self.options);
        }
        transport.extend(&self.payload);
        let at = if self.udp { 6 } else { 16 };
        let sum = if partial {
            ones(&self.pseudo())
        } else {
            match !ones(&[self.pseudo(), transport.clone()].concat()) {
                0 => 0xffff,
                sum => sum,
            }
        };
        transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());

        let (source, destination) = self.addresses();
        let protocol = if self.udp { 17 } else { 6 };
        let mut ip = Vec::new();
        if self.v6 {
            ip.extend((6 << 28 | u32::from(self.tos) << 20 | 0xabcde).to_be_bytes());
            ip.extend((transport.len() as u16).to_be_bytes());
            ip.extend([protocol, self.ttl]);
            ip.extend(source);
            ip.extend(destination);
        } else {
            ip.extend([0x45, self.tos]);
            ip.extend((transport.len() as u16 + 20).to_be_bytes());
            ip.extend(self.identification.to_be_bytes());
            ip.extend([if self.dont_fragment { 0x40 } else { 0 }, 0]);
            ip.extend([self.ttl, protocol, 0, 0]);
            ip.extend(source);
            ip.extend(destination);
            let sum = !ones(&ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let mut frame = Vec::new();
        if self.framing == Framing::Ethernet {
            frame.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
            frame.extend(if self.v6 { [0x86, 0xdd] } else { [8, 0] });
        }
        frame.extend(ip);
        frame.extend(transport);
        frame
    }
}

/// Returns the ones' complement sum of all 16-bit words.
pub fn ones(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
