//! Losses by time: segments that left too long before a delivered segment (RACK).
//!
//! Source: RFC 8985, section 6.2, step 5.
//! Idea: original transmissions departed in the order of their indices, retransmissions in the
//! order of their queue. So both are examined from the oldest on. The search for the last segment
//! that may still become late goes backwards from the newest delivered segment.

use super::{Holes, REPAIR, Scoreboard};
use sojourn_units::Nanos;
use std::collections::VecDeque;

impl Scoreboard {
    /// RACK: marks as lost the segments that left before `newest` (departure, end) and at least
    /// `delay` ago. Returns the bytes newly lost, and the departure of the last segment that may
    /// become lost later.
    pub fn mark_by_time(
        &mut self,
        now: Nanos,
        newest: (Nanos, u64),
        delay: Nanos,
    ) -> (u64, Option<Nanos>) {
        let is_newer = |oldest| {
            let entry = self.entry(oldest);
            (entry.sent_at, entry.end()) >= newest
        };
        if self.holes.is_none() && self.first().is_none_or(is_newer) {
            return (0, None);
        }
        let mut holes = self.take_holes();
        let (mut lost, mut waiting) = self.mark_originals(now, newest, delay, &mut holes);
        let (bytes, late) = self.mark_repairs(now, newest, delay, &mut holes);
        lost += bytes;
        waiting = waiting.max(late);
        self.holes = Some(holes);
        (lost, waiting)
    }

    /// [`Scoreboard::mark_by_time`] for segments sent once.
    fn mark_originals(
        &mut self,
        now: Nanos,
        newest: (Nanos, u64),
        delay: Nanos,
        holes: &mut Holes,
    ) -> (u64, Option<Nanos>) {
        let mut lost = 0;
        while holes.timed < self.tail {
            let index = holes.timed;
            let entry = *self.entry(index);
            if entry.is_original() {
                if (entry.sent_at, entry.end()) >= newest {
                    break;
                }
                if entry.sent_at.saturating_add(delay) > now {
                    let waiting = self.last_before(newest, holes);
                    debug_assert!(!self.is_checked() || waiting == self.searched(newest, holes));
                    return (lost, waiting);
                }
                lost += self.lose(index, holes);
            }
            holes.timed += 1;
        }
        (lost, None)
    }

    /// [`Scoreboard::mark_by_time`] for retransmissions.
    fn mark_repairs(
        &mut self,
        now: Nanos,
        newest: (Nanos, u64),
        delay: Nanos,
        holes: &mut Holes,
    ) -> (u64, Option<Nanos>) {
        let mut lost = 0;
        while let Some(&(index, sent_at)) = holes.repairs.front() {
            if self.is_waiting(index, sent_at) {
                let entry = *self.entry(index);
                if (sent_at, entry.end()) >= newest {
                    break;
                }
                if sent_at.saturating_add(delay) > now {
                    return (lost, self.last_repair_before(newest, &holes.repairs));
                }
                // If a segment is lost twice, its bytes count twice, since they left the network
                // twice.
                lost += u64::from(entry.len);
                if self.lose(index, holes) == 0 {
                    self.note_loss(index);
                }
                self.entry_mut(index).flags &= !REPAIR;
                self.repair_bytes -= entry.len;
                holes.relost.push_back(index);
            }
            holes.repairs.pop_front();
        }
        (lost, None)
    }

    /// Returns whether the retransmission of `index` that left at `sent_at` is in flight.
    #[inline]
    fn is_waiting(&self, index: u64, sent_at: Nanos) -> bool {
        index >= self.head && {
            let entry = self.entry(index);
            entry.sent_at == sent_at && entry.in_repair()
        }
    }

    /// Returns the departure of the last original transmission that left before `newest` and may
    /// become late; segments below `timed` are decided. Neither departures nor `newest` decrease,
    /// so the search continues where the last search ended.
    fn last_before(&self, newest: (Nanos, u64), holes: &mut Holes) -> Option<Nanos> {
        holes.early = holes.early.max(holes.timed);
        while holes.early < self.tail {
            let entry = self.entry(holes.early);
            if entry.is_original() && (entry.sent_at, entry.end()) >= newest {
                break;
            }
            holes.early += 1;
        }
        let mut index = holes.early;
        while index > holes.timed {
            index -= 1;
            let entry = self.entry(index);
            if entry.is_original() {
                return Some(entry.sent_at);
            }
            if entry.is_sacked() {
                index = holes.acked.holding(entry.seq).map_or(index, |range| self.find(range.0));
            }
        }
        None
    }

    /// [`Scoreboard::last_before`] for retransmissions, which are in the order of their departures.
    fn last_repair_before(
        &self,
        newest: (Nanos, u64),
        repairs: &VecDeque<(u64, Nanos)>,
    ) -> Option<Nanos> {
        let waits = |&&(index, sent_at): &&(u64, Nanos)| self.is_waiting(index, sent_at);
        let same = repairs.partition_point(|&(_, sent_at)| sent_at < newest.0);
        let mut tied = repairs.range(same..).take_while(|repair| repair.1 == newest.0);
        if tied.find(waits).is_some_and(|&(index, _)| self.entry(index).end() < newest.1) {
            return Some(newest.0);
        }
        repairs.range(..same).rev().find(waits).map(|&(_, sent_at)| sent_at)
    }

    /// [`Scoreboard::last_before`] by a search of every segment.
    fn searched(&self, newest: (Nanos, u64), holes: &Holes) -> Option<Nanos> {
        (holes.timed..self.tail)
            .map(|index| self.entry(index))
            .filter(|entry| entry.is_original())
            .take_while(|entry| (entry.sent_at, entry.end()) < newest)
            .last()
            .map(|entry| entry.sent_at)
    }
}
