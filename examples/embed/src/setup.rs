//! Certificates, configuration, and bulk transfers of both stacks.

use crate::{quic, tcp};
use quinn_proto::congestion::ControllerFactory;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Dir, Endpoint, EndpointConfig, ServerConfig, TransportConfig, VarInt,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use sojourn_link::{Datagram, Direction, Path};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// A host of either stack, whose application sends or receives as much as it can.
pub trait Host {
    fn receive(&mut self, now: u64, datagram: Datagram);
    /// Lets application and stack act; returns when they want to act again.
    fn act(&mut self, now: u64, path: &mut Path<Datagram>) -> Option<u64>;
    /// Bytes that the application has received.
    fn received(&self) -> u64;
}

const ZEROS: [u8; 1 << 16] = [0; 1 << 16];

pub struct QuicHost {
    host: quic::Host,
    stream: Option<quinn_proto::StreamId>,
    received: u64,
}

/// Returns sender and receiver of a QUIC connection; `seed` is its number.
pub fn quic_pair(flow: u32, control: Arc<dyn ControllerFactory + Send + Sync>) -> [QuicHost; 2] {
    let addresses = [1, 2].map(|host| SocketAddr::from(([10, 0, flow as u8, host], 4433)));
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["receiver".into()]).unwrap();
    let certificate = CertificateDer::from(certificate.self_signed(&key).unwrap());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let versions = [&rustls::version::TLS13];
    let client = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .unwrap();
    let server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).unwrap()));
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client).unwrap()));
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(control);
    transport.stream_receive_window(VarInt::from_u32(1 << 24));
    client.transport_config(Arc::new(transport));
    let start = Instant::now();
    let mut config = EndpointConfig::default();
    config.rng_seed(Some([flow as u8; 32]));
    let endpoint = |server| Endpoint::new(Arc::new(config.clone()), server, true, None);
    let mut sender = endpoint(None);
    let connection = sender.connect(start, client, addresses[1], "receiver").unwrap();
    let host = |endpoint, connection, peer, direction| QuicHost {
        host: quic::Host { endpoint, connection, peer, flow, direction, start },
        stream: None,
        received: 0,
    };
    [
        host(sender, Some(connection), addresses[1], Direction::Forward),
        host(endpoint(Some(Arc::new(server))), None, addresses[0], Direction::Reverse),
    ]
}

impl Host for QuicHost {
    fn receive(&mut self, now: u64, datagram: Datagram) {
        self.host.receive(now, &datagram);
    }

    fn act(&mut self, now: u64, path: &mut Path<Datagram>) -> Option<u64> {
        let (_, connection) = self.host.connection.as_mut()?;
        while connection.poll().is_some() {}
        if self.host.direction == Direction::Forward && !connection.is_handshaking() {
            self.stream = self.stream.or_else(|| connection.streams().open(Dir::Uni));
            while self.stream.is_some_and(|id| connection.send_stream(id).write(&ZEROS).is_ok()) {}
        }
        if self.host.direction == Direction::Reverse {
            self.stream = self.stream.or_else(|| connection.streams().accept(Dir::Uni));
            if let Some(id) = self.stream {
                let mut stream = connection.recv_stream(id);
                let mut chunks = stream.read(true).unwrap();
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    self.received += chunk.bytes.len() as u64;
                }
                let _ = chunks.finalize();
            }
        }
        self.host.transmit(now, path)
    }

    fn received(&self) -> u64 {
        self.received
    }
}

pub struct TcpHost {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: smoltcp::iface::SocketHandle,
    port: tcp::Port,
    flow: u32,
    direction: Direction,
    received: u64,
}

/// Returns sender and receiver of a TCP connection.
pub fn tcp_pair(flow: u32, control: CongestionControl) -> [TcpHost; 2] {
    [(1, Direction::Forward), (2, Direction::Reverse)].map(|(number, direction)| {
        let address = |host| IpAddress::v4(10, 0, flow as u8, host);
        let mut port = tcp::Port::default();
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut port, smoltcp::time::Instant::ZERO);
        interface.update_ip_addrs(|all| all.push(IpCidr::new(address(number), 24)).unwrap());
        let buffer = || SocketBuffer::new(vec![0; 1 << 20]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(control);
        match direction {
            Direction::Forward => {
                socket.connect(interface.context(), (address(2), 80), 4000).unwrap();
            }
            Direction::Reverse => socket.listen(80).unwrap(),
        }
        let mut sockets = SocketSet::new(vec![]);
        let socket = sockets.add(socket);
        TcpHost { interface, sockets, socket, port, flow, direction, received: 0 }
    })
}

impl Host for TcpHost {
    fn receive(&mut self, _: u64, datagram: Datagram) {
        self.port.arrived.push_back(datagram.bytes);
    }

    fn act(&mut self, now: u64, path: &mut Path<Datagram>) -> Option<u64> {
        let instant = smoltcp::time::Instant::from_micros((now / 1000) as i64);
        self.interface.poll(instant, &mut self.port, &mut self.sockets);
        let socket = self.sockets.get_mut::<Socket>(self.socket);
        while socket.can_recv() {
            self.received += socket.recv(|bytes| (bytes.len(), bytes.len() as u64)).unwrap();
        }
        if self.direction == Direction::Forward {
            while socket.can_send() {
                socket.send_slice(&ZEROS).unwrap();
            }
        }
        self.interface.poll(instant, &mut self.port, &mut self.sockets);
        self.port.transmit(now, self.flow, self.direction, path);
        let next = self.interface.poll_at(instant, &self.sockets)?;
        Some((next.total_micros() as u64 * 1000).max(now + 1000))
    }

    fn received(&self) -> u64 {
        self.received
    }
}
