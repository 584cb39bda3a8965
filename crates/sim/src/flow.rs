//! Flows and their groups: who sends what to whom, and what was measured of it.

use crate::balance::Balanced;
use crate::stream::Stream;
use sojourn_measure::{FlowAccount, Histogram};
use sojourn_network::{Node, Place, Tally};
use sojourn_traffic::Receiver;
use sojourn_traffic::{Emission, PacketSource, transfer::Transfers, web};
use sojourn_units::Nanos;

/// A flow of packets by their own schedule: datagrams, or writes into a TCP stream.
#[derive(Clone, Debug)]
pub struct Packets {
    /// Where they come from.
    pub source: PacketSource,
    /// The next one.
    pub next: Emission,
    /// Its number.
    pub seq: u64,
    /// How late a packet may be to be heard, in calls.
    pub playout: Option<Nanos>,
    /// The receiving end.
    pub receiver: Receiver,
    /// What is written, if TCP carries it.
    pub stream: Option<Stream>,
}

/// A Web object on its way.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// Which.
    pub id: web::ObjectId,
    /// When it was requested.
    pub at: Nanos,
    /// Index of its server among the session's.
    pub server: u32,
    /// Bytes of the request.
    pub request: u64,
    /// Bytes of the answer.
    pub bytes: u64,
    /// How many were asked for before it, and it.
    pub number: u32,
    /// How it comes to its server, if a balancer chooses.
    pub balanced: Option<Balanced>,
    /// When that goes on; never if it need not.
    pub due: Nanos,
}

/// A session of a Web client.
#[derive(Clone, Debug)]
pub struct Web {
    /// The user's behaviour.
    pub session: web::Session,
    /// Servers: node, path to the client, path to the server.
    pub servers: Vec<(Node, Place, Place)>,
    /// Objects being fetched, in slots that are used again.
    pub objects: Vec<Option<Object>>,
    /// Objects asked for so far.
    pub asked: u32,
    /// Pages loaded since the end of the warm-up.
    pub pages: u64,
}

/// What moves a flow.
#[derive(Clone, Debug)]
pub enum Driver {
    /// Packets by their own schedule.
    Packets(Box<Packets>),
    /// One connection that always has data.
    Bulk,
    /// One connection after the other.
    Transfer(Box<Transfers>),
    /// Web.
    Web(Box<Web>),
}

/// A flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Index of its group.
    pub group: u32,
    /// Its number within the group.
    pub number: u32,
    /// Sending and receiving node.
    pub nodes: (Node, Node),
    /// Path of its data, and the way back.
    pub places: (Place, Place),
    /// How it comes to its server, if a balancer chooses.
    pub balanced: Option<Balanced>,
    /// Its books: data at this index, the other direction at the next.
    pub account: u32,
    /// When it begins.
    pub start: Nanos,
    /// When its application stops offering data.
    pub stop: Nanos,
    /// When it ended.
    pub end: Option<Nanos>,
    /// What moves it.
    pub driver: Driver,
    /// Connections opened so far.
    pub connections: u32,
    /// Its connection, if it has just one at a time and it is open.
    pub current: Option<u32>,
    /// When the transfer going on started, and its bytes.
    pub job: Option<(Nanos, u64)>,
    /// What closed connections did.
    pub closed: Tally,
    /// What all had done at the end of the warm-up.
    pub before: Tally,
    /// The books at the end of the warm-up, both directions.
    pub books: [FlowAccount; 2],
    /// Payload received at the end of the warm-up.
    pub bytes_before: u64,
    /// One-way delays, if asked for by flow.
    pub delay: Option<Box<Histogram>>,
    /// Transfers ended since the end of the warm-up.
    pub finished: u64,
}

impl Flow {
    /// When it first acts, if that is before it stops and before `end`.
    pub fn first_event(&self, end: Nanos) -> Option<Nanos> {
        let last = self.stop.min(end);
        let first = match &self.driver {
            // A connection opens before the first write, if there is to be one.
            Driver::Packets(p) if p.stream.is_some() && p.next.at < last => self.start,
            Driver::Packets(p) => p.next.at,
            _ => self.start,
        };
        (first < last).then_some(first)
    }

    /// What it has written, if it is a packet source over TCP.
    pub fn stream(&mut self) -> Option<&mut Stream> {
        match &mut self.driver {
            Driver::Packets(packets) => packets.stream.as_mut(),
            _ => None,
        }
    }
}
