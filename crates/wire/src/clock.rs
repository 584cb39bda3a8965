//! The clock of a wire: the machine's monotonic one, counted from the run's start.

use rustix::time::{ClockId, clock_gettime};
use sojourn_units::{EPOCH, Nanos, SECOND};

/// The machine's monotonic clock, in nanoseconds.
pub fn monotonic() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as Nanos * SECOND + now.tv_nsec as Nanos
}

/// A run's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Nanos,
    /// What the machine's clock showed when it was looked at last, if it stands still in between.
    shown: Option<Nanos>,
}

impl Clock {
    /// A clock whose zero is when the machine's monotonic clock shows `start`.
    pub fn new(start: Nanos) -> Self {
        Self { start, shown: None }
    }

    /// The same where time stands still while anything works: it is looked at only when it is told to.
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

    /// The time, where [`EPOCH`] is the run's start; it does not pass before.
    #[inline]
    pub fn now(self) -> Nanos {
        EPOCH + self.machine().saturating_sub(self.start)
    }

    /// How long it is until `at`.
    #[inline]
    pub fn until(self, at: Nanos) -> Nanos {
        (at - EPOCH + self.start).saturating_sub(self.machine())
    }
}
