//! The times of a transmitter.
//!
//! Transmissions that follow each other without a gap end at the exact sum of their times, rounded
//! up to a nanosecond: the fraction is carried from one to the next. A transmission that begins in
//! the nanosecond in which the one before ends follows it without a gap. Several short frames may
//! end in one nanosecond.

use crate::params::{Framing, Params};
use sojourn_units::clocking::{Clocking, Span};
use sojourn_units::{Nanos, Rate};

/// No transmission, by a length that no packet has.
const NONE: (u32, Span) = (u32::MAX, Span { whole: 0, part: 0 });

/// A transmitter's rate, and the state that makes its times exact.
#[derive(Clone, Copy, Debug)]
pub struct Transmitter {
    rate: Option<Rate>,
    framing: Framing,
    /// Length and transmission time of the last packet: most packets are as long as the one before.
    last: (u32, Span),
    /// `last` before the last change of the link: a transmission in progress ends at the old rate.
    before: (u32, Span),
    clocking: Clocking,
    /// End of the last transmission that was exact because of `clocking`.
    end: Nanos,
    /// Time by which transmissions were rounded up before the transmitter was idle, in bit/s times
    /// nanoseconds. Only the sum with the spare time of `clocking` is meaningful.
    unused: u128,
}

impl Transmitter {
    pub fn new(params: &Params) -> Self {
        Self {
            rate: params.rate,
            framing: params.framing(),
            last: NONE,
            before: NONE,
            clocking: Clocking::up(params.rate.unwrap_or(Rate::ONE)),
            end: 0,
            unused: 0,
        }
    }

    /// Returns the rate; `None` if the transmitter is infinitely fast or follows a trace.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Returns how packets occupy the link.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns the time of the transmission of `bytes` that begins at `at`.
    #[inline]
    pub fn takes(&mut self, at: Nanos, bytes: u32) -> Nanos {
        if self.last.0 != bytes {
            let occupied = self.framing.occupied(bytes);
            self.last = (bytes, self.rate.map_or(NONE.1, |rate| rate.span(occupied)));
        }
        // At most rates no transmission ever ends within a nanosecond.
        if self.last.1.part | self.clocking.spare() == 0 {
            return self.last.1.whole;
        }
        self.carry(at, self.last.1)
    }

    /// Returns the time of a gap of `bytes`, not framed, that begins at `at`.
    pub fn gap(&mut self, at: Nanos, bytes: u32) -> Nanos {
        self.rate.map_or(0, |rate| self.carry(at, rate.span(bytes)))
    }

    #[inline]
    fn carry(&mut self, at: Nanos, span: Span) -> Nanos {
        if at != self.end {
            self.rest();
        }
        let takes = self.clocking.step(span);
        self.end = at + takes;
        takes
    }

    /// Leaves the spare time unused.
    fn rest(&mut self) {
        self.unused = self.unused.wrapping_add(self.clocking.restart().into());
    }

    /// Sets the time of the transmission of `bytes` at the opportunities of a trace.
    pub fn set_time(&mut self, bytes: u32, takes: Nanos) {
        self.last = (bytes, Span { whole: takes, part: 0 });
    }

    /// Returns the length of the last packet, and its transmission time rounded up.
    pub fn transmission(&self) -> (u32, Nanos) {
        let (bytes, span) = if self.last == NONE { self.before } else { self.last };
        (bytes, span.whole + u64::from(span.part > 0))
    }

    /// Changes rate and framing. A transmission in progress (`sends`) ends at the old rate, and the
    /// next one follows it exactly. Returns by how much the capacity changes in the nanosecond in
    /// which the former ends, in bit/s times nanoseconds, modulo 2^128.
    pub fn turn(&mut self, params: &Params, sends: bool) -> u128 {
        let mut more = 0;
        if self.rate != params.rate {
            if !sends {
                self.rest();
            }
            more = u128::from(self.clocking.spare());
            self.clocking.turn(params.rate.unwrap_or(Rate::ONE));
            more = u128::from(self.clocking.spare()).wrapping_sub(more);
            self.unused = self.unused.wrapping_sub(more);
        }
        (self.rate, self.framing) = (params.rate, params.framing());
        if self.last != NONE {
            self.before = std::mem::replace(&mut self.last, NONE);
        }
        more
    }

    /// Returns by how much the times of all transmissions together exceed the exact times, in bit/s
    /// times nanoseconds; `ended` is whether the last one has ended.
    pub fn excess(&self, ended: bool) -> u128 {
        let spare = if ended { self.clocking.spare() } else { 0 };
        self.unused.wrapping_add(spare.into())
    }
}
