//! The content of a packet between hosts, and its headers.

use sojourn_capture::frames::{Frame, TcpHeader};
use sojourn_network::{Body, Packet};
use sojourn_plan::{Labels, address};
use sojourn_queue::{Headers, Packet as _, Sender, Socket, SocketKind, TcpView};
use sojourn_tcp::{Flags, Segment};

/// A UDP datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Number of the datagram in its flow.
    pub seq: u64,
    /// Payload bytes.
    pub payload: u32,
}

/// Lowest number of a UDP socket; TCP sockets have lower numbers.
const DATAGRAMS: u32 = 1 << 31;

/// A packet's content.
#[derive(Clone, Copy, Debug)]
pub enum Cargo {
    /// UDP.
    Datagram(Datagram),
    /// TCP.
    Segment(Segment),
}

/// Returns the protocol, ports and firewall mark of a packet, for filters.
pub fn headers(labels: &Labels, packet: &Packet, body: &Body<Cargo>) -> Headers {
    let flow = body.flow / 2;
    let number = flow.wrapping_mul(31).wrapping_add(body.connection);
    let port = address::DYNAMIC + (number % 16_384) as u16;
    let ports = (port, port);
    let own = Headers { protocol: packet.class().protocol(), ports, mark: 0 };
    labels.headers(flow, packet.hosts().0, own)
}

/// Returns the header fields of a packet, for captures.
pub fn frame(labels: &Labels, packet: &Packet, body: &Body<Cargo>) -> Frame {
    let tcp = match &body.load {
        Cargo::Datagram(_) => None,
        Cargo::Segment(segment) => Some(header(segment)),
    };
    Frame {
        nodes: packet.hosts(),
        ports: headers(labels, packet, body).ports,
        tos: packet.tos,
        len: packet.len,
        id: body.number as u16,
        tcp,
    }
}

/// Returns the fields of a packet's TCP header that queue disciplines may read; `None` for UDP.
pub fn tcp_view(labels: &Labels, packet: &Packet, body: &Body<Cargo>) -> Option<TcpView> {
    let Cargo::Segment(segment) = &body.load else { return None };
    Some(TcpView {
        hosts: packet.hosts(),
        ports: headers(labels, packet, body).ports,
        ack: segment.ack as u32,
        flags: flags(segment),
        payload: segment.len,
        timestamps: segment.timestamps().map(|t| (t.value, t.echo)),
        other_options: segment.flags.has(Flags::SYN) || segment.marked_bytes().is_some(),
        sack: segment.sack().map(|(start, end)| (start as u32, end as u32)).collect(),
    })
}

/// Returns the data of the sending host that its own queue discipline may use: the packet's socket
/// and departure time. Each end of a connection and each flow of datagrams has a socket.
pub fn sender(body: &Body<Cargo>) -> Sender {
    let socket = |number, kind| Some(Socket { number, kind, hash: body.connection, rate: None });
    match &body.load {
        Cargo::Datagram(_) => Sender {
            socket: socket(DATAGRAMS + body.endpoint, SocketKind::Datagram),
            ..Sender::default()
        },
        Cargo::Segment(segment) => Sender {
            socket: socket(body.endpoint ^ 1, SocketKind::Stream),
            departure: Some(body.sent_at),
            continues: segment.flags.has(Flags::CONTINUES),
        },
    }
}

/// Returns a segment's flags FIN to CWR as the bits of the TCP header.
fn flags(segment: &Segment) -> u8 {
    let known = [
        (Flags::FIN, TcpView::FIN),
        (Flags::SYN, TcpView::SYN),
        (Flags::RST, TcpView::RST),
        (Flags::PSH, TcpView::PSH),
        (Flags::ACK, TcpView::ACK),
        (Flags::ECE, TcpView::ECE),
        (Flags::CWR, TcpView::CWR),
    ];
    known.iter().filter(|(flag, _)| segment.flags.has(*flag)).fold(0, |bits, (_, bit)| bits | bit)
}

fn header(segment: &Segment) -> TcpHeader {
    let mut sack = [(0, 0); 4];
    let mut sacks = 0;
    for (to, (left, right)) in sack.iter_mut().zip(segment.sack()) {
        *to = (left as u32, right as u32);
        sacks += 1;
    }
    let syn = segment.flags.has(Flags::SYN).then(|| *segment.syn_options());
    // Initial sequence numbers are 0. The 64-bit numbers wrap to 32 bits as on the wire.
    TcpHeader {
        seq: segment.seq as u32,
        ack: segment.ack as u32,
        flags: flags(segment),
        accurate: segment.flags.has(Flags::AE),
        window: segment.window,
        payload: segment.len,
        timestamps: segment.timestamps().map(|t| (t.value, t.echo)),
        sack,
        sacks,
        mss: syn.map_or(0, |s| s.mss),
        sack_permitted: syn.is_some_and(|s| s.sack_permitted),
        window_scale: syn.and_then(|s| s.window_scale),
    }
}
