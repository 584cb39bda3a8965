//! A link's arrivals and decisions, written down and made again.
//!
//! What a link decides follows from its parameters, its key and its arrivals. A journal taken anywhere,
//! by a wire of real packets or in simulation, is therefore replayed through a fresh link, which must
//! drop, mark and send the same packets at the same times: [`replay`] says where it does not.

use crate::port::Port;
use crate::slab::Packet;
use sojourn_link::{Backlog, Link, Sink};
use sojourn_plan::{Plan, Schedule};
use sojourn_queue::{DropReason, MarkReason, TcpView};
use sojourn_units::{EPOCH, Nanos};
use std::fmt;

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Happening {
    /// It came to the queue.
    Offered,
    /// It left the queue.
    Departed,
    /// The queue marked it.
    Marked,
    /// The queue dropped it, or refused it, for this reason.
    Dropped(DropReason),
    /// The line will lose it.
    Lost,
}

/// One line of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, theoretically.
    pub at: Nanos,
    /// Number of the packet: a count of arrivals.
    pub packet: u32,
    /// What.
    pub what: Happening,
}

/// Arrivals at one link, and what became of them.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    arrivals: Vec<Packet>,
    entries: Vec<Entry>,
    /// Numbers of the packets at the link, by slot.
    numbers: Vec<u32>,
    cut: bool,
}

/// A journal grows no longer.
const LONGEST: usize = 1 << 24;

impl Journal {
    /// A packet came to the queue.
    pub fn offered(&mut self, at: Nanos, packet: &Packet) {
        if self.entries.len() >= LONGEST {
            self.cut = true;
            return;
        }
        let slot = packet.slot as usize;
        if self.numbers.len() <= slot {
            self.numbers.resize(slot + 1, u32::MAX);
        }
        let number = self.arrivals.len() as u32;
        self.numbers[slot] = number;
        self.arrivals.push(*packet);
        self.entries.push(Entry { at, packet: number, what: Happening::Offered });
    }

    /// Something else happened to a packet.
    pub fn happened(&mut self, at: Nanos, packet: &Packet, what: Happening) {
        if self.cut {
            return;
        }
        let number = self.numbers.get(packet.slot as usize).copied().unwrap_or(u32::MAX);
        self.entries.push(Entry { at, packet: number, what });
    }

    /// Everything that happened, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether later packets were left out.
    pub fn is_cut(&self) -> bool {
        self.cut
    }
}

/// A journal and its replay agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Packets that came.
    pub arrivals: usize,
    /// Packets that the queue dropped.
    pub drops: usize,
    /// Packets that the queue marked.
    pub marks: usize,
    /// All that happened.
    pub entries: usize,
}

/// The first place where a journal and its replay differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its line.
    pub line: usize,
    /// What the journal says.
    pub journal: Option<Entry>,
    /// What the replay did.
    pub replay: Option<Entry>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tell = |entry: Option<Entry>| match entry {
            None => "nothing".to_owned(),
            Some(e) => format!("packet {} {:?} at {} ns", e.packet, e.what, e.at - EPOCH),
        };
        write!(
            f,
            "line {}: the journal says {}, its replay {}",
            self.line,
            tell(self.journal),
            tell(self.replay)
        )
    }
}

/// Takes down what the link of a replay does.
struct Scribe(Journal);

impl Sink<Packet> for Scribe {
    fn offered(&mut self, at: Nanos, packet: &Packet, _before: Backlog) {
        self.0.offered(at, packet);
    }
    fn departed(&mut self, at: Nanos, packet: &Packet, _after: Backlog) {
        self.0.happened(at, packet, Happening::Departed);
    }
    fn marked(&mut self, at: Nanos, packet: &Packet, _reason: MarkReason) {
        self.0.happened(at, packet, Happening::Marked);
    }
    fn dropped(&mut self, at: Nanos, packet: Packet, reason: DropReason, _queued: bool) {
        self.0.happened(at, &packet, Happening::Dropped(reason));
    }
    fn lost(&mut self, at: Nanos, packet: Packet) {
        self.0.happened(at, &packet, Happening::Lost);
    }
    fn delivered(&mut self, _at: Nanos, _packet: Packet) {}
    fn tcp(&self, _packet: &Packet) -> Option<TcpView> {
        None
    }
}

/// Sends a journal's arrivals through a fresh link of the same plan and seed.
///
/// # Errors
/// The first difference.
///
/// # Panics
/// If the link shares a medium, or has a transmit ring: who comes first there is not the link's alone.
pub fn replay(
    plan: &Plan,
    seed: u64,
    link: usize,
    journal: &Journal,
) -> Result<Agreement, Difference> {
    let Port::Link(mut fresh) = Port::new(&plan.links[link], seed) else {
        panic!("a journal of a link on its own is replayed");
    };
    let mut scribe = Scribe(Journal::default());
    let planned = &plan.links[link];
    let mut schedule = Schedule::new(&planned.params, &planned.changes);
    let mut change_until = |now: Nanos, fresh: &mut Link<Packet>, scribe: &mut Scribe| {
        while schedule.next_at().is_some_and(|at| at <= now - EPOCH)
            && let Some((at, params)) = schedule.take_next()
        {
            fresh.set_wire(EPOCH + at, params, scribe);
        }
    };
    let arrivals = journal.entries.iter().filter(|e| e.what == Happening::Offered);
    for (entry, packet) in arrivals.zip(&journal.arrivals) {
        // Slots may have been used again; numbers are not.
        let mut packet = *packet;
        packet.slot = entry.packet;
        change_until(entry.at, &mut fresh, &mut scribe);
        fresh.offer(entry.at, packet, &mut scribe);
    }
    if let Some(last) = journal.entries.last() {
        change_until(last.at, &mut fresh, &mut scribe);
        fresh.advance(last.at, &mut scribe);
    }
    let mut agreement = Agreement { arrivals: journal.arrivals.len(), ..Agreement::default() };
    let (theirs, ours) = (&journal.entries, &scribe.0.entries);
    for line in 0..theirs.len().max(ours.len()) {
        let (journal, replay) = (theirs.get(line).copied(), ours.get(line).copied());
        if journal != replay {
            return Err(Difference { line, journal, replay });
        }
        match replay.map(|e| e.what) {
            Some(Happening::Dropped(_)) => agreement.drops += 1,
            Some(Happening::Marked) => agreement.marks += 1,
            _ => {}
        }
        agreement.entries += 1;
    }
    Ok(agreement)
}
