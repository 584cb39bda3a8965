//! A link's arrivals and decisions, written down and made again.
//!
//! A link's decisions follow from its parameters, its key and its arrivals. A journal of a wire of
//! real packets or of a simulation is therefore replayed through a fresh link, which must drop,
//! mark and send the same packets at the same times: [`replay`] reports differences.

use crate::port::Port;
use crate::slab::Packet;
use sojourn_link::{Event, Link, Observer};
use sojourn_plan::{Plan, Schedule};
use sojourn_queue::{Headers, Sender, TcpView};
use sojourn_units::{EPOCH, Nanos};
use std::fmt;

/// One line of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, theoretically.
    pub at: Nanos,
    /// Number of the packet: a count of arrivals.
    pub packet: u32,
    /// What.
    pub what: Event,
}

/// Arrivals at one link, and their outcomes.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    arrivals: Vec<(Packet, Headers)>,
    entries: Vec<Entry>,
    /// TCP headers of arrivals by their numbers: disciplines may look into packets.
    segments: Vec<(u32, TcpView)>,
    /// Numbers of the packets at the link, by slot.
    numbers: Vec<u32>,
    cut: bool,
}

/// A journal grows no longer than so many lines; a header takes as much room as two.
const LONGEST: usize = 1 << 24;

impl Journal {
    /// Writes down an event of the link, unless it is one of the wire beyond the loss of a packet.
    /// `look` gives the packet's headers, and that of TCP, if it has one that can be read.
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

    /// Everything that happened, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns whether later packets were left out.
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
    /// The journal's entry.
    pub journal: Option<Entry>,
    /// The replay's decision.
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

/// Writes the journal of a replay's link, whose packets have their numbers as slots.
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

    /// Journalled packets come from elsewhere.
    fn sender(&self, _packet: &Packet) -> Sender {
        Sender::default()
    }
}

/// Sends a journal's arrivals through a fresh link of the same plan and seed.
///
/// # Errors
/// The first difference.
///
/// # Panics
/// If the link shares a medium, or has a transmit ring or a late host: who comes first there is not the link's alone.
pub fn replay(
    plan: &Plan,
    seed: u64,
    link: usize,
    journal: &Journal,
) -> Result<Agreement, Difference> {
    let Port::Link(mut fresh) = Port::new(&plan.links[link], seed) else {
        panic!("a journal of a link on its own is replayed");
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
