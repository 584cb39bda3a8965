//! Datagrams in flight: their acknowledgement, and the detection of losses.
//!
//! Source: RFC 9002, section 6.1.
//! Idea: each datagram has a new number. It counts as lost if a datagram whose number is at least
//! three higher was acknowledged, or if a later datagram was acknowledged and 9/8 of the round-trip
//! time have passed.
//! Invariants: a datagram is settled once, by its acknowledgement or by its loss; the bytes in
//! flight are those of the datagrams that are not settled.

use sojourn_congestion::RateSample;
use sojourn_units::{Bytes, Nanos};
use std::collections::VecDeque;

/// Numbers of a message and of one of its fragments.
pub(super) type Fragment = (u64, u32);

/// A datagram that was sent.
struct Sent {
    is_settled: bool,
    /// The fragment in the datagram; `None` for a ping.
    fragment: Option<Fragment>,
    bytes: u32,
    at: Nanos,
    /// Total bytes sent before this datagram.
    offset: u64,
    delivered: u64,
    delivered_at: Nanos,
}

/// The newest datagram of an acknowledgement.
pub(super) struct Newest {
    pub(super) number: u64,
    pub(super) sent_at: Nanos,
    pub(super) rate: RateSample,
}

/// Datagrams that were declared lost.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) bytes: Bytes,
    pub(super) count: u64,
    /// Greatest number of a lost datagram.
    pub(super) newest: Option<u64>,
}

/// The datagrams in flight, and totals of sent and delivered bytes.
#[derive(Default)]
pub(super) struct Flight {
    /// Datagrams from number `base` on: those in flight, and settled datagrams between them.
    sent: VecDeque<Sent>,
    base: u64,
    /// Bytes in flight.
    pub(super) bytes: Bytes,
    /// Total bytes sent.
    pub(super) offset: u64,
    pub(super) delivered: u64,
    pub(super) delivered_at: Nanos,
    /// Greatest acknowledged number.
    largest: u64,
    /// Earliest time at which a datagram below the greatest acknowledged number is overdue; `None`
    /// without such a datagram.
    pub(super) overdue: Option<Nanos>,
}

impl Flight {
    /// Returns the number of the next datagram.
    pub(super) fn next(&self) -> u64 {
        self.base + self.sent.len() as u64
    }

    /// Returns the total bytes sent before the oldest datagram in flight.
    pub(super) fn una(&self) -> u64 {
        self.sent.front().map_or(self.offset, |sent| sent.offset)
    }

    /// Returns the fragments in flight, oldest first.
    pub(super) fn fragments(&self) -> impl Iterator<Item = Fragment> + '_ {
        self.sent.iter().filter(|sent| !sent.is_settled).filter_map(|sent| sent.fragment)
    }

    /// Records a datagram that is sent at `now`, and returns its number.
    pub(super) fn push(&mut self, now: Nanos, fragment: Option<Fragment>, bytes: u32) -> u64 {
        if self.bytes == 0 && bytes > 0 {
            self.delivered_at = now;
        }
        self.sent.push_back(Sent {
            is_settled: false,
            fragment,
            bytes,
            at: now,
            offset: self.offset,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
        });
        self.bytes += u64::from(bytes);
        self.offset += u64::from(bytes);
        self.next() - 1
    }

    /// Takes an acknowledgement of ranges of numbers; calls `settle` for each newly acknowledged
    /// fragment. Returns the newest datagram; `None` if none is newly acknowledged.
    pub(super) fn acknowledge(
        &mut self,
        now: Nanos,
        ranges: &[(u64, u64)],
        mut settle: impl FnMut(Fragment),
    ) -> Option<Newest> {
        let end = self.next();
        let mut newest: Option<Newest> = None;
        // A range with a datagram that was never sent is ignored.
        for &(first, last) in ranges.iter().filter(|range| range.1 < end) {
            for number in first.max(self.base)..=last {
                let sent = &mut self.sent[(number - self.base) as usize];
                if std::mem::replace(&mut sent.is_settled, true) {
                    continue;
                }
                self.bytes -= u64::from(sent.bytes);
                self.delivered += u64::from(sent.bytes);
                if newest.as_ref().is_none_or(|newest| number > newest.number) {
                    let rate = RateSample {
                        prior_delivered: sent.delivered,
                        interval: now - sent.delivered_at,
                        ..RateSample::default()
                    };
                    newest = Some(Newest { number, sent_at: sent.at, rate });
                }
                sent.fragment.into_iter().for_each(&mut settle);
            }
        }
        let newest = newest.as_mut()?;
        self.delivered_at = now;
        self.largest = self.largest.max(newest.number);
        newest.rate.delivered = self.delivered - newest.rate.prior_delivered;
        newest.rate.total = self.delivered;
        Some(Newest { ..*newest })
    }

    /// Declares datagrams lost; calls `lose` for each lost fragment. `reordering` is the time in
    /// nanoseconds after which a datagram is overdue.
    pub(super) fn find_lost(
        &mut self,
        now: Nanos,
        reordering: Nanos,
        lose: impl FnMut(Fragment),
    ) -> Losses {
        let largest = self.largest;
        let mut overdue: Option<Nanos> = None;
        let losses = self.lose(
            |number, at| {
                let is_lost = number + 3 <= largest || at + reordering <= now;
                if !is_lost {
                    let due = at + reordering;
                    overdue = Some(overdue.map_or(due, |other| other.min(due)));
                }
                is_lost
            },
            largest,
            lose,
        );
        self.overdue = overdue;
        losses
    }

    /// Declares all datagrams lost.
    pub(super) fn lose_all(&mut self, lose: impl FnMut(Fragment)) -> Losses {
        self.lose(|_, _| true, self.next(), lose)
    }

    /// Declares the datagrams below `end` lost for which `is_lost` returns true, given number and
    /// time of sending, and forgets the settled ones.
    fn lose(
        &mut self,
        mut is_lost: impl FnMut(u64, Nanos) -> bool,
        end: u64,
        mut lose: impl FnMut(Fragment),
    ) -> Losses {
        let mut losses = Losses::default();
        for (number, sent) in (self.base..end).zip(&mut self.sent) {
            if !sent.is_settled && is_lost(number, sent.at) {
                sent.is_settled = true;
                losses.bytes += u64::from(sent.bytes);
                losses.count += 1;
                losses.newest = Some(number);
                sent.fragment.into_iter().for_each(&mut lose);
            }
        }
        self.bytes -= losses.bytes;
        while self.sent.front().is_some_and(|sent| sent.is_settled) {
            self.sent.pop_front();
            self.base += 1;
        }
        losses
    }
}
