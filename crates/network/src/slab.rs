//! Packets: a small value that travels through queues, and a body in a slab with the data that
//! only hosts and ledgers need.

use sojourn_link::{Corrupt, Stamped};
use sojourn_queue::{Ecn, Headers};
use sojourn_units::Nanos;
use std::collections::BTreeMap;

/// The transport protocol of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// TCP.
    Tcp = 0,
    /// UDP.
    Udp = 1,
}

impl Class {
    /// Returns the protocol number in the IP header.
    pub fn protocol(self) -> u8 {
        match self {
            Self::Tcp => Headers::TCP,
            Self::Udp => Headers::UDP,
        }
    }
}

/// Number of a node in 24 bits, so that [`Packet`] has 32 bytes.
pub type Node = [u8; 3];

/// Packs the number of a node, which must be below 2^24.
pub fn node(number: u32) -> Node {
    let [a, b, c, _] = number.to_le_bytes();
    [a, b, c]
}

fn number([a, b, c]: Node) -> u32 {
    u32::from_le_bytes([a, b, c, 0])
}

/// A packet in the network.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When the packet arrived at the queue of its present link.
    pub queued_at: Nanos,
    /// Index of the packet's body in the [`Slab`].
    pub slot: u32,
    /// The packet's position on its path (see [`Routes`](crate::Routes)): its present link, or the
    /// link that it enters next.
    pub place: u32,
    /// Frame length in bytes.
    pub len: u32,
    /// Flow hash.
    pub hash: u32,
    /// Sending node.
    pub from: Node,
    /// Receiving node.
    pub to: Node,
    /// The IP header's TOS byte: DSCP in the upper six bits, ECN in the lower two.
    pub tos: u8,
    /// The bits `UDP` (clear for TCP), `DAMAGED` and `SUPER`.
    kind: u8,
}

const UDP: u8 = 1;
const DAMAGED: u8 = 2;
const SUPER: u8 = 4;

impl Packet {
    /// Returns a packet whose body is not yet in the slab: `slot` is 0. `nodes` are sender and
    /// receiver.
    #[inline]
    pub fn new(
        class: Class,
        nodes: (Node, Node),
        place: u32,
        hash: u32,
        len: u32,
        tos: u8,
    ) -> Self {
        let (from, to) = nodes;
        let kind = class as u8;
        Self { queued_at: 0, slot: 0, place, len, hash, from, to, tos, kind }
    }

    /// Returns the packet's transport protocol.
    pub fn class(&self) -> Class {
        if self.kind & UDP == 0 { Class::Tcp } else { Class::Udp }
    }

    /// Returns whether a link has flipped a bit of the packet.
    pub fn is_damaged(&self) -> bool {
        self.kind & DAMAGED != 0
    }

    /// Returns whether the packet is marked Congestion Experienced (CE).
    pub fn is_ce(&self) -> bool {
        self.tos & 3 == Ecn::Ce as u8
    }
}

impl sojourn_queue::Packet for Packet {
    fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    fn is_super(&self) -> bool {
        self.kind & SUPER != 0
    }

    fn flow_hash(&self) -> u32 {
        self.hash
    }

    fn hosts(&self) -> (u32, u32) {
        (number(self.from), number(self.to))
    }

    fn dscp(&self) -> u8 {
        self.tos >> 2
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.tos)
    }

    fn set_dscp(&mut self, dscp: u8) {
        self.tos = dscp << 2 | self.tos & 3;
    }

    #[inline]
    fn set_ce(&mut self) -> bool {
        let capable = self.tos & 3 != 0;
        if capable {
            self.tos |= 3;
        }
        capable
    }
}

impl Corrupt for Packet {
    /// Marks the packet as damaged. The position of the flipped bit does not matter: the receiving
    /// host's checksum detects any.
    fn corrupt(&mut self, _entropy: u32) {
        self.kind |= DAMAGED;
    }
}

impl Stamped for Packet {
    fn comes_at(&self) -> Nanos {
        self.queued_at
    }
}

const _: () = assert!(size_of::<Packet>() == 32);

/// How many copies of a packet are in the network, and whether one of them has reached its host.
#[derive(Clone, Copy, Debug)]
pub struct Copies(u32);

const TAKEN: u32 = 1 << 31;

impl Copies {
    /// The count of a packet that a host has just sent: one copy, which no host has received.
    pub const ONE: Self = Self(1);

