//! Packets: a small value that travels through queues, and what its hosts need, in a slab.

use sojourn_link::{Corrupt, Stamped};
use sojourn_queue::{Ecn, Headers};
use sojourn_units::Nanos;

/// The transport of a packet; the ledger keeps an account for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// TCP.
    Tcp = 0,
    /// UDP.
    Udp = 1,
}

impl Class {
    /// Its protocol number in the IP header.
    pub fn protocol(self) -> u8 {
        match self {
            Self::Tcp => Headers::TCP,
            Self::Udp => Headers::UDP,
        }
    }
}

/// Number of a node; 24 bits are enough and keep [`Packet`] at 32 bytes.
pub type Node = [u8; 3];

/// Packs the number of a node.
pub fn node(number: u32) -> Node {
    let [a, b, c, _] = number.to_le_bytes();
    [a, b, c]
}

#[inline]
fn number([a, b, c]: Node) -> u32 {
    u32::from_le_bytes([a, b, c, 0])
}

/// A packet in the network.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When it came to the queue of the link it is on.
    pub queued_at: Nanos,
    /// Where its body is.
    pub slot: u32,
    /// Its place on its path: the link it is on, or about to enter.
    pub place: u32,
    /// Frame length.
    pub len: u32,
    /// Flow hash.
    pub hash: u32,
    /// Sending node.
    pub from: Node,
    /// Receiving node.
    pub to: Node,
    /// Code point and ECN field, as in the IP header.
    pub tos: u8,
    /// Its transport, and whether it was damaged.
    kind: u8,
}

const UDP: u8 = 1;
const DAMAGED: u8 = 2;

impl Packet {
    /// A packet without a place in the slab yet.
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

    /// Its transport.
    #[inline]
    pub fn class(&self) -> Class {
        if self.kind & UDP == 0 { Class::Tcp } else { Class::Udp }
    }

    /// Whether a bit of it was flipped.
    #[inline]
    pub fn is_damaged(&self) -> bool {
        self.kind & DAMAGED != 0
    }

    /// Whether it carries Congestion Experienced.
    #[inline]
    pub fn is_ce(&self) -> bool {
        self.tos & 3 == Ecn::Ce as u8
    }
}

impl sojourn_queue::Packet for Packet {
    #[inline]
    fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    fn truesize(&self) -> u32 {
        // Linux: data and shared info in a power of two, plus the sk_buff: 2304 for a full frame,
        // 768 for a bare acknowledgment.
        (self.len + 64 + 320).next_power_of_two() + 256
    }

    #[inline]
    fn flow_hash(&self) -> u32 {
        self.hash
    }

    #[inline]
    fn hosts(&self) -> (u32, u32) {
        (number(self.from), number(self.to))
    }

    #[inline]
    fn dscp(&self) -> u8 {
        self.tos >> 2
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        match self.tos & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    #[inline]
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
    /// The position of the flipped bit does not matter: its host's checksum detects it.
    fn corrupt(&mut self, _entropy: u32) {
        self.kind |= DAMAGED;
    }
}

impl Stamped for Packet {
    #[inline]
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
    /// A packet that a host sends.
    pub const ONE: Self = Self(1);

    /// Whether a host has taken one already, so that another is a duplicate.
    #[inline]
    pub fn taken(self) -> bool {
        self.0 & TAKEN != 0
    }

    #[inline]
    fn left(self) -> u32 {
        self.0 & !TAKEN
    }
}

/// The data of a packet for the hosts and the ledger.
#[derive(Clone, Copy, Debug)]
pub struct Body<T> {
    /// Number of the packet in the run.
    pub number: u64,
    /// When it is to leave its host: when that hands it to the network, or the later departure time that TCP asks
    /// of its host's queue.
    pub sent_at: Nanos,
    /// The receiving endpoint.
    pub endpoint: u32,
    /// Which connection of the flow: the endpoint's slot may belong to another by now.
    pub connection: u32,
    /// The flow whose books it is in.
    pub flow: u32,
    /// Copies in the network, and whether one has reached its host.
    pub copies: Copies,
    /// Its content.
    pub load: T,
}

/// Bodies of packets in the network, with a list of free slots.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    bodies: Vec<Body<T>>,
    free: Vec<u32>,
    numbers: u64,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { bodies: Vec::new(), free: Vec::new(), numbers: 0 }
    }
}

impl<T: Copy> Slab<T> {
    /// Stores a body, gives it the next number, and says where it is.
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

    /// Where the next body will be stored.
    #[inline]
    pub fn next_slot(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.bodies.len() as u32)
    }

    /// The body at `slot`.
    #[inline]
    pub fn get(&self, slot: u32) -> &Body<T> {
        &self.bodies[slot as usize]
    }

    /// One more copy is in the network.
    #[inline]
    pub fn copy(&mut self, slot: u32) {
        self.bodies[slot as usize].copies.0 += 1;
    }

    /// A host takes one.
    #[inline]
    pub fn taken(&mut self, slot: u32) {
        self.bodies[slot as usize].copies.0 |= TAKEN;
    }

    /// One copy less; the slot is free after the last.
    #[inline]
    pub fn release(&mut self, slot: u32) {
        let body = &mut self.bodies[slot as usize];
        debug_assert!(body.copies.left() > 0, "packet released twice");
        body.copies.0 -= 1;
        if body.copies.left() == 0 {
            self.free.push(slot);
        }
    }

    /// Bodies in use.
    pub fn used(&self) -> usize {
        self.bodies.len() - self.free.len()
    }

    /// Numbers given so far.
    pub fn numbers(&self) -> u64 {
        self.numbers
    }
}
