//! QUIC by quinn-proto: the glue between a connection's endpoint and a path.

use bytes::BytesMut;
use quinn_proto::{Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint};
use sojourn_link::{Datagram, Direction, Ecn, Path};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub struct Host {
    pub endpoint: Endpoint,
    pub connection: Option<(ConnectionHandle, Connection)>,
    pub peer: SocketAddr,
    pub flow: u32,
    pub direction: Direction,
    pub start: Instant,
}

impl Host {
    pub fn receive(&mut self, now: u64, datagram: &Datagram) {
        let now = self.start + Duration::from_nanos(now);
        let ecn = EcnCodepoint::from_bits(datagram.ecn as u8);
        let (data, mut reply) = (BytesMut::from(&datagram.bytes[..]), Vec::new());
        match self.endpoint.handle(now, self.peer, None, ecn, data, &mut reply) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = self.endpoint.accept(incoming, now, &mut reply, None).ok();
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                self.connection.as_mut().unwrap().1.handle_event(event);
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// Sends what the connection has to send; returns when it wants to be called again.
    pub fn transmit(&mut self, now: u64, path: &mut Path<Datagram>) -> Option<u64> {
        let instant = self.start + Duration::from_nanos(now);
        let (handle, connection) = self.connection.as_mut()?;
        if connection.poll_timeout().is_some_and(|at| at <= instant) {
            connection.handle_timeout(instant);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        let mut bytes = Vec::new();
        while let Some(sent) = connection.poll_transmit(instant, 1, &mut bytes) {
            let ecn = sent.ecn.map_or(Ecn::NotEct, |e| Ecn::from_bits(e as u8));
            let bytes = std::mem::take(&mut bytes);
            path.send(now, self.direction, Datagram { bytes, headers: 42, flow: self.flow, ecn });
        }
        connection.poll_timeout().map(|at| (at - self.start).as_nanos() as u64)
    }
}
