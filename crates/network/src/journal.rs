//! A journal of a link's arrivals and decisions, and its replay.
//!
//! A link's decisions follow from its parameters, its key and its arrivals. The journal of a real
//! or simulated link can therefore be replayed through a new link, which must drop, mark and send
//! the same packets at the same times: [`replay`] reports differences.

use crate::port;
use crate::slab::Packet;
use sojourn_link::{Event, Link, Observer, Port};
use sojourn_plan::{Plan, Schedule};
use sojourn_queue::{Headers, Sender, TcpView};
use sojourn_units::{EPOCH, Nanos};
use std::fmt;

/// One event in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When the event was due. On a wire it may have been processed later.
    pub at: Nanos,
    /// Number of the packet, counted from 0 in the order of arrivals; `u32::MAX` if unknown.
    pub packet: u32,
    /// The event.
    pub what: Event,
}

/// Arrivals at one link, and what the link did with them.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    arrivals: Vec<(Packet, Headers)>,
    entries: Vec<Entry>,
    /// For each arrival with a readable TCP header: the packet's number, and the header, which some
    /// disciplines read.
    segments: Vec<(u32, TcpView)>,
    /// Number of the last packet in each slot; `u32::MAX` if none.
    numbers: Vec<u32>,
    /// Whether later arrivals were left out because the journal was full.
    cut: bool,
}

/// Maximum size of a journal in entries. A TCP header counts as two entries.
const LONGEST: usize = 1 << 24;

impl Journal {
    /// Records an event of the link if it is an arrival, a departure, a mark, a drop or a loss, and
    /// ignores all others. `look` returns the packet's headers, and its TCP header if it has one
    /// that can be read.
    pub fn record(
        &mut self,
        at: Nanos,
        packet: &Packet,
        event: Event,
        look: impl FnOnce() -> (Headers, Option<TcpView>),
    ) {
        match event {
            Event::Offered => self.offered(at, packet, look),
            Event::Departed | Event::Marked(_) | Event::Dropped { .. } | Event::Lost => {
                self.happened(at, packet, event);
            }
            Event::Abandoned | Event::Duplicated | Event::Corrupted(_) | Event::Delivered => {}
        }
    }

    fn offered(
        &mut self,
        at: Nanos,
        packet: &Packet,
        look: impl FnOnce() -> (Headers, Option<TcpView>),
    ) {
        if self.entries.len() + 2 * self.segments.len() >= LONGEST {
            self.cut = true;
            return;
        }
        let slot = packet.slot as usize;
        if self.numbers.len() <= slot {
            self.numbers.resize(slot + 1, u32::MAX);
        }
        let number = self.arrivals.len() as u32;
        self.numbers[slot] = number;
        let (headers, tcp) = look();
        self.arrivals.push((*packet, headers));
        self.segments.extend(tcp.map(|view| (number, view)));
        self.entries.push(Entry { at, packet: number, what: Event::Offered });
    }

    fn happened(&mut self, at: Nanos, packet: &Packet, what: Event) {
        if self.cut {
            return;
        }
        let number = self.numbers.get(packet.slot as usize).copied().unwrap_or(u32::MAX);
        self.entries.push(Entry { at, packet: number, what });
    }

    /// Returns all events in the order in which they were recorded.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns whether later arrivals were left out because the journal was full.
    pub fn is_cut(&self) -> bool {
        self.cut
    }
}

/// The counts of a journal that is equal to its replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Packets that arrived.
    pub arrivals: usize,
    /// Packets that the queue dropped.
    pub drops: usize,
    /// Packets that the queue marked.
    pub marks: usize,
    /// Events of all kinds.
    pub entries: usize,
}

/// The first event in which a journal and its replay differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Index of the event, from 0.
    pub line: usize,
    /// The journal's event; `None` if the journal is shorter than the replay.
    pub journal: Option<Entry>,
    /// The replay's event; `None` if the replay is shorter than the journal.
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

/// Records the journal of a replay. Each packet's slot in the replay is its number in the replayed
/// journal.
struct Scribe<'a> {
    journal: Journal,
    /// The journal that is replayed.
    model: &'a Journal,
}

impl Observer<Packet> for Scribe<'_> {
    fn on_event(&mut self, at: Nanos, packet: &Packet, event: Event) {
        self.journal.record(at, packet, event, || (Headers::default(), None));
    }

    fn tcp(&self, packet: &Packet) -> Option<TcpView> {
        let segments = &self.model.segments;
        let place = segments.binary_search_by_key(&packet.slot, |(number, _)| *number).ok()?;
        Some(segments[place].1)
    }

    fn headers(&self, packet: &Packet) -> Headers {
        self.model.arrivals[packet.slot as usize].1
    }

    /// Journals have no data of sending hosts.
    fn sender(&self, _packet: &Packet) -> Sender {
        Sender::default()
    }
}

/// Replays a journal's arrivals on a new link, and compares the new events with the journal's.
///
/// # Errors
/// The first difference.
///
/// # Panics
/// If the link shares a medium, or has a transmit ring or a late host: other stations or the host
/// then also decide when it sends, and the journal does not contain them.
pub fn replay(
    plan: &Plan,
    seed: u64,
    link: usize,
    journal: &Journal,
) -> Result<Agreement, Difference> {
    let Port::Link(mut fresh) = port::port(&plan.links[link], seed) else {
        panic!("the link shares a medium, or has a transmit ring or a late host");
    };
    let mut scribe = Scribe { journal: Journal::default(), model: journal };
    let planned = &plan.links[link];
    let mut schedule = Schedule::new(&planned.params, &planned.changes);
    let mut change_until = |now: Nanos, fresh: &mut Link<Packet>, scribe: &mut Scribe<'_>| {
        while schedule.next_at().is_some_and(|at| at <= now - EPOCH)
            && let Some((at, params)) = schedule.take_next()
        {
            fresh.set_wire(EPOCH + at, params, scribe);
        }
    };
    let arrivals = journal.entries.iter().filter(|e| e.what == Event::Offered);
    for (entry, (packet, _)) in arrivals.zip(&journal.arrivals) {
        // A slot of the journal may have held several packets; a packet's number is unique.
        let mut packet = *packet;
        packet.slot = entry.packet;
        change_until(entry.at, &mut fresh, &mut scribe);
        fresh.send(entry.at, packet, &mut scribe);
    }
    if let Some(last) = journal.entries.last() {
        change_until(last.at, &mut fresh, &mut scribe);
        fresh.poll(last.at, &mut scribe);
    }
    let mut agreement = Agreement { arrivals: journal.arrivals.len(), ..Agreement::default() };
    let (theirs, ours) = (&journal.entries, &scribe.journal.entries);
    for line in 0..theirs.len().max(ours.len()) {
        let (journal, replay) = (theirs.get(line).copied(), ours.get(line).copied());
        if journal != replay {
            return Err(Difference { line, journal, replay });
        }
        match replay.map(|e| e.what) {
            Some(Event::Dropped { .. }) => agreement.drops += 1,
            Some(Event::Marked(_)) => agreement.marks += 1,
            _ => {}
        }
        agreement.entries += 1;
    }
    Ok(agreement)
}
