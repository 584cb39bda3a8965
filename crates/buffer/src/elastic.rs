//! A policy that enlarges the buffer on demand, shrinks it again, and does not enlarge it for a
//! standing queue.
//!
//! This policy is this project's own. The buffer grows when a packet does not fit; the policy waits
//! for no epoch and predicts no rate. It differs from RRDA in these points:
//!
//! * It handles pauses of any length, since every packet can enlarge the buffer. If it observes a
//!   buffer from outside about every 10 ms, the size exceeds the occupied part by twice the largest
//!   recent growth between two observations, and doubles after discards.
//! * It shrinks the buffer to about the peak occupancy of the last one or two windows, not by the
//!   difference of rates. An idle buffer shrinks to its minimum, by at most half per window.
//! * A larger buffer helps against a pause, but with a slow handler it only adds delay. Let work
//!   W be the bytes that the handler processes in the time `target`, or the minimum size if that is
//!   larger. A handler has caught up when the buffer holds at most W/4. If it has not caught up for
//!   `patience`, the buffer no longer grows. As the buffer empties, it shrinks to W, until the
//!   handler has caught up. As in `CoDel`, time distinguishes a standing queue from a burst.
//!
//! The handler's work is measured only while the buffer is not empty, so that an idle time is not
//! mistaken for slowness. The greatest value of the last two windows counts, so that a pause is not
//! mistaken for slowness either. If `processed` is unknown, the buffer does not shrink because of a
//! standing queue, but its growth still ends after `patience`.
//!
//! The buffer grows by at least a quarter if its maximum permits. An idle buffer shrinks only by
//! more than a quarter.

use crate::contract::{PolicyParams, Sizing, bytes, span, within};
use crate::observation::{Decision, GREATEST, Memory, Observation, Reason};
use sojourn_units::declare::{probability, size};
use sojourn_units::{Bytes, Nanos, params};

params! {
    "elastic": "a receive buffer that grows on demand, shrinks again, and does not grow for a standing queue",
    from "ours";

    /// Bounds of the size, and times.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Minimum and initial size.
        floor: Bytes = bytes("64kb"),
        /// Initial size, for a first burst, and minimum size unless memory is short or there is a
        /// standing queue. Without effect unless it is above `floor`.
        ready: Bytes = size("0b").check(|&size| {
            if size <= GREATEST { Ok(()) } else { Err("must be at most 1048576mb") }
        }),
        /// Maximum size.
        ceiling: Bytes = bytes("256mb"),
        /// Maximum size as a share of the total memory, if the memory is known.
        share: f64 = probability("0.1"),
        /// Size of the buffer if the handler does not catch up, as the time to process this size.
        target: Nanos = span("100ms"),
        /// Time that the handler has to catch up; after it, the buffer no longer grows.
        patience: Nanos = span("3s"),
        /// Window of the peak: the buffer shrinks to the peak of the last one or two windows.
        window: Nanos = span("10s"),
    }
}

impl PolicyParams for Params {
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

/// Memory is short if the available memory is less than the total divided by this number.
const SHORT: Bytes = 20;

/// Maximum of a value in the current and in the previous window.
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

/// Values of the last observation.
#[derive(Clone, Copy, Debug)]
struct Last {
    now: Nanos,
    /// Occupied bytes, including the packet that was about to be stored.
    held: Bytes,
    discarded: Bytes,
    processed: Option<Bytes>,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Elastic {
    params: Params,
    last: Option<Last>,
    /// Current measurement of the handler's work: duration in nanoseconds, and bytes processed.
    busy: (Nanos, Bytes),
    /// Bytes that the handler processes in the time `target` while the buffer is not empty.
    work: Peak,
    /// Last time at which the handler had caught up.
    caught_up: Nanos,
    standing: bool,
    /// Greatest number of occupied bytes.
    held: Peak,
    /// Greatest growth of the occupied bytes between two observations, including discards.
    step: Peak,
    window_end: Nanos,
}

impl Sizing for Elastic {
    /// Decides whether the buffer grows, shrinks or stays.
    #[inline]
    fn observe(&mut self, seen: &Observation) -> Decision {
        let wanted = seen.occupied.saturating_add(seen.needed);
        // Incomplete messages wait for their senders, not for the handler.
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
    /// Returns the bytes that the handler processes in one `target`, or the minimum size if this is
    /// larger.
    fn enough(&self) -> Bytes {
        self.work.value().max(self.params.floor)
    }

    /// Adds the time since the last observation to the measurement of the handler's work, if the
    /// buffer was not empty then and has complete packets now.
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
        // Without a new measurement the previous one remains valid.
        if self.work.now > 0 {
            self.work.turn();
        }
        self.window_end = now.saturating_add(self.params.window);
    }
}

fn is_short(memory: Option<Memory>) -> bool {
    memory.is_some_and(|memory| memory.available < memory.total / SHORT)
}
