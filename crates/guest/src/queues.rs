//! Samples of the counters of queue disciplines, which are read over netlink.

use crate::job::Queue;
use crate::machine::{Outcome, at};
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcMessage, TcStats2};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io::Write;

/// Counters of a queue discipline at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    bytes: u64,
    packets: u64,
    drops: u64,
    length: u64,
    backlog: u64,
}

/// Sampler of the queue disciplines of one host.
#[derive(Debug)]
pub struct Sampler {
    socket: Socket,
    /// For each queue its number in the job, the index of its device, and the handle of the queue
    /// discipline.
    queues: Vec<(u32, u32, u32)>,
    buffer: Vec<u8>,
}

impl Sampler {
    /// Returns a sampler of these queues. The caller must be in the network namespace of the host
    /// with the queues.
    pub fn new(queues: &[(usize, &Queue)]) -> Outcome<Self> {
        let mut socket = at("netlink", Socket::new(NETLINK_ROUTE))?;
        at("netlink", socket.bind_auto())?;
        at("netlink", socket.connect(&SocketAddr::new(0, 0)))?;
        let mut found = Vec::new();
        for (number, queue) in queues {
            let index = at(
                &queue.device,
                rustix::net::netdevice::name_to_index(&socket_for_names()?, &queue.device),
            )?;
            found.push((*number as u32, index, queue.handle));
        }
        Ok(Self { socket, queues: found, buffer: Vec::with_capacity(64 << 10) })
    }

    /// Writes a sample of each queue as little-endian 64-bit words: the time `now` in nanoseconds,
    /// the number of the queue, and its counters.
    pub fn sample(&mut self, now: u64, to: &mut impl Write) -> Outcome<()> {
        let mut header = netlink_packet_core::NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let ask = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(ask));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        at("netlink", self.socket.send(&bytes, 0))?;
        loop {
            self.buffer.clear();
            let length = at("netlink", self.socket.recv(&mut self.buffer, 0))?;
            let mut rest = &self.buffer[..length];
            while !rest.is_empty() {
                let message =
                    at("netlink", NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest))?;
                let used = (message.header.length as usize).next_multiple_of(4).min(rest.len());
                rest = &rest[used..];
                match message.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(format!("netlink: {error}").into()),
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(tc)) => {
                        self.write(now, &tc, to)?;
                    }
                    _ => {}
                }
            }
        }
    }

    fn write(&self, now: u64, tc: &TcMessage, to: &mut impl Write) -> Outcome<()> {
        let key = (tc.header.index as u32, u32::from(tc.header.handle));
        let Some((number, ..)) = self.queues.iter().find(|q| (q.1, q.2) == key) else {
            return Ok(());
        };
        let mut counters = Counters::default();
        for attribute in &tc.attributes {
            let TcAttribute::Stats2(stats) = attribute else { continue };
            for one in stats {
                match one {
                    TcStats2::Basic(basic) => {
                        counters.bytes = basic.bytes;
                        counters.packets = u64::from(basic.packets);
                    }
                    TcStats2::Queue(queue) => {
                        counters.drops = u64::from(queue.drops);
                        counters.length = u64::from(queue.qlen);
                        counters.backlog = u64::from(queue.backlog);
                    }
                    _ => {}
                }
            }
        }
        let words = [
            now,
            u64::from(*number),
            counters.bytes,
            counters.packets,
            counters.drops,
            counters.length,
            counters.backlog,
        ];
        for word in words {
            at("samples", to.write_all(&word.to_le_bytes()))?;
        }
        Ok(())
    }
}

fn socket_for_names() -> Outcome<rustix::fd::OwnedFd> {
    at(
        "socket",
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None),
    )
}
