//! Growth on demand that gives back, and does not feed a standing queue.
//!
//! Ours. A packet that does not fit is the moment to grow: no epoch to wait for, no rate to predict.
//! Where RRDA is weak:
//!
//! * Pauses of any length are met, since every packet asks. Seen from outside, every 10 ms or so, the
//!   size keeps ahead by twice the largest step of late, and doubles after discards.
//! * What is given back follows the peak of the last one or two windows, not the balance of two
//!   rates: an idle buffer goes down to its floor, by half a window at most.
//! * More room helps against a pause, not against a handler that is too slow: there it is only more
//!   waiting. Who has not caught up (a quarter of `target`'s work, or of the floor, left) for
//!   `patience` and asks for more is given no more, and is cut down to the work of one `target` as the
//!   queue allows, until he has caught up. As in `CoDel`, what stands is told from a burst by time.
//!
//! What the handler can do in `target` is measured while the buffer is never empty, so that silence is
//! not taken for slowness, and the best of the last windows counts, so that a pause is not.
//! Without `processed` nothing is cut down, but growth still ends when patience does.
//!
//! Growth is by a quarter at least (hysteresis); giving back needs a quarter to be free.

use crate::contract::{PolicyParams, Sizing, bytes, span, within};
use crate::observation::{Decision, GREATEST, Memory, Observation, Reason};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, probability, size};
use sojourn_units::words::Table;
use sojourn_units::{Bytes, Nanos, params};

params! {
    /// Bounds and times.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Least size, and the first.
        floor: Bytes = bytes("64kb"),
        /// Least size, if above `floor`, while the handler catches up and memory is not short: what a
        /// first burst meets.
        ready: Bytes = size("0b").check(|&size| {
            if size <= GREATEST { Ok(()) } else { Err("must be up to 1048576mb") }
        }),
        /// Greatest size.
        ceiling: Bytes = bytes("256mb"),
        /// Share of all memory that the size may reach, where the memory is known.
        share: f64 = probability("0.1"),
        /// Work left in the buffer of a handler that does not catch up.
        target: Nanos = span("100ms"),
        /// Time to catch up, after which growth ends.
        patience: Nanos = span("3s"),
        /// What the peak of one or two windows does not need is given back.
        window: Nanos = span("10s"),
    }
}

impl PolicyParams for Params {
    const TABLE: Table = Table {
        name: "elastic",
        summary: "a receive buffer that grows on demand, gives back, and feeds no standing queue",
        source: "ours",
        words: Self::WORDS,
    };

    type Policy = Elastic;

    fn build(&self) -> Elastic {
        Elastic {
            params: *self,
            last: None,
            busy: (0, 0),
            work: Peak::default(),
            caught_up: 0,
            standing: false,
            held: Peak::default(),
            step: Peak::default(),
            window_end: 0,
        }
    }

    fn sizes(&self) -> Vec<(&'static str, Bytes)> {
        vec![("floor", self.floor), ("ceiling", self.ceiling)]
    }

    fn initial(&self) -> Bytes {
        self.ready.min(self.ceiling).max(self.floor)
    }

    fn potential(&self, size: Bytes, reason: Reason) -> Bytes {
        match reason {
            Reason::Standing | Reason::Pressure | Reason::Bound => size,
            _ => self.ceiling,
        }
    }
}

/// Memory of which less than one part in this many is available is short.
const SHORT: Bytes = 20;

/// The greatest of this window and of the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    before: Bytes,
    now: Bytes,
}

impl Peak {
    fn note(&mut self, value: Bytes) {
        self.now = self.now.max(value);
    }

    fn turn(&mut self) {
        (self.before, self.now) = (self.now, 0);
    }

    fn value(self) -> Bytes {
        self.before.max(self.now)
    }
}

