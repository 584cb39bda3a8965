//! Slots: packets that are due wait for the next one, as in netem (`netem_dequeue`).

use crate::impair::deviation;
use crate::params::Slot;
use sojourn_random::Stream;
use sojourn_units::{NEVER, Nanos};

/// When the next slot is, and what is left of it.
#[derive(Clone, Debug)]
pub struct Slots {
    pub slot: Slot,
    draws: Stream,
    next: Nanos,
    packets: u32,
    bytes: i64,
    /// When a packet comes to the wire that has not been looked at.
    entered: Nanos,
    /// When a packet has left, so that another one may.
    left: Nanos,
}

impl Slots {
    /// Slots, of which the first one is at `now`.
    pub fn new(slot: Slot, draws: Stream, now: Nanos) -> Self {
        let (entered, left) = (NEVER, NEVER);
        let mut slots = Self { slot, draws, next: now, packets: 0, bytes: 0, entered, left };
        slots.refill();
        slots
    }

    fn refill(&mut self) {
        self.packets = self.slot.packets.unwrap_or(u32::MAX);
        self.bytes = self.slot.bytes.map_or(i64::MAX, i64::from);
    }

    /// Looks for the next arrival at `at`, too.
    pub fn look_at(&mut self, at: Nanos) {
        self.entered = self.entered.min(at);
    }

    /// When to look next, where the first packet is due at `earliest`.
    pub fn next(&self, earliest: Nanos) -> Nanos {
        if earliest == NEVER {
            return NEVER;
        }
        self.entered.min(self.left).min(earliest.max(self.next))
    }

    /// Whether the packet that is due at `earliest` may arrive at `now`. A slot that has gone by without
    /// it is over, and the next one is drawn.
    pub fn open(&mut self, now: Nanos, earliest: Nanos) -> bool {
        self.left = NEVER;
        if self.entered <= now {
            self.entered = NEVER;
        }
        if self.next < earliest {
            self.draw(now);
        }
        earliest <= now && self.next <= now
    }

    /// A packet of `bytes` has arrived at `now`; others may follow in this slot if there are `more`.
    pub fn used(&mut self, now: Nanos, bytes: u32, more: bool) {
        self.packets -= 1;
        self.bytes -= i64::from(bytes);
        if self.packets == 0 || self.bytes <= 0 {
            self.draw(now);
        }
        self.left = if more { now } else { NEVER };
    }

    fn draw(&mut self, now: Nanos) {
        let Slot { delay, spread, distribution, .. } = self.slot;
        let draw = self.draws.next_u32();
        self.next = match distribution {
            None => now + delay + ((u128::from(spread) * u128::from(draw)) >> 32) as Nanos,
            Some(distribution) => {
                let span = libm::round(spread as f64 * deviation(distribution, draw));
                (now + delay).saturating_add_signed(span as i64)
            }
        };
        self.refill();
    }
}
