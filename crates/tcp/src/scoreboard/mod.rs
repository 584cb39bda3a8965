//! The outstanding data, segment by segment.
//!
//! Source: RFC 6675's scoreboard, kept as a ring.
//! Idea: one entry of 24 bytes for each segment, addressed by a running index that does not change
//! when older entries are removed. Queries use counters, and pointers that move backwards only
//! after a timeout or an undo. So the work for an acknowledgement grows with the newly acknowledged
//! segments, not with the outstanding ones.
//! Invariants (asserted in debug builds): the entries tile `una..nxt`; bytes outstanding =
//! in flight for the first time + selectively acknowledged + lost; retransmitted bytes are those of
//! entries whose retransmission is in flight; an entry is never both acknowledged and lost.
//!
//! Pointers: every entry below `counted` is acknowledged selectively or has three such entries
//! above it; below `timed`, RACK has decided on every original transmission; below `early`, every
//! original transmission left before the newest delivered segment; the search for the next
//! retransmission continues at `repaired`. Lost retransmissions have a queue of their own.

mod late;

use crate::ranges::Ranges;
use sojourn_units::Nanos;
use std::collections::VecDeque;

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// The segment's retransmission is in flight.
const REPAIR: u8 = 4;
/// The segment was retransmitted at least once.
const REPEATED: u8 = 8;
/// The segment always has PSH.
const PUSHED: u8 = 16;

/// A segment counts as lost if at least this number of segments above it are acknowledged (RFC
/// 6675's `DupThresh`).
pub const DUP_THRESH: u64 = 3;

/// One outstanding segment.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// First sequence number.
    pub seq: u64,
    /// When the segment was last sent.
    pub sent_at: Nanos,
    /// Number of sequence numbers, a FIN included.
    pub len: u32,
    flags: u8,
    /// Whether the segment ends with the FIN.
    pub fin: bool,
}

impl Entry {
    /// Returns the sequence number after the segment's last.
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Returns whether the segment was ever retransmitted.
    pub fn is_repeated(&self) -> bool {
        self.flags & REPEATED != 0
    }

    /// Returns whether the segment has PSH also when it is sent again.
    pub fn is_pushed(&self) -> bool {
        self.flags & PUSHED != 0
    }

    /// Returns whether the segment was acknowledged selectively.
    pub fn is_sacked(&self) -> bool {
        self.flags & SACKED != 0
    }

    /// Returns whether the segment is taken for lost.
    pub fn is_lost(&self) -> bool {
        self.flags & LOST != 0
    }

    fn in_repair(&self) -> bool {
        self.flags & REPAIR != 0
    }

    /// Returns whether the segment is neither acknowledged, nor lost, nor in flight as a
    /// retransmission.
    fn is_original(&self) -> bool {
        self.flags & (SACKED | LOST | REPAIR) == 0
    }

    /// Returns whether the segment is lost and no retransmission of it is in flight.
    fn needs_repair(&self) -> bool {
        self.flags & (SACKED | LOST | REPAIR) == LOST
    }
}

/// The state of delivery when a segment left, for rate samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    /// Bytes delivered before the segment left.
    pub delivered: u64,
    /// When the last of these bytes was delivered.
    pub delivered_at: Nanos,
    /// When the first segment of the sample was sent.
    pub first_sent: Nanos,
    /// Whether the application limited the sender.
    pub app_limited: bool,
    /// Bytes in flight, the segment included.
    pub in_flight: u64,
    /// Bytes taken for lost before the segment left.
    pub lost: u64,
}

/// A segment that was taken for lost, for controls that model the path.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// First sequence number.
    pub seq: u64,
    /// Number of sequence numbers.
    pub len: u64,
    /// The state of delivery when the lost segment left.
    pub snapshot: Snapshot,
}

