//! The packets of an external queue as its policy sees them.

use crate::discipline::{DropReason, MarkReason};
use crate::packet::{Ecn, Headers, Packet};
use sojourn_units::Nanos;
use sojourn_units::external::Fault;

/// A packet of one queue. It is valid while the packet is in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    slot: u32,
    number: u32,
}

impl Id {
    /// Returns the packet's place: a small number that later packets use again.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// The data of a packet that a policy may read.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo {
    /// When it arrived.
    pub at: Nanos,
    /// How many packets had arrived before it.
    pub number: u64,
    /// Length in bytes: the Ethernet frame without FCS, plus any configured overhead.
    pub len: u32,
    /// Memory that it occupies.
    pub truesize: u32,
    /// Hash of its flow.
    pub flow: u32,
    /// Source and destination address, as numbers of hosts.
    pub hosts: (u32, u32),
    /// Source and destination port; 0 where they cannot be read.
    pub ports: (u16, u16),
    /// Protocol number of the IP header; 0 where it cannot be read.
    pub protocol: u8,
    /// Differentiated services code point.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// The firewall's mark on it (`skb->mark`).
    pub mark: u32,
    /// The class that the policy put it into: each class is a queue of its own.
    pub class: u16,
}

impl PacketInfo {
    /// Returns the readable fields of `packet`, which arrives at `at` with these `headers`.
    pub(crate) fn of<P: Packet>(packet: &P, headers: Headers, at: Nanos) -> Self {
        Self {
            at,
            number: 0,
            len: packet.len(),
            truesize: packet.truesize(),
            flow: packet.flow_hash(),
            hosts: packet.hosts(),
            ports: headers.ports,
            protocol: headers.protocol,
            dscp: packet.dscp(),
            ecn: packet.ecn(),
            mark: headers.mark,
            class: 0,
        }
    }
}

/// Returns a fault with this message.
pub(super) fn fault<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault(message.into()))
}

/// The decision about a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Drop(Id, DropReason),
    Mark(Id, MarkReason),
}

const NONE: u32 = u32::MAX;

/// A place in a chain of packets.
#[derive(Clone, Copy, Debug)]
struct Chain {
    before: u32,
    after: u32,
}

const LOOSE: Chain = Chain { before: NONE, after: NONE };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// No packet is here.
    Free,
    /// It is being enqueued.
    Arriving,
    Queued,
    /// [`Backlog::pop`] gave it out.
    Taken,
}

#[derive(Clone, Debug)]
struct Entry {
    info: PacketInfo,
    id: Id,
    place: Place,
    /// Among all packets, and among those of its class.
    all: Chain,
    class: Chain,
}

/// First and last of a chain, and what it holds.
#[derive(Clone, Copy, Debug)]
struct Line {
    first: u32,
    last: u32,
    packets: u32,
    bytes: u64,
}

const EMPTY: Line = Line { first: NONE, last: NONE, packets: 0, bytes: 0 };

/// The packets of a queue, in the order of their arrival, and what its policy does to them.
///
/// A policy reads and decides here; the packets themselves are the engine's. A packet that was
/// dropped is gone at once, and its [`Id`] names nothing any more.
#[derive(Clone, Debug)]
pub struct Backlog {
    entries: Vec<Entry>,
    free: Vec<u32>,
    all: Line,
    classes: Vec<Line>,
    taken: Option<Id>,
    arrived: u64,
    pub(super) actions: Vec<Action>,
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            all: EMPTY,
            classes: Vec::new(),
            taken: None,
            arrived: 0,
            actions: Vec::new(),
        }
    }
}

impl Backlog {
    /// Packets queued, without the one that is arriving or was taken by [`Backlog::pop`].
    #[inline]
    pub fn packets(&self) -> usize {
        self.all.packets as usize
    }