/// What was seen last.
#[derive(Clone, Copy, Debug)]
struct Last {
    now: Nanos,
    /// What the buffer held once the packet asked for was in.
    held: Bytes,
    discarded: Bytes,
    processed: Option<Bytes>,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Elastic {
    params: Params,
    last: Option<Last>,
    /// Busy time and work that make up the next sample of what `target` suffices for.
    busy: (Nanos, Bytes),
    /// Bytes processed in `target` of busy time.
    work: Peak,
    /// When the handler had last caught up.
    caught_up: Nanos,
    standing: bool,
    /// What was held.
    held: Peak,
    /// Growth of what was held, discards included, between two observations.
    step: Peak,
    window_end: Nanos,
}

impl Sizing for Elastic {
    /// Grows, gives back, or neither.
    #[inline]
    fn observe(&mut self, seen: &Observation) -> Decision {
        let wanted = seen.occupied.saturating_add(seen.needed);
        // Messages of which parts have not come are their senders' delay, not the handler's.
        let waiting = seen.occupied.saturating_sub(seen.reserved);
        let last = self.last.unwrap_or_else(|| {
            self.caught_up = seen.now;
            self.window_end = seen.now.saturating_add(self.params.window);
            Last {
                now: seen.now,
                held: seen.occupied,
                discarded: seen.discarded,
                processed: seen.processed,
            }
        });
        let now = seen.now.max(last.now);
        self.measure_work(seen, &last, now);
        let lost = seen.discarded.saturating_sub(last.discarded);
        self.step.note(seen.occupied.saturating_add(lost).saturating_sub(last.held));
        self.held.note(wanted);
        if waiting <= self.enough() / 4 {
            self.caught_up = now;
            self.standing = false;
        }
        let turned = now >= self.window_end;
        let (size, reason) = self.decide(seen, now, lost > 0, turned);
        if turned {
            self.turn(now);
        }
        self.last = Some(Last {
            now,
            held: wanted.min(size),
            discarded: seen.discarded.max(last.discarded),
            processed: seen.processed,
        });
        Decision { size, reason }
    }

    fn state(&self, visit: &mut dyn FnMut(&str, f64)) {
        visit("work", self.work.value() as f64);
        visit("peak", self.held.value() as f64);
        visit("step", self.step.value() as f64);
        visit("standing", f64::from(u8::from(self.standing)));
    }
}

impl Elastic {
    /// Work of one `target`, as far as it is known; at least the floor.
    fn enough(&self) -> Bytes {
        self.work.value().max(self.params.floor)
    }

    /// Adds the span since the last observation to the measurement if the buffer was never empty in it.
    fn measure_work(&mut self, seen: &Observation, last: &Last, now: Nanos) {
        let (Some(processed), Some(before)) = (seen.processed, last.processed) else { return };
        if seen.occupied <= seen.reserved || last.held == 0 {
            return;
        }
        self.busy.0 += now - last.now;
        self.busy.1 = self.busy.1.saturating_add(processed.saturating_sub(before));
        let (time, bytes) = self.busy;
        if time >= self.params.target {
            let work = u128::from(bytes) * u128::from(self.params.target) / u128::from(time);
            self.work.note(work as Bytes);
            self.busy = (0, 0);
        }
    }

    fn decide(
        &mut self,
        seen: &Observation,
        now: Nanos,
        lost: bool,
        turned: bool,
    ) -> (Bytes, Reason) {
        let Params { floor, ready, ceiling, share, patience, .. } = self.params;
        let total = seen.memory.map(|memory| (memory.total as f64 * share) as Bytes);
        let most = ceiling.min(total.unwrap_or(ceiling));
        let fits = |size| within(size, floor, most, seen.occupied);
        let wanted = seen.occupied.saturating_add(seen.needed);
        let ahead = if seen.needed == 0 { self.step.value().saturating_mul(2) } else { 0 };
        let ahead = seen.occupied.saturating_add(seen.needed).saturating_add(ahead);
        let full = lost || wanted > seen.size;
        let patient = now - self.caught_up <= patience;
        self.standing |= full && !patient;
        if is_short(seen.memory) {
            let kept = self.held.value().max(self.enough()).min(seen.size);
            return (fits(kept), Reason::Pressure);
        }
        if self.standing {
            let known = self.work.value() > 0;
            let kept = if known { self.enough().min(seen.size) } else { seen.size };
            return (fits(kept), Reason::Standing);
        }
        let fits = |size| within(size, floor.max(ready.min(most)), most, seen.occupied);
        if full || ahead > seen.size {
            let factor = if lost { 2 } else { 1 };
            let grown = (seen.size + seen.size / 4).max(seen.size.saturating_mul(factor));
            return match fits(grown.max(ahead)) {
                size if size > seen.size && patient => {
                    (size, if lost { Reason::Discards } else { Reason::Demand })
                }
                _ => (fits(seen.size), Reason::Bound),
            };
        }
        if turned {
            let peak = self.held.value();
            let kept = fits((peak + peak / 4).max(ahead).max(seen.size / 2));
            if kept < seen.size - seen.size / 4 {
                return (kept, Reason::Idle);
            }
        }
        match fits(seen.size) {
            size if size == seen.size => (size, Reason::Hold),
            size => (size, Reason::Bound),
        }
    }

    fn turn(&mut self, now: Nanos) {
        self.held.turn();
        self.step.turn();
        // Without a new measurement the old one stays.
        if self.work.now > 0 {
            self.work.turn();
        }
        self.window_end = now.saturating_add(self.params.window);
    }
}

fn is_short(memory: Option<Memory>) -> bool {
    memory.is_some_and(|memory| memory.available < memory.total / SHORT)
}