/// Deliveries that one acknowledgement newly reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub delivered: u64,
    /// Bytes newly acknowledged selectively.
    pub sacked: u64,
    /// Departure of the oldest segment sent once and now acknowledged cumulatively; 0 for none.
    pub first_sent: Nanos,
    /// Departure of the newest segment sent once and now acknowledged cumulatively; 0 for none.
    pub last_sent: Nanos,
    /// Departure of the newest segment sent once and now acknowledged selectively; 0 for none.
    pub sack_sent: Nanos,
    /// Departure of the oldest such segment; 0 for none.
    pub sack_first: Nanos,
    /// Whether a retransmitted segment was acknowledged cumulatively.
    pub repeated: bool,
    /// Whether a segment was acknowledged that was sent once and ends at or below `orig_bound`.
    pub original: bool,
    /// The sequence number up to which `original` counts.
    pub orig_bound: u64,
    /// Whether a segment was acknowledged that was sent once and ends below `highest`.
    pub reordered: bool,
    /// [`Scoreboard::highest`] before this acknowledgement.
    pub highest: u64,
    /// The newest snapshot of the acknowledged segments, with the departure of its segment.
    pub snapshot: Option<(Snapshot, Nanos)>,
    /// The delivered segment that was sent last: departure, end.
    pub newest: (Nanos, u64),
    /// End and departure of the delivered segment that was counted last; those acknowledged
    /// cumulatively are counted after the others.
    pub last: (u64, Nanos),
    /// Latest departure of a retransmission that counts for `newest` and `last`: a later one cannot
    /// be acknowledged yet, or, for a cumulative one, left after the echoed timestamp.
    pub believable: Nanos,
}

impl Tally {
    /// Counts a segment that left at `sent_at` and ends at `end`.
    fn count(&mut self, sent_at: Nanos, end: u64) {
        self.newest = self.newest.max((sent_at, end));
        if end > self.last.0 {
            self.last = (end, sent_at);
        }
    }
}

/// Data for rate samples.
#[derive(Clone, Debug, Default)]
struct Samples {
    /// Snapshots, one for each entry of the ring.
    snapshots: Vec<Snapshot>,
    /// Segments taken for lost and not yet reported.
    losses: Vec<Loss>,
}

/// Lost and selectively acknowledged segments, and the search pointers (see the module).
#[derive(Clone, Debug, Default)]
struct Holes {
    counted: u64,
    /// Number of segments acknowledged selectively from `counted` on.
    above: u64,
    timed: u64,
    early: u64,
    repaired: u64,
    /// Index after the last segment taken for lost.
    lost_end: u64,
    /// Sequence numbers acknowledged selectively.
    acked: Ranges,
    /// Indices of the segments whose retransmission was lost.
    relost: VecDeque<u64>,
    /// Retransmissions in the order of departure, for RACK: index and departure. An item is out of
    /// date if its segment was delivered or sent again.
    repairs: VecDeque<(u64, Nanos)>,
}

impl Holes {
    /// Moves the pointers to `head` at least, since all segments below it are acknowledged.
    fn advance(&mut self, head: u64) {
        self.counted = self.counted.max(head);
        self.timed = self.timed.max(head);
        self.repaired = self.repaired.max(head);
        self.lost_end = self.lost_end.max(head);
    }
}

/// The outstanding segments. Their bytes fit a window, so counters of bytes have 32 bits.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    ring: Box<[Entry]>,
    /// Data for rate samples, if the control uses such samples.
    samples: Option<Box<Samples>>,
    /// State of losses and reordering; allocated at the first of them.
    holes: Option<Box<Holes>>,
    head: u64,
    tail: u64,
    /// End of the highest segment ever acknowledged.
    highest: u64,
    mss: u32,
    sacked_bytes: u32,
    sacked_count: u32,
    lost_bytes: u32,
    repair_bytes: u32,
    checks: u32,
}

/// Entries of the smallest ring.
const FEWEST: usize = 4;

const EMPTY: Entry = Entry { seq: 0, sent_at: 0, len: 0, flags: 0, fin: false };

impl Scoreboard {
    /// Returns an empty scoreboard for segments of `mss` bytes; with `snapshots` it keeps the data
    /// for rate samples.
    pub fn new(mss: u64, snapshots: bool) -> Self {
        Self {
            ring: Box::default(),
            samples: snapshots.then(Box::default),
            holes: None,
            head: 0,
            tail: 0,
            highest: 0,
            mss: mss.max(1) as u32,
            sacked_bytes: 0,
            sacked_count: 0,
            lost_bytes: 0,
            repair_bytes: 0,
            checks: 0,
        }
    }

    fn slot(&self, index: u64) -> usize {
        index as usize & (self.ring.len().wrapping_sub(1))
    }