    /// Returns whether the host has received one copy, so that each further copy is a duplicate.
    pub fn taken(self) -> bool {
        self.0 & TAKEN != 0
    }

    fn left(self) -> u32 {
        self.0 & !TAKEN
    }
}

/// The data of a packet for the hosts and the ledger.
#[derive(Clone, Copy, Debug)]
pub struct Body<T> {
    /// Number of the packet in the run, from 0. [`Slab::insert`] sets it.
    pub number: u64,
    /// Departure time from the sending host: the time at which the host hands the packet to the
    /// network, or the later time that TCP requests from the host's queue for pacing.
    pub sent_at: Nanos,
    /// Number of the receiving endpoint, which the driver assigns.
    pub endpoint: u32,
    /// Number of the connection. The receiving endpoint compares it with its own, since the
    /// endpoint's slot may have been given to another connection meanwhile.
    pub connection: u32,
    /// Index of the account ([`FlowAccount`](sojourn_measure::FlowAccount)) that counts the packet.
    pub flow: u32,
    /// Copies in the network, and whether one has reached its host.
    pub copies: Copies,
    /// The packet's content.
    pub load: T,
}

/// Bodies of packets in the network, with a list of free slots.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    bodies: Vec<Body<T>>,
    free: Vec<u32>,
    numbers: u64,
    /// Slots and lengths of the frames of each super-packet, by the slot of the first.
    supers: BTreeMap<u32, Vec<(u32, u32)>>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { bodies: Vec::new(), free: Vec::new(), numbers: 0, supers: BTreeMap::new() }
    }
}

impl<T: Copy> Slab<T> {
    /// Stores a body with the next packet number, and returns its slot.
    #[inline]
    pub fn insert(&mut self, mut body: Body<T>) -> u32 {
        body.number = self.numbers;
        self.numbers += 1;
        if let Some(slot) = self.free.pop() {
            self.bodies[slot as usize] = body;
            return slot;
        }
        self.bodies.push(body);
        (self.bodies.len() - 1) as u32
    }

    /// Stores the bodies of a super-packet's frames, with their lengths, and returns the
    /// super-packet, which is `packet` with the length of all frames.
    pub fn merge(&mut self, mut packet: Packet, frames: &[(u32, Body<T>)]) -> Packet {
        let slots = frames.iter().map(|&(len, body)| (self.insert(body), len)).collect::<Vec<_>>();
        packet.slot = slots[0].0;
        packet.len = slots.iter().map(|(_, len)| len).sum();
        packet.kind |= SUPER;
        self.supers.insert(packet.slot, slots);
        packet
    }

    /// Returns the frames of a super-packet, which exists no more.
    pub fn split(&mut self, packet: &Packet) -> Vec<Packet> {
        let slots = self.supers.remove(&packet.slot).unwrap_or_default();
        let kind = packet.kind & !SUPER;
        slots.into_iter().map(|(slot, len)| Packet { slot, len, kind, ..*packet }).collect()
    }

    /// Returns the slot in which the next body will be stored.
    pub fn next_slot(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.bodies.len() as u32)
    }

    /// Returns the body at `slot`.
    pub fn get(&self, slot: u32) -> &Body<T> {
        &self.bodies[slot as usize]
    }

    /// Counts one more copy of the packet in the network.
    pub fn copy(&mut self, slot: u32) {
        self.bodies[slot as usize].copies.0 += 1;
    }

    /// Records that a host has received a copy of the packet.
    pub fn taken(&mut self, slot: u32) {
        self.bodies[slot as usize].copies.0 |= TAKEN;
    }

    /// Subtracts one from the packet's number of copies; frees the slot after the last copy. Returns
    /// whether the packet is missing: no copy is left, and no host has received one.
    #[inline]
    pub fn release(&mut self, slot: u32) -> bool {
        let body = &mut self.bodies[slot as usize];
        debug_assert!(body.copies.left() > 0, "packet released twice");
        body.copies.0 -= 1;
        let missing = body.copies.0 == 0;
        if body.copies.left() == 0 {
            self.free.push(slot);
        }
        missing
    }

    /// Returns the number of bodies in use.
    pub fn used(&self) -> usize {
        self.bodies.len() - self.free.len()
    }

    /// Returns the number of packets stored since the start.
    pub fn numbers(&self) -> u64 {
        self.numbers
    }
}
