//! The backlog of an external queue, as its policy reads and changes it.

use crate::discipline::{DropReason, MarkReason};
use crate::packet::{Ecn, Headers, Packet};
use sojourn_units::Nanos;
use sojourn_units::external::Fault;

/// Identifier of a packet in a queue. It is valid until the packet leaves or is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    slot: u32,
    number: u32,
}

impl Id {
    /// Returns the packet's slot: a small number, used again after the packet is gone.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Data of a packet that a policy may read.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo {
    /// Time of arrival.
    pub at: Nanos,
    /// Number of packets that arrived at the queue before this one.
    pub number: u64,
    /// Length of the Ethernet frame in bytes, without frame check sequence.
    pub len: u32,
    /// Memory that the packet occupies, in bytes.
    pub truesize: u32,
    /// Hash of the flow.
    pub flow: u32,
    /// Numbers of the source and destination host.
    pub hosts: (u32, u32),
    /// Source and destination port; 0 if unknown.
    pub ports: (u16, u16),
    /// Protocol number of the IP header; 0 if unknown.
    pub protocol: u8,
    /// Differentiated services code point.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// Mark set by the firewall (`skb->mark`); 0 without one.
    pub mark: u32,
    /// Class that the policy assigned to the packet; each class is a separate queue of the backlog.
    pub class: u16,
}

impl PacketInfo {
    /// Returns the readable data of `packet`, which arrives at time `at` with these `headers`.
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

/// Returns a fault with a message.
pub(super) fn fault<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault(message.into()))
}

/// A decision of the policy about a packet, which the engine still has to apply.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Drop(Id, DropReason),
    Mark(Id, MarkReason),
}

const NONE: u32 = u32::MAX;

/// Links of a packet in a list.
#[derive(Clone, Copy, Debug)]
struct Chain {
    before: u32,
    after: u32,
}

const LOOSE: Chain = Chain { before: NONE, after: NONE };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The slot has no packet.
    Free,
    /// The packet is being enqueued.
    Arriving,
    Queued,
    /// [`Backlog::pop`] or [`Backlog::take`] has removed the packet from the queue.
    Taken,
}

#[derive(Clone, Debug)]
struct Entry {
    info: PacketInfo,
    id: Id,
    place: Place,
    /// Links in the list of all packets, and in the list of the class.
    all: Chain,
    class: Chain,
}

/// A list of packets: first and last slot, number of packets and bytes.
#[derive(Clone, Copy, Debug)]
struct Line {
    first: u32,
    last: u32,
    packets: u32,
    bytes: u64,
}

const EMPTY: Line = Line { first: NONE, last: NONE, packets: 0, bytes: 0 };

/// The packets of a queue in the order of arrival, and the decisions of its policy.
///
/// A policy reads and decides here; the engine holds the packets themselves. A dropped packet is
/// removed immediately, and its [`Id`] becomes invalid.
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
    /// Returns the number of queued packets, without the arriving packet and the packet that the
    /// policy has taken.
    pub fn packets(&self) -> usize {
        self.all.packets as usize
    }

    /// Returns the number of queued bytes.
    pub fn bytes(&self) -> u64 {
        self.all.bytes
    }

    /// Returns the number of queued packets of a class.
    pub fn class_packets(&self, class: u16) -> usize {
        self.classes.get(usize::from(class)).map_or(0, |line| line.packets as usize)
    }

    /// Returns the number of queued bytes of a class.
    pub fn class_bytes(&self, class: u16) -> u64 {
        self.classes.get(usize::from(class)).map_or(0, |line| line.bytes)
    }

    /// Returns the oldest queued packet.
    pub fn head(&self) -> Option<Id> {
        self.id(self.all.first)
    }

    /// Returns the newest queued packet.
    pub fn tail(&self) -> Option<Id> {
        self.id(self.all.last)
    }

    /// Returns the oldest queued packet of a class.
    pub fn class_head(&self, class: u16) -> Option<Id> {
        self.classes.get(usize::from(class)).and_then(|line| self.id(line.first))
    }

    /// Returns the queued packet that arrived after `id`; `None` for the newest.
    pub fn after(&self, id: Id) -> Option<Id> {
        self.entry(id).and_then(|entry| self.id(entry.all.after))
    }

    /// Returns the queued packets in the order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = Id> + '_ {
        std::iter::successors(self.head(), |id| self.after(*id))
    }

    /// Returns the data of an arriving, queued or taken packet.
    pub fn get(&self, id: Id) -> Option<&PacketInfo> {
        self.entry(id).map(|entry| &entry.info)
    }

    /// Assigns the arriving packet to a class.
    ///
    /// # Errors
    /// If the packet is not the arriving one.
    pub fn set_class(&mut self, id: Id, class: u16) -> Result<(), Fault> {
        match self.entries.get_mut(id.slot()) {
            Some(entry) if entry.id == id && entry.place == Place::Arriving => {
                entry.info.class = class;
                Ok(())
            }
            _ => fault("the class can be set only for the arriving packet, during `enqueue`"),
        }
    }

    /// Removes the oldest packet from the queue. The policy must return it from `dequeue` or drop
    /// it.
    ///
    /// # Errors
    /// If a packet that was taken before was neither returned nor dropped.
    pub fn pop(&mut self) -> Result<Option<Id>, Fault> {
        match self.head() {
            Some(id) => self.take(id).map(Some),
            None => Ok(None),
        }
    }

    /// Removes a packet from the queue. The policy must return it from `dequeue` or drop it.
    ///
    /// # Errors
    /// If a packet that was taken before was neither returned nor dropped, or if `id` is not
    /// queued.
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
            Some(Place::Arriving) => {
                fault("the arriving packet cannot be taken: it is not queued yet")
            }
            _ => fault("the packet is not in the queue: it has left or was dropped"),
        }
    }

    /// Drops a queued or taken packet.
    ///
    /// # Errors
    /// If the packet is not in the queue.
    pub fn drop(&mut self, id: Id, reason: DropReason) -> Result<(), Fault> {
        match self.entry(id).map(|entry| entry.place) {
            Some(Place::Arriving) => fault(
                "`drop` cannot drop the arriving packet: `enqueue` must return the verdict to drop it",
            ),
            None => fault("the packet is not in the queue: it has left or was dropped"),
            Some(_) => {
                self.actions.push(Action::Drop(id, reason));
                self.remove(id);
                Ok(())
            }
        }
    }

    /// Marks a packet with CE. Returns false, without a mark, if the packet is not ECN-capable.
    ///
    /// # Errors
    /// If the packet is not in the queue.
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

    /// Returns the number of packets that have arrived since the creation of the queue.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Returns the number of packets that arrived before this one.
    fn number(&self, id: Id) -> u64 {
        self.entries[id.slot()].info.number
    }

    fn entry(&self, id: Id) -> Option<&Entry> {
        self.entries.get(id.slot()).filter(|entry| entry.id == id && entry.place != Place::Free)
    }

    fn id(&self, slot: u32) -> Option<Id> {
        self.entries.get(slot as usize).map(|entry| entry.id)
    }

    /// Adds an arriving packet, which waits for the policy's verdict.
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

    /// Appends the arriving packet to the queue.
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

    /// Returns the packet that was taken and has been neither returned nor dropped; `None` without
    /// one.
    pub(super) fn taken(&self) -> Option<Id> {
        self.taken
    }

    /// Removes a packet, which may be arriving, queued or taken.
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