    /// Returns the entry at `index`.
    pub fn entry(&self, index: u64) -> &Entry {
        &self.ring[self.slot(index)]
    }

    #[inline]
    fn entry_mut(&mut self, index: u64) -> &mut Entry {
        let slot = self.slot(index);
        &mut self.ring[slot]
    }

    /// Returns whether no segment is outstanding.
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Returns the number of outstanding segments.
    pub fn len(&self) -> u64 {
        self.tail - self.head
    }

    /// Returns the index of the oldest segment.
    pub fn first(&self) -> Option<u64> {
        (self.head < self.tail).then_some(self.head)
    }

    /// Returns the index of the newest segment.
    pub fn last(&self) -> Option<u64> {
        (self.head < self.tail).then(|| self.tail - 1)
    }

    /// Returns the outstanding bytes acknowledged selectively.
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes.into()
    }

    /// Returns the number of outstanding segments acknowledged selectively.
    pub fn sacked_count(&self) -> u64 {
        self.sacked_count.into()
    }

    /// Returns the bytes taken for lost (also those whose retransmission is in flight).
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes.into()
    }

    /// Returns the bytes of retransmissions in flight.
    pub fn repair_bytes(&self) -> u64 {
        self.repair_bytes.into()
    }

    /// Returns the first sequence number of each segment that is taken for lost and whose
    /// retransmission is not in flight.
    pub fn unrepaired(&self) -> impl Iterator<Item = u64> {
        let end = if self.lost_bytes > 0 { self.tail } else { self.head };
        let entries = (self.head..end).map(|index| self.entry(index));
        entries.filter(|entry| entry.needs_repair()).map(|entry| entry.seq)
    }

    /// Returns the end of the highest segment ever acknowledged.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.ring.len() * 2).max(FEWEST);
        self.ring = self.larger(size, &self.ring, EMPTY).into();
        if let Some(mut samples) = self.samples.take() {
            samples.snapshots = self.larger(size, &samples.snapshots, Snapshot::default());
            self.samples = Some(samples);
        }
    }

    /// Returns a ring of `size` entries with the outstanding entries of `ring`.
    fn larger<T: Copy>(&self, size: usize, ring: &[T], empty: T) -> Vec<T> {
        let mut larger = vec![empty; size];
        for index in self.head..self.tail {
            larger[index as usize & (size - 1)] = ring[index as usize & (ring.len() - 1)];
        }
        larger
    }

    /// Adds a new segment, which left at `now`.
    #[inline]
    pub fn push(&mut self, seq: u64, len: u32, fin: bool, now: Nanos, snapshot: Snapshot) {
        debug_assert!(self.is_empty() || self.entry(self.tail - 1).end() == seq);
        if self.len() as usize == self.ring.len() {
            self.grow();
        }
        let slot = self.slot(self.tail);
        self.ring[slot] = Entry { seq, sent_at: now, len, flags: 0, fin };
        if let Some(samples) = &mut self.samples {
            samples.snapshots[slot] = snapshot;
        }
        self.tail += 1;
    }

    /// Notes that the newest segment has PSH also when it is sent again.
    pub fn mark_pushed(&mut self) {
        self.entry_mut(self.tail - 1).flags |= PUSHED;
    }

    /// Takes out the state of losses; the caller puts it back.
    fn take_holes(&mut self) -> Box<Holes> {
        let mut holes = self.holes.take().unwrap_or_default();
        holes.advance(self.head);
        holes
    }

    /// Notes that the segment at `index` was sent again. With `remember`, it is added to RACK's
    /// queue of retransmissions.
    pub fn on_repair(&mut self, index: u64, now: Nanos, snapshot: Snapshot, remember: bool) {
        let entry = self.entry_mut(index);
        let len = entry.len;
        let again = entry.in_repair();
        entry.flags |= REPAIR | REPEATED;
        entry.sent_at = now;
        if !again {
            self.repair_bytes += len;
        }
        let slot = self.slot(index);
        if let Some(samples) = &mut self.samples {
            samples.snapshots[slot] = snapshot;
        }
        let mut holes = self.take_holes();
        if remember {
            holes.repairs.push_back((index, now));
        }
        if holes.relost.front() == Some(&index) {
            holes.relost.pop_front();
        }
        if holes.repaired == index {
            holes.repaired += 1;
        }
        self.holes = Some(holes);
    }

    /// Returns the index of the first entry that starts at or above `seq`.
    fn find(&self, seq: u64) -> u64 {
        if self.is_empty() || seq <= self.entry(self.head).seq {
            return self.head;
        }
        // Most segments are full, so this index is mostly right.
        let guess = self.head + (seq - self.entry(self.head).seq) / u64::from(self.mss);
        if guess < self.tail && self.entry(guess).seq == seq {
            return guess;
        }
        let (mut low, mut high) = (self.head, self.tail);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle).seq < seq {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    #[inline]
    fn deliver(&mut self, index: u64, tally: &mut Tally) {
        let entry = *self.entry(index);
        tally.delivered += u64::from(entry.len);
        let end = entry.end();
        if entry.is_repeated() {
            // An acknowledgement too early for the retransmission acknowledges the original.
            if entry.sent_at <= tally.believable {
                tally.count(entry.sent_at, end);
            }
        } else {
            tally.original |= end <= tally.orig_bound;
            tally.reordered |= end < tally.highest;
            tally.count(entry.sent_at, end);
        }
        if let Some(samples) = &self.samples {
            let snapshot = samples.snapshots[self.slot(index)];
            let newer = tally.snapshot.is_none_or(|(old, sent)| {
                (snapshot.delivered, entry.sent_at) > (old.delivered, sent)
            });
            if newer {
                tally.snapshot = Some((snapshot, entry.sent_at));
            }
        }
    }

    /// Takes the SACK block `start..end`. Only segments that lie wholly in it count.
    pub fn on_sack(&mut self, start: u64, end: u64, tally: &mut Tally) {
        if self.is_empty() {
            return;
        }
        let mut holes = self.take_holes();
        if !holes.acked.covers(start, end) {
            self.sack_range(start, end, &mut holes, tally);
        }
        self.holes = Some(holes);
    }

    fn sack_range(&mut self, start: u64, end: u64, holes: &mut Holes, tally: &mut Tally) {
        let from = self.find(start);
        let upto = self.find(end);
        let upto = if upto < self.tail && self.entry(upto).seq == end {
            upto
        } else if self.entry(self.tail - 1).end() == end {
            self.tail
        } else {
            upto.saturating_sub(1)
        };
        if from >= upto {
            return;
        }
        let (start, end) = (self.entry(from).seq, self.entry(upto - 1).end());
        let Holes { acked, counted, above, .. } = holes;
        acked.insert(start, end, |gap_start, gap_end| {
            let mut index = self.find(gap_start);
            while index < self.tail && self.entry(index).end() <= gap_end {
                self.sack_one(index, tally);
                *above += u64::from(index >= *counted);
                index += 1;
            }
        });
        self.highest = self.highest.max(end);
    }

    fn sack_one(&mut self, index: u64, tally: &mut Tally) {
        self.deliver(index, tally);
        let entry = self.entry_mut(index);
        let (len, flags, sent_at) = (entry.len, entry.flags, entry.sent_at);
        debug_assert_eq!(flags & SACKED, 0);
        entry.flags = (flags | SACKED) & !(LOST | REPAIR);
        tally.sacked += u64::from(len);
        if flags & REPEATED == 0 {
            tally.sack_sent = tally.sack_sent.max(sent_at);
            if tally.sack_first == 0 || sent_at < tally.sack_first {
                tally.sack_first = sent_at;
            }
        }
        if flags & LOST != 0 {
            self.lost_bytes -= len;
        }
        if flags & REPAIR != 0 {
            self.repair_bytes -= len;
        }
        self.sacked_bytes += len;
        self.sacked_count += 1;
    }

    /// Takes a cumulative acknowledgement of all numbers below `upto`.
    #[inline]
    pub fn on_ack(&mut self, upto: u64, tally: &mut Tally) {
        while self.head < self.tail {
            let index = self.head;
            let entry = *self.entry(index);
            if entry.end() > upto {
                if entry.seq < upto {
                    self.trim(index, upto, tally);
                }
                break;
            }
            let len = entry.len;
            if entry.flags & SACKED != 0 {
                self.sacked_bytes -= len;
                self.sacked_count -= 1;
                if let Some(holes) = &mut self.holes {
                    holes.above -= u64::from(index >= holes.counted);
                }
            } else {
                self.deliver(index, tally);
                if entry.flags & LOST != 0 {
                    self.lost_bytes -= len;
                }
                if entry.flags & REPAIR != 0 {
                    self.repair_bytes -= len;
                }
                if entry.is_repeated() {
                    tally.repeated = true;
                } else {
                    if tally.first_sent == 0 {
                        tally.first_sent = entry.sent_at;
                    }
                    tally.last_sent = entry.sent_at;
                }
            }
            self.head += 1;
        }
        self.highest = self.highest.max(upto);
        if let Some(holes) = &mut self.holes {
            holes.advance(self.head);
            holes.acked.remove_below(upto);
        }
        self.check();
    }

    /// Removes the acknowledged part below `upto` from a segment.
    fn trim(&mut self, index: u64, upto: u64, tally: &mut Tally) {
        let entry = self.entry_mut(index);
        let cut = (upto - entry.seq) as u32;
        let flags = entry.flags;
        entry.seq = upto;
        entry.len -= cut;
        if flags & SACKED != 0 {
            self.sacked_bytes -= cut;
            return;
        }
        tally.delivered += u64::from(cut);
        if flags & LOST != 0 {
            self.lost_bytes -= cut;
        }
        if flags & REPAIR != 0 {
            self.repair_bytes -= cut;
        }
    }

    fn lose(&mut self, index: u64, holes: &mut Holes) -> u64 {
        let entry = self.entry_mut(index);
        if entry.flags & (SACKED | LOST) != 0 {
            return 0;
        }
        entry.flags |= LOST;
        let len = entry.len;
        self.lost_bytes += len;
        holes.lost_end = holes.lost_end.max(index + 1);
        self.note_loss(index);
        len.into()
    }

    fn note_loss(&mut self, index: u64) {
        let (slot, Entry { seq, len, .. }) = (self.slot(index), *self.entry(index));
        if let Some(samples) = &mut self.samples {
            let snapshot = samples.snapshots[slot];
            samples.losses.push(Loss { seq, len: u64::from(len), snapshot });
        }
    }

    /// Returns the losses that were not reported yet.
    pub fn take_losses(&mut self) -> Vec<Loss> {
        self.samples.as_mut().map_or_else(Vec::new, |samples| std::mem::take(&mut samples.losses))
    }

    /// RFC 6675's `IsLost`: marks the segments as lost that have [`DUP_THRESH`] acknowledged
    /// segments above them. Returns the bytes newly lost.
    pub fn mark_by_count(&mut self) -> u64 {
        let mut lost = 0;
        let Some(mut holes) = self.holes.take() else { return 0 };
        while holes.counted < self.tail && holes.above >= DUP_THRESH {
            let index = holes.counted;
            if self.entry(index).is_sacked() {
                holes.above -= 1;
            } else {
                lost += self.lose(index, &mut holes);
            }
            holes.counted += 1;
        }
        self.holes = Some(holes);
        lost
    }

    /// Marks the oldest segment as lost. Returns the bytes newly lost.
    pub fn mark_first(&mut self) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let mut holes = self.take_holes();
        let lost = self.lose(self.head, &mut holes);
        self.holes = Some(holes);
        lost
    }

    /// Marks the oldest segment, and all unacknowledged ones that left until `latest`, as lost
    /// after an expiry of the retransmission timer.
    pub fn mark_until(&mut self, latest: Nanos) {
        let mut holes = self.take_holes();
        for index in self.head..self.tail {
            let entry = *self.entry(index);
            if entry.is_sacked() || (index != self.head && entry.sent_at > latest) {
                continue;
            }
            let is_new = self.lose(index, &mut holes) > 0;
            if entry.in_repair() {
                self.entry_mut(index).flags &= !REPAIR;
                self.repair_bytes -= entry.len;
                if !is_new {
                    self.note_loss(index);
                }
            }
        }
        holes.relost.clear();
        holes.repaired = self.head;
        self.holes = Some(holes);
    }

    /// Withdraws all losses: no segment counts as lost.
    pub fn unmark(&mut self) {
        for index in self.head..self.tail {
            self.entry_mut(index).flags &= !LOST;
        }
        self.lost_bytes = 0;
        if let Some(holes) = &mut self.holes {
            holes.relost.clear();
            holes.repaired = self.head;
            holes.lost_end = self.head;
            holes.counted = self.head;
            holes.above = self.sacked_count.into();
            holes.timed = self.head;
            holes.early = self.head;
        }
    }

    /// Returns the index of the lost segment to retransmit next.
    #[inline]
    pub fn next_repair(&mut self) -> Option<u64> {
        if self.lost_bytes == 0 {
            return None;
        }
        let mut holes = self.holes.take()?;
        let next = self.find_repair(&mut holes);
        self.holes = Some(holes);
        next
    }

    fn find_repair(&self, holes: &mut Holes) -> Option<u64> {
        let is_over = |&index: &u64| index < self.head || !self.entry(index).needs_repair();
        while holes.relost.front().is_some_and(is_over) {
            holes.relost.pop_front();
        }
        if let Some(&again) = holes.relost.front() {
            return Some(again);
        }
        while holes.repaired < holes.lost_end {
            if self.entry(holes.repaired).needs_repair() {
                return Some(holes.repaired);
            }
            holes.repaired += 1;
        }
        None
    }

    /// Returns the index of a segment by rule (3) of RFC 6675's `NextSeg`: unacknowledged, below
    /// the highest acknowledged segment, and without a retransmission in flight.
    pub fn next_unsure(&mut self) -> Option<u64> {
        let mut holes = self.holes.take()?;
        let next = self.find_unsure(&mut holes);
        self.holes = Some(holes);
        next
    }

    fn find_unsure(&self, holes: &mut Holes) -> Option<u64> {
        let (start, _) = holes.acked.last()?;
        while holes.repaired < self.tail && self.entry(holes.repaired).seq < start {
            let entry = self.entry(holes.repaired);
            if !entry.is_sacked() && !entry.in_repair() {
                return Some(holes.repaired);
            }
            holes.repaired += 1;
        }
        None
    }

    /// Returns the index of the highest segment that is not acknowledged.
    pub fn last_unacked(&self) -> Option<u64> {
        let last = self.last()?;
        if !self.entry(last).is_sacked() {
            return Some(last);
        }
        let (start, _) = self.holes.as_ref()?.acked.last()?;
        let at = self.find(start);
        (at > self.head).then(|| at - 1)
    }

    /// Compares the counters with a new count, in debug builds.
    #[inline]
    fn check(&mut self) {
        if cfg!(debug_assertions) {
            self.checks = self.checks.wrapping_add(1);
            if self.is_checked() {
                self.recount();
            }
        }
    }

    /// Returns whether results are compared with those of a plain search: in debug builds, always
    /// with at most 32 segments, else at every 256th call of `check`.
    fn is_checked(&self) -> bool {
        cfg!(debug_assertions) && (self.len() <= 32 || self.checks.is_multiple_of(256))
    }

    fn recount(&self) {
        let (mut sacked, mut count, mut lost, mut repair, mut above) = (0, 0, 0, 0, 0);
        let (counted, held_above) =
            self.holes.as_ref().map_or((0, 0), |holes| (holes.counted, holes.above));
        for index in self.head..self.tail {
            let entry = self.entry(index);
            let len = entry.len;
            if index + 1 < self.tail {
                assert_eq!(entry.end(), self.entry(index + 1).seq, "entries tile the window");
            }
            assert!(!(entry.is_sacked() && entry.is_lost()), "both acknowledged and lost");
            assert!(entry.in_repair() <= entry.is_repeated());
            if entry.is_sacked() {
                sacked += len;
                count += 1;
                above += u64::from(index >= counted);
                let acked = &self.holes.as_ref().expect("something was acknowledged").acked;
                assert!(acked.covers(entry.seq, entry.end()));
            }
            lost += len * u32::from(entry.is_lost());
            repair += len * u32::from(entry.in_repair());
        }
        let held = (self.sacked_bytes, self.sacked_count, self.lost_bytes, self.repair_bytes);
        assert_eq!(held, (sacked, count, lost, repair), "the counters must equal a recount");
        assert_eq!(held_above, above, "segments acknowledged above the pointer, and a recount");
    }
}
