//! Slots: packets that are due wait for the next slot, as in netem (`netem_dequeue`).

use crate::impair::deviation;
use crate::params::Slot;
use sojourn_random::Stream;
use sojourn_units::{NEVER, Nanos};

/// The time of the next slot, and the packets and bytes that it still admits.
#[derive(Clone, Debug)]
pub struct Slots {
    pub slot: Slot,
    draws: Stream,
    next: Nanos,
    packets: u32,
    bytes: i64,
    /// Time at which a packet enters the wire and the next arrival is determined again; [`NEVER`]
    /// without such a packet.
    entered: Nanos,
    /// Time of the last arrival, if another packet may follow at once; else [`NEVER`].
    left: Nanos,
}

impl Slots {
    /// Returns slots, the first of which is at `now`.
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

    /// Has the next arrival determined at `at` too.
    pub fn look_at(&mut self, at: Nanos) {
        self.entered = self.entered.min(at);
    }

    /// Returns when the next arrival is determined, if the first packet is due at `earliest`.
    pub fn next(&self, earliest: Nanos) -> Nanos {
        if earliest == NEVER {
            return NEVER;
        }
        self.entered.min(self.left).min(earliest.max(self.next))
    }

    /// Returns whether the packet that is due at `earliest` may arrive at `now`. A slot before
    /// `earliest` is over, and the next slot is drawn.
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

    /// Counts a packet of `bytes` bytes that arrived at `now`. `more`: other packets are on the
    /// wire and may follow.
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
