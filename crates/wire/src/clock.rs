//! The clock of a wire: the machine's monotonic one, counted from the run's start.

use rustix::time::{ClockId, clock_gettime};
use sojourn_units::{EPOCH, Nanos, SECOND};

/// Returns the machine's monotonic clock, in nanoseconds.
pub fn monotonic() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as Nanos * SECOND + now.tv_nsec as Nanos
}

/// A run's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Nanos,
    /// The machine's time at the last reading, if the clock stops in between.
    shown: Option<Nanos>,
}

impl Clock {
    /// Returns a clock whose zero is when the machine's monotonic clock shows `start`.
    pub fn new(start: Nanos) -> Self {
        Self { start, shown: None }
    }

    /// Returns the same clock for virtual time, which stops while anything works: it is read on
    /// request only.
    pub fn standing(start: Nanos) -> Self {
        Self { start, shown: Some(monotonic()) }
    }

    /// Time may have passed: the wire has slept.
    #[inline]
    pub fn look(&mut self) {
        if let Some(shown) = &mut self.shown {
            *shown = monotonic();
        }
    }

    #[inline]
    fn machine(self) -> Nanos {
        self.shown.unwrap_or_else(monotonic)
    }

    /// Returns the time, where [`EPOCH`] is the run's start; it does not pass before.
    #[inline]
    pub fn now(self) -> Nanos {
        EPOCH + self.machine().saturating_sub(self.start)
    }

    /// Returns how long it is until `at`.
    #[inline]
    pub fn until(self, at: Nanos) -> Nanos {
        (at - EPOCH + self.start).saturating_sub(self.machine())
    }
}