    /// Bytes of these packets.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.all.bytes
    }

    /// Packets of a class.
    pub fn class_packets(&self, class: u16) -> usize {
        self.classes.get(usize::from(class)).map_or(0, |line| line.packets as usize)
    }

    /// Bytes of a class.
    pub fn class_bytes(&self, class: u16) -> u64 {
        self.classes.get(usize::from(class)).map_or(0, |line| line.bytes)
    }

    /// Returns the packet that arrived first.
    #[inline]
    pub fn head(&self) -> Option<Id> {
        self.id(self.all.first)
    }

    /// Returns the packet that arrived last.
    #[inline]
    pub fn tail(&self) -> Option<Id> {
        self.id(self.all.last)
    }

    /// Returns the packet of a class that arrived first.
    pub fn class_head(&self, class: u16) -> Option<Id> {
        self.classes.get(usize::from(class)).and_then(|line| self.id(line.first))
    }

    /// Returns the packet that arrived next after a queued one.
    pub fn after(&self, id: Id) -> Option<Id> {
        self.entry(id).and_then(|entry| self.id(entry.all.after))
    }

    /// Returns the queued packets in the order of their arrival.
    pub fn iter(&self) -> impl Iterator<Item = Id> + '_ {
        std::iter::successors(self.head(), |id| self.after(*id))
    }

    /// Returns the readable data of a packet that is arriving, queued or taken.
    #[inline]
    pub fn get(&self, id: Id) -> Option<&PacketInfo> {
        self.entry(id).map(|entry| &entry.info)
    }

    /// Puts the arriving packet into a class.
    ///
    /// # Errors
    /// If the packet is not the arriving one.
    pub fn set_class(&mut self, id: Id, class: u16) -> Result<(), Fault> {
        match self.entries.get_mut(id.slot()) {
            Some(entry) if entry.id == id && entry.place == Place::Arriving => {
                entry.info.class = class;
                Ok(())
            }
            _ => fault("a packet's class is set while it is enqueued"),
        }
    }

    /// Takes the packet out that arrived first. It must be returned from `dequeue` or dropped.
    ///
    /// # Errors
    /// If a packet taken before is neither.
    pub fn pop(&mut self) -> Result<Option<Id>, Fault> {
        match self.head() {
            Some(id) => self.take(id).map(Some),
            None => Ok(None),
        }
    }

    /// Takes a queued packet out, as [`Backlog::pop`] does.
    ///
    /// # Errors
    /// As [`Backlog::pop`], or if the packet is not queued.
    pub fn take(&mut self, id: Id) -> Result<Id, Fault> {
        if let Some(taken) = self.taken {
            let number = self.number(taken);
            return fault(format!(
                "packet {number} was taken from the queue: return it or drop it before the next \
                 one is taken"
            ));
        }
        match self.entry(id).map(|entry| entry.place) {
            Some(Place::Queued) => {
                self.unlink(id.slot);
                self.entries[id.slot()].place = Place::Taken;
                self.taken = Some(id);
                Ok(id)
            }
            Some(Place::Arriving) => fault("the arriving packet is not queued yet"),
            _ => fault("the packet is not in the queue: it has left or was dropped"),
        }
    }

    /// Drops a queued or taken packet.
    ///
    /// # Errors
    /// If there is no such packet.
    pub fn drop(&mut self, id: Id, reason: DropReason) -> Result<(), Fault> {
        match self.entry(id).map(|entry| entry.place) {
            Some(Place::Arriving) => {
                fault("the arriving packet is dropped by the verdict of `enqueue`")
            }
            None => fault("the packet is not in the queue: it has left or was dropped"),
            Some(_) => {
                self.actions.push(Action::Drop(id, reason));
                self.remove(id);
                Ok(())
            }
        }
    }

    /// Sets CE on a packet and says whether it could: not on a packet that is not ECN-capable.
    ///
    /// # Errors
    /// If there is no such packet.
    pub fn mark(&mut self, id: Id, reason: MarkReason) -> Result<bool, Fault> {
        let Some(entry) = self.entries.get_mut(id.slot()).filter(|entry| entry.id == id) else {
            return fault("the packet is not in the queue: it has left or was dropped");
        };
        if entry.info.ecn == Ecn::NotEct {
            return Ok(false);
        }
        entry.info.ecn = Ecn::Ce;
        self.actions.push(Action::Mark(id, reason));
        Ok(true)
    }

    /// Packets that have arrived so far.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Returns how many packets had arrived before this one.
    fn number(&self, id: Id) -> u64 {
        self.entries[id.slot()].info.number
    }

    fn entry(&self, id: Id) -> Option<&Entry> {
        self.entries.get(id.slot()).filter(|entry| entry.id == id && entry.place != Place::Free)
    }

    fn id(&self, slot: u32) -> Option<Id> {
        self.entries.get(slot as usize).map(|entry| entry.id)
    }

    /// Returns a packet arrives: it waits for its verdict.
    pub(super) fn arrive(&mut self, mut info: PacketInfo) -> Id {
        info.number = self.arrived;
        self.arrived += 1;
        let slot = self.free.pop().unwrap_or(self.entries.len() as u32);
        let id = Id { slot, number: info.number as u32 };
        let entry = Entry { info, id, place: Place::Arriving, all: LOOSE, class: LOOSE };
        if id.slot() == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries[id.slot()] = entry;
        }
        id
    }

    /// Accepts the arriving packet.
    pub(super) fn accept(&mut self, id: Id) {
        let class = usize::from(self.entries[id.slot()].info.class);
        if class >= self.classes.len() {
            self.classes.resize(class + 1, EMPTY);
        }
        let before = (self.all.last, self.classes[class].last);
        if let Some(last) = self.entries.get_mut(before.0 as usize) {
            last.all.after = id.slot;
        }
        if let Some(last) = self.entries.get_mut(before.1 as usize) {
            last.class.after = id.slot;
        }
        let entry = &mut self.entries[id.slot()];
        entry.place = Place::Queued;
        entry.all.before = before.0;
        entry.class.before = before.1;
        for line in [&mut self.all, &mut self.classes[class]] {
            line.last = id.slot;
            if line.first == NONE {
                line.first = id.slot;
            }
            line.packets += 1;
            line.bytes += u64::from(entry.info.len);
        }
    }

    /// Returns the packet that [`Backlog::pop`] gave out and that was not dropped.
    pub(super) fn taken(&self) -> Option<Id> {
        self.taken
    }

    /// Removes the packet from any place of the queue.
    pub(super) fn remove(&mut self, id: Id) {
        match self.entries[id.slot()].place {
            Place::Queued => self.unlink(id.slot),
            Place::Taken => self.taken = None,
            Place::Arriving | Place::Free => {}
        }
        self.entries[id.slot()].place = Place::Free;
        self.free.push(id.slot);
    }

    fn unlink(&mut self, slot: u32) {
        let Entry { info, all, class, .. } = self.entries[slot as usize];
        let place = usize::from(info.class);
        match self.entries.get_mut(all.before as usize) {
            Some(entry) => entry.all.after = all.after,
            None => self.all.first = all.after,
        }
        match self.entries.get_mut(all.after as usize) {
            Some(entry) => entry.all.before = all.before,
            None => self.all.last = all.before,
        }
        match self.entries.get_mut(class.before as usize) {
            Some(entry) => entry.class.after = class.after,
            None => self.classes[place].first = class.after,
        }
        match self.entries.get_mut(class.after as usize) {
            Some(entry) => entry.class.before = class.before,
            None => self.classes[place].last = class.before,
        }
        for line in [&mut self.all, &mut self.classes[place]] {
            line.packets -= 1;
            line.bytes -= u64::from(info.len);
        }
    }
}
